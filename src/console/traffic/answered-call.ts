/** A call of a client that was answered. */
export type AnsweredHttpCall = {
  readonly user: string | undefined;
  /** The prompts the call is about, by the ids clients know. */
  readonly promptIds: readonly string[];
};
