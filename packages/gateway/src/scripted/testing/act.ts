import { execFile } from "node:child_process";
import type { Message } from "../../dialects/conversation.ts";
import { bindAction } from "../bind.ts";
import type { ScriptedProgram } from "../program.ts";
import { asProgramsSee, called, result, tools, user } from "./conversation.ts";

const maxTurns = 20;

/** Plays the simplest agent: one with a shell. Gives back what the program said last. */
export async function act(program: ScriptedProgram, prompt: string, workdir: string): Promise<string | undefined> {
  const offered = tools("terminal");
  const messages: Message[] = [user(prompt)];
  for (let turns = 0; turns < maxTurns; turns++) {
    const turn = await program(asProgramsSee({ messages, tools: offered }));
    if (!turn.actions?.length) return turn.text;
    for (const [index, action] of turn.actions.entries()) {
      const { name, input } = bindAction(action, offered, undefined);
      const { command } = JSON.parse(input) as { command: string };
      const id = `${turns}-${index}`;
      messages.push(called(id, name, { command }), user(result(id, await output(command, workdir))));
    }
  }
  throw new Error(`not done after ${maxTurns} turns`);
}

function output(command: string, cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile("bash", ["-c", command], { cwd }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}
