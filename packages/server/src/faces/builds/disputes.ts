import { randomUUID } from "node:crypto";
import {
  type BuildId,
  checkLines,
  checkSchema,
  type DisputeView,
  type KeptCheck,
  keptCheckSchema,
  SlipwayError,
  type Surface,
} from "@slipway/contract";
import { type DisputeRecord, hasEnded, type NewEvent, report, type Store } from "@slipway/engine";
import { z } from "zod";
import { readAll } from "../../work/all-records.ts";
import { readDemands } from "../../work/gates/demands.ts";
import type { BuildMethods } from "./face.ts";

export interface DisputeParts {
  readonly store: Store;
  /** Keeps a report and lets it have its effect. */
  tell(build: BuildId, event: NewEvent): Promise<void>;
}

export function createBuildDisputes({ store, tell }: DisputeParts): Pick<BuildMethods, "disputes" | "settleDispute"> {
  const read = async (build: BuildId): Promise<DisputeView[]> => {
    const records = await readAll(store, build, "disputes");
    if (records.length === 0) return [];
    const { surface, demands } = await readDemands(store, build, AbortSignal.timeout(readMs));
    return records.map((record) => {
      const inForce = demands.find(({ id }) => id === record.criterion)?.checks[record.checkIndex];
      return viewOf(surface, record, replacedLater(records, record) ?? keptCheckSchema.safeParse(inForce).data);
    });
  };
  return {
    async disputes(build) {
      await store.builds.get(build);
      return { disputes: await read(build) };
    },

    async settleDispute(build, number, ruling, key = randomUUID()) {
      const known = (await read(build)).find((one) => one.number === number);
      if (known === undefined) throw new SlipwayError("dispute_not_found", `${build} has no dispute ${number}`);
      const once = `order.dispute:${key}`;
      if (await store.events.find(build, once)) return known;
      if (hasEnded(await store.builds.get(build))) throw new SlipwayError("build_ended", `${build} has ended`);
      if (known.status !== "user") {
        const message = `Dispute ${number} does not wait for you: its status is ${known.status}.`;
        throw new SlipwayError("dispute_settled", message);
      }
      await tell(build, report("order.dispute", once, { dispute: number, ...ruling }));
      return (await read(build)).find((one) => one.number === number) ?? known;
    },
  };
}

const readMs = 10_000;
const replacementSchema = z.object({ before: keptCheckSchema, after: checkSchema }).nullable();

/** What a later dispute of the same check has replaced: what this one was about. */
function replacedLater(records: readonly DisputeRecord[], { number, criterion, checkIndex }: DisputeRecord) {
  const ofCheck = records.filter((one) => one.criterion === criterion && one.checkIndex === checkIndex);
  const later = ofCheck.filter((one) => one.number > number && one.replacement !== null);
  const [next] = later.toSorted((a, b) => a.number - b.number);
  return next && replacementSchema.parse(next.replacement)?.before;
}

function viewOf(surface: Surface, record: DisputeRecord, without: KeptCheck | undefined): DisputeView {
  const { number, task, criterion, status, by, because, step, openedAt, endedAt } = record;
  const replacement = replacementSchema.parse(record.replacement);
  const before = replacement?.before ?? without;
  return {
    number,
    task,
    criterion,
    status,
    by,
    because,
    check: before === undefined ? [] : checkLines(surface, before),
    step,
    replacement: replacement && checkLines(surface, replacement.after),
    openedAt,
    endedAt,
  };
}
