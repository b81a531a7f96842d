import { setTimeout as delay } from "node:timers/promises";
import type { ElementHandle, Locator, Page } from "playwright-core";
import type { Target } from "../checks/browser-job.ts";

export const stepMs = 10_000;
const lookMs = 100;
const staysAwayMs = 300;
const maxFields = 100;

/** Fields that a visitor has filled in: what they show is no effect of the app's. */
export type Filled = readonly ElementHandle[];

export interface Looking {
  /** How long to wait for it. */
  readonly patienceMs?: number | undefined;
  readonly filled?: Filled;
}

/**
 * The first visible element; an exact name wins over one that contains it. The last look starts at the deadline, because
 * this program may not have been scheduled since the look before.
 */
export async function find(
  page: Page,
  target: Target,
  { patienceMs = stepMs, filled = [] }: Looking,
): Promise<Locator | undefined> {
  const ways = [asWhole, inWords].flatMap((form) => target.names.map((name) => visible(page, target.role, form(name))));
  for (const endsAt = Date.now() + patienceMs; ; await delay(lookMs)) {
    const isLast = Date.now() >= endsAt;
    for (const way of ways) if (await way.isVisible()) return way;
    if (target.role === "text") {
      const field = await fieldThatShows(page, target, filled);
      if (field !== undefined) return field;
    }
    if (isLast) return undefined;
  }
}

/** Whether nothing of the name is visible, be it after a while. */
export async function staysAway(
  page: Page,
  target: Target,
  { patienceMs = stepMs, filled = [] }: Looking,
): Promise<boolean> {
  const ways = target.names.map((name) => visible(page, target.role, inWords(name)));
  const isThere = async () => {
    for (const way of ways) if (await way.isVisible()) return true;
    return target.role === "text" && (await fieldThatShows(page, target, filled)) !== undefined;
  };
  for (const endsAt = Date.now() + patienceMs; ; await delay(lookMs)) {
    const isLast = Date.now() >= endsAt;
    if (!(await isThere())) {
      await delay(staysAwayMs);
      if (!(await isThere())) return true;
    }
    if (isLast) return false;
  }
}

const numbers =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split(
    " ",
  );

/** A word of a name; a count may be written in digits or as a word. */
function wordPattern(word: string): string {
  const count = /^\d{1,2}$/.test(word) ? Number(word) : numbers.indexOf(word.toLowerCase());
  const name = numbers[count];
  if (name !== undefined) return count === 0 ? "(?:0|zero|no)" : `(?:${count}|${name})`;
  return word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

/** Without the marks at its end. Words may be in elements of their own, with no space between them. */
function words(name: string): string {
  const bare = name.trim().replace(/[.!?…:]+$/, "");
  const all = (bare === "" ? name.trim() : bare).split(/\s+/);
  return all.map(wordPattern).reduce((before, word, index) => {
    const isRun = /\d$/.test(all[index - 1] ?? "") && /^\d/.test(all[index] ?? "");
    return `${before}${isRun ? "\\s+" : "\\s*"}${word}`;
  });
}

function asWhole(name: string): RegExp {
  return new RegExp(`^\\s*${words(name)}[\\s.!?…:]*$`, "iu");
}

/** Matches whole words: "Milk" in "Milk, 2 bottles" but not in "Milkshake", and "2 kg" not in "1.2 kg". */
function inWords(name: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}]|\\p{N}[.,])${words(name)}(?![\\p{L}\\p{N}])`, "iu");
}

function visible(page: Page, role: Target["role"], name: RegExp): Locator {
  return locate(page, role, name).filter({ visible: true }).first();
}

function locate(page: Page, role: Target["role"], name: RegExp): Locator {
  switch (role) {
    case "text":
      return page.getByText(name);
    case "image":
      return page.getByRole("img", { name });
    case "listitem":
      // List items have no accessible name: match their text.
      return page.getByRole("listitem").filter({ hasText: name });
    case "textbox": {
      // Password and date inputs have no role, only a label.
      const labelled = page.getByLabel(name).and(page.locator("input, textarea, [contenteditable]"));
      const roles = ["textbox", "searchbox", "spinbutton"] as const;
      return roles.reduce((all, one) => all.or(page.getByRole(one, { name })), labelled);
    }
    default:
      return page.getByRole(role, { name });
  }
}

/** An app may show in a field what it keeps. */
async function fieldThatShows(page: Page, { names }: Target, filled: Filled): Promise<Locator | undefined> {
  const fields = page.locator("input:not([type=password]), textarea").filter({ visible: true });
  const told: unknown = await fields.evaluateAll((all) => all.map((one: unknown) => (one as { value: string }).value));
  // A page may have changed what its arrays do.
  const values: readonly unknown[] = Array.isArray(told) ? told.slice(0, maxFields) : [];
  const patterns = names.map(inWords);
  for (const [index, value] of values.entries()) {
    if (typeof value !== "string" || !patterns.some((pattern) => pattern.test(value))) continue;
    const field = fields.nth(index);
    if (!(await isOneOf(field, filled))) return field;
  }
  return undefined;
}

async function isOneOf(field: Locator, filled: Filled): Promise<boolean> {
  const handle = await field.elementHandle({ timeout: stepMs }).catch(() => null);
  if (handle === null) return true;
  for (const one of filled) {
    // A field of a page that was left cannot be compared, and is another one.
    if (await handle.evaluate((element, other) => element === other, one).catch(() => false)) return true;
  }
  return false;
}
