import { createServer } from "node:http";
import { forever, type Program } from "./program.ts";

export const servers = {
  /** Answers HTTP requests on a port of its loopback with the request's path. */
  serveHttp: {
    shell: `exec python3 -c '
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = ("path " + self.path).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()' "$1"`,
    scripted: async (process) => {
      const server = createServer((request, response) => response.end(`path ${request.url}`));
      process.listen(Number(process.argv[4]), (connection) => server.emit("connection", connection));
      await process.stdout.write("ready\n");
      return await forever(process);
    },
  },
  /** Sends back every byte of a connection, then ends it when the other side has. */
  serveEcho: {
    shell: `exec python3 -c '
import socket, sys, threading
def echo(connection):
    with connection:
        while data := connection.recv(65536): connection.sendall(data)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True: threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()' "$1"`,
    scripted: async (process) => {
      process.listen(Number(process.argv[4]), (connection) => void connection.pipe(connection));
      await process.stdout.write("ready\n");
      return await forever(process);
    },
  },
  /** Sends its input to the host channel, and puts out what comes back; says `ready` first when asked to. Exits 1 when nobody listens. */
  callHost: {
    shell: `exec python3 -c '
import socket, sys, threading
host = socket.socket(socket.AF_UNIX)
try: host.connect(sys.argv[1])
except OSError: sys.exit(1)
if sys.argv[2:]: print("ready", flush=True)
def send():
    while data := sys.stdin.buffer.raw.read(65536): host.sendall(data)
    host.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := host.recv(65536): sys.stdout.buffer.raw.write(data)' "$@"`,
    scripted: async ({ argv, stdin, stdout, dial }) => {
      const host = await dial(argv[4] ?? "").catch(() => null);
      if (host === null) return 1;
      if (argv[5] !== undefined) await stdout.write("ready\n");
      const send = async () => {
        for await (const data of stdin) host.write(data);
        host.end();
      };
      const receive = async () => {
        for await (const data of host) await stdout.write(data);
      };
      await Promise.all([send(), receive()]);
      return 0;
    },
  },
  /** Asks for an address outside; exits 0 only when it is answered. */
  callOut: {
    shell: `exec python3 -c '
import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=5)' "$1" 2>/dev/null`,
    scripted: async ({ argv, egress }) => {
      const { hostname, port } = new URL(argv[4] ?? "");
      return egress(hostname, port === "" ? 80 : Number(port)) === null ? 1 : 0;
    },
  },
} as const satisfies Record<string, Program>;
