import type { BuildId } from "@slipway/contract";
import { type BuildRecords, maxPage, type RecordKind, type Store } from "@slipway/engine";

/** Reads all records of one kind, including ended ones, page by page. */
export async function readAll<K extends RecordKind>(
  { builds }: Pick<Store, "builds">,
  build: BuildId,
  kind: K,
): Promise<BuildRecords[K][]> {
  const records: BuildRecords[K][] = [];
  for (;;) {
    const page = await builds.records(build, kind, { offset: records.length });
    records.push(...page);
    if (page.length < maxPage) return records;
  }
}
