import { setTimeout as delay } from "node:timers/promises";
import type { Check } from "@slipway/contract";
import type { Browser, Locator, Page } from "playwright-core";
import type { CheckerAnswer } from "../answers.ts";
import { watchLoading } from "./settle.ts";

type BrowserCheck = Extract<Check, { readonly type: "browser" }>;
type Step = BrowserCheck["steps"][number];
type Target = Extract<Step, { readonly action: "see" }>["target"];
type Failure = Pick<Extract<CheckerAnswer, { readonly type: "failed" }>, "why" | "detail">;

const openMs = 30_000;
const warmUpMs = 10_000;
const stepMs = 10_000;
const settleMs = 2_000;
const staysAwayMs = 300;
const maxErrors = 10;
const maxErrorCharacters = 500;
const maxPageCharacters = 4000;

export const viewports = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
  desktop: { viewport: { width: 1280, height: 800 } },
} as const;

/** Takes the steps of a check as a person would, up to the first that fails. */
export async function browse(browser: Browser, check: BrowserCheck, origin: string): Promise<CheckerAnswer> {
  const context = await browser.newContext({ ...viewports[check.viewport], baseURL: origin });
  const page = await context.newPage();
  const visit = { page, loaded: watchLoading(page) };
  const errors = listenForErrors(page);
  // A person who clicks "delete" also confirms "are you sure?".
  page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));
  let hasCrashed = false;
  page.on("crash", () => {
    hasCrashed = true;
  });
  for (const [index, step] of check.steps.entries()) {
    const failure = await take(visit, step).catch((error): Failure => {
      if (hasCrashed) return { why: "stuck", detail: "" };
      throw error;
    });
    if (failure === undefined) continue;
    return { type: "failed", step: index, ...failure, page: await tell(page), errors: errors.slice(0, maxErrors) };
  }
  await context.close();
  return { type: "passed" };
}

interface Visit {
  readonly page: Page;
  loaded(mostMs: number): Promise<void>;
}

async function take(visit: Visit, step: Step): Promise<Failure | undefined> {
  const { page } = visit;
  switch (step.action) {
    case "open":
      return await opened(visit, () => page.goto(step.path, { timeout: openMs }));
    case "reload":
      return await opened(visit, () => page.reload({ timeout: openMs }));
    case "click":
      return await onTarget(page, step.target, (found) => found.click({ timeout: stepMs }));
    case "fill":
      return await onTarget(page, step.target, (found) => found.fill(step.value, { timeout: stepMs }));
    case "choose":
      return await onTarget(page, step.target, (found) => choose(page, found, step.value));
    case "press":
      return await page.keyboard.press(keys[step.key] ?? step.key).then(() => undefined);
    case "see":
      return (await find(page, step.target)) === undefined ? { why: "missing", detail: "" } : undefined;
    case "see-nothing-of":
      return (await staysAway(page, step.target)) ? undefined : { why: "there", detail: "" };
  }
}

const keys: Readonly<Record<string, string>> = { Return: "Enter", Esc: "Escape", Spacebar: "Space", " ": "Space" };

/** Once before all checks: a dev server compiles on the first visit and may then reload the page. */
export async function warmUp(browser: Browser, origin: string): Promise<void> {
  const context = await browser.newContext({ baseURL: origin });
  const page = await context.newPage();
  const loaded = watchLoading(page);
  // The checks will report a failing app.
  await page.goto("/", { timeout: openMs }).then(
    () => loaded(warmUpMs),
    () => {},
  );
  await context.close();
}

/** Waits for late requests too, within reason: what has not loaded yet is not absent. */
async function opened({ loaded }: Visit, open: () => Promise<unknown>): Promise<Failure | undefined> {
  try {
    await open();
  } catch (error) {
    return { why: "unopened", detail: messageOf(error) };
  }
  await loaded(settleMs);
  return undefined;
}

async function onTarget(
  page: Page,
  target: Target,
  act: (found: Locator) => Promise<unknown>,
): Promise<Failure | undefined> {
  const found = await find(page, target);
  if (found === undefined) return { why: "missing", detail: "" };
  try {
    await act(found);
    return undefined;
  } catch (error) {
    return { why: "refused", detail: messageOf(error) };
  }
}

async function choose(page: Page, found: Locator, value: string): Promise<void> {
  const kind = await found.evaluate<string, null>(
    "element => element.matches('select') ? 'select' : element.type ?? ''",
    null,
  );
  if (kind === "select") await found.selectOption({ label: value }, { timeout: stepMs });
  else if (kind === "radio" || kind === "checkbox") await found.check({ timeout: stepMs });
  else {
    await found.click({ timeout: stepMs });
    await page.getByRole("option", { name: value }).first().click({ timeout: stepMs });
  }
}

/**
 * The first visible element; an exact name wins over one that contains it. The last look starts at the deadline, because
 * this program may not have been scheduled since the look before.
 */
async function find(page: Page, target: Target): Promise<Locator | undefined> {
  const ways = [target.name, inWords(target.name)].map((name) => visible(page, target, name));
  for (const endsAt = Date.now() + stepMs; ; await delay(100)) {
    const isLast = Date.now() >= endsAt;
    for (const way of ways) if (await way.isVisible()) return way;
    if (isLast) return undefined;
  }
}

async function staysAway(page: Page, target: Target): Promise<boolean> {
  const found = visible(page, target, inWords(target.name));
  for (const endsAt = Date.now() + stepMs; ; await delay(100)) {
    const isLast = Date.now() >= endsAt;
    if (!(await found.isVisible())) {
      await delay(staysAwayMs);
      if (!(await found.isVisible())) return true;
    }
    if (isLast) return false;
  }
}

/** Matches whole words: "Milk" in "Milk, 2 bottles" but not in "Milkshake". */
function inWords(name: string): RegExp {
  const text = name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/\s+/g, "\\s+");
  return new RegExp(`(?<![\\p{L}\\p{N}])${text}(?![\\p{L}\\p{N}])`, "iu");
}

function visible(page: Page, { role }: Target, name: string | RegExp): Locator {
  return locate(page, role, name).filter({ visible: true }).first();
}

function locate(page: Page, role: Target["role"], name: string | RegExp): Locator {
  const exact = { exact: true };
  switch (role) {
    case "text":
      return page.getByText(name, exact);
    case "image":
      return page.getByRole("img", { name, ...exact });
    case "listitem":
      // List items have no accessible name: match their text.
      return page.getByRole("listitem").filter({ hasText: typeof name === "string" ? inWords(name) : name });
    case "textbox": {
      // Password and date inputs have no role, only a label.
      const labelled = page.getByLabel(name, exact).and(page.locator("input, textarea, [contenteditable]"));
      const roles = ["textbox", "searchbox", "spinbutton"] as const;
      return roles.reduce((all, one) => all.or(page.getByRole(one, { name, ...exact })), labelled);
    }
    default:
      return page.getByRole(role, { name, ...exact });
  }
}

function listenForErrors(page: Page): string[] {
  const errors: string[] = [];
  const keep = (text: string) => {
    if (errors.length < maxErrors) errors.push(text.slice(0, maxErrorCharacters).toWellFormed());
  };
  page.on("pageerror", (error) => keep(String(error.message)));
  page.on("console", (message) => message.type() === "error" && keep(message.text()));
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() >= 400) keep(`${response.request().method()} ${pathname}: ${response.status()}`);
  });
  return errors;
}

async function tell(page: Page): Promise<string> {
  const told = await page
    .locator("body")
    .ariaSnapshot({ timeout: settleMs })
    .catch(() => "");
  return told.slice(0, maxPageCharacters).toWellFormed();
}

function messageOf(error: unknown): string {
  return (error as Error).message.slice(0, maxErrorCharacters).toWellFormed();
}
