import { isIP } from "node:net";
import { invalid, refusal } from "../refuse.ts";
import type { Definition, NetworkAccess } from "../wire.ts";

const longestLifeSeconds = 24 * 60 * 60;
const longestName = 64;
const clouds = new Set(["", "auto", "aws", "gcp", "oci"]);
const region = /^(us|eu|uk|ap|ca|me|sa|af|jp|mx)(-[a-z]+(-?\d+)?)?$/;
const domain = /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Refuses what Modal would refuse, before anything is made. */
export function validate(definition: Definition, gpus: ReadonlySet<string>): void {
  const { timeoutSecs, name, openPorts, cloudProviderStr, schedulerPlacement, resources } = definition;
  if (timeoutSecs > longestLifeSeconds)
    throw invalid(`Invalid timeout: ${timeoutSecs} s. A sandbox lives at most ${longestLifeSeconds} s (24 hours).`);
  if (name !== undefined && !new RegExp(`^[a-zA-Z0-9._-]{1,${longestName}}$`).test(name))
    throw invalid(`Invalid sandbox name: ${name}`);
  if (!clouds.has(cloudProviderStr)) throw invalid(`Invalid cloud provider: ${cloudProviderStr}`);
  for (const one of schedulerPlacement?.regions ?? []) if (!region.test(one)) throw invalid(`Invalid region: ${one}`);
  const gpu = resources?.gpuConfig?.gpuType ?? "";
  if (gpu !== "" && !gpus.has(gpu)) throw invalid(`Invalid GPU type: ${gpu}. Known: ${[...gpus].join(", ")}.`);
  validateNetwork(definition.networkAccess);
  definition.inboundCidrAllowlist.forEach(requireCidr);
  for (const { port } of openPorts?.ports ?? [])
    if (!Number.isInteger(port) || port < 1 || port > 65535) throw invalid(`Invalid port: ${port}`);
  if (definition.cloudBucketMounts.length > 0)
    throw refusal("UNIMPLEMENTED", "The Modal stand-in mounts no cloud buckets.");
}

export function validateNetwork(access: NetworkAccess | undefined): void {
  access?.allowedCidrs.forEach(requireCidr);
  for (const name of access?.allowedDomains ?? []) if (!domain.test(name)) throw invalid(`Invalid domain: ${name}`);
}

function requireCidr(text: string): void {
  const [address = "", prefix = "", ...rest] = text.split("/");
  const longest = { 4: 32, 6: 128 }[isIP(address)];
  const isRange = /^\d{1,3}$/.test(prefix) && rest.length === 0;
  if (longest === undefined || !isRange || Number(prefix) > longest) throw invalid(`Invalid CIDR: ${text}`);
}
