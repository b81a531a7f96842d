/** Long tests draw other lots each time. They print their seed; `SLIPWAY_SEED=<seed>` repeats a run. */
process.env["SLIPWAY_SEED"] ??= String(Date.now() % 1_000_000);
