import type { z } from "zod";

/** What a schema reads, as state that is never changed in place. */
export type Kept<S extends z.ZodType> = DeepReadonly<z.output<S>>;

type DeepReadonly<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer E)[]
    ? readonly DeepReadonly<E>[]
    : { readonly [K in keyof T]: DeepReadonly<T[K]> };
