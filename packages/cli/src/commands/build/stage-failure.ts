import { isErrorCode, printable, SlipwayError } from "@slipway/contract";
import type { Context } from "../../input/command.ts";

/** Codes of what is set where the server was started, which may be long ago and elsewhere. */
const settingCodes = ["missing_key", "unknown_model", "unknown_price", "model_key_refused"];

/** A stage before the first task has failed, and with it the build; but for want of money it is paused, and says so. */
export async function stageFailed(
  context: Context,
  { code, message }: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (code === "budget_exhausted") return;
  if (settingCodes.includes(String(code))) {
    await context.note(
      "The server keeps the settings it was started with: `slipway down` lets the next command start it anew.",
    );
    await context.note("Without a key, `npm run demo` in the repository shows a whole build.");
  }
  throw new SlipwayError(isErrorCode(code) ? code : "internal", printable(String(message)));
}
