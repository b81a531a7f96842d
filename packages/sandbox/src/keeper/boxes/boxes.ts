import type { CreateSandbox, SandboxId, SandboxState, StateReason } from "@slipway/contract";
import type { Clock } from "../clock.ts";
import type { TimingMemory } from "../decide.ts";
import type { EventLog } from "../events/log.ts";
import type { KeeperLayout } from "../layout.ts";
import { readRecords, removeRecord, type SandboxRecord, sandboxNotFound, upToDate, writeRecord } from "../record.ts";

/** A sandbox as the keeper holds it: its record, and what each keeper makes anew. */
export interface Box<R extends SandboxRecord = SandboxRecord> {
  readonly id: SandboxId;
  record: R;
  memory: TimingMemory;
  /** The last queued operation. Operations on one sandbox run one after the other. */
  queue: Promise<unknown>;
}

export interface Boxes<R extends SandboxRecord = SandboxRecord> {
  all(): Iterable<Box<R>>;
  find(id: SandboxId): Box<R> | undefined;
  get(id: SandboxId): Box<R>;
  add(record: R): Box<R>;
  /** Writes the record. */
  update(box: Box<R>, change: Partial<R>): void;
  setState(box: Box<R>, state: SandboxState, reason: StateReason, change?: Partial<R>): void;
  /** Removes the record: after this, only a destroy is possible, and a crash leads to one. */
  condemn(box: Box<R>, change: Partial<R>): void;
  forget(box: Box<R>, reason: StateReason): void;
  exclusive<T>(box: Box<R>, operation: () => Promise<T>): Promise<T>;
}

export interface BoxHooks<R extends SandboxRecord> {
  onChange(box: Box<R>): void;
  onForget(box: Box<R>): void;
  /** When the sandbox came into the state by its provider's own books; undefined: now. */
  cameAt?(box: Box<R>, state: SandboxState | "destroyed"): number | undefined;
}

export function openBoxes<R extends SandboxRecord>(
  layout: KeeperLayout,
  events: EventLog,
  clock: Clock,
  hooks: BoxHooks<R>,
): Boxes<R> {
  const boxes = new Map<SandboxId, Box<R>>();
  const condemned = new WeakSet<Box<R>>();
  const hold = (record: R): Box<R> => {
    const memory = newMemory(record.request, clock.now());
    const box: Box<R> = { id: record.id, record, memory, queue: Promise.resolve() };
    boxes.set(record.id, box);
    return box;
  };
  for (const record of readRecords<R>(layout.records.sandboxes)) hold(upToDate(record));

  const timeOf = (box: Box<R>, state: SandboxState | "destroyed") => {
    const at = hooks.cameAt?.(box, state);
    return at === undefined ? {} : { at };
  };
  const update = (box: Box<R>, change: Partial<R>) => {
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
    setState(box, state, reason, change) {
      const from = box.record.state;
      const time = timeOf(box, state);
      update(box, { ...change, state, reason, stateChangedAt: clock.now() } as Partial<R>);
      events.append({ type: "sandbox.state_changed", sandbox: box.id, from, to: state, reason, ...time });
    },
    condemn(box, change) {
      condemned.add(box);
      removeRecord(layout.sandboxRecord(box.id));
      box.record = { ...box.record, ...change, state: "stopped" };
    },
    forget(box, reason) {
      removeRecord(layout.sandboxRecord(box.id));
      boxes.delete(box.id);
      hooks.onForget(box);
      events.append({ type: "sandbox.destroyed", sandbox: box.id, reason, ...timeOf(box, "destroyed") });
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
