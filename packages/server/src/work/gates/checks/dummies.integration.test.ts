import process from "node:process";
import type { Check, Surface } from "@slipway/contract";
import type { Dummies } from "@slipway/engine";
import type { CallOptions, SandboxProvider } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { checks } from "../../../../../../examples/demo-build/checks.ts";
import { intent } from "../../../../../../examples/demo-build/intent.ts";
import { sandboxesOf } from "../../../testing/processes.ts";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import { patientDummies } from "../../planning/patience.ts";
import { app, surface } from "../testing.ts";
import { createDummies } from "./dummies.ts";

// Chromium takes seconds to start, and more beside other tests.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });
const soon = { timeout: 60_000 };

const labels = { build: "one", purpose: "checker", planning: "lock-1" };
let site: WorldWith<"sandboxes" | "repository" | "gates">;
let dummies: Dummies;
beforeAll(async () => {
  site = await openWorld({ sandboxes: "local", repository: app, gates: {} });
  dummies = createDummies({ provider: site.provider, labels });
});
afterAll(async () => await site[Symbol.asyncDispose]());

const demo: Surface = intent.surface;

test("the demo's checks fail on an empty page and on an app that answers all alike, and nothing is left of that", async () => {
  // What a process that was killed has left.
  await site.provider.create({ labels, onEnd: "destroy" });
  expect(await dummies.passing(demo, checks, {})).toEqual([]);
  expect(await site.provider.list()).toEqual([]);
});

test("checks that pass on an app that does nothing are named, each with where it does", async () => {
  const given = [
    visit({ action: "see-nothing-of", what: { control: "add", with: [] } }),
    visit({ action: "see-nothing-of", what: { value: "answered alike" } }),
    visit({ action: "see", what: { value: "answered alike" } }),
    visit({ action: "see", what: { control: "add", with: [] } }),
    calls("accepted"),
    calls("refused"),
    loads({ value: "answered alike" }),
    loads({ control: "add", with: [] }),
  ];
  const passed = await dummies.passing(surface, given, {});
  expect(passed.map(({ check, dummy }) => `${check} ${dummy}`)).toEqual([
    ...["0 empty", "1 empty", "4 empty"],
    ...["0 constant", "2 constant", "4 constant", "6 constant"],
  ]);
});

test("calls alone need no browser", async () => {
  const create = () => Promise.reject(new Error("a sandbox is made"));
  const alone = createDummies({ provider: { ...site.provider, create }, labels });
  expect(await alone.passing(surface, [calls("refused")], {})).toEqual([]);
  await expect(alone.passing(surface, [visit({ action: "reload" })], {})).rejects.toThrow("a sandbox is made");
});

test.each([
  ["the browser", "/checker/browser/main.ts"],
  ["the program that judges", "/checker/main.ts"],
])(
  "a check is no verdict if a kill ends the sandbox of %s: all are made again, with nothing left",
  async (_, program) => {
    const ends: string[] = [];
    const noted: Dummies = {
      async passing(...given) {
        const made = dummies.passing(...given);
        await made.then(
          () => ends.push("made"),
          ({ name }: Error) => ends.push(name),
        );
        return await made;
      },
    };
    const passed = patientDummies(noted, [0]).passing(demo, checks, {});
    const target = await vi.waitFor(() => sandboxWith(program), soon);
    const init = sandboxesOf(site.stateDirectory).find(({ id }) => id === target)?.init;
    if (init === undefined) throw new Error(`${target} does not run`);
    process.kill(init.pid, "SIGKILL");
    expect(await passed).toEqual([]);
    expect(ends).toEqual(["SlipwayError", "made"]);
    expect(await site.provider.list()).toEqual([]);
  },
);

test("a browser that reaches no app says nothing of a check", async () => {
  const create: SandboxProvider["create"] = async (request, options) => {
    const made = await site.provider.create(request, options);
    if (request?.ports?.length !== 1) return made;
    const openChannel: typeof made.openChannel = async (given) => {
      const channel = await made.openChannel(given);
      async function* connections(options?: CallOptions) {
        for await (const one of channel.connections(options)) yield one.destroy();
      }
      return { ...channel, connections };
    };
    return { ...made, openChannel };
  };
  const blind = createDummies({ provider: { ...site.provider, create }, labels });
  const nothing = visit({ action: "see", what: { control: "add", with: [] } });
  await expect(blind.passing(surface, [nothing], {})).rejects.toThrow("does not see a page that is there");
});

test("a caller that gives up is told so, and leaves nothing", async () => {
  const { signal, abort } = withAbort();
  const given = dummies.passing(demo, checks, { signal });
  given.catch(() => {});
  await vi.waitFor(() => sandboxWith("/checker/main.ts"), soon);
  abort();
  await expect(given).rejects.toThrow();
  expect(await site.provider.list()).toEqual([]);
});

function withAbort() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

type VisitStep = Extract<Check, { type: "visit" }>["steps"][number];
type Seen = Extract<VisitStep, { action: "see" }>["what"];

function visit(step: VisitStep): Check {
  const steps: VisitStep[] = [{ action: "open", page: "home" }, step];
  return { type: "visit", proves: "one", viewport: "phone", steps, appearance: null };
}

function calls(answer: "accepted" | "refused"): Check {
  const call = { route: "all", with: [], send: [], expect: { answer, has: [], lacks: [] }, keep: [] };
  return { type: "calls", proves: "one", calls: [call] };
}

function loads(sees: Seen): Check {
  return { type: "measure", proves: "one", page: "home", sees, metric: "interactionMs", atMost: 60_000 };
}

/** The sandbox in which this program was started. */
async function sandboxWith(program: string) {
  for (const { id } of await site.provider.list({ labels })) {
    const execs = await (await site.provider.get(id)).execs();
    if (execs.some(({ argv }) => argv.some((one) => one.endsWith(program)))) return id;
  }
  throw new Error(`no sandbox has started ${program}`);
}
