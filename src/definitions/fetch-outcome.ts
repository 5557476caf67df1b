/** Validators that the source sent with a version, for conditional requests. */
export type Validators = { readonly etag?: string; readonly lastModified?: string };

/** A text of definitions and where it came from. */
export type DefinitionsText = {
  readonly bytes: Buffer;
  /** Index of the address that had it. Addresses may carry secrets, and this is stored on disk. */
  readonly from: number;
  readonly validators: Validators;
};

/** Result of one fetch. */
export type FetchOutcome =
  | ({ readonly kind: 'text' } & DefinitionsText)
  | { readonly kind: 'same' }
  /** It is there, and has no definitions. */
  | { readonly kind: 'none'; readonly reason: string }
  /** It wants a key, or another one. */
  | { readonly kind: 'locked'; readonly reason: string }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      readonly retryAfterMs?: number;
      /** It did answer: it is not down, it only does badly at this. */
      readonly isReachable?: true;
    };
