import { type CallOptions, installDependencies, projectPath, type RestrictedSandbox, run } from "@slipway/sandbox";
import type { Dependencies, NamedDependencies } from "./dependencies.ts";
import { expectSuccess } from "./expect-success.ts";

/** For all sandboxes that install packages: npm prefers packages that are already downloaded. */
export const packageEnvironment: Readonly<Record<string, string>> = {
  npm_config_prefer_offline: "true",
  npm_config_audit: "false",
  npm_config_fund: "false",
  npm_config_update_notifier: "false",
};

const timeoutMs = 600_000;

/** Installs what the manifests name, in a sandbox with nothing else of the project. Runs no scripts. */
export async function installNamed(
  sandbox: RestrictedSandbox,
  { files, install }: NamedDependencies,
  call: CallOptions,
): Promise<void> {
  await putManifests(sandbox, projectPath, files, call);
  await command(sandbox, [...install, "--ignore-scripts"], call);
}

/** Runs the install scripts of the installed packages. */
export async function runScripts(sandbox: RestrictedSandbox, call: CallOptions): Promise<void> {
  await command(sandbox, ["npm", "rebuild"], call);
}

/** In the whole project: installs what is missing, and runs the project's own install scripts. */
export async function installInPlace(
  sandbox: RestrictedSandbox,
  dependencies: Dependencies,
  call: CallOptions,
): Promise<void> {
  if (dependencies.kind === "named") {
    await runScripts(sandbox, call);
    await command(sandbox, ["npm", "install"], call);
    return;
  }
  for (const step of await installDependencies(sandbox, { timeoutMs, ...call })) expectSuccess(step);
}

/**
 * Downloads the registry's metadata, which an agent's `npm install` needs and an install by a lock file does not fetch. It
 * only saves requests, so a failure is ignored.
 */
export async function fetchMetadata(
  sandbox: RestrictedSandbox,
  { files }: NamedDependencies,
  call: CallOptions,
): Promise<void> {
  const scratch = "/tmp/slipway-metadata";
  const manifests = new Map([...files].filter(([path]) => !/(^|\/)(package-lock|npm-shrinkwrap)\.json$/.test(path)));
  if (manifests.size === files.size) return;
  await putManifests(sandbox, scratch, manifests, call);
  const argv = ["npm", "install", "--package-lock-only", "--ignore-scripts"];
  await run(sandbox, argv, { cwd: scratch, timeoutMs, ...call });
  await sandbox.files.remove(scratch, { recursive: true, ...call });
}

/** The number of files in npm's cache. */
export async function countCached(sandbox: RestrictedSandbox, call: CallOptions): Promise<number> {
  const { stdout } = await run(sandbox, "find ~/.npm/_cacache -type f 2>/dev/null | wc -l", call);
  return Number(stdout);
}

async function putManifests(
  sandbox: RestrictedSandbox,
  directory: string,
  files: ReadonlyMap<string, Buffer>,
  call: CallOptions,
): Promise<void> {
  const placed = [...files].map(([path, content]) => [`${directory}/${path}`, content] as const);
  await sandbox.files.hydrate(Object.fromEntries(placed), call);
}

async function command(sandbox: RestrictedSandbox, argv: readonly string[], call: CallOptions): Promise<void> {
  const options = { cwd: projectPath, env: { CI: "1" }, keep: "end", timeoutMs, ...call } as const;
  expectSuccess({ argv, ...(await run(sandbox, argv, options)) });
}
