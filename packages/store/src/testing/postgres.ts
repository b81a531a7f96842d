import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import pg from "pg";

export interface TestPostgres extends AsyncDisposable {
  /** The address of a new, empty database. */
  createDatabase(): Promise<string>;
}

/** A Postgres of its own, in a temporary directory and reached by a socket in it. It waits for no disk, unless it is durable. */
export async function startPostgres({ isDurable = false } = {}): Promise<TestPostgres> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-pg-"));
  const { prefix, uid } = asOrdinaryUser();
  if (uid !== undefined) chownSync(directory, uid, uid);
  const data = join(directory, "data");
  const initdb = [
    ...prefix,
    join(binaries(), "initdb"),
    "-D",
    data,
    "-U",
    "slipway",
    "-A",
    "trust",
    "-N",
    "-E",
    "UTF8",
  ];
  execFileSync("env", [...initdb, "--no-locale"], { cwd: directory, stdio: ["ignore", "ignore", "inherit"] });
  const settings = [
    "listen_addresses=",
    `unix_socket_directories=${directory}`,
    `fsync=${isDurable ? "on" : "off"}`,
    "max_connections=60",
  ];
  const options = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
  const server = spawn("env", [...prefix, join(binaries(), "postgres"), ...options], {
    cwd: directory,
    stdio: ["ignore", "ignore", "pipe"],
  });
  await readyToAccept(server.stderr);
  const address = (name: string) => `postgres://slipway@localhost/${name}?host=${encodeURIComponent(directory)}`;
  let databases = 0;
  return {
    async createDatabase() {
      const client = new pg.Client(address("postgres"));
      await client.connect();
      const name = `test_${++databases}`;
      await client.query(`create database ${name}`);
      await client.end();
      return address(name);
    },
    async [Symbol.asyncDispose]() {
      // Immediate: what it holds is thrown away.
      server.kill("SIGQUIT");
      if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
      rmSync(directory, { recursive: true, maxRetries: 10 });
    },
  };
}

/** Postgres refuses to run as root, and as a user that has no name. */
function asOrdinaryUser(): { readonly prefix: readonly string[]; readonly uid: number | undefined } {
  if (process.getuid?.() !== 0) return { prefix: [], uid: undefined };
  const [, , uid] =
    readFileSync("/etc/passwd", "utf8")
      .match(/^postgres:.*?$/m)?.[0]
      .split(":") ?? [];
  if (uid === undefined) throw new Error("there is no user postgres; `node scripts/setup.mjs --tests` makes one");
  return { prefix: ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"], uid: Number(uid) };
}

function binaries(): string {
  const newest = globSync("/usr/lib/postgresql/*/bin").sort().at(-1);
  if (newest === undefined) throw new Error("there is no Postgres; `node scripts/setup.mjs --tests` installs it");
  return newest;
}

async function readyToAccept(log: NodeJS.ReadableStream): Promise<void> {
  let told = "";
  await new Promise<void>((resolve, reject) => {
    log.on("data", (chunk: Buffer) => {
      told += chunk.toString();
      if (told.includes("ready to accept connections")) resolve();
    });
    log.on("end", () => reject(new Error(`Postgres has ended: ${told}`)));
  });
}
