import { createServer } from "node:http";
import { createApi } from "./api.js";
import { openContext } from "./context.js";
import { servePages } from "./pages.js";

const context = await openContext(process.env);
const { port, host } = context.settings;
const api = createApi(context);
const server = createServer();
const pages = await servePages(context.settings, server);

server.on("request", (request, response) => {
  if (request.url.startsWith("/api/")) api(request, response);
  else pages(request, response);
});
server.listen(port, host, () => console.log(`Basket is at http://${host}:${port}/`));
