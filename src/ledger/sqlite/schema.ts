/** Written into a new database. Change it together with `SCHEMA_VERSION`. */
export const SCHEMA = `
  CREATE TABLE prompts (
    key TEXT PRIMARY KEY, user TEXT NOT NULL, prompt_id TEXT NOT NULL, job_id TEXT,
    number REAL NOT NULL, client_id TEXT, created_at_ms INTEGER NOT NULL,
    graph_json TEXT NOT NULL, extra_data_json TEXT NOT NULL, targets_json TEXT NOT NULL,
    state TEXT NOT NULL, entry_json TEXT, status_word TEXT,
    started_at_ms INTEGER, ended_at_ms INTEGER, node_times_json TEXT, done_seq INTEGER,
    intent_json TEXT NOT NULL, cancel_asked_at_ms INTEGER,
    stored_bytes INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX prompts_by_id ON prompts (user, prompt_id);
  -- A job that one user's prompt has must not be linked to another user's prompt.
  CREATE INDEX prompts_by_job_alone ON prompts (job_id) WHERE job_id IS NOT NULL;
  -- Front ends poll the list of all jobs. It is read from this index alone, without the large texts.
  CREATE INDEX prompts_done ON prompts (user, done_seq, key, prompt_id, status_word, created_at_ms,
    started_at_ms, ended_at_ms, stored_bytes) WHERE state = 'done';
  -- The triggers remove the long texts of a removed row. A start removes those without a row, which a crashed
  -- process may have left.
  CREATE TRIGGER prompts_long_texts AFTER DELETE ON prompts
    BEGIN DELETE FROM long_texts WHERE owner = old.key; END;

  CREATE TABLE files (
    user TEXT NOT NULL, type TEXT NOT NULL, subfolder TEXT NOT NULL, filename TEXT NOT NULL,
    asset_id TEXT NOT NULL, hash TEXT, size_bytes INTEGER NOT NULL, content_type TEXT NOT NULL,
    modified_at_ms INTEGER NOT NULL,
    PRIMARY KEY (user, type, subfolder, filename)
  ) STRICT;
  CREATE INDEX files_by_asset ON files (user, asset_id);
  -- Files are also searched by name in all folders.
  CREATE INDEX files_by_name ON files (user, filename, type, modified_at_ms);

  CREATE TABLE jobs (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, status TEXT NOT NULL, turn REAL NOT NULL,
    created_at_ms INTEGER NOT NULL, started_at_ms INTEGER, completed_at_ms INTEGER,
    expires_at_ms INTEGER NOT NULL, workflow_json TEXT NOT NULL, provenance_json TEXT,
    metadata_json TEXT, outputs_json TEXT NOT NULL, error_json TEXT, extras_json TEXT
  ) STRICT;
  CREATE INDEX jobs_by_user ON jobs (user);
  CREATE TRIGGER jobs_long_texts AFTER DELETE ON jobs
    BEGIN DELETE FROM long_texts WHERE owner = 'job ' || old.id; END;
  -- A job enters this index when it ends: the unfinished jobs are those without an entry.
  CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms)
    WHERE status NOT IN ('queued', 'running', 'canceling');

  CREATE TABLE assets (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, hash TEXT NOT NULL, size_bytes INTEGER NOT NULL,
    content_type TEXT NOT NULL, file_path TEXT NOT NULL, tags_json TEXT,
    created_at_ms INTEGER NOT NULL, expires_at_ms INTEGER, job_id TEXT
  ) STRICT;
  CREATE INDEX assets_by_hash ON assets (hash, user);
  CREATE INDEX assets_by_path ON assets (user, file_path);
  CREATE INDEX assets_by_job ON assets (job_id) WHERE job_id IS NOT NULL;
  CREATE INDEX assets_by_expiry ON assets (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
  CREATE INDEX assets_by_age ON assets (created_at_ms);

  CREATE TABLE keys (
    user TEXT NOT NULL, key TEXT NOT NULL, claimed_at_ms INTEGER NOT NULL, PRIMARY KEY (user, key)
  ) STRICT;
  CREATE INDEX keys_by_age ON keys (claimed_at_ms);

  CREATE TABLE asset_keys (
    user TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, asset_id TEXT NOT NULL,
    created_new INTEGER NOT NULL, claimed_at_ms INTEGER NOT NULL, PRIMARY KEY (user, key)
  ) STRICT;
  CREATE INDEX asset_keys_by_age ON asset_keys (claimed_at_ms);

  CREATE TABLE settings (
    user TEXT NOT NULL, id TEXT NOT NULL, value_json TEXT NOT NULL, PRIMARY KEY (user, id)
  ) STRICT;

  CREATE TABLE asset_labels (
    user TEXT NOT NULL, id TEXT NOT NULL, value_json TEXT NOT NULL, PRIMARY KEY (user, id)
  ) STRICT;

  CREATE TABLE model_replays (
    scope TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, request_id TEXT NOT NULL,
    state TEXT NOT NULL, at_ms INTEGER NOT NULL, status INTEGER, content_type TEXT,
    body_bytes INTEGER NOT NULL DEFAULT 0, body BLOB, PRIMARY KEY (scope, key)
  ) STRICT;
  CREATE INDEX model_replays_by_age ON model_replays (at_ms);
  CREATE INDEX model_replays_recorded ON model_replays (body_bytes) WHERE state = 'recorded';

  CREATE TABLE model_calls (
    request_id TEXT PRIMARY KEY, workspace TEXT NOT NULL, user TEXT NOT NULL, model TEXT NOT NULL,
    started_at_ms INTEGER NOT NULL, ended_at_ms INTEGER NOT NULL, status INTEGER NOT NULL,
    error_type TEXT, charged_cents INTEGER NOT NULL, replayed INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX model_calls_charged ON model_calls (workspace, charged_cents)
    WHERE charged_cents > 0;
  CREATE INDEX model_calls_by_age ON model_calls (ended_at_ms);

  CREATE TABLE v1_calls (
    user TEXT NOT NULL, agent TEXT NOT NULL, client_id TEXT NOT NULL, route TEXT NOT NULL,
    count INTEGER NOT NULL, first_at_ms INTEGER NOT NULL, last_at_ms INTEGER NOT NULL,
    PRIMARY KEY (user, agent, client_id, route)
  ) STRICT;

  CREATE TABLE long_texts (
    owner TEXT NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (owner, name, part)
  ) STRICT;

  CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;

/** Stored as `user_version`. A database with another one is refused. */
export const SCHEMA_VERSION = 16;
