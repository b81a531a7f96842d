import type { Browser, ElementHandle, Locator, Page } from "playwright-core";
import type { CheckerAnswer } from "../checks/answers.ts";
import type { BrowserJob, Step, Target } from "../checks/browser-job.ts";
import { find, staysAway, stepMs } from "./find.ts";
import { watchLoading } from "./settle.ts";

type VisitJob = Extract<BrowserJob, { readonly type: "visit" }>;
type Failure = Pick<Extract<CheckerAnswer, { readonly type: "failed" }>, "why" | "detail">;

const openMs = 30_000;
const warmUpMs = 10_000;
const settleMs = 2_000;
const maxErrors = 10;
const maxErrorCharacters = 500;
const maxPageCharacters = 16_000;
const maxAddresses = 1000;

export const viewports = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
  desktop: { viewport: { width: 1280, height: 800 } },
} as const;

/** Takes the steps of a check as people would, up to the first that fails. */
export async function browse(
  browser: Browser,
  { viewport, steps, patienceMs }: VisitJob,
  origin: string,
): Promise<CheckerAnswer> {
  const errors: string[] = [];
  const addresses: string[] = [];
  const visitors = new Map<number, Visitor>();
  const newVisitor = async (): Promise<Visitor> => {
    const context = await browser.newContext({ ...viewports[viewport], baseURL: origin });
    const page = await context.newPage();
    const visitor: Visitor = { page, loaded: watchLoading(page), patienceMs, filled: [], hasCrashed: false };
    listenForErrors(page, errors);
    // A person who clicks "delete" also confirms "are you sure?".
    page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));
    page.on("crash", () => {
      visitor.hasCrashed = true;
    });
    page.on("framenavigated", (frame) => {
      if (frame === page.mainFrame() && addresses.length < maxAddresses) addresses.push(frame.url());
    });
    return visitor;
  };
  let now = await newVisitor();
  visitors.set(1, now);
  for (const [index, step] of steps.entries()) {
    if (step.action === "switch") {
      now = visitors.get(step.visitor) ?? (await newVisitor());
      visitors.set(step.visitor, now);
      await now.page.bringToFront();
      continue;
    }
    const failure = await take(now, step, addresses).catch((error): Failure => {
      if (now.hasCrashed) return { why: "stuck", detail: "" };
      throw error;
    });
    if (failure === undefined) continue;
    const seen = await snapshotOf(now.page);
    for (const { page } of visitors.values()) leave(page);
    return { type: "failed", step: index, ...failure, page: seen, errors: errors.slice(0, maxErrors) };
  }
  for (const { page } of visitors.values()) await page.context().close();
  return { type: "passed" };
}

interface Visitor {
  readonly page: Page;
  loaded(mostMs: number): Promise<void>;
  readonly patienceMs: number | undefined;
  readonly filled: ElementHandle[];
  hasCrashed: boolean;
}

async function take(
  visitor: Visitor,
  step: Exclude<Step, { readonly action: "switch" }>,
  addresses: readonly string[],
): Promise<Failure | undefined> {
  const { page, filled } = visitor;
  switch (step.action) {
    case "open": {
      const address = addressOf(step.path, addresses);
      if (address === undefined) {
        const paths = [...new Set(addresses.map((one) => URL.parse(one)?.pathname ?? one))].slice(-maxErrors);
        return { why: "unopened", detail: `no visitor has been at such an address, but at ${paths.join(", ")}` };
      }
      return await opened(visitor, () => page.goto(address, { timeout: openMs }));
    }
    case "reload":
      return await opened(visitor, () => page.reload({ timeout: openMs }));
    case "click":
      return await onTarget(visitor, step.target, (found) => found.click({ timeout: stepMs }));
    case "fill":
      return await onTarget(visitor, step.target, async (found) => {
        await found.fill(step.value, { timeout: stepMs });
        const field = await found.elementHandle({ timeout: stepMs });
        if (field !== null) filled.push(field);
      });
    case "choose":
      return await onTarget(visitor, step.target, (found) => choose(page, found, step.value));
    case "press":
      return await page.keyboard.press(keys[step.key] ?? step.key).then(
        () => undefined,
        (error: Error) => {
          if (/unknown key/i.test(error.message)) return { why: "refused", detail: messageOf(error) };
          throw error;
        },
      );
    case "see":
      return (await find(page, step.target, visitor)) === undefined ? { why: "missing", detail: "" } : undefined;
    case "see-nothing-of":
      return (await staysAway(page, step.target, visitor)) ? undefined : { why: "there", detail: "" };
  }
}

/** A path with variables is known from where visitors have been. */
function addressOf(path: string, addresses: readonly string[]): string | undefined {
  if (!path.includes("{")) return path;
  const parts = path.split(/\{[^}]*\}/).map((text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join("[^/]+")}/?$`);
  return addresses.findLast((address) => pattern.test(URL.parse(address)?.pathname ?? ""));
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
async function opened({ loaded }: Visitor, open: () => Promise<unknown>): Promise<Failure | undefined> {
  try {
    await open();
  } catch (error) {
    return { why: "unopened", detail: messageOf(error) };
  }
  await loaded(settleMs);
  return undefined;
}

async function onTarget(
  { page, patienceMs }: Visitor,
  target: Target,
  act: (found: Locator) => Promise<unknown>,
): Promise<Failure | undefined> {
  const found = await find(page, target, { patienceMs });
  if (found === undefined) return { why: "missing", detail: "" };
  try {
    await act(found);
    return undefined;
  } catch (error) {
    return { why: "refused", detail: messageOf(error) };
  }
}

async function choose(page: Page, found: Locator, value: string): Promise<void> {
  const { kind, options } = await found.evaluate((element: unknown) => {
    const { type = "", options = [] } = element as { type?: string; options?: Iterable<{ label: string }> };
    return { kind: type, options: Array.from(options, ({ label }) => String(label)) };
  });
  const same = options.find((label) => label.trim().toLowerCase() === value.trim().toLowerCase());
  if (kind.startsWith("select")) await found.selectOption({ label: same ?? value }, { timeout: stepMs });
  else if (kind === "radio" || kind === "checkbox") await found.check({ timeout: stepMs });
  else {
    await found.click({ timeout: stepMs });
    await page.getByRole("option", { name: value }).first().click({ timeout: stepMs });
  }
}

function listenForErrors(page: Page, errors: string[]): void {
  const keep = (text: string) => {
    if (errors.length < maxErrors) errors.push(text.slice(0, maxErrorCharacters).toWellFormed());
  };
  page.on("pageerror", (error) => keep(String(error.message)));
  page.on("console", (message) => message.type() === "error" && keep(message.text()));
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() >= 400) keep(`${response.request().method()} ${pathname}: ${response.status()}`);
  });
}

/** Closes all of a visitor's in its own time: a page that is busy may take long. */
export function leave(page: Page): void {
  void page
    .context()
    .close()
    .catch(() => {});
}

export async function snapshotOf(page: Page): Promise<string> {
  const snapshot = await page
    .locator("body")
    .ariaSnapshot({ timeout: settleMs })
    .catch(() => "");
  return snapshot.slice(0, maxPageCharacters).toWellFormed();
}

export function messageOf(error: unknown): string {
  return (error as Error).message.slice(0, maxErrorCharacters).toWellFormed();
}
