import { takeLock } from "./lock.ts";

/** `node lock-fixture.ts <path>`: says whether it got the lock, and holds it until it is killed. */
const [, , path = ""] = process.argv;
const lock = await takeLock(path).catch((error: Error) => error);
process.stdout.write(lock instanceof Error ? "failed\n" : lock === undefined ? "held\n" : "taken\n");
if (lock !== undefined && !(lock instanceof Error)) setInterval(() => lock, 1 << 30);
