/**
 * What makes runners write their reports into a directory, too, wherever they run: behind other commands, and below other
 * scripts. `inside`: where the files of `inside/` are. `manifest`: the text of the project's package.json.
 */
export function evidenceEnvironment(options: {
  readonly inside: string;
  readonly directory: string;
  readonly manifest: string;
}): Record<string, string> {
  const { inside, directory, manifest } = options;
  // node:test wants a destination for each reporter, but for one alone, which the project may name by itself.
  const isNamed = /--test-reporter[= ]/.test(manifest) && !manifest.includes("--test-reporter-destination");
  const nodeOptions = [
    `--require=${inside}/preload.cjs`,
    ...[`--test-reporter=${inside}/node-test.cjs`, "--test-reporter-destination=stderr"],
    ...(isNamed ? [] : ["--test-reporter=spec"]),
    "--test-reporter-destination=stdout",
  ];
  return {
    SLIPWAY_EVIDENCE: directory,
    NODE_OPTIONS: nodeOptions.join(" "),
    PYTHONPATH: inside,
    PYTEST_ADDOPTS: "-p slipway_evidence",
  };
}
