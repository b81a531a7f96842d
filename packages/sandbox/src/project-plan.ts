/** What is known of a project before any of its code runs. The manifest is untrusted. */
export interface ProjectFacts {
  /** Names in the project's top directory. */
  readonly names: ReadonlySet<string>;
  readonly manifest: Manifest | null;
}

export interface Manifest {
  readonly scripts: ReadonlyMap<string, string>;
  readonly dependencies: ReadonlySet<string>;
  /** For instance `pnpm@10.1.0`. */
  readonly packageManager: string | null;
}

export type PackageManager = "npm" | "pnpm" | "yarn";

export interface DevCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The sandbox's ports lead to its loopback. */
const host = "127.0.0.1";

/** Reads a package.json. Leaves out what has an unexpected shape. */
export function parseManifest(text: string): Manifest | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  const fields = asRecord(json);
  const texts = Object.entries(asRecord(fields.scripts)).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const names = ["dependencies", "devDependencies"].flatMap((field) => Object.keys(asRecord(fields[field])));
  const manager = fields.packageManager;
  return {
    scripts: new Map(texts),
    dependencies: new Set(names),
    packageManager: typeof manager === "string" ? manager : null,
  };
}

/** By the lock file, else by the manifest, else npm. */
export function packageManagerOf({ names, manifest }: ProjectFacts): PackageManager {
  if (names.has("pnpm-lock.yaml")) return "pnpm";
  if (names.has("yarn.lock")) return "yarn";
  if (names.has("package-lock.json") || names.has("npm-shrinkwrap.json")) return "npm";
  const named = manifest?.packageManager?.split("@")[0];
  return named === "pnpm" || named === "yarn" ? named : "npm";
}

/** The commands that install the project's dependencies, by its lock file where there is one. */
export function planInstall(facts: ProjectFacts): (readonly string[])[] {
  const commands: (readonly string[])[] = [];
  if (facts.manifest !== null) commands.push(nodeInstall(facts));
  const python = pythonInstall(facts.names);
  if (python !== null) commands.push(["python3", "-m", "venv", ".venv"], [".venv/bin/pip", "install", ...python]);
  return commands;
}

function nodeInstall(facts: ProjectFacts): readonly string[] {
  const { names } = facts;
  switch (packageManagerOf(facts)) {
    case "npm":
      return names.has("package-lock.json") || names.has("npm-shrinkwrap.json") ? ["npm", "ci"] : ["npm", "install"];
    case "pnpm":
      return ["pnpm", "install", ...(names.has("pnpm-lock.yaml") ? ["--frozen-lockfile"] : [])];
    case "yarn":
      if (!names.has("yarn.lock")) return ["yarn", "install"];
      return ["yarn", "install", names.has(".yarnrc.yml") ? "--immutable" : "--frozen-lockfile"];
  }
}

function pythonInstall(names: ReadonlySet<string>): readonly string[] | null {
  if (names.has("requirements.txt")) return ["-r", "requirements.txt"];
  return names.has("pyproject.toml") || names.has("setup.py") ? ["-e", "."] : null;
}

/** Runs a script of the manifest with arguments; null when there is no such script. */
export function planScript(
  facts: ProjectFacts,
  script: string,
  args: readonly string[] = [],
): readonly string[] | null {
  if (!facts.manifest?.scripts.has(script)) return null;
  const manager = packageManagerOf(facts);
  const separator = manager === "npm" && args.length > 0 ? ["--"] : [];
  return [manager, "run", script, ...separator, ...args];
}

/** By the manifest's script, else by pytest for a Python project. */
export function planTest(facts: ProjectFacts): readonly string[] | null {
  const script = planScript(facts, "test");
  if (script !== null || pythonInstall(facts.names) === null) return script;
  return [".venv/bin/python", "-m", "pytest"];
}

/** Starts a dev server on the port: by the project's own script where it has one, else a server of its files. */
export function planDevServer(facts: ProjectFacts, port: number): DevCommand | null {
  const env = { PORT: String(port), HOST: host, HOSTNAME: host, BROWSER: "none" };
  const args = portArguments(facts.manifest, port);
  for (const script of ["dev", "start", "serve"]) {
    const argv = planScript(facts, script, args);
    if (argv !== null) return { argv, env };
  }
  if (facts.manifest?.dependencies.has("vite")) return { argv: ["npx", "vite", ...args], env };
  if (facts.names.has("manage.py")) return { argv: [python(facts), "manage.py", "runserver", `${host}:${port}`], env };
  if (facts.names.has("index.html"))
    return { argv: ["python3", "-m", "http.server", String(port), "--bind", host], env };
  return null;
}

/** Arguments that set a framework's port. Others read the variable PORT. */
function portArguments(manifest: Manifest | null, port: number): readonly string[] {
  const has = (name: string) => manifest?.dependencies.has(name) ?? false;
  if (has("next")) return ["--port", String(port), "--hostname", host];
  if (has("astro") || has("nuxt") || has("@angular/cli")) return ["--port", String(port), "--host", host];
  if (has("vite")) return ["--port", String(port), "--strictPort", "--host", host];
  return [];
}

function python({ names }: ProjectFacts): string {
  return pythonInstall(names) === null ? "python3" : ".venv/bin/python";
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
