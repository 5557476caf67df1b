import { type Hash, createHash } from 'node:crypto';
import { END_NAMES, type PromptEnd } from '../../ledger/columns.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import {
  RECORD_KINDS,
  type LedgerRecords,
  type RecordKind,
  type RecordRows,
  recordId,
} from './records.ts';
import { reached } from '../../lib/crash-point.ts';
import type { StartProgress } from '../progress.ts';

/** One side of a migration. */
export type LedgerSide = {
  readonly ledger: Ledger;
  readonly records: LedgerRecords;
};

/** The number of rows of a kind, and a hash of them. */
type Tally = { readonly rows: number; readonly hash: string };

const KINDS = Object.keys(RECORD_KINDS) as RecordKind[];

/** Returns the number of records in a ledger. */
export async function countRecords({ records }: LedgerSide): Promise<number> {
  let rows = 0;
  for (const kind of KINDS) for await (const _row of records.read(kind)) rows += 1;
  return rows;
}

/** Copies every record that the target does not have. Calls `onRow` after each record of the source. */
export async function copyRecords(
  from: LedgerSide,
  to: LedgerSide,
  onRow: ReturnType<StartProgress>,
): Promise<void> {
  for (const kind of KINDS) {
    const copied = await idsOf(to, kind);
    for await (const row of from.records.read(kind)) {
      if (!copied.has(recordId(kind, row))) await writeRow(to, kind, row);
      reached('migrate-row');
      onRow(0);
    }
  }
}

/** Returns one sentence for each kind of records that differs between the ledgers; none when they are equal. */
export async function differences(from: LedgerSide, to: LedgerSide): Promise<readonly string[]> {
  const found: string[] = [];
  for (const kind of KINDS) {
    const [source, target] = [await tallyOf(from, kind), await tallyOf(to, kind)];
    if (source.rows !== target.rows) {
      found.push(`${kind}: ${source.rows} records in the source, ${target.rows} in the target`);
    } else if (source.hash !== target.hash) found.push(`${kind}: the records are not the same`);
  }
  return found;
}

async function idsOf({ records }: LedgerSide, kind: RecordKind): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const row of records.read(kind)) {
    if (isWhole(kind, row)) ids.add(recordId(kind, row));
  }
  return ids;
}

/** Hashes the rows of each user in their order, then the users by id. */
async function tallyOf({ records }: LedgerSide, kind: RecordKind): Promise<Tally> {
  const ofUsers = new Map<string, Hash>();
  let rows = 0;
  for await (const row of records.read(kind)) {
    const user = 'user' in row ? row.user : '';
    const hash = ofUsers.get(user) ?? createHash('sha256');
    ofUsers.set(user, hash.update(textOf(kind, row)).update('\n'));
    rows += 1;
  }
  const whole = createHash('sha256');
  for (const user of [...ofUsers.keys()].toSorted()) {
    whole.update(ofUsers.get(user)?.digest() ?? '');
  }
  return { rows, hash: whole.digest('hex') };
}

/** Returns a row as text, which is equal for SQLite and Redis. */
function textOf<Kind extends RecordKind>(kind: Kind, row: RecordRows[Kind]): string {
  const values = row as { readonly [name: string]: unknown };
  return JSON.stringify(
    Object.keys(RECORD_KINDS[kind].columns).map((name) => plain(values[name] ?? null)),
  );
}

function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}

type Writers = {
  readonly [Kind in RecordKind]: (to: LedgerSide, row: RecordRows[Kind]) => Promise<unknown>;
};

const WRITERS: Writers = {
  settings: ({ ledger }, { user, id, valueJson }) =>
    ledger.settings.merge(user, { [id]: valueJson }),
  calls: ({ ledger }, row) => ledger.calls.add([row]),
  modelCalls: ({ ledger }, row) => ledger.modelCalls.insert(row),
  replays: ({ ledger }, row) => writeReplay(ledger, row),
  assets: ({ ledger }, row) => ledger.assets.insert(row),
  assetKeys: ({ records }, row) => records.writeKey('assetKeys', row),
  files: ({ ledger }, row) => ledger.files.claim(row),
  jobs: ({ ledger }, row) => ledger.jobs.insert(row),
  jobKeys: ({ records }, row) => records.writeKey('jobKeys', row),
  prompts: ({ ledger }, row) => writePrompt(ledger, row),
};

async function writeRow<Kind extends RecordKind>(
  to: LedgerSide,
  kind: Kind,
  row: RecordRows[Kind],
): Promise<void> {
  await WRITERS[kind](to, row);
}

/**
 * Returns false for a row that an interrupted copy may not have finished: a reserved replay, or a prompt that is not
 * done.
 */
function isWhole<Kind extends RecordKind>(kind: Kind, row: RecordRows[Kind]): boolean {
  if (kind === 'prompts') return (row as RecordRows['prompts']).state === 'done';
  return kind !== 'replays' || (row as RecordRows['replays']).state !== 'reserved';
}

async function writeReplay({ replays }: Ledger, row: RecordRows['replays']): Promise<void> {
  const { state, atMs, status, contentType, body } = row;
  await replays.reserve(row, 0);
  if (state === 'consumed') await replays.consume(row, atMs);
  if (state !== 'recorded' || status === null || contentType === null || body === null) return;
  await replays.record(row, { atMs, status, contentType, body });
}

/** Writes a prompt. A done prompt is inserted and then finished, because history is in the order of ends. */
async function writePrompt({ prompts }: Ledger, row: RecordRows['prompts']): Promise<void> {
  const { entryJson, statusWord, startedAtMs, endedAtMs } = row;
  const isThere = (await prompts.get(row.key)) !== undefined;
  if (row.state !== 'done' || entryJson === null) return isThere ? undefined : prompts.insert(row);
  const unfinished = { ...row, state: 'live', entryJson: null, statusWord: null } as const;
  if (!isThere) await prompts.insert(unfinished);
  const end: PromptEnd = Object.fromEntries(
    END_NAMES.filter((name) => row[name] !== null).map((name) => [name, row[name]]),
  );
  await prompts.finish(row.key, {
    ...end,
    entryJson,
    statusWord: statusWord ?? '',
    startedAtMs,
    endedAtMs: endedAtMs ?? row.createdAtMs,
  });
}
