import { join } from "node:path";
import type { CompatServiceDefinition } from "nice-grpc";
import { type CallContext, createServer, type ServerMiddlewareCall, Status } from "nice-grpc";
import type { Codecs } from "./codecs.ts";
import type { FaultPlan, Refusal } from "./fault-plan.ts";
import { type Front, openFront } from "./front.ts";
import { asRefusal, refusal } from "./refuse.ts";
import type { Tokens } from "./tokens.ts";

/** Answers one method: with a message, or with a stream of them. The codecs fill in what an answer leaves out. */
export type Method = (request: never, context: CallContext) => unknown;
/** By the names of the service's definition, for instance `sandboxCreateV2`. */
export type Methods = Readonly<Record<string, Method>>;

export interface ServeParts {
  readonly codecs: Codecs;
  readonly control: Methods;
  readonly router: Methods;
  readonly tokens: Tokens;
  readonly faults: FaultPlan;
  /** Only the owner reaches the server's socket in it. */
  readonly directory: string;
  readonly port: number;
  /** How often each method was called. */
  readonly calls: Map<string, number>;
}

const longestMessage = 100 * 1024 * 1024;

export async function serve(parts: ServeParts): Promise<Front> {
  const options = {
    "grpc.max_receive_message_length": longestMessage,
    "grpc.max_send_message_length": longestMessage,
  };
  let front: Front | null = null;
  const server = createServer(options).use((call, context) => carry(parts, call, context, () => front?.cut()));
  server.add(parts.codecs.control, complete(parts.codecs.control, parts.control));
  server.add(parts.codecs.router, complete(parts.codecs.router, parts.router));
  const socketPath = join(parts.directory, "server.sock");
  await server.listen(`unix:${socketPath}`);
  const opened = await openFront(socketPath, parts.port);
  front = opened;
  return {
    port: opened.port,
    cut: opened.cut,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]();
      server.forceShutdown();
    },
  };
}

/** One call: who asks, which fault is ordered for it, then the method itself. */
async function* carry<Request, Response>(
  { codecs, tokens, faults, calls }: ServeParts,
  call: ServerMiddlewareCall<Request, Response>,
  context: CallContext,
  cutConnections: () => void,
) {
  const [, service = "", method = ""] = call.method.path.split("/");
  calls.set(method, (calls.get(method) ?? 0) + 1);
  if (service.startsWith("modal.client.")) requireSession(tokens, method, context);
  const fault = faults.take(method);
  await faults.waitAsCall();
  if (fault !== undefined && "refusal" in fault) throw refuseAsOrdered(codecs, context, fault.refusal);
  const cut = (): never => {
    cutConnections();
    throw refusal("UNAVAILABLE", "The connection was cut, as ordered.");
  };
  if (fault?.cut === "before") cut();
  try {
    if (fault?.cut !== "after") return yield* call.next(call.request, context);
    if (call.responseStream) for await (const answer of call.next(call.request, context)) void answer;
    else await call.next(call.request, context).next();
    return cut();
  } catch (error) {
    throw asRefusal(error);
  }
}

function requireSession(tokens: Tokens, method: string, { metadata }: CallContext): void {
  const header = (name: string) => metadata.get(name)?.toString();
  if (!tokens.accepts(header("x-modal-token-id"), header("x-modal-token-secret")))
    throw refusal("UNAUTHENTICATED", "Token ID or secret is missing or malformed, or not this stand-in's.");
  const session = header("x-modal-auth-token");
  if (method !== "AuthTokenGet" && session !== undefined && tokens.verify(session) === null)
    throw refusal("UNAUTHENTICATED", "The session's token has expired.");
}

function refuseAsOrdered(codecs: Codecs, context: CallContext, { code, message, retryAfterSeconds }: Refusal) {
  const text = message ?? "Refused, as ordered.";
  if (retryAfterSeconds !== undefined) {
    const value = codecs.retryPolicy.encode({ retryAfterSecs: retryAfterSeconds }).finish();
    const details = [{ typeUrl: "type.googleapis.com/modal.client.RPCRetryPolicy", value }];
    const status = codecs.status.encode({ code: Status[code], message: text, details }).finish();
    context.trailer.set("grpc-status-details-bin", status);
  }
  return refusal(code, text);
}

/** Every method of the service; those that the stand-in does not have say so. */
function complete(definition: CompatServiceDefinition, methods: Methods): Record<string, never> {
  const entries = Object.entries(definition.methods as Record<string, { name: string; responseStream: boolean }>);
  const implementation = entries.map(([key, { name, responseStream }]) => {
    const method = methods[key];
    const answer = (request: never, context: CallContext) => {
      if (method === undefined) throw refusal("UNIMPLEMENTED", `The Modal stand-in has no ${name}.`);
      return method(request, context);
    };
    const streamed = async function* (request: never, context: CallContext) {
      yield* answer(request, context) as AsyncIterable<unknown>;
    };
    const single = async (request: never, context: CallContext) => (await answer(request, context)) ?? {};
    return [key, responseStream ? streamed : single];
  });
  return Object.fromEntries(implementation) as Record<string, never>;
}
