// A signal is a value that knows who reads it; an effect runs again when one of its signals changes.
let reader = null;

function signal(value) {
  const readers = new Set();
  return {
    get value() {
      if (reader) readers.add(reader);
      return value;
    },
    set value(next) {
      if (JSON.stringify(next) === JSON.stringify(value)) return;
      value = next;
      for (const run of readers) run();
    },
  };
}

function effect(run) {
  const tracked = () => {
    reader = tracked;
    run();
    reader = null;
  };
  tracked();
}

const $ = (selector) => document.querySelector(selector);
const roomId = location.pathname.match(/^\/room\/([^/]+)/)?.[1];
const visitor = `${Date.now()}-${Math.random()}`;
const title = signal(roomId ? "" : "Paper bag");
const problem = signal("");
const items = signal([]);
const people = signal(1);
const rooms = signal([]);
let changes = 0;

async function request(path, body) {
  const response = await fetch(`/api/rooms${path}`, body && { method: "POST", body: JSON.stringify(body) });
  const answer = await response.json();
  if (body) problem.value = answer.error ?? "";
  return response.ok ? answer : null;
}

// "2 kg apples" is split here, the server gets the amount and the name apart.
function split(text) {
  const unit = /^(kg|g|l|ml|lbs?|oz|x|packs?|bottles?|cans?|bags?|boxes|box|pieces?)$/i;
  const parts = text.trim().split(/\s+/);
  const [, number, glued] = /^(\d+(?:[.,/]\d+)?)([a-z]*)$/i.exec(parts[0]) ?? [];
  if (!number || parts.length < 2 || (glued && !unit.test(glued))) return { amount: "", name: text };
  const size = !glued && parts.length > 2 && unit.test(parts[1]) ? 2 : 1;
  return { amount: parts.slice(0, size).join(" "), name: parts.slice(size).join(" ") };
}

// The screen changes at once, the server's answer has the last word.
async function change(id, news) {
  changes += 1;
  const changed = items.value.map((item) => (item.id === id ? { ...item, ...news } : item));
  items.value = changed.filter((item) => !item.removed);
  const room = await request(`/${roomId}/items/${id}`, news);
  changes += 1;
  if (room) items.value = room.items;
}

async function add(text) {
  const room = await request(`/${roomId}/items`, split(text));
  changes += 1;
  if (room) items.value = room.items;
  return room;
}

async function openRoom(name) {
  const room = await request("", { name });
  if (room) location.assign(`/room/${room.id}`);
  return room;
}

async function poll() {
  const before = changes;
  const room = await request(`/${roomId}?visitor=${visitor}`).catch(() => undefined);
  if (room && before === changes) {
    title.value = room.name;
    items.value = room.items;
    people.value = room.people;
  } else if (room === null) {
    title.value = "No such room";
    $("form").hidden = $("p:has(#people)").hidden = true;
  }
  if (room !== null) setTimeout(poll, 300);
}

function row({ id, name, amount, done }) {
  const line = document.createElement("li");
  line.className = done ? "done" : "";
  line.innerHTML = `<input type="checkbox" id="item-${id}">
    <div><label for="item-${id}"></label><small></small></div><button type="button">&times;</button>`;
  line.querySelector("input").checked = done;
  line.querySelector("input").onchange = (event) => change(id, { done: event.target.checked });
  line.querySelector("label").textContent = name;
  line.querySelector("small").textContent = amount;
  line.querySelector("button").ariaLabel = `Remove ${name}`;
  line.querySelector("button").onclick = () => change(id, { removed: true });
  return line;
}

effect(() => ($("h1").textContent = document.title = title.value));
effect(() => ($("#problem").textContent = problem.value));
effect(() => ($("#people").textContent = `- ${people.value} ${people.value === 1 ? "person" : "people"} here`));
effect(() => {
  const total = items.value.length;
  const done = items.value.filter((item) => item.done).length;
  const open = total ? `${done} of ${total} done` : "Nothing on the list yet";
  $("#progress").textContent = total && done === total ? "All done" : open;
});
effect(() => $("ol").replaceChildren(...items.value.map(row)));
effect(() => $("ol").before(...rooms.value.map(({ id, name }) => {
  return Object.assign(document.createElement("a"), { href: `/room/${id}`, textContent: name });
})));

$("form").onsubmit = async (event) => {
  event.preventDefault();
  const text = $("#text").value;
  $("#text").value = "";
  if (!(await (roomId ? add : openRoom)(text))) $("#text").value ||= text;
};
$("label").textContent = roomId ? "What do you need?" : "Name of the room";
$("form button").textContent = roomId ? "Add" : "Open room";
$("#home").hidden = $("p:has(#people)").hidden = !roomId;

if (roomId) {
  $("p:has(#people)").hidden = false;
  addEventListener("pagehide", () => navigator.sendBeacon(`/api/rooms/${roomId}/goodbye?visitor=${visitor}`));
  poll();
} else {
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  rooms.value = await request("");
}
