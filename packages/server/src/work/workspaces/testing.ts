import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { type BuildSecrets, openBuildSecrets } from "../build-secrets.ts";
import { type BuildRepository, openBuildRepository } from "../repository/repository.ts";
import { branch, createMaker } from "../repository/testing.ts";

type Files = Readonly<Record<string, string | null>>;

/** A build's repository, real sandboxes, and a registry that only they reach. */
export interface Place extends AsyncDisposable {
  readonly directory: string;
  readonly provider: SandboxProvider;
  readonly repositories: { of(): Promise<BuildRepository> };
  readonly secrets: BuildSecrets;
  readonly build: WorkingBuild;
  readonly registry: Registry;
  /** The next commit of main: these files on top of the ones before; null removes one. */
  commit(files: Files): Promise<string>;
}

export async function openPlace(): Promise<Place> {
  await using made = new AsyncDisposableStack();
  const directory = await mkdtemp("/var/tmp/slipway-workspaces-");
  made.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const registry = made.use(await openRegistry(join(directory, "registry")));
  const environment = { ...process.env, npm_config_registry: registry.url };
  const provider = made.use(await openProvider({ stateDir: join(directory, "state"), environment }));
  made.defer(async () => {
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
  });
  const repository = await openBuildRepository({ directory: join(directory, "build"), environment: process.env });
  const { main } = await repository.create({ from: "empty", atMs: 0 });
  const maker = await createMaker(join(directory, "maker.git"));
  await maker.git(["fetch", "-q", join(directory, "build/repository.git"), "refs/heads/main"]);
  let last = main;
  const commit = async (files: Files) => {
    const tip = await maker.commit({ files, parents: [last] });
    await repository.take(maker.bundle(tip, { needs: [last] }), { id: newId("cnd"), ref: branch, base: last });
    last = tip;
    return tip;
  };
  const build: WorkingBuild = { id: newId("bld"), account: "local", project: "app", mode: "new", request: "An app" };
  const secrets = openBuildSecrets(join(directory, "builds"));
  const opened = made.move();
  return {
    secrets,
    directory,
    provider,
    repositories: { of: async () => repository },
    build,
    registry,
    commit,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export interface Registry extends AsyncDisposable {
  readonly url: string;
  /** Paths that were asked for, in their order. */
  readonly requests: string[];
  /** Paths that get no answer. */
  readonly silent: Set<string>;
  publish(name: string, version: string, files: Readonly<Record<string, string>>, manifest?: object): Promise<void>;
}

/** On the host's loopback, and no address that programs inside take for their own. */
const address = "127.0.0.2";

async function openRegistry(directory: string): Promise<Registry> {
  const packages = new Map<string, Record<string, object>>();
  const requests: string[] = [];
  const silent = new Set<string>();
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", url).pathname;
    requests.push(path);
    if (silent.has(path)) return;
    const versions = packages.get(path.slice(1));
    const answer = versions === undefined ? await readFile(join(directory, path)).catch(() => null) : versions;
    if (answer === null) response.writeHead(404).end("{}");
    else if (Buffer.isBuffer(answer)) response.end(answer);
    else {
      const latest = Object.keys(answer).at(-1);
      const packument = { name: path.slice(1), "dist-tags": { latest }, versions: answer };
      response.setHeader("content-type", "application/json").end(JSON.stringify(packument));
    }
  }).listen(0, address);
  await once(server, "listening");
  const url = `http://${address}:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    requests,
    silent,
    async publish(name, version, files, manifest = {}) {
      const source = join(directory, "source", name, version);
      const own = { name, version, ...manifest };
      for (const [path, content] of Object.entries({ ...files, "package.json": JSON.stringify(own) })) {
        await mkdir(dirname(join(source, "package", path)), { recursive: true });
        await writeFile(join(source, "package", path), content);
      }
      const archive = `${name}-${version}.tgz`;
      await promisify(execFile)("tar", ["-czf", join(directory, archive), "-C", source, "package"]);
      const integrity = `sha512-${createHash("sha512")
        .update(await readFile(join(directory, archive)))
        .digest("base64")}`;
      const dist = { tarball: `${url}${archive}`, integrity };
      packages.set(name, { ...packages.get(name), [version]: { ...own, dist } });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
