import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, test } from "vitest";
import { buildRunner } from "../../build.mjs";
import { makeWorkplace } from "../testing/workplace.ts";
import { type BoardChange, boardLimits, createBoard } from "./board.ts";
import { serveTeam } from "./socket.ts";
import { teamTools } from "./tools.ts";

function setUp() {
  const changes: BoardChange[] = [];
  const board = createBoard(undefined, (change) => void changes.push(change));
  const call = async (agent: string, name: string, input: unknown = {}) => {
    const tool = teamTools(board, agent).find((entry) => entry.name === name);
    if (tool === undefined) throw new Error(`no ${name}`);
    return await tool.run(input);
  };
  return { board, changes, call };
}

describe("the board", () => {
  test("gives each task to one worker, in order, and reports every change", async () => {
    const { board, changes, call } = setUp();
    await call("lead", "add_tasks", { tasks: [{ title: "One", details: "First" }, { title: "Two" }] });
    expect(board.claim("worker-1")).toMatchObject({ id: 1, title: "One", details: "First" });
    expect(board.claim("worker-2")).toMatchObject({ id: 2 });
    expect(board.claim("worker-3")).toBeUndefined();
    expect(board.claim("worker-1")).toMatchObject({ id: 1 });
    board.finish(1, { ok: true, result: "It is done." });
    board.finish(2, { ok: false, result: "stuck: nothing happened" });
    expect(changes.map(({ task }) => `${task?.id} ${task?.status}`)).toEqual([
      ...["1 pending", "2 pending", "1 in_progress", "2 in_progress", "1 completed", "2 failed"],
    ]);
    expect(await call("worker-1", "list_tasks")).toBe(
      "1 One [completed by worker-1]\nIt is done.\n2 Two [failed by worker-2]\nstuck: nothing happened",
    );
  });

  test("continues from its saved state", () => {
    const { board } = setUp();
    board.add([{ title: "One", details: "" }]);
    board.claim("worker-1");
    board.write({ agent: "lead", text: "Use tabs." });
    const found = structuredClone(board.state());
    expect(createBoard(found, () => {}).claim("worker-1")).toMatchObject({ id: 1, status: "in_progress" });
    expect(createBoard(found, () => {}).notes).toEqual([{ agent: "lead", text: "Use tabs." }]);
  });

  test("shares notes", async () => {
    const { call } = setUp();
    expect(await call("worker-1", "read_notes")).toBe("[no notes]");
    await call("worker-2", "write_note", { text: "The port is 8080." });
    expect(await call("worker-1", "read_notes")).toBe("worker-2: The port is 8080.");
  });

  test("enforces its limits", async () => {
    const { board, call } = setUp();
    const many = Array.from({ length: boardLimits.tasks }, () => ({ title: "One", details: "" }));
    board.add(many);
    expect(() => board.add([{ title: "One", details: "" }])).toThrow("at most 64 tasks");
    await expect(call("lead", "add_tasks", { tasks: [{ title: "" }] })).rejects.toThrow("tasks[0].title");
    await expect(call("lead", "write_note", { text: "x".repeat(boardLimits.noteChars + 1) })).rejects.toThrow("text");
    for (let i = 0; i < boardLimits.notes; i++) board.write({ agent: "lead", text: "n" });
    await expect(call("lead", "write_note", { text: "one more" })).rejects.toThrow("at most 200 notes");
  });

  test("lets only the lead hand out tasks", () => {
    const { board } = setUp();
    expect(teamTools(board, "worker-1").map(({ name }) => name)).toEqual(["list_tasks", "write_note", "read_notes"]);
  });
});

describe("other programs", () => {
  test("use the team's tools through an MCP server", async () => {
    const { directory } = await makeWorkplace();
    const { board } = setUp();
    const socketPath = join(directory, "team.sock");
    await using _served = await serveTeam(socketPath, teamTools(board, "lead"));
    const client = new Client({ name: "test", version: "1" });
    const args = [join(await buildRunner(), "runner.mjs"), "mcp", socketPath];
    await client.connect(new StdioClientTransport({ command: process.execPath, args }));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["add_tasks", "list_tasks", "write_note", "read_notes"]);
    await client.callTool({ name: "add_tasks", arguments: { tasks: [{ title: "One" }] } });
    expect(board.tasks).toMatchObject([{ title: "One", status: "pending" }]);
    const wrong = await client.callTool({ name: "write_note", arguments: { text: 7 } });
    expect(wrong).toMatchObject({ isError: true });
    await client.close();
  });

  test.each([
    ["nothing", ""],
    ["no JSON", "{"],
    ["an unknown tool", '{"type":"call","name":"rm","input":{}}'],
    ["an unknown request", '{"type":"end"}'],
  ])("that send %s are answered, and the next one is served", async (_what, request) => {
    const { directory } = await makeWorkplace();
    const path = join(directory, "team.sock");
    await using _served = await serveTeam(path, teamTools(setUp().board, "lead"));
    for (let i = 0; i < 2; i++) {
      const socket = connect({ path, allowHalfOpen: true });
      socket.end(request);
      expect(JSON.parse(await text(socket))).toMatchObject({ ok: false });
    }
  });

  test("that hold a connection open do not delay the end", async () => {
    const { directory } = await makeWorkplace();
    const path = join(directory, "team.sock");
    const served = await serveTeam(path, teamTools(setUp().board, "lead"));
    const socket = connect({ path, allowHalfOpen: true });
    socket.on("error", () => {});
    socket.write('{"type":');
    await once(socket, "connect");
    await served[Symbol.asyncDispose]();
    socket.destroy();
  });

  test("that send too much are disconnected", async () => {
    const { directory } = await makeWorkplace();
    const path = join(directory, "team.sock");
    await using _served = await serveTeam(path, teamTools(setUp().board, "lead"));
    const socket = connect({ path, allowHalfOpen: true });
    socket.on("error", () => {});
    socket.end("x".repeat(4 * 1024 * 1024));
    expect(await text(socket).catch(() => "")).toBe("");
  });
});
