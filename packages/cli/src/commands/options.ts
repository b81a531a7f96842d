import type { ArgumentSpec, OptionSpec, OptionSpecs } from "../input/command.ts";

export const idArgument: ArgumentSpec = {
  name: "id",
  help: "Sandbox ID or name; a unique start or end of the ID is enough",
};
export const execArgument: ArgumentSpec = { name: "exec-id", help: "Exec ID, or a unique start or end of it" };
export const snapshotArgument: ArgumentSpec = {
  name: "snapshot-id",
  help: "Snapshot ID or name; a unique start or end of the ID is enough",
};

export const injectOption: OptionSpec = {
  value: "host:header=value",
  multiple: true,
  help:
    "Add this header to requests to one host, outside the sandbox, which never sees it. Value env:NAME reads a variable. " +
    "Uses HTTPS; a host that begins with http:// uses plain HTTP, in clear text",
};

export const networkOptions: OptionSpecs = {
  net: {
    value: "list",
    multiple: true,
    help: "Domains and IP ranges to allow: example.com,*.example.org,192.0.2.0/24, or none",
  },
  registries: { help: "Allow the package registries configured on this machine" },
  "net-port": { value: "port", multiple: true, help: "Port to allow on those hosts", default: "80 and 443" },
  inject: injectOption,
  tunnel: {
    value: "port=host:port",
    multiple: true,
    help: "Forward a port inside the sandbox to host:port, for programs without proxy support",
  },
};

export const imageOptions: OptionSpecs = {
  image: { value: "name", help: "Base image: default, host, debian, node20, node22 or node24" },
  apt: { value: "package", multiple: true, help: "Debian package to add to the image" },
  npm: { value: "package", multiple: true, help: "npm package to add to the image" },
  pip: { value: "package", multiple: true, help: "Python package to add to the image" },
  run: { value: "command", multiple: true, help: "Shell command to run as root when the image is built" },
};

export const placeArgument: ArgumentSpec = {
  name: "place",
  help: "Workspace name, projects/<user>/<project>, shared, or s3://bucket/prefix",
};

/** Files of the storage that a sandbox starts with. */
export const storageOptions: OptionSpecs = {
  workspace: { value: "name|s3://...", help: "Start with the files of this workspace, in the workdir" },
  version: { value: "version", help: "Version of the workspace", default: "the newest" },
  volume: {
    value: "user/project",
    multiple: true,
    help: "Start with the files of this volume, in /projects/<user>/<project>",
  },
  shared: { help: "Start with a read-only copy of the shared files, in /shared" },
};

/** What a create and a fork share. */
export const sandboxOptions: OptionSpecs = {
  cpu: { value: "number", help: "CPUs", default: "2" },
  memory: { value: "size", help: "Memory, in MB or as 4g", default: "4096" },
  disk: { value: "size", help: "Disk space, in MB or as 10g", default: "10240" },
  processes: { value: "number", help: "Processes at once", default: "512" },
  lifetime: { value: "duration", help: "End the sandbox after this long, at most 24h", default: "1h" },
  idle: { value: "duration|never", help: "Put it to sleep after this long without use", default: "20m" },
  sleeping: { value: "duration", help: "Snapshot and stop it after this long asleep", default: "24h" },
  checkpoint: { value: "duration|never", help: "Snapshot it this often while it runs", default: "never" },
  grace: { value: "duration", help: "Announce the end of its lifetime this long before", default: "1m" },
  "on-end": {
    value: "stop|destroy",
    help: "What to do when time, memory or disk runs out; stop keeps the files",
    default: "stop",
  },
  ...networkOptions,
  env: {
    value: "name=value",
    short: "e",
    multiple: true,
    help: "Set a variable for every program; a name alone copies it from this environment",
  },
  secret: { value: "name=value", multiple: true, help: "Like --env, but the value is never shown again" },
  port: { value: "port", short: "p", multiple: true, help: "Port to open", default: "3000 and 5173" },
  workdir: { value: "path", help: "Directory that programs start in", default: "/workspace" },
  name: { value: "name", help: "Name to use in place of the ID" },
  label: { value: "key=value", multiple: true, help: "Label to find it by" },
  gpu: { value: "kind", help: "GPU to attach, if the provider has one" },
  "idempotency-key": { value: "key", help: "Return the existing sandbox if this key was used before" },
};

export const streamOptions: OptionSpecs = {
  interactive: { short: "i", help: "Pass standard input to the program" },
  tty: { short: "t", help: "Allocate a terminal" },
};

/** Of programs that are started: where, and with which variables. */
export const startOptions: OptionSpecs = {
  cwd: { value: "path", short: "w", help: "Directory to start in", default: "the sandbox's workdir" },
  env: {
    value: "name=value",
    short: "e",
    multiple: true,
    help: "Set a variable; a name alone copies it from this environment",
  },
};
