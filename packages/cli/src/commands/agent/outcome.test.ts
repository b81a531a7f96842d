import { expect, it } from "vitest";
import { readable } from "./outcome.ts";

const name = "0".repeat(40);

it("a shown diff has no object names", () => {
  const patch = `diff --git a/x b/x\nindex ${name}..${name} 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-index a\n+index b`;
  expect(readable(patch)).toBe("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-index a\n+index b");
});

it("a shown diff has no bytes of binary files", () => {
  const binary = `diff --git a/p b/p\nnew file mode 100644\nindex ${name}..${name}\nGIT binary patch\nliteral 4\nLcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n`;
  const next = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b";
  expect(readable(binary + next)).toBe(`diff --git a/p b/p\nnew file mode 100644\n(binary)\n${next}`);
});
