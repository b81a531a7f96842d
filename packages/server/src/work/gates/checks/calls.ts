import { type Call, type CheckOf, SlipwayError, type Surface, type SurfaceRoute, withValues } from "@slipway/contract";
import { cut } from "../findings.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { isSame, isScalar, valuesAt, withFields } from "./fields.ts";
import { type Outcome, toldInOrder } from "./outcome.ts";

const maxBodyCharacters = 1500;

/** Calls the app's routes in order, up to the first wrong answer. */
export async function makeCalls(
  { routes }: Surface,
  { calls }: CheckOf<"calls">,
  ask: (exchange: Exchange) => Promise<Answer>,
): Promise<Outcome> {
  const told: string[] = [];
  const kept = new Map<string, string>();
  for (const call of calls) {
    const route = routes.find(({ id }) => id === call.route);
    if (route === undefined) throw new SlipwayError("internal", `a check calls ${call.route}, which is no route`);
    const answer = await ask(exchangeFor(route, call, kept));
    const wrong = wrongWith(call, answer) ?? keep(call, answer, kept);
    const named = `${route.method} ${route.path}`;
    told.push(wrong === undefined ? `${named} was ${call.expect.answer}, as it has to be.` : `${named}: ${wrong}`);
    if (wrong !== undefined) return { ok: false, text: toldInOrder(told), step: told.length - 1 };
  }
  return { ok: true, text: toldInOrder(told) };
}

function exchangeFor({ method, path }: SurfaceRoute, call: Call, kept: ReadonlyMap<string, string>): Exchange {
  const values = call.with.map((given) => {
    const value = "kept" in given ? (kept.get(given.kept) ?? "") : given.value;
    return [given.variable, encodeURIComponent(value)] as const;
  });
  const filled = withValues(path, new Map(values));
  const isFinal = (status: number) => status < 300 || status > 399;
  if (method !== "GET" && method !== "DELETE") {
    return { method, path: filled, body: JSON.stringify(withFields(call.send)), isFinal };
  }
  const query = new URLSearchParams(call.send.map(({ field, value }): [string, string] => [field, String(value)]));
  return { method, path: query.size === 0 ? filled : `${filled}?${query}`, body: null, isFinal };
}

/** Names routes and fields, and no value of the check. */
function wrongWith({ expect }: Call, answer: Answer): string | undefined {
  if ("failure" in answer) return `the app ${answer.failure}.`;
  const { status, body } = answer;
  const began = `The answer began with:\n${cut(body, maxBodyCharacters)}`;
  const wanted = expect.answer === "accepted" ? status >= 200 && status < 300 : status >= 400 && status < 500;
  if (!wanted) {
    const due = expect.answer === "accepted" ? "accepted (200 to 299)" : "refused (400 to 499)";
    return `it was answered with ${status} and has to be ${due}. ${began}`;
  }
  const json = parsed(body);
  for (const { field, value } of expect.has) {
    const values = valuesAt(json, field);
    if (values.some((one) => isSame(one, value))) continue;
    const what =
      values.length === 0 ? `has no ${field}` : `has another ${field} than what was sent or done before makes it`;
    return `it was answered with ${status}, but the answer ${what}. ${began}`;
  }
  const left = expect.lacks.find(({ field, value }) => valuesAt(json, field).some((one) => isSame(one, value)));
  return left === undefined ? undefined : `the answer's ${left.field} has what must not be there. ${began}`;
}

function keep({ keep: wanted }: Call, answer: Answer, kept: Map<string, string>): string | undefined {
  if ("failure" in answer) return undefined;
  for (const { field, as } of wanted) {
    const [value] = valuesAt(parsed(answer.body), field);
    if (!isScalar(value)) {
      return `the answer has no ${field}. It began with:\n${cut(answer.body, maxBodyCharacters)}`;
    }
    kept.set(as, String(value));
  }
  return undefined;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
