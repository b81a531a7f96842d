export interface Permissions {
  /** Waits for the user's answer. Returns undefined if allowed, otherwise the reason. */
  ask(id: string, signal: AbortSignal): Promise<string | undefined>;
  answer(permission: { readonly id: string; readonly allow: boolean; readonly reason: string }): void;
}

export function createPermissions(): Permissions {
  const open = new Map<string, (refusal: string | undefined) => void>();
  return {
    async ask(id, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
      const giveUp = () => reject(signal.reason);
      signal.addEventListener("abort", giveUp);
      open.set(id, resolve);
      try {
        return await promise;
      } finally {
        open.delete(id);
        signal.removeEventListener("abort", giveUp);
      }
    },
    answer({ id, allow, reason }) {
      open.get(id)?.(allow ? undefined : reason || "no reason given");
    },
  };
}
