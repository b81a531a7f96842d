import { invalid } from "../refuse.ts";
import type { Methods } from "../serve.ts";
import { creation, type NamedRequest, type SecretSource } from "../wire.ts";
import { createNamed } from "./named.ts";

type Variables = Readonly<Record<string, string>>;

export interface Secrets {
  readonly methods: Methods;
  /** Makes a named secret, as somebody does on Modal's own pages. */
  add(name: string, variables: Variables, environmentName?: string): string;
  /** The environment that these secrets make; a later one wins. */
  environmentOf(ids: readonly string[], sources?: readonly SecretSource[]): Record<string, string>;
}

interface SecretRequest extends NamedRequest {
  readonly envDict: Variables;
  readonly requiredKeys: readonly string[];
}

export function createSecrets(): Secrets {
  const secrets = createNamed<Variables>("Secret", "st");
  return {
    add: (deploymentName, variables, environmentName = "") =>
      secrets.resolve({ deploymentName, environmentName, objectCreationType: creation.overwrite }, () => variables).id,
    environmentOf: (ids, sources = []) =>
      Object.assign(
        {},
        ...ids.map((id) => secrets.get(id)),
        ...sources.map(({ env, secretId = "" }) => env?.contents ?? secrets.get(secretId)),
      ),
    methods: {
      secretGetOrCreate(request: SecretRequest) {
        const { id, name } = secrets.resolve(request, () => ({ ...request.envDict }));
        const missing = request.requiredKeys.filter((key) => !Object.hasOwn(secrets.get(id), key));
        if (missing.length > 0) throw invalid(`Secret is missing key(s): ${missing.join(", ")}`);
        return { secretId: id, metadata: { name } };
      },
      secretDelete({ secretId }: { secretId: string }) {
        secrets.delete(secretId);
      },
    },
  };
}
