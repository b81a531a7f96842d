// Everything is a page or a form: works without scripts, a few lines of script only listen for the others.
import { createServer } from "node:http";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const folder = new URL("./data/", import.meta.url);
const file = new URL("lists.json", folder);
mkdirSync(folder, { recursive: true });
const rooms = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
const listeners = new Map();

function save() {
  const draft = new URL("lists.json.new", folder);
  writeFileSync(draft, JSON.stringify(rooms, null, 2));
  renameSync(draft, file);
}

const clean = (value) => String(value ?? "").trim().replace(/\s+/g, " ");
const html = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const here = (room) => listeners.get(room.id) ?? new Set();
const pathOf = (room) => `/room/${encodeURIComponent(room.id)}`;
const plural = (count) => (count === 1 ? "1 person here" : `${count} people here`);

function openRoom(name) {
  const same = rooms.find((room) => room.name.toLowerCase() === name.toLowerCase());
  if (same) return same;
  const base = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "list";
  let id = base;
  for (let number = 2; rooms.some((room) => room.id === id); number += 1) id = `${base}-${number}`;
  const room = { id, name, next: 1, items: [] };
  rooms.push(room);
  save();
  return room;
}

function addItem(room, text, givenAmount) {
  let [amount, name] = [givenAmount, text];
  const found = /^(\d[\d.,/]*\s?(?:kg|g|l|ml|cl|dl|lb|oz|x|packs?|tins?|bottles?|bags?)?)\s+(.+)$/i.exec(text);
  if (!amount && found) [, amount, name] = found;
  room.items.push({ id: room.next, name, amount: amount.trim(), done: false });
  room.next += 1;
}

function tell(room, news) {
  for (const res of here(room)) res.write(`data: ${JSON.stringify({ people: plural(here(room).size), news })}\n\n`);
}

function listen(room, res) {
  res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  res.write("retry: 1000\n\n");
  listeners.set(room.id, here(room).add(res));
  tell(room, false);
  res.write(`data: ${JSON.stringify({ people: plural(here(room).size), news: true })}\n\n`);
  res.on("close", () => {
    here(room).delete(res);
    // Every form loads the page anew: wait a moment before somebody is said to have left.
    setTimeout(() => tell(room, false), 300);
  });
}

const style = `
  body { max-width: 32em; margin: 0 auto; padding: 1em; background: #fbf6ea; color: #1f4d3a; overflow-wrap: anywhere;
    font: 18px/1.4 Optima, Candara, "Noto Sans", sans-serif; font-variant-numeric: tabular-nums; }
  h1 { font-size: 2.2em; line-height: 1.1; margin: .3em 0; }
  a, button { color: inherit; min-height: 48px; min-width: 48px; display: inline-flex; align-items: center; }
  button { font: inherit; justify-content: center; border: 2px solid #1f4d3a; background: none; }
  input { font: inherit; width: 100%; height: 50px; box-sizing: border-box; padding: 0 .6em; margin: .3em 0; }
  .main { width: 100%; background: #f6c445; font-weight: bold; }
  .remove { color: #b3371f; border: 0; }
  [aria-checked=true] + .what { text-decoration: line-through; opacity: .7; }
  ul { list-style: none; padding: 0; }
  li, li form { display: flex; align-items: center; gap: .6em; }
  li { border-bottom: 1px dashed; padding: .3em 0; justify-content: space-between; }
  [role=alert] { color: #b3371f; font-weight: bold; }`;

const layout = (title, body) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${html(title)}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<main>${body}</main>
</html>`;

const startPage = (error = "") => layout("The market list", `
  <h1>The market list</h1>
  <form method="post" action="/rooms">
    <label>Name of the room <input name="name" autocomplete="off"></label>
    ${error && `<p role="alert">${error}</p>`}
    <button class="main">Open room</button>
  </form>
  <ul>${rooms.map((room) => `<li><a href="${pathOf(room)}">${html(room.name)}</a></li>`).join("")}</ul>`);

const itemRow = (path) => ({ id, name, amount, done }) => `
  <li>
    <form method="post" action="${path}/check">
      <input type="hidden" name="item" value="${id}"><input type="hidden" name="done" value="${done ? "" : "yes"}">
      <button role="checkbox" aria-checked="${done}" aria-label="${html(name)}">${done ? "&#10003;" : "&nbsp;"}</button>
      <span class="what"><b>${html(amount)}</b> ${html(name)}</span>
    </form>
    <form method="post" action="${path}/remove">
      <input type="hidden" name="item" value="${id}">
      <button class="remove" aria-label="Remove ${html(name)}">&#10005;</button>
    </form>
  </li>`;

function roomPage(room, error = "") {
  const path = pathOf(room);
  const done = room.items.filter((item) => item.done).length;
  const progress = done < room.items.length ? `${done} of ${room.items.length} done` : "All done";
  return layout(room.name, `
  <h1>${html(room.name)}</h1>
  <form method="post" action="${path}/add">
    <label>What do you need? <input name="name" autocomplete="off" autofocus></label>
    ${error && `<p role="alert">${error}</p>`}
    <button class="main">Add</button>
  </form>
  <p id="people">${plural(Math.max(1, here(room).size))}</p>
  <section>
    <p>${room.items.length ? progress : "Nothing on the list yet"}</p>
    <ul>${room.items.map(itemRow(path)).join("")}</ul>
    ${done ? `<form method="post" action="${path}/clear"><button>Clear what is done</button></form>` : ""}
  </section>
  <p><a href="/">Other rooms</a></p>
  <script>
    const events = new EventSource("${path}/events");
    let turns = 0;
    events.onmessage = async ({ data }) => {
      const { people, news } = JSON.parse(data);
      document.querySelector("#people").textContent = people;
      if (!news) return;
      const turn = (turns += 1);
      const page = new DOMParser().parseFromString(await (await fetch("${path}")).text(), "text/html");
      if (turn !== turns) return;
      const [old, now] = [document, page].map((where) => where.querySelector("section"));
      if (old.innerHTML !== now.innerHTML) old.replaceWith(now);
    };
    addEventListener("pagehide", () => events.close());
    addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  </script>`);
}

function act(room, action, form) {
  const item = room.items.find(({ id }) => String(id) === form.get("item"));
  if (action === "add") addItem(room, clean(form.get("name")), "");
  else if (action === "check" && item) item.done = form.get("done") === "yes";
  else if (action === "remove" && item) room.items.splice(room.items.indexOf(item), 1);
  else if (action === "clear") room.items = room.items.filter(({ done }) => !done);
  save();
  tell(room, true);
}

async function answer(req, res) {
  const reply = (status, type, body) => {
    res.writeHead(status, { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-store" }).end(body);
  };
  const json = (status, value) => reply(status, "application/json", JSON.stringify(value));
  const go = (path) => res.writeHead(303, { Location: path }).end();
  const [area, ...path] = req.url.split("?")[0].slice(1).split("/").map(decodeURIComponent);
  const post = req.method === "POST";
  const body = post ? Buffer.concat(await Array.fromAsync(req)).toString() : "";
  const known = (id) => rooms.find((room) => room.id === id);

  if (area === "api" && path[0] === "rooms") {
    const [, id, items] = path;
    const sent = post ? JSON.parse(body) : {};
    const text = typeof sent?.name === "string" ? clean(sent.name) : "";
    if (!id && !post) return json(200, rooms);
    if (!id) return text ? json(200, openRoom(text)) : json(422, { error: "A room needs a name" });
    if (!known(id)) return json(404, { error: "No such room" });
    if (!items && !post) return json(200, known(id));
    if (items !== "items" || !post) return json(404, { error: "No such page" });
    if (!text) return json(422, { error: "An item needs a name" });
    addItem(known(id), text, clean(sent.amount));
    save();
    tell(known(id), true);
    return json(201, known(id));
  }
  const form = new URLSearchParams(body);
  const name = clean(form.get("name"));
  if (area === "") return reply(200, "text/html", startPage());
  if (area === "rooms" && post && !name) return reply(422, "text/html", startPage("Which room? Please name it."));
  if (area === "rooms" && post) return go(pathOf(openRoom(name)));
  const room = area === "room" && known(path[0]);
  if (!room) return reply(404, "text/html", layout("Nothing here", `<h1>Nothing here</h1><a href="/">All rooms</a>`));
  if (path[1] === "events") return listen(room, res);
  if (path[1] === "add" && !name) return reply(422, "text/html", roomPage(room, "Please say what you need."));
  if (!post) return reply(200, "text/html", roomPage(room));
  act(room, path[1], form);
  go(pathOf(room));
}

createServer((req, res) => {
  answer(req, res).catch(() => res.headersSent ? res.end() : res.writeHead(400).end("Not understood"));
}).listen(process.env.PORT || 3000, "127.0.0.1");
