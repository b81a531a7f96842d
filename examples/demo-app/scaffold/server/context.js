import { readSettings } from "./settings.js";

/** What all routes work with. Each part of the server puts itself in here. */
export async function openContext(environment) {
  const settings = readSettings(environment);
  const context = { settings };
  return context;
}
