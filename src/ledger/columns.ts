/** A flag is 1 or 0 in SQLite, and '1' or an empty text in Redis. */
export type ColumnType = 'text' | 'number' | 'flag' | 'bytes';

/**
 * How one property of a row is stored. In Redis the hash field has the name of the property. `sql` is
 * the name of the SQLite column.
 */
export type Column<Value = unknown> = {
  readonly type: ColumnType;
  readonly sql: string;
  readonly isNullable?: true;
  /** Never set. Declares the type of the property to the compiler. */
  readonly value?: Value;
};

/** The columns of a record, by the property of its row. Both ledgers generate their commands from it. */
export type Columns<Row> = { readonly [Name in keyof Row]-?: Column };

/** The row that has these columns. */
export type RowOf<Map> = {
  readonly [Name in keyof Map]: Map[Name] extends Column<infer Value> ? Value : never;
};

/** The state of a prompt: the answer that its client got, and how far its submission is. */
export type PromptState =
  /** The client waits for its answer. The plan may have been sent. */
  | 'submitting'
  /** Another process continues: the client got no answer. The plan may have been sent. */
  | 'unanswered'
  /** Accepted. The plan was not sent, or was certainly refused. */
  | 'outbox'
  /** Accepted. The plan is being sent, or there may be a job. */
  | 'sent'
  /** The client was told that the outcome is unknown. There may be a job. */
  | 'unknown'
  /** The prompt has a job. */
  | 'live'
  | 'done';

/** Stored as `user_version` in SQLite. A database with another one is refused. */
export const SCHEMA_VERSION = 17;

/** The columns that the end of a prompt sets (`prompts/state/outcome.ts`). */
const END_COLUMNS = {
  /** The v1 history entry. */
  entryJson: orNull(text('entry_json')),
  /** The final status of `GET /api/job/{id}/status`. */
  statusWord: orNull(text('status_word')),
  startedAtMs: orNull(number('started_at_ms')),
  endedAtMs: orNull(number('ended_at_ms')),
  /** The times at which its nodes ran: `NodeTimes` as JSON. */
  nodeTimesJson: orNull(text('node_times_json')),
} as const;

/** The columns that are null in a new row; the code that knows the value sets it. */
const LATER_COLUMNS = {
  /** When a client asked to cancel it. */
  cancelAskedAtMs: orNull(number('cancel_asked_at_ms')),
  ...END_COLUMNS,
} as const;

/**
 * To add a property to a prompt's record, add one row, for example `origin: orNull(text('origin'))` to `LATER_COLUMNS`,
 * and increase `SCHEMA_VERSION`. Both ledgers store and read it, and `holdover backup` copies it. Also count a text that
 * may be long in the size of a history entry (`finish` in `sqlite/prompts.ts`, `addToHistory` in
 * `redis/prompts-scripts.ts`), which the history limits.
 */
export const PROMPT_COLUMNS = {
  /** The internal id of the prompt, and its first v2 idempotency key. */
  key: text('key'),
  user: text('user'),
  /** The id that v1 clients know. */
  promptId: text('prompt_id'),
  jobId: orNull(text('job_id')),
  number: number('number'),
  clientId: orNull(text('client_id')),
  createdAtMs: number('created_at_ms'),
  graphJson: text('graph_json'),
  extraDataJson: text('extra_data_json'),
  /** `outputs_to_execute`, a JSON array of node ids. */
  targetsJson: text('targets_json'),
  state: text<PromptState>('state'),
  /**
   * The stored plan without the graph: the data to submit the prompt again (`prompts/submit/plan.ts`). It never
   * contains secrets.
   */
  intentJson: text('intent_json'),
  ...LATER_COLUMNS,
} as const;

/** One accepted `POST /prompt`. */
export type PromptRow = RowOf<typeof PROMPT_COLUMNS>;

/** The properties that the end of a prompt sets; `undefined` or null: no value. */
export type PromptEnd = Partial<RowOf<typeof END_COLUMNS>>;

export const END_NAMES = Object.keys(END_COLUMNS) as readonly (keyof PromptEnd)[];

/** The first values of the properties that a prompt gets later. */
export const NEW_PROMPT = Object.fromEntries(
  Object.keys(LATER_COLUMNS).map((name) => [name, null]),
) as { readonly [Name in keyof typeof LATER_COLUMNS]: null };

/** The small properties of a done prompt, which lists of prompts contain. */
export const OUTLINE_NAMES = [
  'key',
  'promptId',
  'statusWord',
  'createdAtMs',
  'startedAtMs',
  'endedAtMs',
] as const;

/** A done prompt without its texts, which may be large. */
export type PromptOutline = {
  readonly [Name in (typeof OUTLINE_NAMES)[number]]: PromptRow[Name];
} & {
  /** Bytes of its stored texts. */
  readonly storedBytes: number;
};

/** A larger `number` does not come from the counter: a client sent it to be first or last in the queue. */
export const HIGHEST_COUNTED = 1e9;

export type FileType = 'input' | 'output' | 'temp';

export const FILE_COLUMNS = {
  user: text('user'),
  type: text<FileType>('type'),
  subfolder: text('subfolder'),
  filename: text('filename'),
  assetId: text('asset_id'),
  hash: orNull(text('hash')),
  sizeBytes: number('size_bytes'),
  contentType: text('content_type'),
  modifiedAtMs: number('modified_at_ms'),
} as const;

/** A v1 file name and the asset behind it. Unique by (user, type, subfolder, filename). */
export type FileRow = RowOf<typeof FILE_COLUMNS>;

export const JOB_COLUMNS = {
  id: text('id'),
  user: text('user'),
  status: text('status'),
  order: number('turn'),
  createdAtMs: number('created_at_ms'),
  startedAtMs: orNull(number('started_at_ms')),
  completedAtMs: orNull(number('completed_at_ms')),
  expiresAtMs: number('expires_at_ms'),
  workflowJson: text('workflow_json'),
  provenanceJson: orNull(text('provenance_json')),
  metadataJson: orNull(text('metadata_json')),
  outputsJson: text('outputs_json'),
  errorJson: orNull(text('error_json')),
  extrasJson: orNull(text('extras_json')),
} as const;

/** A job of the embedded engine. Only the engine reads and writes the JSON texts. */
export type JobRow = RowOf<typeof JOB_COLUMNS>;

export const ASSET_COLUMNS = {
  id: text('id'),
  user: text('user'),
  hash: text('hash'),
  sizeBytes: number('size_bytes'),
  contentType: text('content_type'),
  filePath: text('file_path'),
  tagsJson: orNull(text('tags_json')),
  createdAtMs: number('created_at_ms'),
  expiresAtMs: orNull(number('expires_at_ms')),
  jobId: orNull(text('job_id')),
} as const;

/** A record of some bytes: an upload, or an output of a job. */
export type AssetRow = RowOf<typeof ASSET_COLUMNS>;

/** A single-use idempotency key, and the time of the request that made a job or an asset with it. */
export const KEY_COLUMNS = {
  user: text('user'),
  key: text('key'),
  claimedAtMs: number('claimed_at_ms'),
} as const;

/** `reserved`: the call runs; `recorded`: the answer is stored; `consumed`: done and charged, without a stored answer. */
type ReplayState = 'reserved' | 'recorded' | 'consumed';

export const REPLAY_COLUMNS = {
  scope: text('scope'),
  key: text('key'),
  /** Equal when the same request is sent again. */
  fingerprint: text('fingerprint'),
  requestId: text('request_id'),
  state: text<ReplayState>('state'),
  /** When the key was reserved; after the call, when it was answered. */
  atMs: number('at_ms'),
  status: orNull(number('status')),
  contentType: orNull(text('content_type')),
  body: orNull(bytes('body')),
} as const;

/** An `Idempotency-Key` of the model router, and the answer to its call. The scope is a workspace. */
export type ReplayRow = RowOf<typeof REPLAY_COLUMNS>;

export const MODEL_CALL_COLUMNS = {
  requestId: text('request_id'),
  workspace: text('workspace'),
  user: text('user'),
  model: text('model'),
  startedAtMs: number('started_at_ms'),
  endedAtMs: number('ended_at_ms'),
  status: number('status'),
  /** `null`: the answer was a result. */
  errorType: orNull(text('error_type')),
  chargedCents: number('charged_cents'),
  replayed: flag('replayed'),
} as const;

/** The audit record of one call of a model. */
export type ModelCallRow = RowOf<typeof MODEL_CALL_COLUMNS>;

export const CALL_COUNT_COLUMNS = {
  user: text('user'),
  agent: text('agent'),
  clientId: text('client_id'),
  /** Method and pattern of the path, for example `GET /history/:id`. */
  route: text('route'),
  count: number('count'),
  firstAtMs: number('first_at_ms'),
  lastAtMs: number('last_at_ms'),
} as const;

export const TEXT_COLUMNS = {
  user: text('user'),
  id: text('id'),
  valueJson: text('value_json'),
} as const;

/**
 * How often one client called one v1 route. A client is identified by user, user agent and client
 * id (or '').
 */
export type CallCount = RowOf<typeof CALL_COUNT_COLUMNS>;

function text<Value extends string = string>(sql: string): Column<Value> {
  return { type: 'text', sql };
}

function number(sql: string): Column<number> {
  return { type: 'number', sql };
}

function flag(sql: string): Column<boolean> {
  return { type: 'flag', sql };
}

function bytes(sql: string): Column<Uint8Array> {
  return { type: 'bytes', sql };
}

function orNull<Value>({ type, sql }: Column<Value>): Column<Value | null> {
  return { type, sql, isNullable: true };
}
