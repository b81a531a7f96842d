import { expect, it } from "vitest";
import type { Output } from "../../terminal/io.ts";
import { createProgress } from "../../terminal/progress.ts";
import { createDisplay } from "./display.ts";

/** A display whose two streams are one terminal. */
function open() {
  let shown = "";
  const terminal: Output = {
    isTerminal: true,
    async write(data) {
      shown += data;
    },
    size: () => ({ cols: 80, rows: 24 }),
    onResize: () => () => {},
  };
  const display = createDisplay(
    terminal,
    createProgress(terminal, (_, text) => text),
  );
  return { display, shown: () => shown };
}

it("a status never erases what an agent is saying", async () => {
  const { display, shown } = open();
  await display.write("Done: it works.");
  display.status("0.0053 USD so far");
  expect(shown()).toBe("Done: it works.");
});

it("words take the place of a status instead of standing behind it", async () => {
  const { display, shown } = open();
  display.status("0.0012 USD so far");
  await display.write("added hello.mjs\n");
  expect(shown()).toBe("\r\x1b[2K0.0012 USD so far\r\x1b[2Kadded hello.mjs\n");
});

it("a line that was begun is ended once", async () => {
  const { display, shown } = open();
  await display.write("Done");
  await display.endLine();
  await display.endLine();
  expect(shown()).toBe("Done\n");
});
