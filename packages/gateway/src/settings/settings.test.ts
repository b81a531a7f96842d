import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasCode } from "@slipway/contract";
import { expect, test } from "vitest";
import { costOf, findPrice, readPrices } from "./prices.ts";
import { chooseRoute, resolveRoutes } from "./routes.ts";
import { readGatewaySettings } from "./settings.ts";

test("without any variable there is a model for every role, and its key is missing", () => {
  const settings = readGatewaySettings({});
  expect(settings.models).toMatchObject({ build: "anthropic/claude-sonnet-5-5", judge: "anthropic/claude-sonnet-5-5" });
  expect(() => resolveRoutes(settings, ["build"])).toThrow(
    expect.objectContaining({
      code: "missing_key",
      message: expect.stringMatching(/SLIPWAY_MODEL_BUILD.*ANTHROPIC_API_KEY/),
    }),
  );
});

test("each role can have its own model, and SLIPWAY_MODEL is for the rest", () => {
  const { models } = readGatewaySettings({
    SLIPWAY_MODEL: "openai/gpt-5.4",
    SLIPWAY_MODEL_FIX_2: "groq/some/model",
    SLIPWAY_MODEL_JUDGE: "",
  });
  expect(models).toMatchObject({ build: "openai/gpt-5.4", "fix-2": "groq/some/model", judge: "openai/gpt-5.4" });
});

test("a model for a role that there is not is a mistake that names the roles", () => {
  expect(() => readGatewaySettings({ SLIPWAY_MODEL_REVIEW: "openai/gpt-5.4" })).toThrow(
    expect.objectContaining({
      code: "invalid_settings",
      message: expect.stringMatching(/SLIPWAY_MODEL_REVIEW: .*INTENT, PLAN, BUILD, FIX_1.*JUDGE/),
    }),
  );
  expect(readGatewaySettings({ SLIPWAY_MODEL_REVIEW: "" }).models.build).toBe("anthropic/claude-sonnet-5-5");
});

test("all mistakes are told at once", () => {
  const wrong = () =>
    readGatewaySettings({
      SLIPWAY_MODEL: "sonnet",
      SLIPWAY_MODEL_PLAN: "/x",
      ANTHROPIC_BASE_URL: "nonsense",
      OPENAI_BASE_URL: "https://user:secret@host/v1",
      SLIPWAY_ENDPOINTS: "a=https://host/v1,b,openai=https://host/v1,a=https://host/v1",
      SLIPWAY_PRICES: "/nowhere/prices.json",
      SLIPWAY_CASSETTES: "somewhere",
      SLIPWAY_CASSETTE_MODE: "loop",
    });
  expect(wrong).toThrow(expect.objectContaining({ code: "invalid_settings" }));
  try {
    wrong();
  } catch (error) {
    const { message } = error as Error;
    expect(message).toContain("9 settings are wrong");
    for (const name of ["SLIPWAY_MODEL:", "SLIPWAY_MODEL_PLAN:", "ANTHROPIC_BASE_URL:", "/nowhere/prices.json"]) {
      expect(message).toContain(name);
    }
    expect(message).not.toContain("secret");
  }
});

test("the addresses of endpoints follow each vendor's convention", () => {
  const { endpoints } = readGatewaySettings(
    {
      ANTHROPIC_BASE_URL: "https://proxy.example/anthropic/",
      OPENAI_BASE_URL: "https://proxy.example/openai/v1/",
      SLIPWAY_ENDPOINTS: "ollama=http://127.0.0.1:11434/v1, my-vllm=https://vllm.example/v1",
      SLIPWAY_KEY_MY_VLLM: "secret",
    },
    { scripted: { path: "/run/model.sock" } },
  );
  expect(endpoints.map(({ provider, baseUrl, key, keyVariable }) => [provider, baseUrl, key, keyVariable])).toEqual([
    ["anthropic", "https://proxy.example/anthropic/v1", undefined, "ANTHROPIC_API_KEY"],
    ["openai", "https://proxy.example/openai/v1", undefined, "OPENAI_API_KEY"],
    ["scripted", "http://scripted.internal/v1", undefined, undefined],
    ["ollama", "http://127.0.0.1:11434/v1", undefined, "SLIPWAY_KEY_OLLAMA"],
    ["my-vllm", "https://vllm.example/v1", "secret", "SLIPWAY_KEY_MY_VLLM"],
  ]);
});

test("an unknown provider and a model without a price are refused before a run begins", () => {
  const unknown = readGatewaySettings({ SLIPWAY_MODEL: "nobody/model" });
  expect(() => resolveRoutes(unknown, ["build"])).toThrow(expect.objectContaining({ code: "unknown_model" }));
  const scripted = readGatewaySettings({ SLIPWAY_MODEL: "scripted/demo" });
  expect(() => resolveRoutes(scripted, ["build"])).toThrow(expect.objectContaining({ code: "unknown_model" }));
  const unpriced = readGatewaySettings({ SLIPWAY_MODEL: "openai/gpt-99", OPENAI_API_KEY: "key" });
  expect(() => resolveRoutes(unpriced, ["build"])).toThrow(
    expect.objectContaining({
      code: "unknown_price",
      message: expect.stringMatching(/^the model openai\/gpt-99 is not known here.*; known are openai\/.*gpt-5\.4/),
    }),
  );
});

test("a price table of one's own comes before the one that ships", () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-prices-"));
  try {
    const path = join(directory, "prices.json");
    const price = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, maxOutputTokens: 4096 };
    writeFileSync(path, JSON.stringify({ date: "2026-01-01", models: { "ollama/*": price, "openai/gpt-5.4": price } }));
    const { models: prices, compute } = readPrices(path);
    expect(compute["modal"]).toMatchObject({ cpusPerCore: 2 });
    expect(findPrice(prices, "ollama", "anything")).toEqual({ ...price, hiddenThinking: "usual" });
    expect(findPrice(prices, "openai", "gpt-5.4")).toMatchObject(price);
    expect(findPrice(prices, "openai", "gpt-5-mini").input).toBeGreaterThan(0);
    writeFileSync(path, JSON.stringify({ date: "2026-01-01", models: { "openai/gpt-5.4": { input: -1 } } }));
    expect(() => readPrices(path)).toThrow(expect.objectContaining({ code: "invalid_settings" }));
    writeFileSync(path, "{");
    expect(() => readPrices(path)).toThrow(expect.objectContaining({ code: "invalid_settings" }));
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a person's prices of sandboxes come before those that ship, and all mistakes in them are told at once", () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-prices-"));
  try {
    const path = join(directory, "prices.json");
    const write = (compute: unknown) => writeFileSync(path, JSON.stringify({ date: "2026-01-01", compute }));
    write({ modal: { core: 0.1, memoryGib: 0, gpus: { T4: 1 } } });
    const { compute, models } = readPrices(path);
    expect(compute["modal"]).toMatchObject({ core: 0.1, cpusPerCore: 1, gpus: { T4: 1 } });
    expect(compute["local"]).toMatchObject({ core: 0, memoryGib: 0 });
    expect(models.size).toBeGreaterThan(0);
    write({ Modal: { core: 1, memoryGib: 1 }, modal: { core: -1, gpus: { "T 4": 1, L4: "dear" }, second: 1 } });
    expect(() => readGatewaySettings({ SLIPWAY_PRICES: path })).toThrow(
      expect.objectContaining({
        code: "invalid_settings",
        message: expect.stringMatching(
          /^(?=.*SLIPWAY_PRICES)(?=.*compute\.Modal)(?=.*modal\.core)(?=.*modal\.memoryGib)(?=.*T 4)(?=.*gpus\.L4)(?=.*second)/s,
        ),
      }),
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("costs are whole micro-USD, rounded up but for the error of binary fractions", () => {
  const rates = { input: 0.1, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const price = { ...rates, maxOutputTokens: 1, hiddenThinking: "never" } as const;
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  expect(costOf(usage, price)).toBe(0);
  expect(costOf({ ...usage, input: 30 }, price)).toBe(3);
  expect(costOf({ ...usage, input: 31 }, price)).toBe(4);
  expect(costOf({ ...usage, output: 7, cacheRead: 10 }, price)).toBe(108);
});

const settings = readGatewaySettings({
  ANTHROPIC_API_KEY: "key",
  OPENAI_API_KEY: "key",
  SLIPWAY_MODEL_JUDGE: "anthropic/claude-opus-5-5",
  SLIPWAY_MODEL_PLAN: "openai/gpt-5.4",
});

test("a request names a role, a model with its provider, or the bare model", () => {
  const routes = resolveRoutes(settings, ["build", "plan"]);
  for (const name of ["build", "anthropic/claude-sonnet-5-5", "claude-sonnet-5-5"]) {
    expect(chooseRoute(settings, routes, name)).toMatchObject({ role: "build", model: "claude-sonnet-5-5" });
  }
  expect(chooseRoute(settings, routes, "gpt-5.4")).toMatchObject({ role: "plan", name: "openai/gpt-5.4" });
});

test("what the run was not given is forbidden, and what nobody has is unknown", () => {
  const routes = resolveRoutes(settings, ["build"]);
  const codeOf = (name: string) => {
    try {
      chooseRoute(settings, routes, name);
    } catch (error) {
      return hasCode(error, "role_forbidden") ? "role_forbidden" : (error as { code: string }).code;
    }
    return undefined;
  };
  for (const name of ["judge", "claude-opus-5-5", "anthropic/claude-opus-5-5", "plan", "gpt-5.4", "openai/gpt-5.4"]) {
    expect(codeOf(name)).toBe("role_forbidden");
  }
  for (const name of ["nonsense", "gpt-99", "someone/else"]) expect(codeOf(name)).toBe("unknown_model");
});
