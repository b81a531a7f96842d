export { createRepositories } from "../repository/repositories.ts";
export { createMerging } from "./merging.ts";
