import type { BridgeMessage, BuildId } from "@slipway/contract";

/** How many of a build's last messages stay in memory while somebody is subscribed. */
const windowMessages = 64;

/**
 * News of one build for its subscribers in this process. News may be lost, late, doubled or out of order, so subscribers
 * go by offsets and read from the log what the feed lacks.
 */
export interface Feed {
  /** The highest known offset. */
  readonly head: number;
  /** Rises when news may have been lost. A subscriber that has seen a lower number reads the log. */
  readonly doubts: number;
  /** Rises with all news. */
  readonly version: number;
  /** The messages right after the offset that are in memory. */
  after(offset: number): readonly BridgeMessage[];
  /** Sets the end of the log, as read at this version. News of later messages were wrong. */
  correct(version: number, head: number): void;
}

/** A subscriber of a feed. */
export interface Following extends Disposable {
  readonly feed: Feed;
  /** Resolves when the feed's version changes or the subscriber's signal aborts. One call at a time. */
  changed(version: number): Promise<void>;
}

/** The message if it is small enough to travel, else its offset. */
export type News = BridgeMessage | { readonly offset: number };

export interface Feeds {
  readonly builds: readonly BuildId[];
  follow(build: BuildId, signal: AbortSignal): Following;
  tell(build: BuildId, news: News): void;
  /** News of one build, or of all, may have been lost. */
  doubt(build?: BuildId): void;
}

export interface FeedsWatcher {
  /** The build has its first subscriber. */
  followed(build: BuildId): void;
  /** Its last subscriber is gone. */
  left(build: BuildId): void;
}

export function createFeeds(watcher?: FeedsWatcher): Feeds {
  const feeds = new Map<BuildId, OpenFeed>();
  const open = (build: BuildId): OpenFeed => {
    const feed = createFeed();
    feeds.set(build, feed);
    watcher?.followed(build);
    return feed;
  };
  return {
    get builds() {
      return [...feeds.keys()];
    },
    follow(build, signal) {
      const feed = feeds.get(build) ?? open(build);
      let wake = () => {};
      const listener = () => wake();
      feed.listeners.add(listener);
      signal.addEventListener("abort", listener);
      return {
        feed,
        changed: (version) =>
          new Promise((resolve) => {
            wake = resolve;
            if (signal.aborted || version !== feed.version) resolve();
          }),
        [Symbol.dispose]() {
          signal.removeEventListener("abort", listener);
          feed.listeners.delete(listener);
          if (feed.listeners.size > 0) return;
          feeds.delete(build);
          watcher?.left(build);
        },
      };
    },
    tell: (build, news) => feeds.get(build)?.tell(news),
    doubt(build) {
      for (const [id, feed] of feeds) if (build === undefined || id === build) feed.doubt();
    },
  };
}

interface OpenFeed extends Feed {
  /** One per subscriber, called when the version rises. */
  readonly listeners: Set<() => void>;
  tell(news: News): void;
  doubt(): void;
}

function createFeed(): OpenFeed {
  let window: readonly BridgeMessage[] = [];
  const listeners = new Set<() => void>();
  const state = { head: 0, doubts: 0, version: 0 };
  const wake = () => {
    state.version++;
    for (const listener of listeners) listener();
  };
  return {
    listeners,
    get head() {
      return state.head;
    },
    get doubts() {
      return state.doubts;
    },
    get version() {
      return state.version;
    },
    after(offset) {
      const index = offset + 1 - (window[0]?.offset ?? 0);
      return index < 0 ? [] : window.slice(index);
    },
    tell(news) {
      if (news.offset <= state.head) return;
      window = extend(window, news);
      state.head = news.offset;
      wake();
    },
    doubt() {
      state.doubts++;
      wake();
    },
    correct(version, head) {
      if (version !== state.version || state.head <= head) return;
      state.head = head;
      window = [];
    },
  };
}

/** The window has no gap: a message that does not follow starts a new one. */
function extend(window: readonly BridgeMessage[], news: News): readonly BridgeMessage[] {
  if (!("payload" in news)) return [];
  if (news.offset !== (window.at(-1)?.offset ?? 0) + 1) return [news];
  return [...window.slice(1 - windowMessages), news];
}
