import { hasCode, type ModelHealth, SlipwayError } from "@slipway/contract";
import { providerNames } from "@slipway/sandbox/settings";
import type { Context, HostFinding } from "../../input/command.ts";
import type { Settings } from "../../input/config.ts";
import type { Colour } from "../../terminal/terminal.ts";
import { formatMoney } from "../build/view/money.ts";
import { counted } from "../build/view/words.ts";

const failedExit = 1;
const colours: Readonly<Record<HostFinding["status"], Colour>> = { ok: "green", warn: "yellow", fail: "red" };

export async function run(context: Context): Promise<number> {
  const findings = await inspect(context);
  const healthy = findings.every((finding) => finding.status !== "fail");
  await context.result({ healthy, findings }, () => findings.map((finding) => lines(finding, context)).join(""));
  if (!healthy) await context.note("Sandboxes cannot run here until the failed checks are fixed.");
  return healthy ? 0 : failedExit;
}

/** Reports wrong settings as a finding: people run this command when something is wrong. */
async function inspect(context: Context): Promise<readonly HostFinding[]> {
  try {
    const settings = await context.settings();
    return [
      { name: "settings", status: "ok", detail: `state directory ${settings.stateDir}` },
      ...(await inspectProviders(context, settings)),
      ...(await inspectAgents(settings.agentsDir)),
      ...(await inspectServer(context)),
    ];
  } catch (error) {
    if (!hasCode(error, "invalid_settings")) throw error;
    return [{ name: "settings", status: "fail", detail: error.message, action: error.toJSON().action }];
  }
}

/** What a host needs whatever runs the sandboxes. */
const alwaysNeeded = ["state directory", "git"];

/** Those not in use have a line each, which is never a failure. */
async function inspectProviders(context: Context, settings: Settings): Promise<readonly HostFinding[]> {
  const { provider: used, because } = settings;
  const named: HostFinding = { name: "provider", status: "ok", detail: `${used}: ${because}` };
  const found = await Promise.all(
    providerNames.map(async (name) => {
      const findings = await context.inspectProvider(name, settings);
      if (name === used) return findings;
      return [...findings.filter((finding) => alwaysNeeded.includes(finding.name)), notInUse(name, findings)];
    }),
  );
  return [named, ...found.flat()];
}

function notInUse(name: string, findings: readonly HostFinding[]): HostFinding {
  const missing = findings
    .filter(({ status }) => status === "fail")
    .map((finding) => `${finding.name}: ${finding.detail}`);
  const told =
    missing.length === 0 ? `nothing is missing for it: SANDBOX_PROVIDER=${name}` : `missing: ${missing.join("; ")}`;
  return { name: `provider ${name}`, status: "ok", detail: `not in use; ${told}` };
}

/** A missing agent is fine. */
async function inspectAgents(agentsDir: string): Promise<readonly HostFinding[]> {
  const { agentPrograms } = await import("@slipway/agent-host");
  return (await agentPrograms(agentsDir)).map(({ name, installed, install }) => ({
    name: `agent ${name}`,
    status: "ok",
    detail: installed ? "installed" : `not installed; to install it: ${install}`,
  }));
}

/** A missing server is fine: the next build starts one. */
async function inspectServer(context: Context): Promise<readonly HostFinding[]> {
  try {
    const health = await context.serverHealth();
    if (health === undefined) return [];
    const { pid, version, models } = health;
    const used = models.filter(({ requests }) => requests > 0);
    return [{ name: "server", status: "ok", detail: `process ${pid}, version ${version}` }, ...used.map(modelFinding)];
  } catch (error) {
    if (!(error instanceof SlipwayError) || error.code === "aborted") throw error;
    return [{ name: "server", status: "warn", detail: error.message, action: error.toJSON().action }];
  }
}

/** Counts since the server started. */
function modelFinding({
  provider,
  requests,
  inFlight,
  ends,
  retries,
  microUsd,
  lastErrorCode,
}: ModelHealth): HostFinding {
  const counts = { open: inFlight, failed: ends.failed, truncated: ends.truncated, cut: ends.cut, retried: retries };
  const told = Object.entries(counts).filter(([, count]) => count > 0);
  const words = [
    counted(requests, "request"),
    ...told.map(([word, count]) => `${count} ${word}`),
    formatMoney(microUsd),
  ];
  const last = lastErrorCode === undefined ? "" : `; last failure: ${lastErrorCode}`;
  const works = ends.complete > 0 || ends.failed === 0;
  return { name: `models of ${provider}`, status: works ? "ok" : "warn", detail: `${words.join(", ")}${last}` };
}

function lines({ name, status, detail, action }: HostFinding, context: Context): string {
  const mark = context.paint(colours[status], status.padEnd(4));
  const indented = context.clean(detail.replaceAll("\n", " "));
  const todo = action && status !== "ok" ? `      what to do: ${context.clean(action)}\n` : "";
  return `${mark}  ${name}: ${indented}\n${todo}`;
}
