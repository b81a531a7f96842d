import type { AgentEvent, RunLimits } from "@slipway/contract";

/**
 * A coding agent, driven turn by turn. Drivers translate; `supervise.ts` owns the limits. A driver never trusts an exit
 * code or the word "success" alone.
 */
export interface Driver {
  readonly name: string;
  /** Makes an agent. `state` is what `save` was last given by an agent of the same name, after a restart. */
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
  /** Programs the agents may call beside their own tools: the task list and the scratchpad, as an MCP server. */
  readonly tools: TeamTools;
  readonly state: unknown;
  /** Keeps what a later `open` needs to go on. Called after each finished step; answers when it is on disk. */
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

/** For the built-in agent as functions, for other programs as an MCP server's command line. */
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
   * One turn: ends with exactly one `done` or `error`. Only one turn at a time. When the signal aborts, the turn ends with
   * `done`/`cancelled` and nothing of it is left running. The prompt is `goOnPrompt` of text.ts when a turn that a restart or
   * the user has ended goes on.
   */
  turn(prompt: string, options: { readonly signal: AbortSignal }): AsyncIterable<AgentEvent>;
  /** Words of the user for the turn that runs, taken up at its next step; false: the agent can not take them before the turn ends. */
  steer(text: string): boolean;
  /** Answers a `permission` event. */
  answer(permission: { readonly id: string; readonly allow: boolean; readonly reason: string }): void;
}
