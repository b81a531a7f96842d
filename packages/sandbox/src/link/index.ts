export { buildLink } from "./build.ts";
export { keyBytes, previewToken } from "./handshake.ts";
export { type Link, type LinkOptions, openLink } from "./link.ts";
