import { defaultExecTimeoutMs, type Environment, maxLifetimeMs, readEnvironment, wholeNumber } from "@slipway/contract";
import { z } from "zod";
import { type ModalSettings, modalVariables, readModal } from "./modal-settings.ts";

export { deployTarget, type ModalSettings } from "./modal-settings.ts";

/** Names that SANDBOX_PROVIDER takes. */
export const providerNames = ["local", "modal"] as const;
export type ProviderName = (typeof providerNames)[number];
const plannedNames: readonly string[] = ["docker"];

/** What a program is told about sandboxes by its environment. */
export interface SandboxSettings<Own extends string = never> {
  readonly provider: ProviderName | Own;
  /** Why this one: the setting, or which default. */
  readonly because: string;
  readonly sandboxUid: number | undefined;
  readonly minFreeMb: number | undefined;
  readonly previewPort: number;
  readonly lifetimeMs: number;
  readonly idleMs: number;
  readonly execTimeoutMs: number;
  /** Undefined without Modal's credentials. */
  readonly modal: ModalSettings | undefined;
}

const maxLifetimeSeconds = maxLifetimeMs / 1000;

const environmentSchema = z.object({
  SANDBOX_PROVIDER: z.string().optional(),
  SLIPWAY_SANDBOX_UID: wholeNumber(1, 4_294_967_293).optional(),
  SLIPWAY_MIN_FREE_MB: wholeNumber(0, 10_485_760).optional(),
  SANDBOX_PREVIEW_PORT: wholeNumber(1, 65_535).default(3000),
  MODAL_SANDBOX_TTL: wholeNumber(1, maxLifetimeSeconds).default(3600),
  MODAL_SANDBOX_INACTIVITY_MINUTES: wholeNumber(1, maxLifetimeSeconds / 60).default(20),
  SLIPWAY_EXEC_TIMEOUT: wholeNumber(1, maxLifetimeSeconds).default(defaultExecTimeoutMs / 1000),
  ...modalVariables,
});
type Parsed = z.output<typeof environmentSchema>;

/**
 * The one reader of these settings, for every program. `own` are names of SANDBOX_PROVIDER that only this program knows.
 * The mistakes are for `settingsError`, together with the program's others.
 */
export function readSandboxSettings<Own extends string = never>(
  environment: Environment,
  own: readonly Own[] = [],
): { readonly settings: SandboxSettings<Own>; readonly mistakes: readonly string[] } {
  const { settings: parsed, given, mistakes: wrong } = readEnvironment(environmentSchema, environment);
  const { modal, mistakes: ofModal } = readModal(parsed, given);
  const isModalTold = modal !== undefined || ofModal.length > 0 || credentialNames.some((name) => name in given);
  const { mistake, ...choice } = choose(parsed.SANDBOX_PROVIDER, modal !== undefined, own);
  const mistakes = [
    ...wrong,
    ...ofModal,
    ...(mistake === undefined ? [] : [mistake]),
    ...contradictions(parsed, given),
  ];
  if (choice.provider === "modal" && !isModalTold)
    mistakes.push(`SANDBOX_PROVIDER is modal, and ${withoutCredentials}.`);
  const settings = {
    ...choice,
    modal,
    sandboxUid: parsed.SLIPWAY_SANDBOX_UID,
    minFreeMb: parsed.SLIPWAY_MIN_FREE_MB,
    previewPort: parsed.SANDBOX_PREVIEW_PORT,
    lifetimeMs: parsed.MODAL_SANDBOX_TTL * 1000,
    idleMs: parsed.MODAL_SANDBOX_INACTIVITY_MINUTES * 60_000,
    execTimeoutMs: parsed.SLIPWAY_EXEC_TIMEOUT * 1000,
  };
  return { settings, mistakes };
}

const credentialNames = ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET", "MODAL_API_TOKEN"];
export const withoutCredentials = "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set";

interface Choice<Own extends string> {
  readonly provider: ProviderName | Own;
  readonly because: string;
  readonly mistake?: string;
}

function choose<Own extends string>(named: string | undefined, hasModal: boolean, own: readonly Own[]): Choice<Own> {
  if (named === undefined) {
    return hasModal
      ? { provider: "modal", because: "Modal's credentials are set and SANDBOX_PROVIDER is not" }
      : { provider: "local", because: "neither SANDBOX_PROVIDER nor Modal's credentials are set" };
  }
  const known = [...providerNames, ...own].find((name) => name === named);
  if (known !== undefined) return { provider: known, because: `SANDBOX_PROVIDER is ${known}` };
  return { provider: "local", because: "SANDBOX_PROVIDER is wrong", mistake: mistakeOf(named, own) };
}

function mistakeOf(named: string, own: readonly string[]): string {
  const available = `available: ${[...providerNames, ...own].join(", ")}`;
  if (named === "simulated") return `SANDBOX_PROVIDER: only builds can be simulated (${available}).`;
  return plannedNames.includes(named)
    ? `SANDBOX_PROVIDER: this version has no ${named} provider (${available}).`
    : `SANDBOX_PROVIDER: "${named}" is not a provider (${available}).`;
}

/** A provider that is not in use, and what the settings lack for it; null: nothing. */
export interface OtherProvider {
  readonly name: ProviderName;
  readonly missing: string | null;
}

export function otherProviders({
  provider,
  modal,
}: Pick<SandboxSettings<string>, "provider" | "modal">): OtherProvider[] {
  const missing = { local: null, modal: modal === undefined ? withoutCredentials : null };
  return providerNames.filter((name) => name !== provider).map((name) => ({ name, missing: missing[name] }));
}

function contradictions(settings: Parsed, given: object): string[] {
  const {
    MODAL_SANDBOX_TTL: lifetime,
    SLIPWAY_EXEC_TIMEOUT: timeout,
    MODAL_SANDBOX_INACTIVITY_MINUTES: idle,
  } = settings;
  const show = (name: keyof Parsed, value: string) => `${name} (${value}${name in given ? "" : ", the default"})`;
  const shownLifetime = show("MODAL_SANDBOX_TTL", `${lifetime} s`);
  const mistakes = [];
  if (lifetime < timeout) {
    const shownTimeout = show("SLIPWAY_EXEC_TIMEOUT", `${timeout} s`);
    mistakes.push(`${shownLifetime} is shorter than ${shownTimeout}: a sandbox would end before its commands may.`);
  }
  if (idle * 60 > lifetime) {
    const shownIdle = show("MODAL_SANDBOX_INACTIVITY_MINUTES", `${idle} min`);
    mistakes.push(`${shownIdle} is longer than ${shownLifetime}: a sandbox would never sleep.`);
  }
  return mistakes;
}
