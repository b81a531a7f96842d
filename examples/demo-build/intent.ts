import type { IntentDraft, SurfaceRoute } from "@slipway/contract";

export const intent: IntentDraft = {
  appType: "web app",
  character: "Friendly, quick and out of the way: it is used with one hand, in a shop",
  coreValue: "Everyone who shops for the same household sees one list, as it is right now",
  criteria: [
    {
      id: "open-room",
      kind: "functional",
      statement: "Whoever names a room on the first page gets into it, and the same name leads to the same list.",
    },
    {
      id: "add-items",
      kind: "functional",
      statement: "An item is added as people write it, such as 2 kg apples, and is shown at once with its amount.",
    },
    {
      id: "check-off",
      kind: "functional",
      statement: "Items can be checked off and removed, and the list says how far it is.",
    },
    {
      id: "kept-lists",
      kind: "functional",
      statement: "What is on a list is kept on the server and is there for whoever asks next.",
    },
    {
      id: "clear-refusals",
      kind: "functional",
      statement: "What makes no sense, such as a room without a name, is refused and changes nothing.",
    },
    {
      id: "live-updates",
      kind: "functional",
      statement:
        "A room shows how many people look at it, and what one of them changes, all of them see without a reload.",
    },
    {
      id: "phone-layout",
      kind: "visual",
      statement:
        "On a phone a list fills one column, nothing is cut off, and every button is large enough for a thumb.",
    },
    {
      id: "light-start",
      kind: "performance",
      statement: "The first page needs less than a megabyte to load, so that it opens in a shop's cellar, too.",
    },
  ],
  workflows: [
    {
      id: "shop-together",
      title: "Fill a list and shop",
      steps: ["Open a room", "Add two items", "Check one of them off", "Load the page again"],
      success: "The list says that one of two items is done.",
      walk: ["start", "room-name", "open-room", "room", "entry", "add", "item", "progress"],
    },
    {
      id: "come-back",
      title: "Come back to a list",
      steps: ["Open a room", "Add an item", "Go to the first page", "Follow the room's link"],
      success: "The item is still on the list.",
      walk: ["start", "room-name", "open-room", "room", "entry", "add", "start", "room-link", "room", "item"],
    },
  ],
  identity: {
    mood: "A market stall in the morning: paper, leaves, something yellow",
    colours: ["#1f4d3a", "#fbf6ea", "#f6c445", "#b3371f"],
    typography: "A humanist sans-serif, large headings, figures of equal width",
    layout: "One column, the field for the next item first, the list below it",
  },
  antiPatterns: ["An account before the first list", "A button that does nothing", "Text too small for a shop's light"],
  surface: {
    pages: [
      { id: "start", path: "/", purpose: "Open a room by its name, or go back to one" },
      { id: "room", path: "/room/{room}", purpose: "The list of one room" },
    ],
    controls: [
      { id: "room-name", page: "start", role: "textbox", name: "Name of the room" },
      { id: "open-room", page: "start", role: "button", name: "Open room" },
      { id: "room-link", page: "start", role: "link", name: "{room}" },
      { id: "room-heading", page: "room", role: "heading", name: "{room}" },
      { id: "entry", page: "room", role: "textbox", name: "What do you need?" },
      { id: "add", page: "room", role: "button", name: "Add" },
      { id: "item", page: "room", role: "checkbox", name: "{item}" },
      { id: "remove", page: "room", role: "button", name: "Remove {item}" },
    ],
    messages: [
      { id: "empty", text: "Nothing on the list yet", one: null, when: "The list has no items" },
      { id: "progress", text: "{done} of {total} done", one: null, when: "Something on the list is not done" },
      { id: "all-done", text: "All done", one: null, when: "All items of a list that has some are done" },
      {
        id: "people",
        text: "{count} people here",
        one: "{count} person here",
        when: "Always, on the page of a room: how many look at it",
      },
    ],
    routes: [
      {
        id: "open",
        method: "POST",
        path: "/api/rooms",
        purpose: "Open a room by its name, a new one or one that is there",
        request: [{ field: "name", type: "text" }],
        response: roomFields(""),
      },
      {
        id: "list",
        method: "GET",
        path: "/api/rooms",
        purpose: "All rooms",
        request: [],
        response: roomFields("[]."),
      },
      {
        id: "read",
        method: "GET",
        path: "/api/rooms/{room}",
        purpose: "One room, by its id",
        request: [],
        response: roomFields(""),
      },
      {
        id: "add-item",
        method: "POST",
        path: "/api/rooms/{room}/items",
        purpose: "Put an item on the list of a room",
        request: [
          { field: "name", type: "text" },
          { field: "amount", type: "text" },
        ],
        response: roomFields(""),
      },
    ],
  },
};

function roomFields(of: string): SurfaceRoute["response"] {
  return ["id", "name", "items[].name", "items[].amount"].map((field) => ({ field: `${of}${field}`, type: "text" }));
}
