import { type CustomImage, customImageSchema, type Image, SlipwayError } from "@slipway/contract";

/** An image as Modal builds it: where it starts, and the steps of a Dockerfile. */
export interface Recipe {
  readonly from: string;
  readonly steps: readonly string[];
}

/** All are Debian, with what commands expect: a shell, certificates, git and Python. */
const references = {
  default: "node:24-bookworm",
  debian: "debian:bookworm",
  node20: "node:20-bookworm",
  node22: "node:22-bookworm",
  node24: "node:24-bookworm",
} as const;

/** Fails with `unknown_image` for `host`, which is the root of a machine that Modal does not have. */
export function recipeOf(image: Image): Recipe {
  const custom = typeof image === "string" ? customImageSchema.parse({ base: image }) : image;
  const { base, apt, npm, pip, commands } = custom;
  if (base === "host") {
    throw new SlipwayError(
      "unknown_image",
      `The image host is this machine's own root, which is not at Modal. There are ${Object.keys(references).join(", ")}.`,
    );
  }
  // Debian's own Node is old.
  const from = base === "debian" && npm.length > 0 ? references.node24 : references[base];
  return { from, steps: [...installs({ apt, npm, pip }), ...commands.map(asStep)] };
}

function installs({ apt, npm, pip }: Pick<CustomImage, "apt" | "npm" | "pip">): string[] {
  const steps: string[] = [];
  if (apt.length > 0) steps.push(aptInstall(apt));
  if (pip.length > 0) {
    steps.push(asStep(`command -v pip3 > /dev/null || { ${aptCommand(["python3-pip"])}; }`));
    steps.push(asStep(`PIP_BREAK_SYSTEM_PACKAGES=1 pip3 install --no-cache-dir ${pip.map(quote).join(" ")}`));
  }
  if (npm.length > 0) steps.push(asStep(`npm install --global --no-fund --no-audit ${npm.map(quote).join(" ")}`));
  return steps;
}

function aptInstall(packages: readonly string[]): string {
  return asStep(aptCommand(packages));
}

function aptCommand(packages: readonly string[]): string {
  const names = packages.map(quote).join(" ");
  return `apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${names} && rm -rf /var/lib/apt/lists/*`;
}

/** As JSON, so that line breaks and quotes mean nothing to the Dockerfile. */
function asStep(command: string): string {
  return `RUN ${JSON.stringify(["/bin/sh", "-c", command])}`;
}

/** Names of packages hold no quotes. */
function quote(name: string): string {
  return `'${name}'`;
}
