/** Calls back once the time has come. The wall clock counts, also when it jumps or the machine sleeps. */
export function createDeadline(atMs: number, onDue: () => void): { move(atMs: number): void } {
  const mostMs = 30_000;
  let timer: NodeJS.Timeout | undefined;
  const arm = (dueMs: number) => {
    clearTimeout(timer);
    const leftMs = dueMs - Date.now();
    if (leftMs <= 0) onDue();
    else timer = setTimeout(arm, Math.min(leftMs, mostMs), dueMs);
  };
  arm(atMs);
  return { move: arm };
}
