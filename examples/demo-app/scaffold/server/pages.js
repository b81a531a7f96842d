import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative } from "node:path";

/** The front end: from its sources while it is worked on, else as it was built. */
export async function servePages({ isProduction }, server) {
  return isProduction ? await serveBuilt("dist") : await serveSources(server);
}

async function serveSources(server) {
  const { createServer } = await import("vite");
  const vite = await createServer({
    appType: "spa",
    // Hot reload goes over the server's own port.
    server: { middlewareMode: true, hmr: { server }, watch: { ignored: ["**/data/**"] } },
  });
  return vite.middlewares;
}

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** All files are read at the start, so that no path of a request ever reaches the disk. */
async function serveBuilt(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = new Map();
  for (const entry of entries.filter((found) => found.isFile())) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const type = types[extname(path)] ?? "application/octet-stream";
    files.set(`/${relative(directory, path)}`, { type, bytes: await readFile(path) });
  }
  return (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    // Every room has an address of its own, and all of them are the one page.
    const file = files.get(pathname) ?? files.get("/index.html");
    response.writeHead(200, { "content-type": file.type }).end(file.bytes);
  };
}
