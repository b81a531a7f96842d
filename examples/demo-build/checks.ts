import type { Check } from "@slipway/contract";

type BrowserCheck = Extract<Check, { type: "browser" }>;
type Step = BrowserCheck["steps"][number];

/** Each check makes its own room, so that none sees another's changes. */
export const checks: readonly Check[] = [
  inBrowser("open-room", [...openRoom("Proof garden"), ...openRoom("proof  GARDEN"), seeHeading("Proof garden")]),
  inBrowser("add-items", [...openRoom("Proof pantry"), ...add("2 kg quinces", "quinces"), seeText("2 kg")]),
  inBrowser("check-off", [
    ...openRoom("Proof kitchen"),
    ...add("6 figs", "figs"),
    { action: "click", target: { role: "checkbox", name: "figs" } },
    seeText("All done"),
    { action: "reload" },
    seeText("All done"),
    { action: "click", target: { role: "button", name: "Remove figs" } },
    seeText("Nothing on the list yet"),
    { action: "see-nothing-of", target: { role: "checkbox", name: "figs" } },
  ]),
  {
    type: "http",
    proves: "kept-lists",
    exchanges: [
      post("/api/rooms", { name: "Proof cellar" }, 201, ["proof-cellar"]),
      post("/api/rooms/proof-cellar/items", { name: "elderflower syrup", amount: "2" }, 201, ["elderflower syrup"]),
      post("/api/rooms", { name: "Proof cellar" }, 200, ["elderflower syrup"]),
      get("/api/rooms/proof-cellar", 200, ["elderflower syrup"]),
      get("/api/rooms", 200, ["Proof cellar"]),
    ],
  },
  {
    type: "http",
    proves: "clear-refusals",
    exchanges: [
      post("/api/rooms", { name: "   " }, 400),
      post("/api/rooms/proof-nowhere/items", { name: "salt" }, 404),
      get("/api/rooms/proof-nowhere", 404),
      { ...get("/api/rooms", 200), expect: { status: 200, bodyContains: [], bodyLacks: ["salt"] } },
    ],
  },
  inBrowser("live-updates", [...openRoom("Proof kiosk"), seeText("1 person here"), ...add("9 plums", "plums")]),
  {
    ...inBrowser("phone-layout", [...openRoom("Proof phone"), ...add("1,5 l oat milk", "oat milk")]),
    viewport: "phone",
    appearance: "One column without anything cut off: the room's name, the field with its button, the item below.",
  },
  // Sizes do not depend on the machine's load. Times do.
  { type: "performance", proves: "light-start", path: "/", metric: "transferKilobytes", atMost: 1000 },
  inBrowser("shop-together", [
    ...openRoom("Proof market"),
    ...add("3 lemons", "lemons"),
    ...add("rye bread", "rye bread"),
    { action: "click", target: { role: "checkbox", name: "lemons" } },
    seeText("1 of 2 done"),
    { action: "reload" },
    seeText("1 of 2 done"),
  ]),
  inBrowser("come-back", [
    ...openRoom("Proof attic"),
    ...add("candles", "candles"),
    { action: "open", path: "/" },
    { action: "click", target: { role: "link", name: "Proof attic" } },
    seeText("candles"),
  ]),
];

function inBrowser(proves: string, steps: readonly Step[]): BrowserCheck {
  return { type: "browser", proves, viewport: "desktop", steps: [...steps], appearance: null };
}

function openRoom(name: string): Step[] {
  return [
    { action: "open", path: "/" },
    { action: "fill", target: { role: "textbox", name: "Name of the room" }, value: name },
    { action: "click", target: { role: "button", name: "Open room" } },
    { action: "see", target: { role: "textbox", name: "What do you need?" } },
  ];
}

function add(entry: string, item: string): Step[] {
  return [
    { action: "fill", target: { role: "textbox", name: "What do you need?" }, value: entry },
    { action: "click", target: { role: "button", name: "Add" } },
    { action: "see", target: { role: "checkbox", name: item } },
  ];
}

function seeHeading(name: string): Step {
  return { action: "see", target: { role: "heading", name } };
}

function seeText(name: string): Step {
  return { action: "see", target: { role: "text", name } };
}

type Exchange = Extract<Check, { type: "http" }>["exchanges"][number];

function post(path: string, body: object, status: number, bodyContains: string[] = []): Exchange {
  return { method: "POST", path, body: JSON.stringify(body), expect: { status, bodyContains, bodyLacks: [] } };
}

function get(path: string, status: number, bodyContains: string[] = []): Exchange {
  return { method: "GET", path, body: null, expect: { status, bodyContains, bodyLacks: [] } };
}
