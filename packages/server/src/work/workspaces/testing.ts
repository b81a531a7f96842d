import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Place } from "../../testing/world/place.ts";

/** Of packages. Only the sandboxes of its world reach it. */
export interface Registry {
  readonly url: string;
  /** Paths that were asked for, in their order. */
  readonly requests: string[];
  /** Paths that get no answer. */
  readonly silent: Set<string>;
  publish(name: string, version: string, files: Readonly<Record<string, string>>, manifest?: object): Promise<void>;
}

/** On the host's loopback, and no address that programs inside take for their own. */
const address = "127.0.0.2";

export async function openRegistry(
  _: object,
  { directory: world }: Place,
  held: AsyncDisposableStack,
): Promise<{ readonly registry: Registry }> {
  const directory = join(world, "registry");
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
  held.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const registry: Registry = {
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
  };
  return { registry };
}
