import type { Criterion, IntentDraft } from "@slipway/contract";

/** An intent in the words of the request. `problems` are the findings in a repository that needs repair. */
export function intentFor(request: string, problems: string | undefined): IntentDraft {
  const subject = subjectOf(request);
  const things = problems === undefined ? thingsIn(request) : [];
  const [thing = "entry"] = things;
  return {
    appType: "web app",
    character: "Calm, quick and to the point",
    coreValue: `Whoever needs it gets this done in one place: ${subject}`,
    criteria: [
      ...problemCriteria(problems),
      ...things.map(
        (name): Criterion => ({
          id: `add-${name}`,
          kind: "functional",
          statement: `A new ${name} can be entered on the first page and is shown at once.`,
        }),
      ),
      { id: "kept-entries", kind: "functional", statement: "What was entered is still there after a reload." },
      { id: "removed-entries", kind: "functional", statement: "What was removed is gone, after a reload, too." },
      {
        id: "phone-layout",
        kind: "visual",
        statement: "On a phone nothing is cut off and nothing has to be scrolled sideways.",
      },
      { id: "one-look", kind: "visual", statement: "Every page has the same colours, typefaces and distances." },
      { id: "quick-start", kind: "performance", statement: "The first page shows its content within two seconds." },
    ],
    workflows: [
      {
        id: "first-use",
        title: `Enter the first ${thing}`,
        steps: ["Open the first page", `Enter a ${thing}`, "Confirm it"],
        success: `The ${thing} is shown in the list.`,
        walk: ["start", "name", "add"],
      },
      {
        id: "return-later",
        title: "Come back later",
        steps: ["Open the first page", `Enter a ${thing}`, "Load the page again"],
        success: `The ${thing} is still in the list.`,
        walk: ["start", "name", "add", "start"],
      },
    ],
    identity: {
      mood: "A tidy desk in morning light",
      colours: ["#16324f", "#f5f1e8", "#d1603d"],
      typography: "A humanist sans-serif in two sizes, figures of equal width",
      layout: "One column, the list first, one action that stands out",
    },
    antiPatterns: ["Placeholder text", "A button that does nothing", "A gradient behind everything"],
    surface: {
      pages: [{ id: "start", path: "/", purpose: "The list, and a form for a new entry" }],
      controls: [
        { id: "name", page: "start", role: "textbox", name: "Name" },
        { id: "add", page: "start", role: "button", name: "Add" },
      ],
      messages: [],
      routes: [],
    },
  };
}

const maxSubjectCharacters = 200;

/** The first sentence, without fault orders. */
function subjectOf(request: string): string {
  const words = request.replace(/\[fault:[^\]]*\]/g, " ");
  const [sentence = ""] = words.trim().split(/(?<=[.!?])\s|\n/, 1);
  return sentence.slice(0, maxSubjectCharacters).trim() || "what was asked for";
}

const maxThings = 3;
const maxThingCharacters = 30;
const passedOver = new Set(
  "about again also application being build could every from have into make makes more must need needs page please should simple some that their them then there they this user users using want wants what when where which while will with without would write your".split(
    " ",
  ),
);

/** Words that the request is about, for use in names. */
function thingsIn(request: string): string[] {
  const words =
    subjectOf(request)
      .toLowerCase()
      .normalize("NFKD")
      .match(/[a-z]{4,}/g) ?? [];
  const things = [...new Set(words)]
    .filter((word) => !passedOver.has(word))
    .map((word) => word.slice(0, maxThingCharacters));
  return things.length === 0 ? ["entry"] : [...new Set(things)].slice(0, maxThings);
}

/** The first line is the title of the first problem. Nothing marks where others begin. */
function problemCriteria(problems = ""): Criterion[] {
  const [title = ""] = problems.split("\n", 1);
  if (title === "" || title.startsWith("None was found")) return [];
  const statement = `This is true no longer: ${title.slice(0, 500)}`;
  return [{ id: "problem-gone", kind: "functional", statement }];
}
