// Les routes : "/" et "/room/:id" ; tout le reste est inconnu.
const main = document.querySelector("main");
const $ = (selector) => main.querySelector(selector);
let news = null;

function show(template) {
  main.replaceChildren(document.getElementById(template).content.cloneNode(true));
}

async function api(path, method, body) {
  const response = await fetch(`/api/rooms${path}`, { method, body: JSON.stringify(body), cache: "no-store" });
  const answer = await response.json();
  return response.ok ? answer : Promise.reject(new Error(answer.error));
}

// Le champ est vide tout de suite ; ce qui est refuse y revient pour etre corrige.
function onSubmit(action) {
  $("form").onsubmit = async (event) => {
    event.preventDefault();
    const field = $("input");
    const text = field.value;
    field.value = "";
    try {
      await action(text);
      $(".error").textContent = "";
    } catch (error) {
      field.value ||= text;
      complain(error);
    }
  };
}

function go(path) {
  history.pushState(null, "", path);
  render();
}

async function start() {
  show("start");
  onSubmit(async (name) => {
    const { id } = await api("", "POST", { name });
    go(`/room/${id}`);
  });
  const rooms = await api("", "GET");
  $(".rooms")?.replaceChildren(...rooms.map(({ id, name }) => {
    const row = document.createElement("li");
    row.append(Object.assign(document.createElement("a"), { href: `/room/${id}`, textContent: name }));
    return row;
  }));
}

function itemRow(path, { id, name, amount, done }) {
  const row = document.getElementById("item").content.cloneNode(true).firstElementChild;
  const [box, remove] = row.querySelectorAll("input, button");
  row.querySelector(".name").textContent = name;
  row.querySelector(".amount").textContent = amount;
  box.checked = done;
  box.onchange = () => api(`${path}/items/${id}`, "PATCH", { done: box.checked }).catch(complain);
  remove.ariaLabel = `Remove ${name}`;
  remove.onclick = () => api(`${path}/items/${id}`, "DELETE").catch(complain);
  return row;
}

function complain(error) {
  $(".error").textContent = error.message;
}

function draw(path, { name, items, people }) {
  const done = items.filter((item) => item.done).length;
  let progress = `${done} of ${items.length} done so far`;
  if (done === items.length) progress = "All done. Off to the till!";
  if (items.length === 0) progress = "Nothing on the list yet - what is missing?";
  document.title = name;
  $("h1").textContent = name;
  $(".progress").textContent = progress;
  $(".people").textContent = `${people} ${people === 1 ? "person" : "people"} here right now`;
  $(".items").replaceChildren(...items.map((item) => itemRow(path, item)));
}

async function share() {
  const address = $(".address");
  address.hidden = false;
  address.textContent = location.href;
  await navigator.clipboard?.writeText(location.href).then(() => address.append(" (copied)"), () => {});
}

async function room(id) {
  const path = `/${id}`;
  show("room");
  $(".share").onclick = share;
  onSubmit((name) => api(`${path}/items`, "POST", { name }));
  const known = await api(path, "GET").catch(() => null);
  if (location.pathname !== `/room${path}`) return;
  if (!known) return show("lost");
  news?.close();
  news = new EventSource(`/api/rooms${path}/news`);
  news.onmessage = ({ data }) => draw(path, JSON.parse(data));
}

function render() {
  news?.close();
  news = null;
  const [, area, id, more] = location.pathname.split("/");
  if (location.pathname === "/") start();
  else if (area === "room" && id && !more) room(id);
  else show("lost");
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.pathname);
});

addEventListener("popstate", render);
addEventListener("pagehide", () => news?.close());
addEventListener("pageshow", render);
