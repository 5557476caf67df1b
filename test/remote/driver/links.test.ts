import { describe, expect, test } from 'vitest';
import { createRemoteJobs } from '../../../src/remote/remote-jobs.ts';
import { createLinks } from '../../../src/remote/calls/upstream-links.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { fault } from '../../support/upstreams/hostile-v2.ts';
import { collect, graph, spooled, value } from '../../support/app/jobs.ts';
import { CALLER, openRemote } from './open.ts';

const WORKFLOW = graph({ 1: ['Number', { value: 1 }] });

describe('where calls go', () => {
  test.each([
    ['https://h.example', '/api/v2/jobs'],
    ['https://h.example/', '/api/v2/jobs'],
    ['https://h.example/api/v2', '/api/v2/jobs'],
    ['https://h.example/api/v2/?x=1#y', '/api/v2/jobs'],
    ['https://h.example/deployment/7/', '/deployment/7/api/v2/jobs'],
  ])('%s: jobs are at %s', (baseUrl, path) => {
    expect(createLinks(baseUrl).target('jobs')).toBe(path);
  });

  test.each(['ftp://h.example', 'https://user:secret@h.example', 'not a url'])(
    '%s is no upstream',
    (baseUrl) => expect(() => createLinks(baseUrl)).toThrow(),
  );

  test.each([
    ['/api/v2/jobs/1', '/api/v2/jobs/1'],
    ['/deployment/7/api/v2/jobs/1/events?x=1', '/deployment/7/api/v2/jobs/1/events?x=1'],
    ['https://h.example/other/jobs/1', '/other/jobs/1'],
    ['https://H.EXAMPLE:443/jobs/1', '/jobs/1'],
    ['http://h.example/jobs/1', undefined],
    ['https://h.example:444/jobs/1', undefined],
    ['https://evil.example/jobs/1', undefined],
    ['//evil.example/jobs/1', undefined],
    ['//h.example/jobs/1', undefined],
    ['/\\evil.example/jobs/1', undefined],
    ['https://h.example@evil.example/jobs/1', undefined],
    ['https://user@h.example/jobs/1', undefined],
    ['javascript:alert(1)', undefined],
    ['jobs/1', undefined],
    ['', undefined],
  ])('the link %s is followed to %s', (link, path) => {
    expect(createLinks('https://h.example/deployment/7').targetOf(link)).toBe(path);
  });

  test('below a mount prefix links are followed from the origin, and the rest is built', async () => {
    const { upstream, remote } = await openRemote({ mount: '/deployment/d1' });
    const job = value(await remote.submit(CALLER, { workflow: WORKFLOW, extraData: {} }));
    value(await remote.workflow(CALLER, job.id));
    upstream.change(job.id, { status: 'succeeded' });
    await collect(remote, job.id, CALLER);
    value(await remote.content(CALLER, 'a1'));
    expect(upstream.requests('workflow')).toHaveLength(1);
    expect(upstream.journal.filter(({ route }) => route === 'unknown')).toEqual([]);
  });

  test('links are followed where there are some, not built', async () => {
    const { upstream, remote } = await openRemote();
    const { id } = upstream.addJob({ status: 'running' });
    const real = `/api/v2/jobs/${id}`;
    const { id: alias } = upstream.addJob({
      urls: { self: real, events: `${real}/events`, cancel: `${upstream.origin}${real}/cancel` },
    });
    value(await remote.cancel(CALLER, alias));
    expect(upstream.jobs.get(id)?.status).toBe('canceled');
    expect(upstream.jobs.get(alias)?.status).toBe('queued');
  });
});

describe('credentials', () => {
  test('links to another origin are not followed, with or without a key', async () => {
    const { upstream: thief } = await openRemote();
    const { upstream, remote } = await openRemote();
    const away = `${thief.origin}/api/v2/jobs/x`;
    const urls = { self: away, events: `${away}/events`, cancel: `${away}/cancel` };
    const { id } = upstream.addJob({ status: 'running', urls });
    setTimeout(() => upstream.change(id, { status: 'succeeded' }), 60);
    await collect(remote, id, CALLER);
    value(await remote.cancel(CALLER, id));
    value(await remote.workflow(CALLER, id).then(() => remote.get(CALLER, id)));
    expect(thief.journal).toEqual([]);
    expect(upstream.requests('cancel')).toHaveLength(1);
  });

  test('redirects are followed by no call', async () => {
    const { upstream: thief } = await openRemote();
    const { upstream, remote } = await openRemote();
    const { id } = upstream.addJob();
    for (const route of ['get', 'submit', 'events', 'upload', 'list', 'cancel'] as const) {
      upstream.always(route, ({ res }) => {
        res.writeHead(307, { Location: `${thief.origin}/api/v2/x` });
        res.end();
      });
    }
    const file = { file: await spooled('x'), contentType: 'text/plain', filePath: 'x.txt' };
    const answers = [
      await remote.get(CALLER, id),
      await remote.submit(CALLER, { workflow: WORKFLOW, extraData: {} }),
      await remote.list(CALLER, {}),
      await remote.createAsset(CALLER, file),
    ];
    for (const answer of answers) {
      expect(answer).toMatchObject({ error: { status: 502, code: 'bad_upstream_response' } });
    }
    expect(thief.journal).toEqual([]);
  });

  test.each(['two\r\nlines', 'schlüssel', 'a b', ''])('the key %j is refused here', async (key) => {
    const { upstream, remote } = await openRemote();
    expect(await remote.get({ user: 'x', credential: key }, 'x')).toMatchObject({
      error: { status: 401, code: 'unauthorized' },
    });
    expect(upstream.journal).toEqual([]);
  });

  test('a snapshot read with one key is not shown to another', async () => {
    const { upstream, remote } = await openRemote({ limits: { snapshotMs: 60_000 } });
    const { id } = upstream.addJob();
    value(await remote.get(CALLER, id));
    upstream.always('get', fault.refuse(404, 'not_found'));
    expect((await remote.get({ user: 'ben', credential: 'key-of-ben' }, id)).ok).toBe(false);
  });
});

test('an upstream that is no URL is reported at once', () => {
  const deps = { log: silentLogger() };
  expect(() => createRemoteJobs({ ...deps, service: { baseUrl: 'nope' } })).toThrow();
});
