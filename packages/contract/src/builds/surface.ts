import { z } from "zod";
import { slugSchema } from "../base/ids.ts";
import { printable } from "../base/printable.ts";

/**
 * The names that an app keeps, known to the user, to agents and to checks alike: pages, controls, messages and API
 * routes. A name may have variables, such as `{count}`.
 */
export const surfaceLimits = { pages: 40, controls: 150, messages: 100, routes: 60, fields: 40 } as const;

const plain = z.string().overwrite(printable).trim().min(1);
const name = plain.max(200);

/** On the app's own server: there is no way to name another. */
const path = z
  .string()
  .max(300)
  .regex(/^\/(?![/\\])[^\s\\?#]*$/, "expected a path such as /rooms/{room}");

const page = z.strictObject({ id: slugSchema, path, purpose: plain.max(300) });

export const controlRoles = [
  "button",
  "link",
  "textbox",
  "checkbox",
  "radio",
  "combobox",
  "tab",
  "heading",
  "image",
] as const;
export type ControlRole = (typeof controlRoles)[number];

const control = z.strictObject({
  id: slugSchema,
  /** Null: it is on every page. */
  page: slugSchema.nullable(),
  role: z.enum(controlRoles),
  /** What assistive technology calls it. */
  name,
});

const message = z.strictObject({
  id: slugSchema,
  text: name,
  /** The form for a count of one, where it differs: "1 item left". */
  one: name.nullable(),
  /** In which state of the app it is seen. */
  when: plain.max(300),
});

/** Where a value is in JSON: `name`, `owner.name`, `items[].name`, `[].name`, `tags[]`. */
const fieldPath = z
  .string()
  .max(120)
  .regex(
    /^(\[\]|[A-Za-z_][\w-]*(\[\])?)(\.[A-Za-z_][\w-]*(\[\])?)*$/,
    "expected a field such as name, items[].name or [].name",
  );

const field = z.strictObject({ field: fieldPath, type: z.enum(["text", "number", "boolean"]) });
const fields = z.array(field).max(surfaceLimits.fields);

export const routeMethods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

const route = z.strictObject({
  id: slugSchema,
  method: z.enum(routeMethods),
  path,
  purpose: plain.max(300),
  /** Sent as JSON; with GET and DELETE, as the query. */
  request: fields,
  /** What an accepted request is answered with, as JSON. */
  response: fields,
});

export const surfaceSchema = z.strictObject({
  pages: z.array(page).min(1).max(surfaceLimits.pages),
  controls: z.array(control).max(surfaceLimits.controls),
  messages: z.array(message).max(surfaceLimits.messages),
  routes: z.array(route).max(surfaceLimits.routes),
});

export type Surface = Readonly<z.output<typeof surfaceSchema>>;
export type SurfacePage = Surface["pages"][number];
export type SurfaceControl = Surface["controls"][number];
export type SurfaceMessage = Surface["messages"][number];
export type SurfaceRoute = Surface["routes"][number];

const variablePattern = /\{([a-z][a-zA-Z0-9]*)\}/g;
export const variableNameSchema = z.string().regex(/^[a-z][a-zA-Z0-9]*$/, "expected a variable such as count");

/** A name in its parts, in order: what stays, and its variables. */
export type NamePart = { readonly text: string } | { readonly variable: string };

export function partsOf(name: string): NamePart[] {
  const parts: NamePart[] = [];
  let end = 0;
  for (const match of name.matchAll(variablePattern)) {
    if (match.index > end) parts.push({ text: name.slice(end, match.index) });
    parts.push({ variable: match[1] ?? "" });
    end = match.index + match[0].length;
  }
  if (end < name.length) parts.push({ text: name.slice(end) });
  return parts;
}

/** The variables of a name or a path, each once. */
export function variablesOf(name: string): string[] {
  return [...new Set([...name.matchAll(variablePattern)].map(([, variable = ""]) => variable))];
}

/** Variables without a value stay as they are. */
export function withValues(name: string, values: ReadonlyMap<string, string>): string {
  return name.replace(variablePattern, (whole, variable: string) => values.get(variable) ?? whole);
}

/** A name as it is compared: without case, doubled spaces and a mark at its end, and with nothing for its variables. */
export function plainName(name: string): string {
  const text = name.replace(variablePattern, "{}").toLowerCase().replace(/\s+/g, " ").trim();
  return text.replace(/[.!?…:]+$/, "");
}

/** How people are told of a control. */
export function controlWords({ role, name }: Pick<SurfaceControl, "role" | "name">): string {
  return `${role} ${JSON.stringify(name)}`;
}

/** A surface in lines for people and models, under headings. */
export function surfaceLines({ pages, controls, messages, routes }: Surface): readonly (readonly [string, string[]])[] {
  const named = new Map(pages.map(({ id, path }) => [id, path]));
  const shape = (fields: SurfaceRoute["request"]) =>
    fields.length === 0 ? "nothing" : fields.map(({ field, type }) => `${field} (${type})`).join(", ");
  const sections = [
    ["Pages", pages.map(({ path, purpose }) => `${path}: ${purpose}`)],
    [
      "Controls",
      controls.map((one) => `${controlWords(one)} on ${one.page === null ? "every page" : named.get(one.page)}`),
    ],
    [
      "Messages",
      messages.map(({ text, one, when }) => {
        const forms = [text, ...(one === null ? [] : [one])].map((form) => JSON.stringify(form));
        return `${forms.join(", for one ")}: ${when}`;
      }),
    ],
    [
      "Routes",
      routes.map(
        ({ method, path, purpose, request, response }) =>
          `${method} ${path}: ${purpose}. Request: ${shape(request)}. Response: ${shape(response)}`,
      ),
    ],
  ] as const;
  return sections.filter(([, lines]) => lines.length > 0);
}
