import { isUtf8 } from "node:buffer";
import { type ExecChunk, execLogLimitBytes } from "@slipway/contract";

export interface CollectedOutput {
  readonly stdout: string;
  readonly stdoutEncoding: "utf8" | "base64";
  readonly stderr: string;
  readonly stderrEncoding: "utf8" | "base64";
  /** Some output is not in here. */
  readonly truncated: boolean;
}

/** Keeps a command's output for a JSON document. Past the limit of a kept log it is let go. */
export function collector(): { take(chunk: ExecChunk): Promise<void>; collected(): CollectedOutput } {
  const chunks: Record<"stdout" | "stderr", Uint8Array[]> = { stdout: [], stderr: [] };
  let bytes = 0;
  let truncated = false;
  return {
    async take(chunk) {
      if (chunk.type === "output_truncated" || bytes + chunk.data.length > execLogLimitBytes) {
        truncated = true;
        return;
      }
      bytes += chunk.data.length;
      chunks[chunk.type].push(chunk.data);
    },
    collected() {
      const [stdout, stderr] = [asText(chunks.stdout), asText(chunks.stderr)];
      return {
        stdout: stdout.text,
        stdoutEncoding: stdout.encoding,
        stderr: stderr.text,
        stderrEncoding: stderr.encoding,
        truncated,
      };
    },
  };
}

function asText(chunks: readonly Uint8Array[]): { text: string; encoding: "utf8" | "base64" } {
  const bytes = Buffer.concat(chunks);
  const encoding = isUtf8(bytes) ? "utf8" : "base64";
  return { text: bytes.toString(encoding), encoding };
}
