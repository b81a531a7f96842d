import type { CustomImage } from "@slipway/contract";
import type { RootImage } from "../../record.ts";

/** How to make an image's own layer: commands that run as root in a sandbox of its base. */
export interface Recipe {
  /** For errors. */
  readonly name: string;
  readonly needs?: readonly Need[];
  readonly steps: readonly Step[];
  /** A directory that becomes the root of the layer, instead of all that the steps changed. */
  readonly root?: string;
}

export interface Step {
  /** For progress and errors. */
  readonly title: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A program of the host that the steps need: a test for it, and advice when it is missing. */
export interface Need {
  readonly test: Step;
  readonly install: string;
}

/** The parts of a recipe that determine its result. */
export function contentOf({ steps, root }: Recipe): unknown {
  return [steps.map(({ argv, env = {} }) => [argv, env]), root ?? null];
}

export function shell(title: string, script: string): Step {
  return { title, argv: ["sh", "-ec", script] };
}

export function need(test: string, install: string): Need {
  return { test: shell(test, test), install };
}

const nodeVersions = { node20: "20.20.2", node22: "22.23.3", node24: "24.21.0" } as const;
/** These run on every Node above. */
const npmVersion = "11.21.1";
const pnpmVersion = "10.34.8";

export type NodeImage = keyof typeof nodeVersions;

export function isNodeImage(image: string): image is NodeImage {
  return image in nodeVersions;
}

const npmInstall = ["npm", "install", "--global", "--prefix", "/usr/local", "--no-audit", "--no-fund"];
const hostNpm = need("command -v npm", "It needs the host's npm, and /usr/bin has none. Install the package `npm`.");

/** Node with npm and pnpm in /usr/local. Needs only a C library, so it fits the `host` image and others. */
export function nodeRecipe(image: NodeImage): Recipe {
  const packageName = `node-linux-${process.arch}`;
  const packages = [`${packageName}@${nodeVersions[image]}`, `npm@${npmVersion}`, `pnpm@${pnpmVersion}`];
  return {
    name: image,
    needs: [hostNpm],
    steps: [
      { title: `Installing ${packages.join(", ")}`, argv: [...npmInstall, "--ignore-scripts", ...packages] },
      // npm installs global packages relative to Node's real path.
      shell(
        "Moving Node to /usr/local",
        `cd /usr/local/lib/node_modules/${packageName}
         rm /usr/local/bin/node
         mv bin/node /usr/local/bin/node
         mv include/node /usr/local/include/node
         rm -r /usr/local/lib/node_modules/${packageName}`,
      ),
      shell("Trying node, npm and pnpm", "node --version; npm --version; pnpm --version"),
      tidy,
    ],
  };
}

/** So that a power loss cannot leave a record of an empty layer. */
export const syncFiles = "sync --file-system /";
const tidy = shell(
  "Tidying up",
  `rm -rf /root/.npm /root/.cache; find /tmp /var/tmp -mindepth 1 -delete; ${syncFiles}`,
);

/** Null when the image adds nothing to its base. */
export function customRecipe({ apt, npm, pip, commands }: CustomImage, kind: RootImage["kind"]): Recipe | null {
  const debs = kind === "rootfs" && pip.length > 0 ? [...apt, "python3-pip"] : apt;
  const steps = [
    ...(debs.length > 0 ? aptSteps(debs) : []),
    ...(npm.length > 0 ? [{ title: "Installing npm packages", argv: [...npmInstall, "--", ...npm] }] : []),
    ...(pip.length > 0 ? [{ title: "Installing pip packages", argv: [...pipInstall, "--", ...pip] }] : []),
    ...commands.map((command) => ({ title: `Command \`${firstLine(command)}\``, argv: ["sh", "-c", command] })),
  ];
  if (steps.length === 0) return null;
  const needs = [...(npm.length > 0 ? [hostNpm] : []), ...(pip.length > 0 && kind === "host" ? [hostPip] : [])];
  return { name: "given", needs, steps: [...steps, tidy] };
}

const pipInstall = ["python3", "-m", "pip", "install", "--no-cache-dir", "--root-user-action=ignore"];
const hostPip = need(
  "python3 -m pip --version",
  "It needs the host's pip, and its Python has none. Install the package `python3-pip`, or use the base `debian`.",
);

function aptSteps(packages: readonly string[]): Step[] {
  return [
    { title: "Reading package lists", argv: ["apt-get", "update"] },
    {
      title: "Installing apt packages",
      argv: ["apt-get", "install", "--yes", "--no-install-recommends", "--", ...packages],
    },
    shell("Removing package lists", "apt-get clean; find /var/lib/apt/lists -type f -delete"),
  ];
}

const longestTitle = 80;

function firstLine(command: string): string {
  const line = command.split("\n", 1)[0] ?? "";
  return line.length > longestTitle ? `${line.slice(0, longestTitle)}…` : line;
}
