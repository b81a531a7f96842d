// Builds a whole app without a key: the models' answers are scripted, everything else is real. Drives Slipway by its own
// command line. `--exit` ends all that was started and exits with 0 when the app is what was asked for; `--agent` is that
// of `slipway build`.
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
/** The task whose sandbox is destroyed in the middle of its work. */
const unlucky = "look";

const { values: options } = parseArgs({ options: { exit: { type: "boolean" }, agent: { type: "string" } } });
const bin = fileURLToPath(new URL("../bin/slipway", import.meta.url));
const environment = demoEnvironment(process.env);
const isTerminal = process.stderr.isTTY === true;
// A terminal sends it to the command line as well, which asks what to do.
process.on("SIGINT", () => {});
const terminated = new Promise((resolve) => process.on("SIGTERM", resolve));

process.exitCode = await run();

async function run() {
  say(introduction());
  try {
    const isBuilt = await build();
    if (isBuilt && !options.exit && isTerminal) {
      say("\nThe preview stays up. Ctrl-C ends all of it.");
      // Waiting for a signal alone, Node would end.
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

/** The build, and all that happens in it; what this demo does to it happens here, too. */
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
  if (!isTerminal) say(`demo: the sandbox of ${unlucky} is destroyed now: slipway sandbox rm ${sandbox}`);
  await slipway("sandbox", "rm", sandbox).catch(() => {});
}

/** Once more, for whoever does not believe the gates: in main's own sandbox. A demo that was killed may have left another one. */
async function mainPassesItsTests(build) {
  const sandboxes = await slipwayJson("sandbox", "list");
  const main = sandboxes.find(({ labels }) => labels.purpose === "preview" && labels.build === build);
  if (main === undefined) return failed("main has no sandbox");
  try {
    const output = await slipway("sandbox", "exec", "--cwd", "/workspace/project", main.id, "--", "npm", "test");
    const count = /^(?:#|ℹ) pass (\d+)$/m.exec(output)?.[1];
    say(`Main passes its own tests: ${count}.`);
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

/** Ends the build, the server and every sandbox of the demo; what was installed stays for the next time. */
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
  storage and live-hub change the same lines: whoever is second puts both together;
  entries fails its own tests: it is tried again, one level higher, or by the fix that an earlier demo has taught;
  the sandbox of ${unlucky} is destroyed at work: another one goes on from its last checkpoint.
`;
}

/** What went wrong on the way, and how it was handled, from the build's own events. */
function whatHappened(events) {
  const of = (...types) => events.filter(({ type }) => types.includes(type));
  const lines = [
    ...of("merge.conflict").map(({ data }) => `${data.task} conflicted with main, and its agent put both together`),
    ...of("task.retried").map(
      ({ data }) => `${data.task} failed its tests, and was tried again ${howAgain(data.next)}`,
    ),
    ...of("attempt.respawned").map(({ data }) => `the sandbox of ${data.task} died, and another one went on`),
  ];
  return ["\nOn the way:", ...lines.map((line) => `  ${line}`)].join("\n");
}

function howAgain({ level }) {
  return level === 0 ? "with a fix that was known" : `at level ${level}`;
}

/** The demo is the same everywhere: settings of the user's own builds are left out. It uses the agents that are installed. */
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

/** What the command says. Its failure holds all of it. */
async function slipway(...argv) {
  // Ctrl-C is for what the user sees: these run to their end.
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
