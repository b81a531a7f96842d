import { SlipwayError } from "@slipway/contract";

const kinds = ["T4", "L4", "A10", "L40S", "A100", "A100-40GB", "A100-80GB", "RTX-PRO-6000", "H100", "H200", "B200"];
const mostGpus = 8;

/** A kind, or a kind and a number as `H100:2`. Fails with `unknown_gpu`, before anything is asked for. */
export function checkGpu(gpu: string): string {
  const [, kind = "", count = "1"] = /^([A-Za-z0-9-]+)(?::(\d+))?$/.exec(gpu) ?? [];
  const known = kinds.includes(kind.toUpperCase());
  const fits = Number(count) >= 1 && Number(count) <= mostGpus;
  if (known && fits) return `${kind.toUpperCase()}:${Number(count)}`;
  throw new SlipwayError(
    "unknown_gpu",
    `gpu: Modal has no ${JSON.stringify(gpu)}. There are ${kinds.join(", ")}, up to ${mostGpus} as in H100:2.`,
  );
}
