/** Of one fetch of definitions. */
export type FetchLimits = Readonly<typeof FETCH_LIMITS>;

export const FETCH_LIMITS = {
  connectTimeoutMs: 5_000,
  /** Making the list takes some servers seconds. */
  headersTimeoutMs: 30_000,
  /** Silence allowed inside the body. */
  bodyIdleTimeoutMs: 30_000,
  /** For the whole answer, however steadily it drips. */
  wholeTimeoutMs: 180_000,
  /** Larger answers are refused; bytes after decompression. */
  maxBytes: 64 * 1024 * 1024,
};
