/**
 * How often one client called one v1 route. A client is identified by user, user agent and client
 * id (or '').
 */
export type CallCount = {
  readonly user: string;
  readonly agent: string;
  readonly clientId: string;
  /** Method and pattern, `GET /history/:id`. */
  readonly route: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
};

export interface CallCountStore {
  /**
   * Adds counts to those of the same client and route; keeps the earliest first call and the latest
   * last call.
   */
  add(rows: readonly CallCount[]): Promise<void>;
  list(): Promise<readonly CallCount[]>;
  /** Removes counts whose last call was before this time. */
  expire(lastBeforeMs: number): Promise<void>;
}
