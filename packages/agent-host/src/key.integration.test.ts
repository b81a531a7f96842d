import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { demo, startScriptedModel } from "@slipway/gateway/scripted";
import { run as command } from "@slipway/sandbox";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agentTestMs, drivers, openSite, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

/** Waits at its end, so that its memory can be searched while it lives. */
const waiting: typeof demo = (request) => {
  const waits = request.step > 0 && !request.results.some(({ text }) => text.includes("looked"));
  return waits
    ? { text: "I wait.", actions: [{ run: "until [ -e /tmp/go ]; do sleep 0.05; done; echo looked" }] }
    : demo(request);
};

const search = `
import os, re, sys
key = sys.argv[1][::-1].encode()
found = []
def look(where, data):
    if key in data: found.append(where)
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid(): continue
    for name in ("environ", "cmdline"):
        try: look(f"/proc/{pid}/{name}", open(f"/proc/{pid}/{name}", "rb").read())
        except OSError: pass
    try:
        maps = open(f"/proc/{pid}/maps").read()
        memory = open(f"/proc/{pid}/mem", "rb", 0)
        for begin, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", maps, re.M):
            at, stop = int(begin, 16), int(end, 16)
            while at < stop:
                memory.seek(at)
                data = memory.read(min(stop - at, 1 << 24))
                if not data: break
                look(f"/proc/{pid}/mem", data)
                at += len(data)
        command = open(f"/proc/{pid}/cmdline").read().replace("\\0", " ")
        print("read", open(f"/proc/{pid}/comm").read().strip(), command)
    except OSError: pass
for root, directories, names in os.walk("/"):
    if root.split("/")[1] in ("proc", "sys", "dev", "usr", "opt"): directories[:] = []; continue
    for name in names:
        path = os.path.join(root, name)
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 1 << 26: look(path, open(path, "rb").read())
        except OSError: pass
print("found", sorted(set(found)))
`;

/** Of each driver's agent, with the command that it was started as. */
const memory = {
  builtin: /^read \S+ .*\/runner\.mjs/m,
  "claude-code": /^read claude /m,
  "acp:codex": /^read codex /m,
} as const;

afterEach(() => void vi.unstubAllEnvs());

describe.each(drivers)("with %s", (agent) => {
  it("the provider's key reaches the model and is nowhere in the sandbox, its logs or the cassettes", async () => {
    const key = `sk-ant-${"k3y".repeat(12)}-${process.pid}`;
    // Where a user has it, before there are sandboxes.
    vi.stubEnv("ANTHROPIC_API_KEY", key);
    const seen: unknown[] = [];
    await using model = await startScriptedModel({
      programs: { waiting },
      listen: { host: "127.0.0.1", port: 0 },
      onRequest: (_, headers) => seen.push(headers["x-api-key"]),
    });
    const priced = { "anthropic/waiting": { input: 1, output: 1, cacheRead: 1, cacheWrite: 1, maxOutputTokens: 8000 } };
    await using site = await openSite({
      programs: {},
      model: "anthropic/waiting",
      environment: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: model.baseUrl },
      prices: priced,
      cassettes: "record",
    });
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: "Say hello" } });
    const searched = (async () => {
      for await (const { event } of run.events()) {
        if (event.type === "agent" && event.event.type === "tool" && event.event.input?.includes("/tmp/go")) break;
      }
      // Backwards, so that the search does not find itself.
      const { stdout } = await command(sandbox, ["python3", "-c", search, [...key].reverse().join("")]);
      await sandbox.files.write("/tmp/go", "");
      return stdout;
    })();
    const { end } = await toEnd(run);
    expect(end).toMatchObject({ reason: "completed" });
    expect(await searched).toMatch(memory[agent]);
    expect(await searched).toContain("found []");
    expect(new Set(seen)).toEqual(new Set([key]));
    const grep = promisify(execFile)("grep", ["-rlF", "--exclude-dir=tools", key, site.directory]);
    await expect(grep).rejects.toMatchObject({ code: 1, stdout: "" });
    const { stdout } = await promisify(execFile)("ls", [join(site.directory, "cassettes")]);
    expect(stdout).not.toBe("");
  });
});
