import type { DebianSources } from "../../launch/debian-sources.ts";
import {
  copyTree,
  type SkeletonEntry,
  type SkeletonSources,
  sharedFiles,
  textFile,
  trustBundle,
} from "../../launch/skeleton-entries.ts";
import { need, type Recipe, shell, syncFiles } from "./recipes.ts";

/** Small; custom images add the rest. */
const packages = ["ca-certificates", "curl", "git", "procps", "python3"];
/** Hidden from `/*`. */
const root = "/.root";

/** Two sandboxes build Debian: one of the host image unpacks packages, one with these as its root configures them. */
export function debianRecipes({ suite, mirror }: DebianSources): { unpack: Recipe; configure: Recipe } {
  const check = mirror === null ? [] : ["--force-check-gpg"];
  const options = ["--foreign", "--variant=minbase", `--include=${packages.join(",")}`, ...check];
  return {
    unpack: {
      name: "debian",
      needs: [need("command -v debootstrap", "It needs the host's debootstrap. Install the package `debootstrap`.")],
      steps: [
        {
          title: `Fetching and unpacking Debian ${suite}`,
          argv: ["debootstrap", ...options, suite, root, ...(mirror === null ? [] : [mirror])],
          env: inContainer,
        },
      ],
      root,
    },
    configure: {
      name: "debian",
      steps: [
        {
          ...shell(
            "Configuring packages",
            "/debootstrap/debootstrap --second-stage || { tail -n 15 /debootstrap/debootstrap.log; exit 1; }",
          ),
          env: inContainer,
        },
        shell("Installing updates", "apt-get update; apt-get upgrade --yes"),
        shell("Adding the user agent", addAgent),
        shell("Making it one layer", copyToRoot),
      ],
      root,
    },
  };
}

/** Makes debootstrap skip device nodes and mounts, as in other containers. */
const inContainer = { container: "lxc" };

const addAgent = `echo agent:x:1000:1000:agent:/home/agent:/bin/bash >> /etc/passwd
echo agent:x:1000: >> /etc/group`;

/** The second sandbox's changes lie above what the first unpacked; the copy holds each file once. */
const copyToRoot = `apt-get clean
rm -f /var/log/bootstrap.log /var/cache/debconf/*-old
find /var/lib/apt/lists /usr/share/man /usr/share/locale -type f -delete
find /usr/share/doc -type f ! -name copyright -delete
mkdir -m 755 ${root}
for entry in /*; do
  case $entry in
    /dev | /proc | /run | /sys | /tmp) mkdir -m "$(stat -c %a "$entry")" "${root}$entry" ;;
    *) cp -a "$entry" ${root} ;;
  esac
done
${syncFiles}`;

/**
 * The layer above every image with its own root: settings that follow the host's, so that their change needs no new
 * image.
 */
export async function rootfsSettings(sources: SkeletonSources, debian: DebianSources): Promise<SkeletonEntry[]> {
  return [
    ...["etc", "etc/apt", "etc/apt/apt.conf.d", "etc/dpkg", "etc/dpkg/dpkg.cfg.d", "etc/ssl", "etc/ssl/certs"].map(
      openDirectory,
    ),
    ...["home", "home/agent", "usr", "usr/local", "usr/local/etc", "usr/local/share"].map(openDirectory),
    ...["usr/local/share/ca-certificates", "usr/sbin", "workspace"].map(openDirectory),
    ...sharedFiles(sources.settings),
    await trustBundle(sources),
    // update-ca-certificates adds these to Debian's own authorities.
    ...(await copyTree(sources.root ?? "/", "usr/local/share/ca-certificates")),
    textFile("usr/local/share/ca-certificates/slipway-egress.crt", sources.egressCa),
    textFile("etc/apt/sources.list", debian.lines.map((line) => `${line}\n`).join("")),
    // The uid of apt's own user is not mapped: apt cannot switch to it.
    textFile("etc/apt/apt.conf.d/90slipway", 'APT::Sandbox::User "root";\nAcquire::Languages "none";\n'),
    textFile("etc/dpkg/dpkg.cfg.d/slipway", dpkgSettings),
    // Keeps packages from starting services.
    textFile("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755),
  ];
}

/** Skips manuals, and fsync: a crash during an installation loses the sandbox anyway. */
const dpkgSettings = `force-unsafe-io
path-exclude=/usr/share/man/?*/?*
path-exclude=/usr/share/locale/?*/?*
path-exclude=/usr/share/doc/?*/?*
path-include=/usr/share/doc/?*/copyright
`;

function openDirectory(path: string): SkeletonEntry {
  return { type: "directory", path, mode: 0o755 };
}
