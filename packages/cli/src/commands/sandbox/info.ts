import type { SandboxInfo } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { sandboxOf } from "../../input/resolve.ts";
import { formatFields, toJson } from "../../terminal/terminal.ts";

export async function run(context: Context): Promise<void> {
  const sandbox = await sandboxOf(context);
  const info = await sandbox.info({ signal: context.interrupts.signal });
  await context.result(info, () => formatFields(fields(info, context), context.paint));
}

function fields(info: SandboxInfo, context: Context): [string, string][] {
  const now = Date.now();
  const time = (at: number) => {
    const distance = formatDuration(Math.abs(now - at));
    return `${new Date(at).toISOString()} (${at > now ? `in ${distance}` : `${distance} ago`})`;
  };
  const { limits } = info;
  const labels = Object.entries(info.labels).map(([key, value]) => context.clean(`${key}=${value}`));
  return [
    ["id", info.id],
    ["state", `${info.state} (${info.reason}), since ${time(info.stateChangedAt)}`],
    ["image", typeof info.image === "string" ? info.image : toJson(info.image)],
    ...(info.snapshot ? [["snapshot", info.snapshot] as [string, string]] : []),
    ["created", time(info.createdAt)],
    ["expires", time(info.expiresAt)],
    [
      "limits",
      `${limits.cpu} cpu, ${limits.memoryMb} MB memory, ${limits.diskMb} MB disk, ${limits.processes} processes`,
    ],
    ["user", info.user],
    ["workdir", context.clean(info.workdir)],
    ["ports", info.ports.join(", ") || "none"],
    ["network", networkText(info.network)],
    ["labels", labels.join(", ") || "none"],
    ["provider", info.provider],
  ];
}

function networkText(network: SandboxInfo["network"]): string {
  const reachable = [...network.domains, ...network.cidrs, ...(network.registries ? ["package registries"] : [])];
  const parts = reachable.length > 0 ? [`${reachable.join(", ")} on ports ${network.ports.join(", ")}`] : [];
  parts.push(...network.forwards.map((forward) => `port ${forward.port} inside forwards to ${forward.to}`));
  parts.push(
    ...network.secrets.map(
      ({ scheme = "https", host, header }) => `${header} is added to requests to ${scheme}://${host}`,
    ),
  );
  return parts.join("; ") || "none";
}
