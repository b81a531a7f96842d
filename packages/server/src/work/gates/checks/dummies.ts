import { createServer } from "node:http";
import { duplexPair } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import type { Dummies, Dummy, PassedByDummy } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { type Checker, openChecker } from "../checker.ts";
import { endLeftovers } from "../gates.ts";
import type { BrowserJob } from "./browser-job.ts";
import type { Connect } from "./exchange.ts";
import { make, needsChecker } from "./make.ts";

export interface DummyParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  /** For the checker's sandboxes, and nothing else: what an earlier process has left under them is ended. */
  readonly labels: Readonly<Record<string, string>>;
}

const sameText = "Everything here is answered alike.";
const pages: Readonly<Record<Dummy, string>> = {
  empty: "<!doctype html><html><body></body></html>",
  constant: `<!doctype html><html><body>${sameText}</body></html>`,
};
/** What a dummy's page shows, it shows as soon as it has loaded. */
const patienceMs = 100;
const never = new AbortController().signal;

/** Dummies are Slipway's own code, so they run in this process, and listen nowhere. Browsers run in sandboxes. */
export function createDummies({ provider, labels }: DummyParts): Dummies {
  const connectTo: Readonly<Record<Dummy, Connect>> = { empty: serve(pages.empty), constant: serve(pages.constant) };
  return {
    async passing(surface, checks, { signal = never }) {
      await using opened = new AsyncDisposableStack();
      let shown: Dummy = "empty";
      const connect: Connect = (given) => connectTo[shown](given);
      let checker: Checker | undefined;
      if (checks.some(needsChecker)) {
        await endLeftovers(provider, labels);
        checker = opened.use(await openChecker({ provider, labels, connect, signal }));
      }
      const passed: PassedByDummy[] = [];
      for (const dummy of ["empty", "constant"] as const) {
        shown = dummy;
        for (const [index, check] of checks.entries()) {
          const { ok } = await make(check, { surface, connect, checker, signal, patienceMs });
          if (ok) passed.push({ check: index, dummy });
        }
      }
      if (checker !== undefined) await expectSight(checker);
      return passed;
    },
  };
}

/** A browser that reaches nothing lets every check fail: after them, it still has to see what is there. */
async function expectSight(checker: Checker): Promise<void> {
  const see = { action: "see", target: { role: "text", names: [sameText] } } as const;
  const job: BrowserJob = { type: "visit", viewport: "desktop", steps: [{ action: "open", path: "/" }, see] };
  if ((await checker.check(job)).type === "passed") return;
  throw new SlipwayError("exec_failed", "the checker does not see a page that is there");
}

/** Answers every request with the page. */
function serve(page: string): Connect {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", connection: "close" }).end(page);
  });
  return async () => {
    const [ours, theirs] = duplexPair();
    server.emit("connection", ours);
    return theirs;
  };
}
