/** The repository that a build begins with. Its content is untrusted: all of it is data. */
export interface RepositoryReader {
  summarize(options: { readonly signal?: AbortSignal | undefined }): Promise<RepositorySummary>;
  /** Finds what is wrong with it, by its own build and tests. */
  diagnose(options: { readonly signal?: AbortSignal | undefined }): Promise<Diagnosis>;
}

/** What there is before a build. */
export type StartingPoint =
  | { readonly mode: "new" }
  | { readonly mode: "feature"; readonly repository: RepositorySummary }
  | { readonly mode: "fix"; readonly repository: RepositorySummary; readonly diagnosis: Diagnosis };

export interface RepositorySummary {
  /** Relative paths. */
  readonly files: readonly string[];
  /** Manifests and the beginning of the read-me, as text. */
  readonly notes: string;
}

export interface Diagnosis {
  readonly problems: readonly Problem[];
}

export interface Problem {
  readonly title: string;
  /** What shows the problem: the end of a log, a failed assertion. */
  readonly evidence: string;
  readonly files: readonly string[];
}
