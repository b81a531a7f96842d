import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { bindAction, type Message, type Part } from "@slipway/gateway/scripted";
import { asProgramsSee, result, tools, user } from "@slipway/gateway/testing/conversation";
import { demoBuild } from "./demo-build.ts";
import { tasks } from "./plan.ts";

const maxTurns = 20;
/** The tools of the built-in agent in a task run. */
const offered = tools("terminal", "createOrUpdateFiles", "claim_files", "tell_others", "state_criterion");

/** A conversation with a demo agent that works in a directory. */
export interface Player {
  readonly messages: Message[];
  /** All calls so far, as `tool input`. */
  readonly calls: string[];
  /** Gives an order and returns the agent's last words. */
  order(text: string): Promise<string>;
  /** Takes one turn. Returns the agent's words if it is done. */
  turn(): Promise<string | undefined>;
}

export interface PlayerOptions {
  /** Runs the app's tests when the agent does, which takes a while. Otherwise they seem to pass. */
  readonly tests?: boolean;
}

export function openPlayer(workdir: string, { tests = false }: PlayerOptions = {}): Player {
  const messages: Message[] = [];
  const calls: string[] = [];
  const turn = async () => {
    const { text = "", actions = [] } = await demoBuild(asProgramsSee({ messages, tools: offered }));
    if (actions.length === 0) {
      messages.push({ role: "assistant", parts: [{ type: "text", text }] });
      return text;
    }
    const made = actions.map((action, index) => {
      const { name, input } = bindAction(action, offered, undefined);
      return { type: "tool_call" as const, id: `${messages.length}-${index}`, name, input };
    });
    messages.push({ role: "assistant", parts: made });
    const results: Part[] = [];
    for (const { id, name, input } of made) {
      calls.push(`${name} ${input}`);
      results.push(result(id, await carryOut(JSON.parse(input), workdir, tests)));
    }
    messages.push(user(...results));
    return undefined;
  };
  return {
    messages,
    calls,
    turn,
    async order(text) {
      messages.push(user(text));
      for (let turns = 0; turns < maxTurns; turns++) {
        const said = await turn();
        if (said !== undefined) return said;
      }
      throw new Error(`not done after ${maxTurns} turns`);
    },
  };
}

/** Does all tasks of the plan in a directory, one after the other, none for the first time. */
export async function playAll(workdir: string): Promise<void> {
  for (const { title, description } of tasks) {
    await openPlayer(workdir).order(`Your task: ${title}\n\n${description}\n\nWhat earlier attempts ended with:`);
  }
}

interface Input {
  readonly command?: string;
  readonly files?: readonly { readonly path: string; readonly content: string }[];
}

async function carryOut({ command, files = [] }: Input, workdir: string, tests: boolean): Promise<string> {
  for (const { path, content } of files) {
    await mkdir(dirname(join(workdir, path)), { recursive: true });
    await writeFile(join(workdir, path), content);
  }
  return command === undefined ? "Noted." : await output(commandFor(command, tests), workdir);
}

/** The app's tests need no installed packages, and must not ask a registry. */
function commandFor(command: string, tests: boolean): string {
  return command.replace(/^npm ci$/, "true").replace(/^npm test/, tests ? "node test/all.js" : "true");
}

function output(command: string, cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile("bash", ["-c", command], { cwd, env: { PATH: process.env["PATH"] } }, (error, stdout, stderr) =>
      resolve(`${stdout}${stderr}\n[exit ${error?.code ?? 0}]`),
    );
  });
}
