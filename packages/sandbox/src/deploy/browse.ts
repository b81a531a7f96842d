import { type RequestOptions, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

export interface BrowseOptions {
  /** PEM; in place of the authorities that Node knows. */
  readonly ca?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const maxHops = 5;
const maxCharacters = 64 * 1024;

/** The page at an address, as a browser sees it: follows the way in and keeps the cookies it is given. */
export async function browse(url: string, options: BrowseOptions = {}): Promise<string> {
  const cookies: string[] = [];
  let at = new URL(url);
  for (let hop = 0; hop < maxHops; hop++) {
    const answer = await get(at, cookies, options);
    if (answer.location === undefined) return answer.text;
    cookies.push(...answer.cookies);
    at = new URL(answer.location, at);
  }
  throw new Error(`more than ${maxHops} redirects`);
}

async function get(at: URL, cookies: readonly string[], { ca, signal }: BrowseOptions) {
  const headers = cookies.length === 0 ? {} : { cookie: cookies.join("; ") };
  const options: RequestOptions & { ca?: string } = {
    headers,
    agent: false,
    ...(signal && { signal }),
    ...(ca && { ca }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<{ location?: string; cookies: string[]; text: string }>();
  const request = at.protocol === "https:" ? requestHttps : requestHttp;
  request(at, options, (answer) => {
    let text = "";
    answer.setEncoding("utf8");
    answer.on("data", (part: string) => {
      text = (text + part).slice(0, maxCharacters);
    });
    answer.on("error", reject);
    answer.on("end", () => {
      const { location, "set-cookie": set = [] } = answer.headers;
      const kept = set.map((cookie) => cookie.split(";")[0] ?? "");
      resolve({ text, cookies: kept, ...(location !== undefined && { location }) });
    });
  })
    .on("error", reject)
    .end();
  return await promise;
}
