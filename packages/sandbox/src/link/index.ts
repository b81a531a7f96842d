export { buildLink } from "./build.ts";
export { keyBytes, previewToken } from "./handshake.ts";
export { type Link, openLink } from "./link.ts";
