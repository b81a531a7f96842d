import { expect, test } from "vitest";
import { parseDockerfile } from "./dockerfile.ts";

test.each([
  ["FROM --platform=linux/amd64 debian:12 AS base", { type: "from", image: "debian:12" }],
  ["RUN apt-get update", { type: "run", argv: ["/bin/sh", "-c", "apt-get update"], text: "apt-get update" }],
  ['RUN ["echo", "a b"]', { type: "run", argv: ["echo", "a b"], text: '["echo", "a b"]' }],
  ["RUN [ -d /tmp ]", { type: "run", argv: ["/bin/sh", "-c", "[ -d /tmp ]"], text: "[ -d /tmp ]" }],
  ['ENV A=1 B="two words" C=a\\ b', { type: "environment", variables: { A: "1", B: "two words", C: "a b" } }],
  ["env OLD the whole line", { type: "environment", variables: { OLD: "the whole line" } }],
  ["WORKDIR /srv", { type: "workdir", path: "/srv" }],
  ['ENTRYPOINT ["/init"]', { type: "entrypoint", argv: ["/init"] }],
])("%s", (line, instruction) => {
  expect(parseDockerfile([line])).toEqual([instruction]);
});

test("lines continue, comments and what changes nothing are left out", () => {
  const text = "# first\nRUN one && \\\n  # in between\n  two\n\nLABEL a=b\nEXPOSE 80\nUSER root";
  expect(parseDockerfile([text])).toEqual([
    { type: "run", argv: ["/bin/sh", "-c", "one &&    two"], text: "one &&    two" },
  ]);
});

test.each([
  ["COPY . /app", /COPY is not supported/],
  ["ADD https://example.com /app", /ADD is not supported/],
  ["USER nobody", /images run as root/],
  ["FETCH it", /Unknown instruction: FETCH/],
  ["ENV", /expected NAME=value/],
])("%s is refused", (line, words) => {
  expect(() => parseDockerfile([line])).toThrow(words);
});
