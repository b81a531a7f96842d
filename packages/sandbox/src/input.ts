import { posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  type CreateSandbox,
  createSandboxSchema,
  type ErrorCode,
  type ExecRequest,
  execRequestSchema,
  imageSchema,
  type NetworkPolicy,
  networkPolicySchema,
  SlipwayError,
} from "@slipway/contract";
import type { z } from "zod";
import type { Capabilities } from "./provider.ts";

/** Validates a caller's input once. Every provider uses these, so that all refuse the same input with the same code. */
export function parseCreate(input: unknown, capabilities: Capabilities): CreateSandbox {
  const request = parse(createSandboxSchema, input, createCode);
  if (request.gpu !== undefined && !capabilities.gpu) throw missing("gpu");
  if (typeof request.image !== "string" && !capabilities.customImages) throw missing("customImages");
  if (request.checkpointMs !== null && !capabilities.snapshotWhileRunning) throw missing("snapshotWhileRunning");
  if (request.tools.length > 0 && !capabilities.tools) throw missing("tools");
  if (request.user === "root" && !capabilities.rootUser) throw missing("rootUser");
  requireNetwork(request.network, capabilities);
  return request;
}

/** A fork inherits what is not overridden, except the idempotency key. */
export function parseFork(
  overrides: unknown,
  { idempotencyKey: _key, ...inherited }: CreateSandbox,
  capabilities: Capabilities,
): CreateSandbox {
  return parseCreate({ ...inherited, ...(overrides as object) }, capabilities);
}

/** Turns a shell text into an argv for `sh -c`. */
export function parseExec(input: unknown, capabilities: Capabilities): ExecRequest & { readonly argv: string[] } {
  const request = parse(execRequestSchema, input, () => "invalid_request");
  if (request.pty !== undefined && !capabilities.pty) throw missing("pty");
  return { ...request, argv: request.argv ?? ["sh", "-c", request.shell ?? ""] };
}

export function parseNetwork(input: unknown, capabilities: Capabilities): NetworkPolicy {
  const policy = parse(networkPolicySchema, input, () => "invalid_network");
  requireNetwork(policy, capabilities);
  return policy;
}

export function parseImage(input: unknown, capabilities: Capabilities): CreateSandbox["image"] {
  const image = parse(imageSchema, input, () => imageCode(input));
  if (typeof image !== "string" && !capabilities.customImages) throw missing("customImages");
  return image;
}

export function parsePort(port: number, open: readonly number[]): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65535 && open.includes(port)) return port;
  throw new SlipwayError(
    "invalid_port",
    `Port ${port} is not open in this sandbox. Open ports: ${open.join(", ") || "none"}.`,
  );
}

const defaultPorts = networkPolicySchema.parse({}).ports;

const maxPathBytes = 4095;

/** The absolute form of a path inside a sandbox, by its text alone: the file system resolves symbolic links. */
export function holdPath(path: string, workdir: string): string {
  if (path === "" || path.includes("\0"))
    throw new SlipwayError("invalid_request", "A path is not empty and holds no NUL.");
  let depth = path.startsWith("/") ? 0 : segments(workdir).length;
  for (const segment of segments(path)) {
    depth += segment === ".." ? -1 : 1;
    if (depth < 0) throw new SlipwayError("path_outside", `${path} leads out of the sandbox.`);
  }
  const resolved = posix.resolve("/", workdir, path);
  if (Buffer.byteLength(resolved) > maxPathBytes)
    throw new SlipwayError("invalid_request", `A path has at most ${maxPathBytes} bytes.`);
  return resolved;
}

/** The error for a capability that the provider declares false. */
export function missing(capability: keyof Capabilities): SlipwayError {
  return new SlipwayError("capability_missing", `This provider does not have the capability ${capability}.`);
}

function requireNetwork(policy: NetworkPolicy, capabilities: Capabilities): void {
  const opens = policy.domains.length + policy.cidrs.length + policy.forwards.length > 0 || policy.registries;
  if (opens && !capabilities.egressAllowlist) throw missing("egressAllowlist");
  if (policy.secrets.length > 0 && !capabilities.egressSecrets) throw missing("egressSecrets");
  if (policy.forwards.length > 0 && !capabilities.egressForwards) throw missing("egressForwards");
  if (!capabilities.egressPorts && !isDeepStrictEqual(policy.ports, defaultPorts)) throw missing("egressPorts");
}

function segments(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}

function parse<S extends z.ZodType>(
  schema: S,
  input: unknown,
  codeOf: (issue: Issue, input: unknown) => ErrorCode,
): z.output<S> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const issues = result.error.issues.flatMap((issue) => specific(issue));
  const codes = new Set(issues.map((issue) => codeOf(issue, input)));
  const [code = "invalid_request"] = codes;
  const text = issues.map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`));
  throw new SlipwayError(codes.size === 1 ? code : "invalid_request", [...new Set(text)].join("; "));
}

type Issue = z.core.$ZodIssue;

/** Reports only the nearest alternative of a union: the one whose mistakes lie deepest. */
function specific(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union") return [issue];
  const depth = (issues: Issue[]) => Math.max(0, ...issues.map(({ path }) => path.length));
  const nearest = issue.errors.reduce(
    (best, other) => (depth(other) > depth(best) ? other : best),
    issue.errors[0] ?? [],
  );
  return nearest.flatMap((inner) => specific({ ...inner, path: [...issue.path, ...inner.path] }));
}

const fieldCodes: Readonly<Record<string, ErrorCode>> = {
  cpu: "invalid_limits",
  memoryMb: "invalid_limits",
  diskMb: "invalid_limits",
  processes: "invalid_limits",
  lifetimeMs: "invalid_limits",
  ports: "invalid_port",
  network: "invalid_network",
};

function createCode({ path: [field] }: Issue, input: unknown): ErrorCode {
  if (field === "image") return imageCode((input as { image?: unknown }).image);
  return fieldCodes[String(field)] ?? "invalid_request";
}

function imageCode(image: unknown): ErrorCode {
  const base = typeof image === "object" && image !== null ? (image as { base?: unknown }).base : image;
  return base === undefined || imageSchema.safeParse(base).success ? "invalid_request" : "unknown_image";
}
