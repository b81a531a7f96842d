import type { Socket } from "node:net";
import type { CreateSandbox, SandboxId, SandboxState, StateReason } from "@slipway/contract";
import type { Layout } from "../../layout.ts";
import { readRecords, removeRecord, type SandboxRecord, sandboxNotFound, upToDate, writeRecord } from "../../record.ts";
import type { Clock } from "../clock.ts";
import type { TimingMemory } from "../decide.ts";
import type { EventLog } from "../events/log.ts";

/** A sandbox as the keeper holds it: its record, and what each keeper makes anew. */
export interface Box {
  readonly id: SandboxId;
  record: SandboxRecord;
  /** Stays open as long as the sandbox lives: its close tells of a death. */
  park: Socket | null;
  memory: TimingMemory;
  oomKills: number;
  /** The last queued operation. Operations on one sandbox run one after the other. */
  queue: Promise<unknown>;
}

export interface Boxes {
  all(): Iterable<Box>;
  find(id: SandboxId): Box | undefined;
  get(id: SandboxId): Box;
  add(record: SandboxRecord): Box;
  /** Writes the record. */
  update(box: Box, change: Partial<SandboxRecord>): void;
  setState(box: Box, state: SandboxState, reason: StateReason, change?: Partial<SandboxRecord>): void;
  /** Removes the record: after this, only a destroy is possible, and a crash leads to one. */
  condemn(box: Box): void;
  forget(box: Box, reason: StateReason): void;
  exclusive<T>(box: Box, operation: () => Promise<T>): Promise<T>;
}

export interface BoxHooks {
  onChange(box: Box): void;
  onForget(box: Box): void;
}

export function openBoxes(layout: Layout, events: EventLog, clock: Clock, hooks: BoxHooks): Boxes {
  const boxes = new Map<SandboxId, Box>();
  const condemned = new WeakSet<Box>();
  const hold = (record: SandboxRecord): Box => {
    const memory = newMemory(record.request, clock.now());
    const box: Box = { id: record.id, record, park: null, memory, oomKills: 0, queue: Promise.resolve() };
    boxes.set(record.id, box);
    return box;
  };
  for (const record of readRecords<SandboxRecord>(layout.records.sandboxes)) hold(upToDate(record));

  const update = (box: Box, change: Partial<SandboxRecord>) => {
    if (condemned.has(box) || boxes.get(box.id) !== box) throw sandboxNotFound(box.id);
    box.record = { ...box.record, ...change };
    writeRecord(layout.sandboxRecord(box.id), box.record);
    hooks.onChange(box);
  };
  return {
    all: () => boxes.values(),
    find: (id) => boxes.get(id),
    get(id) {
      const box = boxes.get(id);
      if (box === undefined) throw sandboxNotFound(id);
      return box;
    },
    add(record) {
      writeRecord(layout.sandboxRecord(record.id), record);
      const box = hold(record);
      const { id, state, reason } = record;
      events.append({ type: "sandbox.state_changed", sandbox: id, from: null, to: state, reason });
      return box;
    },
    update,
    setState(box, state, reason, change = {}) {
      const from = box.record.state;
      update(box, { ...change, state, reason, stateChangedAt: clock.now() });
      events.append({ type: "sandbox.state_changed", sandbox: box.id, from, to: state, reason });
    },
    condemn(box) {
      condemned.add(box);
      removeRecord(layout.sandboxRecord(box.id));
      box.record = { ...box.record, state: "stopped", process: null, cgroups: [] };
    },
    forget(box, reason) {
      removeRecord(layout.sandboxRecord(box.id));
      boxes.delete(box.id);
      hooks.onForget(box);
      events.append({ type: "sandbox.destroyed", sandbox: box.id, reason });
    },
    exclusive(box, operation) {
      const result = box.queue.then(async () => {
        if (boxes.get(box.id) !== box) throw sandboxNotFound(box.id);
        return operation();
      });
      box.queue = result.catch(() => undefined);
      return result;
    },
  };
}

export function newMemory({ idleMs }: Pick<CreateSandbox, "idleMs">, nowMs: number): TimingMemory {
  return { toldEnd: null, checkIdleAt: nowMs + (idleMs ?? 0), lastCheckpointAt: nowMs };
}
