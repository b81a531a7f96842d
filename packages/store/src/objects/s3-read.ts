import { GetObjectCommand, type GetObjectCommandOutput, type S3Client } from "@aws-sdk/client-s3";
import { pause, SlipwayError } from "@slipway/contract";
import { hasName, s3Failure } from "./s3-failures.ts";
import type { ObjectStorage } from "./storage.ts";

interface Source {
  readonly bucket: string;
  readonly place: string;
  readonly limits: { readonly stallMs: number; readonly tries: number };
}

/** Reads objects. An answer that breaks off or stalls is asked for again from the byte that it reached. */
export function createS3Reader(client: S3Client, { bucket, place, limits }: Source): ObjectStorage["get"] {
  return async function* (key, { offset = 0, length, signal } = {}) {
    const end = length === undefined ? "" : offset + length - 1;
    if (length === 0) return;
    let at = offset;
    let tag: string | undefined;
    for (let failures = 0; ; ) {
      const answer = await ask(key, at === 0 && end === "" ? undefined : `bytes=${at}-${end}`, signal);
      if (answer === undefined) return;
      if (tag !== undefined && answer.ETag !== tag) throw replaced(key);
      tag = answer.ETag;
      try {
        for await (const part of body(answer, place, limits.stallMs)) {
          at += part.length;
          failures = 0;
          yield part;
        }
        return;
      } catch (error) {
        signal?.throwIfAborted();
        if (++failures >= limits.tries) throw s3Failure(error, place, key);
        await pause(100 * 2 ** failures, signal);
      }
    }
  };
  /** The client repeats what has no answer. Undefined: nothing is there from this byte on. */
  async function ask(key: string, Range: string | undefined, signal: AbortSignal | undefined) {
    signal?.throwIfAborted();
    try {
      const request = new GetObjectCommand({ Bucket: bucket, Key: key, ...(Range !== undefined && { Range }) });
      return await client.send(request, signal ? { abortSignal: signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      if (hasName(error, "InvalidRange")) return undefined;
      throw s3Failure(error, place, key);
    }
  }
}

async function* body(answer: GetObjectCommandOutput, place: string, stallMs: number): AsyncGenerator<Uint8Array> {
  if (answer.Body === undefined || answer.ContentLength === undefined) {
    throw new SlipwayError("storage_unavailable", `${place} answers without an object.`);
  }
  const stream = answer.Body as AsyncIterable<Uint8Array> & { destroy(error?: Error): void };
  const watch = () => setTimeout(() => stream.destroy(stalled(place, stallMs)), stallMs);
  let timer = watch();
  let left = answer.ContentLength;
  try {
    for await (const part of stream) {
      left -= part.length;
      // The consumer may take its time.
      clearTimeout(timer);
      yield part;
      timer = watch();
    }
  } finally {
    clearTimeout(timer);
  }
  if (left !== 0) throw new SlipwayError("storage_unavailable", `${place} broke off in the middle of an object.`);
}

function stalled(place: string, stallMs: number): SlipwayError {
  return new SlipwayError("storage_unavailable", `${place} sent nothing for ${stallMs / 1000} s.`);
}

function replaced(key: string): SlipwayError {
  return new SlipwayError("storage_damaged", `The object ${key} was replaced while it was read.`);
}
