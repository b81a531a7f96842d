// Jede Aenderung ist eine Zeile im Tagebuch (journal.ndjson); beim Start wird es noch einmal gelesen.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const journal = new URL("journal.ndjson", import.meta.url);
const rooms = new Map();
const readers = new Map();

const happenings = {
  opened({ room, name }) {
    rooms.set(room, { id: room, name, items: [] });
    readers.set(room, new Set());
  },
  added({ room, item, name, amount }) {
    rooms.get(room).items.push({ id: item, name, amount, done: false });
  },
  checked({ room, item, done }) {
    rooms.get(room).items.find(({ id }) => id === item).done = done;
  },
  removed({ room, item }) {
    const { items } = rooms.get(room);
    items.splice(items.findIndex(({ id }) => id === item), 1);
  },
};

if (existsSync(journal)) {
  for (const line of readFileSync(journal, "utf8").split("\n").filter(Boolean)) {
    const { what, ...rest } = JSON.parse(line);
    happenings[what](rest);
  }
}

function happen(what, rest) {
  happenings[what](rest);
  appendFileSync(journal, `${JSON.stringify({ what, ...rest })}\n`);
  inform(rest.room);
  return rooms.get(rest.room);
}

// Alle Leser eines Raumes bekommen seinen ganzen Zustand als eine Zeile.
function inform(id) {
  const all = readers.get(id);
  for (const res of all) res.write(`${JSON.stringify({ ...rooms.get(id), people: all.size })}\n`);
}

function stream(id, res) {
  res.writeHead(200, { "Content-Type": "application/x-ndjson", "Cache-Control": "no-store" });
  readers.get(id).add(res);
  inform(id);
  res.on("close", () => {
    readers.get(id).delete(res);
    inform(id);
  });
}

const tidy = (text) => (typeof text === "string" ? text.replace(/\s+/g, " ").trim() : "");
const newId = () => crypto.randomUUID();
const refuse = (status, error) => ({ status, error });

function open(name) {
  if (!name) return refuse(422, "Please name the room.");
  const known = [...rooms.values()].find((room) => room.name.toLowerCase() === name.toLowerCase());
  return known ?? happen("opened", { room: newId(), name });
}

function add(room, line, amount) {
  if (!line) return refuse(422, "Please name what you need.");
  const units = "kg|g|l|ml|lb|oz|x|packs?|bottles?|cans?|bags?|pieces?";
  const parts = new RegExp(`^(\\d+(?:[.,/]\\d+)?(?: ?(?:${units}))?) (.+)$`, "i").exec(line);
  if (amount || !parts) return happen("added", { room, item: newId(), name: line, amount });
  return happen("added", { room, item: newId(), name: parts[2], amount: parts[1] });
}

async function api(req, [id, part, itemId]) {
  const sent = Buffer.concat(await Array.fromAsync(req)).toString();
  const body = (sent && JSON.parse(sent)) || {};
  const name = tidy(body.name);
  const call = `${req.method} ${part ?? ""}${itemId ? "/item" : ""}`.trim();
  if (!id) return call === "POST" ? open(name) : [...rooms.values()];
  const room = rooms.get(id);
  if (!room) return refuse(404, "There is no room here.");
  if (call === "GET") return room;
  if (call === "POST items") return add(id, name, tidy(body.amount));
  if (!room.items.some((item) => item.id === itemId)) return refuse(404, "There is no item here.");
  if (call === "PUT items/item") return happen("checked", { room: id, item: itemId, done: Boolean(body.done) });
  if (call === "DELETE items/item") return happen("removed", { room: id, item: itemId });
  return refuse(405, "That cannot be done.");
}

createServer(async (req, res) => {
  const [, area, ...path] = req.url.split("?")[0].split("/");
  if (area === "api" && path[2] === "stream" && rooms.has(path[1])) return stream(path[1], res);
  if (area === "api" && path[0] === "rooms") {
    const result = await api(req, path.slice(1)).catch(() => refuse(400, "That was not JSON."));
    res.writeHead(result.status ?? 200, { "Content-Type": "application/json", "Cache-Control": "no-store" });
    return res.end(JSON.stringify(result));
  }
  const known = area === "" || (area === "room" && rooms.has(path[0]));
  res.writeHead(known ? 200 : 404, { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
  res.end(readFileSync(new URL("page.html", import.meta.url)));
}).listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
