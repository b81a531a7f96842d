const sheet = new CSSStyleSheet();
sheet.replaceSync(`
  * { box-sizing: border-box; font: inherit; color: inherit; }
  h1 { font-size: 2.4rem; line-height: 1.1; margin: .3rem 0 1rem; }
  form { display: flex; gap: .5rem; flex-wrap: wrap; }
  input[type=text] { flex: 1 1 12rem; min-width: 0; height: 3.2rem; padding: 0 .7rem; border: 2px solid #1f4d3a; }
  button { min-width: 3rem; min-height: 3.2rem; padding: 0 1rem; border: 0; background: #f6c445; font-weight: bold; }
  a { display: block; padding: .8rem 0; min-height: 3rem; }
  .error { color: #b3371f; width: 100%; margin: 0; }
  .progress { text-transform: uppercase; letter-spacing: .05em; }
  .row { display: flex; align-items: center; gap: .6rem; padding: .3rem 0; border-bottom: 2px solid #f6c445; }
  .row input { width: 2.8rem; height: 2.8rem; flex: none; margin: 0; accent-color: #1f4d3a; }
  .row .name { flex: 1; }
  .row button { background: none; color: #b3371f; padding: 0 .3rem; }
  .row.done .name { text-decoration: line-through; }
`);

async function ask(path, method = "GET", body) {
  const answer = await fetch(`/api/rooms${path}`, { method, body: body && JSON.stringify(body) });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

class Part extends HTMLElement {
  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
    this.shadowRoot.innerHTML = this.constructor.template;
  }

  $(selector) {
    return this.shadowRoot.querySelector(selector);
  }

  onSubmit(action) {
    this.$("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const field = this.$("input");
      const text = field.value;
      field.value = "";
      field.focus();
      try {
        await action(text);
        this.$(".error").textContent = "";
      } catch (error) {
        field.value ||= text;
        this.$(".error").textContent = error.message;
      }
    });
  }
}

customElements.define("list-item", class extends Part {
  static template = `
    <div class="row">
      <input type="checkbox"><span class="name"></span><strong class="amount"></strong><button>&#10007;</button>
    </div>`;

  connectedCallback() {
    const change = (...request) => this.dispatchEvent(new CustomEvent("change-item", { detail: request }));
    this.$("input").onchange = () => change("PUT", { done: this.$("input").checked });
    this.$("button").onclick = () => change("DELETE");
  }

  set item({ name, amount, done }) {
    this.$(".name").textContent = name;
    this.$(".amount").textContent = amount;
    this.$("input").ariaLabel = name;
    this.$("input").checked = done;
    this.$("button").ariaLabel = `Remove ${name}`;
    this.$(".row").classList.toggle("done", done);
  }
});

customElements.define("list-room", class extends Part {
  static template = `
    <a href="/">&larr; Rooms</a>
    <h1></h1>
    <form>
      <input type="text" aria-label="What do you need?" placeholder="6 eggs" autocomplete="off">
      <button>Add</button>
      <p class="error" role="alert"></p>
    </form>
    <p class="people"></p>
    <p class="progress"></p>
    <div class="items"></div>`;

  connectedCallback() {
    this.path = `/${location.pathname.split("/")[2]}`;
    this.changes = 0;
    this.looker = Math.random().toString(36).slice(2);
    this.onSubmit(async (name) => this.show(await ask(`${this.path}/items`, "POST", { name })));
    addEventListener("pagehide", () => navigator.sendBeacon(`/api/rooms${this.path}/leave?looker=${this.looker}`));
    this.look();
  }

  async look() {
    const before = this.changes;
    try {
      const room = await ask(`${this.path}?looker=${this.looker}`);
      if (before === this.changes) this.show(room);
    } catch (error) {
      if (this.shown === undefined) {
        this.$("form").remove();
        this.$("h1").textContent = error.message;
        return;
      }
    }
    setTimeout(() => this.look(), 400);
  }

  show(room) {
    const { name, items, people } = room;
    const done = items.filter((item) => item.done).length;
    this.changes += 1;
    if (people) this.$(".people").textContent = people === 1 ? "1 person here" : `${people} people here`;
    if (this.shown === JSON.stringify(items)) return;
    this.shown = JSON.stringify(items);
    document.title = this.$("h1").textContent = name;
    if (!items.length) this.$(".progress").textContent = "Nothing on the list yet";
    else if (done === items.length) this.$(".progress").textContent = "All done";
    else this.$(".progress").innerHTML = `<b>${done}</b> of <b>${items.length}</b> done`;

    const rows = new Map([...this.$(".items").children].map((row) => [row.id, row]));
    this.$(".items").replaceChildren(...items.map((item) => {
      const row = rows.get(item.id) ?? document.createElement("list-item");
      row.id = item.id;
      row.item = item;
      row.addEventListener("change-item", this);
      return row;
    }));
  }

  async handleEvent({ target, detail: [method, body] }) {
    this.changes += 1;
    this.shown = "";
    try {
      this.show(await ask(`${this.path}/items/${target.id}`, method, body));
    } catch (error) {
      this.$(".error").textContent = error.message;
    }
  }
});

customElements.define("list-start", class extends Part {
  static template = `
    <h1>Basket</h1>
    <p>One list for everyone at home. Say which.</p>
    <form>
      <input type="text" aria-label="Name of the room" placeholder="Flat 12" autocomplete="off">
      <button>Open room</button>
      <p class="error" role="alert"></p>
    </form>
    <nav></nav>`;

  async connectedCallback() {
    this.onSubmit(async (name) => location.assign(`/room/${(await ask("", "POST", { name })).id}`));
    const rooms = await ask("");
    this.$("nav").append(...rooms.map(({ id, name }) => {
      return Object.assign(document.createElement("a"), { href: `/room/${id}`, textContent: name });
    }));
  }
});

document.body.append(document.createElement(location.pathname === "/" ? "list-start" : "list-room"));
