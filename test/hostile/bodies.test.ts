// The limits of a JSON body are checked while it arrives, on every route that takes one.
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import {
  type RawAnswer,
  type Wire,
  dial,
  requestText,
  say,
} from '../support/clients/raw-socket.ts';
import { expectNoLeak, expectHealthy } from '../support/processes/expect-healthy.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';

vi.setConfig({ testTimeout: 60_000 });

const ROUTES = [
  '/prompt',
  '/queue',
  '/history',
  '/interrupt',
  '/free',
  '/settings',
  '/settings/any',
  '/api/jobs/cancel',
  '/api/v2/jobs',
  '/api/v2/assets/from-hash',
  '/v1/models/local/delay',
];

describe('one body holds', () => {
  const server = useHoldover({ upstream: 'embedded' });
  const wires: Wire[] = [];
  afterEach(async () => {
    for (const wire of wires.splice(0)) wire.reset();
    await expectHealthy(server);
  });

  /** Announces a body, sends the beginning of it only, and waits for the answer. */
  async function begin(path: string, body: string, announcedBytes: number): Promise<RawAnswer> {
    const wire = await dial(server.port);
    wires.push(wire);
    const method = path === '/internal/logs/subscribe' ? 'PATCH' : 'POST';
    const headers = [`Content-Length: ${announcedBytes}`, 'X-API-Key: someone'];
    wire.send(requestText(path, { method, headers }));
    wire.send(body);
    const answer = await wire.until('exceeded.');
    expectNoLeak(answer);
    return answer;
  }

  const manyValues = `{"a":[${'[],'.repeat(500_000)}`;

  test.each([...ROUTES, '/internal/logs/subscribe'])(
    'no more JSON values than the limit: POST %s is 413 before the rest of it has come',
    async (path) => {
      const answer = await begin(path, manyValues, 12_000_000);
      expect(answer.status).toBe(413);
      expect(answer.raw).toContain('Maximum number of JSON values 500000 exceeded.');
    },
  );

  const manyNodes = (member: string): string => {
    const nodes = Array.from({ length: 10_001 }, (_, i) => `"${i}":{}`);
    return `{"${member}":{${nodes.join(',')}`;
  };

  test.each([
    ['/prompt', 'prompt'],
    ['/api/prompt', 'prompt'],
    ['/api/v2/jobs', 'workflow'],
  ])('no more nodes than the limit: POST %s is 413', async (path, member) => {
    const answer = await begin(path, manyNodes(member), 38_000_000);
    expect(answer.status).toBe(413);
    expect(answer.raw).toContain('Maximum number of nodes 10000 exceeded.');
  });

  test('as many members as it likes where they are no nodes', async () => {
    const body = `{${manyNodes('other').slice(1)}}}`;
    const answer = await say(server.port, requestText('/queue', { method: 'POST', body }));
    expect(answer.status).toBe(200);
  });

  test('no nodes under a name written with escapes either', async () => {
    const nodes = manyNodes('x').slice('{"x":'.length);
    const body = `{"pr\\u006fmpt":${nodes}}}`;
    const answer = await say(server.port, requestText('/prompt', { method: 'POST', body }));
    expect(answer).toMatchObject({ status: 413, body: 'Maximum number of nodes 10000 exceeded.' });
  });

  test.each([
    ['/prompt', (answer: RawAnswer) => expect(answer.headers['content-type']).toMatch(/^text/)],
    [
      '/api/v2/jobs',
      (answer: RawAnswer) =>
        expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'payload_too_large' } }),
    ],
    [
      '/v1/models/local/delay',
      (answer: RawAnswer) =>
        expect(JSON.parse(answer.body)).toMatchObject({ error_type: 'invalid_input' }),
    ],
  ])('POST %s says it in the words of its API', async (path, check) => {
    const body = `{"a":[${'[],'.repeat(500_000)}1]}`;
    const headers = ['X-API-Key: someone'];
    const answer = await say(server.port, requestText(path, { method: 'POST', body, headers }));
    expect(answer.status).toBe(413);
    check(answer);
  });

  test('a graph of 10 000 nodes', async () => {
    const node = { class_type: 'PrimitiveInt', inputs: { value: 1 } };
    const nodes = Array.from({ length: 9_999 }, (_, i) => [`${i}`, node]);
    const shown = { class_type: 'PreviewAny', inputs: { source: ['0', 0] } };
    const prompt = { ...Object.fromEntries(nodes), shown };
    expect(await postPrompt(server.url, { prompt })).toMatchObject({ status: 200 });
  });

  test('30 MB of base64, and numbers to the last digit', async () => {
    const picture = 'QUJD'.repeat(7_500_000);
    const source = { class_type: 'PrimitiveString', inputs: { value: picture } };
    const shown = { class_type: 'PreviewAny', inputs: { source: ['1', 0] } };
    const prompt = JSON.stringify({ '1': source, '2': shown });
    const many = '1e400,18446744073709551615,'.repeat(20_000);
    const body = `{"prompt":${prompt},"prompt_id":"big","extra_data":{"a":[${many}0]}}`;
    expect(await postPrompt(server.url, body)).toMatchObject({ status: 200 });
    const text = await (await fetch(`${server.url}/api/jobs/big`)).text();
    expect(text).toContain(many.replaceAll(',', ', '));
    expect(text).toContain(picture);
    await fetch(`${server.url}/interrupt`, { method: 'POST' });
  });
});

describe('all bodies together', () => {
  test('of which clients announce much and send nothing hold up nobody', async () => {
    const env = { NODE_OPTIONS: '--max-old-space-size=256' };
    const server = await startHoldover({ upstream: 'embedded', env });
    const held = ['20000000', '1000000', '100000'].flatMap((size) => Array(10).fill(size));
    const wires = await Promise.all(held.map(() => dial(server.port)));
    for (const [i, wire] of wires.entries()) {
      wire.send(`POST /prompt HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${held[i]}\r\n\r\n{`);
    }
    await delay(200);
    const body = JSON.stringify({ prompt: {}, extra_data: { a: 'x'.repeat(100_000) } });
    expect((await postPrompt(server.url, body)).status).toBe(400);
    wires.forEach((wire) => wire.reset());
    await server.dispose();
  });

  test('keep within the memory of the process: four of 30 MB in a heap of 256 MB', async () => {
    const server = await startHoldover({
      upstream: 'embedded',
      env: { NODE_OPTIONS: '--max-old-space-size=256' },
    });
    try {
      const source = { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(30_000_000) } };
      const shown = { class_type: 'PreviewAny', inputs: { source: ['1', 0] } };
      const body = JSON.stringify({ prompt: { '1': source, '2': shown } });
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => fetch(`${server.url}/prompt`, { method: 'POST', body })),
      );
      for (const answer of answers) {
        expect([200, 503]).toContain(answer.status);
        if (answer.status === 503) {
          expect(answer.headers.get('retry-after')).toMatch(/^[0-9]+$/);
          expect(await answer.json()).toMatchObject({ error: { type: 'server_busy' } });
        }
      }
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
      expect(await getJson(`${server.url}/queue`)).toHaveProperty('queue_pending');
      process.kill(server.pid, 0);
    } finally {
      await server.dispose();
    }
  });
});
