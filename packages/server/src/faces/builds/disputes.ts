import { randomUUID } from "node:crypto";
import {
  type BuildId,
  checkLines,
  checkSchema,
  type DisputeView,
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
      return viewOf(surface, record, inForce);
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

function viewOf(surface: Surface, record: DisputeRecord, inForce: unknown): DisputeView {
  const { number, task, criterion, status, by, because, step, openedAt, endedAt } = record;
  const replacement = replacementSchema.parse(record.replacement);
  const before = replacement?.before ?? keptCheckSchema.safeParse(inForce).data;
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
