import { randomUUID } from "node:crypto";
import type {
  PermissionOption,
  PermissionOptionKind,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import type { AgentEvent } from "@slipway/contract";
import { longText, shortText } from "../../system/text.ts";
import type { Agent } from "../driver.ts";

export interface Permissions {
  ask(request: RequestPermissionRequest): Promise<RequestPermissionResponse>;
  answer: Agent["answer"];
  /** Answers all open requests: the turn is over. */
  cancel(): void;
}

/** `allow` grants every request. `ask` turns it into an event and waits for an answer. */
export function createPermissions(policy: "allow" | "ask", emit: (event: AgentEvent) => void): Permissions {
  const open = new Map<string, (allow: boolean | undefined) => void>();
  return {
    async ask({ toolCall, options }) {
      if (policy === "allow") return select(options, true);
      const id = randomUUID();
      const answered = Promise.withResolvers<boolean | undefined>();
      open.set(id, answered.resolve);
      const input = longText(JSON.stringify(toolCall.rawInput ?? toolCall.content ?? {}));
      emit({ type: "permission", id, tool: shortText(toolCall.title || toolCall.name || "unknown"), input });
      return select(options, await answered.promise);
    },
    answer({ id, allow }) {
      open.get(id)?.(allow);
      open.delete(id);
    },
    cancel() {
      for (const resolve of open.values()) resolve(undefined);
      open.clear();
    },
  };
}

const wanted: Readonly<Record<"allow" | "reject", readonly PermissionOptionKind[]>> = {
  allow: ["allow_once", "allow_always"],
  reject: ["reject_once", "reject_always"],
};

/** Without a matching option, the protocol has only `cancelled`. */
function select(options: readonly PermissionOption[], allow: boolean | undefined): RequestPermissionResponse {
  const kinds = allow === undefined ? [] : wanted[allow ? "allow" : "reject"];
  const option = kinds.flatMap((kind) => options.filter((offered) => offered.kind === kind))[0];
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
}
