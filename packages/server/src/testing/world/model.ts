import type { GatewayLogLine } from "@slipway/gateway";
import type { ScriptedProgram, ScriptedRequest } from "@slipway/gateway/scripted";
import { createRunLog } from "@slipway/store";
import { openModels, readModelSettings } from "../../work/planning/open-models.ts";
import type { Place } from "./place.ts";
import { driver, type StorePart } from "./store.ts";

export interface ModelOptions {
  /** What answers for every model. */
  readonly program: ScriptedProgram;
  /** Settings beside the name of the model. */
  readonly environment?: Readonly<Record<string, string>>;
  /** How long the gateway waits for a word of the model. */
  readonly silenceMs?: number;
}

export type ModelPart = Awaited<ReturnType<typeof openModel>>;

/** Quick to try again. */
export const gatewayTries = 2;
const retries = { tries: gatewayTries, baseMs: 1, maxMs: 2, maxRetryAfterMs: 2 };

/** A gateway whose models are all one scripted program. */
export async function openModel(
  options: ScriptedProgram | ModelOptions,
  { directory, clock, database, store }: Place & StorePart,
  held: AsyncDisposableStack,
) {
  const { program, ...given } = typeof options === "function" ? { program: options } : options;
  await store.ledger.abandon(driver.holder);
  /** What the model was asked, and what the gateway says it cost. */
  const asked: ScriptedRequest[] = [];
  const lines: GatewayLogLine[] = [];
  const models = held.use(
    await openModels({
      settings: modelSettings(directory, given),
      ledger: store.ledger,
      log: createRunLog(database),
      holder: driver.holder,
      clock,
      directory,
      secret: "a secret of the tests",
      programs: {
        program(scripted) {
          asked.push(scripted);
          return program(scripted);
        },
      },
      logger: (line) => lines.push(line),
    }),
  );
  return { models, asked, lines };
}

/** A program may wait for others, unless it is said how long. */
export function modelSettings(
  directory: string,
  { environment = {}, silenceMs = 600_000 }: Partial<ModelOptions> = {},
) {
  const timeouts = { connectMs: 20_000, firstByteMs: silenceMs, idleMs: silenceMs, totalMs: 1_800_000 };
  return { ...readModelSettings({ SLIPWAY_MODEL: "scripted/program", ...environment }, directory), timeouts, retries };
}
