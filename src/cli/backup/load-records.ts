import { END_NAMES } from '../../ledger/columns.ts';
import type { Ledger, PromptOutcome } from '../../ledger/ledger.ts';
import type { RecordKind, RecordRows, StoredRecord } from '../../ledger/records.ts';
import { reached } from '../../lib/crash-point.ts';

/** Writes that are sent together share one sync to the disk. */
const ROWS_AT_A_TIME = 100;

/** Writes all records into an empty ledger. Throws when one cannot be written. */
export async function loadRecords(
  records: AsyncIterable<StoredRecord>,
  ledger: Ledger,
): Promise<void> {
  const batch: StoredRecord[] = [];
  const flush = async (): Promise<void> => {
    await Promise.all(batch.splice(0).map(({ kind, row }) => WRITERS[kind](ledger, row as never)));
  };
  for await (const record of records) {
    batch.push(record);
    // History is in the order in which prompts ended: write one after the other.
    if (record.kind === 'prompts' || batch.length === ROWS_AT_A_TIME) await flush();
    reached('restore-record');
  }
  await flush();
}

type Writers = {
  readonly [Kind in RecordKind]: (ledger: Ledger, row: RecordRows[Kind]) => Promise<unknown>;
};

const WRITERS: Writers = {
  prompts: writePrompt,
  jobs: ({ jobs }, row) => jobs.insert(row),
  jobKeys: ({ keys }, row) => keys.put('jobKeys', row),
  files: ({ files }, row) => files.claim(row),
  assets: ({ assets }, row) => assets.insert(row),
  assetKeys: ({ keys }, row) => keys.put('assetKeys', row),
  settings: ({ settings }, { user, id, valueJson }) => settings.merge(user, { [id]: valueJson }),
  assetLabels: ({ assetLabels }, { user, id, valueJson }) =>
    assetLabels.merge(user, { [id]: valueJson }),
  calls: ({ calls }, row) => calls.add([row]),
  modelCalls: ({ modelCalls }, row) => modelCalls.insert(row),
  replays: writeReplay,
};

async function writeReplay({ replays }: Ledger, row: RecordRows['replays']): Promise<void> {
  const { state, atMs, status, contentType, body } = row;
  await replays.reserve(row, 0);
  if (state === 'consumed') await replays.consume(row, atMs);
  if (state !== 'recorded' || status === null || contentType === null || body === null) return;
  await replays.record(row, { atMs, status, contentType, body });
}

async function writePrompt({ prompts }: Ledger, row: RecordRows['prompts']): Promise<void> {
  if (row.state !== 'done') return await prompts.insert(row);
  await prompts.insert({ ...row, state: 'live' });
  const end: object = Object.fromEntries(END_NAMES.map((name) => [name, row[name]]));
  await prompts.finish(row.key, end as PromptOutcome);
}
