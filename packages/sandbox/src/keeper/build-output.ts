import { StringDecoder } from "node:string_decoder";

const keptLines = 20;
const longestLine = 400;

/** A build's output as lines: reports each, and keeps the last ones for an error. */
export interface BuildOutput {
  push(stream: "stdout" | "stderr", data: Uint8Array): void;
  /** Reports a last line without its end. */
  end(): void;
  readonly lastLines: string;
}

/** A build's programs are untrusted: only their text reaches a terminal, and within bounds. */
export function createBuildOutput(progress: (line: string) => void): BuildOutput {
  const streams = { stdout: newStream(), stderr: newStream() };
  const last: string[] = [];
  const tell = (text: string) => {
    const line = plainText(text);
    if (line === "") return;
    last.push(line);
    if (last.length > keptLines) last.shift();
    progress(line);
  };
  return {
    push(name, data) {
      const stream = streams[name];
      const lines = (stream.rest + stream.decoder.write(data)).split(/\r?\n/).map(lastWritten);
      // Bounds the memory for a line that never ends.
      stream.rest = (lines.pop() ?? "").slice(0, 2 * longestLine);
      for (const line of lines) tell(line);
    },
    end() {
      for (const stream of Object.values(streams)) tell(stream.rest + stream.decoder.end());
    },
    get lastLines() {
      return last.join("\n");
    },
  };
}

function newStream(): { readonly decoder: StringDecoder; rest: string } {
  return { decoder: new StringDecoder("utf8"), rest: "" };
}

/** A progress bar overwrites its line. */
function lastWritten(line: string): string {
  return line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])/g;
const controls = /[\p{Cc}\p{Cf}]/gu;

function plainText(text: string): string {
  const line = text.replace(escapes, "").replace(/\t/g, " ").replace(controls, "").trimEnd();
  return line.length > longestLine ? `${line.slice(0, longestLine)}…` : line;
}
