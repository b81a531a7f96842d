// Builds a whole app without a key: the models' answers are scripted, everything else is real. Uses Slipway's own
// command line.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { defaultStateDirectory } from "@slipway/contract";

const request =
  "A shopping list that a household shares: rooms, changes that everyone sees at once, and nothing is lost.";
/** The task whose sandbox the demo destroys while it works. */
const unlucky = "look";

const usage = `Usage: npm run demo [-- <options>]

Builds a whole app from one request, without a key.

Options
  --exit          Stop everything at the end; exit with 0 if the app passes its tests and every check
  --agent <name>  Agent, as in slipway build --agent (default: builtin)
  --help          Print this help`;

const { values: options } = parseArgs({
  options: { exit: { type: "boolean" }, agent: { type: "string" }, help: { type: "boolean" } },
});
const bin = fileURLToPath(new URL("../bin/slipway", import.meta.url));
const environment = demoEnvironment(process.env);
const isTerminal = process.stderr.isTTY === true;
// A terminal also sends it to the command line, which asks what to do.
process.on("SIGINT", () => {});
const terminated = new Promise((resolve) => process.on("SIGTERM", resolve));

if (options.help) console.log(usage);
else process.exitCode = await run();

async function run() {
  say(introduction());
  try {
    const isBuilt = await build();
    if (isBuilt && !options.exit && isTerminal) {
      say("\nThe preview stays up. Press Ctrl-C to stop everything.");
      // Node would exit while it waits for signals only.
      const staying = setInterval(() => {}, 3_600_000);
      await Promise.race([once(process, "SIGINT"), terminated]);
      clearInterval(staying);
    }
    return isBuilt ? 0 : 1;
  } finally {
    await cleanUp();
  }
}

async function build() {
  const before = new Set((await slipwayJson("builds")).map(({ id }) => id));
  const watching = new AbortController();
  const agent = options.agent === undefined ? [] : ["--agent", options.agent];
  const argv = ["build", "--yes", "--parallel", "4", "--budget", "10", ...agent, request];
  const building = start(argv, { stdio: "inherit" });
  const following = follow(before, watching.signal);
  terminated.then(() => building.kill("SIGTERM"));
  const [code] = await once(building, "exit");
  watching.abort();
  if (code !== 0) return false;
  const { id, events } = await following;
  say(whatHappened(events));
  return (await mainPassesItsTests(id)) && (await allIsSatisfied(id));
}

/** Follows the build's events, and destroys the sandbox of the unlucky task. */
async function follow(before, signal) {
  const events = [];
  const id = await newBuild(before, signal);
  if (id === undefined) return { id, events };
  const logs = start(["logs", "-f", "--json", id], { stdio: ["ignore", "pipe", "ignore"] });
  signal.addEventListener("abort", () => logs.kill("SIGTERM"));
  const sandboxes = new Map();
  for await (const line of createInterface({ input: logs.stdout })) {
    const event = JSON.parse(line);
    events.push(event);
    const { task, sandbox, phase, status, respawn } = event.data;
    if (event.type === "attempt.heard") sandboxes.set(task, sandbox);
    const isAtWork = event.type === "attempt.progress" && phase === "test" && status === "begun" && respawn === 0;
    if (isAtWork && task === unlucky) await destroy(sandboxes.get(task));
  }
  return { id, events };
}

async function newBuild(before, signal) {
  while (!signal.aborted) {
    const builds = await slipwayJson("builds").catch(() => []);
    const made = builds.find(({ id }) => !before.has(id));
    if (made !== undefined) return made.id;
  }
  return undefined;
}

async function destroy(sandbox) {
  if (!isTerminal) say(`demo: destroying the sandbox of ${unlucky}: slipway sandbox rm ${sandbox}`);
  await slipway("sandbox", "rm", sandbox).catch(() => {});
}

/** Runs main's tests once more, in the preview's sandbox. A killed demo may have left another build's preview. */
async function mainPassesItsTests(build) {
  const sandboxes = await slipwayJson("sandbox", "list");
  const main = sandboxes.find(({ labels }) => labels.purpose === "preview" && labels.build === build);
  if (main === undefined) return failed("main has no sandbox");
  try {
    const output = await slipway("sandbox", "exec", "--cwd", "/workspace/project", main.id, "--", "npm", "test");
    const count = /^(?:#|ℹ) pass (\d+)$/m.exec(output)?.[1];
    say(`Main passes its ${count} tests.`);
    return true;
  } catch (error) {
    return failed(`main fails its own tests:\n${error.message}`);
  }
}

async function allIsSatisfied(build) {
  const { status, criteria } = await slipwayJson("status", build);
  const missing = criteria.filter(({ satisfied }) => !satisfied).map(({ id }) => id);
  if (status === "succeeded" && criteria.length > 0 && missing.length === 0) return true;
  return failed(`the build is ${status}; not satisfied: ${missing.join(", ") || "nothing was checked"}`);
}

/** Stops the build, the server and every sandbox of the demo; keeps what it installed for the next time. */
async function cleanUp() {
  const builds = await slipwayJson("builds").catch(() => []);
  for (const { id } of builds.filter(({ endedAt }) => endedAt === null)) await slipway("cancel", id).catch(warn);
  await slipway("down").catch(warn);
  for (const { id } of await slipwayJson("sandbox", "list")) await slipway("sandbox", "rm", id).catch(warn);
}

function introduction() {
  return `One request becomes an app. The models' answers are scripted; sandboxes, npm, git, tests and gates are real.

  ${request}

Three things go wrong on purpose:
  storage and live-hub change the same lines; the agent of the second one merges them
  entries fails its own tests; it is retried one level higher, or with the fix from an earlier demo
  the sandbox of ${unlucky} is destroyed; another one continues from its last checkpoint
`;
}

/** What went wrong and how it was handled, from the build's events. */
function whatHappened(events) {
  const of = (...types) => events.filter(({ type }) => types.includes(type));
  const lines = [
    ...of("merge.conflict").map(({ data }) => `${data.task} conflicted with main; its agent merged both`),
    ...of("task.retried").map(({ data }) => `${data.task} failed its tests and was retried ${howAgain(data.next)}`),
    ...of("attempt.respawned").map(({ data }) => `the sandbox of ${data.task} died; another one continued`),
  ];
  return ["\nWhat went wrong, and was repaired:", ...lines.map((line) => `  ${line}`)].join("\n");
}

function howAgain({ level }) {
  return level === 0 ? "with a known fix" : `at level ${level}`;
}

/** Omits the settings of the user's own builds, so that the demo is the same everywhere. Uses the installed agents. */
function demoEnvironment({ SLIPWAY_STATE_DIR, SLIPWAY_AGENTS, ...given }) {
  const own = /^(SLIPWAY_(?!SANDBOX_UID)|DATABASE_URL|REDIS_|RESTATE_|SANDBOX_|MODAL_|MAX_PARALLEL_SANDBOXES|BUILD_)/;
  const host = { isRoot: process.getuid?.() === 0, home: homedir(), dataHome: given.XDG_DATA_HOME };
  const usual = SLIPWAY_STATE_DIR || defaultStateDirectory(host);
  return {
    ...Object.fromEntries(Object.entries(given).filter(([name]) => !own.test(name))),
    SLIPWAY_STATE_DIR: join(usual, "demo"),
    SLIPWAY_AGENTS: SLIPWAY_AGENTS || join(usual, "agents"),
    SLIPWAY_MODEL: "scripted/demo-build",
  };
}

function start(argv, { stdio }) {
  return spawn(process.execPath, [bin, ...argv], { stdio, env: environment });
}

async function slipwayJson(...argv) {
  return JSON.parse(await slipway(...argv, "--json"));
}

/** Returns the command's output; a failure contains all of it. */
async function slipway(...argv) {
  // Detached from the terminal: Ctrl-C must not interrupt them.
  const child = spawn(process.execPath, [bin, ...argv], { env: environment, detached: true });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`slipway ${argv.join(" ")} ended with ${code}\n${output}${errors}`);
  return output;
}

function failed(reason) {
  say(`The demo failed: ${reason}`);
  return false;
}

function warn(error) {
  say(error.message);
}

function say(text) {
  process.stderr.write(`${text}\n`);
}
