import { join } from "node:path";
import { type BuildId, newId, SlipwayError } from "@slipway/contract";
import type { BuildLedger } from "@slipway/engine";
import {
  createGateway,
  type Gateway,
  type GatewayLogLine,
  type GatewaySettings,
  type RunLog,
  readGatewaySettings,
} from "@slipway/gateway";
import { createRoles, type Roles } from "@slipway/gateway/roles";
import { demo, echo, planner, type ScriptedProgram, startScriptedModel } from "@slipway/gateway/scripted";
import { createGatewayLedger } from "@slipway/store";
import { demoBuild } from "../../../../../examples/demo-build/demo-build.ts";

export interface ModelParts {
  readonly settings: GatewaySettings;
  readonly ledger: BuildLedger;
  readonly log: RunLog;
  /** The name of this process in the ledger. */
  readonly holder: string;
  /** Signs the tokens of runs. */
  readonly secret: string;
  readonly clock: { now(): number };
  /** Holds the socket of the scripted model. */
  readonly directory: string;
  /** Programs of the scripted model. */
  readonly programs?: Readonly<Record<string, ScriptedProgram>> | undefined;
  readonly logger?: ((line: GatewayLogLine) => void) | undefined;
}

/** The server's gateway, and models for its own questions. */
export interface ServerModels extends AsyncDisposable {
  readonly gateway: Gateway;
  /** Models for planning a build, paid from the rest of its budget. Fails with `missing_key` and the like. */
  forBuild(build: BuildId): Promise<Roles>;
}

const shippedPrograms = { demo, "demo-build": demoBuild, echo, planner };

/** The model settings, with the scripted model in the directory. */
export function readModelSettings(
  environment: Readonly<Record<string, string | undefined>>,
  directory: string,
): GatewaySettings {
  return readGatewaySettings(environment, { scripted: { path: scriptedSocket(directory) } });
}

export async function openModels(parts: ModelParts): Promise<ServerModels> {
  const { settings, ledger, log, holder, secret, clock, directory, programs = shippedPrograms, logger } = parts;
  await using opened = new AsyncDisposableStack();
  if (usesScripted(settings, programs)) {
    opened.use(await startScriptedModel({ programs, listen: { path: scriptedSocket(directory) } }));
  }
  const gateway = opened.use(
    createGateway({
      settings,
      log,
      secret,
      clock,
      ledger: createGatewayLedger(ledger, holder),
      ...(logger && { logger }),
    }),
  );
  const held = opened.move();
  return {
    gateway,
    async forBuild(build) {
      const id = newId("run", clock.now());
      const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = await ledger.balance(build);
      const left = Math.max(0, budgetMicroUsd - spentMicroUsd - reservedMicroUsd);
      // Opened before the gateway does, with the build that spends.
      await ledger.open({ id, build, agent: "planner", budgetMicroUsd: left });
      const calls = await gateway.openCalls({ id, roles: ["intent", "plan", "judge"], budgetMicroUsd: left });
      const { token } = calls;
      const roles = createRoles({ gateway: { baseUrl: "http://gateway.internal", token, connect: gateway.connect } });
      return {
        ...roles,
        async [Symbol.asyncDispose]() {
          await roles[Symbol.asyncDispose]();
          await calls[Symbol.asyncDispose]();
        },
      };
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

function scriptedSocket(directory: string): string {
  return join(directory, "model.sock");
}

/** Fails early for an unknown program, not in the middle of a build. */
function usesScripted({ models }: GatewaySettings, programs: Readonly<Record<string, unknown>>): boolean {
  const scripted = Object.values(models).filter((name) => name.startsWith("scripted/"));
  const unknown = scripted.find((name) => !Object.hasOwn(programs, name.slice("scripted/".length)));
  if (unknown === undefined) return scripted.length > 0;
  const known = Object.keys(programs).map((name) => `scripted/${name}`);
  throw new SlipwayError("unknown_model", `${unknown} does not exist; use one of ${known.join(", ")}`);
}
