import { appendFileSync, existsSync, readFileSync, renameSync, statSync } from "node:fs";
import type { SandboxEvent } from "@slipway/contract";

type Unnumbered<E> = E extends SandboxEvent ? Omit<E, "sequence" | "at"> : never;
export type NewSandboxEvent = Unnumbered<SandboxEvent>;

export interface EventLog {
  append(event: NewSandboxEvent): void;
  /** Calls back for kept events after the given sequence number, then for each new one, without a gap. */
  subscribe(after: number, listener: (event: SandboxEvent) => void): () => void;
  readonly last: number;
}

const rotateBytes = 8 * 1024 * 1024;

/** The keeper is its only writer: sequence numbers have no gaps. The newest 8 to 16 MiB are kept. */
export function openEventLog(path: string, now: () => number): EventLog {
  const previous = `${path}.1`;
  const listeners = new Set<(event: SandboxEvent) => void>();
  let last = (readEvents(path).at(-1) ?? readEvents(previous).at(-1))?.sequence ?? 0;
  endCutLine(path);
  let bytes = existsSync(path) ? statSync(path).size : 0;
  return {
    get last() {
      return last;
    },
    append(event) {
      const numbered = { sequence: last + 1, at: now(), ...event } as SandboxEvent;
      const line = `${JSON.stringify(numbered)}\n`;
      if (bytes + line.length > rotateBytes) {
        renameSync(path, previous);
        bytes = 0;
      }
      appendFileSync(path, line, { mode: 0o600 });
      bytes += line.length;
      last = numbered.sequence;
      for (const listener of listeners) listener(numbered);
    },
    subscribe(after, listener) {
      if (after < last) {
        for (const event of [...readEvents(previous), ...readEvents(path)]) if (event.sequence > after) listener(event);
      }
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function endCutLine(path: string): void {
  if (existsSync(path) && !readFileSync(path, "utf8").endsWith("\n")) appendFileSync(path, "\n");
}

/** A line cut by a crash is left out: its event was never told to anyone. */
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
