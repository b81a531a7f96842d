import { type ChildProcess, spawn } from "node:child_process";
import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { checkHealth, type RestateAddress } from "./api.ts";
import type { RestateSettings } from "./drive.ts";

const program = fileURLToPath(
  new URL(
    `../../../../../scripts/test-restate/node_modules/@restatedev/restate-server-linux-${process.arch}/bin/restate-server`,
    import.meta.url,
  ),
);

/** A real Restate, reached by sockets that only this user can open. It is killed with its disposal. */
export interface TestRestate extends AsyncDisposable {
  readonly address: RestateAddress;
  /** As a server is told of it. */
  readonly settings: RestateSettings;
  /** With -9; answers when it is gone. */
  kill(): Promise<void>;
  /** Answers when it is ready. */
  start(): Promise<void>;
  /** While it does not run. */
  loseData(): void;
}

export async function startRestate(): Promise<TestRestate> {
  // Short: the path of a socket has at most 107 bytes.
  const directory = mkdtempSync(join(tmpdir(), "slipway-restate-"));
  const data = join(directory, "data");
  const { privatePem, identityKey } = newIdentity();
  const identityPath = join(directory, "identity.pem");
  writeFileSync(identityPath, privatePem, { mode: 0o600 });
  const socket = (name: string) => `unix:${join(data, "slipway", `${name}.sock`)}`;
  const address = { ingressUrl: socket("ingress"), adminUrl: socket("admin") };
  let child: ChildProcess | undefined;
  let losses = 0;
  const start = async () => {
    // Its sockets follow the umask.
    const argv = ["-c", 'umask 077; exec "$@"', "sh", program, "--base-dir", data, "--node-name", "slipway"];
    child = spawn("/bin/sh", argv, { cwd: directory, env: environment(identityPath), stdio: "ignore" });
    const ended = once(child, "exit").then(([code, signal]) => {
      throw new Error(`Restate has ended by ${signal ?? code}`);
    });
    ended.catch(() => {});
    while (!(await Promise.race([isHealthy(address), ended]))) await delay(20);
  };
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
  };
  const end = async () => {
    await kill();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  await start().catch(async (error) => {
    await end();
    throw error;
  });
  return {
    address,
    settings: { url: address.ingressUrl, identityKey },
    start,
    kill,
    loseData: () => renameSync(data, join(directory, `lost-${++losses}`)),
    [Symbol.asyncDispose]: end,
  };
}

async function isHealthy(address: RestateAddress): Promise<boolean> {
  return await checkHealth(address, 15_000).then(
    () => true,
    () => false,
  );
}

/** Small, and without a port. */
function environment(identityPath: string): Record<string, string> {
  return {
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LISTEN_MODE: "unix",
    RESTATE_LOG_FILTER: "error",
    RESTATE_ADMIN__DISABLE_WEB_UI: "true",
    RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE: identityPath,
    RESTATE_DEFAULT_NUM_PARTITIONS: "1",
    RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: "64 MiB",
    RESTATE_BIFROST__RECORD_CACHE_MEMORY_SIZE: "8 MiB",
    RESTATE_ADMIN__QUERY_ENGINE__MEMORY_SIZE: "64 MiB",
    RESTATE_DEFAULT_RETRY_POLICY__MAX_ATTEMPTS: "unlimited",
  };
}

/** What Restate signs with, and its public half as Restate writes it. */
export function newIdentity(): { readonly privatePem: string; readonly identityKey: string } {
  const { privateKey } = generateKeyPairSync("ed25519");
  const privatePem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const { x = "" } = createPublicKey(createPrivateKey(privatePem)).export({ format: "jwk" });
  return { privatePem, identityKey: `publickeyv1_${base58(Buffer.from(x, "base64url"))}` };
}

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

function base58(bytes: Uint8Array): string {
  let digits = "";
  for (let rest = BigInt(`0x0${Buffer.from(bytes).toString("hex")}`); rest > 0n; rest /= 58n) {
    digits = alphabet[Number(rest % 58n)] + digits;
  }
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(zeros === -1 ? bytes.length : zeros) + digits;
}

/** A process of fixture.ts: its lines as they come. */
export function startFixture(settings: RestateSettings & { readonly name: string }) {
  const path = fileURLToPath(new URL("fixture.ts", import.meta.url));
  const child = spawn(process.execPath, [path, JSON.stringify(settings)], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    async line<T>(): Promise<T> {
      const { value, done } = await lines.next();
      if (done) throw new Error("the fixture has ended");
      return JSON.parse(value);
    },
    kill: () => child.kill("SIGKILL"),
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}
