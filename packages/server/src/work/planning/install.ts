import { installDependencies, type OwnedSandbox, type ProjectStep, projectPath, readText } from "@slipway/sandbox";
import { listFiles } from "./list-files.ts";

const lockFiles = ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "requirements.txt"];

export interface Installed {
  readonly steps: readonly ProjectStep[];
  /** Its dependencies are not installed, because no lock file pins them. */
  readonly lacksLock: boolean;
}

/** Installs from a lock file, and nothing without one. Only that reaches the host's registries. */
export async function installLocked(
  sandbox: OwnedSandbox,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Installed> {
  const files = await listFiles(sandbox, signal);
  if (!files.some((path) => lockFiles.includes(path)))
    return { steps: [], lacksLock: await hasDependencies(sandbox, files, signal) };
  await sandbox.setNetwork({ registries: true }, { signal });
  const steps = await installDependencies(sandbox, { timeoutMs, signal });
  await sandbox.setNetwork({}, { signal });
  return { steps, lacksLock: false };
}

async function hasDependencies(sandbox: OwnedSandbox, files: readonly string[], signal: AbortSignal): Promise<boolean> {
  if (!files.includes("package.json")) return false;
  const text = await readText(sandbox.files, `${projectPath}/package.json`, { signal });
  return /"(dev)?dependencies"\s*:\s*\{\s*"/i.test(text);
}
