import type { ArgumentSpec, OptionSpecs } from "../input/command.ts";

export const idArgument: ArgumentSpec = { name: "id", help: "the sandbox's id, the beginning of it, or its name" };
export const execArgument: ArgumentSpec = { name: "exec-id", help: "the exec's id, or the beginning of it" };
export const snapshotArgument: ArgumentSpec = {
  name: "snapshot-id",
  help: "the snapshot's id, the beginning of it, or its name",
};

export const networkOptions: OptionSpecs = {
  net: {
    value: "list",
    multiple: true,
    help: "Reachable domains and ranges: example.com,*.example.org,192.0.2.0/24, or none",
  },
  registries: { help: "Also the package registries that this machine is set to" },
  "net-port": { value: "port", multiple: true, help: "Ports that may be dialled (80 and 443)" },
  inject: {
    value: "host:header=value",
    multiple: true,
    help:
      "A header for one host, by https, that the sandbox never sees; env:NAME as value takes it from this environment, " +
      "http:// before the host adds it to plain requests instead, in clear text",
  },
  tunnel: {
    value: "port=host:port",
    multiple: true,
    help: "A port inside that leads to host:port, for programs without proxy support",
  },
};

export const imageOptions: OptionSpecs = {
  image: { value: "name", help: "default, host, debian, node20, node22 or node24" },
  apt: { value: "package", multiple: true, help: "Debian package on top of the image" },
  npm: { value: "package", multiple: true, help: "npm package on top of the image" },
  pip: { value: "package", multiple: true, help: "Python package on top of the image" },
  run: { value: "command", multiple: true, help: "Shell command run as root on top of the image" },
};

/** What a create and a fork share. */
export const sandboxOptions: OptionSpecs = {
  cpu: { value: "number", help: "Processors (2)" },
  memory: { value: "size", help: "Memory in MB, or as 4g (4096)" },
  disk: { value: "size", help: "Disk in MB, or as 10g (10240)" },
  processes: { value: "number", help: "Processes at once (512)" },
  lifetime: { value: "duration", help: "Ends after this long, at most 24h (1h)" },
  idle: { value: "duration|never", help: "Sleeps after this long without use (20m)" },
  sleeping: { value: "duration", help: "Stops, with a snapshot, after sleeping this long (24h)" },
  checkpoint: { value: "duration|never", help: "Snapshots this often while it runs (never)" },
  grace: { value: "duration", help: "Tells of an end by time this long before (1m)" },
  "on-end": {
    value: "stop|destroy",
    help: "What an end by time, memory or disk does with the files (stop keeps them)",
  },
  ...networkOptions,
  env: {
    value: "name=value",
    short: "e",
    multiple: true,
    help: "Variable for every program; a name alone takes it from here",
  },
  secret: {
    value: "name=value",
    multiple: true,
    help: "As --env, and never shown again; a name alone takes it from here",
  },
  port: { value: "port", short: "p", multiple: true, help: "Port to open (3000 and 5173)" },
  workdir: { value: "path", help: "Where programs start (/workspace)" },
  name: { value: "name", help: "A name to use in place of the id" },
  label: { value: "key=value", multiple: true, help: "Label to find it by" },
  gpu: { value: "kind", help: "GPU, where the provider has one" },
  "idempotency-key": { value: "key", help: "A retry with the same key answers with the first one's sandbox" },
};

export const streamOptions: OptionSpecs = {
  interactive: { short: "i", help: "Pass standard input on" },
  tty: { short: "t", help: "Run in a terminal" },
};
