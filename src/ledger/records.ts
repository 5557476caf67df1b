import {
  ASSET_COLUMNS,
  CALL_COUNT_COLUMNS,
  CLAIMED_ASSET_COLUMNS,
  FILE_COLUMNS,
  JOB_COLUMNS,
  JOB_KEY_COLUMNS,
  MODEL_CALL_COLUMNS,
  PROMPT_COLUMNS,
  REPLAY_COLUMNS,
  type AssetRow,
  type CallCount,
  type ClaimedAsset,
  type Columns,
  type FileRow,
  type JobKey,
  type JobRow,
  type ModelCallRow,
  type PromptRow,
  type ReplayRow,
} from './columns.ts';

type TextRow = { readonly user: string; readonly id: string; readonly valueJson: string };

/** The rows of a ledger by their kind. `jobKeys` and `assetKeys` are single-use idempotency keys. */
export type RecordRows = {
  readonly prompts: PromptRow;
  readonly jobs: JobRow;
  readonly jobKeys: JobKey;
  readonly files: FileRow;
  readonly assets: AssetRow;
  readonly assetKeys: ClaimedAsset;
  /** One setting of a front end. */
  readonly settings: TextRow;
  /** The labels of one file. */
  readonly assetLabels: TextRow;
  readonly calls: CallCount;
  readonly modelCalls: ModelCallRow;
  readonly replays: ReplayRow;
};

export type RecordKind = keyof RecordRows;

/** One record of a ledger. */
export type StoredRecord = {
  readonly [Kind in RecordKind]: { readonly kind: Kind; readonly row: RecordRows[Kind] };
}[RecordKind];

const TEXT = {
  user: { type: 'text', sql: 'user' },
  id: { type: 'text', sql: 'id' },
  valueJson: { type: 'text', sql: 'value_json' },
} as const;

/**
 * For each kind its columns, its table in SQLite, and the first part of its keys in Redis. Records are read in this
 * order: a record comes before those that it names, which are written earlier. So a copy that is made while servers
 * write names nothing that it lacks, unless that was removed meanwhile.
 */
export const RECORD_KINDS = {
  prompts: { columns: PROMPT_COLUMNS, table: 'prompts', redisKey: 'prompt' },
  jobs: { columns: JOB_COLUMNS, table: 'jobs', redisKey: 'job' },
  jobKeys: { columns: JOB_KEY_COLUMNS, table: 'keys', redisKey: 'key' },
  files: { columns: FILE_COLUMNS, table: 'files', redisKey: 'file' },
  assets: { columns: ASSET_COLUMNS, table: 'assets', redisKey: 'asset' },
  assetKeys: { columns: CLAIMED_ASSET_COLUMNS, table: 'asset_keys', redisKey: 'asset-key' },
  settings: { columns: TEXT, table: 'settings', redisKey: 'settings' },
  assetLabels: { columns: TEXT, table: 'asset_labels', redisKey: 'asset-labels' },
  calls: { columns: CALL_COUNT_COLUMNS, table: 'v1_calls', redisKey: 'call' },
  modelCalls: { columns: MODEL_CALL_COLUMNS, table: 'model_calls', redisKey: 'model-call' },
  replays: { columns: REPLAY_COLUMNS, table: 'model_replays', redisKey: 'replay' },
} as const satisfies {
  readonly [Kind in RecordKind]: {
    readonly columns: Columns<RecordRows[Kind]>;
    readonly table: string;
    readonly redisKey: string;
  };
};

export const KINDS = Object.keys(RECORD_KINDS) as readonly RecordKind[];
