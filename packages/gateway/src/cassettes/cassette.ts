import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { z } from "zod";

/** Version of the normalisation and of the file format. Changing either invalidates old cassettes. */
const version = 1;

/** One recorded answer. It holds none of the request's headers. */
const cassetteSchema = z.strictObject({
  version: z.literal(version),
  /** The normalised request. */
  request: z.string(),
  status: z.int(),
  contentType: z.string(),
  encoding: z.enum(["utf8", "base64"]),
  body: z.string(),
});

export interface Recording {
  readonly request: string;
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** Files `<key>.json`, `<key>.1.json`, ... in one directory: the answers to the same request, in order. */
export interface CassetteDirectory {
  read(key: string, index: number): Recording | undefined;
  /** Replaces an existing recording. */
  write(key: string, index: number, recording: Recording): void;
  /** Returns the normalised requests of all cassettes. */
  requests(): string[];
}

export function openCassetteDirectory(directory: string): CassetteDirectory {
  const read = (name: string): Recording | undefined => {
    const text = readIfThere(join(directory, name));
    return text === undefined ? undefined : parse(text, name);
  };
  return {
    read: (key, index) => read(fileName(key, index)),
    write(key, index, { body, ...recording }) {
      mkdirSync(directory, { recursive: true });
      const text = body.toString("utf8");
      const encoding = Buffer.from(text).equals(body) ? "utf8" : "base64";
      const cassette = { version, ...recording, encoding, body: body.toString(encoding) };
      const draft = join(directory, `.${randomUUID()}`);
      writeFileSync(draft, `${JSON.stringify(cassette, null, 1)}\n`, { flush: true });
      renameSync(draft, join(directory, fileName(key, index)));
    },
    requests: () => cassetteNames(directory).flatMap((name) => read(name)?.request ?? []),
  };
}

function fileName(key: string, index: number): string {
  return index === 0 ? `${key}.json` : `${key}.${index}.json`;
}

function parse(text: string, name: string): Recording {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new SlipwayError("cassette_version", `${name} is not a cassette: it is not JSON`, { cause: error });
  }
  const parsed = cassetteSchema.safeParse(json);
  if (!parsed.success) {
    const found = (json as { version?: unknown } | null)?.version;
    const message = found === version ? "its fields are wrong" : `its version is ${found}, not ${version}`;
    throw new SlipwayError("cassette_version", `${name} cannot be used: ${message}`);
  }
  const { request, status, contentType, encoding, body } = parsed.data;
  return { request, status, contentType, body: Buffer.from(body, encoding) };
}

function cassetteNames(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => name.endsWith(".json"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
