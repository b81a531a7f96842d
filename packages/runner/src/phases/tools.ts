import { randomUUID } from "node:crypto";
import { fence, type RunnerEvent, repositoryPathSchema, slugSchema, type TaskOrder } from "@slipway/contract";
import { z } from "zod";
import type { TeamTool } from "../agents/driver.ts";
import type { Inbox } from "../team/inbox.ts";
import { defineTeamTool } from "../team/tool.ts";

export interface PhaseToolsOptions {
  readonly order: Pick<TaskOrder, "criteria">;
  readonly inbox: Inbox;
  emit(event: RunnerEvent): Promise<void>;
  onCriterion(criterion: string, satisfied: boolean): Promise<void>;
  readonly signal: AbortSignal;
}

const claimMs = 10_000;

const readContext = z.strictObject({ name: slugSchema.optional() });
const claimFiles = z.strictObject({ paths: z.array(repositoryPathSchema).min(1).max(64) });
const tellOthers = z.strictObject({
  title: z.string().trim().min(1).max(300),
  text: z
    .string()
    .trim()
    .max(8 * 1024)
    .default(""),
});
const stateCriterion = z.strictObject({
  criterion: slugSchema,
  satisfied: z.boolean(),
  evidence: z.string().trim().min(1).max(4096),
});

/** The tools of a task run's agents, besides the team's. */
export function phaseTools({ order, inbox, emit, onCriterion, signal }: PhaseToolsOptions): TeamTool[] {
  return [
    defineTeamTool(
      "read_context",
      "Shows what the sandboxes of this build share. Without a name, lists the parts; with a name, shows that part.",
      readContext,
      async ({ name }) => {
        if (name === undefined) return inbox.shared.map((part) => part.name).join("\n") || "[nothing is shared yet]";
        const part = inbox.shared.find((entry) => entry.name === name);
        return part === undefined ? `There is no part ${name}.` : fence("context", part.text);
      },
    ),
    defineTeamTool(
      "claim_files",
      "Announces to the other sandboxes that you will change files, and tells you whether another one is changing them.",
      claimFiles,
      async ({ paths }) => {
        const id = randomUUID();
        const answer = inbox.claimed(id, AbortSignal.any([signal, AbortSignal.timeout(claimMs)]));
        await emit({ type: "claim", id, paths });
        const claimed = await answer;
        if (claimed === undefined) return "Nobody has answered. Go on.";
        if (claimed.granted) return "The files are yours.";
        const held = claimed.held.map(({ path, owner }) => `${path}: ${owner}`).join("\n");
        return `Others are changing these files. Avoid them if you can, or keep your change small:\n${fence("claims", held)}`;
      },
    ),
    defineTeamTool(
      "tell_others",
      "Tells the agents of the other sandboxes something they should know: an interface, a decision, a pitfall.",
      tellOthers,
      async ({ title, text }) => {
        await emit({ type: "told", title, text });
        return "Told.";
      },
    ),
    defineTeamTool(
      "state_criterion",
      "Reports whether a criterion holds, with the evidence.",
      stateCriterion,
      async ({ criterion, satisfied, evidence }) => {
        if (!order.criteria.some(({ id }) => id === criterion)) return `Your task has no criterion ${criterion}.`;
        await emit({ type: "criterion", criterion, satisfied, evidence });
        await onCriterion(criterion, satisfied);
        return "Noted.";
      },
    ),
  ];
}
