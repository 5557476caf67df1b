import { createHash } from 'node:crypto';
import { END_NAMES, type PromptEnd } from '../../ledger/columns.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import {
  KINDS,
  type RecordKind,
  type RecordRows,
  type StoredRecord,
  type WriteKey,
} from '../../ledger/records.ts';
import type { CrashPoint } from '../../lib/crash-point.ts';
import { plainRow } from './format.ts';

/** An empty ledger for the records of a backup. */
export type RecordsTarget = {
  readonly ledger: Ledger;
  readonly writeKey: WriteKey;
  /** Reads all records that it has now. */
  records(): AsyncIterable<StoredRecord>;
};

/** Writes that are sent together share one sync to the disk. */
const ROWS_AT_A_TIME = 100;

/** Writes all records, then reads them back. Throws when they are not the same. */
export async function loadRecords(
  records: AsyncIterable<StoredRecord>,
  target: RecordsTarget,
  onRecord: (moment: CrashPoint) => void,
): Promise<void> {
  const expected = createTally();
  let batch: StoredRecord[] = [];
  const flush = async (): Promise<void> => {
    const writes = batch.map(({ kind, row }) => WRITERS[kind](target, row as never));
    batch = [];
    await Promise.all(writes);
  };
  for await (const record of records) {
    expected.add(record);
    // Keys are written by another connection, which must not wait for the writes of this batch.
    if (batch[0]?.kind !== record.kind) await flush();
    // The end of a prompt is written after its beginning, and history is in the order of ends.
    if (record.kind === 'prompts') await writePrompt(target.ledger, record.row);
    else if (batch.push(record) === ROWS_AT_A_TIME) await flush();
    onRecord('restore-record');
  }
  await flush();
  const found = createTally();
  for await (const record of target.records()) found.add(record);
  const wrong = KINDS.filter((kind) => expected.of(kind) !== found.of(kind));
  if (wrong.length > 0)
    throw new Error(`the restored records are not those of the backup: ${wrong.join(', ')}`);
}

/** Counts and hashes the records of each kind, in any order. */
function createTally() {
  const sums = new Map<RecordKind, bigint>();
  return {
    add(record: StoredRecord): void {
      const hash = createHash('sha256')
        .update(JSON.stringify(plainRow(record)))
        .digest('hex');
      sums.set(record.kind, (sums.get(record.kind) ?? 0n) + BigInt(`0x${hash}`));
    },
    of: (kind: RecordKind): bigint => sums.get(kind) ?? 0n,
  };
}

type Writers = {
  readonly [Kind in RecordKind]: (to: RecordsTarget, row: RecordRows[Kind]) => Promise<unknown>;
};

const WRITERS: Writers = {
  prompts: ({ ledger }, row) => writePrompt(ledger, row),
  jobs: ({ ledger }, row) => ledger.jobs.insert(row),
  jobKeys: ({ writeKey }, row) => writeKey('jobKeys', row),
  files: ({ ledger }, row) => ledger.files.claim(row),
  assets: ({ ledger }, row) => ledger.assets.insert(row),
  assetKeys: ({ writeKey }, row) => writeKey('assetKeys', row),
  settings: ({ ledger }, { user, id, valueJson }) =>
    ledger.settings.merge(user, { [id]: valueJson }),
  calls: ({ ledger }, row) => ledger.calls.add([row]),
  modelCalls: ({ ledger }, row) => ledger.modelCalls.insert(row),
  replays: ({ ledger }, row) => writeReplay(ledger, row),
};

async function writeReplay({ replays }: Ledger, row: RecordRows['replays']): Promise<void> {
  const { state, atMs, status, contentType, body } = row;
  await replays.reserve(row, 0);
  if (state === 'consumed') await replays.consume(row, atMs);
  if (state !== 'recorded' || status === null || contentType === null || body === null) return;
  await replays.record(row, { atMs, status, contentType, body });
}

async function writePrompt({ prompts }: Ledger, row: RecordRows['prompts']): Promise<void> {
  const { entryJson, statusWord, startedAtMs, endedAtMs } = row;
  if (row.state !== 'done' || entryJson === null) return await prompts.insert(row);
  await prompts.insert({ ...row, state: 'live', entryJson: null, statusWord: null });
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
