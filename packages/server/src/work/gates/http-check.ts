import type { Answer, Exchange } from "./exchange.ts";
import { cut } from "./findings.ts";
import type { CheckOf, Outcome } from "./outcome.ts";

const maxBodyCharacters = 1500;

/** Makes the exchanges of a check with the app, up to the first wrong answer. */
export async function checkByHttp(
  { exchanges }: CheckOf<"http">,
  ask: (exchange: Exchange) => Promise<Answer>,
): Promise<Outcome> {
  const told: string[] = [];
  for (const { method, path, body, expect } of exchanges) {
    const { ok, text } = judge(expect, await ask({ method, path, body, wanted: expect.status }));
    told.push(`${method} ${path}${text}`);
    if (!ok) return { ok, text: toldInOrder(told) };
  }
  return { ok: true, text: toldInOrder(told) };
}

function judge({ status, bodyContains, bodyLacks }: Expected, answer: Answer): Outcome {
  if ("failure" in answer) return { ok: false, text: `: the app ${answer.failure}.` };
  const seen = `The answer began with:\n${cut(answer.body, maxBodyCharacters)}`;
  const wrong = (how: string) => ({ ok: false, text: ` was answered with ${how} ${seen}` });
  if (answer.status !== status) return wrong(`${answer.status}; ${status} was expected.`);
  if (!bodyContains.every((part) => answer.body.includes(part)))
    return wrong(`${status}, but the answer lacks expected content.`);
  if (bodyLacks.some((part) => answer.body.includes(part)))
    return wrong(`${status}, but the answer has content that it must not have.`);
  return { ok: true, text: ` was answered with ${status}, as expected.` };
}

type Expected = CheckOf<"http">["exchanges"][number]["expect"];

function toldInOrder(told: readonly string[]): string {
  return told.length === 1 ? told.join("") : told.map((text, index) => `${index + 1}. ${text}`).join("\n");
}
