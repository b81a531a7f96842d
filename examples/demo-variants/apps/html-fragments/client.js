const section = document.querySelector("[data-live]");
let events;

async function send(method, path, body) {
  const answer = await fetch(path, { method, body: JSON.stringify(body) });
  const content = await answer.json();
  document.querySelector(".wrong").textContent = content.error ?? "";
  return answer.ok && content;
}

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const values = Object.fromEntries(new FormData(form));
  form.reset();
  const content = await send("POST", form.dataset.post, values);
  if (content && form.dataset.next) location.href = form.dataset.next + content.id;
  else if (!content) form.elements.name.value ||= values.name;
});

document.addEventListener("change", ({ target }) => {
  if (target.dataset.put) send("PUT", target.dataset.put, { done: target.checked });
});

document.addEventListener("click", ({ target }) => {
  if (target.dataset.delete) send("DELETE", target.dataset.delete);
});

function connect() {
  if (!section) return;
  events = new EventSource(section.dataset.live);
  events.addEventListener("list", ({ data }) => {
    const html = JSON.parse(data);
    if (section.shown !== html) section.innerHTML = section.shown = html;
  });
  events.addEventListener("people", ({ data }) => {
    document.querySelector("#people").textContent = JSON.parse(data);
  });
}

addEventListener("pagehide", () => events?.close());
addEventListener("pageshow", ({ persisted }) => (persisted ? location.reload() : connect()));
