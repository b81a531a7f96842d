import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import {
  createGateway,
  type Gateway,
  type GatewaySettings,
  openLedger,
  openRunLog,
  readGatewaySettings,
  resolveRoutes,
} from "@slipway/gateway";
import { demo, echo, startScriptedModel } from "@slipway/gateway/scripted";
import type { Environment } from "../../terminal/environment.ts";

/** A gateway for one run, in this process. */
export interface Models extends AsyncDisposable {
  readonly gateway: Gateway;
  /** The model of the role `build` as agents name it, without its provider. */
  readonly model: string;
  /** The prompt log; undefined if prompts are not logged. */
  readonly promptsPath: string | undefined;
}

/** Chooses a run's models. Throws for an unknown model, a missing key or a missing price. */
export function chooseModels(options: {
  readonly environment: Environment;
  /** The run's own: its books and what it reports are kept there. */
  readonly directory: string;
  /** `provider/model`; undefined for the one in the settings. */
  readonly model: string | undefined;
}): ModelChoice {
  const { environment, directory, model } = options;
  const scripted = { path: join(directory, "model.sock") };
  const chosen = { ...environment, ...(model !== undefined && { SLIPWAY_MODEL_BUILD: model }) };
  const settings = readGatewaySettings(chosen, { scripted });
  resolveRoutes(settings, ["build"]);
  checkProgram(settings.models.build);
  return { settings, directory, scripted };
}

const programs = { demo, echo };

function checkProgram(model: string): void {
  const [provider, program] = model.split("/");
  if (provider !== "scripted" || (program !== undefined && Object.hasOwn(programs, program))) return;
  const known = Object.keys(programs).map((name) => `scripted/${name}`);
  throw new SlipwayError("unknown_model", `Unknown model ${model}. Known scripted models: ${known.join(", ")}.`);
}

export interface ModelChoice {
  readonly settings: GatewaySettings;
  readonly directory: string;
  readonly scripted: { readonly path: string };
}

export async function openModels({ settings, directory, scripted }: ModelChoice): Promise<Models> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await using parts = new AsyncDisposableStack();
  const { build } = settings.models;
  if (build.startsWith("scripted/")) {
    parts.use(await startScriptedModel({ programs, listen: scripted }));
  }
  const ledger = parts.use(await openLedger(join(directory, "ledger")));
  const log = await openRunLog(join(directory, "events"));
  const promptsPath = settings.logPrompts ? join(directory, "prompts.jsonl") : undefined;
  const gateway = parts.use(
    createGateway({
      settings,
      ledger,
      log,
      secret: randomBytes(32).toString("hex"),
      ...(promptsPath !== undefined && {
        logger: (line) => appendFileSync(promptsPath, `${JSON.stringify(line)}\n`, { mode: 0o600 }),
      }),
    }),
  );
  const held = parts.move();
  return {
    gateway,
    promptsPath,
    model: build.slice(build.indexOf("/") + 1),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}
