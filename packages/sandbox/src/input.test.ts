import { describe, expect, test } from "vitest";
import { holdPath, parseCreate, parseExec, parsePort } from "./input.ts";
import { fakeCapabilities } from "./testing/fake-provider.ts";

describe("a refusal", () => {
  const refuse = (input: unknown) => {
    try {
      parseCreate(input, fakeCapabilities);
    } catch (error) {
      return error;
    }
    throw new Error("not refused");
  };

  test("names every mistake, each with its field", () => {
    expect(refuse({ cpu: -1, memoryMb: 1, network: { cidrs: ["x"] }, image: "alpine" })).toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(/image: .*cpu: .*memoryMb: .*network\.cidrs\.0: expected a range such as/s),
    });
  });

  test("has the code of its kind when all mistakes are of one", () => {
    expect(refuse({ cpu: -1, memoryMb: 1 })).toMatchObject({ code: "invalid_limits" });
    expect(refuse({ image: { base: "alpine" } })).toMatchObject({ code: "unknown_image" });
    expect(refuse({ image: { pip: ["-r x"] } })).toMatchObject({ code: "invalid_request" });
  });

  test("says what the provider lacks", () => {
    expect(refuse({ gpu: "T4" })).toMatchObject({
      code: "capability_missing",
      message: expect.stringContaining("gpu"),
    });
  });
});

test("a shell text becomes an argv", () => {
  expect(parseExec({ shell: "exit 3" }, fakeCapabilities).argv).toEqual(["sh", "-c", "exit 3"]);
});

test("a port is one that the sandbox opens", () => {
  expect(parsePort(3000, [3000])).toBe(3000);
  for (const port of [3001, 0, 65_536, 1.5, Number.NaN]) {
    expect(() => parsePort(port, [3000, 0, 65_536, 1.5])).toThrow(expect.objectContaining({ code: "invalid_port" }));
  }
});

describe("a path", () => {
  test.each([
    ["/a/b", "/a/b"],
    ["a/./b//c/", "/app/dir/a/b/c"],
    [".", "/app/dir"],
    ["..", "/app"],
    ["../../etc", "/etc"],
    ["/a/../b", "/b"],
    ["/", "/"],
  ])("%s is %s", (path, absolute) => {
    expect(holdPath(path, "/app/dir")).toBe(absolute);
  });

  test.each(["../../..", "/..", "/a/../../a", "../../../app/dir/x"])("%s leads out, even if it comes back", (path) => {
    expect(() => holdPath(path, "/app/dir")).toThrow(expect.objectContaining({ code: "path_outside" }));
  });
});
