import { type EventData, isErrorCode, printable, SlipwayError } from "@slipway/contract";
import type { Context } from "../../input/command.ts";

/** Errors in settings of the server, which may have been started long ago and elsewhere. */
const settingCodes = ["missing_key", "unknown_model", "unknown_price", "model_key_refused"];

/** Throws the error of a failed stage. Without enough money the build is paused instead, and says so itself. */
export async function stageFailed(context: Context, { code, message }: EventData<"stage.failed">): Promise<void> {
  if (code === "budget_exhausted") return;
  if (settingCodes.includes(code)) {
    await context.note(
      "The server keeps the settings it started with. Run `slipway down` to let the next command restart it.",
    );
    await context.note("`npm run demo` in the repository shows a whole build without a key.");
  }
  throw new SlipwayError(isErrorCode(code) ? code : "internal", printable(message));
}
