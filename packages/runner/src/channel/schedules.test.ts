import type { NumberedEvent } from "@slipway/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Channel, openChannel } from "./channel.ts";
import { note } from "./testing/events.ts";
import { startTestHost, type TestHost } from "./testing/host.ts";
import { createTestPlace, type TestPlace } from "./testing/place.ts";
import { createTransport, type Request, type Transport } from "./transport.ts";

/** What happens to a request: it gets through; it is lost; its answer is lost; it comes twice; it comes again much later. */
const fates = ["well", "lost", "unanswered", "twice", "again later"] as const;
type Fate = (typeof fates)[number];

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ emit: fc.integer({ min: 1, max: 200 }) }) },
  { weight: 1, arbitrary: fc.constant("restart host" as const) },
  { weight: 1, arbitrary: fc.constant("restart runner" as const) },
  { weight: 1, arbitrary: fc.constant("flush" as const) },
);
const schedule = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 12 }),
  fates: fc.array(fc.constantFrom(...fates), { minLength: 1, maxLength: 30 }),
});

test("every event arrives once and in order, whatever is lost, repeated or restarted", async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async ({ steps, fates: drawn }) => {
      const { emitted, stored } = await play(steps, drawn);
      const said = stored.map(({ event }) => (event.type === "note" ? event.text : event.type));
      expect(said).toEqual(Array.from({ length: emitted }, (_, i) => String(i)));
    }),
    { numRuns: 25 },
  );
});

async function play(steps: readonly unknown[], drawn: readonly Fate[]) {
  using place = createTestPlace();
  const drawFate = drawer(drawn);
  let host = await startTestHost(place.directory, place.run);
  let channel = await connect(place, host, drawFate);
  let emitted = 0;
  for (const each of steps) {
    if (each === "flush") await channel.flush();
    else if (each === "restart host") {
      await host[Symbol.asyncDispose]();
      host = await startTestHost(place.directory, place.run);
    } else if (each === "restart runner") {
      await channel[Symbol.asyncDispose]();
      channel = await connect(place, host, drawFate);
    } else {
      const { emit } = each as { readonly emit: number };
      await Promise.all(Array.from({ length: emit }, (_, i) => channel.emit(note(String(emitted + i)))));
      emitted += emit;
    }
  }
  await channel.flush();
  await channel[Symbol.asyncDispose]();
  const stored: NumberedEvent[] = await host.stored();
  await host[Symbol.asyncDispose]();
  return { emitted, stored };
}

async function connect(place: TestPlace, host: TestHost, drawFate: () => Fate): Promise<Channel> {
  const { socketPath, spool: directory } = place;
  const transport = unreliable(createTransport({ socketPath, token: host.run.token }), drawFate);
  const backoff = () => ({ nextMs: () => 1 });
  const channel = await openChannel({ transport, directory, instance: crypto.randomUUID(), backoff });
  await channel.hello();
  return channel;
}

function unreliable(transport: Transport, drawFate: () => Fate): Transport {
  let late: Request[] = [];
  const repeat = (request: Request) => transport.call(request, AbortSignal.timeout(5000)).catch(() => undefined);
  return {
    async call(request, signal) {
      const fate = drawFate();
      if (fate === "lost") throw new Error("lost");
      const due = late;
      late = fate === "again later" ? [request] : [];
      for (const old of due) await repeat(old);
      if (fate === "twice") await repeat(request);
      const answer = await transport.call(request, signal);
      if (fate === "unanswered") throw new Error("the answer is lost");
      return answer;
    },
    close: () => transport.close(),
  };
}

/** The fates again and again, and at times a good one, so that everything comes to its end. */
function drawer(drawn: readonly Fate[]): () => Fate {
  let count = 0;
  return () => {
    count += 1;
    return count % 5 === 0 ? "well" : (drawn[count % drawn.length] ?? "well");
  };
}
