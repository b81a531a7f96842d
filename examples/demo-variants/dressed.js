// Starts the app in this directory, and shows it in another dress: what differs is nothing that its intent or its
// surface speaks of. DRESS names it.
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { connect } from "node:net";

const port = Number(process.env.PORT);
const behind = { host: "127.0.0.1", port: port + 1 };
const app = spawn(process.execPath, ["server.js"], {
  env: { ...process.env, PORT: String(behind.port) },
  stdio: "inherit",
});
app.on("exit", (code) => process.exit(code ?? 1));

/** In a shadow tree of its own, where no script of the app finds it. */
const apart = (html) => `<dress-up><template shadowrootmode="open">${html}</template></dress-up>`;

const dresses = {
  wordy: {
    before: apart(
      '<nav><h2>Market day</h2><button type="button">Add to home screen</button> <a href="/">Open another room</a></nav>',
    ),
    after: apart("<footer><p>What you do here is kept. Remove the noise, add some fruit, be done early.</p></footer>"),
    delayMs: 0,
  },
  loud: {
    before: "<style>body * { text-transform: uppercase; letter-spacing: 0.2em; word-spacing: 1em; }</style>",
    after: "",
    delayMs: 0,
  },
  late: {
    before:
      '<style>body { display: grid !important; gap: 3rem; padding: 2rem 8%; font-size: 1.4rem; }</style><div hidden><button>Add</button><button>Open room</button><input aria-label="What do you need?"></div>',
    after: "",
    delayMs: 250,
  },
};
const dress = dresses[process.env.DRESS ?? ""] ?? { before: "", after: "", delayMs: 0 };

function dressUp(html) {
  if (!/<!doctype html|<html/i.test(html)) return html;
  const body = /<body[^>]*>/i.exec(html);
  const at = body ? body.index + body[0].length : html.search(/<\/head>/i) + "</head>".length;
  const end = html.search(/<\/body>/i);
  const [start, rest] = [Math.max(at, 0), end < 0 ? html.length : end];
  if (body === null && !/<\/head>/i.test(html)) return `${html}${dress.before}${dress.after}`;
  return html.slice(0, start) + dress.before + html.slice(start, rest) + dress.after + html.slice(rest);
}

const server = createServer((asked, answer) => {
  const { method, url: path, headers } = asked;
  const inner = request({ ...behind, method, path, headers: { ...headers, "accept-encoding": "identity" } }, (got) => {
    const isPage = got.headers["content-type"]?.includes("text/html");
    const { "content-length": _, ...kept } = got.headers;
    setTimeout(() => {
      if (!isPage) {
        answer.writeHead(got.statusCode, got.headers);
        got.pipe(answer);
        return;
      }
      const parts = [];
      got.on("data", (part) => parts.push(part));
      got.on("end", () => answer.writeHead(got.statusCode, kept).end(dressUp(Buffer.concat(parts).toString("utf8"))));
    }, dress.delayMs);
  });
  inner.on("error", () => answer.destroy());
  answer.on("close", () => inner.destroy());
  asked.pipe(inner);
});

server.on("upgrade", ({ method, url, rawHeaders }, socket, head) => {
  const inner = connect(behind.port, behind.host, () => {
    const lines = [`${method} ${url} HTTP/1.1`];
    for (let index = 0; index < rawHeaders.length; index += 2)
      lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
    inner.write(`${lines.join("\r\n")}\r\n\r\n`);
    inner.write(head);
    inner.pipe(socket).pipe(inner);
  });
  const end = () => {
    inner.destroy();
    socket.destroy();
  };
  for (const one of [inner, socket]) one.on("error", end);
  socket.on("close", () => inner.destroy());
  inner.on("close", () => socket.destroy());
});

/** Nobody is served before the app is there. */
function whenReady() {
  const probe = connect(behind.port, behind.host, () => {
    probe.destroy();
    server.listen(port, "127.0.0.1");
  });
  probe.on("error", () => setTimeout(whenReady, 50));
}
whenReady();
