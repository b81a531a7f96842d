import { expect, test } from "vitest";
import { accessCookie, cookieForBrowser, cookiesForApp } from "./cookies.ts";

const [token, other] = ["one preview", "another one"];

function kept(setCookie: string, by = token): string {
  return cookieForBrowser(setCookie, by)?.split(";")[0] ?? "";
}

test("what an app has set comes back to it as it was, and to no other app", () => {
  const cookies = [kept("session=a=b"), kept("theme=dark; Path=/; HttpOnly"), kept("__Host-x=1"), kept("empty=")];
  const header = ["foreign=1", ...cookies, kept("session=c", other), `${accessCookie(token)}=x`].join("; ");
  expect(cookiesForApp(header, token)).toBe("session=a=b; theme=dark; __Host-x=1; empty=");
  expect(cookiesForApp(header, other)).toBe("session=c");
});

test.each([
  ["cookies of other services", "session=1; connect.sid=2"],
  ["the preview's own token", `${accessCookie(token)}=x`],
  ["what goes by a name like it", `slipway_app_=1; slipway_app_x_session=1; ${accessCookie(token)}_session=2`],
  ["nothing", ""],
])("no app is given %s", (_, header) => {
  expect(cookiesForApp(header, token)).toBeUndefined();
});

test("no app sets a cookie that passes for another one's, or for a preview's token", () => {
  for (const name of ["session", accessCookie(token), accessCookie(other), kept("a", other)]) {
    const set = kept(`${name}=stolen`);
    expect(set).not.toMatch(/^(session|slipway_preview_)/);
    expect(cookiesForApp(set, other)).toBeUndefined();
  }
});

test.each(["", "nameless", "=nameless", ` =${accessCookie(token)}=x`, "; Path=/"])("%j sets nothing", (setCookie) => {
  expect(cookieForBrowser(setCookie, token)).toBeUndefined();
});

test("a cookie is its host's alone, and keeps what else is said of it", () => {
  const prefix = kept("x=").slice(0, -2);
  expect(cookieForBrowser("a=1; domain=example.com;DOMAIN = x; Domain; Path=/d; Max-Age=3; SameSite=Lax", token)).toBe(
    `${prefix}a=1; Path=/d; Max-Age=3; SameSite=Lax`,
  );
});
