import { type Column, OUTLINE_NAMES, PROMPT_COLUMNS } from '../columns.ts';
import { RECORD_KINDS, type RecordKind } from '../records.ts';

const TYPES = { text: 'TEXT', number: 'REAL', flag: 'INTEGER', bytes: 'BLOB' } as const;

/** A table with the columns of a kind of record, and columns that only SQLite has. */
function tableOf(kind: RecordKind, primaryKey: string, ...more: readonly string[]): string {
  const { columns, table } = RECORD_KINDS[kind];
  const ofRecord = Object.values<Column>(columns).map(
    ({ sql, type, isNullable }) => `${sql} ${TYPES[type]}${isNullable ? '' : ' NOT NULL'}`,
  );
  const parts = [...ofRecord, ...more, `PRIMARY KEY (${primaryKey})`];
  return `CREATE TABLE ${table} (${parts.join(', ')}) STRICT;`;
}

const OUTLINE = OUTLINE_NAMES.map((name) => PROMPT_COLUMNS[name].sql).join(', ');

/** Written into a new database. Change it together with `SCHEMA_VERSION`. */
export const SCHEMA = `
  ${tableOf('prompts', 'key', 'done_seq INTEGER', 'stored_bytes INTEGER NOT NULL DEFAULT 0')}
  CREATE INDEX prompts_by_id ON prompts (user, prompt_id);
  -- A job that one user's prompt has must not be linked to another user's prompt.
  CREATE INDEX prompts_by_job_alone ON prompts (job_id) WHERE job_id IS NOT NULL;
  -- Front ends poll the list of all jobs. It is read from this index alone, without the large texts.
  CREATE INDEX prompts_done ON prompts (user, done_seq, ${OUTLINE}, stored_bytes)
    WHERE state = 'done';
  -- The triggers remove the long texts of a removed row. A start removes those without a row, which a crashed
  -- process may have left.
  CREATE TRIGGER prompts_long_texts AFTER DELETE ON prompts
    BEGIN DELETE FROM long_texts WHERE owner = old.key; END;

  ${tableOf('files', 'user, type, subfolder, filename')}
  CREATE INDEX files_by_asset ON files (user, asset_id);

  ${tableOf('jobs', 'id')}
  CREATE INDEX jobs_by_user ON jobs (user);
  CREATE TRIGGER jobs_long_texts AFTER DELETE ON jobs
    BEGIN DELETE FROM long_texts WHERE owner = 'job ' || old.id; END;
  -- A job enters this index when it ends: the unfinished jobs are those without an entry.
  CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms)
    WHERE status NOT IN ('queued', 'running', 'canceling');

  ${tableOf('assets', 'id')}
  CREATE INDEX assets_by_hash ON assets (hash, user);
  CREATE INDEX assets_by_path ON assets (user, file_path);
  CREATE INDEX assets_by_job ON assets (job_id) WHERE job_id IS NOT NULL;
  CREATE INDEX assets_by_expiry ON assets (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
  CREATE INDEX assets_by_age ON assets (created_at_ms);

  ${tableOf('jobKeys', 'user, key')}
  CREATE INDEX keys_by_age ON keys (claimed_at_ms);
  ${tableOf('assetKeys', 'user, key')}
  CREATE INDEX asset_keys_by_age ON asset_keys (claimed_at_ms);

  ${tableOf('settings', 'user, id')}
  ${tableOf('assetLabels', 'user, id')}

  ${tableOf('replays', 'scope, key', 'body_bytes INTEGER NOT NULL DEFAULT 0')}
  CREATE INDEX model_replays_by_age ON model_replays (at_ms);
  CREATE INDEX model_replays_recorded ON model_replays (body_bytes) WHERE state = 'recorded';

  ${tableOf('modelCalls', 'request_id')}
  CREATE INDEX model_calls_charged ON model_calls (workspace, charged_cents)
    WHERE charged_cents > 0;
  CREATE INDEX model_calls_by_age ON model_calls (ended_at_ms);

  ${tableOf('calls', 'user, agent, client_id, route')}

  CREATE TABLE long_texts (
    owner TEXT NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (owner, name, part)
  ) STRICT;
  CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;
