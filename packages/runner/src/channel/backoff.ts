/** How long to wait before the next try: longer each time, and never the same for two who failed together. */
export interface Backoff {
  nextMs(): number;
}

const firstMs = 50;
const longestMs = 5000;

export function createBackoff(): Backoff {
  let limitMs = firstMs;
  return {
    nextMs() {
      const waitMs = limitMs * (0.5 + Math.random() / 2);
      limitMs = Math.min(limitMs * 2, longestMs);
      return waitMs;
    },
  };
}
