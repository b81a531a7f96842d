import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CassetteSettings } from "../settings/settings.ts";
import { ask, startTestGateway, testKey } from "../testing/gateway.ts";
import { breakConnection, refuse, speak, speakThen } from "../testing/upstream.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-cassettes-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function start(mode: CassetteSettings["mode"]) {
  return startTestGateway({ settings: { cassettes: { directory, mode } } });
}

function say(content: string) {
  return ask({ messages: [{ role: "user", content }] });
}

test("a recorded stream is replayed byte by byte, at the same cost, without the endpoint", async () => {
  let recorded: string;
  {
    await using set = await start("record");
    recorded = (await set.post("/v1/messages", ask())).text;
  }
  await using set = await start("replay");
  const { status, text, broken } = await set.post("/v1/messages", ask());
  expect({ status, text, broken }).toEqual({ status: 200, text: recorded, broken: false });
  expect(set.upstream.seen).toHaveLength(0);
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 759, reservedMicroUsd: 0 });
});

test("what differs between two runs of the same scenario is the same request", async () => {
  const first = `Primary working directory: /tmp/run-1/work
Today's date is 2026-11-15. Session 2f1b7c1e-1111-4222-8333-444455556666, version 2.1.325.
Look at /tmp/run-1/work/a.txt, toolu_01AbCdEf says.`;
  const second = `Primary working directory: /home/other
Today's date is 2027-01-01. Session 99999999-aaaa-4bbb-8ccc-dddddddddddd, version 2.2.0.
Look at /home/other/a.txt, toolu_99ZzYyXx says.`;
  {
    await using set = await start("record");
    await set.post("/v1/messages", say(first));
  }
  await using set = await start("replay");
  expect(await set.post("/v1/messages", say(second))).toMatchObject({ status: 200 });
});

test("a request that is not recorded is refused with what differs from the nearest one", async () => {
  {
    await using set = await start("record");
    await set.post("/v1/messages", say("Write a poem about the sea."));
    await set.post("/v1/messages", say("Something else altogether."));
  }
  await using set = await start("replay");
  const { status, text } = await set.post("/v1/messages", say("Write a poem about the moon."));
  expect(status).toBe(400);
  expect(text).toContain("cassette_missing");
  const { message } = JSON.parse(text).error as { message: string };
  expect(message).toMatch(/^- .*about the sea/m);
  expect(message).toMatch(/^\+ .*about the moon/m);
  expect(message).not.toContain("Something else");
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test("the same request again has its own recording", async () => {
  {
    await using set = await start("record");
    set.upstream.behave(speak({ texts: ["one"] }), speak({ texts: ["two"] }));
    await set.post("/v1/messages", ask());
    await set.post("/v1/messages", ask());
  }
  expect(readdirSync(directory).map((name) => name.replace(/^[0-9a-f]+/, ""))).toEqual(
    expect.arrayContaining([".json", ".1.json"]),
  );
  await using set = await start("replay");
  const answers = [];
  for (let i = 0; i < 3; i++) answers.push((await set.post("/v1/messages", ask())).text);
  expect(answers[0]).toContain("one");
  expect(answers[1]).toContain("two");
  expect(answers[2]).toContain("two");
});

test("tries that failed leave no gap in the recordings", async () => {
  {
    await using set = await start("record");
    set.upstream.behave(refuse(529), speak({ texts: ["one"] }), refuse(429), speak({ texts: ["two"] }));
    await set.post("/v1/messages", ask());
    await set.post("/v1/messages", ask());
  }
  await using set = await start("replay");
  expect((await set.post("/v1/messages", ask())).text).toContain("one");
  expect((await set.post("/v1/messages", ask())).text).toContain("two");
});

test("auto sends what is not recorded, once", async () => {
  for (const sent of [1, 0]) {
    await using set = await start("auto");
    expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200 });
    expect(set.upstream.seen).toHaveLength(sent);
  }
});

test("neither cut streams nor refusals are recorded", async () => {
  await using set = await start("record");
  set.upstream.behave(
    speakThen(breakConnection),
    speakThen((response) => response.end()),
    refuse(400),
  );
  for (let i = 0; i < 3; i++) await set.post("/v1/messages", ask());
  expect(readdirSync(directory)).toEqual([]);
});

test("no key, token or header is in a recording", async () => {
  await using set = await start("record");
  set.upstream.behave(speak({ texts: [`my key is ${testKey}`] }));
  await set.post("/v1/messages", ask(), { headers: { "x-some-header": "some-header-value" } });
  const names = readdirSync(directory);
  expect(names).toHaveLength(1);
  const text = names.map((name) => readFileSync(join(directory, name), "utf8")).join();
  for (const secret of [testKey, set.run.token, "some-header-value", "authorization", "x-api-key"]) {
    expect(text).not.toContain(secret);
  }
});

test.each([
  ["another version", (text: string) => text.replace('"version": 1', '"version": 2')],
  ["no fields", () => '{"version": 1}'],
  ["no JSON", () => "{"],
])("a recording with %s is refused", async (_, spoil) => {
  {
    await using set = await start("record");
    await set.post("/v1/messages", ask());
  }
  const [name = ""] = readdirSync(directory);
  writeFileSync(join(directory, name), spoil(readFileSync(join(directory, name), "utf8")));
  for (const mode of ["replay", "auto"] as const) {
    await using set = await start(mode);
    const { status, text } = await set.post("/v1/messages", ask());
    expect(status).toBe(400);
    expect(text).toContain("cassette_version");
    expect(set.upstream.seen).toHaveLength(0);
  }
});

test("a replay needs no key", async () => {
  {
    await using set = await start("record");
    await set.post("/v1/messages", ask());
  }
  const keyless = (baseUrl: string) => [
    { provider: "test", baseUrl, dialects: ["anthropic"] as const, key: undefined, keyVariable: "TEST_API_KEY" },
  ];
  const cassettes = { directory, mode: "replay" } as const;
  await using set = await startTestGateway({ settings: { cassettes, endpoints: keyless("http://127.0.0.1:1/v1") } });
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200 });
});
