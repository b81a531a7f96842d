/** What a lane's run of Vitest leaves in `.reports/<lane>.json`. */
export interface Report {
  readonly tests: readonly TestResult[];
  /** What failed outside of any test: a file that did not load, a hook, a worker. */
  readonly broken: readonly Broken[];
  readonly files: readonly { readonly file: string; readonly ms: number }[];
}

export interface TestResult {
  readonly file: string;
  readonly name: string;
  readonly state: string;
  readonly errors: readonly string[];
}

export interface Broken {
  readonly where: string;
  readonly errors: readonly string[];
}
