import { newModalId } from "../ids.ts";
import { found, notFound, refusal } from "../refuse.ts";
import { creation, defaultEnvironment, type NamedRequest } from "../wire.ts";

/** Objects that have an id, and most of them a name within their environment. */
export interface Named<T> {
  /** Looks one up or makes it, as the request says. */
  resolve(request: NamedRequest, make: () => T): { readonly id: string; readonly name: string };
  get(id: string): T;
  delete(id: string): T;
  ids(): Iterable<string>;
}

export function createNamed<T>(what: string, prefix: "st" | "vo"): Named<T> {
  const values = new Map<string, T>();
  const names = new Map<string, string>();
  const add = (value: T) => {
    const id = newModalId(prefix);
    values.set(id, value);
    return id;
  };
  return {
    resolve({ deploymentName: name, environmentName, objectCreationType: how }, make) {
      if (how === creation.ephemeral || (name === "" && how !== creation.lookUp)) return { id: add(make()), name: "" };
      const key = `${environmentName || defaultEnvironment}/${name}`;
      const known = names.get(key);
      if (known !== undefined && how === creation.failIfExists)
        throw refusal("ALREADY_EXISTS", `${what} '${name}' already exists`);
      if (known !== undefined && how !== creation.overwrite) return { id: known, name };
      if (known === undefined && how === creation.lookUp) throw notFound(`${what} '${name}' not found`);
      const id = known ?? add(make());
      if (known !== undefined) values.set(id, make());
      names.set(key, id);
      return { id, name };
    },
    get: (id) => found(values, id, what),
    delete(id) {
      const value = found(values, id, what);
      values.delete(id);
      for (const [name, named] of names) if (named === id) names.delete(name);
      return value;
    },
    ids: () => values.keys(),
  };
}
