import { settingsError } from "@slipway/contract";
import { type Deployment, deploy, keepDeployment, sandboxCost, trialLimits } from "@slipway/sandbox/deploy";
import { deployTarget, type ModalSettings, withoutCredentials } from "@slipway/sandbox/settings";
import type { Context, HostFinding } from "../../input/command.ts";
import type { Settings } from "../../input/config.ts";
import { formatDuration } from "../../input/duration.ts";
import { formatFields } from "../../terminal/terminal.ts";
import { formatMoney } from "../build/view/money.ts";
import { dryRun } from "./dry-run.ts";
import { modalPrice } from "./modal-price.ts";

/** As the table's notes tell. */
const exits = { deployed: 0, notDeployed: 1, somethingLeft: 2 };

/** Builds the image on Modal and proves the account with a test sandbox. */
export async function run(context: Context): Promise<number> {
  const settings = await context.settings();
  const { modal } = settings;
  if (modal === undefined) throw settingsError([`${withoutCredentials}; \`slipway deploy modal\` needs them.`]);
  const price = modalPrice(context.io.env);
  if (!(await check(context, settings))) return exits.notDeployed;
  if (context.args.flag("dry-run")) return await dryRun(context, modal, price);
  context.progress.status("opening the provider");
  const provider = await context.provider({}, { ...settings, provider: "modal" });
  const deployment = await deploy(provider, {
    signal: context.interrupts.signal,
    tunnelCa: modal.tunnelCa,
    onStep: (step) => context.progress.status(`${step} ...`),
    onMeasured: ({ step, durationMs, detail }) =>
      context.progress.line(`${step}: ${detail} (${formatDuration(durationMs)})`),
    onProgress: (line) => context.progress.line(line),
  });
  context.progress.clear();
  if (deployment.failure === undefined) {
    await keepDeployment(settings.stateDir, "modal", { at: Date.now(), target: deployTarget(modal) });
  }
  return await tell(context, modal, {
    ...deployment,
    costMicroUsd: sandboxCost(price, trialLimits, deployment.sandboxMs),
  });
}

/** Before anything is made. What fails is told, and ends the command. */
async function check(context: Context, settings: Settings): Promise<boolean> {
  context.progress.status("checking the account");
  const findings = await context.inspectProvider("modal", settings);
  context.progress.clear();
  const failed = findings.filter(({ status }) => status === "fail");
  for (const { name, status, detail } of failed.length === 0 ? findings : []) {
    // That there is no image yet is what the command is for.
    if (name !== "modal image") context.progress.line(`${name}: ${detail}${status === "warn" ? " (a warning)" : ""}`);
  }
  if (failed.length === 0) return true;
  await context.result({ deployed: false, failed: "check", findings: failed }, () => failed.map(problem).join(""));
  await context.note("Nothing was made.");
  return false;
}

function problem({ name, detail, action }: HostFinding): string {
  return `${name}: ${detail}\n${action ? `  what to do: ${action}\n` : ""}`;
}

async function tell(
  context: Context,
  { app, apiBase }: ModalSettings,
  { measured, previewOrigin, failure, left, costMicroUsd }: Deployment & { readonly costMicroUsd: number },
): Promise<number> {
  const deployed = failure === undefined;
  const error = failure === undefined ? {} : { failed: failure.step, error: failure.error.toJSON() };
  const result = { deployed, app, apiBase, ...error, measured, previewOrigin, costMicroUsd, left };
  await context.result(result, () =>
    formatFields(
      [
        ...(failure === undefined
          ? []
          : [["failed", `${failure.step}: ${context.clean(failure.error.message)}`] as const]),
        ...measured.map(({ step, durationMs, detail }) => [step, `${detail} (${formatDuration(durationMs)})`] as const),
        ...(previewOrigin === null ? [] : [["tunnel", previewOrigin] as const]),
        ["cost", `${formatMoney(costMicroUsd)} for the test sandboxes`],
      ].map(([name, text]) => [name ?? "", context.clean(text ?? "")]),
      context.paint,
    ),
  );
  if (left.length > 0) {
    await context.note(`Not removed: ${left.join(", ")}. Sandboxes end by themselves within 15 minutes.`);
    return exits.somethingLeft;
  }
  if (deployed) await context.note("Modal is ready. Sandboxes run there with SANDBOX_PROVIDER=modal.");
  else await context.note(`Not deployed, and nothing is left of it. ${failure.error.toJSON().action}`);
  return deployed ? exits.deployed : exits.notDeployed;
}
