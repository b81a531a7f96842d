const h = (tag, props, ...children) => ({ tag, props: props ?? {}, children: children.flat() });

function create(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const element = document.createElement(node.tag);
  return update(element, { props: {}, children: [] }, node);
}

function update(element, before, after) {
  for (const [name, value] of Object.entries(after.props)) {
    if (name.startsWith("on") || name === "checked" || name === "value") {
      if (element[name] !== value) element[name] = value;
    } else if (before.props[name] !== value) element.setAttribute(name, value);
  }
  after.children.forEach((child, index) => {
    const old = before.children[index];
    const place = element.childNodes[index];
    if (old === undefined) element.append(create(child));
    else if (old.tag !== child.tag || old.props?.key !== child.props?.key) place.replaceWith(create(child));
    else if (typeof child !== "string") update(place, old, child);
    else if (old !== child) place.data = child;
  });
  while (element.childNodes.length > after.children.length) element.lastChild.remove();
  return element;
}

const root = document.querySelector("#app");
const state = { rooms: [], room: null, missing: false, error: "", entry: "" };
const roomId = location.pathname.startsWith("/room/") ? location.pathname.split("/")[2] : null;
let drawn = h("div");

function set(news) {
  Object.assign(state, news);
  const next = h("div", {}, roomId ? roomView() : startView());
  update(root, drawn, next);
  drawn = next;
}

async function call(path, method, body) {
  const response = await fetch(`/api/rooms${path}`, { method, body: JSON.stringify(body) });
  const answer = await response.json();
  const isNewer = state.room && answer.revision >= state.room.revision;
  set({ error: answer.error ?? "", room: isNewer ? { ...state.room, ...answer } : state.room });
  return response.ok ? answer : null;
}

function field(label, action, onsubmit) {
  const oninput = (event) => set({ entry: event.target.value });
  return h("form", { onsubmit },
    h("input", { class: "text", type: "text", "aria-label": label, placeholder: label, oninput, value: state.entry }),
    h("button", { class: "wide" }, action),
    h("p", { class: "error", role: "alert" }, state.error));
}

function startView() {
  const open = async (event) => {
    event.preventDefault();
    const room = await call("", "POST", { name: state.entry });
    if (room) location.href = `/room/${room.id}`;
  };
  return [
    h("h1", null, "Leaf and lemon"),
    field("Name of the room", "Open room", open),
    h("div", null, state.rooms.map((room) => h("a", { key: room.id, href: `/room/${room.id}` }, room.name))),
  ];
}

function itemView({ id, name, amount, done }) {
  const path = `/${roomId}/items/${id}`;
  return h("div", { key: id, class: done ? "item done" : "item" },
    h("input", {
      type: "checkbox", "aria-label": name, checked: done,
      onchange: (event) => call(path, "PATCH", { done: event.target.checked }),
    }),
    h("span", { class: "name" }, name),
    h("strong", null, amount),
    h("button", { "aria-label": `Remove ${name}`, onclick: () => call(path, "DELETE") }, "x"));
}

function roomView() {
  if (state.missing) return [h("h1", null, "This room does not exist"), h("a", { href: "/" }, "Go to the rooms")];
  if (!state.room) return [h("p", null, "One moment...")];
  const { name, items, people } = state.room;
  const done = items.filter((item) => item.done).length;
  const add = async (event) => {
    event.preventDefault();
    const text = state.entry;
    set({ entry: "" });
    if (!(await call(`/${roomId}/items`, "POST", { name: text }))) set({ entry: state.entry || text });
  };
  const again = () => items.forEach(({ id }) => call(`/${roomId}/items/${id}`, "PATCH", { done: false }));
  const far = done === items.length ? "All done" : `${done} of ${items.length} done`;
  return [
    h("h1", null, name),
    field("What do you need?", "Add", add),
    h("p", null, items.length ? far : "Nothing on the list yet"),
    h("progress", { max: `${items.length || 1}`, value: done, "aria-label": "How far" }),
    h("div", null, items.map(itemView)),
    done ? h("button", { class: "wide", onclick: again }, "Shop for the same again") : h("span"),
    h("p", null, people === 1 ? "1 person here" : `${people} people here`),
    h("a", { href: "/" }, "All rooms"),
  ];
}

function listen() {
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/live/${roomId}`);
  socket.onmessage = ({ data }) => set({ room: JSON.parse(data) });
  socket.onclose = () => setTimeout(listen, 1000);
  addEventListener("pagehide", () => socket.close(), { once: true });
}

if (!roomId) {
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  set({ rooms: await (await fetch("/api/rooms")).json() });
} else if ((await fetch(`/api/rooms/${roomId}`)).ok) {
  listen();
} else {
  set({ missing: true });
}
