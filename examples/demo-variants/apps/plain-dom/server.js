// A shopping list for a household: plain node:http, everything in memory, changes sent by EventSource.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";

const rooms = new Map();
const viewers = new Map();
let lastItemId = 0;

const tidy = (text) => (typeof text === "string" ? text.trim().replace(/\s+/g, " ") : "");
const keyOf = (name) => name.toLowerCase();
const publicRoom = ({ id, name, items }) => ({ id, name, items });

const UNITS = "kg|g|mg|l|ml|cl|dl|lbs?|oz|x|packs?|bottles?|cans?|bags?|boxes|box|jars?|bunch|slices?";
const AMOUNT = new RegExp(`^(\\d+(?:[.,/]\\d+)?(?: ?(?:${UNITS}))?) (?:of )?(.+)$`, "i");

function splitAmount(text) {
  const match = AMOUNT.exec(text);
  return match ? { amount: match[1], name: match[2] } : { amount: "", name: text };
}

function freeSlug(name) {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const slug = plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "") || "room";
  let id = slug;
  for (let n = 2; rooms.has(id); n++) id = `${slug}-${n}`;
  return id;
}

function announce(room) {
  const watching = viewers.get(room.id);
  const data = JSON.stringify({ room: publicRoom(room), people: watching.size });
  for (const res of watching) res.write(`data: ${data}\n\n`);
}

function send(res, status, body) {
  res.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  res.end(JSON.stringify(body));
}

async function readBody(req) {
  req.setEncoding("utf8");
  let text = "";
  for await (const chunk of req) {
    text += chunk;
    if (text.length > 20000) return {};
  }
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

function openRoom(res, body) {
  const name = tidy(body.name);
  if (!name || name.length > 120) return send(res, 400, { error: "Please give the room a name." });
  const known = [...rooms.values()].find((room) => keyOf(room.name) === keyOf(name));
  if (known) return send(res, 200, publicRoom(known));
  const room = { id: freeSlug(name), name, items: [] };
  rooms.set(room.id, room);
  viewers.set(room.id, new Set());
  send(res, 201, publicRoom(room));
}

function addItem(res, room, body) {
  const text = tidy(body.name);
  if (!text || text.length > 300) return send(res, 400, { error: "Please write down what you need." });
  const amount = tidy(body.amount);
  const parts = amount ? { amount, name: text } : splitAmount(text);
  room.items.push({ id: ++lastItemId, ...parts, done: false });
  announce(room);
  send(res, 201, publicRoom(room));
}

async function changeItem(req, res, room, itemId) {
  const item = room.items.find(({ id }) => String(id) === itemId);
  if (!item) return send(res, 404, { error: "This item is gone already." });
  if (req.method === "DELETE") {
    room.items = room.items.filter((other) => other !== item);
  } else if (req.method === "PATCH") {
    const { done } = await readBody(req);
    if (typeof done !== "boolean") return send(res, 400, { error: "Done or not done?" });
    item.done = done;
  } else {
    return send(res, 405, { error: "That is not possible." });
  }
  announce(room);
  send(res, 200, publicRoom(room));
}

function watch(req, res, room) {
  res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  res.write("retry: 1000\n\n");
  viewers.get(room.id).add(res);
  announce(room);
  res.on("close", () => {
    viewers.get(room.id).delete(res);
    announce(room);
  });
}

async function api(req, res, [roomId, part, itemId]) {
  if (!roomId) {
    if (req.method === "GET") return send(res, 200, [...rooms.values()].map(publicRoom));
    if (req.method === "POST") return openRoom(res, await readBody(req));
    return send(res, 405, { error: "That is not possible." });
  }
  const room = rooms.get(roomId);
  if (!room) return send(res, 404, { error: "There is no such room." });
  if (!part && req.method === "GET") return send(res, 200, publicRoom(room));
  if (part === "events" && req.method === "GET") return watch(req, res, room);
  if (part === "items" && itemId) return changeItem(req, res, room, itemId);
  if (part === "items" && req.method === "POST") return addItem(res, room, await readBody(req));
  send(res, 404, { error: "There is nothing here." });
}

async function page(res, file, type, status = 200) {
  res.writeHead(status, { "Content-Type": type, "Cache-Control": "no-store" });
  res.end(await readFile(new URL(file, import.meta.url)));
}

createServer(async (req, res) => {
  try {
    const path = decodeURIComponent(req.url.split("?")[0]).split("/").slice(1);
    if (path[0] === "api" && path[1] === "rooms") await api(req, res, path.slice(2));
    else if (path[0] === "style.css") await page(res, "style.css", "text/css");
    else if (path[0] === "room" && path.length === 2) {
      await page(res, "room.html", "text/html; charset=utf-8", rooms.has(path[1]) ? 200 : 404);
    } else if (path[0] === "") await page(res, "index.html", "text/html; charset=utf-8");
    else send(res, 404, { error: "There is nothing here." });
  } catch {
    if (!res.headersSent) send(res, 400, { error: "That could not be understood." });
  }
}).listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
