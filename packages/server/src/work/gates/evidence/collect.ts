import { type ErrorCode, type FileInfo, hasCode, SlipwayError } from "@slipway/contract";
import {
  type CallOptions,
  type ProjectStep,
  projectPath,
  type RestrictedSandbox,
  readText,
  testProject,
} from "@slipway/sandbox";
import { type Evidence, noEvidence, type TestRun } from "./evidence.ts";
import { parseReport } from "./reports.ts";

/** The tool directory that the sandbox must have. */
export const evidenceTool = "evidence";

const directory = "/tmp/slipway-evidence";
const limits = { reports: 200, reportBytes: 16 * 1024 ** 2, totalBytes: 32 * 1024 ** 2, tests: 20_000 };

/** Runs a project's tests and reads the reports of its test runners. Null: the project has no tests. */
export async function testWithEvidence(
  sandbox: RestrictedSandbox,
  call: CallOptions,
): Promise<{ readonly step: ProjectStep; readonly evidence: Evidence } | null> {
  await sandbox.files.mkdir(directory, call);
  const manifest = await readText(sandbox.files, `${projectPath}/package.json`, call).catch(() => "");
  const inside = `${sandbox.toolsDirectory}/${evidenceTool}`;
  const step = await testProject(sandbox, { env: evidenceEnvironment({ inside, directory, manifest }), ...call });
  if (step === null) return null;
  const hasEnded = step.exit.reason === "exited";
  return { step, evidence: hasEnded ? await collectEvidence(sandbox, call) : noEvidence };
}

/**
 * Variables that make runners also write their reports into `directory`, even behind other commands and scripts. `inside` is
 * where the files of `inside/` are; `manifest` is the text of the project's package.json.
 */
export function evidenceEnvironment(options: {
  readonly inside: string;
  readonly directory: string;
  readonly manifest: string;
}): Record<string, string> {
  const { inside, directory, manifest } = options;
  // node:test wants one destination per reporter, except for a single reporter, which the project itself may name.
  const isNamed = /--test-reporter[= ]/.test(manifest) && !manifest.includes("--test-reporter-destination");
  const nodeOptions = [
    `--require=${inside}/preload.cjs`,
    `--test-reporter=${inside}/node-test.cjs`,
    "--test-reporter-destination=stderr",
    ...(isNamed ? [] : ["--test-reporter=spec"]),
    "--test-reporter-destination=stdout",
  ];
  return {
    SLIPWAY_EVIDENCE: directory,
    NODE_OPTIONS: nodeOptions.join(" "),
    PYTHONPATH: inside,
    PYTEST_ADDOPTS: "-p slipway_evidence",
  };
}

/** Trusts nothing: unreadable reports are no evidence, and too many void all of it. */
async function collectEvidence(sandbox: RestrictedSandbox, call: CallOptions): Promise<Evidence> {
  const tests: TestRun[] = [];
  const unread: string[] = [];
  let [reports, bytes] = [0, 0];
  for await (const { path, size } of listed(sandbox, call)) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    reports++;
    bytes += size;
    try {
      const text = await readText(sandbox.files, path, { maxBytes: limits.reportBytes, ...call });
      for (const test of parseReport(name.split(".", 1)[0] ?? "", text)) tests.push(test);
    } catch (error) {
      if (error instanceof SlipwayError && !isOwnFault(error)) throw error;
      unread.push(name);
    }
    if (reports > limits.reports || bytes > limits.totalBytes || tests.length > limits.tests) {
      return { tests: [], unread: ["more than can be read"] };
    }
  }
  return { tests, unread };
}

async function* listed(sandbox: RestrictedSandbox, call: CallOptions): AsyncGenerator<FileInfo> {
  try {
    yield* sandbox.files.list(directory, call);
  } catch (error) {
    if (!isOwnFault(error)) throw error;
  }
}

/** Errors that code inside the sandbox can cause. */
function isOwnFault(error: unknown): boolean {
  return ownFaults.some((code) => hasCode(error, code));
}

const ownFaults: readonly ErrorCode[] = [
  ...(["too_large", "file_not_found", "not_a_file", "not_a_directory", "file_forbidden", "path_outside"] as const),
];
