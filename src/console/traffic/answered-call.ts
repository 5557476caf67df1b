/** A client's call that was answered. */
export type AnsweredHttpCall = {
  readonly user: string | undefined;
  /** The prompts that the call is about, by the ids that clients know. */
  readonly promptIds: readonly string[];
};
