import { once } from "node:events";
import { type ControlMessage, commitSchema, type Finding, findingSchema } from "@slipway/contract";
import { z } from "zod";

const mainSchema = z.strictObject({ commit: commitSchema, bundle: z.string() });

/** Messages of the host that a task run has not finished with. */
export const inboxSchema = z.strictObject({
  /** The mains so far, each with a bundle on top of the previous one. */
  mains: z.array(mainSchema),
  findings: z.array(findingSchema),
  /** The latest returned offer. 0: none. */
  returned: z.int().min(0),
  merged: z.boolean(),
});
type InboxState = z.output<typeof inboxSchema>;

export const sharedSchema = z.array(z.strictObject({ name: z.string(), text: z.string() }));
export type SharedPart = z.output<typeof sharedSchema>[number];

type Message<T extends ControlMessage["type"]> = Extract<ControlMessage, { type: T }>;
export type Claimed = Pick<Message<"claimed">, "granted" | "held">;

export interface Inbox {
  /** What the build's sandboxes share. */
  readonly shared: readonly SharedPart[];
  share(part: SharedPart): void;
  /** `isTold`: an agent at work already has them. Ignores an offer that was returned before. */
  find(message: Message<"findings">, options: { readonly isTold: boolean }): void;
  /** Whether the offer was returned before. The host repeats the message when it is unsure. */
  isKnown(message: Message<"findings">): boolean;
  take(message: Message<"main" | "claimed" | "merged">): void;
  /** Removes and returns the findings. The caller saves. */
  takeFindings(): Finding[];
  readonly mains: InboxState["mains"];
  /** Removes the first mains. */
  dropMains(count: number): void;
  readonly hasFindings: boolean;
  /** What became of an offer. Undefined: no answer yet. */
  answerTo(offer: number): "merged" | "returned" | undefined;
  /** Resolves at the next change, or when the signal aborts. */
  changed(signal: AbortSignal): Promise<void>;
  /** Returns the host's answer to a claim. Undefined: none in time. */
  claimed(id: string, signal: AbortSignal): Promise<Claimed | undefined>;
  state(): InboxState;
}

const maxFindings = 64;
const maxShared = 32;

export interface InboxOptions {
  readonly found: InboxState | undefined;
  readonly shared: readonly SharedPart[];
  onChange(): void;
  onShare(shared: readonly SharedPart[]): void;
}

export function createInbox({ found, shared: known, onChange, onShare }: InboxOptions): Inbox {
  let { mains, findings, returned, merged } = found ?? { mains: [], findings: [], returned: 0, merged: false };
  let shared = known;
  /** Pending claims, by id. */
  const answers = new Map<string, Claimed | undefined>();
  const arrivals = new EventTarget();
  const change = () => {
    onChange();
    arrivals.dispatchEvent(new Event("change"));
  };
  const changed = async (signal: AbortSignal) => {
    await once(arrivals, "change", { signal }).catch(() => {});
  };
  const isKnown = ({ offer }: Message<"findings">) => offer !== undefined && offer <= returned;
  return {
    isKnown,
    get shared() {
      return shared;
    },
    get hasFindings() {
      return findings.length > 0;
    },
    share(part) {
      shared = [...shared.filter(({ name }) => name !== part.name), part].slice(-maxShared);
      onShare(shared);
      change();
    },
    find(message, { isTold }) {
      if (isKnown(message)) return;
      if (!isTold) findings = [...findings, ...message.findings].slice(-maxFindings);
      returned = Math.max(returned, message.offer ?? 0);
      change();
    },
    take(message) {
      if (message.type === "main") mains = [...mains, { commit: message.commit, bundle: message.bundle }];
      if (message.type === "merged") merged = true;
      if (message.type === "claimed" && answers.has(message.id)) answers.set(message.id, message);
      change();
    },
    takeFindings() {
      const taken = findings;
      findings = [];
      return taken;
    },
    get mains() {
      return mains;
    },
    dropMains(count) {
      mains = mains.slice(count);
    },
    answerTo(offer) {
      if (merged) return "merged";
      return returned >= offer || findings.length > 0 ? "returned" : undefined;
    },
    changed,
    async claimed(id, signal) {
      answers.set(id, undefined);
      while (answers.get(id) === undefined && !signal.aborted) await changed(signal);
      const answer = answers.get(id);
      answers.delete(id);
      return answer;
    },
    state: () => ({ mains, findings, returned, merged }),
  };
}
