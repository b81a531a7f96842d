export type Endpoint =
  | { readonly kind: "here"; readonly path: string }
  | { readonly kind: "sandbox"; readonly id: string; readonly path: string }
  | { readonly kind: "standard" };

/** `-`, `<id>:<path>`, or a path here; `./a:b` is a path here. An empty path inside means the workdir. */
export function parseEndpoint(text: string): Endpoint {
  if (text === "-") return { kind: "standard" };
  const colon = text.indexOf(":");
  const id = text.slice(0, Math.max(colon, 0));
  if (id === "" || id.includes("/") || id === "." || id === "..") return { kind: "here", path: text };
  return { kind: "sandbox", id, path: text.slice(colon + 1) || "." };
}

/** `dir/.`: the content of a directory, without the directory itself. */
export function isContentOnly(path: string): boolean {
  return path === "." || path === "/" || path.endsWith("/.") || path === ".." || path.endsWith("/..");
}
