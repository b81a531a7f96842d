import type { Socket } from "node:net";
import type {
  CreateSandbox,
  DestroyReceipt,
  ErrorBody,
  Image,
  NetworkPolicy,
  SandboxEvent,
  SandboxId,
  SandboxInfo,
  SnapshotId,
  SnapshotInfo,
} from "@slipway/contract";
import type { ReconcileReport } from "../provider.ts";
import type { Tool } from "./record.ts";

/** Raise it when requests or records change shape: callers ask a keeper of another version to retire. */
export const protocolVersion = 4;

/** The keeper's methods, over its unix socket, as one JSON document per line. */
export interface KeeperMethods {
  hello(params: { version: number }): { version: number; pid: number };
  /** Ends the keeper, not the sandboxes. */
  retire(params: Record<string, never>): null;
  /** The caller chooses the id, so that it can repeat the create with a restarted keeper. */
  create(params: { id: SandboxId; request: CreateSandbox; tools: readonly Tool[] }): SandboxInfo;
  /** Without tools, the fork gets those of its source. */
  fork(params: { id: SandboxId; from: SandboxId; request: CreateSandbox; tools: readonly Tool[] | null }): SandboxInfo;
  sleep(params: { id: SandboxId }): null;
  wake(params: { id: SandboxId }): null;
  stop(params: { id: SandboxId }): null;
  start(params: { id: SandboxId }): null;
  destroy(params: { id: SandboxId }): DestroyReceipt;
  keepAlive(params: { id: SandboxId; forMs: number }): { expiresAt: number };
  setNetwork(params: { id: SandboxId; network: NetworkPolicy }): null;
  preview(params: { id: SandboxId; port: number }): string;
  snapshot(params: {
    id: SandboxId;
    snapshot: SnapshotId;
    name: string | null;
    expiresInMs: number | null;
  }): SnapshotInfo;
  updateSnapshot(params: { id: SnapshotId; name?: string | null; expiresInMs?: number | null }): SnapshotInfo;
  deleteSnapshot(params: { id: SnapshotId }): null;
  /** `built`: the record of an image that the call has built. */
  prepareImage(params: { image: Image }): { built: string | null };
  removeImage(params: { key: string }): null;
  reconcile(params: Record<string, never>): ReconcileReport;
  /** Events follow as messages until the connection closes. */
  subscribe(params: { after: number | null }): { last: number };
}

export type KeeperMethod = keyof KeeperMethods;
export type KeeperParams<M extends KeeperMethod> = Parameters<KeeperMethods[M]>[0];
export type KeeperResult<M extends KeeperMethod> = ReturnType<KeeperMethods[M]>;

export type KeeperRequest =
  | { readonly call: number; readonly method: KeeperMethod; readonly params: unknown }
  | { readonly cancel: number };

export type KeeperMessage =
  | { readonly call: number; readonly result: unknown }
  | { readonly call: number; readonly error: ErrorBody }
  | { readonly call: number; readonly progress: string }
  | { readonly event: SandboxEvent };

/** The line that a new keeper writes to its standard output; none when another keeper has the state directory. */
export type KeeperStart = { readonly ready: true } | { readonly error: ErrorBody };

/** False when the socket must drain before it takes more. */
export function sendLine(socket: Socket, message: KeeperRequest | KeeperMessage): boolean {
  return !socket.writable || socket.write(`${JSON.stringify(message)}\n`);
}

/** Closes the connection on a line that is no JSON: the peer is not Slipway. */
export function onLines<T>(socket: Socket, listener: (message: T) => void): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      let message: T;
      try {
        message = JSON.parse(line) as T;
      } catch {
        socket.destroy();
        return;
      }
      listener(message);
    }
  });
}
