import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A package index for pip with one package, `slipway-probe`, whose module says where it comes from. For tests. */
export interface PipIndex extends AsyncDisposable {
  readonly url: string;
}

const wheelName = "slipway_probe-1.0-py3-none-any.whl";
const makeWheel = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("slipway_probe.py", "origin = 'the local index'\\n")
    info = "slipway_probe-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: slipway-probe\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "")
`;

export async function servePipIndex(): Promise<PipIndex> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-wheel-"));
  const path = join(directory, wheelName);
  execFileSync("/usr/bin/python3", ["-c", makeWheel, path]);
  const wheel = readFileSync(path);
  rmSync(directory, { recursive: true });
  const server = createServer((request, response) => {
    if (request.url === `/files/${wheelName}`) response.end(wheel);
    else if (request.url === "/simple/slipway-probe/")
      response.setHeader("content-type", "text/html").end(`<a href="/files/${wheelName}">${wheelName}</a>`);
    else response.writeHead(404).end();
  });
  // Not 127.0.0.1, which programs inside take for their own and ask without the proxy.
  server.listen(0, "127.0.0.2");
  await once(server, "listening");
  return {
    url: `http://127.0.0.2:${(server.address() as AddressInfo).port}/simple`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
