import { enableCompileCache } from "node:module";
import process from "node:process";
import { compileCacheDirectory, processEnvironment } from "./environment.ts";

const environment = processEnvironment();
enableCompileCache(compileCacheDirectory(environment));

const [{ runProgram }, { processIo }] = await Promise.all([import("./program.ts"), import("./io.ts")]);
process.exitCode = await runProgram(process.argv.slice(2), processIo(environment));
