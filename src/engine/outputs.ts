import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { reached } from '../crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { OutputType } from '../wire/v2.ts';
import type { Blobs } from './blobs.ts';
import type { Locks } from './locks.ts';
import type { CounterQuestion, StoredOutput, WrittenFile } from './protocol.ts';

/** Keeps apart the names of files that are made at the same time. */
export type Names = {
  /** A counter above `floor` that nobody was promised before. */
  promise(user: string, start: string, floor: number): number | Promise<number>;
  /** Whether nobody else is about to give a file this name. */
  claim(user: string, filePath: string): boolean | Promise<boolean>;
};

/** Names where all files are made by one process, one after the other for each user. */
export function createNames(): Names {
  const promised = new LRUCache<string, number>({ max: MAX_REMEMBERED_COUNTERS });
  return {
    promise(user, start, floor) {
      const key = JSON.stringify([user, start]);
      const next = 1 + Math.max(floor, promised.get(key) ?? 0);
      promised.set(key, next);
      return next;
    },
    claim: () => true,
  };
}

export type OutputDeps = {
  readonly ledger: Ledger;
  readonly blobs: Blobs;
  readonly locks: Locks;
  readonly names: Names;
  readonly clock: () => number;
  /** Highest number of files that lie elsewhere and share the names. */
  readonly alsoUsed?: ((user: string, question: CounterQuestion) => Promise<number>) | undefined;
};

/** Files that jobs make, named as v1 names them. */
export type Outputs = {
  /** Makes a written file an asset of the job; durable once this resolves. */
  commit(made: {
    readonly user: string;
    readonly jobId: string;
    readonly nodeId: string;
    readonly file: WrittenFile;
  }): Promise<StoredOutput>;
  /** The number after the highest one in use or promised, so that parallel jobs never get the same. */
  nextCounter(
    maker: { readonly user: string; readonly jobId: string },
    question: CounterQuestion,
  ): Promise<number>;
};

const MAX_REMEMBERED_COUNTERS = 10_000;
/** A job that saves thousands of files does not have all of them listed for each. */
const LISTED_MS = 1000;
const COUNTED_NAME = /^(.*)_\d{5,}_(\.[^.]*)?$/s;

/** Keeps the names of each user's output files apart. */
export function createOutputs(deps: OutputDeps): Outputs {
  const { ledger, blobs, locks, names, clock, alsoUsed } = deps;
  const listed = new LRUCache<string, { readonly floor: number; readonly atMs: number }>({
    max: MAX_REMEMBERED_COUNTERS,
  });
  const highestUsed = async (user: string, question: CounterQuestion): Promise<number> => {
    const start = startOf(question);
    const paths = await ledger.assets.outputPaths(user, start);
    const used = paths.map((path) => Number(/^(\d+)_/.exec(path.slice(start.length))?.[1] ?? 0));
    const elsewhere = (await alsoUsed?.(user, question)) ?? 0;
    return used.reduce((most, counter) => Math.max(most, counter), elsewhere);
  };
  const nextFree = async (user: string, question: CounterQuestion): Promise<number> =>
    await names.promise(user, startOf(question), await highestUsed(user, question));
  /** Numbers the job has made since are above it: they were promised. */
  const nextOfJob = async (
    { user, jobId }: { readonly user: string; readonly jobId: string },
    question: CounterQuestion,
  ): Promise<number> => {
    const key = JSON.stringify([jobId, startOf(question)]);
    const known = listed.get(key);
    const isRecent = known && clock() - known.atMs < LISTED_MS && clock() >= known.atMs;
    const floor = isRecent ? known.floor : await highestUsed(user, question);
    if (!isRecent) listed.set(key, { floor, atMs: clock() });
    return await names.promise(user, startOf(question), floor);
  };
  const isTaken = async (user: string, filePath: string): Promise<boolean> =>
    !(await names.claim(user, filePath)) ||
    (await ledger.assets.byFilePath(user, filePath)) !== undefined;
  const freeName = async (user: string, file: WrittenFile): Promise<string> => {
    const [, prefix, extension = ''] = COUNTED_NAME.exec(file.name) ?? [];
    let name = file.name;
    while (prefix !== undefined && (await isTaken(user, `${folderOf(file)}${name}`))) {
      const counter = await nextFree(user, { ...file, prefix });
      name = `${prefix}_${String(counter).padStart(5, '0')}_${extension}`;
    }
    return name;
  };
  return {
    nextCounter: (maker, question) => locks(namesOf(maker.user), () => nextOfJob(maker, question)),
    commit: ({ user, jobId, nodeId, file }) =>
      locks(namesOf(user), async () => {
        const name = await freeName(user, file);
        const id = randomUUID();
        await locks(file.hash, async () => {
          await blobs.adopt(file);
          reached('after-bytes-stored');
          await ledger.assets.insert({
            id,
            user,
            hash: file.hash,
            sizeBytes: file.sizeBytes,
            contentType: file.contentType,
            filePath: `${folderOf(file)}${name}`,
            tagsJson: null,
            createdAtMs: clock(),
            expiresAtMs: null,
            jobId,
          });
          await blobs.recorded(file.hash);
        });
        reached('after-asset-recorded');
        return toOutput({ id, name, nodeId, jobId, file });
      }),
  };
}

function toOutput(made: {
  readonly id: string;
  readonly name: string;
  readonly nodeId: string;
  readonly jobId: string;
  readonly file: WrittenFile;
}): StoredOutput {
  const { file } = made;
  return {
    node_id: made.nodeId,
    name: made.name,
    type: outputType(made.name, file.contentType),
    content_type: file.contentType,
    size_bytes: file.sizeBytes,
    id: made.id,
    hash: file.hash,
    job_id: made.jobId,
    x_subfolder: file.subfolder,
    ...(file.temp && { x_temp: true }),
    ...(file.websocket && { x_websocket: true }),
  };
}

function outputType(name: string, contentType: string): OutputType {
  if (name.endsWith('.latent')) return 'latent';
  const family = contentType.split('/')[0];
  return family === 'image' || family === 'video' || family === 'audio' || family === 'text'
    ? family
    : 'file';
}

function folderOf({ temp, subfolder }: Pick<WrittenFile, 'temp' | 'subfolder'>): string {
  return `${temp ? 'temp' : 'output'}/${subfolder === '' ? '' : `${subfolder}/`}`;
}

function startOf(question: CounterQuestion): string {
  return `${folderOf(question)}${question.prefix}_`;
}

function namesOf(user: string): string {
  return `names of ${user}`;
}
