import { createHash } from "node:crypto";

const maxLines = 20;
const telling = /error|fail|not ok|exception(:| in)|expected|assert|cannot|undefined|✖|✗|×/i;
/** Summary counts, which also appear when nothing is wrong. */
const idle = /^[#ℹ\s]*(pass|fail|failed|errors?|cancelled|skipped|todo|tests|suites|duration_ms)\b[\s:]*[\d.]*$/i;

/** Returns the lines of a command's output that tell what is wrong, or its last lines if none do. */
export function errorsOf(output: string): string {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const found = lines.filter((line) => telling.test(line) && !idle.test(line) && !/^\s*at /.test(line));
  return (found.length > 0 ? found.slice(0, maxLines) : lines.slice(-maxLines)).join("\n");
}

/** The same for the same mistake: ignores times, counts, addresses and the order of parallel tests. */
export function signatureOf(text: string): string {
  const lines = text
    .replace(/\b0x[0-9a-f]+\b|\b[0-9a-f]{7,}\b/gi, "#")
    .replace(/\d+(\.\d+)?\s*(ms|s)\b/g, "#")
    .replace(/duration_ms.*$/gm, "")
    .replace(/:\d+/g, ":#")
    .split("\n")
    .map((line) => line.trim());
  return createHash("sha256")
    .update([...new Set(lines)].sort().join("\n"))
    .digest("hex");
}
