/** What can be measured of a page, and the highest limit that a check may set. */
export const performanceMetrics = {
  firstByteMs: 60_000,
  largestPaintMs: 60_000,
  interactionMs: 60_000,
  transferKilobytes: 1_000_000,
  layoutShift: 10,
} as const satisfies Record<string, number>;

export type PerformanceMetric = keyof typeof performanceMetrics;
