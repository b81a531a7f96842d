import { SlipwayError } from "@slipway/contract";

export type Given = Readonly<Record<string, string | undefined>>;

/** Reads one setting; a mistake in it is kept for later, so that one look shows them all. */
export type Collect = <T>(read: () => T, otherwise: T) => T;

export function mistake(message: string): SlipwayError {
  return new SlipwayError("invalid_settings", message);
}
