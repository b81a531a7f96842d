import { readFileSync } from "node:fs";
import { createServer } from "node:http";

class Room {
  static all = [];

  constructor(name) {
    Object.assign(this, { id: String(Room.all.length + 100), name, items: [], revision: 0, numbers: 0 });
    Room.all.push(this);
    this.seen = new Map();
  }

  static named(name) {
    return Room.all.find((room) => room.name.toLowerCase() === name.toLowerCase()) ?? new Room(name);
  }

  visit(visitor) {
    if (visitor) this.seen.set(visitor, Date.now());
    for (const [other, time] of this.seen) if (time < Date.now() - 1600) this.seen.delete(other);
    return this.seen.size;
  }

  add(name, amount) {
    this.numbers += 1;
    this.items.push({ id: this.numbers, name, amount, done: false });
    this.revision += 1;
  }

  change(id, { done, removed }) {
    const item = this.items.find((one) => String(one.id) === id);
    if (!item) return false;
    if (removed) this.items = this.items.filter((one) => one !== item);
    else item.done = Boolean(done);
    this.revision += 1;
    return true;
  }

  toJSON() {
    return { id: this.id, name: this.name, items: this.items, revision: this.revision };
  }
}

const words = (value) => (typeof value === "string" ? value.split(/\s+/).filter(Boolean).join(" ") : "");
const fail = (error, status = 400) => [status, { error }];

function api(method, [id, items, itemId], query, body) {
  const name = words(body.name);
  if (!id && method === "GET") return [200, Room.all];
  if (!id && method === "POST") return name ? [200, Room.named(name)] : fail("The room still needs a name.");
  const room = Room.all.find((one) => one.id === id);
  if (!room) return fail("There is no room with this number.", 404);
  if (!items && method === "GET") return [200, { ...room.toJSON(), people: room.visit(query.get("visitor")) }];
  if (items === "goodbye") return [200, { left: room.seen.delete(query.get("visitor")) }];
  if (items !== "items" || method !== "POST") return fail("This does not exist.", 404);
  if (itemId) return room.change(itemId, body) ? [200, room] : fail("This item is not there any more.", 404);
  if (!name) return fail("The item still needs a name.");
  room.add(name, words(body.amount));
  return [201, room];
}

const types = { html: "text/html; charset=utf-8", js: "text/javascript", json: "application/json" };

createServer(async (req, res) => {
  const reply = (status, type, body) => {
    res.writeHead(status, { "Content-Type": types[type], "Cache-Control": "no-store" }).end(body);
  };
  try {
    const url = new URL(`http://x${req.url}`);
    const [area, ...path] = url.pathname.slice(1).split("/");
    if (area === "api" && path[0] === "rooms") {
      const chunks = await Array.fromAsync(req);
      const body = chunks.length ? (JSON.parse(Buffer.concat(chunks).toString()) ?? {}) : {};
      const [status, value] = api(req.method, path.slice(1), url.searchParams, body);
      return reply(status, "json", JSON.stringify(value));
    }
    const [name, type] = area === "app.js" ? ["app.js", "js"] : ["index.html", "html"];
    reply(["", "room", "app.js"].includes(area) ? 200 : 404, type, readFileSync(new URL(name, import.meta.url)));
  } catch {
    reply(400, "json", JSON.stringify({ error: "This makes no sense." }));
  }
}).listen(process.env.PORT || 3000, "127.0.0.1");
