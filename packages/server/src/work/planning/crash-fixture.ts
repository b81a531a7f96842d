import process from "node:process";
import { planner } from "@slipway/gateway/scripted";
import { openWorld } from "../../testing/world.ts";

/** Plans a build until the question that it is given, tells of it, and hangs there. */
const marks = { checks: '"proves"', plan: '"expectedFiles"' };
const mark = marks[process.argv[2] as keyof typeof marks];

const site = await openWorld({
  planning: {},
  model(request) {
    if (!JSON.stringify(request.answerSchema).includes(mark)) return planner(request);
    process.stdout.write(`${JSON.stringify({ directory: site.directory, build: site.build })}\n`);
    return { text: "{", paceMs: 60_000 };
  },
});
await site.drive();
