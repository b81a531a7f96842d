import { join } from "node:path";
import { absolutePath } from "@slipway/contract";
import { z } from "zod";
import { checkKey } from "./storage.ts";

/** The variables are those of AWS's own tools, but for the place itself. */
export const storageRules = {
  SLIPWAY_STORAGE: z.string().transform(parseRoot).optional(),
  AWS_ENDPOINT_URL_S3: z
    .url({ protocol: /^https?$/, error: "expected an address such as https://s3.example.com" })
    // Messages name the address.
    .refine((text) => !text.includes("@"), "expected an address without a user or a password")
    .optional(),
  AWS_REGION: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "expected a region such as eu-central-1")
    .optional()
    .default("us-east-1"),
  AWS_ACCESS_KEY_ID: z.string().optional(),
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
  AWS_SESSION_TOKEN: z.string().optional(),
};
const storageSchema = z.object(storageRules);
export type StorageVariables = z.output<typeof storageSchema>;

/** A bucket, and the directory of it that is meant. */
export interface S3Place {
  readonly bucket: string;
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string;
}

export interface S3Settings {
  readonly bucket: string;
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly keyId: string;
  readonly secret: string;
  readonly sessionToken: string | undefined;
}

export interface StorageSettings {
  /** Where everything without a place of its own is kept. */
  readonly root: { readonly directory: string } | S3Place;
  /** For the root and for every `s3://` place; undefined without credentials. */
  readonly s3: Omit<S3Settings, "bucket"> | undefined;
}

/** Mistakes that no variable makes alone. */
export function storageMistakes({
  SLIPWAY_STORAGE: root,
  AWS_ACCESS_KEY_ID: keyId,
  AWS_SECRET_ACCESS_KEY: secret,
}: StorageVariables): string[] {
  // Without S3 they are for other programs.
  if (typeof root !== "object" || (keyId !== undefined && secret !== undefined)) return [];
  const missing = [
    ...(keyId === undefined ? ["AWS_ACCESS_KEY_ID"] : []),
    ...(secret === undefined ? ["AWS_SECRET_ACCESS_KEY"] : []),
  ];
  return missing.map((name) => `${name}: SLIPWAY_STORAGE is in S3, which needs it.`);
}

export function storageSettings(variables: StorageVariables, stateDir: string): StorageSettings {
  const { SLIPWAY_STORAGE: root = join(stateDir, "storage") } = variables;
  const { AWS_ACCESS_KEY_ID: keyId, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: sessionToken } = variables;
  const { AWS_ENDPOINT_URL_S3: endpoint, AWS_REGION: region } = variables;
  return {
    root: typeof root === "string" ? { directory: root } : root,
    s3: keyId === undefined || secret === undefined ? undefined : { endpoint, region, keyId, secret, sessionToken },
  };
}

function parseRoot(text: string, context: z.RefinementCtx): string | S3Place {
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  if (text.startsWith("s3://")) return parseS3(text, refuse);
  for (const { message } of absolutePath.safeParse(text).error?.issues ?? []) refuse(message);
  return text;
}

/** `s3://bucket/prefix` */
export function parseS3(text: string, refuse: (mistake: string) => void): S3Place {
  const [, bucket = "", prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/+(.*?)\/*)?$/s.exec(text) ?? [];
  if (bucket !== "" && isPrefix(prefix)) return { bucket, prefix };
  refuse(`"${text}" is not a place such as s3://bucket/prefix`);
  return { bucket, prefix };
}

function isPrefix(prefix: string): boolean {
  try {
    return prefix === "" || checkKey(prefix) === prefix;
  } catch {
    return false;
  }
}
