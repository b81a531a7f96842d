import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { readSandboxSettings } from "../../settings.ts";
import { inspectModal } from "./inspect.ts";

const date = "Thu, 19 Nov 2026 12:00:00 GMT";
const dateMs = Date.parse(date);
const text = (field: number, value: string) =>
  Buffer.concat([Buffer.from([field * 8 + 2, value.length]), Buffer.from(value)]);

type Answer = { readonly status: number; readonly message?: Buffer };
const usual: Readonly<Record<string, Answer>> = {
  AuthTokenGet: { status: 0, message: text(1, "e30.eyJleHAiOjQxMDI0NDQ4MDB9.x") },
  TokenInfoGet: { status: 0, message: text(3, "ada") },
  AppGetOrCreate: { status: 5 },
};

/** Answers calls of gRPC by their names. */
async function openServer(answers: Readonly<Record<string, Answer>>) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const name = request.url.split("/").at(-1) ?? "";
    const { status, message } = { ...usual, ...answers }[name] ?? { status: 12 };
    asked.push(`${name} ${request.headers["x-modal-token-id"]}`);
    request.resume();
    response.writeHead(200, { "content-type": "application/grpc", date });
    response.addTrailers({ "grpc-status": String(status), "grpc-message": "as-hidden" });
    response.end(message === undefined ? "" : Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { asked, base: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void server.close() };
}

async function inspect(
  answers: Readonly<Record<string, Answer>>,
  environment: Record<string, string> = {},
  nowMs = dateMs + 2000,
) {
  await using server = await openServer(answers);
  const given = { MODAL_API_TOKEN: "ak-1:as-hidden", MODAL_API_BASE: server.base, ...environment };
  const { modal } = readSandboxSettings(given).settings;
  if (modal === undefined) throw new Error("there are no credentials");
  const findings = await inspectModal(modal, { now: () => nowMs });
  expect(JSON.stringify(findings)).not.toContain("hidden");
  return { findings, asked: server.asked };
}

test("an account that answers is told with its workspace, app and clock, and nothing is made there", async () => {
  const { findings, asked } = await inspect({});
  expect(findings).toMatchObject([
    { name: "modal account", status: "ok", detail: expect.stringMatching(/^http:\/\/127.* takes the credentials/) },
    { name: "modal clock", status: "ok", detail: "2 s ahead of Modal's" },
    { name: "modal workspace", status: "ok", detail: "ada" },
    { name: "modal app", status: "ok", detail: "slipway is made with the first sandbox" },
  ]);
  expect(new Set(asked)).toEqual(new Set(["AuthTokenGet ak-1", "TokenInfoGet ak-1", "AppGetOrCreate ak-1"]));
});

test("an app that is there is told", async () => {
  const { findings } = await inspect(
    { AppGetOrCreate: { status: 0, message: text(1, "ap-1") } },
    { MODAL_SANDBOX_APP: "x" },
  );
  expect(findings.at(-1)).toMatchObject({ status: "ok", detail: "x exists" });
});

describe("what is wrong comes with the setting to change:", () => {
  test.each([
    ["refused credentials", { AuthTokenGet: { status: 16 } }, {}, /refuses the credentials.*MODAL_TOKEN_ID/],
    ["an account that fails", { AuthTokenGet: { status: 14 } }, {}, /cannot be reached: gRPC.*14.*MODAL_API_BASE/],
    ["another workspace", {}, { MODAL_WORKSPACE: "bob" }, /of workspace ada, and MODAL_WORKSPACE is bob/],
    ["no server at all", {}, { MODAL_API_BASE: "http://127.0.0.1:1" }, /cannot be reached.*MODAL_API_BASE/],
  ])("%s", async (_, answers, environment, expected) => {
    const { findings } = await inspect(answers, environment);
    const failed = findings.filter(({ status }) => status === "fail");
    expect(failed.map(({ detail, action }) => `${detail} ${action}`)).toEqual([expect.stringMatching(expected)]);
  });

  test.each([
    [90_000, "warn", "90 s ahead of Modal's"],
    [-86_400_000, "fail", "86400 s behind Modal's"],
  ])("a clock that is off by %i ms", async (offMs, status, detail) => {
    const { findings } = await inspect({}, {}, dateMs + offMs);
    expect(findings.find(({ name }) => name === "modal clock")).toMatchObject({ status, detail });
  });

  test("a workspace that is not told, where one is wanted", async () => {
    const { findings } = await inspect({ TokenInfoGet: { status: 12 } }, { MODAL_WORKSPACE: "bob" });
    expect(findings.find(({ name }) => name === "modal workspace")).toMatchObject({ status: "warn" });
  });
});
