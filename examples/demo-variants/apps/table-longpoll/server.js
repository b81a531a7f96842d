// Eine Tabelle je Liste; Neues kommt durch lange Anfragen, die der Server offen haelt.
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";

const file = `${import.meta.dirname}/notebook.json`;
const rooms = load();
const live = Object.create(null);

function load() {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return [];
  }
}

const text = (value) => (value == null || typeof value === "object" ? "" : String(value)).replace(/\s+/gu, " ").trim();
const fold = (value) => value.toLowerCase();
const liveOf = (room) => (live[room.id] ??= { version: 1, waiting: new Map(), visitors: new Map() });
const peopleIn = (room) => liveOf(room).visitors.size;

// Aus "Rote Aepfel" wird "rote-aepfel"; gibt es das schon, kommt eine Zahl dazu.
function slug(name, taken) {
  const start = fold(name).normalize("NFD").replace(/[^a-z0-9]+/g, " ").trim().replaceAll(" ", "-") || "thing";
  let result = start;
  for (let number = 2; taken.some(({ id }) => id === result); number += 1) result = `${start}-${number}`;
  return result;
}

function news(room) {
  const { version, waiting } = liveOf(room);
  return { version, waiting: [...waiting.values()], state: { ...room, version, people: peopleIn(room) } };
}

function wake(room) {
  liveOf(room).version += 1;
  const { waiting, state } = news(room);
  for (const answer of waiting) answer(state);
}

function changed(room) {
  writeFileSync(file, JSON.stringify(rooms));
  wake(room);
}

function leave(room, visitor) {
  clearTimeout(liveOf(room).visitors.get(visitor));
  if (liveOf(room).visitors.delete(visitor)) wake(room);
}

function stay(room, visitor, milliseconds) {
  const { visitors } = liveOf(room);
  const isNew = !visitors.has(visitor);
  clearTimeout(visitors.get(visitor));
  visitors.set(visitor, setTimeout(leave, milliseconds, room, visitor));
  if (isNew) wake(room);
}

function longPoll(room, query, res) {
  const visitor = query.get("visitor") ?? "somebody";
  stay(room, visitor, 30000);
  const { waiting } = liveOf(room);
  const answer = (state) => {
    clearTimeout(timer);
    waiting.delete(res);
    stay(room, visitor, 1500);
    json(res, 200, state);
  };
  const timer = setTimeout(() => answer(news(room).state), 20000);
  waiting.set(res, answer);
  res.on("close", () => {
    clearTimeout(timer);
    if (waiting.delete(res)) leave(room, visitor);
  });
  if (Number(query.get("version")) !== liveOf(room).version) answer(news(room).state);
}

function json(res, status, value) {
  res.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  res.end(JSON.stringify(value));
}

function openRoom(res, { name }) {
  const wanted = text(name);
  if (!wanted) return json(res, 400, { error: "Tell us the room's name, please." });
  const known = rooms.find((room) => fold(room.name) === fold(wanted));
  if (known) return json(res, 200, known);
  const room = { id: slug(wanted, rooms), name: wanted, items: [] };
  rooms.push(room);
  changed(room);
  json(res, 201, room);
}

function addItem(res, room, body) {
  const line = text(body.name);
  if (!line) return json(res, 400, { error: "Tell us what you need, please." });
  const unit = "kg|g|mg|l|dl|cl|ml|lb|oz|x|packs?|packets?|bottles?|cans?|tins?|jars?|bags?|boxes|box|loaves|loaf";
  const found = new RegExp(`^(\\d+(?:[.,/]\\d+)?(?:\\s*(?:${unit}))?)\\s(?:of\\s)?(.*\\p{L}.*)$`, "iu").exec(line);
  const given = text(body.amount);
  const [amount, name] = found && !given ? found.slice(1) : [given, line];
  room.items.push({ id: slug(name, room.items), name, amount, done: false });
  changed(room);
  json(res, 201, news(room).state);
}

async function api(req, res, [roomId, part, itemId], query) {
  const body = req.method === "POST" || req.method === "PUT" ? (JSON.parse(await bodyOf(req)) ?? {}) : {};
  if (!roomId) return req.method === "POST" ? openRoom(res, body) : json(res, 200, rooms);
  const room = rooms.find(({ id }) => id === roomId);
  if (!room) return json(res, 404, { error: "This room is unknown." });
  if (!part) return json(res, 200, room);
  if (part === "news") return longPoll(room, query, res);
  if (part !== "items") return json(res, 404, { error: "This page is unknown." });
  if (!itemId && req.method === "POST") return addItem(res, room, body);
  const item = room.items.find(({ id }) => id === itemId);
  if (!item) return json(res, 404, { error: "This item is unknown." });
  if (req.method === "DELETE") room.items.splice(room.items.indexOf(item), 1);
  else if (req.method === "PUT") item.done = body.done === true;
  else return json(res, 405, { error: "This cannot be done." });
  changed(room);
  json(res, 200, news(room).state);
}

async function bodyOf(req) {
  req.setEncoding("utf8");
  let all = "";
  for await (const piece of req) all += piece;
  return all;
}

const server = createServer((req, res) => {
  const url = new URL(`http://127.0.0.1${req.url}`);
  const parts = url.pathname.split("/").filter(Boolean);
  if (parts[0] === "api" && parts[1] === "rooms") {
    api(req, res, parts.slice(2), url.searchParams).catch(() => json(res, 400, { error: "Not readable." }));
    return;
  }
  const page = parts.length === 0 ? "start.html" : "list.html";
  const found = parts.length === 0 || (parts[0] === "room" && rooms.some(({ id }) => id === parts[1]));
  res.writeHead(found ? 200 : 404, { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
  res.end(found ? readFileSync(`${import.meta.dirname}/${page}`) : `<h1>Unknown</h1><a href="/">All rooms</a>`);
});

server.listen(Number(process.env.PORT) || 3000, "127.0.0.1");
