import { enableCompileCache } from "node:module";
import process from "node:process";
import { compileCacheDirectory, processEnvironment, startDirectory } from "./terminal/environment.ts";

const environment = processEnvironment();
const umask = process.umask(0o077);
enableCompileCache(compileCacheDirectory(environment));
process.umask(umask);
process.chdir(startDirectory(environment) ?? ".");

const [{ runProgram }, { processIo }] = await Promise.all([import("./program.ts"), import("./terminal/io.ts")]);
process.exitCode = await runProgram(process.argv.slice(2), processIo(environment));
