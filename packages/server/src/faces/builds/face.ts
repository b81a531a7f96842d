import { type BuildId, type BuildRoutes, type Route, routes, SlipwayError } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import type { Answer, Face, Given } from "../face.ts";
import { may, type Principal } from "../principal.ts";

/** What faces ask of builds. */
export type BuildFace = Face<BuildRoutes>;

/** The same behind `admitting`: what is about one build is not told who asks. */
export type BuildMethods = {
  [Name in keyof BuildRoutes]: BuildRoutes[Name]["path"] extends `${string}:build${string}`
    ? (...given: Given<BuildRoutes[Name]>) => Promise<Answer<BuildRoutes[Name]>>
    : BuildFace[Name];
};

/** Lets in who may. A build of another account is answered as one that is not there. */
export function admitting({ builds }: Pick<Store, "builds">, methods: BuildMethods): BuildFace {
  const guarded = Object.entries<Route>(routes.builds).map(([name, { path, scope }]) => {
    const method = methods[name as keyof BuildMethods] as (...given: unknown[]) => Promise<unknown>;
    if (!path.includes(":build")) return [name, method];
    const admitted = async (by: Principal, build: BuildId, ...given: unknown[]) => {
      if (may(by, scope, await builds.get(build))) return await method(build, ...given);
      throw new SlipwayError("build_not_found", `there is no build ${build}`);
    };
    return [name, admitted];
  });
  return Object.fromEntries(guarded) as BuildFace;
}
