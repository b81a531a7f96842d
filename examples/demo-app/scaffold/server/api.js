import { HttpError, readJson, sendJson } from "./http.js";
import { healthRoutes } from "./routes/health.js";

/**
 * Every area brings its own routes. A route answers `[status, body]`, or nothing when it has answered by itself.
 */
export function createApi(context) {
  const routes = [];
  routes.push(...healthRoutes(context));
  return async (request, response) => {
    try {
      const { route, params } = findRoute(routes, request);
      const body = request.method === "GET" ? {} : await readJson(request);
      const answer = await route.handle({ params, body, request, response });
      if (answer) sendJson(response, ...answer);
    } catch (error) {
      if (!(error instanceof HttpError)) console.error(error);
      const known = error instanceof HttpError ? error : new HttpError(500, "Something went wrong here.");
      if (response.headersSent) response.destroy();
      else sendJson(response, known.status, { error: known.message });
    }
  };
}

function findRoute(routes, { method, url }) {
  const { pathname } = new URL(url, "http://localhost");
  const parts = pathname.split("/");
  for (const route of routes) {
    const params = route.method === method ? matchPath(route.path.split("/"), parts) : undefined;
    if (params) return { route, params };
  }
  throw new HttpError(404, "There is nothing here.");
}

/** `:name` stands for any one part. */
function matchPath(pattern, parts) {
  if (pattern.length !== parts.length) return undefined;
  const params = {};
  for (const [index, expected] of pattern.entries()) {
    const part = parts[index];
    if (expected.startsWith(":")) params[expected.slice(1)] = part;
    else if (expected !== part) return undefined;
  }
  return params;
}
