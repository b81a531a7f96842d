import { keyBytes } from "../handshake.ts";

/** How the program is configured; see docs/run-channel.md. */
export interface Settings {
  readonly key: Buffer;
  readonly port: number;
  readonly untilMs: number;
  /** Path of the agent program. */
  readonly agent: string;
  /** Root's alone: exec logs and sockets. */
  readonly state: string;
  /** Runs every command and file operation. */
  readonly user: string;
  readonly processes: number;
  readonly previews: readonly { readonly publicPort: number; readonly port: number }[];
  /** Path of the unix socket for programs inside. */
  readonly channel: string;
}

/** Fails with the name of what is missing or wrong. */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const value = (name: string, pattern: RegExp, otherwise?: string): string => {
    const found = environment[`SLIPWAY_LINK_${name}`] || otherwise;
    if (found !== undefined && pattern.test(found)) return found;
    throw new Error(`SLIPWAY_LINK_${name} is ${found === undefined ? "missing" : "not what it should be"}.`);
  };
  const port = (text: string, name: string): number => {
    const number = Number(text);
    if (number < 1 || number > 65_535) throw new Error(`SLIPWAY_LINK_${name} names no port.`);
    return number;
  };
  const user = value("USER", /^[1-9]\d{0,8}(:[1-9]\d{0,8})?$/, "1000:1000");
  const previews = value("PREVIEWS", /^\d{1,5}=\d{1,5}(,\d{1,5}=\d{1,5})*$|^none$/, "none");
  return {
    key: Buffer.from(value("KEY", new RegExp(`^[0-9a-f]{${2 * keyBytes}}$`)), "hex"),
    port: port(value("PORT", /^\d{1,5}$/), "PORT"),
    untilMs: Number(value("UNTIL", /^\d{1,15}$/)),
    agent: value("AGENT", /^\//),
    state: value("STATE", /^\//),
    user: user.includes(":") ? user : `${user}:${user}`,
    processes: Number(value("PROCESSES", /^[1-9]\d{0,6}$/, "512")),
    previews: (previews === "none" ? [] : previews.split(",")).map((pair) => {
      const [publicPort = "", inner = ""] = pair.split("=");
      return { publicPort: port(publicPort, "PREVIEWS"), port: port(inner, "PREVIEWS") };
    }),
    channel: value("CHANNEL", /^\//, "/run/slipway/run.sock"),
  };
}
