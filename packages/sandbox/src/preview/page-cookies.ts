import { Transform } from "node:stream";
import type { HeaderList } from "../relay/headers.ts";
import { prefixOf } from "./cookies.ts";

/**
 * Gives scripts of the app's pages a `document.cookie` with the app's own names, so that scripts and the app can share
 * cookies. It protects nothing; the entrance does. Undefined when the answer is no page. Has no effect on a page whose
 * policy forbids inline scripts.
 */
export function pageCookies(answer: HeaderList, token: string): Transform | undefined {
  const isPage = answer.some(([name, value]) => /^content-type$/i.test(name) && /^text\/html\b/i.test(value));
  const isEncoded = answer.some(([name]) => /^content-encoding$/i.test(name));
  if (!isPage || isEncoded) return undefined;
  let isFirst = true;
  return new Transform({
    transform(chunk: Buffer, _, done) {
      done(null, isFirst ? withScript(chunk, token) : chunk);
      isFirst = false;
    },
  });
}

/** After the first head tag, as the first script. Latin-1 preserves bytes. */
function withScript(chunk: Buffer, token: string): Buffer {
  const text = chunk.toString("latin1");
  const head = /<head(\s[^>]*)?>/i.exec(text);
  if (head === null) return chunk;
  const at = head.index + head[0].length;
  const script = `<script>(${useCookies})("${prefixOf(token)}")</script>`;
  return Buffer.from(text.slice(0, at) + script + text.slice(at), "latin1");
}

/** Runs in the page, and removes itself for frameworks that take over the document. */
const useCookies = `(prefix => {
  const { get, set } = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
  Object.defineProperty(document, "cookie", {
    configurable: true,
    get: () => get.call(document).split("; ").filter(cookie => cookie.startsWith(prefix))
      .map(cookie => cookie.slice(prefix.length)).join("; "),
    set: cookie => set.call(document, prefix + String(cookie).trimStart()),
  });
  document.currentScript.remove();
})`;
