import type {
  AssetRow,
  CallCount,
  ClaimedAsset,
  FileRow,
  JobRow,
  ModelCallRow,
  PromptRow,
  ReplayRow,
} from './ledger.ts';

/** A flag is 1 or 0 in SQLite, and '1' or an empty text in Redis. */
export type ColumnType = 'text' | 'number' | 'flag' | 'bytes';

/**
 * How one property of a row is stored. In Redis the hash field has the name of the property. `sql` is
 * the name of the SQLite column.
 */
export type Column = {
  readonly type: ColumnType;
  readonly sql: string;
  /** SQL type of a column that the migrations do not create: SQLite adds it at the next start. */
  readonly added?: string;
};

/** The columns of a record, by the property of its row; both ledgers are generated from it. */
export type Columns<Row> = { readonly [Name in keyof Row]-?: Column };

/**
 * To add a property to a prompt's record, add it to `PromptRow` and here, for example
 * `note: { ...text('note'), added: 'TEXT' }`: `added` makes SQLite add the column to older files. It
 * must be nullable, or its `added` must have a default, because older rows have no value. The compiler
 * then names the two functions that make rows.
 */
export const PROMPT_COLUMNS = {
  key: text('key'),
  user: text('user'),
  promptId: text('prompt_id'),
  jobId: text('job_id'),
  number: number('number'),
  clientId: text('client_id'),
  createdAtMs: number('created_at_ms'),
  graphJson: text('graph_json'),
  extraDataJson: text('extra_data_json'),
  targetsJson: text('targets_json'),
  state: text('state'),
  intentJson: text('intent_json'),
  cancelAskedAtMs: number('cancel_asked_at_ms'),
  entryJson: text('entry_json'),
  statusWord: text('status_word'),
  startedAtMs: number('started_at_ms'),
  endedAtMs: number('ended_at_ms'),
} as const satisfies Columns<PromptRow>;

export const FILE_COLUMNS = {
  user: text('user'),
  type: text('type'),
  subfolder: text('subfolder'),
  filename: text('filename'),
  assetId: text('asset_id'),
  hash: text('hash'),
  sizeBytes: number('size_bytes'),
  contentType: text('content_type'),
  modifiedAtMs: number('modified_at_ms'),
} as const satisfies Columns<FileRow>;

export const JOB_COLUMNS = {
  id: text('id'),
  user: text('user'),
  status: text('status'),
  order: number('turn'),
  createdAtMs: number('created_at_ms'),
  startedAtMs: number('started_at_ms'),
  completedAtMs: number('completed_at_ms'),
  expiresAtMs: number('expires_at_ms'),
  workflowJson: text('workflow_json'),
  provenanceJson: text('provenance_json'),
  metadataJson: text('metadata_json'),
  outputsJson: text('outputs_json'),
  errorJson: text('error_json'),
  extrasJson: text('extras_json'),
} as const satisfies Columns<JobRow>;

export const ASSET_COLUMNS = {
  id: text('id'),
  user: text('user'),
  hash: text('hash'),
  sizeBytes: number('size_bytes'),
  contentType: text('content_type'),
  filePath: text('file_path'),
  tagsJson: text('tags_json'),
  createdAtMs: number('created_at_ms'),
  expiresAtMs: number('expires_at_ms'),
  jobId: text('job_id'),
} as const satisfies Columns<AssetRow>;

export const CLAIMED_ASSET_COLUMNS = {
  assetId: text('asset_id'),
  fingerprint: text('fingerprint'),
  createdNew: flag('created_new'),
  claimedAtMs: number('claimed_at_ms'),
} as const satisfies Columns<ClaimedAsset>;

export const REPLAY_COLUMNS = {
  scope: text('scope'),
  key: text('key'),
  fingerprint: text('fingerprint'),
  requestId: text('request_id'),
  state: text('state'),
  atMs: number('at_ms'),
  status: number('status'),
  contentType: text('content_type'),
  body: bytes('body'),
} as const satisfies Columns<ReplayRow>;

export const MODEL_CALL_COLUMNS = {
  requestId: text('request_id'),
  workspace: text('workspace'),
  user: text('user'),
  model: text('model'),
  startedAtMs: number('started_at_ms'),
  endedAtMs: number('ended_at_ms'),
  status: number('status'),
  errorType: text('error_type'),
  chargedCents: number('charged_cents'),
  replayed: flag('replayed'),
} as const satisfies Columns<ModelCallRow>;

export const CALL_COUNT_COLUMNS = {
  user: text('user'),
  agent: text('agent'),
  clientId: text('client_id'),
  route: text('route'),
  count: number('count'),
  firstAtMs: number('first_at_ms'),
  lastAtMs: number('last_at_ms'),
} as const satisfies Columns<CallCount>;

function text(sql: string): Column {
  return { type: 'text', sql };
}

function number(sql: string): Column {
  return { type: 'number', sql };
}

function flag(sql: string): Column {
  return { type: 'flag', sql };
}

function bytes(sql: string): Column {
  return { type: 'bytes', sql };
}
