import type { Images } from "./images/images.ts";
import type { Apps } from "./objects/apps.ts";
import { type CreateParts, createSandbox } from "./sandboxes/create.ts";
import type { Sandboxes } from "./sandboxes/sandboxes.ts";
import type { Definition, SandboxCreateRequest } from "./wire.ts";

interface Parts {
  readonly apps: Apps;
  readonly images: Images;
  readonly sandboxes: Sandboxes;
  readonly create: CreateParts;
}

const usualTimeoutSecs = 300;

/** Sandboxes of an app, as if a client had created each. */
export async function populate(
  { apps, images, sandboxes, create }: Parts,
  count: number,
  appName: string,
  tags: Readonly<Record<string, string>> = {},
): Promise<void> {
  const imageId = images.add({ snapshot: null, environment: {}, workdir: null, entrypoint: [] }, 0);
  const definition: Definition = {
    imageId,
    timeoutSecs: usualTimeoutSecs,
    entrypointArgs: [],
    secretIds: [],
    volumeMounts: [],
    cloudBucketMounts: [],
    inboundCidrAllowlist: [],
    cloudProviderStr: "",
    includeOidcIdentityToken: false,
    experimentalOptionsV2: {},
  };
  const request: SandboxCreateRequest = {
    appId: apps.make(appName, ""),
    definition,
    tags: Object.entries(tags).map(([tagName, tagValue]) => ({ tagName, tagValue })),
  };
  for (let made = 0; made < count; made += 1) await sandboxes.add(request, () => createSandbox(create, "v2", request));
}
