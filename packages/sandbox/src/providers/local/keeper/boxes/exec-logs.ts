import { closeSync, constants, fstatSync, ftruncateSync, openSync, readdirSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

const headerBytes = 5;
const exitBytes = 33;
const lostReason = 4;

/**
 * Ends every log that has no exit yet as lost. Called when a sandbox has ended: nothing writes to its logs any more,
 * and nobody observed how those commands ended.
 */
export function closeExecLogs(directory: string): void {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  for (const name of names) closeLog(join(directory, name));
}

function closeLog(path: string): void {
  const fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { end, ended, stdout, stderr } = scan(fd);
    if (ended) return;
    // A frame that the kill cut in the middle goes.
    ftruncateSync(fd, end);
    writeSync(fd, lostExit(stdout, stderr), 0, headerBytes + exitBytes, end);
  } finally {
    closeSync(fd);
  }
}

function scan(fd: number): { end: number; ended: boolean; stdout: number; stderr: number } {
  const { size } = fstatSync(fd);
  const header = Buffer.alloc(headerBytes);
  const bytes = { o: 0, e: 0 };
  let at = 0;
  while (at + headerBytes <= size) {
    readSync(fd, header, 0, headerBytes, at);
    const type = String.fromCharCode(header[0] ?? 0);
    const length = header.readUInt32LE(1);
    if (at + headerBytes + length > size) break;
    if (type === "x") return { end: at, ended: true, stdout: bytes.o, stderr: bytes.e };
    if (type === "o" || type === "e") bytes[type] += length;
    at += headerBytes + length;
  }
  return { end: at, ended: false, stdout: bytes.o, stderr: bytes.e };
}

function lostExit(stdoutBytes: number, stderrBytes: number): Buffer {
  const frame = Buffer.alloc(headerBytes + exitBytes);
  frame.write("x", 0);
  frame.writeUInt32LE(exitBytes, 1);
  frame.writeInt32LE(-1, 5);
  frame.writeInt32LE(0, 9);
  frame.writeUInt8(lostReason, 13);
  frame.writeBigUInt64LE(0n, 14);
  frame.writeBigUInt64LE(BigInt(stdoutBytes), 22);
  frame.writeBigUInt64LE(BigInt(stderrBytes), 30);
  return frame;
}
