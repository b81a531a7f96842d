// Each room is a file of its own in ./rooms; the browsers ask for news a few times a second.
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const here = import.meta.dirname;
const store = join(here, "rooms");
mkdirSync(store, { recursive: true });

const files = readdirSync(store).filter((name) => name.endsWith(".json"));
const rooms = new Map(files.map((name) => [name.slice(0, -5), JSON.parse(readFileSync(join(store, name), "utf8"))]));
const lookers = new Map();

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const squeeze = (text) => (typeof text === "string" ? text : "").replace(/\s+/g, " ").trim();

function keep(room) {
  writeFileSync(join(store, `${room.id}.json`), JSON.stringify(room));
  return room;
}

function seen(room, looker) {
  const times = lookers.get(room.id) ?? new Map();
  lookers.set(room.id, times);
  if (looker) times.set(looker, Date.now());
  for (const [other, time] of times) if (Date.now() - time > 1500) times.delete(other);
  return times.size;
}

function required(text, message) {
  const squeezed = squeeze(text);
  if (!squeezed) throw new Refusal(400, message);
  return squeezed;
}

function open({ name }) {
  const wanted = required(name, "A room needs a name.");
  const same = [...rooms.values()].find((room) => room.name.toLowerCase() === wanted.toLowerCase());
  const room = same ?? keep({ id: randomUUID(), name: wanted, items: [] });
  rooms.set(room.id, room);
  return room;
}

function add(room, body) {
  const text = required(body.name, "An item needs a name.");
  const unit = "(?:\\s?(?:kilos?|kg|g|l|ml|lb|oz|packs?|boxes|box|bottles?|cans?))?";
  const parts = new RegExp(`^((?:\\d+[.,/])?\\d+${unit}) (.+)$`, "i").exec(text);
  const amount = squeeze(body.amount);
  room.items.push({
    id: randomUUID(),
    name: parts && !amount ? parts[2] : text,
    amount: parts && !amount ? parts[1] : amount,
    done: false,
  });
  return keep(room);
}

function handle(method, [roomId, part, itemId], query, body) {
  if (!roomId && method === "GET") return [...rooms.values()].sort((a, b) => a.name.localeCompare(b.name));
  if (!roomId && method === "POST") return open(body);
  const room = rooms.get(roomId);
  if (!room) throw new Refusal(404, "There is no room of this kind.");
  if (!part && method === "GET") return { ...room, people: seen(room, query.get("looker")) };
  if (part === "leave" && method === "POST") return { left: lookers.get(roomId)?.delete(query.get("looker")) };
  if (part === "items" && !itemId && method === "POST") return add(room, body);
  const item = room.items.find(({ id }) => id === itemId);
  if (part !== "items" || !item) throw new Refusal(404, "This item is not on the list.");
  if (method === "DELETE") room.items.splice(room.items.indexOf(item), 1);
  else if (method === "PUT") item.done = body.done === true;
  else throw new Refusal(405, "This cannot be done.");
  return keep(room);
}

async function read(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  return text ? (JSON.parse(text) ?? {}) : {};
}

const server = createServer(async (req, res) => {
  const answer = (status, type, content) => {
    res.writeHead(status, { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-cache" });
    res.end(content);
  };
  try {
    const url = new URL(req.url, "http://here");
    const path = url.pathname.slice(1);
    const [, , ...rest] = path.split("/");
    if (path === "elements.js") return answer(200, "text/javascript", readFileSync(join(here, path)));
    if (path === "" || /^room\/[^/]+$/.test(path)) {
      return answer(200, "text/html", readFileSync(join(here, "index.html")));
    }
    if (!/^api\/rooms(\/|$)/.test(path)) throw new Refusal(404, "There is nothing here.");
    const result = handle(req.method, rest, url.searchParams, await read(req));
    answer(200, "application/json", JSON.stringify(result));
  } catch (error) {
    answer(error.status ?? 400, "application/json", JSON.stringify({ error: error.message }));
  }
});

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
