import type { Task } from "@slipway/contract";
import { type AddedLine, filesOf } from "./app.ts";

/** What an agent does for a task besides writing its files. */
export interface DemoWork {
  /** What it says first. */
  readonly says: string;
  /** The existing files among those it writes. */
  readonly rewrites?: readonly string[];
  readonly adds?: readonly AddedLine[];
  /** What the agents of other tasks should know. */
  readonly tells?: string;
  /** What it writes on the first try, and on the failing repair of that. */
  readonly firstTries?: readonly string[];
}

type Planned = Omit<Task, "expectedFiles" | "estimate"> & { readonly minutes: number; readonly work: DemoWork };

const planned: readonly Planned[] = [
  {
    id: "scaffold",
    title: "Set up the project",
    description:
      "A project on Node and Vite alone that builds, runs and can be tested. npm run dev serves the front end and an API " +
      "on one port, PORT. The API has routes by area and a context that they share; GET /api/health says that it is well. " +
      "npm test runs all of test/ with node:test.",
    component: "backend",
    features: ["base"],
    dependencies: [],
    criteria: ["light-start"],
    minutes: 4,
    work: { says: "I set the project up: a Node server with Vite inside, an API, a first page and a test." },
  },
  {
    id: "storage",
    title: "Keep rooms in a file",
    description:
      "server/storage.js keeps all rooms in memory and in one JSON file that is replaced as a whole. all, get, save, and " +
      "onSave for whoever wants to hear of changes. It is in the context as storage.",
    component: "database",
    features: ["lists"],
    dependencies: ["scaffold"],
    criteria: ["kept-lists"],
    minutes: 3,
    work: {
      says: "I write the storage and its tests, and put it into the context.",
      adds: [
        { file: "server/context.js", line: 'import { openStorage } from "./storage.js";' },
        { file: "server/context.js", line: "  context.storage = await openStorage(settings.dataFile);" },
      ],
      tells: "context.storage has all(), get(id), save(room) and onSave(listener); a room is { id, name, items }.",
    },
  },
  {
    id: "live-hub",
    title: "Tell a room's people what happens",
    description:
      "server/hub.js knows who listens to which room, tells them what happens there, and how many they are. It is in the " +
      "context as hub.",
    component: "backend",
    features: ["live"],
    dependencies: ["scaffold"],
    criteria: ["live-updates"],
    minutes: 3,
    work: {
      says: "I write the hub and its tests, and put it into the context.",
      adds: [
        { file: "server/context.js", line: 'import { createHub } from "./hub.js";' },
        { file: "server/context.js", line: "  context.hub = createHub();" },
      ],
      tells: "context.hub has join(room, listener), which answers how to leave, and tell(room, message).",
    },
  },
  {
    id: "entries",
    title: "Read entries as people write them",
    description:
      "shared/entry.js: readEntry turns 2 kg apples into an amount and a name. 6 eggs are 6 of eggs, 3 ripe avocados are " +
      "3 of ripe avocados, milk is milk.",
    component: "frontend",
    features: ["lists"],
    dependencies: ["scaffold"],
    criteria: ["add-items"],
    minutes: 3,
    work: {
      says: "I write readEntry with a test for each way of writing an entry.",
      firstTries: ["entries-first", "entries-second"],
    },
  },
  {
    id: "start-page",
    title: "Make the first page",
    description:
      "web/pages/start.ts: a form that opens a room by its name, and the rooms that there are, each with how far its list " +
      "is. web/api.ts asks the API; /room/<id> is a room's address.",
    component: "frontend",
    features: ["lists"],
    dependencies: ["scaffold"],
    criteria: ["open-room", "light-start"],
    minutes: 4,
    work: { says: "I look at what is there, then I write the first page.", rewrites: ["web/main.ts"] },
  },
  {
    id: "look",
    title: "Give it its look",
    description:
      "web/styles.css and the icon: the contract's colours and typefaces, one column, good on a phone and on a desk. A test " +
      "holds the contrast of all text at 4.5 or more.",
    component: "frontend",
    features: ["look"],
    dependencies: ["scaffold"],
    criteria: ["phone-layout"],
    minutes: 2,
    work: { says: "I write the styles, the icon, and a test of the contrasts.", rewrites: ["web/styles.css"] },
  },
  {
    id: "rooms-api",
    title: "Serve rooms and their items",
    description:
      "server/routes/rooms.js: rooms are opened by name, and their items added, checked off and removed. Every change answers " +
      "the room. What makes no sense is refused with words.",
    component: "backend",
    features: ["lists"],
    dependencies: ["storage"],
    criteria: ["open-room", "add-items", "check-off", "kept-lists", "clear-refusals", "phone-layout"],
    minutes: 4,
    work: {
      says: "I write the routes of rooms and items, with tests of good and bad requests.",
      adds: [
        { file: "server/api.js", line: 'import { roomRoutes } from "./routes/rooms.js";' },
        { file: "server/api.js", line: "  routes.push(...roomRoutes(context));" },
      ],
      tells: "Every change of a room answers the whole room: POST, PATCH and DELETE below /api/rooms/<id>/items.",
    },
  },
  {
    id: "room-page",
    title: "Make the page of a room",
    description:
      "web/pages/room.ts at /room/<id>: a field for the next entry, the list with a box to check off and a button to remove, " +
      "what is done at the end, and how far the list is.",
    component: "frontend",
    features: ["lists"],
    dependencies: ["entries", "start-page"],
    criteria: ["open-room", "add-items", "check-off", "phone-layout"],
    minutes: 4,
    work: { says: "I look at the first page, then I write the page of a room.", rewrites: ["web/main.ts"] },
  },
  {
    id: "live-api",
    title: "Stream what happens in a room",
    description:
      "server/routes/live.js: GET /api/rooms/<id>/events is a stream of events: the room each time that it is saved, and how " +
      "many people are there.",
    component: "backend",
    features: ["live"],
    dependencies: ["rooms-api", "live-hub"],
    criteria: ["live-updates"],
    minutes: 3,
    work: {
      says: "I write the stream, and a test that listens to it while the list changes.",
      adds: [
        { file: "server/api.js", line: 'import { liveRoutes } from "./routes/live.js";' },
        { file: "server/api.js", line: "  routes.push(...liveRoutes(context));" },
      ],
    },
  },
  {
    id: "live-page",
    title: "Show changes as they happen",
    description:
      "The page of a room follows its stream: the list changes by itself, and it says how many people are there.",
    component: "frontend",
    features: ["live"],
    dependencies: ["room-page", "live-api"],
    criteria: ["live-updates"],
    minutes: 3,
    work: { says: "I let the page of a room follow its stream.", rewrites: ["web/pages/room.ts"] },
  },
];

export const tasks: readonly Task[] = planned.map(({ minutes, work, ...task }) => ({
  ...task,
  expectedFiles: [...new Set([...filesOf(task.id).keys(), ...(work.adds ?? []).map(({ file }) => file)])],
  estimate: { minutes, usd: 0.05 },
}));

/** Finds a task by the title that the agent is given. */
export function workOn(title: string): { readonly id: string; readonly work: DemoWork } | undefined {
  return planned.find((task) => task.title === title);
}
