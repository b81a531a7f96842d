import { lstatSync, mkdirSync } from "node:fs";
import { dialAgent } from "../../agent/connection.ts";
import { closeExecLogs } from "../../agent/exec/close-logs.ts";
import { logsIn } from "../../agent/exec/logs.ts";
import { serverSession } from "../session.ts";
import { startAgent } from "./agent.ts";
import { createChannel } from "./channel.ts";
import { createDeadline } from "./deadline.ts";
import { openDoor } from "./door.ts";
import { openPreviews } from "./previews.ts";
import { serveControl } from "./serve.ts";
import { readSettings, type Settings } from "./settings.ts";

/** The command of a far sandbox: starts the agent, and lets in hosts that have the sandbox's key. */
async function main(settings: Settings): Promise<void> {
  const logs = `${settings.state}/execs`;
  mkdirSync(settings.state, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(settings.state);
  if (uid !== 0 || (mode & 0o77) !== 0) throw new Error("SLIPWAY_LINK_STATE is not root's alone.");
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  // Of an earlier life of these files.
  closeExecLogs(logs);
  const agent = await startAgent(settings, logs);
  let isEnding = false;
  const end = () => {
    isEnding = true;
    agent.process.kill("SIGTERM");
  };
  agent.process.once("exit", (code, signal) => {
    if (!isEnding) console.error(`The agent has ended: ${signal ?? code}.`);
    process.exit(isEnding ? 0 : 70);
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, end);
  const deadline = createDeadline(settings.untilMs, end);
  const channel = createChannel(settings.channel);
  const served = {
    agentSocket: agent.socketPath,
    logs: logsIn(logs),
    channel: settings.channel,
    keepFor: (ms: number) => deadline.move(Date.now() + ms),
  };
  await openPreviews(settings, dialAgent(agent.socketPath));
  await openDoor({
    ...settings,
    decide: async (request) => (request.role === "channel" ? await channel.decide(request) : "welcome"),
    welcome(request, socket) {
      if (request.role === "channel") channel.hold(request, socket);
      else serveControl(serverSession(socket, "control"), served);
    },
  });
  console.log("slipway link ready");
}

try {
  await main(readSettings(process.env));
} catch (error) {
  console.error(`slipway link: ${error instanceof Error ? error.message : error}`);
  process.exit(78);
}
