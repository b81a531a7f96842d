import { SlipwayError } from "@slipway/contract";
import { objectNotFound } from "./storage.ts";

const credentials = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY";

/** What S3's own error codes mean for whoever set it up. */
const refusals: Readonly<Record<string, string>> = {
  NoSuchBucket: "SLIPWAY_STORAGE: there is no such bucket",
  InvalidBucketName: "SLIPWAY_STORAGE: the server does not take this bucket's name",
  InvalidAccessKeyId: `${credentials}: the server does not know this key`,
  SignatureDoesNotMatch: `${credentials}: the secret does not belong to this key`,
  InvalidToken: "AWS_SESSION_TOKEN: the server refuses it",
  ExpiredToken: "AWS_SESSION_TOKEN: it has expired",
  AccessDenied: `${credentials}: they may not use this bucket`,
  AllAccessDisabled: `${credentials}: they may not use this bucket`,
  RequestTimeTooSkewed: `${credentials}: the server refuses them because this machine's clock is wrong`,
  AuthorizationHeaderMalformed: "AWS_REGION: the bucket is in another region",
  PermanentRedirect: "AWS_REGION, AWS_ENDPOINT_URL_S3: the bucket is at another address",
};

/** Tells an error of the client or the server in Slipway's words. `place` is the bucket, and where its server is. */
export function s3Failure(error: unknown, place: string, key?: string): unknown {
  if (error instanceof SlipwayError || !(error instanceof Error)) return error;
  const { name, message } = error;
  const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
  if (key !== undefined && (name === "NoSuchKey" || name === "NotFound")) return objectNotFound(key, error);
  const refusal = refusals[name] ?? byStatus(status);
  const words = `${name}: ${message}`.slice(0, 500);
  return refusal === undefined
    ? new SlipwayError("storage_unavailable", `${place} does not work: ${words}`, { cause: error })
    : new SlipwayError("storage_refused", `${refusal} (${place}; ${words}).`, { cause: error });
}

/** Answers without a body, such as those to HEAD, have no code. */
function byStatus(status: number | undefined): string | undefined {
  if (status === 401 || status === 403) return refusals.AccessDenied;
  if (status === 301 || status === 307) return refusals.PermanentRedirect;
  if (status === 404) return refusals.NoSuchBucket;
  return undefined;
}

export function hasName(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof Error && names.includes(error.name);
}
