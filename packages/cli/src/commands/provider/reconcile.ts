import type { Context } from "../../input/command.ts";

export async function run(context: Context): Promise<void> {
  const provider = await context.provider();
  context.progress.status("comparing running sandboxes with the records");
  const report = await provider.reconcile({ signal: context.interrupts.signal });
  context.progress.clear();
  const lines = [
    ...report.adopted.map((id) => `${id} adopted: it was running and its record said otherwise`),
    ...report.lost.map((id) => `${id} lost: its record said running and it was not`),
    ...report.ended.map((name) => `${name} ended: it had no record`),
    `${report.layersRemoved} unused ${report.layersRemoved === 1 ? "layer" : "layers"} removed`,
  ];
  await context.result(report, lines.map((line) => `${context.clean(line)}\n`).join(""));
}
