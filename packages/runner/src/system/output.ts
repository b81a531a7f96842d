/** Keeps the beginning and the end of a long output, and counts what lies between. Uses bounded memory. */
export interface OutputKeeper {
  add(chunk: Buffer): void;
  text(): string;
}

export function keepEnds(maxBytes: number): OutputKeeper {
  const half = Math.floor(maxBytes / 2);
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let cutBytes = 0;
  return {
    add(chunk) {
      const room = half - head.length;
      head = Buffer.concat([head, chunk.subarray(0, room)]);
      tail = Buffer.concat([tail, chunk.subarray(room)]);
      if (tail.length <= half) return;
      cutBytes += tail.length - half;
      tail = tail.subarray(-half);
    },
    text() {
      if (cutBytes === 0) return Buffer.concat([head, tail]).toString();
      return `${head}\n[${cutBytes} bytes in the middle are left out]\n${tail}`;
    },
  };
}

export function keepEndsOf(text: string, maxBytes: number): string {
  const keeper = keepEnds(maxBytes);
  keeper.add(Buffer.from(text));
  return keeper.text();
}
