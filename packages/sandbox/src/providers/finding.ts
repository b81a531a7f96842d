/** One check of what a provider needs. `action` says what to do when its status is not ok. */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly action: string | null;
}

export const ok = (name: string, detail: string): Finding => ({ name, status: "ok", detail, action: null });
export const warn = (name: string, detail: string, action: string): Finding => ({
  name,
  status: "warn",
  detail,
  action,
});
export const fail = (name: string, detail: string, action: string): Finding => ({
  name,
  status: "fail",
  detail,
  action,
});
