import { Readable } from "node:stream";
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { doubling, retry, SlipwayError } from "@slipway/contract";
import { hasName, s3Failure } from "./s3-failures.ts";
import { createS3Reader } from "./s3-read.ts";
import type { S3Settings } from "./settings.ts";
import {
  checkKey,
  maxPageObjects,
  type ObjectContent,
  type ObjectStorage,
  objectExists,
  type StorageCall,
} from "./storage.ts";

export interface S3Limits {
  readonly connectMs: number;
  /** Until a request has its answer's beginning; a request carries at most `partBytes`. */
  readonly answerMs: number;
  /** Between two pieces of an answer's body. */
  readonly stallMs: number;
  readonly tries: number;
}

const defaultLimits: S3Limits = { connectMs: 10_000, answerMs: 120_000, stallMs: 60_000, tries: 4 };
/** Parts are buffered, because the client repeats a request only if it still has its bytes. */
const partBytes = 8 * 1024 * 1024;
const partsAtOnce = 2;
/** S3 copies no larger object in one request. */
const maxCopyBytes = 5 * 1024 ** 3;
/** Stays in the bucket, so that later starts need one request. */
const probeKey = ".slipway-probe";

/**
 * Objects in a bucket. Uses of S3 only what every server has: no checksums but those that a request needs, addresses by
 * path, and If-None-Match alone for conditions.
 */
export async function openS3Storage(settings: S3Settings, limits: Partial<S3Limits> = {}): Promise<ObjectStorage> {
  const effective = { ...defaultLimits, ...limits };
  const client = createClient(settings, effective);
  const place = `bucket ${settings.bucket} at ${settings.endpoint ?? `S3 in ${settings.region}`}`;
  const storage = createStorage(client, settings.bucket, place, effective);
  try {
    await proveClaims(storage, place);
  } catch (error) {
    client.destroy();
    throw error;
  }
  return storage;
}

function createClient({ endpoint, region, keyId, secret, sessionToken }: S3Settings, limits: S3Limits): S3Client {
  return new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint }),
    forcePathStyle: true,
    credentials: { accessKeyId: keyId, secretAccessKey: secret, ...(sessionToken !== undefined && { sessionToken }) },
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    maxAttempts: limits.tries,
    requestHandler: {
      connectionTimeout: limits.connectMs,
      requestTimeout: limits.answerMs,
      throwOnRequestTimeout: true,
      socketTimeout: limits.answerMs,
    },
  });
}

function createStorage(client: S3Client, Bucket: string, place: string, limits: S3Limits): ObjectStorage {
  /** The signal's own reason is what an abort fails with. */
  const calling = async <T>(key: string | undefined, { signal }: StorageCall, work: () => Promise<T>): Promise<T> => {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      throw s3Failure(error, place, key);
    }
  };
  const aborting = ({ signal }: StorageCall) => (signal === undefined ? {} : { abortSignal: signal });
  const head = (key: string, options: StorageCall = {}) =>
    calling(key, options, async () => {
      const answer = await client.send(new HeadObjectCommand({ Bucket, Key: checkKey(key) }), aborting(options));
      if (answer.ContentLength === undefined || answer.LastModified === undefined) throw notS3(place);
      return { key, size: answer.ContentLength, modifiedAtMs: answer.LastModified.getTime() };
    });
  const read = createS3Reader(client, { bucket: Bucket, place, limits });
  const put = (key: string, content: ObjectContent, options: StorageCall = {}) =>
    calling(key, options, () => upload(client, { Bucket, Key: checkKey(key) }, content, place, options.signal));
  return {
    put,
    head,
    create: (key, content, options = {}) =>
      calling(key, options, async () => {
        const Body = Buffer.from(content);
        const request = new PutObjectCommand({ Bucket, Key: checkKey(key), Body, IfNoneMatch: "*" });
        const send = () => client.send(request, aborting(options));
        try {
          // Two claims at once: neither has been decided.
          const mayPass = (error: unknown) => hasName(error, "ConditionalRequestConflict");
          const waitsMs = [...doubling(50, 1000).take(limits.tries)];
          const { ETag } = await retry(send, { waitsMs, mayPass, signal: options.signal });
          if (ETag === undefined) throw notS3(place);
        } catch (error) {
          if (!hasName(error, "PreconditionFailed")) throw error;
          if (!(await isContent(read(key, options), Body))) throw objectExists(key, error);
        }
      }),
    get: (key, options = {}) => read(checkKey(key), options),
    list: (prefix, { after, limit = maxPageObjects, ...options } = {}) =>
      calling(undefined, options, async () => {
        const request = new ListObjectsV2Command({
          Bucket,
          Prefix: prefix,
          ...(after !== undefined && { StartAfter: after }),
          MaxKeys: Math.min(limit, maxPageObjects),
          // Without it, no XML can tell of a key with control characters.
          EncodingType: "url",
        });
        const answer = await client.send(request, aborting(options));
        if (answer.KeyCount === undefined && answer.IsTruncated === undefined) throw notS3(place);
        const objects = (answer.Contents ?? []).map(({ Key, Size, LastModified }) => {
          if (Key === undefined || Size === undefined || LastModified === undefined) throw notS3(place);
          return { key: decodeKey(Key), size: Size, modifiedAtMs: LastModified.getTime() };
        });
        return { objects, next: answer.IsTruncated === true ? (objects.at(-1)?.key ?? null) : null };
      }),
    copy: (from, to, options = {}) =>
      calling(from, options, async () => {
        const { size } = await head(from, options);
        if (size > maxCopyBytes) {
          await put(to, read(from, options), options);
          return;
        }
        const CopySource = encodeURI(`${Bucket}/${from}`).replace(/[?#+]/g, encodeURIComponent);
        const request = new CopyObjectCommand({ Bucket, Key: checkKey(to), CopySource });
        const { CopyObjectResult } = await client.send(request, aborting(options));
        if (CopyObjectResult?.ETag === undefined) throw notS3(place);
      }),
    delete: (key, options = {}) =>
      calling(undefined, options, async () => {
        await client.send(new DeleteObjectCommand({ Bucket, Key: checkKey(key) }), aborting(options));
      }),
    async [Symbol.asyncDispose]() {
      client.destroy();
    },
  };
}

async function upload(
  client: S3Client,
  target: { readonly Bucket: string; readonly Key: string },
  content: ObjectContent,
  place: string,
  signal: AbortSignal | undefined,
): Promise<{ size: number }> {
  if (typeof content === "string" || (content instanceof Uint8Array && content.length <= partBytes)) {
    const Body = Buffer.from(content);
    const { ETag } = await client.send(
      new PutObjectCommand({ ...target, Body }),
      signal ? { abortSignal: signal } : {},
    );
    if (ETag === undefined) throw notS3(place);
    return { size: Body.length };
  }
  const source = countedSource(content);
  const params = { ...target, Body: Readable.from(source.bytes) };
  const parts = new Upload({ client, params, partSize: partBytes, queueSize: partsAtOnce });
  const abort = () => void parts.abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const { ETag } = await parts.done();
    if (ETag === undefined) throw notS3(place);
  } catch (error) {
    throw source.failure() ?? error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
  return { size: source.size() };
}

/** Tells a failure of the content's own source from one of the upload. */
function countedSource(content: Uint8Array | AsyncIterable<Uint8Array>) {
  let size = 0;
  let failure: unknown;
  async function* bytes() {
    try {
      for await (const part of content instanceof Uint8Array ? [content] : content) {
        size += part.length;
        yield part;
      }
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  return { bytes: bytes(), size: () => size, failure: () => failure };
}

/** A server that does not know If-None-Match ignores it, and would let two writers win. */
async function proveClaims(storage: ObjectStorage, place: string): Promise<void> {
  for (const attempt of ["first", "second"]) {
    try {
      await storage.create(probeKey, `${attempt} ${crypto.randomUUID()}`);
    } catch (error) {
      if (error instanceof SlipwayError && error.code === "object_exists") return;
      throw error;
    }
  }
  throw new SlipwayError(
    "storage_unfit",
    `SLIPWAY_STORAGE: the server of ${place} ignores If-None-Match, so two writers could both win.`,
  );
}

async function isContent(parts: AsyncIterable<Uint8Array>, expected: Buffer): Promise<boolean> {
  let at = 0;
  for await (const part of parts) {
    if (!expected.subarray(at, at + part.length).equals(part)) return false;
    at += part.length;
  }
  return at === expected.length;
}

function decodeKey(encoded: string): string {
  return decodeURIComponent(encoded.replaceAll("+", " "));
}

function notS3(place: string): SlipwayError {
  return new SlipwayError("storage_unavailable", `AWS_ENDPOINT_URL_S3: ${place} does not answer as an S3 server does.`);
}
