import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Seconds that files took when it was last recorded. Each run of `npm test` leaves new ones in .reports/durations.json. */
const durations: Record<string, number> = JSON.parse(readFileSync(new URL("durations.json", import.meta.url), "utf8"));

/** Starts the longest files first, so that none of them is left to run alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = ({ moduleId }: TestSpecification) => durations[relative(process.cwd(), moduleId)] ?? 0;
    return files.toSorted((one, other) => seconds(other) - seconds(one));
  }
}
