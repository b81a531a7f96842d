/** A looping agent repeats one call, or a cycle of two or three. */
const longestCycle = 3;

export interface RepeatDetector {
  /** True once the latest calls, with their results, have repeated more than `maxRepeats` times. */
  isLooping(call: { readonly name: string; readonly input: string; readonly output: string }): boolean;
}

export function createRepeatDetector(maxRepeats: number): RepeatDetector {
  const recent: string[] = [];
  return {
    isLooping(call) {
      recent.push(JSON.stringify([call.name, call.input, call.output]));
      if (recent.length > longestCycle * (maxRepeats + 1)) recent.shift();
      for (let cycle = 1; cycle <= longestCycle; cycle++) {
        if (endsInCycle(recent, cycle, cycle * (maxRepeats + 1))) return true;
      }
      return false;
    },
  };
}

/** Whether the last `length` items repeat with a period of `cycle`. */
function endsInCycle(items: readonly string[], cycle: number, length: number): boolean {
  if (items.length < length) return false;
  const tail = items.slice(-length);
  return tail.every((item, index) => index < cycle || item === tail[index - cycle]);
}
