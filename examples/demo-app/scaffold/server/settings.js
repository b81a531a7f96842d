export function readSettings(environment) {
  return {
    port: Number(environment.PORT ?? 5173),
    host: environment.HOST ?? "127.0.0.1",
    dataFile: environment.BASKET_DATA ?? "data/lists.json",
    isProduction: environment.NODE_ENV === "production",
  };
}
