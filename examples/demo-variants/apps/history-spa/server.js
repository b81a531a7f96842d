// One page for all paths, the data in SQLite (part of Node), news by server-sent events.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";

const at = (name) => new URL(name, import.meta.url);
const db = new DatabaseSync(at("shopping.sqlite"));
db.exec(`
  PRAGMA foreign_keys = ON;
  CREATE TABLE IF NOT EXISTS room (id INTEGER PRIMARY KEY, key TEXT UNIQUE, name TEXT);
  CREATE TABLE IF NOT EXISTS item (
    id INTEGER PRIMARY KEY, room INTEGER REFERENCES room, name TEXT, amount TEXT, done INTEGER DEFAULT 0
  );
`);
const sql = {
  rooms: db.prepare("SELECT id, name FROM room ORDER BY name COLLATE NOCASE"),
  room: db.prepare("SELECT id, name FROM room WHERE CAST(id AS TEXT) = ?"),
  open: db.prepare("INSERT INTO room (key, name) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET key = key RETURNING id"),
  items: db.prepare("SELECT id, name, amount, done FROM item WHERE room = ? ORDER BY id"),
  add: db.prepare("INSERT INTO item (room, name, amount) VALUES (?, ?, ?)"),
  check: db.prepare("UPDATE item SET done = ? WHERE room = ? AND CAST(id AS TEXT) = ?"),
  remove: db.prepare("DELETE FROM item WHERE room = ? AND CAST(id AS TEXT) = ?"),
};
const streams = [];

const itemsOf = (room) => sql.items.all(room.id).map((item) => ({ ...item, id: `${item.id}`, done: item.done === 1 }));
const full = (room) => ({ id: `${room.id}`, name: room.name, items: itemsOf(room) });
const find = (id) => {
  const room = sql.room.get(id);
  return room && full(room);
};
const words = (text) => (typeof text === "string" ? text.trim().split(/\s+/).join(" ") : "");
const oops = (status, error) => ({ status, body: { error } });

function publish(id) {
  const open = streams.filter((stream) => stream.id === id);
  const message = `data: ${JSON.stringify({ ...find(id), people: open.length })}\n\n`;
  for (const { res } of open) res.write(message);
}

function split(text) {
  const pattern = /^(?<amount>\d+([.,/]\d+)?( ?(kilos?|kg|g|ml|cl|l|lb|oz|x|packs?|bottles?|bags?))?) (?<name>.+)/i;
  return pattern.exec(text)?.groups ?? { amount: "", name: text };
}

const routes = {
  "GET /api/rooms": () => ({ status: 200, body: sql.rooms.all().map(full) }),
  "POST /api/rooms": ({ body }) => {
    const name = words(body.name);
    if (!name) return oops(400, "Which room? The name is missing.");
    const { id } = sql.open.get(name.toLocaleLowerCase("en"), name);
    return { status: 200, body: find(`${id}`) };
  },
  "GET /api/rooms/:room": ({ room }) => ({ status: 200, body: room }),
  "POST /api/rooms/:room/items": ({ room, body }) => {
    const text = words(body.name);
    if (!text) return oops(400, "What should be bought? The line is empty.");
    const { name, amount } = words(body.amount) ? { name: text, amount: words(body.amount) } : split(text);
    sql.add.run(room.id, name, amount);
    return { status: 201, changed: true };
  },
  "PATCH /api/rooms/:room/items/:item": ({ room, item, body }) => {
    if (typeof body.done !== "boolean") return oops(400, "done has to be true or false.");
    const { changes } = sql.check.run(body.done ? 1 : 0, room.id, item);
    return changes ? { status: 200, changed: true } : oops(404, "Somebody has removed it already.");
  },
  "DELETE /api/rooms/:room/items/:item": ({ room, item }) => {
    const { changes } = sql.remove.run(room.id, item);
    return changes ? { status: 200, changed: true } : oops(404, "Somebody has removed it already.");
  },
  "GET /api/rooms/:room/news": ({ room, res }) => {
    const stream = { id: room.id, res };
    res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    res.write("retry: 800\n\n");
    streams.push(stream);
    publish(room.id);
    res.on("close", () => {
      streams.splice(streams.indexOf(stream), 1);
      publish(room.id);
    });
  },
};

async function api(req, res) {
  const [path] = req.url.split("?");
  const [, , , id, , item] = path.split("/");
  const pattern = path.replace(/^(\/api\/rooms)\/[^/]+/, "$1/:room").replace(/(\/items)\/[^/]+$/, "$1/:item");
  const route = routes[`${req.method} ${pattern}`];
  const text = (await Array.fromAsync(req.setEncoding("utf8"))).join("");
  const room = id && find(id);
  if (!route || (id && !room)) return oops(404, "There is no such room.");
  const result = route({ res, room, item, body: (text && JSON.parse(text)) || {} });
  if (!result?.changed) return result;
  publish(room.id);
  return { status: result.status, body: find(room.id) };
}

const shell = { "/app.js": "text/javascript", "/style.css": "text/css" };

createServer(async (req, res) => {
  if (!req.url.startsWith("/api/")) {
    const file = Object.hasOwn(shell, req.url) ? req.url : "/index.html";
    res.writeHead(200, { "content-type": shell[file] ?? "text/html; charset=utf-8", "cache-control": "no-cache" });
    return res.end(readFileSync(at(`.${file}`)));
  }
  const result = await api(req, res).catch(() => oops(400, "This could not be read."));
  if (!result) return;
  res.writeHead(result.status, { "content-type": "application/json", "cache-control": "no-store" });
  res.end(JSON.stringify(result.body));
}).listen({ host: "127.0.0.1", port: process.env.PORT || 3000 });
