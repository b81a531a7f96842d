import { describe, expect, test } from "vitest";
import { readText } from "../run.ts";
import { type Conformance, runProgram, uniqueName } from "./context.ts";

export function describeRestricted(c: Conformance): void {
  describe("the restricted view", () => {
    test("runs commands and reaches files as the sandbox does", async () => {
      const view = c.shared.restricted();
      expect(view.id).toBe(c.shared.id);
      expect((await runProgram(view, "speak", ["works", ""])).stdout).toBe("works");
      const path = c.place();
      await view.files.write(path, "written");
      expect(await readText(c.shared.files, path)).toBe("written");
      expect(await view.info()).toMatchObject({ id: c.shared.id, state: "running" });
    });

    test("has nothing else, by no name and by no prototype", () => {
      const view = c.shared.restricted();
      expect(Object.isFrozen(view)).toBe(true);
      const names = ["attach", "connect", "exec", "execs", "files", "id", "info", "toolsDirectory"];
      expect(Reflect.ownKeys(view).sort()).toEqual(names);
      expect([null, Object.prototype]).toContain(Object.getPrototypeOf(view));
      for (const name of [
        "destroy",
        "stop",
        "setNetwork",
        "fork",
        "snapshot",
        "keepAlive",
        "restricted",
        "previewUrl",
        "openChannel",
      ]) {
        expect(name in view).toBe(false);
      }
      expect([null, Object.prototype]).toContain(Object.getPrototypeOf(view.files));
      expect(Object.isFrozen(view.files)).toBe(true);
    });

    if (c.capabilities.egressSecrets) {
      test("does not see the sandbox's credentials", async () => {
        const value = uniqueName();
        const network = {
          domains: ["api.example.com"],
          secrets: [{ host: "api.example.com", header: "x-key", value }],
        };
        await using sandbox = await c.create({ network });
        expect(JSON.stringify(await sandbox.info())).not.toContain(value);
        expect((await sandbox.info()).network.secrets).toEqual([{ host: "api.example.com", header: "x-key" }]);
        const shown = JSON.stringify(await sandbox.restricted().info());
        expect(shown).not.toContain("x-key");
        expect(shown).not.toContain(value);
      });
    }
  });
}
