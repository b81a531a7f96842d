import type { AgentEvent, RunLimits } from "@slipway/contract";

/**
 * A coding agent, driven turn by turn. Drivers translate; `supervise.ts` owns the limits. A driver never relies on an
 * exit code or the word "success" alone.
 */
export interface Driver {
  readonly name: string;
  /** Opens an agent. After a restart, `state` is what an agent of the same name last passed to `save`. */
  open(options: OpenOptions): Promise<Agent>;
}

export interface OpenOptions {
  /** `lead`, `worker-1`, ... */
  readonly agent: string;
  readonly workdir: string;
  readonly model: string;
  readonly instructions: string;
  readonly permissions: "allow" | "ask";
  readonly limits: RunLimits;
  readonly gateway: GatewayAddress;
  /** Tools that the agents have besides their own: the task list and the scratchpad, as an MCP server. */
  readonly tools: TeamTools;
  readonly state: unknown;
  /** Saves what a later `open` needs to continue. Called after each finished step. Resolves when it is on disk. */
  save(state: unknown): Promise<void>;
  readonly signal: AbortSignal;
}

/** Where agents reach models: an address on the sandbox's loopback that leads to the run channel. */
export interface GatewayAddress {
  /** Without `/v1`. */
  readonly baseUrl: string;
  /** The run's token. */
  readonly token: string;
}

/** What agents call the MCP server of the team's tools. */
export const teamServer = "slipway";

/** Functions for the built-in agent, an MCP server's command line for other programs. */
export interface TeamTools {
  readonly definitions: readonly TeamTool[];
  readonly command: readonly string[];
}

export interface TeamTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the input. */
  readonly schema: Readonly<Record<string, unknown>>;
  run(input: unknown): Promise<string>;
}

export interface Agent extends AsyncDisposable {
  /**
   * Runs one turn, which ends with exactly one `ended`. One turn at a time. When the signal aborts, the turn
   * ends as `cancelled` and leaves nothing running. The prompt is `goOnPrompt` when an interrupted turn
   * continues.
   */
  turn(prompt: string, options: { readonly signal: AbortSignal }): AsyncIterable<AgentEvent>;
  /** Adds the user's words to the running turn at its next step. False: only the next turn can take them. */
  steer(text: string): boolean;
  /** Answers a `permission` event. */
  answer(permission: { readonly id: string; readonly allow: boolean; readonly reason: string }): void;
}
