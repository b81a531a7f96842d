import { progressOf } from "../../shared/progress.js";
import { api, type Room } from "../api.ts";
import { element } from "../dom.ts";

/** Where one opens a room by its name, or goes back to one. */
export function startPage(): HTMLElement {
  const rooms = element("section", { className: "rooms" });
  void showRooms(rooms);
  return element(
    "div",
    { className: "page start" },
    element("p", { className: "brand" }, "Basket"),
    element("h1", {}, "One list for everyone who shops"),
    element("p", { className: "lead" }, "Open a room, share its name, and fill the list together."),
    openForm(),
    rooms,
  );
}

function openForm(): HTMLElement {
  const name = element("input", {
    id: "room-name",
    required: true,
    maxLength: 60,
    autocomplete: "off",
    placeholder: "Saturday dinner",
  });
  const problem = element("p", { className: "problem", role: "alert" });
  const form = element(
    "form",
    { className: "entry" },
    element("label", { htmlFor: "room-name" }, "Name of the room"),
    element("div", { className: "row" }, name, element("button", {}, "Open room")),
    problem,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const room = await api.openRoom(name.value);
      location.assign(`/room/${room.id}`);
    } catch (error) {
      problem.textContent = (error as Error).message;
    }
  });
  return form;
}

async function showRooms(place: HTMLElement): Promise<void> {
  const rooms = await api.rooms().catch(() => []);
  if (rooms.length === 0) return;
  const list = element("ul", { className: "cards" }, ...rooms.map(roomCard));
  place.replaceChildren(element("h2", {}, "Rooms"), list);
}

function roomCard({ id, name, items }: Room): HTMLElement {
  const link = element("a", { href: `/room/${id}` }, name);
  return element("li", {}, link, element("span", { className: "quiet" }, progressOf(items).words));
}
