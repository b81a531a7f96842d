import { posix } from "node:path";
import { PassThrough } from "node:stream";
import { hasCode, SlipwayError } from "@slipway/contract";
import { run } from "@slipway/sandbox";
import type { Box } from "../boxes/boxes.ts";
import { type Command, type CommandEnd, createCommand, killed, type Outputs, openOutputs } from "./command.ts";
import { describe, FileToolError, listDirectory, toFailure } from "./file-entries.ts";
import { type WatchOrder, watchFiles } from "./file-watch.ts";
import { Input } from "./input.ts";

/** The client's file API is a run of this program with one JSON order; here it never starts. */
export const fileToolsPath = "/__modal/.bin/modal-sandbox-fs-tools";
const longestRead = 5 * 1024 ** 3;

interface Order {
  readonly ReadFile?: { path: string };
  readonly WriteFile?: { path: string };
  readonly ListFiles?: { path: string };
  readonly Stat?: { path: string };
  readonly MakeDirectory?: { path: string; parents?: boolean };
  readonly Remove?: { path: string; recursive?: boolean };
  readonly Watch?: WatchOrder;
}

/** Carries an order out by the sandbox's own file operations. Errors are JSON on standard error. */
export function startFileTools(box: Box, order: string, outputDirectory: string): Command {
  const outputs = openOutputs(outputDirectory);
  const stream = new PassThrough();
  const stop = new AbortController();
  const input = new Input({
    write: (data) => writeTo(stream, data, stop.signal),
    end: async () => void stream.end(),
  });
  const stopped = new Promise<CommandEnd>((resolve) => stop.signal.addEventListener("abort", () => resolve(killed)));
  const work = async (): Promise<CommandEnd> => {
    try {
      await carryOut(box, JSON.parse(order), outputs, stream, stop.signal);
      return { code: 0 };
    } catch (error) {
      outputs.stderr.push(Buffer.from(JSON.stringify(toFailure(error))));
      return { code: 1 };
    }
  };
  return createCommand(outputs, input, Promise.race([work(), stopped]), async () => stop.abort());
}

async function carryOut(
  box: Box,
  order: Order,
  { stdout }: Outputs,
  input: PassThrough,
  signal: AbortSignal,
): Promise<void> {
  const { files } = box;
  const answer = (value: unknown) => stdout.push(Buffer.from(JSON.stringify(value)));
  if (order.ReadFile !== undefined) {
    const { path } = order.ReadFile;
    const { size, type } = await files.stat(path, { followSymlink: true });
    if (type === "file" && size > longestRead)
      throw new FileToolError("FileTooLarge", `file is ${size} bytes, which exceeds the ${longestRead} byte limit`);
    for await (const piece of files.read(path, { signal })) stdout.push(piece);
  } else if (order.WriteFile !== undefined) await writeFile(box, order.WriteFile.path, input, signal);
  else if (order.ListFiles !== undefined) answer(await listDirectory(box, order.ListFiles.path));
  else if (order.Stat !== undefined) answer(await describe(box, order.Stat.path));
  else if (order.MakeDirectory !== undefined) await makeDirectory(box, order.MakeDirectory);
  else if (order.Remove !== undefined)
    await files.remove(order.Remove.path, { recursive: order.Remove.recursive === true });
  else if (order.Watch !== undefined) await watchFiles(box, order.Watch, stdout, input, signal);
  else throw new FileToolError("Io", "unknown command");
}

async function writeFile({ files }: Box, path: string, content: PassThrough, signal: AbortSignal): Promise<void> {
  // Before anything is read: the client sends the content all the same.
  const info = await files.stat(path, { followSymlink: true }).catch(ifMissing);
  if (info?.type === "directory") throw new FileToolError("IsDirectory", "expected a file path");
  try {
    await files.write(path, content, { signal });
  } catch (error) {
    if (hasCode(error, "file_exists"))
      throw new FileToolError("AlreadyExists", "a component of the path is no directory");
    throw error;
  }
}

async function makeDirectory(box: Box, { path, parents = false }: { path: string; parents?: boolean }): Promise<void> {
  const { exitCode, stderr } = await run(box, ["mkdir", ...(parents ? ["-p"] : []), "--", path]);
  if (exitCode === 0) return;
  if (stderr.includes("File exists")) throw new FileToolError("PathAlreadyExists", "path already exists");
  if (stderr.includes("No such file")) throw new FileToolError("NotFound", `${posix.dirname(path)} does not exist`);
  if (stderr.includes("Not a directory"))
    throw new FileToolError("NotDirectory", "a component of the path is not a directory");
  throw new FileToolError(stderr.includes("ermission") ? "PermissionDenied" : "Io", stderr.trim());
}

function ifMissing(error: unknown): undefined {
  if (!(error instanceof SlipwayError) || error.code !== "file_not_found") throw error;
  return undefined;
}

async function writeTo(stream: PassThrough, data: Uint8Array, signal: AbortSignal): Promise<void> {
  if (stream.write(data)) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const event of ["drain", "close", "end"]) stream.off(event, done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    for (const event of ["drain", "close", "end"]) stream.on(event, done);
    signal.addEventListener("abort", done);
  });
}
