export { lockHolder, takeLock } from "./lock.ts";
