import type { Action, ScriptedRequest, Turn } from "@slipway/gateway/scripted";
import { type AddedLine, filesOf, withBothSides, withLines } from "./app.ts";
import { givenTask, lastOrder, type Order, type OrderName } from "./orders.ts";
import { type DemoWork, workOn } from "./plan.ts";

/** Returns the next turn of an agent on one of the demo's tasks. */
export function agentTurn({ request, tools }: ScriptedRequest): Turn {
  const order = lastOrder(request.messages);
  const given = givenTask(request.messages);
  const task = workOn(given?.title ?? "");
  if (order === undefined || given === undefined || task === undefined) return { text: "This is no task of mine." };
  const offers = (tool: string) => tools.some((name) => name.endsWith(tool));
  const tries = given.isFirstTry ? (task.work.firstTries ?? []) : [];
  return nextTurn(scripts[order.name]({ ...task, order, tries, offers }), order.turns);
}

interface Assignment {
  readonly id: string;
  readonly work: DemoWork;
  readonly order: Order;
  /** The failing first try, and its failing repair. */
  readonly tries: readonly string[];
  offers(tool: string): boolean;
}

/** Successive turns. A turn may depend on the previous turn's results. The last turn only speaks. */
type Script = readonly ((results: readonly string[]) => Turn)[];

/** Returns the first turn that is not finished. */
function nextTurn(script: Script, taken: Order["turns"]): Turn {
  let results: readonly string[] = [];
  let count = 0;
  for (const step of script) {
    const turn = step(results);
    const done = taken[count];
    // A turn that was cut short may be partly done: repeat all of it.
    const wasCutShort = done !== undefined && done.length < (turn.actions?.length ?? 0);
    if (done === undefined || wasCutShort || turn.actions === undefined) return turn;
    results = done;
    count++;
  }
  return { text: "There is nothing left to do." };
}

const scripts: Readonly<Record<OrderName, (assignment: Assignment) => Script>> = {
  build: buildScript,
  fix: fixScript,
  conflict: conflictScript,
  criteria: criteriaScript,
  findings: () => [
    () => act("I look at what my branch has.", { run: "git status --short; git log --oneline -5" }),
    () => say("My work is as it should be; what others have changed, I put together with it when main comes."),
  ],
  more: () => [() => say("My task is done; there is nothing to add.")],
};

function buildScript({ id, work, tries: [inVain], offers }: Assignment): Script {
  const { says, rewrites = [], adds = [], tells } = work;
  const files = new Map([...filesOf(id), ...(inVain === undefined ? [] : filesOf(inVain))]);
  const shared = [...new Set(adds.map(({ file }) => file))];
  return [
    ...when(shared.length > 0 && offers("claim_files"), () =>
      act("Others may work here, too.", { tool: "claim_files", input: { paths: shared } }),
    ),
    ...when(rewrites.length > 0, () => act(says, ...rewrites.map((read) => ({ read })))),
    () => act(rewrites.length > 0 ? "Now I write." : says, ...writes(files)),
    ...when(shared.length > 0, () => act("I look at what others use as well.", show(shared))),
    ...when(shared.length > 0, ([shown = ""]) => act("I add my lines.", ...rewritten(shown, shared, adds))),
    ...when(tells !== undefined && offers("tell_others"), () =>
      act("The others should know this.", { tool: "tell_others", input: { title: id, text: tells ?? "" } }),
    ),
    ...when(files.has("package-lock.json"), () => act("I install what it depends on.", { run: "npm ci" })),
    () => act("I run the tests.", test),
    ([shown = ""]) => say(isGreen(shown) ? "Done, and the tests pass." : "This is what I have; a test still fails."),
  ];
}

function fixScript({ tries, order }: Assignment): Script {
  const next = tries[order.number];
  if (next === undefined) {
    return [() => act("I run the tests again.", test), () => say("I can not find the cause from here.")];
  }
  return [
    () => act("I think that I see it: a name may have spaces around it.", ...writes(filesOf(next))),
    () => say("That should mend it."),
  ];
}

function conflictScript({ order }: Assignment): Script {
  // Ignore the changes after the paths: their lines can look like paths.
  const [list = ""] = order.text.split("\n<", 1);
  const paths = [...list.matchAll(/^- (.+)$/gm)].map(([, path = ""]) => path);
  return [
    () => act("Main and I have changed the same lines. I look at both sides.", show(paths)),
    ([shown = ""]) =>
      act(
        "Both are needed: I keep the lines of both, in order.",
        ...paths.map((path) => overwrite(path, withBothSides(shownText(shown, path)))),
      ),
    () => act("I run the tests of both.", test),
    ([shown = ""]) => say(isGreen(shown) ? "Both sides work together." : "The sides do not work together yet."),
  ];
}

function criteriaScript({ order, offers }: Assignment): Script {
  if (!offers("state_criterion")) return [() => say("As far as my task goes, they hold.")];
  const criteria = [...order.text.matchAll(/^- ([a-z0-9-]+): /gm)].map(([, id = ""]) => id);
  const evidence = "npm test passes with the tests of this task's part; the rest of it is other tasks'.";
  return [
    () =>
      act(
        "My task's part of these is there.",
        ...criteria.map((criterion) => ({
          tool: "state_criterion",
          input: { criterion, satisfied: true, evidence },
        })),
      ),
    () => say("I have said what shows each of them."),
  ];
}

const test: Action = { run: 'npm test; echo "tests ended with $?"' };

function isGreen(shown: string): boolean {
  return shown.includes("tests ended with 0");
}

function writes(files: ReadonlyMap<string, string>): Action[] {
  return [...files].map(([write, content]) => ({ write, content }));
}

/** Shows whole, unchanged files, whatever an agent's own reading tool does to them. */
function show(paths: readonly string[]): Action {
  return { run: paths.map((path) => `echo '--- ${path}'; cat '${path}'; echo '--- end'`).join("; ") };
}

function shownText(shown: string, path: string): string {
  const [, rest = ""] = shown.split(`--- ${path}\n`);
  return rest.split("--- end", 1)[0] ?? "";
}

function rewritten(shown: string, paths: readonly string[], adds: readonly AddedLine[]): Action[] {
  return paths.map((path) => {
    const added = adds.filter(({ file }) => file === path);
    return overwrite(path, withLines(shownText(shown, path), added));
  });
}

/** Uses the shell: some agents' tools overwrite a file only after reading it. */
function overwrite(path: string, content: string): Action {
  return { run: `cat > '${path}' <<'END OF FILE'\n${content}END OF FILE` };
}

function act(text: string, ...actions: readonly Action[]): Turn {
  return { text, actions };
}

function say(text: string): Turn {
  return { text };
}

function when(condition: boolean, step: Script[number]): Script {
  return condition ? [step] : [];
}
