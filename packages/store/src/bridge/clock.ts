export interface Clock {
  readonly now: () => number;
}
