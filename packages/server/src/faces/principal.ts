import type { Scope } from "@slipway/contract";

/** Who asks. */
export interface Principal {
  readonly account: string;
  /** `local`: the user that the server runs for, who alone reaches its socket. */
  readonly kind: "local";
}

export const localUser: Principal = { account: "local", kind: "local" };

/** Whether somebody may use a resource so. An account may do anything with what is its own. */
export function may({ account }: Principal, _scope: Scope, resource: { readonly account: string }): boolean {
  return resource.account === account;
}
