import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { freePort } from "./free-port.ts";

export interface S3Server extends AsyncDisposable {
  readonly endpoint: string;
  readonly keyId: string;
  readonly secret: string;
  makeBucket(name: string): Promise<TestBucket>;
}

export type TestBucket = Awaited<ReturnType<typeof makeBucket>>;

/** A store that starts before its monitor is quite ready may never join it. */
const storeStartMs = 10_000;
const environment = { ...process.env, CEPH_ARGS: "" };
const keyId = "slipway-test";
const secret = "slipway-test-secret";

/**
 * A real S3 server on the loopback: Debian's radosgw over one monitor and one store in memory. It takes seconds to start.
 * Any local user can reach its inner ports, which ask for no credentials: for tests only.
 */
export async function startS3Server(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-s3-"));
  const [port, monitorPort] = [await freePort(), await freePort()];
  const [config, id] = [join(directory, "ceph.conf"), randomUUID()];
  for (const name of ["mon", "osd", "run", "rgw"]) mkdirSync(join(directory, name));
  writeFileSync(config, settings(directory, { port, monitorPort, id }));
  const programs: ChildProcess[] = [];
  const start = (program: string, ...args: string[]) => {
    const log = createWriteStream(join(directory, `${program}.log`));
    const child = spawn(program, ["-c", config, "-f", ...args], {
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    programs.push(child);
    return child;
  };
  const call = async (program: string, ...args: string[]) => {
    const { stdout } = await promisify(execFile)(program, args, { env: environment, timeout: 60_000 });
    return stdout;
  };
  const ceph = (...args: string[]) => call("ceph", "-c", config, "--connect-timeout", "10", ...args);
  const startStore = async () => {
    const child = start("ceph-osd", "-i", "0");
    const end = Date.now() + storeStartMs;
    while (Date.now() < end) {
      const { num_up_osds: up } = JSON.parse(await ceph("osd", "stat", "--format", "json"));
      if (up === 1) return;
      await sleep(200);
    }
    child.kill("SIGKILL");
    throw new Error("the store did not join its monitor");
  };
  const end = async () => {
    // The gateway lingers after TERM, and nothing is worth keeping.
    const ended = programs.map((child) => (child.exitCode ?? child.signalCode) === null && once(child, "exit"));
    for (const child of programs) child.kill("SIGKILL");
    await Promise.all(ended);
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    const [keyring, map] = [join(directory, "keyring"), join(directory, "monmap")];
    await call("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "client.rgw");
    await call("monmaptool", "--create", "--addv", "a", `[v1:127.0.0.1:${monitorPort}]`, "--fsid", id, map);
    await call("ceph-mon", "-c", config, "--mkfs", "-i", "a", "--monmap", map);
    start("ceph-mon", "-i", "a");
    const store = randomUUID();
    await untilWorks(() => ceph("osd", "new", store));
    await call("ceph-osd", "-c", config, "-i", "0", "--mkfs", "--osd-uuid", store);
    await untilWorks(startStore);
    const user = ["--uid", "slipway", "--display-name", "slipway", "--access-key", keyId, "--secret-key", secret];
    await call("radosgw-admin", "-c", config, "user", "create", ...user);
    start("radosgw", "-n", "client.rgw");
    await untilWorks(() => reach(port));
  } catch (error) {
    const logs = ["ceph-mon", "ceph-osd", "radosgw"].map((name) => tail(join(directory, `${name}.log`)));
    await end();
    throw new Error(`the S3 server did not start; \`node scripts/setup.mjs --tests\` installs it\n${logs.join("\n")}`, {
      cause: error,
    });
  }
  const endpoint = `http://127.0.0.1:${port}`;
  return { endpoint, keyId, secret, makeBucket: (name) => makeBucket(endpoint, name), [Symbol.asyncDispose]: end };
}

async function makeBucket(endpoint: string, bucket: string) {
  const s3 = { endpoint, region: "us-east-1", keyId, secret, sessionToken: undefined };
  const credentials = { accessKeyId: keyId, secretAccessKey: secret };
  const client = new S3Client({ endpoint, region: s3.region, forcePathStyle: true, credentials });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  /** The variables that name it. */
  const variables = {
    SLIPWAY_STORAGE: `s3://${bucket}`,
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_ACCESS_KEY_ID: keyId,
    AWS_SECRET_ACCESS_KEY: secret,
  };
  return { s3, settings: { ...s3, bucket }, variables };
}

interface Parts {
  readonly port: number;
  readonly monitorPort: number;
  readonly id: string;
}

/** By its second protocol, the monitor and the gateway do not meet; without a cluster address, the store listens everywhere. */
function settings(directory: string, { port, monitorPort, id }: Parts): string {
  return `[global]
fsid = ${id}
mon host = [v1:127.0.0.1:${monitorPort}]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
keyring = ${directory}/keyring
run dir = ${directory}/run
admin socket = ${directory}/run/$name.asok
log to file = false
log to stderr = true
err to stderr = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon osd min in ratio = 0
mon max pg per osd = 1000
mon data avail crit = 1
mon data = ${directory}/mon
osd objectstore = memstore
memstore device bytes = 8589934592
osd data = ${directory}/osd
osd fast shutdown = true
rgw frontends = beast endpoint=127.0.0.1:${port}
rgw data = ${directory}/rgw
rgw enable usage log = false
rgw gc max objs = 1
rgw lc max objs = 1
rgw num control oids = 1
rgw usage max shards = 1
rgw md log max shards = 1
rgw data log num shards = 1
rgw override bucket index max shards = 1
`;
}

async function untilWorks(work: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + 120_000;
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(200);
    }
  }
}

async function reach(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect").finally(() => socket.destroy());
}

function tail(path: string): string {
  try {
    return readFileSync(path, "utf8").slice(-1500);
  } catch {
    return "";
  }
}
