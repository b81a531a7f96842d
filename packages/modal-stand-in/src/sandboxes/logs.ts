import type { CallContext } from "nice-grpc";
import type { Methods } from "../serve.ts";
import { type SandboxRequest, stderrDescriptor } from "../wire.ts";
import type { Sandboxes } from "./sandboxes.ts";

interface LogsRequest extends SandboxRequest {
  readonly fileDescriptor: number;
  /** `<offset>-0`, from the batch before. */
  readonly lastEntryId: string;
}
interface StdinRequest extends SandboxRequest {
  readonly input: Uint8Array;
  readonly index: number;
  readonly eof: boolean;
}

/** Input and output of the command of a sandbox of the first generation. */
export function firstGenerationStreams(sandboxes: Sandboxes): Methods {
  return {
    async *sandboxGetLogs({ sandboxId, fileDescriptor, lastEntryId }: LogsRequest, { signal }: CallContext) {
      const { main, ended } = sandboxes.get(sandboxId);
      if (main === null) {
        await Promise.race([ended, aborted(signal)]);
        yield { eof: true };
        return;
      }
      const output = fileDescriptor === stderrDescriptor.v1 ? main.stderr : main.stdout;
      let offset = Number.parseInt(lastEntryId, 10) || 0;
      let rest = Buffer.alloc(0);
      for await (const piece of output.read(offset, signal)) {
        const bytes = Buffer.concat([rest, piece]);
        const whole = wholeCharacters(bytes);
        rest = bytes.subarray(whole);
        offset += whole;
        const items = [{ data: bytes.toString("utf8", 0, whole), fileDescriptor }];
        yield { entryId: `${offset}-0`, items };
      }
      if (!signal.aborted)
        yield { entryId: `${offset}-0`, items: [{ data: rest.toString(), fileDescriptor }], eof: true };
    },
    async sandboxStdinWrite({ sandboxId, input, eof }: StdinRequest) {
      const { main } = sandboxes.get(sandboxId);
      await main?.input.write(main.input.status.numBytesWritten, input, eof);
    },
  };
}

/** How many bytes make whole characters: a piece may end in the middle of one. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
