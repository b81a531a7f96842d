import { parseManifest } from "@slipway/sandbox";

/** A single command, after any variables, that is known to watch the files it serves. */
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

/** Whether the project's dev server picks up changed files by itself. `manifest` is null if the project has none. */
export function followsFiles(manifest: string | null): boolean {
  const scripts = (manifest === null ? null : parseManifest(manifest))?.scripts;
  const script = ["dev", "start", "serve"].map((name) => scripts?.get(name)).find((text) => text !== undefined);
  // Without a script, the dev server serves plain files or is the framework's own.
  return script === undefined || following.test(script.trim());
}
