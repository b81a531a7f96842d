import { Transform } from "node:stream";
import type { HeaderList } from "../relay/headers.ts";
import { prefixOf } from "./cookies.ts";

/**
 * Gives scripts of the app's pages a `document.cookie` that has the app's cookies, as the app calls them, and sets them so:
 * without it, what scripts and the app tell each other by cookies would not arrive. It holds nobody off: the entrance does.
 * Undefined: the answer is no page. A page whose own policy forbids scripts like it goes without.
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

/** Behind the first tag that opens a head, where it is the first script. As Latin-1, bytes stay what they are. */
function withScript(chunk: Buffer, token: string): Buffer {
  const text = chunk.toString("latin1");
  const head = /<head(\s[^>]*)?>/i.exec(text);
  if (head === null) return chunk;
  const at = head.index + head[0].length;
  const script = `<script>(${useCookies})("${prefixOf(token)}")</script>`;
  return Buffer.from(text.slice(0, at) + script + text.slice(at), "latin1");
}

/** Runs in the page. A framework that takes over the whole document finds nothing of it. */
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
