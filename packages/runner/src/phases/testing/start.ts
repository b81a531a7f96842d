import type { RunnerEvent, RunTaskInput, TaskOrderInput } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { expect } from "vitest";
import { endOf } from "../../testing/end.ts";
import { startTestRun } from "../../testing/run.ts";
import { makeProject, type Project } from "./project.ts";

/** A task run of the built-in agent in this process. */
export async function startAttempt(
  program: ScriptedProgram,
  options: { project?: Project; order?: Partial<TaskOrderInput>; task?: Partial<RunTaskInput> } = {},
) {
  const project = options.project ?? (await makeProject());
  const order = { ...project.order, ...options.order };
  const started = await startTestRun(program, { ...options.task, prompt: "", order });
  const offered = async (number: number) => {
    const isOffer = (event: RunnerEvent) => event.type === "offered" && event.number === number;
    const event = await started.channel.until((each) => isOffer(each) || each.type === "ended");
    expect(event).toMatchObject({ type: "offered" });
    return event;
  };
  return { ...started, project, offered, end: () => endOf(started.channel.events) };
}
