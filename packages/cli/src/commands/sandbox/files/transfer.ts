import type { Context } from "../../../input/command.ts";
import { formatBytes } from "../../../terminal/terminal.ts";
import type { LeftOut } from "./hold.ts";

export type Endpoint =
  | { readonly kind: "here"; readonly path: string }
  | { readonly kind: "sandbox"; readonly id: string; readonly path: string }
  | { readonly kind: "standard" };

/** `-`, `<id>:<path>` or a local path such as `./a:b`. An empty path in a sandbox means its workdir. */
export function parseEndpoint(text: string): Endpoint {
  if (text === "-") return { kind: "standard" };
  const colon = text.indexOf(":");
  const id = text.slice(0, Math.max(colon, 0));
  if (id === "" || id.includes("/") || id === "." || id === "..") return { kind: "here", path: text };
  return { kind: "sandbox", id, path: text.slice(colon + 1) || "." };
}

/** `dir/.`: the contents of a directory, without the directory itself. */
export function isContentOnly(path: string): boolean {
  return path === "." || path === "/" || path.endsWith("/.") || path === ".." || path.endsWith("/..");
}

export interface Copied {
  readonly entries: number;
  readonly bytes: number;
  readonly leftOut: readonly LeftOut[];
}

const redrawMs = 80;

/** Options for a copy that shows its progress. */
export function counted(context: Context): { signal: AbortSignal; onBytes(bytes: number): void } {
  let total = 0;
  let shownAt = 0;
  return {
    signal: context.interrupts.signal,
    onBytes(bytes) {
      total += bytes;
      if (Date.now() - shownAt < redrawMs) return;
      shownAt = Date.now();
      context.progress.status(`copied ${formatBytes(total)}`);
    },
  };
}
