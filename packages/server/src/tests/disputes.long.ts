import { type BuildId, type Check, type DisputeView, hasCode, type Surface } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { localUser } from "../faces/principal.ts";
import { criteria } from "../simulated/generated.ts";
import { part, refuses, scriptedApp, shows } from "../testing/scripted-app.ts";
import { openWorld, type WorldWith } from "../testing/world.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const surface: Surface = {
  pages: [
    { id: "home", path: "/", purpose: "All parts" },
    { id: "shop", path: "/shop", purpose: "The shop" },
  ],
  controls: [{ id: "order", page: "shop", role: "button", name: "Order now" }],
  messages: [
    { id: "parts", text: "parts", one: null, when: "Always" },
    { id: "ordered", text: "Ordered", one: null, when: "Something was ordered" },
  ],
  routes: ["/", "/cart", "/till", "/{part}"].map((path) => ({
    id: path === "/" ? "get-home" : path === "/{part}" ? "get-part" : `get-${path.slice(1)}`,
    method: "GET",
    path,
    purpose: path,
    request: [],
    response: [],
  })),
};

const [ofCart = "", ofTill = "", ofShop = "", ...others] = criteria;

/** The app answers, but for nothing that is not there; and `route` is answered, or is not. */
function called(proves: string, route: string, answer: "accepted" | "refused"): Check {
  const { calls, ...check } = refuses(proves, "no-such-part") as Extract<Check, { type: "calls" }>;
  const expect = { answer, has: [], lacks: [] };
  return { ...check, calls: [...calls, { route, with: [], send: [], expect, keep: [] }] };
}

const wrongCheck = called(ofCart, "get-cart", "refused");
const rightCheck = called(ofCart, "get-cart", "accepted");
const checks: readonly Check[] = [
  wrongCheck,
  called(ofTill, "get-till", "accepted"),
  {
    type: "visit",
    proves: ofShop,
    viewport: "phone",
    appearance: null,
    steps: [
      { action: "open", page: "shop" },
      { action: "click", control: "order", with: [] },
      { action: "see", what: { message: "ordered", with: [] } },
    ],
  },
  ...others.map((proves) => refuses(proves, "no-such-part")),
  ...["pack", "start-over"].map((proves) => shows(proves, "home", "parts")),
];

let tries = 0;
const shopWith = (button: string) =>
  part("shop", `<!doctype html><button onclick="out.textContent='Ordered'">${button}</button><p id=out></p>`);

const app = scriptedApp(
  [
    // Sound from the first: whatever its agent changes, its check keeps failing.
    { id: "cart", criteria: [ofCart], findings: () => [{ write: "cart.txt", content: `try ${++tries}\n` }] },
    {
      id: "till",
      criteria: [ofTill],
      build: () => part("note", "The check of the till is wrong, and the judge has to say so."),
      // It has a till only once somebody says that it needs one.
      findings: ({ text }) =>
        text.includes("A till is missing") ? part("till") : part("note", `The check is wrong, says try ${++tries}.`),
    },
    {
      id: "shop",
      criteria: [ofShop],
      // It takes whatever name a finding tells it.
      build: () => shopWith("Buy"),
      findings: ({ text }) =>
        shopWith(/The button \\?"([^"\\]+)\\?", which the surface has/.exec(text)?.[1] ?? "Purchase"),
    },
  ],
  { checks, surface },
);

/** A judge who finds every check wrong, and a compiler who then demands nothing of the till. */
const easilyConvinced: ScriptedProgram = (request) => {
  const schema = JSON.stringify(request.answerSchema?.schema ?? null);
  if (schema.includes('"advice"')) {
    return { object: { wrong: "check", because: "Nothing of that is promised.", advice: null } };
  }
  if (schema.includes('"check"') && !schema.includes('"checks"')) {
    const isCart = request.lastPrompt.includes(`"proves": "${ofCart}"`) && request.lastPrompt.includes("get-cart");
    return { object: { check: isCart ? rightCheck : refuses(ofTill, "another-part") } };
  }
  return app(request);
};

let builds: WorldWith<"sandboxes" | "server">;
let build: BuildId;
beforeAll(async () => {
  builds = await openWorld({ sandboxes: "local", server: { program: easilyConvinced } });
  build = await builds.start({});
});
afterAll(() => builds[Symbol.asyncDispose]());

async function disputeOf(criterion: string, status: DisputeView["status"]): Promise<DisputeView> {
  return await vi.waitFor(
    async () => {
      const { disputes } = await builds.server.face.disputes(localUser, build);
      const found = disputes.find((one) => one.criterion === criterion && one.status === status);
      if (found === undefined) throw new Error(`${criterion} is not at ${status}: ${JSON.stringify(disputes)}`);
      return found;
    },
    { timeout: 120_000, interval: 500 },
  );
}

test("a wrong check that sound work keeps failing is compiled anew, recorded with both versions and shown", async () => {
  const { check, step, replacement, by, because } = await disputeOf(ofCart, "check");
  expect({ by, because }).toEqual({ by: "judge", because: "Nothing of that is promised." });
  expect(check).toEqual(["GET / is accepted", "GET /no-such-part is refused", "GET /cart is refused"]);
  expect(check[step]).toBe("GET /cart is refused");
  expect(replacement).toEqual(["GET / is accepted", "GET /no-such-part is refused", "GET /cart is accepted"]);
  const records = await builds.server.store.builds.records(build, "disputes");
  expect(records.find(({ criterion }) => criterion === ofCart)?.replacement).toEqual({
    before: wrongCheck,
    after: rightCheck,
  });
});

test("an agent wins no dispute by words: a check that its missing work passes is none, and the user decides", async () => {
  const { number, because, replacement } = await disputeOf(ofTill, "user");
  expect(replacement).toBeNull();
  expect(because).toContain("passes on main without the work that it is about");
  const view = await builds.server.face.get(localUser, build);
  expect(view.disputes).toEqual([{ number, criterion: ofTill }]);
  expect(view.candidates.find(({ task }) => task === "till")?.reason).toContain("until you decide");

  const ruling = { wrong: "app" as const, because: "A till is missing at /till." };
  expect(await builds.server.face.settleDispute(localUser, build, number, ruling)).toMatchObject({
    status: "app",
    by: "user",
  });
  const again = builds.server.face.settleDispute(localUser, build, number, ruling);
  await expect(again).rejects.toSatisfy((error) => hasCode(error, "dispute_settled"));
});

test("the build then ends with all of it merged, other words after one finding", async () => {
  const { status, taskList } = await builds.ended(build);
  expect(status, builds.warnings.join("\n")).toBe("succeeded");
  expect(taskList.map(({ status: task }) => task)).toEqual(["merged", "merged", "merged", "merged"]);
  const events = await builds.events(build);
  const rejected = events.filter(({ type, data }) => type === "merge.rejected" && data["task"] === "shop");
  expect(rejected).toHaveLength(1);
  expect(rejected[0]?.data["finding"]).toContain("Buy");
  const told = JSON.stringify(events.filter(({ type }) => type === "merge.rejected"));
  expect(told).not.toContain("no-such-part");
});
