const newline = 0x0a;
const carriageReturn = 0x0d;
const [lfBlankLine, crlfBlankLine] = [Buffer.from("\n\n"), Buffer.from("\r\n\r\n")];

/** Returns the data of lines with a marker. `text` is `events`, one character per byte; `pattern` is global. */
export function markedLines(events: Buffer, text: string, pattern: RegExp): string[] {
  const data: string[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const start = text.lastIndexOf("\n", match.index) + 1;
    const end = text.indexOf("\n", match.index);
    pattern.lastIndex = end === -1 ? text.length : end;
    if (text.startsWith("data:", start)) data.push(events.toString("utf8", start + 5, pattern.lastIndex).trim());
  }
  return data;
}

/** Returns what ends an event, judging by how the first line ends. */
export function blankLine(bytes: Buffer): Buffer {
  return bytes[bytes.indexOf(newline) - 1] === carriageReturn ? crlfBlankLine : lfBlankLine;
}

/** Undefined while there is only white space. */
export function firstByte(bytes: Buffer): number | undefined {
  return bytes.find((byte) => byte > 0x20);
}
