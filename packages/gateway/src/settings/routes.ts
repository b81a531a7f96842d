import { type ModelRole, modelRoles, SlipwayError } from "@slipway/contract";
import type { Endpoint } from "./endpoints.ts";
import { findPrice, type ModelPrice } from "./prices.ts";
import { type GatewaySettings, modelVariable } from "./settings.ts";

/** Where a role's requests go, and at what price. */
export interface Route {
  readonly role: ModelRole;
  /** `provider/model` */
  readonly name: string;
  /** The endpoint's name for it. */
  readonly model: string;
  readonly endpoint: Endpoint;
  readonly price: ModelPrice;
}

/** Returns the routes of the given roles. Fails for a route that cannot work, so that no run starts with it. */
export function resolveRoutes(settings: GatewaySettings, roles: readonly ModelRole[]): Route[] {
  return roles.map((role) => resolveRoute(settings, role));
}

/** A request names a role, `provider/model` or the bare model, among the roles of its run. */
export function chooseRoute(settings: GatewaySettings, routes: readonly Route[], requested: string): Route {
  const route =
    routes.find(({ role }) => role === requested) ??
    routes.find(({ name }) => name === requested) ??
    routes.find(({ model }) => model === requested);
  if (route !== undefined) return route;
  const allowed = routes.map(({ role, name }) => `${name} (${role})`).join(", ");
  const shown = requested.slice(0, 100);
  if (isKnown(settings, requested)) {
    throw new SlipwayError("role_forbidden", `this run may not use ${shown}, only ${allowed}`);
  }
  throw new SlipwayError("unknown_model", `there is no model ${shown}; this run may use ${allowed}`);
}

function resolveRoute(settings: GatewaySettings, role: ModelRole): Route {
  const name = settings.models[role];
  const { provider, model } = splitName(name);
  const setting = `the model of the role ${role} (${modelVariable(role)}, or SLIPWAY_MODEL for all) is ${name}`;
  const endpoint = settings.endpoints.find((candidate) => candidate.provider === provider);
  if (endpoint === undefined) {
    const known = settings.endpoints.map((candidate) => candidate.provider).join(", ");
    throw new SlipwayError("unknown_model", `${setting}, and there is no provider ${provider}; there are ${known}`);
  }
  const price = findPrice(settings.prices, provider, model);
  const { key, keyVariable, keyOptional } = endpoint;
  const needsKey = keyVariable !== undefined && keyOptional !== true && settings.cassettes?.mode !== "replay";
  if (needsKey && key === undefined) {
    throw new SlipwayError("missing_key", `${setting}: set ${keyVariable}, or choose another model`);
  }
  return { role, name, model, endpoint, price };
}

/** Known to this gateway, even if only to another run. */
function isKnown(settings: GatewaySettings, requested: string): boolean {
  if (modelRoles.some((role) => role === requested)) return true;
  const names = [...Object.values(settings.models), ...settings.prices.keys()];
  return names.some((name) => name === requested || splitName(name).model === requested);
}

function splitName(name: string): { readonly provider: string; readonly model: string } {
  const slash = name.indexOf("/");
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}
