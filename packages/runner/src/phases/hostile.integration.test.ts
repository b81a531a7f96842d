import { describe, expect, test } from "vitest";
import { agentThat, doing } from "./testing/agent.ts";
import { rightSum, wrongSum } from "./testing/project.ts";
import { startAttempt as start } from "./testing/start.ts";

describe("an agent that", () => {
  test.each([
    ["changes nothing", []],
    ["changes nothing, though the install has left its lock file", [{ run: "echo {} > package-lock.json" }]],
  ])("%s offers main unchecked and learns what it lacks", async (_, actions) => {
    const { channel, over, project, offered } = await start(
      agentThat({
        build: doing(actions, "All is done and tested!"),
        findings: doing([{ write: "sum.mjs", content: rightSum }]),
      }),
    );
    const { base } = project;
    expect(await offered(1)).toMatchObject({ commit: base, main: base, changed: 0 });
    expect(await project.commandsRun()).toEqual([]);
    channel.send({ type: "findings", offer: 1, findings: [{ gate: "main-test", text: "It adds nothing." }] });
    await offered(2);
    channel.send({ type: "merged" });
    await over;
    expect(await project.show(await project.take(2), "sum.mjs")).toBe(rightSum.trim());
    // The agent was asked about its criteria once there was something to ask about.
    expect(channel.events).toContainEqual(expect.objectContaining({ type: "criterion", criterion: "adds" }));
  });

  test("deletes tests is reported in the offer", async () => {
    const { channel, over, offered } = await start(
      agentThat({
        build: doing([
          { run: "git rm -q test/sum.test.mjs && mkdir -p test && echo > test/other.test.mjs" },
          { write: "sum.mjs", content: wrongSum },
        ]),
      }),
      { order: { commands: {} } },
    );
    expect(await offered(1)).toMatchObject({
      tests: { changed: ["test/other.test.mjs"], deleted: ["test/sum.test.mjs"] },
    });
    channel.send({ type: "merged" });
    await over;
  });

  test.each([
    ["deletes the repository's link", "rm -rf .git"],
    [
      "makes a repository of its own",
      "rm -f .git && git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm own",
    ],
    ["deletes the branch", "git checkout -q --detach && git branch -qD attempt/sum-1"],
    ["leaves for another branch", "git checkout -qb elsewhere"],
    [
      "looks at the first commit and stays there",
      "git add -A; git commit -qm mine; git checkout -q --detach HEAD~1 2>/dev/null; true",
    ],
    ["commits by itself", "git add -A && git commit -qm mine"],
    ["deletes every ref", "git for-each-ref --format='delete %(refname)' | git update-ref --stdin"],
    [
      "breaks the repository's settings",
      "d=$(git rev-parse --git-dir); echo nonsense > $d/config; echo nonsense > $d/HEAD",
    ],
    ["leaves a repository inside", "git init -q inner && touch inner/file"],
    ["leaves a lock", "touch $(git rev-parse --git-dir)/index.lock"],
    [
      "sets hooks and filters that fail",
      "git config core.hooksPath /bin && git config commit.gpgsign true && git config core.bare true",
    ],
  ])("%s has its work offered", async (_name, command) => {
    const { channel, over, project, offered } = await start(
      agentThat({ build: doing([{ write: "sum.mjs", content: rightSum }, { run: command }]) }),
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    const commit = await project.take(1);
    expect(await project.show(commit, "sum.mjs")).toBe(rightSum.trim());
    expect(await project.git("merge-base", commit, "main")).toBe(project.base);
  });

  test("says nothing about a criterion is asked once more, and the run reports none", async () => {
    let asked = 0;
    const { channel, over, offered } = await start(
      agentThat({
        intent: ({ step }) => {
          if (step === 0) asked++;
          return { text: "All is well." };
        },
      }),
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(asked).toBe(2);
    expect(channel.events.some(({ type }) => type === "criterion")).toBe(false);
  });

  test.each([
    ["overloaded", { fault: { status: 529 } }],
    ["refused", { fault: "refusal" }],
  ] as const)("is %s by its model ends the run with that reason", async (reason, turn) => {
    const { over, end } = await start(agentThat({ build: () => turn }));
    await over;
    expect(end()).toMatchObject({ reason });
  });

  test("has no base commit fails at once", async () => {
    const { over, end } = await start(agentThat(), { order: { base: "2".repeat(40) } });
    await over;
    expect(end()).toMatchObject({ reason: "setup_failed", message: expect.stringContaining("2".repeat(40)) });
  });
});
