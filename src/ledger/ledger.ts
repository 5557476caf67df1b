import type { CallCountStore } from './call-counts.ts';
import type { AssetClaim, ClaimedAsset, KeyStore } from './idempotency-keys.ts';
import type { ModelCallStore, ReplayStore } from './model-records.ts';

export type { CallCount, CallCountStore as CallStore } from './call-counts.ts';
export type { AssetClaim, ClaimedAsset, KeyStore } from './idempotency-keys.ts';
export type {
  ModelCallRow,
  ModelCallStore,
  ReplayHolder,
  ReplayRow,
  ReplayStore,
} from './model-records.ts';

/**
 * The records that must survive `kill -9`. Every promise resolves only when its change is durable.
 * Texts named `…Json` are stored as they are; no column ever holds a credential.
 */
export interface Ledger {
  readonly prompts: PromptStore;
  readonly files: FileStore;
  readonly jobs: JobStore;
  readonly assets: AssetStore;
  readonly keys: KeyStore;
  readonly settings: SettingStore;
  readonly replays: ReplayStore;
  readonly modelCalls: ModelCallStore;
  readonly calls: CallCountStore;
  close(): Promise<void>;
}

/**
 * `submitting`: not acknowledged to the client yet; `outbox`: accepted, waits for capacity of the
 * upstream; `unknown`: it is not known if the upstream accepted it, and the client knows that.
 */
type PromptState = 'submitting' | 'outbox' | 'unknown' | 'live' | 'done';

/**
 * One accepted `POST /prompt`. `key` is internal, and the v2 idempotency key; `promptId` is the id
 * that the v1 client was given.
 */
export type PromptRow = {
  readonly key: string;
  readonly user: string;
  readonly promptId: string;
  readonly jobId: string | null;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly graphJson: string;
  readonly extraDataJson: string;
  /** `outputs_to_execute`, a JSON array of node ids. */
  readonly targetsJson: string;
  readonly state: PromptState;
  /** The data to submit it once more, beside the graph; it never contains secrets. */
  readonly intentJson: string;
  /** When a client asked to cancel it. */
  readonly cancelAskedAtMs: number | null;
  /** The v1 history entry, once done. */
  readonly entryJson: string | null;
  /** The final status of `GET /api/job/{id}/status`, once done. */
  readonly statusWord: string | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
};

export type PromptOutcome = {
  readonly entryJson: string;
  readonly statusWord: string;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number;
  /** Shorter texts that replace its graph and extra data in history. */
  readonly shortened?: Pick<PromptRow, 'graphJson' | 'extraDataJson'>;
};

/** A done prompt without its texts, which may be large. */
export type PromptOutline = Pick<
  PromptRow,
  'key' | 'promptId' | 'statusWord' | 'createdAtMs' | 'startedAtMs' | 'endedAtMs'
> & {
  /** Bytes of its stored texts; 0 when an earlier version wrote it without counting them. */
  readonly storedBytes: number;
};

/** The size limits of each user's history; the newest entry is always retained. */
export type HistoryLimits = { readonly count: number; readonly bytes: number };

/** The properties that a prompt gets from its job. */
export type LinkedJob = Pick<PromptRow, 'promptId' | 'jobId' | 'targetsJson'> & {
  readonly graphJson?: string;
};

export type PromptIntent = Pick<PromptRow, 'intentJson' | 'targetsJson'>;

/** Only the leader of a prompt may write its progress; writes of other processes are refused. */
export interface PromptStore {
  insert(row: PromptRow): Promise<void>;
  /** For a prompt without a job: changes its state. */
  setState(key: string, state: 'outbox' | 'unknown'): Promise<void>;
  /** For a prompt without a job: changes how it is submitted. */
  setIntent(key: string, intent: PromptIntent): Promise<void>;
  askCancel(key: string, atMs: number): Promise<void>;
  /**
   * The v2 job exists: the prompt becomes `live`. Without a graph in the patch it keeps its own.
   */
  linkJob(key: string, patch: LinkedJob): Promise<void>;
  /** The v2 job is gone and never began: the prompt becomes `outbox` again, with this intent. */
  unlinkJob(key: string, intent: PromptIntent): Promise<void>;
  /** The v2 job has begun; only the first call has an effect. */
  begin(key: string, atMs: number): Promise<void>;
  /** Removes a prompt whose submission was definitively refused. */
  remove(key: string): Promise<void>;
  finish(key: string, outcome: PromptOutcome): Promise<void>;
  /** Unfinished prompts, oldest first, of one user or of all. */
  live(user?: string): Promise<readonly PromptRow[]>;
  /** The newest row of that id. */
  find(user: string, promptId: string): Promise<PromptRow | undefined>;
  findByJob(user: string, jobId: string): Promise<PromptRow | undefined>;
  /** True when a prompt of any user, live or done, has that job. */
  hasJob(jobId: string): Promise<boolean>;
  /** Done rows in completion order. `maxItems` without `offset` gives the newest, still oldest first. */
  history(
    user: string,
    page: { maxItems?: number; offset?: number },
  ): Promise<readonly PromptRow[]>;
  /** All done prompts in completion order; cheap enough to be polled. */
  outlines(user: string): Promise<readonly PromptOutline[]>;
  get(key: string): Promise<PromptRow | undefined>;
  deleteHistory(user: string, promptIds: readonly string[]): Promise<void>;
  clearHistory(user: string): Promise<void>;
  /** The history entries of done prompts, in the order of the keys; null for those without one. */
  entries(keys: readonly string[]): Promise<readonly (string | null)[]>;
  /** Deletes the oldest done rows of each user whose history exceeds the limits. */
  pruneHistory(limits: HistoryLimits): Promise<void>;
  /** Largest absolute `number` that may come from the counter, or -1: clients may send 1e300. */
  highestNumber(): Promise<number>;
}

export type FileType = 'input' | 'output' | 'temp';

/** A v1 file name and the asset behind it. Unique by (user, type, subfolder, filename). */
export type FileRow = {
  readonly user: string;
  readonly type: FileType;
  readonly subfolder: string;
  readonly filename: string;
  readonly assetId: string;
  readonly hash: string | null;
  readonly sizeBytes: number;
  readonly contentType: string;
  readonly modifiedAtMs: number;
};

export interface FileStore {
  /** Inserts or replaces. */
  put(row: FileRow): Promise<void>;
  /** Inserts unless the name is taken; false when it was. */
  claim(row: FileRow): Promise<boolean>;
  get(
    user: string,
    name: Pick<FileRow, 'type' | 'subfolder' | 'filename'>,
  ): Promise<FileRow | undefined>;
  byAsset(user: string, assetId: string): Promise<FileRow | undefined>;
  /** The newest of that name in any folder; of equal age, the one recorded last. */
  newestNamed(user: string, name: Pick<FileRow, 'type' | 'filename'>): Promise<FileRow | undefined>;
  /** Newest first. */
  list(user: string, type: FileType): Promise<readonly FileRow[]>;
  remove(user: string, name: Pick<FileRow, 'type' | 'subfolder' | 'filename'>): Promise<void>;
}

/** A job of the embedded engine. The JSON texts are the engine's own business. */
export type JobRow = {
  readonly id: string;
  readonly user: string;
  readonly status: string;
  readonly order: number;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly completedAtMs: number | null;
  readonly expiresAtMs: number;
  readonly workflowJson: string;
  readonly provenanceJson: string | null;
  readonly metadataJson: string | null;
  readonly outputsJson: string;
  readonly errorJson: string | null;
  readonly extrasJson: string | null;
};

export interface JobStore {
  /** Claims the single-use key in the same transaction; `false`: it was used, nothing is inserted. */
  insert(row: JobRow, idempotencyKey?: string): Promise<boolean>;
  update(id: string, patch: Partial<Omit<JobRow, 'id' | 'user'>>): Promise<void>;
  get(id: string): Promise<JobRow | undefined>;
  /** Newest first, `before` is the id of the last row of the page before. */
  list(user: string, page: { limit: number; before?: string }): Promise<readonly JobRow[]>;
  /** `queued`, `running`, `canceling`, by `order`, then age. */
  unfinished(): Promise<readonly JobRow[]>;
  /** Terminal rows whose retention ended at or before `nowMs`. */
  expiredBy(nowMs: number): Promise<readonly JobRow[]>;
  remove(id: string): Promise<void>;
}

export type AssetRow = {
  readonly id: string;
  readonly user: string;
  readonly hash: string;
  readonly sizeBytes: number;
  readonly contentType: string;
  readonly filePath: string;
  readonly tagsJson: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly jobId: string | null;
};

export interface AssetStore {
  /**
   * Claims the key in the same transaction. When another request of the user has the key, returns
   * that claim and inserts nothing.
   */
  insert(row: AssetRow, claim?: AssetClaim): Promise<ClaimedAsset | undefined>;
  get(id: string): Promise<AssetRow | undefined>;
  byHash(user: string, hash: string): Promise<AssetRow | undefined>;
  byFilePath(user: string, filePath: string): Promise<AssetRow | undefined>;
  ofJob(jobId: string): Promise<readonly AssetRow[]>;
  /** Names of this user's job outputs that start with `prefix`; for v1's file counter. */
  outputPaths(user: string, prefix: string): Promise<readonly string[]>;
  expiredBy(nowMs: number): Promise<readonly AssetRow[]>;
  /** Oldest first, for the disk budget. */
  oldest(limit: number): Promise<readonly AssetRow[]>;
  /** Also removes v1's names for it; the name of an output stays reserved, but is not listed. */
  remove(id: string): Promise<void>;
  /** How many records share these bytes. */
  countByHash(hash: string): Promise<number>;
  /** Bytes on disk: each hash once. */
  totalBytes(): Promise<number>;
}

export interface SettingStore {
  all(user: string): Promise<{ readonly [id: string]: string }>;
  /** Shallow merge; values are JSON texts. */
  merge(user: string, settings: { readonly [id: string]: string }): Promise<void>;
}
