export type Endpoint =
  | { readonly kind: "here"; readonly path: string }
  | { readonly kind: "sandbox"; readonly id: string; readonly path: string }
  | { readonly kind: "standard" };

/** `-`, `<id>:<path>` or a local path such as `./a:b`. An empty path in a sandbox means its workdir. */
export function parseEndpoint(text: string): Endpoint {
  if (text === "-") return { kind: "standard" };
  const colon = text.indexOf(":");
  const id = text.slice(0, Math.max(colon, 0));
  if (id === "" || id.includes("/") || id === "." || id === "..") return { kind: "here", path: text };
  return { kind: "sandbox", id, path: text.slice(colon + 1) || "." };
}

/** `dir/.`: the contents of a directory, without the directory itself. */
export function isContentOnly(path: string): boolean {
  return path === "." || path === "/" || path.endsWith("/.") || path === ".." || path.endsWith("/..");
}
