import { z } from "zod";

/** A host name, or `*.name` for all names below it. */
const domain = z
  .string()
  .max(253)
  .toLowerCase()
  .regex(
    /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "expected a domain such as example.com or *.example.com",
  )
  .refine((name) => !/^[\d.]+$/.test(name), "an address belongs into cidrs, for instance 192.0.2.7/32");

const cidr = z.union([
  z.cidrv4("expected a range such as 192.0.2.0/24"),
  z.cidrv6("expected a range such as 2001:db8::/32"),
]);

/** Setting one of these would change where a request ends, or whom it is for. */
const framingHeaders = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "keep-alive",
]);

/** A header that the egress adds to requests for one host. The sandbox never holds its value. */
export const injectedSecretSchema = z.strictObject({
  host: domain.refine((name) => !name.startsWith("*."), "name one host, without a wildcard"),
  header: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, "expected a header name")
    .refine((name) => !framingHeaders.has(name.toLowerCase()), "this header frames the message, and can not be added"),
  value: z
    .string()
    .min(1)
    .max(8192)
    .regex(/^[\x20-\x7e]+$/, "a header value is printable ASCII"),
  /**
   * Without it `https`: only to requests that go out by TLS, on port 443, to a server that has proven its name. `http` adds it to
   * plain ones, on port 80, and to no others: everybody on the way reads it, and nothing proves who gets it.
   */
  scheme: z.enum(["https", "http"]).optional(),
});

const maxSecrets = 32;

/** What a build is given for the services that its app uses. */
export const buildSecretsSchema = z
  .array(injectedSecretSchema)
  .max(maxSecrets)
  .refine((secrets) => new Set(secrets.map(nameOf)).size === secrets.length, "name each header of a host once");

function nameOf({ scheme = "https", host, header }: z.output<typeof injectedSecretSchema>): string {
  return `${scheme}://${host} ${header.toLowerCase()}`;
}

/**
 * What a sandbox may reach. Nothing unless named. Names are resolved outside the sandbox; private and loopback
 * addresses are refused unless a range in `cidrs` covers them.
 */
export const networkPolicySchema = z
  .strictObject({
    domains: z.array(domain).max(256).default([]),
    cidrs: z.array(cidr).max(256).default([]),
    /** Ports that may be dialled. */
    ports: z.array(z.int().min(1).max(65535)).max(64).default([80, 443]),
    /** Adds the package registries that the host itself is set to (npm, pip, apt). */
    registries: z.boolean().default(false),
    secrets: z.array(injectedSecretSchema).max(maxSecrets).default([]),
    /** Listens on a port inside and carries it to host:port outside, for programs that know no proxy. */
    forwards: z
      .array(
        z.strictObject({
          port: z.int().min(1).max(65535),
          to: z.string().regex(/^[^\s:]+:\d{1,5}$/, "expected host:port"),
        }),
      )
      .max(16)
      .default([]),
  })
  .prefault({});

export type NetworkPolicy = z.output<typeof networkPolicySchema>;
export type NetworkPolicyInput = z.input<typeof networkPolicySchema>;
export type InjectedSecret = z.output<typeof injectedSecretSchema>;
