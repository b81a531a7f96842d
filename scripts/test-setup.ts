import { vi } from "vitest";

/** Vitest's own is a second, in which a busy machine may not even start a process. What never comes still fails its test. */
const usual = { timeout: 60_000 };

const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (callback, options = usual) => waitFor(callback, options);
