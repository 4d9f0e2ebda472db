// What every import leaves as it ends: its report, and its rejects.

/** The history entry and the rejects with which an import ends. */
export interface Conclusion {
  /** JSON text of the import's report. */
  readonly report: string;
  readonly historyCap: number;
  /** JSON texts: a header, then the rejects; none leaves those of the import before. */
  readonly rejects: readonly string[];
}
