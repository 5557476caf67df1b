import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type RemoteJobs, createRemoteJobs } from '../../../src/remote/remote-jobs.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import type { Caller, JobApi } from '../../../src/protocol/job-api.ts';
import { TINY_WORKFLOWS as workflows } from '../../engine/memory/open.ts';
import { jobsSuite } from '../../engine/jobs.suite.ts';
import { useHoldover } from '../../support/processes/use-holdover.ts';
import { runJob, value } from '../../support/app/jobs.ts';
import { growing } from '../../support/graphs/workflows.ts';

const SCRIPT = fileURLToPath(new URL('../../support/scripts/tiny-v2.mjs', import.meta.url));

function connect(baseUrl: string): RemoteJobs {
  return createRemoteJobs({ service: { baseUrl }, log: silentLogger() });
}

/** Callers of the suite present no key; upstream they are told apart by theirs alone. */
function withKeys(jobs: RemoteJobs, suffix: string): JobApi {
  const keyed = ({ user }: Caller): Caller => ({ user, credential: `${user}-${suffix}` });
  const methods = Object.entries(jobs).map(([name, method]) => [
    name,
    (caller: Caller | undefined, ...rest: unknown[]) =>
      (method as any)(...(caller === undefined ? [] : [keyed(caller), ...rest])),
  ]);
  return Object.fromEntries(methods) as JobApi;
}

describe('over HTTP', () => {
  let child: ChildProcess;
  let url: string;
  let opened = 0;

  beforeAll(async () => {
    child = spawn(process.execPath, [SCRIPT], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    url = line.toString().trim();
  }, 30_000);
  afterAll(() => void child?.kill('SIGTERM'));

  jobsSuite('a remote v2 service', async () => {
    const remote = connect(url);
    onTestFinished(() => remote.close());
    return { api: withKeys(remote, String((opened += 1))), workflows };
  });
});

describe('in front of a whole Holdover', () => {
  const holdover = useHoldover();
  let remote: RemoteJobs;

  beforeAll(async () => {
    remote = connect(holdover.url);
  }, 30_000);
  afterAll(() => remote?.close());

  const caller: Caller = { user: 'anna', credential: 'key-of-anna' };

  test('steps, previews, node events and outputs come through', async () => {
    const { events, job } = await runJob(remote, growing({ steps: 6 }), { caller });
    expect(job.status).toBe('succeeded');
    const kinds = new Set(events.map(({ event }) => event));
    expect([...kinds].toSorted()).toEqual(['output', 'preview', 'progress', 'status', 'x_node']);
    expect(events.at(-1)).toMatchObject({ event: 'status', data: { status: 'succeeded' } });
  });

  test('the vendor fields arrive: another Holdover saves the workflow it was told to', async () => {
    const marker = { prompt: growing({ seed: 1 }), extraPngInfo: { workflow: { mark: 'kept' } } };
    const { job } = await runJob(remote, growing({ seed: 2 }), {
      caller,
      provenance: marker,
      order: 3,
    });
    const content = value(await remote.content(caller, job.outputs[0]?.id ?? ''));
    const bytes = content.kind === 'bytes' ? Buffer.concat(await content.stream.toArray()) : '';
    expect(bytes.toString('latin1')).toContain('{"mark": "kept"}');
    expect(remote.capabilities().holdover?.isOne).toBe(true);
  });
});
