import fc from "fast-check";
import { vi } from "vitest";

/** Properties and everything else that draws lots in a test: the same in each run, unless the run says otherwise. */
process.env["SLIPWAY_SEED"] ??= "1";
fc.configureGlobal({ seed: Number(process.env["SLIPWAY_SEED"]) });

/** Vitest's own is a second, in which a busy machine may not even start a process. What never comes still fails its test. */
const usual = { timeout: 60_000 };

const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (callback, options = usual) => waitFor(callback, options);
