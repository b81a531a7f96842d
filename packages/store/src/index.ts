export { type Migration, type MigrationSet, migrate } from "./database/migrate.ts";
export { type Database, type DatabaseAddress, type DatabaseKind, openDatabase } from "./database/open.ts";
