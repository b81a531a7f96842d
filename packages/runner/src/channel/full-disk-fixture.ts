import { openSpool } from "./spool.ts";
import { note } from "./testing/events.ts";

/** Appends to the spool that is its argument until there is no more room, then something that still fits. */
const spool = await openSpool(process.argv[2] ?? "");
let failure: unknown;
while (failure === undefined) {
  await spool.append([note("x".repeat(1000))]).catch((error: unknown) => {
    failure = error;
  });
}
const next = spool.next;
await spool.append([note("fits")]);
console.log(JSON.stringify({ code: (failure as { code: string }).code, next, last: await spool.read(next) }));
await spool.close();
