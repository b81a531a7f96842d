import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, test } from "vitest";
import { decideAccess } from "./access.ts";
import { accessCookie } from "./cookies.ts";

const token = "a-token-of-the-preview";
const host = "127.0.0.1:4000";
const name = accessCookie(token);
const cookie = `theme=dark; ${name}=${token}`;

function access(path: string, headers: IncomingHttpHeaders = {}, method = "GET", isUpgrade = false) {
  const decision = decideAccess({ method, path, headers: { host, ...headers }, isUpgrade }, token, 4000);
  return decision.verdict === "refuse" ? decision.status : `${decision.verdict} ${decision.path}`;
}

const browser = { "sec-fetch-mode": "navigate" };
const oldBrowser = { accept: "text/html,*/*" };

describe("the token", () => {
  test.each<[string, IncomingHttpHeaders, string | number]>([
    ["/", {}, 401],
    ["/", { "x-slipway-token": token }, "enter /"],
    ["/", { "x-slipway-token": `${token}x` }, 401],
    ["/", { "x-slipway-token": "" }, 401],
    [`/a?slipway_token=${token}`, browser, "remember /a"],
    [`/a?b=1&slipway_token=${token}&c=2`, browser, "remember /a?b=1&c=2"],
    [`/a?slipway%5Ftoken=${token}&x=%26`, oldBrowser, "remember /a?x=%26"],
    [`/a?slipway_token=${token}`, {}, "enter /a"],
    [`/a?slipway_token=${token}`, { ...oldBrowser, "sec-fetch-mode": "cors" }, "enter /a"],
    ["/a?slipway_token=wrong", {}, 401],
    ["/a?slipway_token=", {}, 401],
    ["/a?slipway_token=wrong&b=1", { cookie }, "enter /a?b=1"],
    ["/a", { cookie }, "enter /a"],
    ["/a", { cookie: `${name}=forged; ${name}=${token}` }, "enter /a"],
    ["/a", { cookie: `${accessCookie("another preview's")}=${token}` }, 401],
    ["/a", { cookie: `${name}=` }, 401],
    ["http://127.0.0.1:4000/", { "x-slipway-token": token }, 400],
    ["*", { "x-slipway-token": token }, 400],
  ])("%s with %j: %s", (path, headers, expected) => {
    expect(access(path, headers)).toBe(expected);
  });

  test("a token in the address of anything but a visit lets in without a redirect", () => {
    expect(access(`/a?slipway_token=${token}`, {}, "POST")).toBe("enter /a");
    expect(access(`/ws?slipway_token=${token}`, { origin: `http://${host}` }, "GET", true)).toBe("enter /ws");
  });
});

describe("the cookie alone", () => {
  test.each<[string, string, IncomingHttpHeaders, string | number]>([
    ["GET", "the page itself", { "sec-fetch-site": "same-origin" }, "enter /"],
    ["GET", "the address bar", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, "enter /"],
    ["GET", "a link on another page", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, "enter /"],
    ["POST", "a form on another page", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, 403],
    ["GET", "a script of another preview", { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" }, 403],
    ["POST", "the page itself, in an old browser", { origin: `http://${host}` }, "enter /"],
    ["POST", "another page, in an old browser", { origin: "http://127.0.0.1:5000" }, 403],
    ["POST", "curl", {}, "enter /"],
  ])("a %s from %s", (method, _, headers, expected) => {
    expect(access("/", { cookie, ...headers }, method)).toBe(expected);
  });

  test.each<[string | undefined, string | number]>([
    [`http://${host}`, "enter /ws"],
    [undefined, "enter /ws"],
    ["http://evil.example", 403],
    ["http://127.0.0.1:4001", 403],
    ["null", 403],
  ])("opens a WebSocket for a page of origin %s: %s", (origin, expected) => {
    expect(access("/ws", { cookie, ...(origin === undefined ? {} : { origin }) }, "GET", true)).toBe(expected);
  });
});

test.each<[string | undefined, string | number]>([
  ["127.0.0.1:4000", "enter /"],
  ["localhost:4000", "enter /"],
  ["127.0.0.1:4001", 421],
  ["127.0.0.1", 421],
  ["rebound.example:4000", 421],
  ["localhost.rebound.example:4000", 421],
  ["127.0.0.1:4000, rebound.example", 421],
  ["", 421],
  [undefined, 421],
])("a preview that is called %s, by whoever has its token: %s", (called, expected) => {
  expect(access("/", { host: called, cookie, "x-slipway-token": token })).toBe(expected);
  expect(access(`/?slipway_token=${token}`, { host: called }, "GET", true)).toBe(expected);
});

test("a WebSocket of another page is refused, whatever it brings", () => {
  const headers = { cookie, "x-slipway-token": token, origin: "http://evil.example" };
  expect(access(`/ws?slipway_token=${token}`, headers, "GET", true)).toBe(403);
});
