// The server makes all of the HTML, also the pieces that are sent to everyone who looks at a list.
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";

const store = new URL("pantry.json", import.meta.url);
let rooms = {};
try {
  rooms = JSON.parse(readFileSync(store, "utf8"));
} catch {
  // The first start: there is no pantry yet.
}
const open = new Map(Object.keys(rooms).map((id) => [id, new Set()]));
const count = (number) => "zero one two three four five six seven eight nine ten".split(" ")[number] ?? `${number}`;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const entities = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };
const escape = (text) => text.replace(/[<>&"]/g, (found) => entities[found]);
const neat = (text) => (typeof text === "string" ? text.replace(/\s+/g, " ").trim() : "");

const line = (room) => ({ id, name, amount, done }) => `
  <li ${done ? 'class="done"' : ""}>
    <label><input type="checkbox" data-put="/api/rooms/${room.id}/items/${id}" ${done ? "checked" : ""}>
      <span>${escape(name)}</span></label>
    <em>${escape(amount)}</em>
    <button data-delete="/api/rooms/${room.id}/items/${id}" aria-label="Remove ${escape(name)}">&minus;</button>
  </li>`;

function listHtml(room) {
  const done = room.items.filter((item) => item.done).length;
  const total = room.items.length;
  const far = total === 0 ? "Nothing on the list yet" : `${count(done)} of ${count(total)} done`;
  return `
    <p class="far">${capital(done && done === total ? "all done!" : far)}</p>
    <ul>${room.items.map(line(room)).join("")}</ul>`;
}

function peopleHtml(room) {
  const people = open.get(room.id).size;
  return `${capital(count(people))} ${people === 1 ? "person" : "people"} here`;
}

const page = (title, body) => `<!doctype html>
  <html lang="en">
    <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <title>${escape(title)}</title>
      <link rel="icon" href="data:,">
      <style>
        body { margin: 0 auto; max-width: 36rem; padding: 1rem; background: #fbf6ea; color: #1f4d3a; }
        body, input, button { font: 1.15rem/1.4 "Hiragino Sans", Tahoma, "Noto Sans", sans-serif; }
        body { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
        h1 { font-size: 2.25rem; line-height: 1.1; }
        form input, form button { width: 100%; min-height: 3.2rem; box-sizing: border-box; margin: .3rem 0; }
        button { border: 0; background: #f6c445; color: #1f4d3a; min-width: 3rem; min-height: 3rem; }
        ul { padding: 0; }
        li { display: flex; gap: .6rem; align-items: center; list-style: none; margin: .4rem 0; }
        label { flex: 1; display: flex; gap: .6rem; align-items: center; }
        [type=checkbox] { width: 2.8rem; height: 2.8rem; margin: 0; flex: none; }
        li button { background: #b3371f; color: #fbf6ea; }
        .done span { text-decoration: line-through; }
        a { display: block; padding: .8rem 0; color: inherit; }
        .wrong { color: #b3371f; }
      </style>
      <script type="module" src="/client.js"></script>
    </head>
    <body>${body}<p class="wrong" role="alert"></p></body>
  </html>`;

const startPage = () => page("Pantry", `
  <h1>Pantry</h1>
  <form data-post="/api/rooms" data-next="/room/">
    <label for="text">Name of the room</label>
    <input id="text" type="text" name="name" autocomplete="off">
    <button>Open room</button>
  </form>
  ${Object.values(rooms).map(({ id, name }) => `<a href="/room/${id}">${escape(name)}</a>`).join("")}`);

const lostPage = () => page("Pantry", '<h1>No such room</h1><a href="/">Back to the start</a>');

const roomPage = (room) => page(room.name, `
  <h1>${escape(room.name)}</h1>
  <form data-post="/api/rooms/${room.id}/items">
    <label for="text">What do you need?</label>
    <input id="text" type="text" name="name" autocomplete="off" placeholder="half a dozen eggs">
    <button>Add</button>
  </form>
  <section data-live="/room/${room.id}/live" id="list">${listHtml(room)}</section>
  <p id="people"></p>
  <a href="/">Back to the start</a>`);

function share(room) {
  const event = (name, content) => `event: ${name}\ndata: ${JSON.stringify(content)}\n\n`;
  for (const res of open.get(room.id)) res.write(event("list", listHtml(room)) + event("people", peopleHtml(room)));
}

function live(room, res) {
  res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  res.write("retry: 500\n\n");
  open.get(room.id).add(res);
  share(room);
  res.on("close", () => {
    open.get(room.id).delete(res);
    share(room);
  });
}

function save(room) {
  writeFileSync(store, JSON.stringify(rooms, null, 1));
  share(room);
  return room;
}

function openRoom(body) {
  const name = neat(body.name);
  if (!name) return "A room without a name cannot be found again.";
  const same = Object.values(rooms).find((room) => room.name.toUpperCase() === name.toUpperCase());
  if (same) return same;
  const id = `r${Object.keys(rooms).length + 1}`;
  open.set(id, new Set());
  rooms[id] = { id, name, last: 0, items: [] };
  return save(rooms[id]);
}

function addItem(room, body) {
  const text = neat(body.name);
  if (!text) return "An item without a name cannot be bought.";
  const units = "kg|g|l|ml|lb|oz|x|packs?|bottles?|cans?|bags?|dozen";
  const measure = new RegExp(`^((?:\\d+(?:[.,/]\\d+)?|half a)(?: ?(?:${units}))?) (.+)$`, "i");
  const [, amount, name] = (neat(body.amount) ? null : measure.exec(text)) ?? ["", neat(body.amount), text];
  room.last += 1;
  room.items.push({ id: `i${room.last}`, name, amount, done: false });
  return save(room);
}

function change(req, room, item, body) {
  if (req.method === "PUT") item.done = Boolean(body.done);
  else room.items = room.items.filter((other) => other !== item);
  return save(room);
}

async function respond(req, res) {
  const reply = (status, type, body) => {
    res.writeHead(status, { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-store" });
    res.end(body);
  };
  const json = (value, status = 200) => {
    const refused = typeof value === "string";
    reply(refused ? 400 : status, "application/json", JSON.stringify(refused ? { error: value } : value));
  };
  const path = req.url.split("?")[0];
  const [, first, second, third, fourth, fifth] = path.split("/");
  const text = Buffer.concat(await req.toArray()).toString();
  const body = (text && JSON.parse(text)) || {};
  if (path === "/") return reply(200, "text/html", startPage());
  if (path === "/client.js") return reply(200, "text/javascript", readFileSync(new URL("client.js", import.meta.url)));
  if (path === "/api/rooms") return json(req.method === "POST" ? openRoom(body) : Object.values(rooms));
  const id = first === "room" ? second : third;
  const room = Object.hasOwn(rooms, id) ? rooms[id] : null;
  if (first === "room" && !room) return reply(404, "text/html", lostPage());
  if (!room) return json({ error: "No such room" }, 404);
  if (first === "room") return third === "live" ? live(room, res) : reply(200, "text/html", roomPage(room));
  if (!fourth) return json(room);
  const item = room.items.find((one) => one.id === fifth);
  if (fourth === "items" && !fifth && req.method === "POST") return json(addItem(room, body), 201);
  if (!item || !["PUT", "DELETE"].includes(req.method)) return json({ error: "No such item" }, 404);
  json(change(req, room, item, body));
}

createServer((req, res) => {
  respond(req, res).catch(() => res.writeHead(400, { "Content-Type": "application/json" }).end('{"error":"Unclear."}'));
}).listen(process.env.PORT ?? 3000, "127.0.0.1");
