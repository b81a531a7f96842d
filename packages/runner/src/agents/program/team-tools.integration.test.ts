import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { expect, it } from "vitest";
import { serveTeam } from "../../team/socket.ts";
import { endOf } from "../../testing/end.ts";
import type { TeamTool } from "../driver.ts";
import { driverOf } from "../index.ts";
import { play, startPlace, unending } from "./testing.ts";

const server = fileURLToPath(new URL("../testing/tools-fixture.ts", import.meta.url));

const writeNote: ScriptedProgram = ({ step, results }) =>
  step === 0
    ? { actions: [{ tool: "write_note", input: { text: "Mind the gap" } }] }
    : { text: results[0]?.text.includes("Noted.") ? "It is noted." : "It is not." };

/** Codex would begin without the tools that are not there yet. */
const late = ["/bin/sh", "-c", 'sleep 3; exec "$0" "$@"'];

it.each([
  ["claude-code", "", []],
  ["acp:codex", "", []],
  ["acp:codex", ", which start late", late],
  ["acp:gemini", "", []],
  ["acp:opencode", "", []],
] as const)("%s calls the team's tools%s", { timeout: 300_000 }, async (name, _, starter) => {
  await using place = await startPlace(writeNote);
  const notes: unknown[] = [];
  const tool: TeamTool = {
    name: "write_note",
    description: "Writes a note.",
    schema: { type: "object", properties: { text: { type: "string" } } },
    run: async (input) => {
      notes.push(input);
      return "Noted.";
    },
  };
  const socket = join(place.workdir, "..", "team.sock");
  await using _team = await serveTeam(socket, [tool]);
  const tools = { definitions: [tool], command: [...starter, process.execPath, server, socket] };
  await using agent = await place.open(driverOf(name, place.surroundings), { tools });
  expect(endOf(await play(agent.turn("Write a note", unending)))).toMatchObject({ message: "It is noted." });
  expect(notes).toEqual([{ text: "Mind the gap" }]);
});
