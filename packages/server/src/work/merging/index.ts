export { createRepositories } from "../repository/repositories.ts";
export { createMergeWork } from "./merging.ts";
