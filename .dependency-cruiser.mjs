// The layers of docs/ARCHITECTURE.md. scripts/layering.integration.test.ts plants a violation of each rule.
// Reads TypeScript through the `typescript` package, which is version 6: version 7 has no compiler API of that kind.

const tests = "\\.(test|long|account)\\.tsx?$|/(fixtures|testing)/|[/-](fixture|testing)\\.ts$";
const decide = "^(packages/.+/)decide\\.ts$";
const builtin = "^[^.]+$";
const computing = "^(node:)?(assert|buffer|crypto|path|url|util)(/|$)";

export default {
  forbidden: [
    {
      name: "contract-imports-only-zod",
      comment: "The contract runs in a browser and stands below everything else.",
      severity: "error",
      from: { path: "^packages/contract/", pathNot: tests },
      to: { pathNot: ["^packages/contract/", "(^|/)node_modules/zod/"] },
    },
    {
      name: "host-knows-contract",
      comment: "What every program of a host does the same way; it stands right above the contract.",
      severity: "error",
      from: { path: "^packages/host/", pathNot: tests },
      to: { path: "^packages/(?!(host|contract)/)" },
    },
    {
      name: "stages-meet-in-pipeline",
      comment:
        "Every folder of the engine but ports/ and ask/ is a stage, and only pipeline.ts connects stages; index.ts re-exports.",
      severity: "error",
      from: { path: "^packages/engine/src/([^/]+)", pathNot: ["^packages/engine/src/(pipeline|index)\\.ts$", tests] },
      to: { path: "^packages/engine/src/(?!(ports|ask)/)[^/]+/", pathNot: "^packages/engine/src/$1/" },
    },
    {
      name: "engine-knows-no-adapters",
      comment: "The engine states what it needs in ports/; the server's compose.ts hands it the adapters.",
      severity: "error",
      from: { path: "^packages/engine/", pathNot: tests },
      to: {
        path: "^packages/(store|gateway|runner|agent-host|server|client|cli|web)/|^packages/sandbox/src/providers/",
        reachable: true,
      },
    },
    {
      name: "engine-does-no-io",
      comment: "Effects go through ports. Built-ins that only compute are fine.",
      severity: "error",
      from: { path: "^packages/engine/", pathNot: tests },
      to: { dependencyTypes: ["core"], pathNot: computing },
    },
    {
      name: "decisions-are-pure",
      comment: "A decide.ts takes types from anywhere, code only from the contract and the pure files beside it.",
      severity: "error",
      from: { path: decide },
      to: { dependencyTypesNot: ["type-only"], pathNot: ["^packages/contract/", "^$1(?!run\\.ts$)[^/]+\\.ts$"] },
    },
    {
      name: "decisions-reach-no-io",
      comment:
        "Nor does a file that decide.ts imports do I/O, be it imported for a type: shared types live apart from effects.",
      severity: "error",
      from: { path: decide },
      to: { path: builtin, pathNot: computing, reachable: true },
    },
    {
      name: "providers-do-not-know-each-other",
      severity: "error",
      from: { path: "^packages/sandbox/src/providers/([^/]+)/" },
      to: { path: "^packages/sandbox/src/providers/[^/]+/", pathNot: "^packages/sandbox/src/providers/$1/" },
    },
    {
      name: "client-uses-contract",
      severity: "error",
      from: { path: "^packages/client/", pathNot: tests },
      to: { path: "^packages/(?!(client|contract)/)" },
    },
    {
      name: "web-uses-client-and-contract",
      severity: "error",
      from: { path: "^packages/web/", pathNot: tests },
      to: { path: "^packages/(?!(web|client|contract)/)" },
    },
    {
      name: "cli-uses-client-contract-and-what-runs-agents",
      comment:
        "The command line is a face; it makes sandboxes, models, runs and files of the storage itself only where there is no server for that.",
      severity: "error",
      from: { path: "^packages/cli/", pathNot: tests },
      to: {
        path: "^packages/(?!(cli|client|contract|sandbox|gateway|agent-host)/|store/src/(objects|workspaces)/)",
      },
    },
    {
      name: "runner-knows-contract",
      comment: "The runner is bundled and runs inside a sandbox: nothing of the host is in it, not even by type.",
      severity: "error",
      from: { path: "^packages/runner/src/", pathNot: tests },
      to: { path: "^packages/(?!(runner|contract)/)" },
    },
    {
      name: "agent-host-knows-what-runs",
      comment:
        "It starts a runner in a sandbox, with a run of the gateway. What a run is for is its caller's business.",
      severity: "error",
      from: { path: "^packages/agent-host/src/", pathNot: tests },
      to: { path: "^packages/(?!(agent-host|runner|sandbox|gateway|contract)/)" },
    },
    {
      name: "http-knows-faces",
      comment: "A route translates; what may be done, and how, is decided by a face.",
      severity: "error",
      from: { path: "^packages/server/src/http/", pathNot: tests },
      to: { path: "^packages/server/src/(?!(http|faces)/)" },
    },
    {
      name: "faces-know-no-http",
      severity: "error",
      from: { path: "^packages/server/src/faces/", pathNot: tests },
      to: { path: "^packages/server/src/http/" },
    },
    {
      name: "work-knows-neither-faces-nor-drive",
      comment: "Work is asked for by turns and answers with reports. Nothing calls sideways.",
      severity: "error",
      from: { path: "^packages/server/src/work/", pathNot: tests },
      to: { path: "^packages/server/src/(faces|http|drive)/" },
    },
    {
      name: "wiring-is-on-top",
      comment: "Only the files at the top of the server put its rooms together.",
      severity: "error",
      from: { path: "^packages/server/src/[^/]+/", pathNot: tests },
      to: { path: "^packages/server/src/[^/]+\\.ts$" },
    },
    {
      name: "gateway-knows-no-sandbox",
      comment: "The gateway serves byte streams; where they come from is their bearer's business.",
      severity: "error",
      from: { path: "^packages/gateway/", pathNot: tests },
      to: { path: "^packages/(?!(gateway|contract|host)/)" },
    },
    {
      name: "nothing-imports-cli",
      severity: "error",
      from: { pathNot: "^packages/cli/" },
      to: { path: "^packages/cli/" },
    },
    {
      name: "packages-by-name",
      comment: "Another package is imported by its name, so that its exports are its border.",
      severity: "error",
      from: { path: "^(packages/[^/]+|bench|scripts)/" },
      to: {
        path: "^packages/",
        pathNot: "^$1/",
        dependencyTypes: ["local"],
        dependencyTypesNot: ["aliased-workspace"],
      },
    },
    {
      name: "tests-stay-out",
      severity: "error",
      // Figures are measured on the databases that tests start.
      from: { pathNot: `${tests}|^bench/` },
      to: { path: tests },
    },
    {
      name: "dependencies-are-declared",
      comment: "What a package imports is in its own package.json, the other packages of this repository included.",
      severity: "error",
      from: { path: "^packages/", pathNot: `${tests}|/conformance/` },
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    },
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "imports-resolve",
      comment: "An import that resolves to nothing would pass every other rule.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    parser: "tsc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    // Other people's programs, installed for tests, and the parts of the demo's app, which fit together once it is built.
    exclude: { path: "^(scripts/test-(agents|restate)|examples/demo-app)/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      extensions: [".ts", ".tsx", ".mts", ".js", ".mjs", ".json", ".d.ts"],
    },
  },
};
