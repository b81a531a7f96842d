import { element } from "./dom.ts";

document.querySelector("#app")?.replaceChildren(element("h1", {}, "Basket"));
