import { randomUUID } from "node:crypto";
import { HttpError } from "../http.js";

const maxRooms = 1000;
const maxItems = 300;

/** A room is its name: whoever opens the same name gets the same list. Every change answers the room as it is then. */
export function roomRoutes({ storage }) {
  const roomOf = ({ room }) => storage.get(room) ?? notFound("There is no such room.");
  const itemOf = (room, { item }) => room.items.find(({ id }) => id === item) ?? notFound("The item is gone.");
  const save = async (room, items) => {
    const changed = { ...room, items, changedAt: Date.now() };
    await storage.save(changed);
    return changed;
  };

  return [
    {
      method: "GET",
      path: "/api/rooms",
      handle: () => [200, storage.all().sort((a, b) => b.changedAt - a.changedAt)],
    },
    {
      method: "POST",
      path: "/api/rooms",
      async handle({ body }) {
        const name = textIn(body, "name", 60);
        const id = idOf(name);
        const known = storage.get(id);
        if (known) return [200, known];
        if (storage.all().length >= maxRooms) throw new HttpError(409, "There are too many rooms.");
        return [201, await save({ id, name }, [])];
      },
    },
    { method: "GET", path: "/api/rooms/:room", handle: ({ params }) => [200, roomOf(params)] },
    {
      method: "POST",
      path: "/api/rooms/:room/items",
      async handle({ params, body }) {
        const room = roomOf(params);
        if (room.items.length >= maxItems) throw new HttpError(409, "The list is full.");
        const amount = body.amount ? textIn(body, "amount", 20) : "";
        const item = { id: randomUUID(), name: textIn(body, "name", 120), amount, done: false };
        return [201, await save(room, [...room.items, item])];
      },
    },
    {
      method: "PATCH",
      path: "/api/rooms/:room/items/:item",
      async handle({ params, body }) {
        const room = roomOf(params);
        const item = itemOf(room, params);
        if (typeof body.done !== "boolean") throw new HttpError(400, "done is true or false.");
        const items = room.items.map((other) => (other === item ? { ...item, done: body.done } : other));
        return [200, await save(room, items)];
      },
    },
    {
      method: "DELETE",
      path: "/api/rooms/:room/items/:item",
      async handle({ params }) {
        const room = roomOf(params);
        const item = itemOf(room, params);
        const items = room.items.filter((other) => other !== item);
        return [200, await save(room, items)];
      },
    },
  ];
}

/** For addresses: letters and digits without accents, and hyphens. */
function idOf(name) {
  const id = name
    .toLowerCase()
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  if (id === "") throw new HttpError(400, "A room's name needs a letter or a digit.");
  return id;
}

function textIn(body, field, maxCharacters) {
  const text = typeof body[field] === "string" ? body[field].trim() : "";
  if (text === "") throw new HttpError(400, `The ${field} is missing.`);
  if (text.length > maxCharacters) throw new HttpError(400, `The ${field} has more than ${maxCharacters} characters.`);
  return text;
}

function notFound(message) {
  throw new HttpError(404, message);
}
