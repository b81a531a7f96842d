import { newModalId } from "../ids.ts";
import { invalid, notFound } from "../refuse.ts";
import type { Methods } from "../serve.ts";
import type { Tokens } from "../tokens.ts";
import { creation, defaultEnvironment } from "../wire.ts";

export interface Apps {
  readonly methods: Methods;
  /** Fails for an app that does not exist. */
  require(id: string): void;
  find(name: string, environmentName: string): string | undefined;
  /** The id of the app, which is made when it is missing. */
  make(name: string, environmentName: string): string;
}

interface AppRequest {
  readonly appName: string;
  readonly environmentName: string;
  readonly objectCreationType: number;
}

const imageBuilderVersion = "2025.06";

/** Apps, environments, and the session's token: what a client asks for before anything else. */
export function createApps(tokens: Tokens): Apps {
  const apps = new Map<string, string>();
  const environments = new Map<string, string>();
  const keyOf = (name: string, environmentName: string) => `${environmentName || defaultEnvironment}/${name}`;
  const make = (name: string, environmentName: string) => {
    const key = keyOf(name, environmentName);
    const appId = apps.get(key) ?? newModalId("ap");
    apps.set(key, appId);
    return appId;
  };
  const isKnown = (id: string) => [...apps.values()].includes(id);
  return {
    require(id) {
      if (!isKnown(id)) throw notFound(`App '${id}' not found`);
    },
    make,
    find: (name, environmentName) => apps.get(keyOf(name, environmentName)),
    methods: {
      authTokenGet: () => ({ token: tokens.sign({}) }),
      clientHello: () => ({}),
      environmentGetOrCreate({ deploymentName }: { deploymentName: string }) {
        const name = deploymentName || defaultEnvironment;
        const environmentId = environments.get(name) ?? newModalId("en");
        environments.set(name, environmentId);
        return { environmentId, metadata: { name, settings: { imageBuilderVersion, webhookSuffix: "modal.invalid" } } };
      },
      appGetOrCreate({ appName, environmentName, objectCreationType }: AppRequest) {
        if (objectCreationType === creation.lookUp && !apps.has(keyOf(appName, environmentName)))
          throw notFound(`App '${appName}' not found in environment '${environmentName || defaultEnvironment}'`);
        return { appId: make(appName, environmentName) };
      },
      appHeartbeat: () => ({}),
      appClientDisconnect: () => ({}),
      appStop({ appId }: { appId: string }) {
        if (!isKnown(appId)) throw invalid(`Invalid app id ${appId}`);
        for (const [name, id] of apps) if (id === appId) apps.delete(name);
      },
      proxyGet({ name }: { name: string }) {
        throw notFound(`Proxy '${name}' not found`);
      },
    },
  };
}
