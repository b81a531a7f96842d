import { startPage } from "./pages/start.ts";

document.querySelector("#app")?.replaceChildren(startPage());
