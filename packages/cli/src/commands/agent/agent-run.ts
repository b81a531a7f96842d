import { join } from "node:path";
import { agentTool, type Run, runnerTools, startRun, toolDirectories } from "@slipway/agent-host";
import { type End, type NumberedEvent, newId, type RunId, SlipwayError } from "@slipway/contract";
import { cloneRepo, type OwnedSandbox, projectPath, putDirectory } from "@slipway/sandbox";
import type { Context } from "../../input/command.ts";
import { given, networkPolicy } from "../../input/request.ts";
import { toJson } from "../../terminal/terminal.ts";
import { counted } from "../sandbox/files/transfer.ts";
import { takeBaseline } from "./changes.ts";
import { createDisplay } from "./display.ts";
import { chooseModels, openModels } from "./models.ts";
import { checkSource, type Order, readOrder } from "./order.ts";
import { finish, finishUncollected, formatUsd } from "./outcome.ts";
import { createRenderer } from "./render.ts";
import { steer, tooLate } from "./steer.ts";

/** Makes a sandbox, runs an agent in it on a copy of a directory or repository, and offers what it changed. */
export async function run(context: Context): Promise<number> {
  const { signal } = context.interrupts;
  const order = readOrder(context.args);
  await checkSource(order);
  const { stateDir, agentsDir } = await context.settings();
  const id = newId("run");
  const directory = join(stateDir, "runs", id);
  const chosen = chooseModels({ environment: context.io.env, directory, model: order.model });
  await using parts = new AsyncDisposableStack();
  const provider = await context.provider(await toolDirectories(order.agent, agentsDir));
  context.progress.status("creating the sandbox");
  const sandbox = await provider.create(sandboxRequest(context, order, id), { signal });
  let isKept = order.keep;
  parts.defer(async () => {
    if (!isKept) await sandbox[Symbol.asyncDispose]();
  });
  // After the provider has made the state directory, whose mode matters.
  const models = parts.use(await openModels(chosen));
  if (models.promptsPath !== undefined) await context.note(`prompts are written to ${models.promptsPath}`);
  const workdir = await fill(context, sandbox, order);
  context.progress.status("remembering the files as they are");
  const baseline = await takeBaseline(sandbox, workdir, { signal });
  context.progress.clear();
  await context.note(`run ${id} in sandbox ${sandbox.id}; look in with: slipway sandbox shell ${sandbox.id}`);
  if (order.workers > 0 && chosen.settings.models.build.startsWith("scripted/")) {
    await context.note("scripted models hand out no tasks: the workers stay idle");
  }
  context.progress.status(`starting ${order.agent}`);
  const { agent, prompt, workers, permissions, totalMs, budgetMicroUsd } = order;
  const task = { agent, prompt, workdir, workers, permissions, model: models.model, limits: { totalMs } };
  const started = parts.use(
    await startRun({ sandbox, gateway: models.gateway, grant: { id, roles: ["build"], budgetMicroUsd, task } }),
  );
  const end = await follow(context, started);
  context.progress.status("collecting the changes");
  const patch = await baseline.diff({ signal }).catch(async (error: unknown) => {
    isKept = true;
    context.progress.clear();
    await finishUncollected(context, { order, run: started, end, sandbox, workdir });
    throw error;
  });
  context.progress.clear();
  return await finish(context, {
    order,
    run: started,
    end,
    patch,
    directory,
    sandbox: isKept ? sandbox.id : undefined,
  });
}

/** The runner needs to live longer than its own limit, so that it can say how it ended. */
const reserveMs = 10 * 60_000;

function sandboxRequest(context: Context, order: Order, id: RunId) {
  const tool = agentTool(order.agent);
  return {
    tools: [...runnerTools, ...(tool === undefined ? [] : [tool])],
    lifetimeMs: order.totalMs + reserveMs,
    idleMs: null,
    // One that dies keeps its files: they were paid for. This command destroys it.
    onEnd: "stop" as const,
    labels: { run: id },
    ...given({ network: networkPolicy(context.args, context.io.env) }),
  };
}

async function fill(context: Context, sandbox: OwnedSandbox, { source }: Order): Promise<string> {
  const { signal } = context.interrupts;
  if ("repository" in source) {
    context.progress.status(`cloning ${source.repository}`);
    const { exitCode, stderr } = await cloneRepo(sandbox, source.repository, { signal });
    if (exitCode === 0) return projectPath;
    throw new SlipwayError("exec_failed", `git can not clone ${source.repository}: ${stderr.trim().slice(-1000)}`);
  }
  const leftOut: string[] = [];
  const onLeftOut = (path: string, reason: string) => void leftOut.push(`left out: ${path}: ${reason}`);
  const { workdir } = await sandbox.info({ signal });
  await putDirectory(
    sandbox,
    { directory: source.directory, workdir, environment: context.io.env },
    { ...counted(context), onLeftOut },
  );
  for (const line of leftOut) await context.note(line);
  return workdir;
}

async function follow(context: Context, run: Run): Promise<End> {
  using steering = steer(context, (control) => {
    run.send(control).catch(tooLate);
  });
  const render = createRenderer(context.paint);
  const display = createDisplay(context.out, context.progress);
  for await (const event of run.events()) {
    await display.write(context.json ? `${toJson(event)}\n` : render(event));
    // After the event itself: what is asked for comes before the question.
    steering.see(event);
    if (endsStep(event)) display.status(`${formatUsd((await run.balance()).spentMicroUsd)} so far`);
  }
  await display.endLine();
  return run.ended;
}

function endsStep({ event }: NumberedEvent): boolean {
  return event.type === "agent" && (event.event.type === "usage" || event.event.type === "tool");
}
