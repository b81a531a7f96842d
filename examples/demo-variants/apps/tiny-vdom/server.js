// Numbers for rooms and items, a snapshot file, and WebSocket frames written by hand.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("state.json", import.meta.url);
const sockets = new Map();
let state = { rooms: [], lastId: 0 };
try {
  state = JSON.parse(readFileSync(file, "utf8"));
} catch (error) {
  if (error.code !== "ENOENT") throw error;
}

const trim = (text) => (typeof text === "string" || typeof text === "number" ? `${text}` : "").trim();
const oneSpace = (text) => trim(text).split(/\s+/).join(" ");
const same = (one, other) => one.localeCompare(other, "en", { sensitivity: "accent" }) === 0;
const units = "kg g l ml lb oz x pack packs bag bags bottle bottles can cans".split(" ");

function parse(text) {
  const words = text.replace(/^([\d.,/]+)([a-z]+) /i, (all, count, unit) => {
    return units.includes(unit.toLowerCase()) ? `${count} ${unit} ` : all;
  }).split(" ");
  if (words.length < 2 || !/^\d+([.,/]\d+)?$/.test(words[0])) return { amount: "", name: text };
  const taken = words.length > 2 && units.includes(words[1].toLowerCase()) ? 2 : 1;
  return { amount: words.slice(0, taken).join(" "), name: words.slice(taken).join(" ") };
}

function frame(text) {
  const payload = Buffer.from(text);
  const size = payload.length;
  if (size < 126) return Buffer.concat([Buffer.from([0x81, size]), payload]);
  if (size < 65536) return Buffer.concat([Buffer.from([0x81, 126, size >> 8, size & 255]), payload]);
  const head = Buffer.alloc(10);
  head.writeUInt16BE(0x817f);
  head.writeUInt32BE(size, 6);
  return Buffer.concat([head, payload]);
}

function push(room) {
  const open = sockets.get(String(room.id)) ?? new Set();
  for (const socket of open) socket.write(frame(JSON.stringify({ ...room, people: open.size })));
}

function changed(room) {
  room.revision += 1;
  writeFileSync(file, JSON.stringify(state));
  push(room);
  return [200, room];
}

function route(method, [roomId, items, itemId], body) {
  const name = oneSpace(body.name);
  if (!roomId && method === "GET") return [200, state.rooms];
  if (!roomId && method === "POST") {
    if (!name) return [400, { error: "Without a name nobody finds the room again." }];
    const known = state.rooms.find((room) => same(room.name, name));
    if (known) return [200, known];
    const room = { id: String(++state.lastId), name, revision: 0, items: [] };
    state.rooms.push(room);
    return changed(room);
  }
  const room = state.rooms.find(({ id }) => id === roomId);
  if (!room || (items && items !== "items")) return [404, { error: "This room does not exist." }];
  if (!items && method === "GET") return [200, room];
  if (items && !itemId && method === "POST") {
    if (!name) return [400, { error: "An empty line cannot be bought." }];
    const amount = oneSpace(body.amount);
    const parts = amount ? { amount, name } : parse(name);
    room.items.push({ id: String(++state.lastId), ...parts, done: false });
    return changed(room);
  }
  const item = room.items.find(({ id }) => id === itemId);
  if (!item) return [404, { error: "This item is no longer there." }];
  if (method === "DELETE") room.items = room.items.filter((other) => other !== item);
  else if (method === "PATCH") item.done = Boolean(body.done);
  else return [405, { error: "Not like this." }];
  return changed(room);
}

const files = { "app.js": "text/javascript", "index.html": "text/html; charset=utf-8" };

const server = createServer(async (req, res) => {
  const respond = (status, type, body) => res.writeHead(status, { "Content-Type": type }).end(body);
  const path = req.url.split("?")[0].split("/").slice(1);
  if (path[0] !== "api") {
    const name = path[0] === "app.js" ? "app.js" : "index.html";
    const isRoom = path[0] === "room" && state.rooms.some(({ id }) => id === path[1]);
    const found = isRoom || ["", "app.js"].includes(path[0]);
    return respond(found ? 200 : 404, files[name], readFileSync(new URL(name, import.meta.url)));
  }
  const text = Buffer.concat(await req.toArray()).toString();
  let result = [400, { error: "This is no JSON." }];
  try {
    const body = text ? JSON.parse(text) : {};
    if (body && typeof body === "object") result = route(req.method, path.slice(2), body);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  respond(result[0], "application/json", JSON.stringify(result[1]));
});

server.on("upgrade", (req, socket) => {
  const room = state.rooms.find(({ id }) => req.url === `/live/${id}`);
  if (!room) return socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
  const key = `${req.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
  socket.write(`Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  const open = sockets.get(room.id) ?? new Set();
  sockets.set(room.id, open.add(socket));
  push(room);
  // The browsers only listen: whatever they send can only mean that they are leaving.
  socket.on("data", () => socket.end());
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    open.delete(socket);
    push(room);
  });
});

server.listen(process.env.PORT ?? 3000, "127.0.0.1");
