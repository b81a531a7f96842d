import type { Call, Check, CheckOf, Seen, VisitStep } from "@slipway/contract";

/** Each check makes its own room, so that none sees another's changes. */
export const checks: readonly Check[] = [
  visit("open-room", [
    ...openRoom("Proof garden"),
    ...add("11 tulips", "tulips"),
    ...openRoom("proof  GARDEN"),
    see(control("room-heading", { room: "Proof garden" })),
    see(item("tulips")),
    ...openRoom("Proof meadow"),
    seeNothingOf(item("tulips")),
  ]),
  visit("add-items", [
    ...openRoom("Proof pantry"),
    ...add("2 kg quinces", "quinces"),
    see({ value: "2 kg" }),
    ...add("oat flakes", "oat flakes"),
    ...add("3 l elder juice", "elder juice"),
    see({ value: "3 l" }),
    see(item("quinces")),
  ]),
  visit("check-off", [
    ...openRoom("Proof kitchen"),
    see(message("empty")),
    ...add("6 figs", "figs"),
    see(message("progress", { done: "0", total: "1" })),
    ...add("dill", "dill"),
    click(item("figs")),
    see(message("progress", { done: "1", total: "2" })),
    click(item("dill")),
    see(message("all-done")),
    { action: "reload" },
    see(message("all-done")),
    click(item("dill")),
    see(message("progress", { done: "1", total: "2" })),
    click(control("remove", { item: "figs" })),
    seeNothingOf(item("figs")),
    see(message("progress", { done: "0", total: "1" })),
    click(control("remove", { item: "dill" })),
    see(message("empty")),
    { action: "reload" },
    see(message("empty")),
    seeNothingOf(item("figs")),
  ]),
  {
    type: "calls",
    proves: "kept-lists",
    calls: [
      call("open", { send: { name: "Proof cellar" }, has: { name: "Proof cellar" }, keep: { id: "room" } }),
      call("add-item", {
        with: [{ variable: "room", kept: "room" }],
        send: { name: "elderflower syrup", amount: "2" },
        has: { "items[].name": "elderflower syrup", "items[].amount": "2" },
      }),
      call("add-item", {
        with: [{ variable: "room", kept: "room" }],
        send: { name: "corks", amount: "12" },
        has: { "items[].name": "corks" },
      }),
      call("open", { send: { name: "Proof cellar" }, has: { "items[].name": "elderflower syrup" } }),
      call("read", {
        with: [{ variable: "room", kept: "room" }],
        has: { name: "Proof cellar", "items[].name": "corks", "items[].amount": "2" },
      }),
      call("list", { has: { "[].name": "Proof cellar" } }),
    ],
  },
  {
    type: "calls",
    proves: "clear-refusals",
    calls: [
      call("open", { send: { name: "   " }, answer: "refused" }),
      call("add-item", {
        with: [{ variable: "room", value: "proof-nowhere" }],
        send: { name: "salt" },
        answer: "refused",
      }),
      call("read", { with: [{ variable: "room", value: "proof-nowhere" }], answer: "refused" }),
      call("open", { send: { name: "Proof vault" }, has: { name: "Proof vault" }, keep: { id: "room" } }),
      call("add-item", { with: [{ variable: "room", kept: "room" }], send: { name: "  " }, answer: "refused" }),
      call("list", { has: { "[].name": "Proof vault" }, lacks: { "[].items[].name": "salt" } }),
    ],
  },
  visit("live-updates", [
    ...openRoom("Proof kiosk"),
    see(message("people", { count: "1" })),
    { action: "switch", visitor: 2 },
    ...openRoom("Proof kiosk"),
    see(message("people", { count: "2" })),
    { action: "switch", visitor: 1 },
    see(message("people", { count: "2" })),
    ...add("9 plums", "plums"),
    { action: "switch", visitor: 2 },
    see(item("plums")),
    click(item("plums")),
    see(message("all-done")),
    ...add("crisps", "crisps"),
    { action: "switch", visitor: 1 },
    see(item("crisps")),
    see(message("progress", { done: "1", total: "2" })),
    click(control("remove", { item: "plums" })),
    { action: "switch", visitor: 2 },
    seeNothingOf(item("plums")),
    { action: "open", page: "start" },
    { action: "switch", visitor: 1 },
    see(message("people", { count: "1" })),
  ]),
  {
    ...visit("phone-layout", [...openRoom("Proof phone"), ...add("1,5 l oat milk", "oat milk")]),
    viewport: "phone",
    appearance: "One column without anything cut off: the room's name, the field with its button, the item below.",
  },
  // Sizes do not depend on the machine's load. Times do.
  {
    type: "measure",
    proves: "light-start",
    page: "start",
    sees: { control: "open-room", with: [] },
    metric: "transferKilobytes",
    atMost: 1000,
  },
  visit("shop-together", [
    ...openRoom("Proof market"),
    ...add("3 lemons", "lemons"),
    ...add("rye bread", "rye bread"),
    click(item("lemons")),
    see(message("progress", { done: "1", total: "2" })),
    { action: "reload" },
    see(message("progress", { done: "1", total: "2" })),
    ...add("4 eggs", "eggs"),
    see(message("progress", { done: "1", total: "3" })),
  ]),
  visit("come-back", [
    ...openRoom("Proof attic"),
    ...add("candles", "candles"),
    { action: "open", page: "start" },
    click(control("room-link", { room: "Proof attic" })),
    see(control("room-heading", { room: "Proof attic" })),
    see(item("candles")),
    { action: "switch", visitor: 2 },
    { action: "open", page: "room" },
    see(control("room-heading", { room: "Proof attic" })),
    see(item("candles")),
  ]),
];

function visit(proves: string, steps: readonly VisitStep[]): CheckOf<"visit"> {
  return { type: "visit", proves, viewport: "desktop", steps: [...steps], appearance: null };
}

function openRoom(name: string): VisitStep[] {
  return [
    { action: "open", page: "start" },
    { action: "fill", control: "room-name", with: [], value: name },
    click(control("open-room")),
    see(control("entry")),
  ];
}

function add(entry: string, name: string): VisitStep[] {
  return [{ action: "fill", control: "entry", with: [], value: entry }, click(control("add")), see(item(name))];
}

type Values = Readonly<Record<string, string>>;
type SeenControl = Extract<Seen, { control: string }>;

function control(id: string, values: Values = {}): SeenControl {
  return { control: id, with: valuesOf(values) };
}

function item(name: string): SeenControl {
  return control("item", { item: name });
}

function message(id: string, values: Values = {}): Seen {
  return { message: id, with: valuesOf(values) };
}

function valuesOf(values: Values) {
  return Object.entries(values).map(([variable, value]) => ({ variable, value }));
}

function click(what: SeenControl): VisitStep {
  return { action: "click", ...what };
}

function see(what: Seen): VisitStep {
  return { action: "see", what };
}

function seeNothingOf(what: Seen): VisitStep {
  return { action: "see-nothing-of", what };
}

interface CallParts {
  readonly with?: Call["with"];
  readonly send?: Values;
  readonly answer?: "accepted" | "refused";
  readonly has?: Values;
  readonly lacks?: Values;
  /** A name for what a field of the answer has. */
  readonly keep?: Values;
}

function call(
  route: string,
  { with: given = [], send = {}, answer = "accepted", has = {}, lacks = {}, keep = {} }: CallParts,
): Call {
  return {
    route,
    with: given,
    send: fieldsOf(send),
    expect: { answer, has: fieldsOf(has), lacks: fieldsOf(lacks) },
    keep: Object.entries(keep).map(([field, as]) => ({ field, as })),
  };
}

function fieldsOf(values: Values) {
  return Object.entries(values).map(([field, value]) => ({ field, value }));
}
