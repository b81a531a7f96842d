import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SecureContext } from "node:tls";
import { openCertificateAuthority } from "@slipway/sandbox/local/authority";
import { tunnelHost } from "./sandboxes/tunnels.ts";

export interface Certificates {
  /** For clients to trust: the authority's certificate. */
  readonly caFile: string;
  /** The tunnels' own. */
  readonly context: SecureContext;
}

export async function openCertificates(directory: string): Promise<Certificates> {
  const authority = await openCertificateAuthority({ file: join(directory, "authority.pem") });
  const caFile = join(directory, "ca.pem");
  await writeFile(caFile, authority.caCertificatePem, { mode: 0o644 });
  return { caFile, context: authority.contextFor(tunnelHost) };
}
