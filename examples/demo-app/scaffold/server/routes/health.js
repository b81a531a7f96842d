export function healthRoutes() {
  return [{ method: "GET", path: "/api/health", handle: () => [200, { ok: true }] }];
}
