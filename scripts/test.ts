// `npm test`: every test but the long ones, in lanes side by side. As root, what depends on the user runs a second time as an
// ordinary one. Arguments narrow the run: they go to Vitest, and only the current user's tests run.
// A test that failed runs again alone once all others have ended. If it passes then, it is named as flaky.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { judge, type Lane, type LaneResult, runVitest, runVitestAgain } from "./lanes/lanes.ts";
import { tellVerdict } from "./lanes/tell.ts";

type TestLane = Lane & { readonly args: readonly string[] };

const reports = fileURLToPath(new URL("../.reports", import.meta.url));
/** Who starts it matters for how a sandbox is launched and kept, not for what happens inside or on a wire. */
const dependsOnUser = ["launch", "limits", "doctor", "local.", "keeper/keeper", "keeper/recovery"];
const local = "packages/sandbox/src/providers/local/";
const user: TestLane = {
  name: "user",
  asUser: true,
  args: ["--project=unit", "--project=integration", "--maxWorkers=1", ...dependsOnUser.map((name) => local + name)],
};
const integration: TestLane = { name: "integration", args: ["--project=integration", "--maxWorkers=4"] };
const unit: TestLane = { name: "unit", args: ["--project=unit", "--maxWorkers=1"] };
const narrowed: TestLane = { name: "narrowed", args: ["--project=unit", "--project=integration"] };
const lanes = [user, integration, unit, narrowed];

rmSync(reports, { recursive: true, force: true });
mkdirSync(reports);
const filters = process.argv.slice(2);
const busyBefore = busySeconds();
const startedAtMs = Date.now();
const results = filters.length > 0 ? [await run(narrowed, filters)] : await runAll();
const verdict = await judge(results, (test, number) => {
  console.log(`\nRunning again, alone: ${test.file} > ${test.name}`);
  const lane = lanes.find(({ name }) => name === test.lane) ?? narrowed;
  const projects = lane.args.filter((arg) => arg.startsWith("--project="));
  return runVitestAgain({ ...lane, name: `again-${number}` }, projects, test);
});
writeFileSync(`${reports}/result.json`, JSON.stringify(verdict, null, 1));
writeFileSync(`${reports}/durations.json`, `${JSON.stringify(durations(), null, 2)}\n`);
tellLanes();
tellVerdict(verdict);
process.exitCode = verdict.failed === 0 ? 0 : 1;

async function runAll(): Promise<LaneResult[]> {
  const beside = async () => [...(process.getuid?.() === 0 ? [await run(user)] : []), await run(unit)];
  return (await Promise.all([beside(), run(integration)])).flat();
}

function run(lane: TestLane, more: readonly string[] = []): Promise<LaneResult> {
  return runVitest(lane, [...lane.args, ...more]);
}

/** Seconds by file, of those that take any. The current user's count where two lanes have a file. */
function durations(): Record<string, number> {
  const files = results.flatMap(({ files }) => files).toSorted((one, other) => (one.file < other.file ? -1 : 1));
  const seconds = files.map(({ file, ms }) => [file, Math.round(ms / 1000)] as const);
  return Object.fromEntries(seconds.filter(([, value]) => value > 0));
}

function tellLanes(): void {
  const minutes = (ms: number) => `${(ms / 60_000).toFixed(1)} min`;
  const elapsedMs = Date.now() - startedAtMs;
  const cores = (busySeconds() - busyBefore) / (elapsedMs / 1000);
  console.log();
  for (const { name, tests, ms } of results) console.log(`${name}: ${tests.length} tests in ${minutes(ms)}`);
  console.log(`all: ${minutes(elapsedMs)}, ${cores.toFixed(2)} cores busy on average`);
}

/** Of all cores of the machine together, since it started. */
function busySeconds(): number {
  const line = readFileSync("/proc/stat", "utf8").split("\n", 1)[0] ?? "";
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) / 100;
}
