import type { ModalClient } from "modal";
import { type Finding, fail, ok, warn } from "../../finding.ts";
import type { ModalSettings } from "../../modal-settings.ts";
import { openClient } from "./client.ts";

export interface InspectModalOptions {
  readonly signal?: AbortSignal | undefined;
  readonly now?: (() => number) | undefined;
}

const answerMs = 15_000;

/** Checks whether Modal can be used with these settings. Only reads, and names no credential. */
export async function inspectModal(settings: ModalSettings, options: InspectModalOptions = {}): Promise<Finding[]> {
  const { signal, now = Date.now } = options;
  const limit = AbortSignal.timeout(answerMs);
  const call = { signal: signal === undefined ? limit : AbortSignal.any([signal, limit]), retries: 0 };
  using opened = await openClient(settings);
  const inspection = { settings, client: opened.client, call, now };
  const reached = await reach(inspection);
  if (reached.some(({ status }) => status === "fail")) return reached;
  return [...reached, await inspectWorkspace(inspection), await inspectApp(inspection)];
}

interface Inspection {
  readonly settings: ModalSettings;
  readonly client: ModalClient;
  readonly call: { readonly signal: AbortSignal; readonly retries: number };
  readonly now: () => number;
}

/** Whether Modal answers, and takes the credentials. */
async function reach({ settings: { apiBase }, client, call, now }: Inspection): Promise<Finding[]> {
  const startedAt = performance.now();
  let date: string | undefined;
  const onHeader = (header: { get(name: string): unknown }) => {
    date = String(header.get("date") ?? "");
  };
  try {
    await client.cpClient.authTokenGet({}, { ...call, onHeader });
  } catch (error) {
    return [refusal(error, apiBase), ...inspectClock(date, now())];
  }
  const tookMs = Math.round(performance.now() - startedAt);
  return [
    ok("modal account", `${apiBase} takes the credentials, and answered in ${tookMs} ms`),
    ...inspectClock(date, now()),
  ];
}

/** Codes of gRPC. */
const grpc = { notFound: 5, permissionDenied: 7, unimplemented: 12, unauthenticated: 16 };

function refusal(error: unknown, apiBase: string): Finding {
  const code = codeOf(error);
  if (code === grpc.unauthenticated || code === grpc.permissionDenied) {
    const detail = `${apiBase} refuses the credentials`;
    return fail("modal account", detail, "Set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET to a token that is valid there.");
  }
  const why = code === undefined ? "no answer" : `gRPC status ${code}`;
  const action = "Check the network and MODAL_API_BASE; Modal's own state is at https://status.modal.com.";
  return fail("modal account", `${apiBase} cannot be reached: ${why}`, action);
}

function codeOf(error: unknown): number | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "number" ? error.code : undefined;
}

const clockWarnMs = 60_000;
const clockFailMs = 600_000;

function inspectClock(date: string | undefined, nowMs: number): Finding[] {
  const there = Date.parse(date ?? "");
  if (Number.isNaN(there)) return [];
  const offMs = nowMs - there;
  const detail = `${Math.round(Math.abs(offMs) / 1000)} s ${offMs < 0 ? "behind" : "ahead of"} Modal's`;
  const action = "Set this machine's clock: tokens and certificates are checked against it.";
  if (Math.abs(offMs) > clockFailMs) return [fail("modal clock", detail, action)];
  return [Math.abs(offMs) > clockWarnMs ? warn("modal clock", detail, action) : ok("modal clock", detail)];
}

async function inspectWorkspace({ settings, client, call }: Inspection): Promise<Finding> {
  const name = "modal workspace";
  const { workspace: wanted, environment } = settings;
  const inside = environment === undefined ? "" : `, environment ${environment}`;
  let workspace: string;
  try {
    workspace = (await client.cpClient.tokenInfoGet({}, call)).workspaceName;
  } catch (error) {
    const code = codeOf(error);
    const detail = `${code === grpc.unimplemented ? "not told" : `not told: gRPC status ${code ?? "unknown"}`}${inside}`;
    return wanted === undefined
      ? ok(name, detail)
      : warn(name, detail, "Make sure that the token is of MODAL_WORKSPACE.");
  }
  if (wanted === undefined || wanted === workspace) return ok(name, `${workspace}${inside}`);
  const detail = `the token is of workspace ${workspace}, and MODAL_WORKSPACE is ${wanted}`;
  return fail(name, detail, "Use a token of that workspace, or set MODAL_WORKSPACE to default.");
}

async function inspectApp({ settings: { app, environment }, client, call }: Inspection): Promise<Finding> {
  const name = "modal app";
  try {
    await client.cpClient.appGetOrCreate({ appName: app, environmentName: environment ?? "" }, call);
    return ok(name, `${app} exists`);
  } catch (error) {
    if (codeOf(error) === grpc.notFound) return ok(name, `${app} is made with the first sandbox`);
    const detail = `${app}: gRPC status ${codeOf(error) ?? "unknown"}`;
    return warn(name, detail, "Check MODAL_SANDBOX_APP and MODAL_ENVIRONMENT.");
  }
}
