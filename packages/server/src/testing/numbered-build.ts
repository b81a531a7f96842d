import { type BuildId, buildIdSchema } from "@slipway/contract";

/** The same id each time: what a simulated world does with a build follows from it. */
export function numberedBuild(number: number, series = 0): BuildId {
  return buildIdSchema.parse(`bld_${`${series}`.padStart(10, "0")}${`${number}`.padStart(10, "0")}`);
}
