import {
  controlWords,
  type Intent,
  plainName,
  type Surface,
  type SurfaceMessage,
  type SurfaceRoute,
  variablesOf,
} from "@slipway/contract";
import type { Finding } from "../ask/ask.ts";

/** Returns why agents could not keep the names of a surface, or checks not rely on them. */
export function checkSurface(surface: Surface, { workflows, ...words }: Omit<Intent, "request">): readonly Finding[] {
  const { pages, controls, messages, routes } = surface;
  const pageIds = new Set(pages.map(({ id }) => id));
  const problems: [rule: string, messages: readonly string[]][] = [
    [
      "ids of the surface differ",
      repeated([...pages, ...controls, ...messages, ...routes].map(({ id }) => id)).map(
        (id) => `the surface uses the id ${id} more than once`,
      ),
    ],
    [
      "pages differ",
      repeated(pages.map(({ path }) => plainName(path))).map((path) => `two pages have the path ${path}`),
    ],
    [
      "a visitor can begin",
      pages.some(({ path }) => variablesOf(path).length === 0) ? [] : ["no page has a path without variables"],
    ],
    [
      "controls are on pages",
      controls
        .filter(({ page }) => page !== null && !pageIds.has(page))
        .map(({ id, page }) => `the control ${id} is on the page ${page}, which the surface does not have`),
    ],
    ["controls can be told apart", alike(surface)],
    [
      "messages can be told apart",
      repeated(messages.map(({ text }) => plainName(text))).map((text) => `two messages are ${JSON.stringify(text)}`),
    ],
    ["messages have words", messages.flatMap(messageProblems)],
    [
      "routes differ",
      repeated(routes.map(({ method, path }) => `${method} ${plainName(path)}`)).map(
        (route) => `two routes are ${route}`,
      ),
    ],
    ["routes can be called", routes.flatMap(routeProblems)],
    ["workflows can be walked", workflows.flatMap(({ id, walk }) => walkProblems(surface, id, walk))],
    ["names are written as the rest", scriptProblems(surface, JSON.stringify({ ...words, workflows, surface: null }))],
  ];
  return problems.flatMap(([rule, found]) => found.map((message) => ({ rule, message })));
}

/** Two controls of one role and name, wherever one visitor sees both. */
function alike({ controls }: Surface): string[] {
  return controls.flatMap((one, index) => {
    const twin = controls
      .slice(0, index)
      .find(
        (other) =>
          other.role === one.role &&
          plainName(other.name) === plainName(one.name) &&
          (other.page === one.page || other.page === null || one.page === null),
      );
    return twin === undefined ? [] : [`${twin.id} and ${one.id} are both the ${controlWords(one)} of one page`];
  });
}

function messageProblems({ id, text, one }: SurfaceMessage): string[] {
  const has = (form: string) => /[\p{L}\p{N}]/u.test(form.replace(/\{[^}]*\}/g, ""));
  const variables = variablesOf(text);
  const problems = has(text) && (one === null || has(one)) ? [] : [`the message ${id} has no words of its own`];
  if (one === null) return problems;
  if (variables.length === 0) problems.push(`the message ${id} has a form for one, but no variable that counts`);
  const unknown = variablesOf(one).filter((variable) => !variables.includes(variable));
  return [...problems, ...unknown.map((variable) => `{${variable}} of the message ${id} is only in its form for one`)];
}

/** Why nobody can send what the route says, or read its answer. */
function routeProblems({ id, method, request, response }: SurfaceRoute): string[] {
  const inQuery = method === "GET" || method === "DELETE";
  const deep = request.filter(({ field }) => inQuery && /[.[]/.test(field)).map(({ field }) => field);
  return [
    ...deep.map((field) => `${id} is a ${method}: its request goes into the query, which has no ${field}`),
    ...[request, response]
      .flatMap((fields) => shapeProblems(fields.map(({ field }) => field)))
      .map((one) => `${id}: ${one}`),
  ];
}

/** A value is at the end of a field only, and the whole is a list or an object. */
function shapeProblems(fields: readonly string[]): string[] {
  const lists = fields.filter((field) => field.startsWith("[]"));
  const mixed = lists.length > 0 && lists.length < fields.length;
  const inside = fields.filter((field) =>
    fields.some(
      (other) => other !== field && /^(\[\])?\.|^\[\]$/.test(other.slice(field.length)) && other.startsWith(field),
    ),
  );
  return [
    ...repeated(fields).map((field) => `the field ${field} is there more than once`),
    ...inside.map((field) => `${field} is a value and has fields of its own`),
    ...(mixed ? [`${lists[0]} says that it is a list, and the rest that it is an object`] : []),
  ];
}

/** A walk begins on a page that has an address, and uses what is on the page where it is. */
function walkProblems(
  { pages, controls, messages }: Surface,
  workflow: string,
  walk: readonly string[] = [],
): string[] {
  const byId = new Map(pages.map((page) => [page.id, page]));
  const problems: string[] = [];
  let at = byId.get(walk[0] ?? "");
  if (at === undefined || variablesOf(at.path).length > 0) {
    problems.push(`the walk of ${workflow} has to begin with a page whose path has no variables`);
  }
  for (const id of walk) {
    const page = byId.get(id);
    const control = controls.find((one) => one.id === id);
    if (page !== undefined) at = page;
    else if (control === undefined) {
      if (!messages.some((message) => message.id === id))
        problems.push(`the walk of ${workflow} has ${id}, which the surface does not have`);
    } else if (control.page !== null && control.page !== at?.id) {
      problems.push(
        `the walk of ${workflow} uses ${id} of the page ${control.page} while it is on ${at?.id ?? "none"}`,
      );
    }
  }
  return problems;
}

const scripts = [
  "Latin",
  "Cyrillic",
  "Greek",
  "Arabic",
  "Hebrew",
  "Han",
  "Hiragana",
  "Katakana",
  "Hangul",
  "Thai",
  "Devanagari",
];
const inScript = scripts.map((script) => [script, new RegExp(`\\p{Script=${script}}`, "u")] as const);
const look = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}]+/gu;

/** Letters that look alike in two scripts, and names that the intent's other words do not prepare for. */
function scriptProblems({ pages, controls, messages }: Surface, words: string): string[] {
  const names = [
    ...pages.map(({ id, path }) => ({ id, name: path })),
    ...controls,
    ...messages.flatMap(({ id, text, one }) => [text, ...(one === null ? [] : [one])].map((name) => ({ id, name }))),
  ];
  return names.flatMap(({ id, name }) => {
    const own = name.replace(/\{[^}]*\}/g, "");
    const mixed = own.match(look)?.find((word) => scriptsOf(word).length > 1);
    if (mixed !== undefined)
      return [`the name of ${id} mixes ${scriptsOf(mixed).join(" and ")} letters in one word: ${mixed}`];
    const strange = scriptsOf(own).filter((script) => script !== "Latin" && !scriptsOf(words).includes(script));
    return strange.map(
      (script) => `the name of ${id} is in ${script} letters, which nothing else of the intent is written in`,
    );
  });
}

function scriptsOf(text: string): string[] {
  return inScript.filter(([, pattern]) => pattern.test(text)).map(([script]) => script);
}

export function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) < index))];
}
