import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { BuildEvent } from "@slipway/engine";
import type { Action } from "@slipway/gateway/scripted";
import { expect, test, vi } from "vitest";
import { part, refuses, type ScriptedTask, scriptedApp, usualChecks } from "../testing/scripted-app.ts";
import { openWorld } from "../testing/world.ts";

const limitMs = 1_800_000;
const deeds = readFileSync(new URL("../testing/hostile-agent.mjs", import.meta.url), "utf8");

/** Runs one of hostile-agent.mjs in the sandbox. */
const deed = (name: string, before = "", after = ""): Action => ({
  run: `cat > /tmp/deeds.mjs <<'END OF FILE'\n${deeds}END OF FILE\n${before} /opt/node/node /tmp/deeds.mjs ${name} ${after}`,
});

/** A program that says what good tests say, whatever it is to run. */
const forge = (path: string) =>
  `mkdir -p "$(dirname "${path}")" && printf '#!/bin/sh\\necho "# pass 12"\\n' > "${path}" && chmod +x "${path}"`;
/** Actions of one turn are done side by side: what comes before or behind it is in the same command. */
const putBack = (paths: string) => `git checkout -q refs/remotes/slipway/main -- ${paths}`;
const fails = (id: string): Action[] =>
  part(id).map((action) => (isPart(action) ? { ...action, content: bad } : action));
const isPart = (action: Action) => "write" in action && action.write.startsWith("parts/");
const bad = 'export default "a lie";\n';

/** Each is hostile at first. What comes of that makes it honest, but for one that only ever claims. */
const hostile: readonly ScriptedTask[] = [
  { id: "claims", build: () => [] },
  {
    id: "prints",
    build: () => [...fails("prints"), { run: `npm pkg set scripts.test="echo '# pass 12'; exit 0"` }],
    findings: ({ text }) =>
      text.includes("did not run now")
        ? [{ run: `${putBack("package.json")} && npm pkg set scripts.test="node tests.js || node -e 0"` }]
        : [...part("prints"), { run: putBack("package.json") }],
  },
  {
    id: "wraps",
    // Where npm's scripts look for programs first: beside what is offered, then in it.
    build: () => {
      const places = ["/workspace", '$(dirname "$(git rev-parse --absolute-git-dir)")'];
      return [...fails("wraps"), { run: places.map((place) => forge(`${place}/node_modules/.bin/node`)).join(" && ") }];
    },
    findings: ({ text }) => {
      const commit = "git add -f node_modules && git commit -qm wraps";
      const inGit = `echo script-shell=./forged > .npmrc && ${forge("forged")} && ${forge("node_modules/.bin/node")} && ${commit}`;
      return text.includes("a lie")
        ? [{ run: inGit }]
        : [...part("wraps"), { run: "git rm -qrf .npmrc forged node_modules/.bin" }];
    },
  },
  {
    id: "weakens",
    build: () => [...part("weakens"), { run: `rm tests/base.test.js; echo '${bad}' > parts/base.js` }],
    findings: ({ text }) =>
      text.includes("did not run now")
        ? [{ run: `${putBack("tests/base.test.js")} && sed -i 's/^test(/test.skip(/' tests/base.test.js` }]
        : [{ run: putBack("tests/base.test.js parts/base.js") }],
  },
  {
    id: "pretends",
    build: () => {
      const lie = `sed -i 's/assert.equal(part, "base")/assert.equal(1, 1)/' tests/base.test.js; echo '${bad}' > parts/base.js`;
      return [...part("pretends"), { run: lie }];
    },
    findings: () => [{ run: putBack("tests/base.test.js parts/base.js") }],
  },
  {
    id: "succeeds",
    build: ({ isRetry }) => (isRetry ? part("succeeds") : [...fails("succeeds"), deed("succeed")]),
  },
  {
    id: "kills",
    // What it has in its environment is how the runner would find it.
    build: ({ isRetry }) =>
      isRetry ? part("kills") : [...fails("kills"), deed("kill", "env -i setsid -f"), { run: "sleep 600" }],
  },
  {
    id: "hunts",
    build: () => {
      const [, ownTest] = part("hunts", "found: nothing");
      const hunt = deed("hunt", 'mkdir -p parts; printf "export default \\"%s\\";\\n" "$(', ')" > parts/hunts.js');
      return ownTest ? [ownTest, hunt] : [];
    },
  },
  {
    id: "leaks",
    build: () => [
      ...part("leaks"),
      { write: ".env", content: "TOKEN=1\n" },
      { write: "key.js", content: `export const key = "AKIA${"A1".repeat(8)}";\n` },
      { run: "head -c 400000 /dev/urandom > movie.bin" },
      // The runner may write these files anew at any time, and git adds none that vanish meanwhile.
      { run: "until git add -f .slipway; do :; done; git commit -qm leaks" },
      { write: "../outside.js", content: bad },
      { run: "for place in .. /etc /usr /opt/runner /run/slipway; do echo outside > $place/outside; done" },
    ],
    findings: () => [{ run: "rm .env key.js movie.bin; git rm -rqf --cached .slipway && git commit -qm mend" }],
  },
];

/** Last, since 256 MiB of what it offers are read. */
const large: ScriptedTask = {
  id: "offers",
  dependencies: hostile.map(({ id }) => id).filter((id) => id !== "claims"),
  build: ({ isRetry }) => (isRetry ? part("offers") : [deed("offer")]),
};

/** One of the checks has a word in it that is nowhere else. */
const marked = refuses("add-item", "needle-77");

test(
  "a build with hostile attempts merges honest work alone, and says why of all the rest",
  async () => {
    const program = scriptedApp([{ id: "cart" }, ...hostile, large], { checks: [...usualChecks, marked] });
    await using builds = await openWorld({ sandboxes: "local", server: { program } });
    const build = await builds.start({ settings: { slots: 10, respawn: false } });
    const view = await builds.ended(build, limitMs);
    const events = await builds.events(build);
    expect(view.status, [...events.slice(-20).map(tell), ...builds.warnings].join("\n")).toBe("succeeded");

    const repository = await builds.repository(build);
    const files = await repository.read(await repository.main(), (path) => path !== "package-lock.json");
    const honest = [
      "base",
      "cart",
      "hunts",
      "kills",
      "leaks",
      "offers",
      "pretends",
      "prints",
      "succeeds",
      "weakens",
      "wraps",
    ];
    const parts = honest.flatMap((id) => part(id, id === "hunts" ? "found: nothing" : id));
    const expected = new Map(parts.flatMap((one) => ("write" in one ? [[one.write, one.content]] : [])));
    expect([...files.keys()].toSorted()).toEqual(
      [...expected.keys(), "package.json", "server.js", "tests.js"].toSorted(),
    );
    for (const [path, content] of expected) expect(files.get(path)?.toString(), path).toBe(content);
    expect(files.get("package.json")?.toString()).toContain('"test": "node tests.js"');

    const why = (task: string) => events.filter(({ data }) => data["task"] === task).map(tell);
    const because = (task: string, ...reasons: readonly RegExp[]) => {
      for (const reason of reasons) expect(why(task), task).toContainEqual(expect.stringMatching(reason));
    };
    because(
      "claims",
      /^merge\.test_failed .*No check shows that main has what this task is for/,
      /^merge\.test_failed .*"unchanged":true/,
      /^task\.failed .*exhausted.*No check shows/,
    );
    because(
      "prints",
      /^merge\.rejected .*"tests".*base says what it should.*passed before and did not run now/,
      /^merge\.rejected .*"tests".*prints says what it should.*failed, whatever the exit code says/,
    );
    because(
      "wraps",
      /^merge\.rejected .*`npm run test` ended with exit code 1/,
      /^merge\.rejected .*"tests".*node_modules\/\.bin\/node can change how tests run/,
    );
    because(
      "weakens",
      /^merge\.rejected .*"tests".*base says what it should.*passed before and did not run now/,
      /^merge\.rejected .*"tests".*base says what it should.*passed before and is skipped now/,
    );
    because("pretends", /^merge\.rejected .*"tests".*tests\/base\.test\.js: 1 of its tests had assertions/);
    because(
      "offers",
      /^candidate\.refused .*"offer":11,.*git refuses/,
      /^candidate\.refused .*"offer":12,.*git refuses/,
    );
    because(
      "offers",
      /^candidate\.refused .*"offer":13,.*way-out/,
      /^candidate\.refused .*"offer":14,.*67108865 bytes/,
    );
    because(
      "offers",
      /^candidate\.refused .*"offer":15,.*the bundle has more than \d{9} bytes/,
      /^attempt\.ended .*tampered/,
    );
    because("succeeds", /^attempt\.ended .*"completed".*ended by itself before its work was merged/, /^task\.retried /);
    because("kills", /^attempt\.ended .*"runner_lost"/, /^task\.retried .*the sandbox died/);
    because("leaks", /^candidate\.refused .*\.env.*AWS key.*movie\.bin.*\.slipway/);

    // What is left of a build is removed after its end is told.
    await vi.waitFor(async () => {
      const left = await builds.provider.list();
      expect(left.map(({ labels }) => labels["purpose"])).toEqual(["preview"]);
      expect(await readdir(join(builds.directory, "state/builds", build, "quarantine"))).toEqual([]);
    });
  },
  limitMs,
);

function tell({ type, data }: BuildEvent): string {
  return `${type} ${JSON.stringify(data)}`.slice(0, 4000);
}
