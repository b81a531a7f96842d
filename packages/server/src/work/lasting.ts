import { hasCode } from "@slipway/contract";

/** Errors that prevent checking an app and do not go away by themselves: waiting would never end. */
const lasting = ["install_failed", "invalid_settings", "component_missing", "image_build_failed"] as const;

export function isLasting(error: unknown): error is Error {
  return lasting.some((code) => hasCode(error, code));
}
