import { type BuildView, type DisputeView, SlipwayError } from "@slipway/contract";
import { expect, test } from "vitest";
import { runCli } from "../../testing/run-cli.ts";
import { buildView, createStubServer } from "../../testing/stub-server.ts";

const view = buildView();
const check = ["open /", 'fill the textbox "Item" with "Socks"', 'see "Socks"'];
const dispute: DisputeView = {
  number: 1,
  task: "list",
  criterion: "adds",
  status: "user",
  by: "judge",
  because: "It could not be decided.",
  check,
  step: 2,
  replacement: null,
  openedAt: 1,
  endedAt: null,
};

async function run(argv: readonly string[], disputes: readonly DisputeView[] = [], of?: BuildView | null, parts = {}) {
  const settled: unknown[] = [];
  const server = createStubServer(of === null ? [] : [of ?? view], {
    disputes: async () => ({ disputes: [...disputes] }),
    async settleDispute(build, number, ruling, options) {
      settled.push([build, number, ruling, options?.key]);
      return { ...dispute, number, status: "app", by: "user", because: ruling.because };
    },
    ...parts,
  });
  const env = { NO_COLOR: "1" };
  return { ...(await runCli(argv, { server, terminal: true, env })), settled };
}

const howToDecide = (number: number) =>
  ["app", "check"].map((wrong) => `slipway disputes --settle ${number} --wrong ${wrong} --because "<why>" ${view.id}`);

test("disputes are shown with their check, the step that fails, and how to decide the one that waits", async () => {
  const { code, stdout, stderr } = await run(["disputes"], [dispute]);
  expect({ code, stdout: stdout.split("\n") }).toEqual({
    code: 0,
    stdout: [
      "1. adds, failed by list: waits for you",
      "   It could not be decided.",
      "   the check:",
      "     open /",
      '     fill the textbox "Item" with "Socks"',
      '   ✗ see "Socks"',
      "",
    ],
  });
  for (const command of howToDecide(1)) expect(stderr).toContain(command);
});

test.each<[string, Partial<DisputeView>, string]>([
  ["a model looks at", { status: "judge", because: null }, "a model decides"],
  ["the user has sent back", { status: "judge", by: "user" }, "the check is wrong (you); it is compiled anew"],
  ["the app lost", { status: "app" }, "the app is wrong (a model)"],
  ["the user decided for the check", { status: "app", by: "user" }, "the app is wrong (you)"],
  ["the check lost", { status: "check", replacement: [...check, "reload the page"] }, "the check was wrong (a model)"],
  ["the user decided against the check", { status: "check", by: "user" }, "the check was wrong (you)"],
])("a dispute that %s says so, and asks for nothing", async (_, change, words) => {
  const { stdout, stderr } = await run(["disputes"], [{ ...dispute, ...change }]);
  expect(stdout.split("\n")[0]).toBe(`1. adds, failed by list: ${words}`);
  expect(stdout.includes("compiled anew:\n     open /")).toBe("replacement" in change);
  expect(stderr).not.toContain("--settle");
});

test("several are apart, the first that waits is the one to decide, and hostile text is harmless", async () => {
  const hostile = "Nobody\u001b[2J\nasked \u202ethat";
  const closed: DisputeView = { ...dispute, status: "app", because: hostile, check: [`see "${hostile}"`], step: 0 };
  const { stdout, stderr } = await run(["disputes", view.id], [closed, { ...dispute, number: 2 }]);
  expect(stdout).toContain('   ✗ see "Nobody asked that"\n\n2. adds');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  for (const command of howToDecide(2)) expect(stderr).toContain(command);
});

test("a build without disputes says so, and one that has ended has nothing to decide", async () => {
  const none = await run(["disputes"]);
  expect({ code: none.code, stdout: none.stdout }).toEqual({ code: 0, stdout: "" });
  expect(none.stderr).toContain(`${view.id} has no disputed checks`);
  const ended = { ...view, status: "failed", endedAt: 1 } as const;
  const { stderr } = await run(["disputes"], [dispute], ended);
  expect(stderr).toContain("has ended: nothing is left to decide");
  expect(stderr).not.toContain("--settle");
});

test("a ruling goes to the server under a key of its own, and the dispute is shown as it is then", async () => {
  const argv = ["disputes", "--settle", "3", "--wrong", "app", "--because", "It shows nothing.", view.id];
  const { code, stdout, settled } = await run(argv);
  expect(settled).toEqual([
    [view.id, 3, { wrong: "app", because: "It shows nothing." }, expect.stringMatching(/^[\w-]{36}$/)],
  ]);
  expect({ code, first: stdout.split("\n").slice(0, 2) }).toEqual({
    code: 0,
    first: ["3. adds, failed by list: the app is wrong (you)", "   It shows nothing."],
  });
});

test("--json prints disputes and rulings as they come, and nothing beside", async () => {
  const listed = await run(["--json", "disputes"], [dispute]);
  expect({ ...listed, stdout: JSON.parse(listed.stdout) }).toMatchObject({
    stdout: { disputes: [dispute] },
    stderr: "",
  });
  expect(JSON.parse((await run(["--json", "disputes"])).stdout)).toEqual({ disputes: [] });
  const argv = ["--json", "disputes", "--settle", "1", "--wrong", "app", "--because", "No."];
  expect(JSON.parse((await run(argv)).stdout)).toMatchObject({ number: 1, status: "app", because: "No." });
});

test.each<[string, string[], RegExp]>([
  ["no number", ["--wrong", "app", "--because", "No."], /--settle, --wrong and --because go together/],
  ["nothing wrong", ["--settle", "1", "--because", "No."], /--settle <number> --wrong app\|check --because/],
  ["no reason", ["--settle", "1", "--wrong", "app"], /--settle, --wrong and --because go together/],
  ["a third culprit", ["--settle", "1", "--wrong", "judge", "--because", "No."], /"judge" is not one of app, check/],
  ["a number that is none", ["--settle", "one", "--wrong", "app", "--because", "No."], /--settle: "one"/],
  [
    "the number 0",
    ["--settle", "0", "--wrong", "app", "--because", "No."],
    /--settle: "0" is not a whole number from 1/,
  ],
])("a ruling with %s is refused before anything is sent, or any build looked for", async (_, argv, expected) => {
  const { code, stderr, settled } = await run(["disputes", ...argv], [dispute], null);
  expect({ code, settled }).toEqual({ code: 125, settled: [] });
  expect(stderr).toMatch(expected);
  expect(stderr).toContain("code: invalid_request");
});

test("what the server refuses is told with its code", async () => {
  const refuse = () => Promise.reject(new SlipwayError("dispute_settled", "Dispute 1 does not wait for you."));
  const argv = ["disputes", "--settle", "1", "--wrong", "check", "--because", "No."];
  const { code, stderr } = await run(argv, [], view, { settleDispute: refuse });
  expect(code).toBe(125);
  expect(stderr).toMatch(/Dispute 1 does not wait for you\..*code: dispute_settled/s);
});
