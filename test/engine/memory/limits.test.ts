import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import { ANNA, graph, isStep, runJob, until, value, words } from '../../support/app/jobs.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { TINY_WORKFLOWS, startEngine } from './open.ts';

const ignoresCancel = graph({ 1: ['Deaf', { seed: 1 }], 2: ['Sink', { value: ['1', 0] }] });
const fine = graph({ 1: ['Show', { value: 'fine' }] });

describe('limits of a job', () => {
  test('a node that does not look at its stop flag is stopped at the time limit', async () => {
    const engine = await startEngine({ limits: { jobTimeMs: 1500, stopGraceMs: 100 } });
    const { job } = await runJob(engine, ignoresCancel);
    expect(job).toMatchObject({ status: 'failed', error: { code: 'timeout', node_id: '1' } });
    expect((await runJob(engine, fine)).job.status).toBe('succeeded');
  });

  test('beyond its memory a job fails with out_of_memory', async () => {
    const engine = await startEngine({ limits: { jobMemoryBytes: 1000 } });
    const hungry = (bytes: number) =>
      graph({ 1: ['Hungry', { bytes }], 2: ['Sink', { value: ['1', 0] }] });
    expect((await runJob(engine, hungry(1000))).job.status).toBe('succeeded');
    const { job } = await runJob(engine, hungry(1001));
    expect(job.error).toMatchObject({
      code: 'out_of_memory',
      node_id: '1',
      x_exception_type: 'torch.OutOfMemoryError',
    });
  });

  test('pixels kept for later nodes count against the memory', async () => {
    const engine = await startEngine({ limits: { jobMemoryBytes: 100 } });
    const { job } = await runJob(
      engine,
      graph({
        1: ['Image', { value: 1 }],
        2: ['Sink', { value: ['1', 0] }],
        3: ['Hungry', { bytes: 60 }],
        4: ['Sink', { value: ['3', 0] }],
      }),
    );
    expect(job.error).toMatchObject({ code: 'out_of_memory', node_id: '3' });
  });

  test('a job whose worker dies fails with worker_lost, and the next one runs', async () => {
    const engine = await startEngine();
    const { job } = await runJob(
      engine,
      graph({ 1: ['Crash', { seed: 1 }], 2: ['Sink', { value: ['1', 0] }] }),
    );
    expect(job).toMatchObject({ status: 'failed', error: { code: 'worker_lost', node_id: '1' } });
    expect((await runJob(engine, fine)).job.status).toBe('succeeded');
  });

  test('a canceled job that does not listen loses its worker and ends canceled', async () => {
    const engine = await startEngine({ limits: { stopGraceMs: 50 } });
    const { id } = value(await engine.submit(ANNA, { workflow: ignoresCancel, extraData: {} }));
    await until(engine, id, isStep);
    expect(value(await engine.cancel(ANNA, id)).status).toBe('canceling');
    expect(value(await engine.get(ANNA, id)).status).toBe('canceling');
    await until(engine, id, (event) => words([event])[0] === 'status canceled');
    expect((await runJob(engine, fine)).job.status).toBe('succeeded');
  });
});

test('an engine closes although the ends of its jobs cannot be stored', async () => {
  const ledger = createMemoryLedger();
  const engine = await startEngine({ ledger });
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  const update = vi.spyOn(ledger.jobs, 'update').mockRejectedValue(full);
  value(await engine.submit(ANNA, { workflow: fine, extraData: {} }));
  await vi.waitFor(
    () => expect(update.mock.calls.at(-1)?.[1] ?? {}).toHaveProperty('completedAtMs'),
    { timeout: 10_000 },
  );
  const closed = engine.close().then(() => 'closed');
  expect(await Promise.race([closed, sleep(3000, 'hangs')])).toBe('closed');
});

test('the log says why a file of a job could not be written', async () => {
  const log = silentLogger();
  const error = vi.spyOn(log, 'error');
  const engine = await startEngine({ log, outputFiles: { spoolDir: '/no/such/folder' } });
  const { job } = await runJob(engine, TINY_WORKFLOWS.saving(1));
  expect(job).toMatchObject({ status: 'failed', error: { x_exception_type: 'OSError' } });
  const facts = { event: 'job.system_error', code: 'ENOENT', job: job.id };
  expect(error.mock.calls).toEqual([[facts, expect.any(String)]]);
});
