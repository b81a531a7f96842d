import { randomUUID } from "node:crypto";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OwnedSandbox } from "../../provider.ts";
import { type LocalSetup, setUpLocal } from "./testing.ts";

let local: LocalSetup;
beforeAll(() => {
  local = setUpLocal();
});
afterAll(async () => await local[Symbol.asyncDispose]());

const server = `
import http.server, os, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ["NAME"].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
listening = http.server.HTTPServer(("127.0.0.1", 3000), Answer)
print("up", flush=True)
listening.serve_forever()
`;

test("a hundred sandboxes live at once, each with a server that its port reaches", async () => {
  const names = Array.from({ length: 100 }, () => randomUUID());
  const sandboxes = await Promise.all(
    names.map(() => local.provider.create({ cpu: 1, memoryMb: 128, diskMb: 64, processes: 32 })),
  );
  await Promise.all(sandboxes.map(async (sandbox, i) => await startServer(sandbox, names[i] ?? "")));
  expect(await local.provider.list({ states: ["running"] })).toHaveLength(100);
  const answers = await Promise.all(sandboxes.map(ask));
  answers.forEach((answer, i) => {
    expect(answer.startsWith("HTTP/1.0 200") && answer.endsWith(`\r\n\r\n${names[i]}`), answer).toBe(true);
  });
  const receipts = await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
  expect(receipts.every(({ processesEnded }) => processesEnded >= 2)).toBe(true);
});

async function startServer(sandbox: OwnedSandbox, name: string): Promise<void> {
  await using exec = await sandbox.exec({ argv: ["python3", "-c", server], env: { NAME: name }, background: true });
  for await (const chunk of exec.output()) if (chunk.type === "stdout") return;
  throw new Error("the server did not come up");
}

async function ask(sandbox: OwnedSandbox): Promise<string> {
  const pipe = await sandbox.connect(3000);
  pipe.write("GET / HTTP/1.0\r\nhost: sandbox\r\n\r\n");
  return await text(pipe);
}
