import { roomPage } from "./pages/room.ts";
import { startPage } from "./pages/start.ts";

const [, room] = /^\/room\/([a-z0-9-]+)$/.exec(location.pathname) ?? [];
document.querySelector("#app")?.replaceChildren(room === undefined ? startPage() : roomPage(room));
