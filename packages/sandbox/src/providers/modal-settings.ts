import { readFileSync } from "node:fs";
import { absolutePath, wholeNumber } from "@slipway/contract";
import { z } from "zod";

/** What the provider on Modal is opened with. */
export interface ModalSettings {
  readonly tokenId: string;
  readonly tokenSecret: string;
  /** The credentials must be of this workspace; undefined: of any. */
  readonly workspace: string | undefined;
  /** Undefined: the workspace's own default. */
  readonly environment: string | undefined;
  readonly app: string;
  /** An origin with its port. */
  readonly apiBase: string;
  /** Sandboxes of the account at once. */
  readonly maxConcurrent: number;
  /** Empty: wherever Modal likes. */
  readonly regions: readonly string[];
  /** PEM. Undefined: the authorities that Node knows. */
  readonly tunnelCa: string | undefined;
}

const anyWorkspace = "default";
const loopback = ["localhost", "127.0.0.1"];

/** No message repeats a value that may hold a secret. */
const token = z.string().regex(/^[\x21-\x39\x3b-\x7e]{1,512}$/, "expected a token without spaces and colons");
const address = z
  .string()
  .refine(isApiBase, "expected https://host[:port], or http:// on localhost or 127.0.0.1, without a path or password");
const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "expected up to 64 letters, digits, . _ -");

/** What a deployment is of: settings that lead to other sandboxes and images. */
export function deployTarget({ apiBase, workspace, environment, app }: ModalSettings): string {
  return [apiBase, workspace ?? "", environment ?? "", app].join(" ");
}

export const modalVariables = {
  MODAL_TOKEN_ID: token.refine((text) => !text.startsWith("as-"), "this is a token's secret (as-...)").optional(),
  MODAL_TOKEN_SECRET: token.refine((text) => !text.startsWith("ak-"), "this is a token's id (ak-...)").optional(),
  MODAL_API_TOKEN: z
    .string()
    .regex(/^[\x21-\x39\x3b-\x7e]{1,512}:[\x21-\x39\x3b-\x7e]{1,512}$/, "expected a token's id and secret as id:secret")
    .optional(),
  MODAL_API_BASE: address.optional(),
  MODAL_SERVER_URL: address.optional(),
  MODAL_WORKSPACE: name.default(anyWorkspace),
  MODAL_ENVIRONMENT: name.optional(),
  MODAL_SANDBOX_APP: name.default("slipway"),
  MODAL_MAX_CONCURRENT: wholeNumber(1, 100_000).default(100),
  SLIPWAY_MODAL_REGIONS: z
    .string()
    .regex(/^[a-z0-9-]{1,64}(,[a-z0-9-]{1,64}){0,31}$/, "expected regions such as us-east,eu-west")
    .optional(),
  SLIPWAY_MODAL_TUNNEL_CA: absolutePath.transform(readCertificates).optional(),
};
type Parsed = z.output<z.ZodObject<typeof modalVariables>>;

export interface ReadModal {
  /** Undefined without credentials, or with wrong ones. */
  readonly modal: ModalSettings | undefined;
  readonly mistakes: readonly string[];
}

/** `given` has what is set, be it right or wrong. */
export function readModal(settings: Parsed, given: object): ReadModal {
  const { credentials, mistakes } = readCredentials(settings, given);
  if (credentials === undefined) return { modal: undefined, mistakes };
  const { MODAL_WORKSPACE: workspace, SLIPWAY_MODAL_REGIONS: regions } = settings;
  const modal: ModalSettings = {
    ...credentials,
    workspace: workspace === anyWorkspace ? undefined : workspace,
    environment: settings.MODAL_ENVIRONMENT,
    app: settings.MODAL_SANDBOX_APP,
    apiBase: originOf(settings.MODAL_API_BASE ?? settings.MODAL_SERVER_URL ?? "https://api.modal.com"),
    maxConcurrent: settings.MODAL_MAX_CONCURRENT,
    regions: regions === undefined ? [] : [...new Set(regions.split(","))],
    tunnelCa: settings.SLIPWAY_MODAL_TUNNEL_CA,
  };
  return { modal, mistakes };
}

type Credentials = Pick<ModalSettings, "tokenId" | "tokenSecret">;

function readCredentials(settings: Parsed, given: object): { credentials?: Credentials; mistakes: readonly string[] } {
  const { MODAL_TOKEN_ID: tokenId, MODAL_TOKEN_SECRET: tokenSecret, MODAL_API_TOKEN: both } = settings;
  const [hasId, hasSecret] = ["MODAL_TOKEN_ID" in given, "MODAL_TOKEN_SECRET" in given];
  if (hasId !== hasSecret) {
    const [set, unset] = hasId ? ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"] : ["MODAL_TOKEN_SECRET", "MODAL_TOKEN_ID"];
    return { mistakes: [`${set} is set and ${unset} is not: set both, or none.`] };
  }
  const pair = tokenId === undefined || tokenSecret === undefined ? undefined : { tokenId, tokenSecret };
  if (both === undefined) return pair === undefined ? { mistakes: [] } : { credentials: pair, mistakes: [] };
  const [ofBothId = "", ofBothSecret = ""] = both.split(":");
  const ofBoth = { tokenId: ofBothId, tokenSecret: ofBothSecret };
  // A wrong one of the pair has its own sentence already.
  if (pair === undefined) return hasId ? { mistakes: [] } : { credentials: ofBoth, mistakes: [] };
  if (pair.tokenId === ofBothId && pair.tokenSecret === ofBothSecret) return { credentials: pair, mistakes: [] };
  return {
    mistakes: ["MODAL_API_TOKEN is another token than MODAL_TOKEN_ID and MODAL_TOKEN_SECRET: set one of them."],
  };
}

/** Credentials go there: in plain text only to this machine itself. */
function isApiBase(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && loopback.includes(url.hostname));
}

function originOf(text: string): string {
  const { protocol, hostname, port } = new URL(text);
  return `${protocol}//${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}

function readCertificates(path: string, context: z.RefinementCtx): string {
  const fail = (message: string) => {
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  };
  try {
    const text = readFileSync(path, "utf8");
    return text.includes("-----BEGIN CERTIFICATE-----") ? text : fail(`"${path}" has no certificate in PEM form`);
  } catch (error) {
    return fail(`"${path}" cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
