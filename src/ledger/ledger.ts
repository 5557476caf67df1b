import type { Durability, FilesOnDisk } from '../lib/durability.ts';
import type { RecordRows } from './records.ts';
import type {
  AssetRow,
  CallCount,
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
 * The records that must survive `kill -9`. A promise resolves when its change has the requested durability. A power
 * cut may lose a write that is not synced, and all later writes with it, so that the ledger is as it was at an earlier
 * moment. The ledger in Redis ignores the requested durability and has that of Redis. Texts named `…Json` are stored
 * unchanged. No column may contain a credential.
 */
export interface Ledger {
  readonly prompts: PromptStore;
  readonly files: FileStore;
  readonly jobs: JobStore;
  readonly assets: AssetStore;
  readonly keys: KeyStore;
  readonly settings: SettingStore;
  /** The names, tags and metadata that users gave to their files, by type, folder and name. */
  readonly assetLabels: LabelStore;
  readonly replays: ReplayStore;
  readonly modelCalls: ModelCallStore;
  readonly calls: CallStore;
  /** Resolves when every write that survives `kill -9` now survives a power cut, too. */
  synced(): Promise<void>;
  close(): Promise<void>;
}

export type PromptOutcome = PromptEnd & {
  readonly entryJson: string;
  readonly statusWord: string;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number;
  /** Shorter texts that replace the graph and extra data of the prompt in history. */
  readonly shortened?: { readonly graphJson: string; readonly extraDataJson: string };
};

/** The size limits of each user's history; the newest entry is always retained. */
export type HistoryLimits = { readonly count: number; readonly bytes: number };

/** Which prompts a change is for; all other prompts stay as they are. `unlinked`: unfinished, and without a job. */
export type ChangedPrompts = 'unfinished' | 'unlinked' | 'live';

/** Only the leader of a prompt may write its progress; writes of other processes are refused. */
export interface PromptStore {
  insert(row: PromptRow, durability?: Durability): Promise<void>;
  /** Changes a prompt if it is one of these. Properties that are `undefined` stay. */
  update(
    key: string,
    only: ChangedPrompts,
    change: Partial<Omit<PromptRow, 'key' | 'user'>>,
    durability?: Durability,
  ): Promise<void>;
  askCancel(key: string, atMs: number): Promise<void>;
  /**
   * Records when the v2 job began, with the durability `soon`; only the first call has an effect. A job that has begun is
   * never sent again.
   */
  begin(key: string, atMs: number): Promise<void>;
  /** Removes a prompt whose submission was refused for good. */
  remove(key: string): Promise<void>;
  finish(key: string, outcome: PromptOutcome, durability?: Durability): Promise<void>;
  /** Unfinished prompts, oldest first, of one user or of all. */
  live(user?: string): Promise<readonly PromptRow[]>;
  /** Keys of the unfinished prompts of a user, oldest first. */
  liveKeys(user: string): Promise<readonly string[]>;
  /** The newest row with that id. */
  find(user: string, promptId: string): Promise<PromptRow | undefined>;
  findByJob(user: string, jobId: string): Promise<PromptRow | undefined>;
  /** True when a prompt of any user, live or done, has that job. */
  hasJob(jobId: string): Promise<boolean>;
  /** All done prompts in completion order. Front ends poll it, so it must be fast. */
  outlines(user: string): Promise<readonly PromptOutline[]>;
  get(key: string): Promise<PromptRow | undefined>;
  deleteHistory(user: string, promptIds: readonly string[]): Promise<void>;
  clearHistory(user: string): Promise<void>;
  /** The history entries of prompts of one user, in the order of the keys; null for a prompt that has none. */
  entries(keys: readonly string[]): Promise<readonly (string | null)[]>;
  /** Deletes the oldest done rows of each user whose history exceeds the limits. */
  pruneHistory(limits: HistoryLimits): Promise<void>;
  /** The largest absolute `number` that may come from the counter, or -1. Numbers above 1e9, which clients send, are ignored. */
  highestNumber(): Promise<number>;
}

/** Which file of a user. */
export type FilePlace = Pick<FileRow, 'type' | 'subfolder' | 'filename'>;

export interface FileStore {
  /** Inserts or replaces. */
  put(row: FileRow, durability?: Durability): Promise<void>;
  /** Inserts unless the name is taken; false when it was. */
  claim(row: FileRow, durability?: Durability): Promise<boolean>;
  get(user: string, name: FilePlace): Promise<FileRow | undefined>;
  byAsset(user: string, assetId: string): Promise<FileRow | undefined>;
  /** Newest first; equally old files in the reverse of the order in which they were recorded. */
  list(user: string, type: FileType): Promise<readonly FileRow[]>;
  remove(user: string, name: FilePlace): Promise<void>;
}

export interface JobStore {
  /**
   * Inserts the job and claims the single-use key in one transaction. Returns false and inserts nothing when the key
   * was used. A key that equals the id of the job counts as used once the job exists.
   */
  insert(row: JobRow, idempotencyKey?: string, durability?: Durability): Promise<boolean>;
  /** With `files`, the change is not synced before these files are on the disk. */
  update(
    id: string,
    patch: Partial<Omit<JobRow, 'id' | 'user'>>,
    durability?: Durability,
    files?: FilesOnDisk,
  ): Promise<void>;
  get(id: string): Promise<JobRow | undefined>;
  /** Newest first. `before`: the id of the last row of the previous page. */
  list(user: string, page: { limit: number; before?: string }): Promise<readonly JobRow[]>;
  /** Jobs in the states `queued`, `running` and `canceling`, by `order`, then oldest first. */
  unfinished(): Promise<readonly JobRow[]>;
  /** Ended jobs whose retention ended at or before `nowMs`. */
  expiredBy(nowMs: number): Promise<readonly JobRow[]>;
  remove(id: string): Promise<void>;
}

export interface AssetStore {
  /**
   * Inserts the asset and claims the key in one transaction. Returns false, and inserts nothing, when the user has used
   * the key for an asset before. A key for a job may have the same text.
   */
  insert(row: AssetRow, idempotencyKey?: string, durability?: Durability): Promise<boolean>;
  get(id: string): Promise<AssetRow | undefined>;
  byHash(user: string, hash: string): Promise<AssetRow | undefined>;
  byFilePath(user: string, filePath: string): Promise<AssetRow | undefined>;
  ofJob(jobId: string): Promise<readonly AssetRow[]>;
  /** File paths of this user's job outputs that start with `prefix`, for the numbers in v1's file names. */
  outputPaths(user: string, prefix: string): Promise<readonly string[]>;
  expiredBy(nowMs: number): Promise<readonly AssetRow[]>;
  /** Oldest first, for the disk budget. */
  oldest(limit: number): Promise<readonly AssetRow[]>;
  /** Also removes the v1 names of the asset. The name of an output stays reserved, but is not listed. */
  remove(id: string): Promise<void>;
  /** The number of records with these bytes. */
  countByHash(hash: string): Promise<number>;
  /** The bytes of all assets; bytes that several records share count once. */
  totalBytes(): Promise<number>;
}

export interface SettingStore {
  all(user: string): Promise<{ readonly [id: string]: string }>;
  /** Sets the given settings and keeps the others; values are JSON texts. */
  merge(user: string, settings: { readonly [id: string]: string }): Promise<void>;
}

export interface LabelStore extends SettingStore {
  remove(user: string, id: string): Promise<void>;
}

type KeyKind = 'jobKeys' | 'assetKeys';

/** Single-use idempotency keys. */
export interface KeyStore {
  /** Stores a key of a backup, whose job or asset may be gone. */
  put(kind: KeyKind, row: RecordRows[KeyKind]): Promise<void>;
  /** Removes the keys of jobs and assets that were claimed before this time. */
  expire(claimedBeforeMs: number): Promise<void>;
}

export interface CallStore {
  /**
   * Adds the counts to those of the same client and route. Keeps the earliest `firstAtMs` and the latest
   * `lastAtMs`.
   */
  add(rows: readonly CallCount[]): Promise<void>;
  list(): Promise<readonly CallCount[]>;
  /** Removes counts whose last call was before this time. */
  expire(lastBeforeMs: number): Promise<void>;
}

/** The end of a call: `recorded` with its answer, or `consumed` without one. */
export type ReplayEnd = Pick<ReplayRow, 'state' | 'atMs' | 'status' | 'contentType' | 'body'>;

/** Identifies a reservation: `requestId` distinguishes it from a later reservation of the same key. */
export type ReplayHolder = Pick<ReplayRow, 'scope' | 'key' | 'requestId'>;

export interface ReplayStore {
  /**
   * Reserves a key that is free or was reserved before `freeBeforeMs`, and returns `undefined`. Otherwise returns
   * the existing row.
   */
  reserve(
    row: ReplayHolder & { readonly fingerprint: string; readonly atMs: number },
    freeBeforeMs: number,
  ): Promise<ReplayRow | undefined>;
  settle(holder: ReplayHolder, end: ReplayEnd): Promise<void>;
  release(holder: ReplayHolder): Promise<void>;
  /** Frees the keys reserved before this time. */
  expire(beforeMs: number): Promise<void>;
  /** The bytes of all recorded answers. */
  recordedBytes(): Promise<number>;
}

export interface ModelCallStore {
  insert(row: ModelCallRow): Promise<void>;
  /** Changes the record of a call whose answer did not reach the caller completely. */
  amend(requestId: string, patch: Pick<ModelCallRow, 'errorType' | 'chargedCents'>): Promise<void>;
  get(requestId: string): Promise<ModelCallRow | undefined>;
  chargedCents(workspace: string): Promise<number>;
  /** Removes calls that ended before this time and were charged nothing. */
  expire(beforeMs: number): Promise<void>;
}
