import { InvalidError, NotFoundError, ResourceExhaustedError } from "modal";
import { expect, test } from "vitest";
import { type Asked, isNotFound, isPassing, isTaken, modalError } from "./errors.ts";

/** As the SDK's gRPC library throws it. */
function status(code: number, details = "details"): Error {
  return Object.assign(new Error(`/a/Method ${code}: ${details}`), { code, details });
}

test.each<[string, unknown, Asked, string]>([
  ["refused credentials, or a clock that is off", status(16), "other", "provider_credentials_refused"],
  ["a token without the right", status(7), "create", "provider_credentials_refused"],
  ["a rate limit", status(8), "create", "provider_rate_limited"],
  ["a rate limit of the SDK's own class", new ResourceExhaustedError("slow"), "other", "provider_rate_limited"],
  ["a GPU", new InvalidError("Invalid GPU type: Z80"), "create", "unknown_gpu"],
  ["a region", status(3, "Invalid region: nowhere"), "create", "region_refused"],
  ["anything else of a create", status(3, "Invalid name"), "create", "invalid_request"],
  ["an image that is gone", new NotFoundError("Image 'im-1' not found"), "create", "snapshot_expired"],
  ["a step of an image", new Error("Image build for im-1 failed"), "image", "image_build_failed"],
  ["a connection that is cut during a build", status(14), "image", "provider_unavailable"],
  ["a connection that is cut", status(14), "other", "provider_unavailable"],
  ["a status that there is not", status(99), "other", "provider_unavailable"],
  ["something that is no error", "words", "other", "provider_unavailable"],
])("%s", (_, error, asked, code) => {
  expect(modalError(error, asked, "do it")).toMatchObject({ code, message: expect.stringContaining("do it") });
});

test("an error says Modal's words, and no more than the end of many", () => {
  expect(modalError(status(14, "no route"), "other", "list").message).toBe("Modal: list: no route");
  expect(modalError(status(14, "x".repeat(9000)), "other", "list").message.length).toBeLessThan(2100);
});

test("what is not there, what is there already, and what passes are told apart", () => {
  const errors = [status(5), status(6), status(14), status(8), status(13)];
  expect(errors.map(isNotFound)).toEqual([true, false, false, false, false]);
  expect(errors.map(isTaken)).toEqual([false, true, false, false, false]);
  expect(errors.map(isPassing)).toEqual([false, false, true, true, false]);
});
