/** How often one client called one v1 route; who it is by user, user agent and client id (or ''). */
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
  /** Adds to what is counted of the same client and route: earliest first, latest last. */
  add(rows: readonly CallCount[]): Promise<void>;
  list(): Promise<readonly CallCount[]>;
  /** Forgets what was last called before. */
  expire(lastBeforeMs: number): Promise<void>;
}
