import type {
  BridgeMessage,
  BridgeTopic,
  BuildId,
  Claim,
  ClaimAnswer,
  ClaimRequest,
  DeadLetter,
  OutgoingMessage,
} from "@slipway/contract";

/** What the sandboxes of a build share: one log of messages per build, and claims of files. */
export interface Bridge extends MessageLog, Consumers, Claims {
  /** Removes everything of a build. */
  forget(build: BuildId): Promise<void>;
  close(): Promise<void>;
}

export interface MessageLog {
  /**
   * Answers after the message is durable. The same key again answers the offset it has; with other content it fails with
   * `idempotency_conflict`.
   */
  publish(build: BuildId, message: OutgoingMessage): Promise<{ readonly offset: number }>;
  /** Fails with `invalid_request` when the log ends before `after`. */
  read(build: BuildId, range: ReadRange): Promise<MessagePage>;
  /**
   * What there is after the offset, then what comes, in the order of the offsets and each once. Ends by the signal. Goes
   * on by itself where its connection comes back; what fails for good is thrown.
   */
  subscribe(build: BuildId, options: SubscribeOptions): AsyncIterable<BridgeMessage>;
}

export interface ReadRange {
  readonly after: number;
  /** All of them when left out. */
  readonly topics?: readonly BridgeTopic[] | undefined;
  readonly limit?: number | undefined;
}

export interface MessagePage {
  readonly messages: readonly BridgeMessage[];
  /** Everything up to this offset was looked at: read on from here. */
  readonly next: number;
}

export interface SubscribeOptions {
  readonly after: number;
  readonly topics?: readonly BridgeTopic[] | undefined;
  readonly signal: AbortSignal;
}

/** How far a consumer is, and what it could not take. */
export interface Consumers {
  /** The offset of the last message that the consumer is done with; 0 at first. */
  position(build: BuildId, consumer: string): Promise<number>;
  /** Counts a try at the message, before it is made: a message that ends the process counts, too. Answers the tries so far. */
  beginTry(build: BuildId, consumer: string, offset: number): Promise<number>;
  /** Never moves back. */
  advance(build: BuildId, consumer: string, offset: number): Promise<void>;
  /** Keeps the dead letter and advances past it, both or none. */
  bury(build: BuildId, letter: Omit<DeadLetter, "at">): Promise<void>;
  deadLetters(build: BuildId): Promise<readonly DeadLetter[]>;
}

/** Claims advise and record; no file is locked. A lease that has run out frees its path by itself. */
export interface Claims {
  /** Grants all paths or none. An owner's own claims do not stand in its way: it gets higher tokens. */
  claim(build: BuildId, request: ClaimRequest): Promise<ClaimAnswer>;
  /** Undefined: the token is not the path's highest, or its lease is over. */
  renew(build: BuildId, held: HeldClaim & { readonly leaseMs: number }): Promise<Claim | undefined>;
  /** False: the token is not the path's highest, or its lease is over. */
  release(build: BuildId, held: HeldClaim): Promise<boolean>;
  /** Those whose lease runs, by path. */
  claims(build: BuildId): Promise<readonly Claim[]>;
}

export interface HeldClaim {
  readonly path: string;
  readonly token: number;
}
