import { parseArgs } from "node:util";
import type { Figure, Report } from "./measure.ts";

/** `npm run bench -- <suite> [--json] [--only name,...]`: prints the suite's figures, one line each; exits 1 when one misses its bound. */
const suites: Record<string, () => Promise<{ run(report: Report, only: ReadonlySet<string>): Promise<void> }>> = {
  sandbox: () => import("./sandbox.ts"),
  gateway: () => import("./gateway.ts"),
  loop: () => import("./loop.ts"),
  build: () => import("./build.ts"),
  modal: () => import("./modal.ts"),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, only: { type: "string", default: "" } },
});
const load = suites[positionals[0] ?? ""];
if (load === undefined) {
  console.error(`usage: npm run bench -- <${Object.keys(suites).join("|")}> [--json] [--only name,...]`);
  process.exit(2);
}

let missed = 0;
await (await load()).run(
  (figure) => {
    if (!holds(figure)) missed++;
    console.log(values.json ? line(figure) : row(figure));
  },
  new Set(values.only.split(",").filter(Boolean)),
);
process.exit(missed === 0 ? 0 : 1);

function line({ name, value, unit, ours, baseline, n }: Figure): string {
  return JSON.stringify({
    name,
    value: round(value),
    unit,
    ours: round(ours),
    baseline: baseline === null ? null : round(baseline),
    n,
  });
}

function row(figure: Figure): string {
  const { name, value, unit, ours, baseline, n, bound } = figure;
  const raw = figure.rawUnit ?? (unit === "1/s" ? unit : "ms");
  const against = baseline === null ? "" : `  ours ${round(ours)} ${raw}, baseline ${round(baseline)} ${raw}`;
  const [side, limit] = bound.atMost === undefined ? ["at least", bound.atLeast] : ["at most", bound.atMost];
  const held = limit === undefined ? "" : `${side} ${limit}, `;
  return `${holds(figure) ? "ok  " : "MISS"} ${name.padEnd(26)} ${String(round(value)).padStart(8)} ${unit.padEnd(6)} (${held}n=${n})${against}`;
}

function holds({ value, bound }: Figure): boolean {
  return value <= (bound.atMost ?? Number.POSITIVE_INFINITY) && value >= (bound.atLeast ?? Number.NEGATIVE_INFINITY);
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
