import { SlipwayError } from "@slipway/contract";

/** A time and some randomness, so that two syncs at once never write into one version: `2026-11-19T21-30-05.123Z-k3f9ab` */
const pattern = /^(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d\.\d{3}Z)-[0-9a-z]{6}$/;
export const versionIdLength = "2026-11-19T21-30-05.123Z-k3f9ab".length;

/** Later than the newest, whatever this machine's clock says: ids sort by age. */
export function newVersionId(nowMs: number, newest: string | undefined): string {
  const atMs = newest === undefined ? nowMs : Math.max(nowMs, versionTimeMs(newest) + 1);
  const random = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => (byte % 36).toString(36)).join("");
  return `${new Date(atMs).toISOString().replaceAll(":", "-")}-${random}`;
}

export function isVersionId(text: string): boolean {
  return pattern.test(text);
}

export function versionTimeMs(id: string): number {
  const [, day, hours, minutes, seconds] = pattern.exec(id) ?? [];
  return Date.parse(`${day}${hours}:${minutes}:${seconds}`);
}

export function checkVersionId(text: string): string {
  if (isVersionId(text)) return text;
  throw new SlipwayError("version_not_found", `${JSON.stringify(text)} is not the name of a version.`);
}
