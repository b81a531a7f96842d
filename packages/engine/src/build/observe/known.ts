import { afterEnd, endText, SlipwayError } from "@slipway/contract";
import type { PatternRecord } from "../../ports/records.ts";
import type { Report } from "../../ports/reports.ts";
import type { Store, StoredBuild } from "../../ports/store.ts";
import { fingerprint, patternScope } from "../fingerprint.ts";
import { idsOf } from "../records.ts";
import { endOf } from "./attempts.ts";
import type { Fact, Known } from "./facts.ts";

/** Gathers what the facts need from the store. */
export async function knownFor(
  { builds, patterns }: Pick<Store, "builds" | "patterns">,
  { build, attempts }: StoredBuild,
  facts: readonly Fact[],
): Promise<Known> {
  const has = (...types: readonly Report["type"][]) => facts.some(({ type }) => types.some((one) => one === type));
  const ends = facts.flatMap((fact) => endOf(fact) ?? []).filter((end) => afterEnd(end) === "retry");
  const errors = [...new Set(ends.map((end) => fingerprint(endText(end))))];
  const found = errors.length === 0 ? [] : await patterns.find(patternScope(build), errors);
  const drafted = facts.find((fact) => fact.type === "intent.drafted");
  const [intent] =
    drafted === undefined && has("intent.edited", "intent.locked") ? await builds.records(build.id, "intents") : [];
  const [plan] = has("remaining.planned") ? await builds.records(build.id, "plans", { limit: 1 }) : [];
  return {
    build,
    attempts: idsOf(attempts),
    patterns: new Set(found.map(({ signature }) => signature)),
    start: drafted?.data.start ?? (intent?.intent as { start?: Known["start"] } | undefined)?.start,
    intentHash: plan?.intentHash ?? "unknown",
  };
}

/** Remembers fixes. A pattern that cannot be kept is no reason to stop a build. */
export async function learnAll({ patterns }: Pick<Store, "patterns">, learnt: readonly PatternRecord[]): Promise<void> {
  for (const pattern of learnt) {
    await patterns.learn(pattern).catch((error) => {
      if (!(error instanceof SlipwayError && error.code === "invalid_request")) throw error;
    });
  }
}
