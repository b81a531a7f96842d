export { createRepositories } from "../repository/repositories.ts";
export { createMergeWork, isMerging } from "./merging.ts";
