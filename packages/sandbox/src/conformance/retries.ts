import { describe, expect, test } from "vitest";
import { type Conformance, expectCode, uniqueName } from "./context.ts";

export function describeRetries(c: Conformance): void {
  const changed = c.capabilities.egressAllowlist ? { domains: ["changed.example.com"] } : {};

  describe("a retried create", () => {
    test("with the same key answers the first one's sandbox", async () => {
      const request = { labels: { test: uniqueName() }, idempotencyKey: uniqueName() };
      await using first = await c.create(request);
      const second = await c.create(request);
      expect(second.id).toBe(first.id);
      expect(await c.provider.list({ labels: request.labels })).toHaveLength(1);
    });

    test("answers the same sandbox after its network was changed, and a fork has the changed one", async () => {
      const request = { idempotencyKey: uniqueName() };
      await using first = await c.create(request);
      await first.setNetwork(changed);
      expect((await c.create(request)).id).toBe(first.id);
      await using fork = await first.fork();
      expect((await fork.info()).network).toMatchObject(changed);
    });

    test("at the same moment makes one sandbox", async () => {
      const request = { labels: { test: uniqueName() }, idempotencyKey: uniqueName() };
      const all = await Promise.all(Array.from({ length: 4 }, () => c.create(request)));
      expect(new Set(all.map(({ id }) => id)).size).toBe(1);
      expect(await c.provider.list({ labels: request.labels })).toHaveLength(1);
      await all[0]?.destroy();
    });

    test("with other content is refused and makes nothing", async () => {
      const labels = { test: uniqueName() };
      const idempotencyKey = uniqueName();
      await using _first = await c.create({ labels, idempotencyKey });
      await expectCode(c.create({ labels, idempotencyKey, env: { OTHER: "1" } }), "idempotency_conflict");
      expect(await c.provider.list({ labels })).toHaveLength(1);
    });
  });
}
