import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { accept } from "./socket.js";

// The lists live as long as the server: the household's server is never switched off.
const rooms = new Map();
const guests = new Map();

const tidy = (text) => (typeof text === "string" ? text.trim().replace(/\s+/g, " ") : "");
const UNIT = /^(kg|g|l|dl|ml|lbs?|oz|x|packs?|bags?|bottles?|cans?|tins?|dozen)$/i;

function understand(line, amount) {
  if (amount) return { name: line, amount };
  const [, number, attached, rest] = /^(\d+(?:[.,/]\d+)?)([a-z]*) (.+)$/i.exec(line) ?? [];
  if (!number || (attached && !UNIT.test(attached))) return { name: line, amount: "" };
  if (attached) return { name: rest, amount: `${number} ${attached}` };
  const [first, ...others] = rest.split(" ");
  if (!others.length || !UNIT.test(first)) return { name: rest, amount: number };
  return { name: others.join(" "), amount: `${number} ${first}` };
}

function open(name) {
  const known = [...rooms.values()].find((room) => room.name.toLowerCase() === name.toLowerCase());
  if (known) return known;
  const room = { id: randomUUID(), name, items: [] };
  rooms.set(room.id, room);
  guests.set(room.id, new Set());
  return room;
}

function tellAll(room) {
  const all = guests.get(room.id);
  for (const guest of all) guest.send(JSON.stringify({ room, people: all.size }));
}

const commands = {
  add(room, { name, amount }) {
    const line = tidy(name);
    if (!line) return "Nothing to add: write what you need first.";
    room.items.push({ id: randomUUID(), ...understand(line, tidy(amount)), done: false });
  },
  check(room, { item, done }) {
    const found = room.items.find(({ id }) => id === item);
    if (!found) return "Somebody was faster and took this off the list.";
    found.done = done === true;
  },
  remove(room, { item }) {
    const index = room.items.findIndex(({ id }) => id === item);
    if (index < 0) return "Somebody was faster and took this off the list.";
    room.items.splice(index, 1);
  },
};

function run(room, command, values) {
  const refused = Object.hasOwn(commands, command) ? commands[command](room, values) : "Unknown command.";
  if (!refused) tellAll(room);
  return refused;
}

async function answer(req, path) {
  const [area, collection, id, items] = path;
  if (area !== "api" || collection !== "rooms") return [404, { error: "Not found." }];
  const room = rooms.get(id);
  if (id && !room) return [404, { error: "No room has this id." }];
  if (req.method === "GET" && !items) return [200, room ?? [...rooms.values()]];
  if (req.method !== "POST" || (id && items !== "items")) return [405, { error: "Not possible." }];
  const values = JSON.parse(Buffer.concat(await Array.fromAsync(req)).toString());
  const name = tidy(values.name);
  if (!room) return name ? [200, open(name)] : [400, { error: "Which room do you mean?" }];
  const error = run(room, "add", values);
  return error ? [400, { error }] : [201, room];
}

const server = createServer(async (req, res) => {
  const path = req.url.split("?")[0].split("/").slice(1);
  const page = path[0] === "" || (path[0] === "room" && rooms.has(path[1]));
  if (page || path[0] !== "api") {
    res.writeHead(page ? 200 : 404, { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
    res.end(page ? readFileSync(new URL("page.html", import.meta.url)) : "No such room. <a href=/>Rooms</a>");
    return;
  }
  const [status, body] = await answer(req, path).catch(() => [400, { error: "Not understood." }]);
  res.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  res.end(JSON.stringify(body));
});

server.on("upgrade", (req, socket) => {
  const room = rooms.get(req.url.split("/").at(-1));
  if (!room) return socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
  const all = guests.get(room.id);
  const guest = accept(req, socket, {
    onText(text) {
      const { command, ...values } = JSON.parse(text);
      const error = run(room, command, values);
      guest.send(JSON.stringify({ error, name: values.name ?? "" }));
    },
    onClose() {
      all.delete(guest);
      tellAll(room);
    },
  });
  all.add(guest);
  tellAll(room);
});

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
