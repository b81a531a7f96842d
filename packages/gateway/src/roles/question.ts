import type { ModelRole } from "@slipway/contract";
import type { z } from "zod";

export interface Question {
  readonly role: ModelRole;
  readonly instructions: string;
  readonly prompt: string;
  readonly images?: readonly Image[];
  readonly maxOutputTokens?: number;
  readonly signal?: AbortSignal;
}

export interface Image {
  /** Such as `image/png`. */
  readonly mediaType: string;
  readonly data: Uint8Array;
}

export interface StructuredQuestion<T> extends Question {
  readonly schema: z.ZodType<T>;
  /** How often to ask again after an answer that does not fit. */
  readonly maxRepairs?: number;
}

/** An answer that cannot be used, and why. */
export interface Unusable {
  /** As the model wrote it. */
  readonly text: string;
  readonly problem: string;
}
