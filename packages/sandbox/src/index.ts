export { readLocal, type WalkOptions, walkTree } from "./host-tree.ts";
export * from "./input.ts";
export * from "./project.ts";
export { type Manifest, parseManifest, planDevServer, planInstall, planTest } from "./project-plan.ts";
export * from "./provider.ts";
export { directoryEntries, putDirectory } from "./put-directory.ts";
export * from "./restricted.ts";
export * from "./run.ts";
