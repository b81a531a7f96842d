import { expect, test } from "vitest";
import { cutCodecs } from "./codecs.ts";

test("only the generated parts of the client's bundle are taken", () => {
  const names = ["ModalClientDefinition", "TaskCommandRouterDefinition", "RPCStatus", "RPCRetryPolicy"];
  const bundle = [
    "// src/app.ts\nsecret();",
    `// proto/api.ts\n${names.map((name) => `var ${name} = {};`).join("\n")}`,
    "// src/client.ts\nother();",
  ].join("\n");
  const source = cutCodecs(bundle);
  expect(source).not.toMatch(/secret|other/);
  expect(source).toContain("ModalClientDefinition as control");
});

test("a client without them is named as what is missing", () => {
  expect(() => cutCodecs("// src/app.ts\nvar x;")).toThrow(/no ModalClientDefinition, TaskCommandRouterDefinition/);
});
