/** `reserved` while its call runs; `consumed`: done and charged, but the answer is not stored. */
type ReplayState = 'reserved' | 'recorded' | 'consumed';

/** An `Idempotency-Key` of the model router, by workspace, and the answer to its call. */
export type ReplayRow = {
  readonly scope: string;
  readonly key: string;
  /** Equal when the same request is sent again. */
  readonly fingerprint: string;
  readonly requestId: string;
  readonly state: ReplayState;
  /** When it was reserved, then when it was answered. */
  readonly atMs: number;
  readonly status: number | null;
  readonly contentType: string | null;
  readonly body: Uint8Array | null;
};

type ReplayAnswer = {
  readonly atMs: number;
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array;
};

/** Distinguishes a reservation from a later one of the same key. */
export type ReplayHolder = Pick<ReplayRow, 'scope' | 'key' | 'requestId'>;

export interface ReplayStore {
  /**
   * Reserves a key that is free or was reserved before `freeBeforeMs`; otherwise returns the
   * existing row.
   */
  reserve(
    row: Pick<ReplayRow, 'scope' | 'key' | 'fingerprint' | 'requestId' | 'atMs'>,
    freeBeforeMs: number,
  ): Promise<ReplayRow | undefined>;
  record(holder: ReplayHolder, answer: ReplayAnswer): Promise<void>;
  consume(holder: ReplayHolder, atMs: number): Promise<void>;
  release(holder: ReplayHolder): Promise<void>;
  /** Frees the keys reserved before this time. */
  expire(beforeMs: number): Promise<void>;
  /** Bytes of all recorded answers. */
  recordedBytes(): Promise<number>;
}

/** Audit record of one call of a model; `errorType` is null when it was answered with a result. */
export type ModelCallRow = {
  readonly requestId: string;
  readonly workspace: string;
  readonly user: string;
  readonly model: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly status: number;
  readonly errorType: string | null;
  readonly chargedCents: number;
  readonly replayed: boolean;
};

export interface ModelCallStore {
  insert(row: ModelCallRow): Promise<void>;
  /** The answer did not reach the caller, or not all of it. */
  amend(requestId: string, patch: Pick<ModelCallRow, 'errorType' | 'chargedCents'>): Promise<void>;
  get(requestId: string): Promise<ModelCallRow | undefined>;
  chargedCents(workspace: string): Promise<number>;
  /** Removes calls that ended before this time and were charged nothing. */
  expire(beforeMs: number): Promise<void>;
}
