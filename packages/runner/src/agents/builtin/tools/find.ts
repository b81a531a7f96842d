import { spawn } from "node:child_process";
import { once } from "node:events";
import { glob } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { z } from "zod";
import { keepEnds } from "../../../system/output.ts";
import { pathInside } from "./paths.ts";
import { type BuiltinTool, defineTool, type Workplace } from "./tool.ts";

const maxFiles = 1_000;
const maxAnswerBytes = 32 * 1024;
const searchMs = 30_000;
const ignoredDirectories = new Set([".git", "node_modules"]);

export function listFilesTool({ workdir }: Workplace): BuiltinTool {
  return defineTool({
    name: "listFiles",
    kind: "search",
    description: `Lists files by a glob, up to ${maxFiles}. Leaves out .git and node_modules.`,
    schema: z.object({
      glob: z.string().min(1).max(1_024).default("**/*").describe("Such as src/**/*.ts"),
      path: z.string().max(4_096).default(".").describe("The directory to look in"),
    }),
    async run(input, { signal }) {
      const cwd = pathInside(workdir, input.path);
      pathInside(workdir, resolve(cwd, input.glob));
      const found: string[] = [];
      const exclude = (name: string) => ignoredDirectories.has(name.slice(name.lastIndexOf("/") + 1));
      for await (const file of glob(input.glob, { cwd, exclude })) {
        signal.throwIfAborted();
        if (found.length === maxFiles) {
          return { text: `${found.join("\n")}\n[more than ${maxFiles}: use a narrower glob]`, ok: true };
        }
        found.push(file);
      }
      return { text: found.sort().join("\n") || "[no file]", ok: true };
    },
  });
}

/** Runs git as a separate process, so that an endless pattern can be killed. */
export function searchTool({ workdir, environment }: Workplace): BuiltinTool {
  return defineTool({
    name: "search",
    kind: "search",
    description:
      "Searches text files for a POSIX extended regular expression and returns path:line:text. Skips what git ignores.",
    schema: z.object({
      pattern: z.string().min(1).max(4_096),
      path: z.string().max(4_096).default(".").describe("The file or directory to look in"),
      ignoreCase: z.boolean().default(false),
    }),
    async run({ pattern, path, ignoreCase }, { signal }) {
      const within = relative(workdir, pathInside(workdir, path)) || ".";
      const flags = [
        "--no-index",
        "--exclude-standard",
        "-nIE",
        "--no-color",
        "-m",
        "200",
        ...(ignoreCase ? ["-i"] : []),
      ];
      const child = spawn("git", ["grep", ...flags, "-e", pattern, "--", within, ":(exclude,glob)**/node_modules/**"], {
        cwd: workdir,
        env: { ...environment, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
        stdio: ["ignore", "pipe", "pipe"],
        signal: AbortSignal.any([signal, AbortSignal.timeout(searchMs)]),
        killSignal: "SIGKILL",
      });
      const [found, complaint] = [keepEnds(maxAnswerBytes), keepEnds(4_096)];
      child.stdout.on("data", (chunk: Buffer) => found.add(chunk));
      child.stderr.on("data", (chunk: Buffer) => complaint.add(chunk));
      const [code] = await once(child, "close");
      // 1 means nothing found.
      if (code !== 0 && code !== 1)
        throw new Error(complaint.text().trim() || `the search took more than ${searchMs} ms`);
      return { text: found.text().trimEnd() || "[nothing found]", ok: true };
    },
  });
}
