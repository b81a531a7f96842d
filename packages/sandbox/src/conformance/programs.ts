import type { ExecRequestInput } from "@slipway/contract";

/** One block of the program `flood`: lines of seven digits, so that a lost or doubled byte shows. */
export const floodBlockBytes = 1024 * 1024;
const floodBlockLines = floodBlockBytes / 8;
const firstFloodLine = 1_000_000;

export function floodBlock(block: number): Uint8Array {
  const first = firstFloodLine + block * floodBlockLines;
  let text = "";
  for (let line = first; line < first + floodBlockLines; line++) text += `${line}\n`;
  return Buffer.from(text, "latin1");
}

/** Texts for `sh`. */
const programs = {
  exit: 'exit "$1"',
  speak: 'printf "%s" "$1"; printf "%s" "$2" >&2',
  rawBytes: "printf 'a\\377\\376b\\000c'; sleep 0.1; printf 'after'",
  quiet: 'sleep "$1"; printf done',
  echoInput: "exec cat",
  argumentLength: 'printf "%s" "$1" | wc -c',
  variable: 'printenv "$1"',
  workingDirectory: "pwd",
  userId: "id -u",
  /** Lines at intervals, then exit code 7. */
  count: 'i=0; while [ $i -lt "$1" ]; do i=$((i+1)); echo "line $i"; sleep "$2"; done; exit 7',
  /** As many blocks as asked; after each, its number goes into the file. */
  flood: `i=0; while [ $i -lt "$1" ]; do f=$((${firstFloodLine}+i*${floodBlockLines})); seq $f $((f+${floodBlockLines - 1})); i=$((i+1)); echo $i > "$2"; done`,
  /** The same bytes over and over: as many MiB as asked. */
  repeat: 'head -c "$1" /dev/zero',
  ignoreTerm: "trap '' TERM; echo ready; while :; do sleep 0.05; done",
  takeSignal: "trap 'printf taken; exit 5' USR1; echo ready; while :; do sleep 0.02; done",
  /** A sign of life in a file, twenty times a second. */
  beat: 'while :; do echo x >> "$1"; sleep 0.05; done',
  /**
   * A daemon that left its parent, its session and its terminal, and ignores polite signals; the command goes on
   * beside it.
   */
  daemon: `setsid sh -c '(setsid sh -c "trap \\"\\" TERM HUP INT; while :; do echo x >> $0; sleep 0.05; done" "$0" &)' "$1" </dev/null >/dev/null 2>&1; echo ready; sleep 60`,
  /** Ends at once while a child still holds its output. */
  leaveChild: "sleep 30 & echo left",
  terminal: 'test -t 0 && stty size; trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.02; done',
  append: 'printf "%s" "$2" >> "$1"',
  readFile: 'cat "$1"',
  hashFile: 'sha256sum < "$1" | cut -c1-64',
  link: 'ln -s "$1" "$2"',
  /** Makes a directory a symbolic link to elsewhere and back, without end. */
  flipDirectory: 'echo ready; while :; do mv "$1" "$1.kept"; ln -s "$2" "$1"; rm "$1"; mv "$1.kept" "$1"; done',
  fifo: 'mkfifo "$1"',
  /** Answers HTTP requests on a port of its loopback with the request's path. */
  serveHttp: `exec python3 -c '
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
  /** Sends back every byte of a connection, then ends it when the other side has. */
  serveEcho: `exec python3 -c '
import socket, sys, threading
def echo(connection):
    with connection:
        while data := connection.recv(65536): connection.sendall(data)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True: threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()' "$1"`,
  /**
   * Sends its input to the host channel, and puts out what comes back; says `ready` first when asked to. Exits 1 when
   * nobody listens.
   */
  callHost: `exec python3 -c '
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
  /** Asks for an address outside; exits 0 only when it is answered. */
  callOut: `exec python3 -c '
import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=5)' "$1" 2>/dev/null`,
} as const;

export type ProgramName = keyof typeof programs;

/** The exec request that runs a program with arguments. */
export function command(name: ProgramName, ...args: string[]): ExecRequestInput {
  return { argv: ["sh", "-c", programs[name], "sh", ...args] };
}
