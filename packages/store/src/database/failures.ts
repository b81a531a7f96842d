import { SlipwayError } from "@slipway/contract";

/** Result codes of SQLite, without their extended part. */
const sqliteBusy = new Set([5, 6]);
/** Read-only, I/O error, corrupt, full, cannot open, not a database. */
const sqliteUnusable = new Set([8, 10, 11, 13, 14, 26]);

/** A typed error for what a user can mend. Returns a defect as it is. */
export function sqliteFailure(error: unknown, path?: string): unknown {
  if (!(error instanceof Error)) return error;
  const where = path === undefined ? "" : ` (${path})`;
  const { errcode, code } = error as { readonly errcode?: number; readonly code?: string };
  if (isBusy(error)) {
    return new SlipwayError("database_busy", "another process holds the database's lock", { cause: error });
  }
  const unusable =
    errcode !== undefined ? sqliteUnusable.has(errcode & 0xff) : path !== undefined && isSystemCode(code);
  if (!unusable) return error;
  return new SlipwayError("database_unavailable", `cannot use the database: ${error.message}${where}`, {
    cause: error,
  });
}

export function isBusy(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: number };
  return errcode !== undefined && sqliteBusy.has(errcode & 0xff);
}

/** Connection exceptions, refused log-ins, no resources, shut down by an operator, no such database. */
const postgresUnavailable = /^(08|28|53|57P|3D000)/;
/** Deadlock, lock not available, serialization failure. */
const postgresBusy = /^(40P01|55P03|40001)$/;

export function postgresFailure(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof SlipwayError) return error;
  const { code, severity } = error as { readonly code?: string; readonly severity?: string };
  if (code !== undefined && postgresBusy.test(code)) {
    return new SlipwayError("database_busy", error.message, { cause: error });
  }
  // Errors of the server have a severity; errors of the connection have none.
  const unavailable = severity === undefined || (code !== undefined && postgresUnavailable.test(code));
  if (!unavailable || error instanceof TypeError) return error;
  const words = error instanceof AggregateError ? (code ?? "no address answers") : error.message;
  return new SlipwayError("database_unavailable", `cannot reach the database: ${words}`, { cause: error });
}

export function tursoFailure(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code } = error as { readonly code?: string };
  if (code?.startsWith("SQLITE_BUSY") || code === "TRANSACTION_CLOSED") {
    return new SlipwayError("database_busy", error.message, { cause: error });
  }
  if (code?.startsWith("SQLITE_") || error instanceof RangeError) return error;
  return new SlipwayError("database_unavailable", `cannot reach the database: ${error.message}`, {
    cause: error,
  });
}

function isSystemCode(code: string | undefined): boolean {
  return code !== undefined && /^E[A-Z]+$/.test(code);
}
