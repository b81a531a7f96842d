import { type ExecExit, newId, SlipwayError } from "@slipway/contract";
import type { Exec, SandboxFiles } from "@slipway/sandbox";
import type { Box, Boxes } from "./boxes.ts";

/** Sandboxes that exist only as records: each command ends at once, with 0 and without output. */
export function openWithoutProcesses(): Boxes {
  const box: Box = {
    exec: async () => endedExec(),
    files: new Proxy({} as SandboxFiles, { get: () => refuseFiles }),
    connect: async () => {
      throw new SlipwayError("connection_refused", "Nothing listens in a sandbox without processes.");
    },
    snapshot: async () => ({
      id: newId("snp"),
      name: null,
      sandbox: newId("sbx"),
      image: "host",
      createdAt: 0,
      expiresAt: null,
      bytes: 0,
    }),
    setNetwork: async () => {},
    destroy: async () => ({
      sandbox: newId("sbx"),
      processesEnded: 0,
      processesGone: true,
      filesGone: true,
      destroyedAt: 0,
    }),
  };
  return {
    hasProcesses: false,
    create: async () => box,
    deleteSnapshot: async () => {},
    async [Symbol.asyncDispose]() {},
  };
}

function refuseFiles(): never {
  throw new SlipwayError("capability_missing", "This stand-in runs without processes: its sandboxes have no files.");
}

function endedExec(): Exec {
  const exit: ExecExit = {
    reason: "exited",
    exitCode: 0,
    signal: null,
    durationMs: 0,
    stdoutBytes: 0,
    stderrBytes: 0,
  };
  return {
    id: newId("exc"),
    async *output() {},
    write: async () => {},
    end: async () => {},
    signal: async () => {},
    kill: async () => {},
    resize: async () => {},
    wait: async () => exit,
    async [Symbol.asyncDispose]() {},
  };
}
