import type { Client } from "@slipway/client";
import type { BuildView, ProviderHealth } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { buildOf } from "../../input/resolve.ts";
import { formatFields, formatTable } from "../../terminal/terminal.ts";
import { eventText } from "./view/events.ts";
import { formatMoney } from "./view/money.ts";
import { adviceOn } from "./view/result.ts";
import { gatesAndReason } from "./view/task-row.ts";
import { mergeText, oneLine, previewText, stageText, statusText, tasksText } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const { client, id, signal } = await buildOf(context);
  const view = await client.builds.get(id, { signal });
  const failure = await findFailure(client, view, signal);
  const { provider } = await client.server.health({ signal });
  await context.result({ ...view, provider }, () =>
    [
      formatFields([...fields(view, failure), ...providerFields(provider)], context.paint),
      tasks(view, context),
      refused(view, context),
      attempts(view, context),
      candidates(view, context),
      sandboxes(view, context),
    ]
      .filter((part) => part !== "")
      .join("\n"),
  );
  const advice = adviceOn(view);
  if (advice !== undefined) await context.note(advice);
}

const lastEvents = 20;

/** Why planning failed. */
async function findFailure(client: Client, view: BuildView, signal: AbortSignal): Promise<string | undefined> {
  if (view.status !== "failed" || view.planning === null) return undefined;
  const range = { after: Math.max(0, view.lastEvent - lastEvents), limit: lastEvents };
  const { events } = await client.builds.events(view.id, range, { signal });
  const failed = events.findLast(({ type }) => type === "stage.failed");
  return failed && eventText(failed);
}

function fields(view: BuildView, failure: string | undefined): [string, string][] {
  const now = Date.now();
  const time = (at: number) => `${new Date(at).toISOString()} (${formatDuration(now - at)} ago)`;
  const { money, settings, source, planning } = view;
  const field = (name: string, value: string | undefined): [string, string][] => (value ? [[name, value]] : []);
  const reserved = money.reservedMicroUsd > 0 ? `, ${formatMoney(money.reservedMicroUsd)} reserved` : "";
  return [
    ["id", view.id],
    ["request", oneLine(view.request, 400)],
    ["status", statusText(view)],
    ...field("why", failure),
    ...field("stage", planning === null || view.endedAt !== null ? undefined : stageText(planning)),
    ["mode", view.mode],
    ...field(
      "source",
      source === null ? undefined : oneLine("directory" in source ? source.directory : source.repository),
    ),
    ["project", oneLine(view.project)],
    ["tasks", tasksText(view.tasks)],
    ["money", `${formatMoney(money.spentMicroUsd)} spent of ${formatMoney(money.budgetMicroUsd)}${reserved}`],
    ["limits", `${settings.slots} sandboxes at once, ${formatDuration(settings.timeoutMs)} of work`],
    ["started", time(view.createdAt)],
    ...field("ended", view.endedAt === null ? undefined : time(view.endedAt)),
    ...field("criteria", view.criteria.length === 0 ? undefined : criteriaText(view.criteria)),
    ...field("main", view.main === null ? undefined : oneLine(view.main)),
    ...field("git", view.repository === null ? undefined : oneLine(view.repository)),
    ...field("merge", view.result === null ? undefined : mergeText(view.result)),
    ...field("preview", previewText(view) ?? undefined),
    ...field("pull", view.pullRequest === null ? undefined : oneLine(view.pullRequest, 200)),
    ...field("remote", view.remoteFailure === null ? undefined : oneLine(view.remoteFailure, 200)),
  ];
}

/** Of the server, whichever build is shown. */
function providerFields(provider: ProviderHealth | undefined): [string, string][] {
  if (provider === undefined) return [];
  const others = provider.others.map(({ name, missing }) => `${name}: ${missing ?? "not in use"}`);
  return [
    ["provider", [`${provider.name} (${provider.because})`, ...others].map((text) => oneLine(text, 200)).join("; ")],
  ];
}

function criteriaText(criteria: BuildView["criteria"]): string {
  const open = criteria.filter(({ satisfied }) => !satisfied).map(({ id }) => oneLine(id));
  return `${criteria.length - open.length} of ${criteria.length} satisfied${open.length === 0 ? "" : `; not ${open.join(", ")}`}`;
}

function tasks({ taskList }: BuildView, { paint }: Context): string {
  const rows = taskList.map(({ id, status, component, attempts, level, reason }) => [
    oneLine(id),
    status,
    oneLine(component),
    String(attempts),
    level === null ? "-" : String(level),
    reason === null ? "" : oneLine(reason, 80),
  ]);
  return formatTable(["TASK", "STATUS", "COMPONENT", "ATTEMPTS", "LEVEL", "REASON"], rows, paint);
}

/** Tasks whose candidates gates have refused. */
function refused({ taskList }: BuildView, { paint }: Context): string {
  const rows = taskList.flatMap(({ id, refused: back }) =>
    back === undefined
      ? []
      : [[oneLine(id), oneLine(back.gate), String(back.times), oneLine(back.next, 80), oneLine(back.finding, 120)]],
  );
  return formatTable(["REFUSED", "BY", "TIMES", "NEXT", "WHY"], rows, paint);
}

function attempts(view: BuildView, { paint }: Context): string {
  const now = Date.now();
  const rows = view.attempts.map(({ task, status, phase, doing, level, sandbox, startedAt, heartbeatAt }) => [
    oneLine(task),
    oneLine(phase === null || phase === status ? status : `${status} (${phase})`),
    level === null ? "-" : String(level),
    sandbox ?? "-",
    formatDuration(now - startedAt),
    heartbeatAt === null ? "-" : `${formatDuration(now - heartbeatAt)} ago`,
    oneLine(doing ?? "", 60),
  ]);
  return formatTable(["RUNNING", "PHASE", "LEVEL", "SANDBOX", "FOR", "HEARD", "DOING"], rows, paint);
}

function candidates(view: BuildView, { paint }: Context): string {
  const rows = view.candidates.map(({ task, place, ...candidate }) => [
    oneLine(task),
    place === null ? "-" : String(place),
    gatesAndReason(candidate),
  ]);
  return formatTable(["CANDIDATE", "PLACE", "GATES"], rows, paint);
}

function sandboxes(view: BuildView, { paint }: Context): string {
  const now = Date.now();
  const rows = view.sandboxes.map(({ id, provider, status, purpose, tasks, costMicroUsd, activeAt }) => [
    id,
    oneLine(status),
    oneLine(provider),
    formatMoney(costMicroUsd),
    `${formatDuration(now - activeAt)} ago`,
    oneLine(purpose),
    oneLine(tasks.join(", "), 60),
  ]);
  return formatTable(["SANDBOX", "STATUS", "PROVIDER", "COST", "ACTIVE", "PURPOSE", "TASKS"], rows, paint);
}
