/**
 * Loaded into every Node process of a test run. Makes test runners also write a report through their own reporters. It has to
 * run on whatever Node version the project has.
 */
const { realpathSync } = require("node:fs");
const { isMainThread } = require("node:worker_threads");

const directory = process.env.SLIPWAY_EVIDENCE;
const [, program, command] = process.argv;

const runners = [
  {
    name: "vitest",
    program: /\/vitest\/vitest\.mjs$/,
    isFor: () => !["list", "bench", "init"].includes(command),
    flags: (path) => ["--reporter=default", "--reporter=json", `--outputFile.json=${path}`],
  },
  {
    name: "jest",
    program: /\/jest(-cli)?\/bin\/jest\.js$|\/react-scripts\/scripts\/test\.js$/,
    flags: (path) => ["--json", `--outputFile=${path}`],
  },
  {
    name: "mocha",
    program: /\/mocha\/bin\/_?mocha(\.js)?$/,
    flags: (path) => ["--reporter=json", `--reporter-option=output=${path}`],
  },
  {
    name: "playwright",
    program: /\/(@playwright\/test|playwright)\/cli\.js$/,
    isFor: () => command === "test",
    flags: (path) => {
      process.env.PLAYWRIGHT_JSON_OUTPUT_NAME = path;
      process.env.PLAYWRIGHT_JSON_OUTPUT_FILE = path;
      return ["--reporter=list,json"];
    },
  },
];

/** A process that a runner started with its own arguments already has the flags. */
if (
  isMainThread &&
  program !== undefined &&
  directory !== undefined &&
  !process.argv.some((argument) => argument.includes(directory))
) {
  let path = program;
  try {
    path = realpathSync(program);
  } catch {}
  const runner = runners.find(({ program: own, isFor = () => true }) => own.test(path) && isFor());
  if (runner !== undefined) {
    const rest = process.argv.indexOf("--");
    const at = rest === -1 ? process.argv.length : rest;
    process.argv.splice(at, 0, ...runner.flags(`${directory}/${runner.name}.${process.pid}.json`));
  }
}
