/** A reporter for node:test: writes one line per test as it ends. */
const { openSync, writeSync } = require("node:fs");

module.exports = async function* report(events) {
  let file;
  const began = new Map();
  for await (const { type, data } of events) {
    if (type !== "test:start" && type !== "test:pass" && type !== "test:fail") continue;
    const names = began.get(data.file) ?? [];
    began.set(data.file, names);
    names.length = data.nesting;
    names[data.nesting] = data.name;
    const isFile = data.nesting === 0 && data.file !== undefined && `/${data.file}`.endsWith(`/${data.name}`);
    if (type === "test:start" || data.details?.type === "suite" || isFile) continue;
    // A test that fails as expected proves nothing.
    const isLeftOut = [data.skip, data.todo, data.expectFailure].some((told) => ![undefined, false].includes(told));
    const outcome = isLeftOut ? "skipped" : type === "test:fail" ? "failed" : "passed";
    file ??= openSync(`${process.env.SLIPWAY_EVIDENCE}/node-test.${process.pid}.json`, "a");
    writeSync(file, `${JSON.stringify({ file: data.file ?? null, name: names.join(" > "), outcome })}\n`);
  }
  // The yielded output is for people.
  yield "";
};
