import type { Capabilities, SandboxProvider } from "../provider.ts";
import type { OtherCoordinator } from "./coordinator.ts";

/** What a provider's test hands to the suite. */
export interface ConformanceSubject {
  /**
   * As the provider declares them. Which tests exist depends on them, and one test compares them with the provider's
   * own.
   */
  readonly capabilities: Capabilities;
  /** Called once. The provider starts without sandboxes. */
  setup(): Promise<ConformanceTarget>;
  /**
   * Breaks every connection between the provider and its sandboxes, once. Without it the suite breaks them from its
   * own side only.
   */
  readonly cutConnections?: (target: ConformanceTarget) => Promise<void>;
}

export interface ConformanceTarget extends AsyncDisposable {
  /** With the capability `tools`, it has the `conformanceTools`. */
  readonly provider: SandboxProvider;
  /** A second coordinator of the same sandboxes that can be killed: see `spawnCoordinator`. */
  otherCoordinator(): Promise<OtherCoordinator>;
}
