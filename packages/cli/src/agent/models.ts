import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createGateway, type Gateway, openLedger, openRunLog, readGatewaySettings } from "@slipway/gateway";
import { demo, echo, startScriptedModel } from "@slipway/gateway/scripted";
import type { Environment } from "../environment.ts";

/** A gateway for one run, in this process. */
export interface Models extends AsyncDisposable {
  readonly gateway: Gateway;
  /** The model of the role `build`, without its provider: as agents name it. */
  readonly model: string;
}

/** `directory` is the run's own: its books and what it reports are kept there. */
export async function openModels(options: {
  readonly environment: Environment;
  readonly directory: string;
  /** `provider/model`; undefined: as the settings say. */
  readonly model: string | undefined;
}): Promise<Models> {
  const { environment, directory, model } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await using parts = new AsyncDisposableStack();
  const path = join(directory, "model.sock");
  const settings = readGatewaySettings(
    { ...environment, ...(model !== undefined && { SLIPWAY_MODEL_BUILD: model }) },
    { scripted: { path } },
  );
  const chosen = settings.models.build;
  if (chosen.startsWith("scripted/")) {
    parts.use(await startScriptedModel({ programs: { demo, echo }, listen: { path } }));
  }
  const ledger = parts.use(await openLedger(join(directory, "ledger")));
  const log = await openRunLog(join(directory, "events"));
  const gateway = parts.use(createGateway({ settings, ledger, log, secret: randomBytes(32).toString("hex") }));
  const held = parts.move();
  return {
    gateway,
    model: chosen.slice(chosen.indexOf("/") + 1),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}
