import {
  accountSchema,
  agentActionRecordSchema,
  attemptRecordSchema,
  buildRecordSchema,
  candidateRecordSchema,
  checkpointRecordSchema,
  checkRecordSchema,
  disputeRecordSchema,
  gateResultRecordSchema,
  intentRecordSchema,
  mergeRecordSchema,
  newEventSchema,
  patternRecordSchema,
  planRecordSchema,
  reservationSchema,
  sandboxRecordSchema,
  settlementSchema,
  taskRecordSchema,
  workNoteSchema,
} from "@slipway/engine";
import { z } from "zod";
import { flag, jsonText } from "./codec.ts";

/** Maps records to rows: JSON becomes text and booleans become numbers. */
// Parsed JSON is not validated again for every row.
const details = jsonText(z.custom<Record<string, z.core.util.JSONType>>((value) => isObject(value)));

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const buildRow = buildRecordSchema.extend({ details });
export const noteRow = workNoteSchema.extend({ note: jsonText(z.json()) });
export const agentActionRow = agentActionRecordSchema.extend({ details, ok: flag.nullable() });
export const patternRow = patternRecordSchema;

export const recordRows = {
  intents: intentRecordSchema.extend({ intent: jsonText(z.json()) }),
  checks: checkRecordSchema.extend({ check: jsonText(z.json()) }),
  plans: planRecordSchema.extend({ tasks: jsonText(planRecordSchema.shape.tasks) }),
  tasks: taskRecordSchema.extend({ details, dependencies: jsonText(taskRecordSchema.shape.dependencies) }),
  attempts: attemptRecordSchema.extend({ details }),
  sandboxes: sandboxRecordSchema.extend({
    config: jsonText(z.json()),
    tasks: jsonText(sandboxRecordSchema.shape.tasks),
  }),
  checkpoints: checkpointRecordSchema.extend({ details }),
  candidates: candidateRecordSchema.extend({ details }),
  gateResults: gateResultRecordSchema.extend({
    parts: jsonText(gateResultRecordSchema.shape.parts),
    findings: jsonText(gateResultRecordSchema.shape.findings),
    artefacts: jsonText(gateResultRecordSchema.shape.artefacts),
  }),
  merges: mergeRecordSchema,
  disputes: disputeRecordSchema.extend({ replacement: jsonText(z.json()) }),
};

export const eventRow = newEventSchema.extend({
  build: buildRecordSchema.shape.id,
  sequence: z.int().min(1),
  at: z.int().min(0),
  source: z.enum(["report", "decision"]),
  key: newEventSchema.shape.key.unwrap(),
  data: details,
});

type LeaseRow = {
  build: string;
  holder: string | null;
  generation: number;
  leaseMs: number;
  expiresAt: number;
  bell: string | null;
};

type AccountRow = z.output<typeof accountSchema> & { spentMicroUsd: number; reservedMicroUsd: number };

const { build, task, attempt, agent, gate } = accountSchema.shape;
const { request, account, holder, kind, terms, sandbox } = reservationSchema.shape;
const { provider, end, role, model, usage } = settlementSchema.shape;
/** One reservation and its settlement. It repeats the purpose of its account, so that sums need one query. */
export const entryRow = z.strictObject({
  build,
  task: task.unwrap(),
  attempt: attempt.unwrap(),
  agent: agent.unwrap(),
  gate: gate.unwrap(),
  request,
  account,
  holder,
  kind,
  reservedMicroUsd: z.int(),
  spentMicroUsd: z.int().nullable(),
  provider: provider.nullable(),
  end: end.nullable(),
  estimated: flag.nullable(),
  role: role.unwrap(),
  model: model.unwrap(),
  usage: jsonText(usage.unwrap().unwrap()).nullable(),
  reservedAt: z.int(),
  settledAt: z.int().nullable(),
  terms: jsonText(terms.unwrap().unwrap()).nullable(),
  sandbox: sandbox.unwrap(),
});

type RecordTables = { [K in keyof typeof recordRows]: z.input<(typeof recordRows)[K]> };

export type Tables = RecordTables & {
  builds: z.input<typeof buildRow>;
  events: z.input<typeof eventRow>;
  leases: LeaseRow;
  accounts: AccountRow;
  ledgerEntries: z.input<typeof entryRow>;
  workNotes: z.input<typeof noteRow>;
  agentActions: z.input<typeof agentActionRow>;
  patterns: z.input<typeof patternRow>;
  runLogs: { run: string; events: number; bytes: number };
  runEvents: { run: string; sequence: number; event: string };
  runOrders: { run: string; number: number; order: string };
};
