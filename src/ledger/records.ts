import {
  ASSET_COLUMNS,
  CALL_COUNT_COLUMNS,
  FILE_COLUMNS,
  JOB_COLUMNS,
  KEY_COLUMNS,
  MODEL_CALL_COLUMNS,
  PROMPT_COLUMNS,
  REPLAY_COLUMNS,
  TEXT_COLUMNS,
  type RowOf,
} from './columns.ts';

/**
 * For each kind its columns, its table in SQLite, and the first part of its keys in Redis. Records are read in this
 * order: a record comes before those that it names, which are written earlier. So a copy that is made while servers
 * write names nothing that it lacks, unless that was removed meanwhile.
 */
export const RECORD_KINDS = {
  prompts: { columns: PROMPT_COLUMNS, table: 'prompts', redisKey: 'prompt' },
  jobs: { columns: JOB_COLUMNS, table: 'jobs', redisKey: 'job' },
  jobKeys: { columns: KEY_COLUMNS, table: 'keys', redisKey: 'key' },
  files: { columns: FILE_COLUMNS, table: 'files', redisKey: 'file' },
  assets: { columns: ASSET_COLUMNS, table: 'assets', redisKey: 'asset' },
  assetKeys: { columns: KEY_COLUMNS, table: 'asset_keys', redisKey: 'asset-key' },
  /** One setting of a front end. */
  settings: { columns: TEXT_COLUMNS, table: 'settings', redisKey: 'settings' },
  /** The labels of one file. */
  assetLabels: { columns: TEXT_COLUMNS, table: 'asset_labels', redisKey: 'asset-labels' },
  calls: { columns: CALL_COUNT_COLUMNS, table: 'v1_calls', redisKey: 'call' },
  modelCalls: { columns: MODEL_CALL_COLUMNS, table: 'model_calls', redisKey: 'model-call' },
  replays: { columns: REPLAY_COLUMNS, table: 'model_replays', redisKey: 'replay' },
} as const;

export type RecordKind = keyof typeof RECORD_KINDS;

export const KINDS = Object.keys(RECORD_KINDS) as readonly RecordKind[];

/** The rows of a ledger by their kind. */
export type RecordRows = {
  readonly [Kind in RecordKind]: RowOf<(typeof RECORD_KINDS)[Kind]['columns']>;
};

/** One record of a ledger. */
export type StoredRecord = {
  readonly [Kind in RecordKind]: { readonly kind: Kind; readonly row: RecordRows[Kind] };
}[RecordKind];
