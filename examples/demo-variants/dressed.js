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

/** Each page gets the style, and the rest beside its body, in shadow trees where no script of the app finds it. */
const dresses = {
  wordy: {
    style: "",
    before:
      '<nav><h2>Market day</h2><button type="button">Add to home screen</button> <a href="/">Open another room</a></nav>',
    after: "<footer><p>What you do here is kept. Remove the noise, add some fruit, be done early.</p></footer>",
    delayMs: 0,
  },
  loud: {
    style: "body * { text-transform: uppercase; letter-spacing: 0.2em; word-spacing: 1em; }",
    before: "",
    after: "",
    delayMs: 0,
  },
  late: {
    style: "body { display: grid !important; gap: 3rem; padding: 2rem 8%; font-size: 1.4rem; }",
    before: '<div hidden><button>Add</button><button>Open room</button><input aria-label="What do you need?"></div>',
    after: "",
    delayMs: 250,
  },
};
const dress = dresses[process.env.DRESS ?? ""];

const script = `addEventListener("DOMContentLoaded", () => {
  const put = (html, place) => {
    const host = document.createElement("dress-up");
    host.attachShadow({ mode: "open" }).innerHTML = html;
    document.documentElement[place](host);
  };
  put(BEFORE, "prepend");
  put(AFTER, "append");
});`;

function dressUp(html) {
  const end = html.search(/<\/head>|<body|(?<=<\/title>)/i);
  if (dress === undefined || end < 0) return html;
  const { style, before, after } = dress;
  const filled = script.replace("BEFORE", JSON.stringify(before)).replace("AFTER", JSON.stringify(after));
  return `${html.slice(0, end)}<style>${style}</style><script>${filled}</script>${html.slice(end)}`;
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
    }, dress?.delayMs ?? 0);
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
