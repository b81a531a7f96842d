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
