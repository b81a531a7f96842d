export { createRepositories } from "../repositories.ts";
export { createMerging, isMerging } from "./merging.ts";
