import type { CallOptions, Exec, RestrictedSandbox, SandboxFiles } from "./provider.ts";

/**
 * The view of a sandbox for agents and tools. Built of new objects, so that no property or prototype leads to the rest.
 */
export function restrict(sandbox: RestrictedSandbox): RestrictedSandbox {
  return Object.freeze({
    id: sandbox.id,
    toolsDirectory: sandbox.toolsDirectory,
    async info(options?: CallOptions) {
      const info = await sandbox.info(options);
      return { ...info, network: { ...info.network, secrets: [] } };
    },
    exec: async (...args: Parameters<RestrictedSandbox["exec"]>) => restrictExec(await sandbox.exec(...args)),
    attach: async (...args: Parameters<RestrictedSandbox["attach"]>) => restrictExec(await sandbox.attach(...args)),
    execs: (options?: CallOptions) => sandbox.execs(options),
    files: restrictFiles(sandbox.files),
    connect: (...args: Parameters<RestrictedSandbox["connect"]>) => sandbox.connect(...args),
  });
}

function restrictExec(exec: Exec): Exec {
  return Object.freeze<Exec>({
    id: exec.id,
    output: (options) => exec.output(options),
    write: (data, options) => exec.write(data, options),
    end: (options) => exec.end(options),
    signal: (name, options) => exec.signal(name, options),
    kill: (options) => exec.kill(options),
    resize: (size, options) => exec.resize(size, options),
    wait: (options) => exec.wait(options),
    [Symbol.asyncDispose]: () => exec[Symbol.asyncDispose](),
  });
}

function restrictFiles(files: SandboxFiles): SandboxFiles {
  return Object.freeze<SandboxFiles>({
    read: (path, options) => files.read(path, options),
    write: (path, content, options) => files.write(path, content, options),
    stat: (path, options) => files.stat(path, options),
    list: (path, options) => files.list(path, options),
    mkdir: (path, options) => files.mkdir(path, options),
    move: (from, to, options) => files.move(from, to, options),
    remove: (path, options) => files.remove(path, options),
    watch: (path, options) => files.watch(path, options),
    search: (query, options) => files.search(query, options),
    upload: (path, entries, options) => files.upload(path, entries, options),
    download: (path, options) => files.download(path, options),
    hydrate: (contents, options) => files.hydrate(contents, options),
  });
}
