import type { CallContext } from "nice-grpc";
import type { Apps } from "../objects/apps.ts";
import { invalid, notFound } from "../refuse.ts";
import type { Methods } from "../serve.ts";
import type { Tokens } from "../tokens.ts";
import type { SandboxCreateRequest, SandboxRequest, Tag } from "../wire.ts";
import type { ConnectTokens } from "./connect-tokens.ts";
import { type CreateParts, createSandbox } from "./create.ts";
import { type Sandbox, terminated } from "./sandbox.ts";
import { describeSandbox, type PageFilter, type Sandboxes } from "./sandboxes.ts";
import { validate } from "./validate.ts";

export interface SandboxMethodParts {
  readonly apps: Apps;
  readonly sandboxes: Sandboxes;
  readonly create: CreateParts;
  readonly tokens: Tokens;
  readonly connectTokens: ConnectTokens;
  /** The router's address, once the server listens. */
  readonly routerUrl: () => string;
  readonly gpus: ReadonlySet<string>;
}

type Wait = SandboxRequest & { readonly timeout: number };
interface ByName {
  readonly appName: string;
  readonly environmentName: string;
  readonly sandboxName: string;
  readonly includeTerminated?: boolean;
}

/** The control plane's side of sandboxes, in both generations. */
export function sandboxMethods(parts: SandboxMethodParts): Methods {
  const { apps, sandboxes, tokens } = parts;
  const access = (sandbox: Sandbox) => ({ url: parts.routerUrl(), jwt: tokens.sign({ task: sandbox.taskId }) });
  const create = async (generation: "v1" | "v2", request: SandboxCreateRequest) => {
    apps.require(request.appId);
    validate(request.definition, parts.gpus);
    parts.create.volumes.check(request.definition.volumeMounts);
    return await sandboxes.add(request, () => createSandbox(parts.create, generation, request));
  };
  const shared: Methods = {
    async sandboxWait({ sandboxId, timeout }: Wait, { signal }: CallContext) {
      const sandbox = sandboxes.get(sandboxId);
      if (sandbox.result === undefined) await endOrTimeout(sandbox.ended, timeout, signal);
      return { result: sandbox.result, metadata: { appId: sandbox.appId, result: sandbox.result } };
    },
    sandboxList(request: PageFilter) {
      if (request.appId !== "") requireApp(apps, request.appId);
      return { sandboxes: sandboxes.page(request).map(describeSandbox) };
    },
    sandboxGetFromName({ appName, environmentName, sandboxName, includeTerminated = false }: ByName) {
      const appId = apps.find(appName, environmentName);
      if (appId === undefined) throw notFound(`App '${appName}' not found`);
      return { sandboxId: sandboxes.named(appId, sandboxName, includeTerminated).id };
    },
    async sandboxTerminate({ sandboxId }: SandboxRequest) {
      const sandbox = sandboxes.get(sandboxId);
      const existingResult = sandbox.result;
      await sandbox.end(terminated);
      return { existingResult };
    },
    sandboxGetTaskId({ sandboxId }: SandboxRequest) {
      const { taskId, result } = sandboxes.get(sandboxId);
      return { taskId, taskResult: result };
    },
    sandboxTagsSet({ sandboxId, tags }: SandboxRequest & { tags: readonly Tag[] }) {
      sandboxes.get(sandboxId).tags = tags;
    },
    sandboxTagsGet: ({ sandboxId }: SandboxRequest) => ({ tags: sandboxes.get(sandboxId).tags }),
    sandboxGetTunnels({ sandboxId }: SandboxRequest) {
      const { tunnels, result } = sandboxes.get(sandboxId);
      return { tunnels: tunnels.data, result };
    },
    sandboxCreateConnectToken: (request: SandboxRequest & { port?: number; userMetadata?: string }) =>
      parts.connectTokens.create(sandboxes.get(request.sandboxId), request.port, request.userMetadata),
    sandboxGetExitSnapshot({ sandboxId }: SandboxRequest) {
      const { definition, exitImage } = sandboxes.get(sandboxId);
      if (definition.experimentalOptionsV2["enable_exit_snapshot"] !== "true")
        throw invalid("The sandbox was not created with exit snapshots.");
      return exitImage === null ? { pending: {} } : { success: { imageId: exitImage } };
    },
  };
  return {
    ...shared,
    ...Object.fromEntries(Object.entries(shared).map(([name, method]) => [`${name}V2`, method])),
    async sandboxCreate(request: SandboxCreateRequest) {
      const { id, appId } = await create("v1", request);
      return { sandboxId: id, metadata: { appId } };
    },
    async sandboxCreateV2(request: SandboxCreateRequest) {
      const sandbox = await create("v2", request);
      const { id, appId, taskId, tunnels } = sandbox;
      const metadata = { appId };
      return { sandboxId: id, taskId, tunnels: tunnels.data, metadata, commandRouterAccess: access(sandbox) };
    },
    sandboxSetName({ sandboxId, name }: SandboxRequest & { name: string }) {
      sandboxes.rename(sandboxes.get(sandboxId), name);
    },
    sandboxGetCommandRouterAccess: ({ sandboxId }: SandboxRequest) => access(sandboxes.get(sandboxId)),
    taskGetCommandRouterAccess: ({ taskId }: { taskId: string }) => access(sandboxes.ofTask(taskId)),
  };
}

function requireApp(apps: Apps, id: string): void {
  try {
    apps.require(id);
  } catch {
    throw invalid(`Invalid app id ${id}`);
  }
}

async function endOrTimeout(ended: Promise<void>, seconds: number, signal: AbortSignal): Promise<void> {
  if (seconds <= 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, seconds * 1000);
  const give = () => resolve();
  signal.addEventListener("abort", give);
  await Promise.race([ended, promise]);
  clearTimeout(timer);
  signal.removeEventListener("abort", give);
}
