import { expect, test } from "vitest";
import { restrict } from "./restricted.ts";
import { createFakeProvider } from "./testing/fake-provider.ts";

const network = {
  domains: ["api.example.com"],
  secrets: [{ host: "api.example.com", header: "x-key", value: "hidden" }],
};

test("nothing but the narrow operations can be reached, through any object of the view", async () => {
  const provider = createFakeProvider({ true: async () => 0 });
  const view = restrict(await provider.create({ network }));
  const exec = await view.exec({ argv: ["true"] });
  for (const object of [view, view.files, exec, await view.attach(exec.id)]) {
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    expect(Object.isFrozen(object)).toBe(true);
    for (const key of Reflect.ownKeys(object)) {
      expect(["function", "string", "object"]).toContain(typeof Reflect.get(object, key));
    }
  }
  expect(Reflect.ownKeys(view).sort()).toEqual([
    "attach",
    "connect",
    "exec",
    "execs",
    "files",
    "id",
    "info",
    "toolsDirectory",
  ]);
});

test("a view shows no credentials, not even their names", async () => {
  const sandbox = await createFakeProvider().create({ network });
  expect(JSON.stringify(await sandbox.info())).toContain("x-key");
  expect(JSON.stringify(await restrict(sandbox).info())).not.toMatch(/x-key|hidden/);
});
