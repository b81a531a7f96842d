import { join } from "node:path";
import { type CandidateId, gateResultSchema, newId } from "@slipway/contract";
import type { GateWork, OfferAnswer } from "@slipway/engine";
import { expect, test, vi } from "vitest";
import { task } from "../../testing/plans.ts";
import { testsOf, unique } from "../../testing/tests-of.ts";
import { begin, plan } from "../../testing/ticked-build.ts";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { createMergeWork } from "./merging.ts";

vi.setConfig({ testTimeout: 180_000 });

const list = "lists/one.txt";
type Files = Readonly<Record<string, string>>;

/** What an attempt makes at first, and what it makes of an answer, on top of the main that the answer names. */
interface Attempted {
  readonly first: Files;
  mend(site: WorldWith<"repository">, main: string): Promise<Files>;
}

const part = (id: string, says: string): Files => ({ [`parts/${id}.js`]: `export default "${says}";\n` });

/** Two of these add to the end of the same file. */
function textual(id: string): Attempted {
  const files = (before: string) => ({ ...part(id, id), [list]: `${before}${id}\n` });
  return {
    first: files("first\n"),
    mend: async ({ repository }, main) => files(`${(await repository.read(main, (path) => path === list)).get(list)}`),
  };
}

/** Two of these say the same, in files of their own. */
function behavioural(id: string): Attempted {
  return { first: part(id, "the same"), mend: async () => part(id, `other words of ${id}`) };
}

const attempted: Readonly<Record<string, Attempted>> = {
  "text-a": textual("text-a"),
  "text-b": textual("text-b"),
  "words-a": behavioural("words-a"),
  "words-b": behavioural("words-b"),
};

/** The queue as it is, on a real repository; gates are the app's own tests; attempts are only what they offer. */
async function setUp() {
  await using parts = new AsyncDisposableStack();
  const site = parts.use(
    await openWorld({
      repository: {
        ...part("base", "base"),
        "package.json": '{"type":"module"}\n',
        [list]: "first\n",
        "tests/unique.test.js": unique,
      },
    }),
  );
  const { repository, sandbox } = site;
  const set = await begin();
  await plan(
    set,
    Object.keys(attempted).map((id) => task(id)),
  );
  await set.tell("main.made", { commit: site.main, tree: await repository.treeOf(site.main) }, "main");
  for (const of of Object.keys(attempted)) await set.tell("attempt.heard", { task: of, attempt: 1, respawn: 0 });

  const runs: (Pick<GateWork, "task" | "gate" | "base"> & { readonly words: string })[] = [];
  let news = Promise.withResolvers<void>();
  const warnings: string[] = [];
  const merging = parts.use(
    createMergeWork({
      store: set.store,
      clock: { now: () => 0 },
      warn: (message) => void warnings.push(message),
      repositories: {
        of: async () => repository,
        has: async () => true,
        directoryOf: () => "",
        builds: async () => [],
      },
      gates: {
        async run(_, { task: of, gate, base, commit }) {
          const words = gate === "tests" || gate === "main-test" ? await testsOf(repository, commit) : "green";
          runs.push({ task: of, gate, base, words });
          const findings = words === "green" ? [] : [{ gate, text: words.slice(0, 2000) }];
          const verdict = words === "green" ? "passed" : "failed";
          return gateResultSchema.parse({ verdict, findings, durationMs: 0 });
        },
        satisfaction: async () => [],
      },
      preview: { follow: () => {}, close: async () => {} },
      onMain: async () => {},
      async report(build, events) {
        await set.store.events.report(build, events);
        news.resolve();
      },
    }),
  );

  const offer = async (of: string, number: number, base: string, files: Files) => {
    await sandbox.git(["fetch", "-q", join(site.directory, "build/repository.git"), "main"]);
    const commit = await sandbox.commit({ files, parents: [base] });
    const candidate: CandidateId = newId("cnd");
    const { tree } = await site.take(sandbox.bundle(commit, { needs: [base] }), { id: candidate, base });
    const life = { task: of, attempt: 1, respawn: 0, offer: number };
    await set.tell("candidate.offered", { ...life, candidate, commit, tree }, candidate);
  };
  const offerAgain = async (of: string, { offer: number, main }: OfferAnswer) => {
    const base = main ?? site.main;
    await offer(of, number + 1, base, (await attempted[of]?.mend(site, base)) ?? {});
  };
  const held = parts.move();
  return {
    set,
    repository,
    main: site.main,
    runs,
    warnings,
    offer,
    /** Turns until each task is on main. Each answer is taken once. */
    async untilMerged() {
      const answered = new Set<string>();
      for (;;) {
        news = Promise.withResolvers();
        const { promise } = news;
        await set.turn();
        const items = set.look();
        await merging.carryOut(await set.store.builds.get(set.build), items);
        const answers = items.flatMap((item) => (item.type === "attempt" && item.answer ? [item] : []));
        for (const { task: of, answer } of answers) {
          if (answer === null || answered.has(`${of} ${answer.offer}`)) continue;
          answered.add(`${of} ${answer.offer}`);
          await offerAgain(of, answer);
        }
        if (Object.values(await set.tasks()).every((status) => status === "merged")) return;
        if (answers.length === 0) await promise;
      }
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

test("of attempts that overlap in text, and of those that fail only together, all are merged in the end, each to a green main", async () => {
  await using world = await setUp();
  const { set, repository, main, runs, offer } = world;
  for (const [of, { first }] of Object.entries(attempted)) await offer(of, 1, main, first);
  await world.untilMerged();
  expect(world.warnings).toEqual([]);

  const events = await set.store.events.read(set.build, 0);
  const tasksOf = (type: string) => events.flatMap((event) => (event.type === type ? [`${event.data["task"]}`] : []));
  expect(tasksOf("merge.conflict")).toEqual([expect.stringMatching(/^text-/)]);
  expect(tasksOf("merge.test_failed")).toEqual([expect.stringMatching(/^words-/)]);
  // Each passes alone: what fails is one on top of the other, and it fails twice.
  const failed = runs.filter(({ words }) => words !== "green");
  expect(failed.length).toBeGreaterThan(1);
  for (const run of failed) {
    expect(run).toMatchObject({
      gate: "main-test",
      words: expect.stringMatching(/words-[ab]\.js says what words-[ab]/),
    });
  }
  for (const of of Object.keys(attempted)) {
    expect(runs).toContainEqual({ task: of, gate: "tests", base: null, words: "green" });
  }

  const merges = await set.store.builds.records(set.build, "merges");
  expect(merges.map(({ task: of }) => of).toSorted()).toEqual(Object.keys(attempted).toSorted());
  for (const { commit } of merges) expect(await testsOf(repository, commit), commit).toBe("green");
  const files = await repository.read(await repository.main(), () => true);
  expect(`${files.get(list)}`.trim().split("\n").toSorted()).toEqual(["first", "text-a", "text-b"]);
  const words = ["a", "b"].map((side) => `${files.get(`parts/words-${side}.js`)}`);
  expect(words.filter((says) => says.includes("the same"))).toHaveLength(1);
});
