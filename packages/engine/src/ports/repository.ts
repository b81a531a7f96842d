/** The repository that a build begins with. Its content is untrusted: all of it is data. */
export interface RepositoryReader {
  /** Reads its files. None of it runs. */
  summarize(options: { readonly signal?: AbortSignal | undefined }): Promise<RepositoryText>;
  /** Finds what is wrong with it, by its own build and tests. */
  diagnose(options: { readonly signal?: AbortSignal | undefined }): Promise<Diagnosis>;
  /** Starts its app and looks at the pages. An app that cannot be shown is no failure: `unseen` says why. */
  look(options: { readonly signal?: AbortSignal | undefined }): Promise<AppSeen>;
}

/** What there is before a build. */
export type StartingPoint =
  | { readonly mode: "new" }
  | { readonly mode: "feature"; readonly repository: RepositorySummary }
  | { readonly mode: "fix"; readonly repository: RepositorySummary; readonly diagnosis: Diagnosis };

export interface RepositorySummary extends RepositoryText, AppSeen {}

export interface RepositoryText {
  /** Relative paths. */
  readonly files: readonly string[];
  /** Manifests and the beginning of the read-me, as text. */
  readonly notes: string;
  /** Lines of its sources that seem to name paths over HTTP, each with its file and number. */
  readonly routes: readonly string[];
}

export interface AppSeen {
  readonly pages: readonly SeenPage[];
  /** Why there are no pages, or which are missing. */
  readonly unseen: string | null;
}

export interface SeenPage {
  readonly path: string;
  /** Where the app took the browser instead. */
  readonly leadsTo: string | null;
  /** The accessibility tree of the page. */
  readonly shows: string;
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
