import { once } from "node:events";
import type { Context } from "../../input/command.ts";
import { spawnServer, untilReady } from "../../server/start.ts";
import { noteSettings } from "../../server/started-with.ts";

export async function run(context: Context): Promise<number> {
  const stateDir = await context.stateDir();
  const start = { stateDir, environment: context.io.env };
  const child = spawnServer(start, { stderr: "inherit" });
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  // A terminal sends an interrupt to both: the server shuts down, then this program ends.
  using _interrupts = context.interrupts.take((signal) => {
    if (signal === "SIGTERM" || !isInTerminal(context)) child.kill(signal);
  });
  await untilReady(child, () => "it ended without an error message");
  await noteSettings(start, child.pid);
  const [code] = await exited;
  return code ?? 1;
}

function isInTerminal({ io: { stdin, stdout, stderr } }: Context): boolean {
  return [stdin, stdout, stderr].some(({ isTTY }) => isTTY === true);
}
