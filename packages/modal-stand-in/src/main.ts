import { parseArgs } from "node:util";
import { openControl } from "./control.ts";
import { type ModalStandIn, startModalStandIn } from "./stand-in.ts";

/** `npm run modal-stand-in`: runs until it is interrupted, and then leaves nothing. */
const usage = `Usage: npm run modal-stand-in [-- <options>]

Runs a server on this machine that Modal's clients take for Modal.

Options
  --port <number>        Port of the server (default: a free one)
  --control-port <number>  Port that takes orders for faults (default: a free one)
  --without-processes    Sandboxes are records only: for large numbers
  --help                 Print this help`;

const { values: options } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "control-port": { type: "string", default: "0" },
    "without-processes": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (options.help) console.log(usage);
else await runUntilInterrupted();

async function runUntilInterrupted(): Promise<void> {
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
  await using standIn = await startModalStandIn({
    port: portOf("port", options.port),
    processes: !options["without-processes"],
  });
  await using control = await openControl(standIn, portOf("control-port", options["control-port"]));
  console.log(introduction(standIn, control));
  await interrupted;
  const left = standIn.running().length;
  console.error(`Stopping${left > 0 ? `, with ${left} ${left === 1 ? "sandbox" : "sandboxes"}` : ""}…`);
}

function portOf(name: string, text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65535) return port;
  console.error(`--${name}: ${text} is not a port.`);
  process.exit(2);
}

function introduction(standIn: ModalStandIn, control: { url: string; token: string }): string {
  const variables = Object.entries(standIn.environment).map(([name, value]) => `export ${name}=${value}`);
  return [
    `The Modal stand-in listens on ${standIn.url}.`,
    "",
    "Point any Modal client at it:",
    "",
    ...variables,
    "export MODAL_CONFIG_PATH=/dev/null",
    `export NODE_EXTRA_CA_CERTS=${standIn.caFile}   # for the tunnels' TLS`,
    "",
    "Order faults, move the clock, read what ran and what it cost:",
    "",
    `curl -H "authorization: Bearer ${control.token}" ${control.url}/usage`,
    "",
    "docs/modal-stand-in.md tells the rest. Ctrl-C stops it and leaves nothing.",
  ].join("\n");
}
