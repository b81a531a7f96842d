import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelRole, newId } from "@slipway/contract";
import type { ProviderHealth } from "../../deliver/health.ts";
import type { DialectName } from "../../dialects/dialect.ts";
import { createGateway, type Gateway, type OpenCalls } from "../../gateway.ts";
import { createMemoryLedger } from "../../journal/ledger.ts";
import { openRunLog } from "../../journal/run-log.ts";
import type { GatewayLogLine } from "../../listen/exchange.ts";
import { readGatewaySettings, type Timeouts } from "../../settings/settings.ts";
import type { ScriptedProgram, ScriptedRequest } from "../program.ts";
import { startScriptedModel } from "../server.ts";

export interface ScriptedGateway extends AsyncDisposable {
  readonly baseUrl: string;
  readonly calls: OpenCalls;
  /** What the endpoint was asked, each try of it. */
  readonly asked: ScriptedRequest[];
  readonly lines: GatewayLogLine[];
  readonly connect: Gateway["connect"];
  health(): ProviderHealth;
}

interface Options {
  readonly program: ScriptedProgram;
  /** What the endpoint speaks; without it, everything. */
  readonly endpoint?: DialectName | undefined;
  readonly timeouts?: Partial<Timeouts>;
  readonly roles?: readonly ModelRole[];
  readonly budgetMicroUsd?: number;
}

const retries = { tries: 3, baseMs: 1, maxMs: 2, maxRetryAfterMs: 2 };

/** A gateway whose only model is the program, reached over HTTP as any other. */
export async function startScriptedGateway(options: Options): Promise<ScriptedGateway> {
  await using resources = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "gateway-"));
  resources.defer(() => rm(directory, { recursive: true }));
  const asked: ScriptedRequest[] = [];
  const lines: GatewayLogLine[] = [];
  const path = join(directory, "model.sock");
  const onRequest = (request: ScriptedRequest) => void asked.push(request);
  resources.use(await startScriptedModel({ programs: { program: options.program }, listen: { path }, onRequest }));
  const settings = readGatewaySettings({ SLIPWAY_MODEL: "scripted/program" }, { scripted: { path } });
  const { endpoint } = options;
  const endpoints = endpoint
    ? settings.endpoints.map((known) => ({ ...known, dialects: [endpoint] as const }))
    : settings.endpoints;
  const timeouts = { ...settings.timeouts, ...options.timeouts };
  const gateway = resources.use(
    createGateway({
      settings: { ...settings, endpoints, timeouts, retries },
      ledger: createMemoryLedger(),
      log: await openRunLog(directory),
      secret: "a secret of the tests",
      logger: (line) => lines.push(line),
    }),
  );
  const { roles = ["build"], budgetMicroUsd = 1_000_000 } = options;
  const calls = await gateway.openCalls({ id: newId("run"), roles, budgetMicroUsd });
  const { address } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  if ("path" in address) throw new Error("expected a port");
  const owned = resources.move();
  return {
    calls,
    asked,
    lines,
    connect: gateway.connect,
    baseUrl: `http://${address.host}:${address.port}`,
    health() {
      const health = gateway.health().find(({ provider }) => provider === "scripted");
      if (!health) throw new Error("the gateway does not know its provider");
      return health;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
