import { createHash } from "node:crypto";
import type { Usage } from "@slipway/contract";
import { type ScriptedProgram, type ScriptedRequest, startScriptedModel } from "@slipway/gateway/scripted";

/** A request as the model's owner would bill it. */
export interface BilledRequest {
  /** Of the request's whole content: an agent that asks the same again says the same. */
  readonly digest: string;
  /** The title of the task that it is for; null: it is none of an agent's. */
  readonly task: string | null;
  /** No other request has the same. */
  readonly usage: Usage;
}

/** A scripted model outside of the server, which keeps its own count of what it was asked. It outlives the server. */
export interface BilledModel extends AsyncDisposable {
  /** Without `/v1`. */
  readonly baseUrl: string;
  readonly requests: readonly BilledRequest[];
}

/** Requests give the model's name. */
export async function startBilledModel(name: string, program: ScriptedProgram): Promise<BilledModel> {
  const requests: BilledRequest[] = [];
  const billed: ScriptedProgram = async (request) => {
    const turn = await program(request);
    const usage = { input: 1000 + requests.length, output: 10, cacheRead: 0, cacheWrite: 0 };
    requests.push({ digest: digestOf(request), task: taskOf(request), usage });
    return { ...turn, usage };
  };
  const model = await startScriptedModel({
    programs: { [name]: billed },
    listen: { host: "127.0.0.1", port: 0 },
  });
  return { baseUrl: model.baseUrl, requests, [Symbol.asyncDispose]: model.close };
}

function digestOf({ request: { messages, system } }: ScriptedRequest): string {
  return createHash("sha256")
    .update(JSON.stringify([system, messages]))
    .digest("hex");
}

function taskOf({ request: { messages } }: ScriptedRequest): string | null {
  const texts = messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])));
  return texts.map((text) => /^\s*Your task: (.+)$/m.exec(text)?.[1]).find((title) => title !== undefined) ?? null;
}
