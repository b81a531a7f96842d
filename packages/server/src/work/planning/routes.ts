import { printable } from "@slipway/contract";
import { projectPath, type RestrictedSandbox, run } from "@slipway/sandbox";
import { listFiles } from "./list-files.ts";

const maxFileKilobytes = 256;
const maxFiles = 4000;
const maxFoundBytes = 4 * 1024 ** 2;
const searchMs = 30_000;
const maxPerFile = 40;
const maxLines = 200;
const maxCharacters = 15_000;
const maxLineCharacters = 200;
/** Longer lines are generated, or hold data. */
const maxSearchedCharacters = 400;

/** Searches its sources for lines that name paths over HTTP. Reads lines, not programs: it misses some, and finds others. */
export async function findRoutes(sandbox: RestrictedSandbox, signal: AbortSignal): Promise<string[]> {
  const paths = (await listFiles(sandbox, signal, ["-size", `-${maxFileKilobytes + 1}k`])).filter(isSource);
  if (paths.length === 0) return [];
  const input = paths.slice(0, maxFiles).map((path) => `${path}\0`);
  const argv = ["xargs", "--null", "grep", "--null", "-HnIE", "-e", anyPath, "--"];
  const env = { LC_ALL: "C" };
  const limits = { maxBytes: maxFoundBytes, timeoutMs: searchMs, signal };
  const { stdout } = await run(sandbox, argv, { cwd: projectPath, env, input: input.join(""), ...limits });
  return routesIn(stdout);
}

const sources =
  /\.([cm]?[jt]sx?|vue|svelte|astro|html?|ejs|hbs|njk|pug|erb|twig|py|rb|php|go|java|kts?|scala|cs|fs|rs|exs?|heex|swift|dart|clj|lua|pl)$/i;
const otherDirectories =
  /(^|\/)(\.[^/]+|tests?|__tests__|specs?|e2e|cypress|fixtures|__mocks__|mocks|node_modules|vendor|dist|build|out|target|coverage|venv)\//i;
const otherFiles = /([._-](tests?|specs?|stories|min)|\.d)\.\w+$|(^|\/)test_[^/]*$/i;

export function isSource(path: string): boolean {
  return sources.test(path) && !otherDirectories.test(path) && !otherFiles.test(path);
}

/** What grep looks for: a string or a regular expression that begins with a path. */
const anyPath = "[\"'`]((GET|POST|PUT|PATCH|DELETE) )?\\^?/|/\\^\\\\/";

/** Picks from lines of the form `path NUL number:text`. */
export function routesIn(found: string): string[] {
  const routes: string[] = [];
  const perFile = new Map<string, number>();
  let characters = 0;
  for (const line of found.split("\n")) {
    const [, path = "", number = "", text = ""] = /^([^\0]+)\0(\d+):(.*)$/.exec(line) ?? [];
    if (!namesRoute(text)) continue;
    const count = (perFile.get(path) ?? 0) + 1;
    perFile.set(path, count);
    if (count > maxPerFile) continue;
    const route = `${path}:${number}: ${printable(text).trim().slice(0, maxLineCharacters)}`.toWellFormed();
    characters += route.length + 1;
    if (routes.length === maxLines || characters > maxCharacters) break;
    routes.push(route);
  }
  return routes;
}

const literal = "[\"'`]\\^?/(?![/*])";
const about =
  "get|post|put|patch|delete|head|route|path|url|uri|fetch|axios|request|href|action|handle|endpoint|redirect|navigate|location|mapping|\\b(?:all|any|case|on|to|use|ws)\\b";
const naming = [
  // app.get("/x", url === "/x", @PostMapping("/x"), <form action="/x"
  new RegExp(`(?:${about})[^"'\`]{0,40}${literal}`, "i"),
  // "GET /x", route("GET", "/x")
  new RegExp(`["'\`](?:GET|POST|PUT|PATCH|DELETE)(?: /|["'\`],\\s*${literal})`),
  // A line of a table, or of a call that is written on several lines.
  new RegExp(`^\\s*${literal}[^"'\`]{0,200}["'\`]\\s*(?::|=>|,)`),
  // /^\/x/
  /\/\^\\\/[\w([]/,
];
/** Of files that a page loads, and of work with the separator alone. */
const noRoutes =
  /["'`]\/[^"'`\s]*\.(?:avif|css|gif|ico|jpe?g|js|json|map|mjs|png|svg|ttf|webmanifest|webp|woff2?)["'`?]|\.(?:split|join|indexOf|lastIndexOf|endsWith|replace|replaceAll)\(\s*["'`]\/["'`]/g;

function namesRoute(text: string): boolean {
  if (text.length > maxSearchedCharacters) return false;
  const rest = text.replace(noRoutes, "");
  return naming.some((pattern) => pattern.test(rest));
}
