import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  type AssetUpload,
  type ByteRange,
  type Caller,
  type Content,
  type JobApi,
  type JobEvent,
  type JobListQuery,
  type Result,
  type SubmitRequest,
  ok,
  refuse,
} from '../../../src/protocol/job-api.ts';
import { EventSubscriber } from '../../../src/job-events/event-subscriber.ts';
import type { Asset, Graph, Job } from '../../../src/protocol/v2.ts';

export const JOB_ID = '11111111-2222-4333-8444-555555555555';
export const ASSET_ID = '99999999-2222-4333-8444-555555555555';
export const HASH = `blake3:${'ab'.repeat(32)}`;
export const BYTES = Buffer.from('0123456789');

const SELF = `/api/v2/jobs/${JOB_ID}`;

export const JOB: Job = {
  id: JOB_ID,
  status: 'queued',
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: null,
  completed_at: null,
  expires_at: '2026-01-08T00:00:00.000Z',
  queue_position: 0,
  progress: null,
  outputs: [],
  error: null,
  urls: { self: SELF, events: `${SELF}/events`, cancel: `${SELF}/cancel` },
};

export const OUTPUT = {
  node_id: '9',
  name: 'ComfyUI_00001_.png',
  type: 'image',
  content_type: 'image/png',
  size_bytes: 10,
  id: ASSET_ID,
  hash: HASH,
  url: `/api/v2/assets/${ASSET_ID}/content`,
  url_expires_at: '2026-01-02T00:00:00.000Z',
} as const;

export const ASSET: Asset = {
  id: ASSET_ID,
  hash: HASH,
  size_bytes: BYTES.length,
  content_type: 'image/png',
  created_at: '2026-01-01T00:00:00.000Z',
  url: `/api/v2/assets/${ASSET_ID}/content`,
  url_expires_at: '2026-01-02T00:00:00.000Z',
  file_path: 'input/a.png',
};

export const STATUS = {
  queued: { event: 'status', data: { status: 'queued', queue_position: 0 } },
  running: { event: 'status', data: { status: 'running' } },
  succeeded: { event: 'status', data: { status: 'succeeded' } },
} as const satisfies { readonly [name: string]: JobEvent };

export type Upload = AssetUpload & { readonly bytes: Buffer };

/** A scripted port: it knows one job and one asset, remembers what it was asked and emits what it is told to. */
export type FakeJobs = JobApi & {
  /** Instead of the normal answer of that method. */
  readonly answers: { [name in keyof JobApi]?: Result<never> | Error };
  readonly submitted: { caller: Caller; request: SubmitRequest }[];
  readonly listed: JobListQuery[];
  readonly uploads: Upload[];
  readonly fromHash: object[];
  readonly ranges: (ByteRange | undefined)[];
  /** The answer of `content`; ten bytes unless a test sets it. */
  contentAnswer: Content | undefined;
  /** Streams that have been given out and not been destroyed or read to their end. */
  readonly openStreams: Set<Readable>;
  /** Sends an event to every subscription. */
  emit(...events: JobEvent[]): void;
  /** Ends every subscription; with an error, as broken plumbing does. */
  hangUp(error?: Error): void;
  /** Waits until so many subscriptions are open. */
  listeners(count: number): Promise<void>;
  createdNew: boolean;
};

type Subscription = { push(event: JobEvent): void; end(error?: Error): void };

export function fakeJobs(): FakeJobs {
  const subscriptions = new Set<Subscription>();
  const changed = new EventTarget();
  const notify = (): boolean => changed.dispatchEvent(new Event('changed'));
  const known = <T>(id: string, expected: string, value: T): Result<T> =>
    id === expected ? ok(value) : refuse(404, 'not_found', 'no such thing');
  const scripted = <T>(name: keyof JobApi, normal: () => Result<T>): Result<T> => {
    const answer = fake.answers[name];
    if (answer instanceof Error) throw answer;
    return answer ?? normal();
  };
  const fake: FakeJobs = {
    answers: {},
    submitted: [],
    listed: [],
    uploads: [],
    fromHash: [],
    ranges: [],
    contentAnswer: undefined,
    openStreams: new Set(),
    createdNew: true,
    emit(...events) {
      for (const event of events)
        for (const subscription of subscriptions) subscription.push(event);
    },
    hangUp(error) {
      for (const subscription of subscriptions) subscription.end(error);
    },
    async listeners(count) {
      while (subscriptions.size !== count) await once(changed, 'changed');
    },
    async submit(caller, request) {
      fake.submitted.push({ caller, request });
      return scripted('submit', () => ok({ ...JOB, x_workflow: request.workflow }));
    },
    get: async (_caller, id) => scripted('get', () => known(id, JOB_ID, JOB)),
    workflow: async (_caller, id) =>
      scripted('workflow', () =>
        known(id, JOB_ID, {
          workflow: { '1': { class_type: 'A', inputs: {} } } as Graph,
          format: 'api' as const,
        }),
      ),
    async events(_caller, id, signal) {
      return scripted('events', () => known(id, JOB_ID, subscribe(subscriptions, signal, notify)));
    },
    cancel: async (_caller, id) =>
      scripted('cancel', () => known(id, JOB_ID, { ...JOB, status: 'canceled' as const })),
    async search() {
      return scripted('search', () => ok({ kind: 'none' as const }));
    },
    async list(_caller, query) {
      fake.listed.push(query);
      return scripted('list', () =>
        ok({ jobs: [{ ...JOB, outputs: [OUTPUT] }], next_cursor: JOB_ID }),
      );
    },
    async createAsset(_caller, upload) {
      fake.uploads.push({ ...upload, bytes: await readFile(upload.file.path) });
      await rm(upload.file.path);
      return scripted('createAsset', () => ok({ ...ASSET, created_new: fake.createdNew }));
    },
    async assetFromHash(_caller, request) {
      fake.fromHash.push(request);
      return scripted('assetFromHash', () =>
        known(request.hash, HASH, { ...ASSET, created_new: fake.createdNew }),
      );
    },
    hasBlob: async (_caller, hash) => scripted('hasBlob', () => ok(hash === HASH)),
    asset: async (_caller, id) => scripted('asset', () => known(id, ASSET_ID, ASSET)),
    deleteAsset: async (_caller, id) => scripted('deleteAsset', () => known(id, ASSET_ID, null)),
    async content(_caller, id, range) {
      fake.ranges.push(range);
      return scripted('content', () =>
        known(id, ASSET_ID, fake.contentAnswer ?? tenBytes(fake.openStreams, range)),
      );
    },
    health: async () =>
      scripted('health', () => ok({ status: 'healthy' as const, upstream: 'fake' })),
  };
  return fake;
}

function tenBytes(open: Set<Readable>, range: ByteRange | undefined): Content {
  const stream = Readable.from([range ? BYTES.subarray(range.start, range.end + 1) : BYTES]);
  open.add(stream);
  stream.once('close', () => open.delete(stream));
  const etag = `"${HASH}"`;
  return {
    kind: 'bytes',
    stream,
    contentType: 'image/png',
    totalBytes: 10,
    etag,
    ...(range && { range }),
  };
}

function subscribe(
  all: Set<Subscription>,
  signal: AbortSignal,
  notify: () => void,
): AsyncIterable<JobEvent> {
  let failure: Error | undefined;
  const remove = (): void => {
    all.delete(subscription);
    notify();
  };
  const events = new EventSubscriber(signal, remove);
  const subscription: Subscription = {
    push: (event) => events.push(event),
    end(error) {
      failure = error;
      events.end();
    },
  };
  all.add(subscription);
  notify();
  async function* read(): AsyncGenerator<JobEvent> {
    yield* events;
    if (failure) throw failure;
  }
  return read();
}
