import { join } from "node:path";
import { agentTool, type Run, runnerTools, startRun, toolDirectories } from "@slipway/agent-host";
import { type End, type NumberedEvent, newId, type RunId, SlipwayError } from "@slipway/contract";
import { cloneRepo, type OwnedSandbox, projectPath, putDirectory } from "@slipway/sandbox";
import type { Context } from "../../input/command.ts";
import { given, networkPolicy } from "../../input/request.ts";
import { toJson } from "../../terminal/terminal.ts";
import { formatMoney } from "../build/view/money.ts";
import { counted } from "../sandbox/files/transfer.ts";
import { takeBaseline } from "./changes.ts";
import { createDisplay } from "./display.ts";
import { chooseModels, openModels } from "./models.ts";
import { type Order, readOrder } from "./order.ts";
import { finish, finishUncollected } from "./outcome.ts";
import { createRenderer } from "./render.ts";
import { steer, tooLate } from "./steer.ts";

/** Runs an agent in a new sandbox on a copy of a directory or repository, and offers its changes. */
export async function run(context: Context): Promise<number> {
  const { signal } = context.interrupts;
  const order = readOrder(context.args);
  const { stateDir, agentsDir } = await context.settings();
  const id = newId("run");
  const directory = join(stateDir, "runs", id);
  const chosen = chooseModels({ environment: context.io.env, directory, model: order.model });
  await using parts = new AsyncDisposableStack();
  const provider = await context.provider(await toolDirectories(order.agent, agentsDir));
  context.progress.status("creating the sandbox");
  const sandbox = await provider.create(sandboxRequest(context, order, id), { signal });
  let isKept = order.keep;
  parts.defer(async () => {
    if (!isKept) await sandbox[Symbol.asyncDispose]();
  });
  // After the provider has created the state directory with its mode.
  const models = parts.use(await openModels(chosen));
  if (models.promptsPath !== undefined) await context.note(`logging prompts to ${models.promptsPath}`);
  const workdir = await fill(context, sandbox, order);
  context.progress.status("recording the original files");
  const baseline = await takeBaseline(sandbox, workdir, { signal });
  context.progress.clear();
  await context.note(`run ${id} in sandbox ${sandbox.id}; to look inside: slipway sandbox shell ${sandbox.id}`);
  if (order.workers > 0 && chosen.settings.models.build.startsWith("scripted/")) {
    await context.note("scripted models assign no tasks, so the workers stay idle");
  }
  context.progress.status(`starting ${order.agent}`);
  const { agent, prompt, workers, permissions, totalMs, budgetMicroUsd } = order;
  const task = { agent, prompt, workdir, workers, permissions, model: models.model, limits: { totalMs } };
  const started = parts.use(
    await startRun({ sandbox, gateway: models.gateway, grant: { id, roles: ["build"], budgetMicroUsd, task } }),
  );
  const end = await follow(context, started);
  context.progress.status("collecting the changes");
  const patch = await baseline.diff({ signal }).catch(async (error: unknown) => {
    isKept = true;
    context.progress.clear();
    await finishUncollected(context, { order, run: started, end, sandbox, workdir });
    throw error;
  });
  context.progress.clear();
  return await finish(context, {
    order,
    run: started,
    end,
    patch,
    directory,
    sandbox: isKept ? sandbox.id : undefined,
  });
}

/** The runner must outlive its own limit to report how it ended. */
const reserveMs = 10 * 60_000;

function sandboxRequest(context: Context, order: Order, id: RunId) {
  const tool = agentTool(order.agent);
  return {
    tools: [...runnerTools, ...(tool === undefined ? [] : [tool])],
    lifetimeMs: order.totalMs + reserveMs,
    idleMs: null,
    // A sandbox that dies keeps its files, which cost money. This command destroys it.
    onEnd: "stop" as const,
    labels: { run: id },
    ...given({ network: networkPolicy(context.args, context.io.env) }),
  };
}

async function fill(context: Context, sandbox: OwnedSandbox, { source }: Order): Promise<string> {
  const { signal } = context.interrupts;
  if ("repository" in source) {
    context.progress.status(`cloning ${source.repository}`);
    const { exitCode, stderr } = await cloneRepo(sandbox, source.repository, { signal });
    if (exitCode === 0) return projectPath;
    throw new SlipwayError("exec_failed", `git cannot clone ${source.repository}: ${stderr.trim().slice(-1000)}`);
  }
  const leftOut: string[] = [];
  const onLeftOut = (path: string, reason: string) => void leftOut.push(`skipped ${path}: ${reason}`);
  const { workdir } = await sandbox.info({ signal });
  await putDirectory(
    sandbox,
    { directory: source.directory, workdir, environment: context.io.env },
    { ...counted(context), onLeftOut },
  );
  for (const line of leftOut) await context.note(line);
  return workdir;
}

async function follow(context: Context, run: Run): Promise<End> {
  using steering = steer(context, (control) => {
    run.send(control).catch(tooLate);
  });
  const render = createRenderer(context.paint);
  const display = createDisplay(context.out, context.progress);
  for await (const event of run.events()) {
    await display.write(context.json ? `${toJson(event)}\n` : render(event));
    // Show a permission request before its question.
    steering.see(event);
    if (endsStep(event)) display.status(`${formatMoney((await run.balance()).spentMicroUsd)} so far`);
  }
  await display.endLine();
  return run.ended;
}

function endsStep({ event }: NumberedEvent): boolean {
  return event.type === "agent" && (event.event.type === "usage" || event.event.type === "tool");
}
