const [newline, carriageReturn] = [0x0a, 0x0d];
const [lfBlankLine, crlfBlankLine] = [Buffer.from("\n\n"), Buffer.from("\r\n\r\n")];

/** The data of the lines that hold one of the markers, in the order of the lines. */
export function markedLines(events: Buffer, markers: readonly Buffer[]): string[] {
  const starts = new Set<number>();
  for (const marker of markers) {
    let at = events.indexOf(marker);
    while (at !== -1) {
      starts.add(events.lastIndexOf(newline, at) + 1);
      at = events.indexOf(marker, lineEnd(events, at));
    }
  }
  return [...starts]
    .sort((a, b) => a - b)
    .map((start) => events.toString("utf8", start, lineEnd(events, start)))
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).trim());
}

export function lineEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(newline, from);
  return end === -1 ? bytes.length : end;
}

/** What ends an event, told by how the first line ends. */
export function blankLine(bytes: Buffer): Buffer {
  return bytes[bytes.indexOf(newline) - 1] === carriageReturn ? crlfBlankLine : lfBlankLine;
}

/** Undefined while there is nothing but white space. */
export function firstByte(bytes: Buffer): number | undefined {
  return bytes.find((byte) => byte > 0x20);
}
