import type { HttpClient } from "./exchange.ts";
import { cut } from "./findings.ts";
import type { CheckOf, Outcome } from "./outcome.ts";

type HttpExchange = CheckOf<"http">["exchanges"][number];

const maxBodyCharacters = 1500;

/** The exchanges of a check, up to the first that does not answer as it has to. */
export async function checkByHttp(
  { exchanges }: CheckOf<"http">,
  client: HttpClient,
  signal: AbortSignal,
): Promise<Outcome> {
  const told: string[] = [];
  for (const exchange of exchanges) {
    const { ok, text } = await exchangeOnce(exchange, client, signal);
    told.push(text);
    if (!ok) return { ok, text: toldInOrder(told) };
  }
  return { ok: true, text: toldInOrder(told) };
}

async function exchangeOnce(
  { method, path, body, expect }: HttpExchange,
  client: HttpClient,
  signal: AbortSignal,
): Promise<Outcome> {
  const wanted = expect.status;
  const answer = await client.exchange({ method, path, body, wanted }, signal);
  const did = `${method} ${path}`;
  if ("failure" in answer) return { ok: false, text: `${did}: the app ${answer.failure}.` };
  const seen = `The answer began with:\n${cut(answer.body, maxBodyCharacters)}`;
  if (answer.status !== wanted) {
    return { ok: false, text: `${did} was answered with ${answer.status}; ${wanted} was expected. ${seen}` };
  }
  const lacks = expect.bodyContains.filter((part) => !answer.body.includes(part)).length;
  if (lacks > 0) return { ok: false, text: `${did} was answered with ${wanted}, but not with all it has to. ${seen}` };
  if (expect.bodyLacks.some((part) => answer.body.includes(part))) {
    return {
      ok: false,
      text: `${did} was answered with ${wanted}, and with something that must not be there. ${seen}`,
    };
  }
  return { ok: true, text: `${did} was answered with ${wanted}, as it has to be.` };
}

function toldInOrder(told: readonly string[]): string {
  return told.length === 1 ? told.join("") : told.map((text, index) => `${index + 1}. ${text}`).join("\n");
}
