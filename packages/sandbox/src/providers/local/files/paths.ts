import { posix } from "node:path";
import { SlipwayError } from "@slipway/contract";

const maxPathBytes = 4095;

/** An absolute path by its words alone; what links make of it is settled inside the sandbox. */
export function resolvePath(workdir: string, path: string): string {
  if (path === "" || path.includes("\0")) throw new SlipwayError("invalid_request", "expected a path without NUL");
  const absolute = path.startsWith("/") ? path : `${workdir}/${path}`;
  const names: string[] = [];
  for (const name of absolute.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) throw new SlipwayError("path_outside", `${path} climbs above the root`);
  }
  const resolved = `/${names.join("/")}`;
  if (Buffer.byteLength(resolved) > maxPathBytes)
    throw new SlipwayError("invalid_request", `a path is longer than ${maxPathBytes} bytes`);
  return resolved;
}

/** How a path below a directory is called from there. */
export function relativeTo(directory: string, path: string): string {
  return posix.relative(directory, path);
}
