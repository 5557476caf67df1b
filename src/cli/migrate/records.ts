import {
  ASSET_COLUMNS,
  CALL_COUNT_COLUMNS,
  CLAIMED_ASSET_COLUMNS,
  FILE_COLUMNS,
  JOB_COLUMNS,
  MODEL_CALL_COLUMNS,
  PROMPT_COLUMNS,
  REPLAY_COLUMNS,
  type AssetRow,
  type CallCount,
  type Columns,
  type ClaimedAsset,
  type FileRow,
  type JobRow,
  type ModelCallRow,
  type PromptRow,
  type ReplayRow,
} from '../../ledger/columns.ts';

/** The single-use key of a job. `jobId` is null in keys of early versions. */
type JobKeyRow = {
  readonly user: string;
  readonly key: string;
  readonly claimedAtMs: number;
  readonly jobId: string | null;
};

/** The single-use key of an asset. */
type AssetKeyRow = ClaimedAsset & { readonly user: string; readonly key: string };

/** One setting of a front end; the value is a JSON text. */
type SettingRow = {
  readonly user: string;
  readonly id: string;
  readonly valueJson: string;
};

/** The rows of a ledger by their kind. */
export type RecordRows = {
  readonly settings: SettingRow;
  readonly calls: CallCount;
  readonly modelCalls: ModelCallRow;
  readonly replays: ReplayRow;
  readonly assets: AssetRow;
  readonly assetKeys: AssetKeyRow;
  readonly files: FileRow;
  readonly jobs: JobRow;
  readonly jobKeys: JobKeyRow;
  readonly prompts: PromptRow;
};

export type RecordKind = keyof RecordRows;

/** Kinds of single-use keys. */
type KeyKind = 'assetKeys' | 'jobKeys';

type Kinds = {
  readonly [Kind in RecordKind]: {
    readonly columns: Columns<object>;
    readonly id: readonly (keyof RecordRows[Kind])[];
  };
};

const OWNER = { user: { type: 'text', sql: 'user' }, key: { type: 'text', sql: 'key' } } as const;

/** For each kind, its columns and the properties that identify a row. Kinds are copied in this order. */
export const RECORD_KINDS = {
  settings: {
    columns: {
      user: OWNER.user,
      id: { type: 'text', sql: 'id' },
      valueJson: { type: 'text', sql: 'value_json' },
    },
    id: ['user', 'id'],
  },
  calls: { columns: CALL_COUNT_COLUMNS, id: ['user', 'agent', 'clientId', 'route'] },
  modelCalls: { columns: MODEL_CALL_COLUMNS, id: ['requestId'] },
  replays: { columns: REPLAY_COLUMNS, id: ['scope', 'key'] },
  assets: { columns: ASSET_COLUMNS, id: ['id'] },
  assetKeys: { columns: { ...OWNER, ...CLAIMED_ASSET_COLUMNS }, id: ['user', 'key'] },
  files: { columns: FILE_COLUMNS, id: ['user', 'type', 'subfolder', 'filename'] },
  jobs: { columns: JOB_COLUMNS, id: ['id'] },
  jobKeys: {
    columns: {
      ...OWNER,
      claimedAtMs: { type: 'number', sql: 'claimed_at_ms' },
      jobId: { type: 'text', sql: 'job_id' },
    },
    id: ['user', 'key'],
  },
  prompts: { columns: PROMPT_COLUMNS, id: ['key'] },
} as const satisfies Kinds;

/** Returns the properties that identify a row, as one text. */
export function recordId<Kind extends RecordKind>(kind: Kind, row: RecordRows[Kind]): string {
  const values = row as { readonly [name: string]: unknown };
  return JSON.stringify(RECORD_KINDS[kind].id.map((name) => values[name]));
}

/**
 * All records of a ledger that no server has open. Assets, files and jobs are read in their order; so are prompts,
 * done ones first in the order of history. Other kinds are read by id.
 */
export interface LedgerRecords {
  read<Kind extends RecordKind>(kind: Kind): AsyncIterable<RecordRows[Kind]>;
  writeKey<Kind extends KeyKind>(kind: Kind, row: RecordRows[Kind]): Promise<void>;
  /** Returns the id of the ledger whose records are being copied into this one, if there is one. */
  source(): Promise<string | undefined>;
  setSource(ledgerId: string): Promise<void>;
  /** Completes the copy: servers can then open the ledger. */
  release(): Promise<void>;
}
