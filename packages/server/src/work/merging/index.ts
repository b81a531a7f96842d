export { createRepositories } from "../repository/repositories.ts";
export { createMerging, isMerging } from "./merging.ts";
