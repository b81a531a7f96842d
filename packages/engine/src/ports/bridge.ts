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
   * Returns once the message is durable. The same key again returns the known offset; with other content it fails with
   * `idempotency_conflict`.
   */
  publish(build: BuildId, message: OutgoingMessage): Promise<{ readonly offset: number }>;
  /** Fails with `invalid_request` when the log ends before `after`. */
  read(build: BuildId, range: ReadRange): Promise<MessagePage>;
  /**
   * Yields the messages after the offset, then new ones, in order and each once. Ends by the signal. Continues by
   * itself when its connection comes back; throws what fails for good.
   */
  subscribe(build: BuildId, options: SubscribeOptions): AsyncIterable<BridgeMessage>;
}

export interface ReadRange {
  readonly after: number;
  /** All topics when left out. */
  readonly topics?: readonly BridgeTopic[] | undefined;
  readonly limit?: number | undefined;
}

export interface MessagePage {
  readonly messages: readonly BridgeMessage[];
  /** Everything up to this offset was read: read on from here. */
  readonly next: number;
}

export interface SubscribeOptions {
  readonly after: number;
  readonly topics?: readonly BridgeTopic[] | undefined;
  readonly signal: AbortSignal;
}

/** How far a consumer is, and the messages that it could not process. */
export interface Consumers {
  /** The offset of the last message that the consumer has processed; 0 at first. */
  position(build: BuildId, consumer: string): Promise<number>;
  /** Counts a try before it is made, so that a message that kills the process counts. Returns the tries so far. */
  beginTry(build: BuildId, consumer: string, offset: number): Promise<number>;
  /** Never moves back. */
  advance(build: BuildId, consumer: string, offset: number): Promise<void>;
  /** Keeps the dead letter and advances past it, atomically. */
  bury(build: BuildId, letter: Omit<DeadLetter, "at">): Promise<void>;
  deadLetters(build: BuildId): Promise<readonly DeadLetter[]>;
}

/** Claims are advisory; no file is locked. An expired lease frees its path. */
export interface Claims {
  /** Grants all paths or none. An owner's own claims never block it: it gets higher tokens. */
  claim(build: BuildId, request: ClaimRequest): Promise<ClaimAnswer>;
  /** Undefined: the token is not the path's highest, or its lease has expired. */
  renew(build: BuildId, held: HeldClaim & { readonly leaseMs: number }): Promise<Claim | undefined>;
  /** False: the token is not the path's highest, or its lease has expired. */
  release(build: BuildId, held: HeldClaim): Promise<boolean>;
  /** Those whose lease has not expired, by path. */
  claims(build: BuildId): Promise<readonly Claim[]>;
}

export interface HeldClaim {
  readonly path: string;
  readonly token: number;
}
