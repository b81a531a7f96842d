export { readBody } from "./body.ts";
export { lockHolder, takeLock } from "./lock.ts";
