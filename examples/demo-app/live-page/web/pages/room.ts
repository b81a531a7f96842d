import { readEntry } from "../../shared/entry.js";
import { inShoppingOrder } from "../../shared/order.js";
import { presenceWords } from "../../shared/presence.js";
import { progressOf } from "../../shared/progress.js";
import { api, type Item, type Room } from "../api.ts";
import { element } from "../dom.ts";
import { followRoom } from "../live.ts";

/** The list of one room, as it is at any moment for everyone who looks at it. */
export function roomPage(id: string): HTMLElement {
  const title = element("h1");
  const progress = element("span", { className: "quiet" });
  const people = element("span", { className: "people" });
  const items = element("ul", { className: "items" });
  const problem = element("p", { className: "problem", role: "alert" });

  const show = (room: Room) => {
    document.title = `${room.name} · Basket`;
    title.textContent = room.name;
    progress.textContent = progressOf(room.items).words;
    keepFocus(() => items.replaceChildren(...inShoppingOrder(room.items).map(itemRow)));
  };
  const change = async (changed: Promise<Room>) => {
    try {
      show(await changed);
      problem.textContent = "";
      return true;
    } catch (error) {
      problem.textContent = (error as Error).message;
      return false;
    }
  };
  const itemRow = (item: Item) => {
    const box = element("input", { type: "checkbox", id: item.id, checked: item.done });
    box.addEventListener("change", () => change(api.setDone(id, item.id, box.checked)));
    const remove = element("button", { className: "plain", ariaLabel: `Remove ${item.name}` }, "Remove");
    remove.addEventListener("click", () => change(api.remove(id, item.id)));
    const amount = item.amount === "" ? [] : [element("span", { className: "amount" }, item.amount)];
    const label = element("label", { htmlFor: item.id }, box, element("span", {}, item.name));
    return element("li", { className: item.done ? "done" : "" }, label, ...amount, remove);
  };

  // One that is not there is told in words; from then on the stream tells all.
  void change(api.room(id));
  followRoom(id, {
    onRoom: show,
    onPeople: (count) => {
      people.textContent = presenceWords(count);
    },
  });
  return element(
    "div",
    { className: "page" },
    element("a", { className: "brand", href: "/" }, "Basket"),
    title,
    element("p", { className: "status" }, progress, people),
    addForm((text) => change(api.add(id, readEntry(text)))),
    problem,
    items,
  );
}

/** `add` answers whether it was added. */
function addForm(add: (text: string) => Promise<boolean>): HTMLElement {
  const text = element("input", {
    id: "item",
    required: true,
    maxLength: 120,
    autocomplete: "off",
    placeholder: "2 kg apples",
  });
  const form = element(
    "form",
    { className: "entry" },
    element("label", { htmlFor: "item" }, "What do you need?"),
    element("div", { className: "row" }, text, element("button", {}, "Add")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const entered = text.value;
    text.value = "";
    text.focus();
    const isAdded = await add(entered);
    // Meanwhile the next one may be on its way.
    if (!isAdded && text.value === "") text.value = entered;
  });
  return form;
}

/** What has the focus is drawn anew: who uses the keyboard stays where he is. */
function keepFocus(draw: () => void): void {
  const { id } = document.activeElement ?? {};
  draw();
  if (id) document.getElementById(id)?.focus();
}
