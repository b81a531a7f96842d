import type { CreateSandbox } from "@slipway/contract";

/** Places in every sandbox. All are root's, and no command inside can change them. */
const root = "/opt/slipway";
export const inside = {
  root,
  /** Programs and tools by digest. */
  store: `${root}/store`,
  /** A link for each of the sandbox's tools, made at its start. */
  tools: `${root}/tools`,
  /** Exec logs: `state/<sandbox>`, readable by root alone. */
  state: "/var/lib/slipway",
  channel: "/run/slipway-link/run.sock",
  workdir: "/workspace",
  /** The variables that the image has for its programs, as `env -0` tells them. Written at each start. */
  environment: `${root}/environment`,
} as const;

/** Runs every command. */
export const commandUid = 1000;

/** The tag with the name of a sandbox's start. */
export const runTag = "slipway-run";

export const linkPort = 61_000;
/** The tunnel of the n-th open port leads to this port and the n-th after it. */
const firstPreviewPort = 61_001;

/** The environment of every command, with what its image says; requests add to it. */
export function baseEnvironment(ofImage: Readonly<Record<string, string>>): Record<string, string> {
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/home/agent",
    USER: "agent",
    LOGNAME: "agent",
    SHELL: "/bin/bash",
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    ...ofImage,
  };
}

/** The public port of an open one. */
export function previewPorts({ ports }: Pick<CreateSandbox, "ports">): { port: number; publicPort: number }[] {
  return ports.map((port, index) => ({ port, publicPort: firstPreviewPort + index }));
}
