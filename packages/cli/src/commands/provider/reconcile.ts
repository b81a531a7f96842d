import type { Context } from "../../input/command.ts";

export async function run(context: Context): Promise<void> {
  const provider = await context.provider();
  context.progress.status("comparing what runs with what is recorded");
  const report = await provider.reconcile({ signal: context.interrupts.signal });
  context.progress.clear();
  const lines = [
    ...report.adopted.map((id) => `${id} adopted: it ran and was recorded as something else`),
    ...report.lost.map((id) => `${id} lost: it was recorded as running and did not`),
    ...report.ended.map((name) => `${name} ended: it ran without a record`),
    `${report.layersRemoved} unused ${report.layersRemoved === 1 ? "layer" : "layers"} removed`,
  ];
  await context.result(report, lines.map((line) => `${context.clean(line)}\n`).join(""));
}
