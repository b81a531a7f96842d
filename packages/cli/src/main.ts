import { enableCompileCache } from "node:module";
import process from "node:process";
import { compileCacheDirectory, processEnvironment, startDirectory } from "./environment.ts";

const environment = processEnvironment();
enableCompileCache(compileCacheDirectory(environment));
process.chdir(startDirectory(environment) ?? ".");

const [{ runProgram }, { processIo }] = await Promise.all([import("./program.ts"), import("./io.ts")]);
process.exitCode = await runProgram(process.argv.slice(2), processIo(environment));
