import { parseManifest } from "@slipway/sandbox";

/** One command that is known to follow the files it serves, whatever variables stand before it. */
const following = new RegExp(
  `^(?:\\w+=\\S+ +)*(?:npx +)?(?:${[
    "vite(?! +(?:build|preview))",
    "(?:next|astro|nuxt|nuxi|react-router) +dev",
    "(?:webpack|ng) +serve",
    "nodemon",
    "tsx +watch",
    "node +--watch",
  ].join("|")})(?= |$)[^&|;]*$`,
);

/** Whether the project's dev server shows changed files by itself. Its manifest is null where it has none. */
export function followsFiles(manifest: string | null): boolean {
  const scripts = (manifest === null ? null : parseManifest(manifest))?.scripts;
  const script = ["dev", "start", "serve"].map((name) => scripts?.get(name)).find((text) => text !== undefined);
  // Without a script it is one that serves files as they are, or a framework's own.
  return script === undefined || following.test(script.trim());
}
