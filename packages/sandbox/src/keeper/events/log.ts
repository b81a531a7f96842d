import { appendFileSync, existsSync, readFileSync, renameSync, statSync, truncateSync } from "node:fs";
import type { SandboxEvent } from "@slipway/contract";

/** It is of now, unless it says when it happened. */
type Unnumbered<E> = E extends SandboxEvent ? Omit<E, "sequence" | "at"> & Partial<Pick<E, "at">> : never;
export type NewSandboxEvent = Unnumbered<SandboxEvent>;

export interface EventLog {
  append(event: NewSandboxEvent): void;
  /** The kept events after a sequence number, oldest first. */
  after(sequence: number): SandboxEvent[];
  /** Calls back for each new event. */
  listen(listener: (event: SandboxEvent) => void): () => void;
  readonly last: number;
}

const rotateBytes = 8 * 1024 * 1024;

/**
 * Only the keeper writes it, so sequence numbers have no gaps. Keeps the newest 8 to 16 MiB. Reports only events that
 * it could write completely.
 */
export function openEventLog(
  path: string,
  now: () => number,
  write: (path: string, line: string) => void = (path, line) => appendFileSync(path, line, { mode: 0o600 }),
): EventLog {
  const previous = `${path}.1`;
  const listeners = new Set<(event: SandboxEvent) => void>();
  let last = (readEvents(path).at(-1) ?? readEvents(previous).at(-1))?.sequence ?? 0;
  endCutLine(path);
  let bytes = existsSync(path) ? statSync(path).size : 0;
  let isCut = false;
  return {
    get last() {
      return last;
    },
    append(event) {
      const numbered = { sequence: last + 1, at: now(), ...event } as SandboxEvent;
      const line = `${JSON.stringify(numbered)}\n`;
      const size = Buffer.byteLength(line);
      if (isCut && existsSync(path)) truncateSync(path, bytes);
      if (bytes + size > rotateBytes) {
        renameSync(path, previous);
        bytes = 0;
      }
      isCut = true;
      write(path, line);
      isCut = false;
      bytes += size;
      last = numbered.sequence;
      for (const listener of listeners) listener(numbered);
    },
    after: (sequence) => [...readEvents(previous), ...readEvents(path)].filter((event) => event.sequence > sequence),
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function endCutLine(path: string): void {
  if (existsSync(path) && !readFileSync(path, "utf8").endsWith("\n")) appendFileSync(path, "\n");
}

/** Leaves out a line that a crash cut: nobody got its event. */
function readEvents(path: string): SandboxEvent[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n");
  const events: SandboxEvent[] = [];
  for (const line of lines) {
    try {
      if (line !== "") events.push(JSON.parse(line) as SandboxEvent);
    } catch {}
  }
  return events;
}
