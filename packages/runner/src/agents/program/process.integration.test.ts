import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { readLines } from "./lines.ts";
import { crashOf, startProgram } from "./process.ts";
import { startPlace } from "./testing.ts";

const sh = (script: string, env = {}) =>
  startProgram({ argv: ["/bin/sh", "-c", script], cwd: "/", env: { PATH: "/usr/bin:/bin", ...env } });

it("stopping a program also ends what left its session", async () => {
  await using place = await startPlace();
  const home = `${place.surroundings.homesDirectory}/x`;
  const program = await sh("setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 60; done' & wait", {
    HOME: home,
  });
  await once(program.stdout, "data");
  expect((await place.processes()).length).toBeGreaterThan(0);
  await program.stop();
  expect(await place.processes()).toEqual([]);
});

it("a program sees nothing of the runner's environment", async () => {
  const program = await sh("env");
  const lines = await Array.fromAsync(readLines(program.stdout, 10_000));
  expect(
    lines
      .map((line) => line.split("=")[0])
      .filter((name) => !/^(PATH|PWD|OLDPWD|SHLVL|_|SLIPWAY_PROCESS_MARK)$/.test(name ?? "")),
  ).toEqual([]);
});

it("a program that cannot be started is a missing component", async () => {
  await expect(startProgram({ argv: ["/nonexistent"], cwd: "/", env: {} })).rejects.toMatchObject({
    code: "component_missing",
  });
  await expect(startProgram({ argv: ["/bin/sh"], cwd: "/nonexistent", env: {} })).rejects.toMatchObject({
    code: "component_missing",
  });
});

it("a crash reports the exit and the last words", async () => {
  const program = await sh("echo 'no such luck' >&2; exit 3");
  await once(program.stdout.resume(), "close");
  expect(await crashOf(program)).toEqual({
    reason: "crashed",
    message: "The agent's program ended with exit code 3. no such luck",
  });
});

it("lines are whole in whatever pieces they arrive", async () => {
  const stream = new PassThrough();
  for (const piece of ["on", "e\ntw", "o\n\n", "thr\u00e9"]) stream.write(piece);
  stream.end("e");
  expect(await Array.fromAsync(readLines(stream, 100))).toEqual(["one", "two", "", "thr\u00e9e"]);
});

it("a line that is too long is refused", async () => {
  const stream = new PassThrough();
  stream.end("x".repeat(200));
  await expect(Array.fromAsync(readLines(stream, 100))).rejects.toMatchObject({ code: "too_large" });
});
