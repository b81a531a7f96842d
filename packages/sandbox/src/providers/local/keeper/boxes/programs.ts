import { accessSync, chmodSync, constants, existsSync, readFileSync } from "node:fs";
import { arch } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SlipwayError } from "@slipway/contract";
import { replaceFile } from "../../../../state-files.ts";
import { type Arch, type SeccompProfile, seccompFilter } from "../../launch/seccomp.ts";
import type { Layout } from "../../layout.ts";

export interface Programs {
  readonly launch: string;
  readonly bwrap: string;
  readonly agent: string;
  readonly seccomp: Readonly<Record<SeccompProfile, string>>;
}

const built = fileURLToPath(new URL("../../../../../native/build/", import.meta.url));

/** Installs the programs into the state directory, where the sandboxes' uid reaches them. Running ones keep theirs. */
export function installPrograms(layout: Layout): Programs {
  const architecture = arch();
  if (architecture !== "x64" && architecture !== "arm64") {
    throw new SlipwayError("component_missing", `Local sandboxes need an x64 or arm64 machine, not ${architecture}.`);
  }
  return {
    launch: install(layout, "slipway-launch"),
    agent: install(layout, "slipway-agent"),
    bwrap: findBubblewrap(),
    seccomp: {
      user: installFilter(layout, "user", architecture),
      root: installFilter(layout, "root", architecture),
      "two-users": installFilter(layout, "two-users", architecture),
    },
  };
}

function install(layout: Layout, name: string): string {
  const source = join(built, name);
  if (!existsSync(source)) {
    throw new SlipwayError(
      "component_missing",
      `${name} is not compiled. Run \`npm run setup\` in the repository (it needs a C compiler).`,
    );
  }
  const target = join(layout.bin, name);
  if (existsSync(target) && readFileSync(source).equals(readFileSync(target))) return target;
  replaceFile(target, readFileSync(source), 0o755);
  // Whatever the umask is.
  chmodSync(target, 0o755);
  return target;
}

function installFilter(layout: Layout, profile: SeccompProfile, architecture: Arch): string {
  const target = join(layout.bin, `seccomp-${profile}.bpf`);
  replaceFile(target, seccompFilter(profile, architecture), 0o644);
  return target;
}

function findBubblewrap(): string {
  for (const path of ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"]) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  throw new SlipwayError(
    "component_missing",
    "bubblewrap is not installed. Install the package `bubblewrap`, which provides bwrap.",
  );
}
