import type { Durability, FilesOnDisk } from '../lib/durability.ts';
import type {
  AssetRow,
  CallCount,
  ClaimedAsset,
  FileRow,
  FileType,
  JobRow,
  ModelCallRow,
  PromptEnd,
  PromptOutline,
  PromptRow,
  ReplayRow,
} from './columns.ts';

export type * from './columns.ts';

/**
 * The records that must survive `kill -9`. Every promise resolves only when its change is as durable as
 * asked. A power cut may take a write that is not synced yet, and with it every later one, so that
 * the ledger is as it was at an earlier moment. The ledger in Redis has one
 * durability, that of Redis. Texts named `…Json` are stored as they are; no column ever holds a credential.
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
  readonly calls: CallStore;
  /** Resolves when every write that is visible now survives `kill -9`. */
  committed(): Promise<void>;
  /** Resolves when every write that survives `kill -9` now survives a power cut, too. */
  synced(): Promise<void>;
  close(): Promise<void>;
}

export type PromptOutcome = PromptEnd & {
  readonly entryJson: string;
  readonly statusWord: string;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number;
  /** Shorter texts that replace its graph and extra data in history. */
  readonly shortened?: Pick<PromptRow, 'graphJson' | 'extraDataJson'>;
};

/** The size limits of each user's history; the newest entry is always retained. */
export type HistoryLimits = { readonly count: number; readonly bytes: number };

/** The properties that a prompt gets from its job. */
export type LinkedJob = Pick<PromptRow, 'promptId' | 'jobId' | 'targetsJson'> & {
  readonly graphJson?: string;
};

/** The plan by which a prompt is sent, as it is stored beside its graph. */
export type StoredPlan = Pick<PromptRow, 'intentJson' | 'targetsJson'>;

/** Only the leader of a prompt may write its progress; writes of other processes are refused. */
export interface PromptStore {
  insert(row: PromptRow): Promise<void>;
  /**
   * The same, but resolves as soon as every later write of this process is stored after it. `stored`
   * resolves or rejects when it is written, with the durability of the writes it is stored with.
   */
  insertBeforeLater(row: PromptRow): Promise<{ readonly stored: Promise<void> }>;
  /** For a prompt without a job: changes its state. */
  setState(key: string, state: 'outbox' | 'unknown'): Promise<void>;
  /** For a prompt without a job: changes how it is submitted. */
  setPlan(key: string, plan: StoredPlan): Promise<void>;
  askCancel(key: string, atMs: number): Promise<void>;
  /**
   * The v2 job exists: the prompt becomes `live`. Without a graph in the patch it keeps its own.
   */
  linkJob(key: string, patch: LinkedJob, durability?: Durability): Promise<void>;
  /** The v2 job is gone and never began: the prompt becomes `outbox` again, with this plan. */
  unlinkJob(key: string, plan: StoredPlan): Promise<void>;
  /** The v2 job has begun; only the first call has an effect. */
  begin(key: string, atMs: number, durability?: Durability): Promise<void>;
  /** Removes a prompt whose submission was definitively refused. */
  remove(key: string): Promise<void>;
  finish(key: string, outcome: PromptOutcome, durability?: Durability): Promise<void>;
  /** Unfinished prompts, oldest first, of one user or of all. */
  live(user?: string): Promise<readonly PromptRow[]>;
  /** Keys of the unfinished prompts of a user, oldest first. */
  liveKeys(user: string): Promise<readonly string[]>;
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
  /** The history entries of done prompts of one user, in the order of the keys; null for those without one. */
  entries(keys: readonly string[]): Promise<readonly (string | null)[]>;
  /** Deletes the oldest done rows of each user whose history exceeds the limits. */
  pruneHistory(limits: HistoryLimits): Promise<void>;
  /** Largest absolute `number` that may come from the counter, or -1: clients may send 1e300. */
  highestNumber(): Promise<number>;
}

export interface FileStore {
  /** Inserts or replaces. */
  put(row: FileRow, durability?: Durability): Promise<void>;
  /** Inserts unless the name is taken; false when it was. */
  claim(row: FileRow, durability?: Durability): Promise<boolean>;
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

export interface JobStore {
  /**
   * Claims the single-use key in the same transaction; `false`: it was used, nothing is inserted. A key
   * that is the id of the job is used as soon as there is such a job.
   */
  insert(row: JobRow, idempotencyKey?: string, durability?: Durability): Promise<boolean>;
  /** With `files` the change is not synced before they are on the disk. */
  update(
    id: string,
    patch: Partial<Omit<JobRow, 'id' | 'user'>>,
    durability?: Durability,
    files?: FilesOnDisk,
  ): Promise<void>;
  get(id: string): Promise<JobRow | undefined>;
  /** Newest first, `before` is the id of the last row of the page before. */
  list(user: string, page: { limit: number; before?: string }): Promise<readonly JobRow[]>;
  /** `queued`, `running`, `canceling`, by `order`, then age. */
  unfinished(): Promise<readonly JobRow[]>;
  /** Terminal rows whose retention ended at or before `nowMs`. */
  expiredBy(nowMs: number): Promise<readonly JobRow[]>;
  remove(id: string): Promise<void>;
}

export interface AssetStore {
  /**
   * Claims the key in the same transaction. When another request of the user has the key, returns
   * that claim and inserts nothing.
   */
  insert(
    row: AssetRow,
    claim?: AssetClaim,
    durability?: Durability,
  ): Promise<ClaimedAsset | undefined>;
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

/** A single-use key for one new asset, and which request it came with. */
export type AssetClaim = Pick<ClaimedAsset, 'fingerprint' | 'createdNew'> & {
  readonly key: string;
};

/** Single-use idempotency keys. */
export interface KeyStore {
  /** Of assets; the keys of jobs are apart from them. */
  ofAsset(user: string, key: string): Promise<ClaimedAsset | undefined>;
  /** Of jobs and assets. */
  expire(claimedBeforeMs: number): Promise<void>;
}

export interface CallStore {
  /**
   * Adds counts to those of the same client and route; keeps the earliest first call and the latest
   * last call.
   */
  add(rows: readonly CallCount[]): Promise<void>;
  list(): Promise<readonly CallCount[]>;
  /** Removes counts whose last call was before this time. */
  expire(lastBeforeMs: number): Promise<void>;
}

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

export interface ModelCallStore {
  insert(row: ModelCallRow): Promise<void>;
  /** The answer did not reach the caller, or not all of it. */
  amend(requestId: string, patch: Pick<ModelCallRow, 'errorType' | 'chargedCents'>): Promise<void>;
  get(requestId: string): Promise<ModelCallRow | undefined>;
  chargedCents(workspace: string): Promise<number>;
  /** Removes calls that ended before this time and were charged nothing. */
  expire(beforeMs: number): Promise<void>;
}
