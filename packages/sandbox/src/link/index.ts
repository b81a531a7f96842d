export { buildLink } from "./build.ts";
export { previewToken } from "./handshake.ts";
export { type Link, type LinkOptions, openLink } from "./link.ts";
