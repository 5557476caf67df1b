import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { JobApi } from '../../src/protocol/job-api.ts';
import type { Json } from '../../src/protocol/json.ts';
import type { Graph, Progress } from '../../src/protocol/v2.ts';
import {
  ANNA,
  BEN,
  collect,
  contentText,
  isStep,
  runJob,
  spooled,
  until,
  value,
} from '../support/app/jobs.ts';

/** An implementation of the port, and workflows that it can run. */
export type JobsUnderTest = {
  readonly api: JobApi;
  readonly workflows: {
    /** Saves one file; another `seed` is other work. */
    saving(seed: number): Graph;
    /** Reports steps until it is cancelled. */
    endless(seed: number): Graph;
    /** Fails at node "2". */
    failing(): Graph;
    /** Saves what an asset holds; `file` is a core/ASSET object or a name. */
    reading(file: Json): Graph;
    /** Refused by validation. */
    invalid(): Graph;
  };
};

/** Behaviour every implementation of the port shows. */
export function jobsSuite(name: string, open: () => Promise<JobsUnderTest>): void {
  describe(`${name}: submitting`, () => {
    test('answers a queued job with the coerced workflow, then runs it to success', async () => {
      const { api, workflows } = await open();
      const job = value(await api.submit(ANNA, { workflow: workflows.saving(1), extraData: {} }));
      expect(job).toMatchObject({
        status: 'queued',
        started_at: null,
        completed_at: null,
        outputs: [],
        error: null,
      });
      await collect(api, job.id);
      const done = value(await api.get(ANNA, job.id));
      expect(done).toMatchObject({ status: 'succeeded', error: null });
      expect(done.outputs).toHaveLength(1);
      expect(Date.parse(done.completed_at ?? '')).toBeGreaterThanOrEqual(
        Date.parse(done.started_at ?? ''),
      );
    });

    test('refuses an invalid workflow with 422 invalid_workflow', async () => {
      const { api, workflows } = await open();
      const refused = await api.submit(ANNA, { workflow: workflows.invalid(), extraData: {} });
      expect(refused).toMatchObject({
        ok: false,
        error: { status: 422, code: 'invalid_workflow' },
      });
    });

    test('takes an idempotency key once: any reuse is 422 idempotency_key_reuse', async () => {
      const { api, workflows } = await open();
      const idempotencyKey = randomUUID();
      const first = api.submit(ANNA, {
        workflow: workflows.saving(1),
        extraData: {},
        idempotencyKey,
      });
      const duplicate = api.submit(ANNA, {
        workflow: workflows.saving(1),
        extraData: {},
        idempotencyKey,
      });
      const answers = await Promise.all([first, duplicate]);
      const late = await api.submit(ANNA, {
        workflow: workflows.saving(2),
        extraData: {},
        idempotencyKey,
      });
      expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
      for (const answer of [...answers.filter((a) => !a.ok), late]) {
        expect(answer).toMatchObject({
          ok: false,
          error: { status: 422, code: 'idempotency_key_reuse' },
        });
      }
    });

    test('leaves the key of a refused submission free', async () => {
      const { api, workflows } = await open();
      const idempotencyKey = randomUUID();
      await api.submit(ANNA, { workflow: workflows.invalid(), extraData: {}, idempotencyKey });
      const again = await api.submit(ANNA, {
        workflow: workflows.saving(1),
        extraData: {},
        idempotencyKey,
      });
      expect(again.ok).toBe(true);
    });

    test('gives the submitted workflow back', async () => {
      const { api, workflows } = await open();
      const { job } = await runJob(api, workflows.saving(3));
      const answer = value(await api.workflow(ANNA, job.id));
      expect(answer).toEqual({ workflow: workflows.saving(3), format: 'api' });
    });
  });

  describe(`${name}: events`, () => {
    test('starts with a status and ends with the terminal one, outputs before it', async () => {
      const { api, workflows } = await open();
      const { events, job } = await runJob(api, workflows.saving(1));
      expect(events.at(0)?.event).toBe('status');
      expect(events.at(-1)).toMatchObject({ event: 'status', data: { status: 'succeeded' } });
      const outputs = events.filter((event) => event.event === 'output');
      expect(outputs.map((event) => event.data.id)).toEqual(job.outputs.map((output) => output.id));
    });

    test('progress never falls and keeps its total', async () => {
      const { api, workflows } = await open();
      const { id } = value(
        await api.submit(ANNA, { workflow: workflows.endless(3), extraData: {} }),
      );
      const snapshots: Progress[] = [];
      await until(api, id, (event) => {
        if (event.event === 'progress') snapshots.push(event.data);
        return isStep(event);
      });
      await api.cancel(ANNA, id);
      expect(snapshots.length).toBeGreaterThan(0);
      expect(new Set(snapshots.map((snapshot) => snapshot.nodes_total)).size).toBe(1);
      const values = snapshots.map((snapshot) => snapshot.value);
      expect(values).toEqual(values.toSorted((a, b) => a - b));
    });

    test('gives several listeners of one job all of it', async () => {
      const { api, workflows } = await open();
      const { id } = value(
        await api.submit(ANNA, { workflow: workflows.saving(1), extraData: {} }),
      );
      const [one, two] = await Promise.all([collect(api, id), collect(api, id)]);
      expect(one.at(-1)).toMatchObject({ data: { status: 'succeeded' } });
      expect(two.at(-1)).toMatchObject({ data: { status: 'succeeded' } });
    });

    test('shows a listener who comes late the status and the latest progress first', async () => {
      const { api, workflows } = await open();
      const { id } = value(
        await api.submit(ANNA, { workflow: workflows.endless(1), extraData: {} }),
      );
      await until(api, id, isStep);
      const seen: string[] = [];
      await until(api, id, (event) => seen.push(event.event) === 2);
      expect(seen).toEqual(['status', 'progress']);
      await api.cancel(ANNA, id);
    });

    test('ends at once with the status of a job that is over', async () => {
      const { api, workflows } = await open();
      const { job } = await runJob(api, workflows.saving(1));
      const events = await collect(api, job.id);
      expect(events).toMatchObject([{ event: 'status', data: { status: 'succeeded' } }]);
    });

    test('stops when the listener aborts', async () => {
      const { api, workflows } = await open();
      const { id } = value(
        await api.submit(ANNA, { workflow: workflows.endless(1), extraData: {} }),
      );
      const stop = new AbortController();
      const iterator = value(await api.events(ANNA, id, stop.signal))[Symbol.asyncIterator]();
      await iterator.next();
      stop.abort();
      for (let item = await iterator.next(); !item.done; item = await iterator.next());
      expect(value(await api.get(ANNA, id)).completed_at).toBeNull();
      await api.cancel(ANNA, id);
    });
  });

  describe(`${name}: cancelling`, () => {
    test('a queued job is canceled, and the one before it is not', async () => {
      const { api, workflows } = await open();
      const first = value(
        await api.submit(ANNA, { workflow: workflows.endless(1), extraData: {} }),
      );
      await until(api, first.id, isStep);
      const second = value(
        await api.submit(ANNA, { workflow: workflows.saving(1), extraData: {} }),
      );
      value(await api.cancel(ANNA, second.id));
      expect((await collect(api, second.id)).at(-1)).toMatchObject({
        data: { status: 'canceled' },
      });
      expect(value(await api.get(ANNA, first.id)).status).toBe('running');
      await api.cancel(ANNA, first.id);
    });

    test('a running job goes through canceling to canceled', async () => {
      const { api, workflows } = await open();
      const { id } = value(
        await api.submit(ANNA, { workflow: workflows.endless(1), extraData: {} }),
      );
      await until(api, id, isStep);
      const listening = collect(api, id);
      const answer = value(await api.cancel(ANNA, id));
      expect(['canceling', 'canceled']).toContain(answer.status);
      expect((await listening).at(-1)).toMatchObject({
        event: 'status',
        data: { status: 'canceled' },
      });
      expect(value(await api.get(ANNA, id))).toMatchObject({ status: 'canceled', error: null });
    });

    test('leaves a job that is over as it is', async () => {
      const { api, workflows } = await open();
      const { job } = await runJob(api, workflows.saving(1));
      expect(value(await api.cancel(ANNA, job.id))).toMatchObject({
        id: job.id,
        status: 'succeeded',
      });
    });
  });

  describe(`${name}: failing`, () => {
    test('says which node failed, of which class, and with which exception', async () => {
      const { api, workflows } = await open();
      const { job } = await runJob(api, workflows.failing());
      expect(job.status).toBe('failed');
      expect(job.error).toMatchObject({ code: 'node_execution_error', node_id: '2' });
      expect(job.error?.class_type).toBe(workflows.failing()['2']?.class_type);
      expect(job.error?.traceback?.split('\n').at(-1)).toContain(
        `${job.error?.x_exception_type}: `,
      );
    });
  });

  describe(`${name}: users`, () => {
    test('a job of another user is 404 to all that name it', async () => {
      const { api, workflows } = await open();
      const { job } = await runJob(api, workflows.saving(1));
      const answers = [
        await api.get(BEN, job.id),
        await api.workflow(BEN, job.id),
        await api.events(BEN, job.id, new AbortController().signal),
        await api.cancel(BEN, job.id),
        await api.content(BEN, job.outputs[0]?.id ?? ''),
      ];
      for (const answer of answers)
        expect(answer).toMatchObject({ ok: false, error: { status: 404, code: 'not_found' } });
      expect(value(await api.list(BEN, {})).jobs.map(({ id }) => id)).not.toContain(job.id);
    });
  });

  describe(`${name}: listing`, () => {
    test('lists newest first, page by page', async () => {
      const { api, workflows } = await open();
      const ids: string[] = [];
      for (const seed of [1, 2, 3]) ids.unshift((await runJob(api, workflows.saving(seed))).job.id);
      const first = value(await api.list(ANNA, { limit: 2 }));
      expect(first.jobs.map(({ id }) => id)).toEqual(ids.slice(0, 2));
      const rest = value(await api.list(ANNA, { limit: 2, cursor: first.next_cursor ?? '' }));
      expect(rest.jobs.at(0)?.id).toBe(ids[2]);
    });

    test('filters by status and by metadata', async () => {
      const { api, workflows } = await open();
      const label = randomUUID();
      const { job } = await runJob(api, workflows.saving(1), { metadata: { label } });
      await runJob(api, workflows.failing());
      const byLabel = value(await api.list(ANNA, { metadata: { label } }));
      const byStatus = value(await api.list(ANNA, { status: ['failed'] }));
      expect(byLabel.jobs.map(({ id }) => id)).toEqual([job.id]);
      expect(new Set(byStatus.jobs.map(({ status }) => status))).toEqual(new Set(['failed']));
    });
  });

  describe(`${name}: assets`, () => {
    const upload = async (content: string) => ({
      file: await spooled(content),
      contentType: 'text/plain',
      filePath: 'input/note.txt',
    });

    test('every create makes a record of its own over the same bytes', async () => {
      const { api } = await open();
      const text = randomUUID();
      const one = value(await api.createAsset(ANNA, await upload(text)));
      const two = value(await api.createAsset(ANNA, await upload(text)));
      expect(one).toMatchObject({
        created_new: true,
        file_path: 'input/note.txt',
        content_type: 'text/plain',
      });
      expect(two).toMatchObject({ created_new: false, hash: one.hash });
      expect(two.id).not.toBe(one.id);
      value(await api.deleteAsset(ANNA, one.id));
      expect(await contentText(api, two.id)).toBe(text);
      expect(await api.asset(ANNA, one.id)).toMatchObject({ ok: false, error: { status: 404 } });
    });

    test('takes a key for an asset once: any reuse is 422 idempotency_key_reuse', async () => {
      const { api } = await open();
      const text = randomUUID();
      const reused = { error: { status: 422, code: 'idempotency_key_reuse' } };
      const create = async (content: string, caller = ANNA) =>
        await api.createAsset(caller, { ...(await upload(content)), idempotencyKey: 'k' });
      const answers = await Promise.all([1, 2, 3].map(() => create(text)));
      expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
      const { hash } = value(await create(text, BEN));
      const other = randomUUID();
      expect(await create(other)).toMatchObject(reused);
      expect(value(await api.createAsset(ANNA, await upload(other))).created_new).toBe(true);
      const createFromHash = (idempotencyKey: string) =>
        api.assetFromHash(ANNA, { hash: hash ?? '', idempotencyKey });
      expect(await createFromHash('k')).toMatchObject(reused);
      const { id } = value(await createFromHash('l'));
      expect(await createFromHash('l')).toMatchObject(reused);
      value(await api.deleteAsset(ANNA, id));
      expect(await createFromHash('l')).toMatchObject(reused);
    });

    test("from-hash works with bytes of one's own only", async () => {
      const { api } = await open();
      const asset = value(await api.createAsset(ANNA, await upload(randomUUID())));
      const request = { hash: asset.hash ?? '', filePath: 'input/copy.txt' };
      const created = value(await api.assetFromHash(ANNA, request));
      expect(created.created_new).toBe(false);
      expect(created).toMatchObject({ hash: asset.hash, file_path: 'input/copy.txt' });
      expect(await api.assetFromHash(BEN, request)).toMatchObject({
        error: { status: 404, code: 'blob_not_found' },
      });
      expect(value(await api.hasBlob(ANNA, request.hash))).toBe(true);
      expect(value(await api.hasBlob(BEN, request.hash))).toBe(false);
    });

    test('refuses bytes that do not have the expected hash with 409 hash_mismatch', async () => {
      const { api } = await open();
      const expectedHash = `blake3:${'0'.repeat(64)}`;
      const refused = await api.createAsset(ANNA, { ...(await upload('x')), expectedHash });
      expect(refused).toMatchObject({ ok: false, error: { status: 409, code: 'hash_mismatch' } });
    });

    test.each(['', '/a', '../a', 'a\\b', 'a\0', '\ud800', 'a\ufffd.png', 'a'.repeat(1025)])(
      'refuses the path %j',
      async (filePath) => {
        const { api } = await open();
        const refused = await api.createAsset(ANNA, { ...(await upload('x')), filePath });
        expect(refused).toMatchObject({ error: { status: 422, code: 'invalid_request' } });
      },
    );

    test('serves a range', async () => {
      const { api } = await open();
      const { id } = value(await api.createAsset(ANNA, await upload('0123456789')));
      const content = value(await api.content(ANNA, id, { start: 2, end: 4 }));
      expect(content).toMatchObject({ kind: 'bytes', totalBytes: 10, range: { start: 2, end: 4 } });
      const bytes = content.kind === 'bytes' ? await content.stream.toArray() : [];
      expect(Buffer.concat(bytes).toString()).toBe('234');
      expect(await api.content(ANNA, id, { start: 10, end: 12 })).toMatchObject({
        error: { status: 416 },
      });
    });

    test('a workflow reads an asset by reference', async () => {
      const { api, workflows } = await open();
      const { id } = value(await api.createAsset(ANNA, await upload('by reference')));
      const { job } = await runJob(api, workflows.reading({ __type: 'core/ASSET', info: { id } }));
      expect(job.status).toBe('succeeded');
      expect(await contentText(api, job.outputs[0]?.id ?? '')).toBe('by reference');
    });

    test.each([
      ['unknown', { id: '00000000-0000-4000-8000-000000000000' }],
      ['malformed', { hash: 'blake3:00' }],
    ])('refuses an %s reference with 422 missing_asset', async (_, info) => {
      const { api, workflows } = await open();
      const workflow = workflows.reading({ __type: 'core/ASSET', info });
      const refused = await api.submit(ANNA, { workflow, extraData: {} });
      expect(refused).toMatchObject({ error: { status: 422, code: 'missing_asset' } });
    });

    test("another user's asset is missing", async () => {
      const { api, workflows } = await open();
      const { id } = value(await api.createAsset(ANNA, await upload('private')));
      const workflow = workflows.reading({ __type: 'core/ASSET', info: { id } });
      const refused = await api.submit(BEN, { workflow, extraData: {} });
      expect(refused).toMatchObject({
        error: { code: 'missing_asset', details: { missing_ids: [id] } },
      });
    });

    test('does not delete an output while its job is kept', async () => {
      const { api, workflows } = await open();
      const { job } = await runJob(api, workflows.saving(1));
      const refused = await api.deleteAsset(ANNA, job.outputs[0]?.id ?? '');
      expect(refused).toMatchObject({ ok: false, error: { status: 409, code: 'asset_in_use' } });
    });
  });

  test(`${name}: is healthy`, async () => {
    const { api } = await open();
    expect(value(await api.health())).toMatchObject({ status: 'healthy' });
  });
}
