import { randomUUID } from "node:crypto";
import {
  type ComputePrice,
  computeRate,
  createSandboxSchema,
  hasCode,
  isFree,
  type SandboxId,
  SlipwayError,
  type SnapshotInfo,
  storageCost,
} from "@slipway/contract";
import type { OwnedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";
import { labelsOf, type Payment, paymentOf } from "./account.ts";
import { usualSlices } from "./decide.ts";
import { createMeter, type Meter, type MeterParts } from "./meter.ts";

export interface PayParts extends Omit<MeterParts, "provider" | "slices"> {
  readonly price: ComputePrice;
  readonly slices?: MeterParts["slices"] | undefined;
}

export interface PaidSandboxes extends AsyncDisposable {
  readonly provider: SandboxProvider;
  /** Settles and extends now what is due. */
  look(): Promise<void>;
}

/**
 * The same provider for sandboxes that builds pay for: none starts, or goes on, without money that is reserved, and none
 * lives longer than what is reserved for it. With a free provider it is the provider itself.
 */
export function payForSandboxes(provider: SandboxProvider, parts: PayParts): PaidSandboxes {
  if (isFree(parts.price)) return { provider, look: async () => {}, [Symbol.asyncDispose]: async () => {} };
  const { slices = usualSlices, warn } = parts;
  const meter = createMeter({ ...parts, provider, slices });
  let looking = Promise.resolve();
  const look = () => {
    looking = looking
      .then(() => meter.look())
      .catch((error: Error) => warn(`cannot see what sandboxes cost: ${error.message}`));
    return looking;
  };
  // What an earlier process has left.
  void look();
  const timer = setInterval(look, slices.tickMs);
  timer.unref();
  return {
    provider: paying(provider, meter, parts, slices.firstMs),
    look,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await looking;
      await meter[Symbol.asyncDispose]();
    },
  };
}

function paying(
  provider: SandboxProvider,
  meter: Meter,
  { price, ledger, holder, clock, warn }: PayParts,
  firstMs: number,
): SandboxProvider {
  type Started = { readonly labels: Record<string, string>; readonly lifetimeMs: number };
  type Request = Parameters<SandboxProvider["create"]>[0];
  /** Makes a sandbox by `make`, which is given what the request must have instead. */
  const make = async (
    request: Pick<Request, "cpu" | "memoryMb" | "gpu" | "labels" | "lifetimeMs">,
    start: (paid: Started) => Promise<OwnedSandbox>,
  ): Promise<OwnedSandbox> => {
    const asked = createSandboxSchema.pick({ cpu: true, memoryMb: true, gpu: true, labels: true, lifetimeMs: true });
    const parsed = asked.safeParse(pickOf(request, asked.shape));
    // The provider refuses it in its own words.
    if (!parsed.success) return await start(request as Started);
    const { cpu, memoryMb, gpu, labels, lifetimeMs } = parsed.data;
    const microUsdPerMs = computeRate(price, { cpu, memoryMb, gpu });
    if (microUsdPerMs === undefined) throw unknownGpu(provider.name, `${gpu}`, price);
    const payment: Payment = { key: randomUUID(), microUsdPerMs, lifetimeMs, gpu: gpu ?? null };
    return await meter.inLine(payment, async () => {
      const reserved = await meter.reserveFirst(payment, labels, null);
      const paid = { labels: { ...labels, ...labelsOf(payment) }, lifetimeMs: Math.min(firstMs, lifetimeMs) };
      const made = await start(paid).catch(async (error: unknown) => {
        // After these the provider may have made it all the same: a later look finds out.
        if (!uncertain.some((code) => hasCode(error, code))) await neverMade(reserved);
        throw error;
      });
      await ledger.place(reserved, made.id).catch(() => {});
      return paidSandbox(made, payment);
    });
  };
  const neverMade = async (request: string) => {
    const nothing = { microUsd: 0, end: "failed", estimated: false } as const;
    await ledger.settle({ request, provider: provider.name, ...nothing }).catch(() => false);
  };
  const rest = <T>(id: SandboxId, payment: Payment, work: () => Promise<T>, isGone = false) =>
    meter.inLine(payment, async () => {
      const done = await work();
      await meter.settle(payment, id, isGone);
      return done;
    });
  const begin = (sandbox: Sandbox, payment: Payment, work: () => Promise<void>) =>
    meter.inLine(payment, async () => {
      const { labels, state } = await sandbox.info();
      if (state === "running") return;
      await meter.reserveFirst(payment, labels, sandbox.id);
      // If this fails, the next look settles the reservation.
      await work();
    });
  const paidSandbox = <S extends Sandbox>(sandbox: S, payment: Payment): S => {
    const { id } = sandbox;
    const destroy: Sandbox["destroy"] = (options) => rest(id, payment, () => sandbox.destroy(options), true);
    return {
      ...sandbox,
      destroy,
      stop: (options) => rest(id, payment, () => sandbox.stop(options)),
      sleep: (options) => rest(id, payment, () => sandbox.sleep(options)),
      start: (options) => begin(sandbox, payment, () => sandbox.start(options)),
      wake: (options) => begin(sandbox, payment, () => sandbox.wake(options)),
      keepAlive: (forMs, options) =>
        meter.inLine(payment, async () => {
          await meter.cover(payment, await sandbox.info(options), forMs);
          return await sandbox.keepAlive(forMs, options);
        }),
      async fork({ labels: own, ...overrides } = {}, options) {
        const { limits, labels } = await sandbox.info(options);
        const inherited = {
          cpu: limits.cpu,
          memoryMb: limits.memoryMb,
          ...(payment.gpu !== null && { gpu: payment.gpu }),
        };
        const { lifetimeMs = payment.lifetimeMs } = overrides;
        const request = { ...inherited, ...overrides, lifetimeMs, labels: own ?? unpaid(labels) };
        return await make(request, (paid) => sandbox.fork({ ...overrides, ...paid }, options));
      },
      ...(Symbol.asyncDispose in sandbox && { [Symbol.asyncDispose]: async () => void (await destroy()) }),
    };
  };
  /** What a snapshot's storage has cost, when it ends: until then nobody knows for how long it stays. */
  const payForStorage = async ({ id, sandbox, bytes, createdAt }: SnapshotInfo) => {
    const account = await ledger.payerOf(sandbox);
    const microUsd = storageCost(price, bytes, clock.now() - createdAt);
    const request = `snapshot:${id}`;
    if (account === undefined || microUsd === 0) return;
    await ledger.reserve({ request, account, holder, kind: "compute", microUsd: 0 });
    await ledger.settle({ request, microUsd, provider: provider.name, end: "complete", estimated: false });
  };
  const snapshots: SandboxProvider["snapshots"] = {
    ...provider.snapshots,
    async delete(id, options) {
      const info = await provider.snapshots.get(id, options);
      await provider.snapshots.delete(id, options);
      await payForStorage(info).catch((error: Error) => warn(`${id} is not paid for: ${error.message}`));
    },
  };
  return {
    ...provider,
    snapshots,
    create: (request, options) => make(request, (paid) => provider.create({ ...request, ...paid }, options)),
    async get(id, options) {
      const sandbox = await provider.get(id, options);
      const payment = paymentOf((await sandbox.info(options)).labels);
      return payment === undefined ? sandbox : paidSandbox(sandbox, payment);
    },
  };
}

const uncertain = ["aborted", "provider_unavailable", "internal"] as const;

function pickOf(request: object, shape: object): object {
  return Object.fromEntries(Object.entries(request).filter(([name]) => name in shape));
}

function unpaid(labels: Readonly<Record<string, string>>): Record<string, string> {
  const own = labelsOf({ key: "", microUsdPerMs: 0, lifetimeMs: 0, gpu: null });
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !(name in own)));
}

function unknownGpu(provider: string, gpu: string, { gpus }: ComputePrice): SlipwayError {
  const known = Object.keys(gpus);
  const others = known.length === 0 ? "it has none" : `known are ${known.join(", ")}`;
  return new SlipwayError("unknown_price", `a GPU ${gpu} of ${provider} has no price here: ${others}`);
}
