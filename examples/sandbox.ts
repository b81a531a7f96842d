// Runs a program in a sandbox of its own: `node examples/sandbox.ts [state directory]`, with Node 24.
import { resolve } from "node:path";
import { openProvider } from "@slipway/sandbox/open";

const stateDir = resolve(process.argv[2] ?? "/var/tmp/slipway-example");
await using provider = await openProvider({ stateDir, environment: process.env });

// Without a network, and gone with all that runs in it when this scope is left, by whatever way.
await using sandbox = await provider.create({ memoryMb: 512, lifetimeMs: 600_000 });

await sandbox.files.hydrate({
  "greet.sh": 'read name\necho "hello, $name, from $(pwd) as $(id -un)"\n',
});

await using exec = await sandbox.exec({ argv: ["sh", "greet.sh"], stdin: "open" });
await exec.write("world\n");
await exec.end();
for await (const chunk of exec.output()) {
  if (chunk.type === "stdout") process.stdout.write(chunk.data);
}
const exit = await exec.wait();
console.log(`${exit.reason} with ${exit.exitCode}`);
