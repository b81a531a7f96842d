import { z } from "zod";

const settingsSchema = z.object({
  tokenId: z.string(),
  tokenSecret: z.string(),
  environment: z.string().optional(),
  app: z.string(),
  apiBase: z.string(),
  maxConcurrent: z.int().min(1),
  regions: z.array(z.string()),
  tunnelCa: z.string().optional(),
});

/** The settings of a keeper's start. Whoever starts it decides them. */
export type KeeperSettings = z.output<typeof settingsSchema>;

const variable = "SLIPWAY_MODAL_KEEPER";
/** What Node and gRPC need of the caller's environment, and what names its package registries. */
const passed =
  /^(PATH|HOME|TMPDIR|LANG|LC_.*|TZ|NODE_.*|SSL_CERT_.*|(https?|grpc|no|all)_proxy|npm_config_registry|PIP_(EXTRA_)?INDEX_URL)$/i;

/**
 * The environment of the keeper's process, which holds the credentials: everybody on the machine can read arguments.
 * The SDK takes its server from there alone, and would else read a file of the person's.
 */
export function keeperEnvironment(
  settings: KeeperSettings,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(Object.entries(environment).filter(([name]) => passed.test(name))),
    MODAL_SERVER_URL: settings.apiBase,
    MODAL_CONFIG_PATH: "/dev/null",
    [variable]: JSON.stringify(settings),
  };
}

export function readKeeperSettings(environment: Readonly<Record<string, string | undefined>>): KeeperSettings {
  return settingsSchema.parse(JSON.parse(environment[variable] ?? "null"));
}
