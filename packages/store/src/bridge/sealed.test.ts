import { randomBytes } from "node:crypto";
import { brotliCompressSync } from "node:zlib";
import type { OutgoingMessage } from "@slipway/contract";
import { expect, test } from "vitest";
import { isSmall, seal, unseal } from "./sealed.ts";

const context = (value: string): OutgoingMessage => ({
  topic: "context",
  key: "k",
  from: "host",
  payload: { section: "plan", name: "n", value },
});

test("large payloads are stored smaller, unless they do not get smaller", async () => {
  const even = await seal(context("const a = 1;\n".repeat(5000)), 0);
  expect(even.encoding).toBe("brotli");
  expect(even.body.length).toBeLessThan(1000);
  expect(await unseal({ ...even, offset: 1 })).toMatchObject(context("const a = 1;\n".repeat(5000)));
  expect(isSmall(even)).toBe(false);
  expect((await seal(context(randomBytes(50_000).toString("base64")), 0)).encoding).toBe("json");
  expect((await seal(context("small"), 0)).encoding).toBe("json");
});

test("a stored body that unpacks to more than a message may have is not unpacked", async () => {
  const bomb = brotliCompressSync(Buffer.alloc(100 * 1024 * 1024)).toString("base64");
  const sealed = { ...(await seal(context("x"), 0)), offset: 1, encoding: "brotli", body: bomb };
  await expect(unseal(sealed)).rejects.toMatchObject({ code: "ERR_BUFFER_TOO_LARGE" });
});
