import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { parseConfig } from '../../src/config/config.ts';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const skipReason = hasOpenssl ? '' : ' (skipped: there is no openssl to make a certificate with)';

let dir = '';
const file = (name: string): string => join(dir, name);

function makePair(name: string): void {
  const files = ['-keyout', file(`${name}.key`), '-out', file(`${name}.crt`)];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...key, ...files, ...names], {
    stdio: 'ignore',
  });
}

describe.skipIf(!hasOpenssl)(`--tls-keyfile and --tls-certfile${skipReason}`, () => {
  let holdover: Holdover;
  let ca: string;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'holdover-tls-'));
    makePair('one');
    makePair('two');
    writeFileSync(file('nonsense'), 'no PEM at all');
    const locked = ['-aes256', '-passout', 'pass:secret', '-out', file('locked.key')];
    execFileSync('openssl', ['ec', '-in', file('one.key'), ...locked], { stdio: 'ignore' });
    ca = readFileSync(file('one.crt'), 'utf8');
    const args = ['--tls-keyfile', file('one.key'), '--tls-certfile', file('one.crt')];
    holdover = await startHoldover({ args, upstream: 'embedded' });
  });
  afterAll(async () => {
    await holdover.dispose();
    rmSync(dir, { recursive: true });
  });

  test('serve https, and the start line says so', async () => {
    expect(holdover.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const answer = await call(holdover.url, '/queue', { ca });
    expect([answer.status, answer.text]).toEqual([
      200,
      '{"queue_running": [], "queue_pending": []}',
    ]);
    const headers = { Connection: 'Upgrade', Upgrade: 'h2c' };
    expect((await call(holdover.url, '/queue', { ca, headers })).status).toBe(200);
    expect((await call(holdover.url, '/', { ca })).text).toContain(`${holdover.url}`);
  });

  test('serve wss', async () => {
    const socket = new WebSocket(`${holdover.wsUrl}/ws?clientId=secure`, { ca });
    const [data] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(data.toString())).toMatchObject({ type: 'status', data: { sid: 'secure' } });
    socket.close();
    await once(socket, 'close');
  });

  test.each([
    ['GET', 'same', 200],
    ['POST', 'same', 200],
    ['POST', 'https://evil.example', 403],
  ])('%s from a page of %s origin is answered %i', async (method, origin, status) => {
    const headers = { Origin: origin === 'same' ? holdover.url : origin };
    const body = method === 'POST' ? { body: '{}' } : {};
    const answer = await call(holdover.url, '/queue', { method, headers, ca, ...body });
    expect(answer.status).toBe(status);
  });

  test('take no plain HTTP, and live on', async () => {
    const socket = connectPlain(holdover.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET /queue HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(socket, 'close');
    expect(Buffer.concat(chunks).toString()).not.toContain('queue_running');
    expect((await call(holdover.url, '/queue', { ca })).status).toBe(200);
  });

  test.each([
    [['one.key'], /'--tls-keyfile' and '--tls-certfile' need each other/],
    [['', 'one.crt'], /'--tls-keyfile' and '--tls-certfile' need each other/],
    [['absent.key', 'one.crt'], /together \(ENOENT: .*absent.key'\)/],
    [['one.key', 'absent.crt'], /together \(ENOENT: .*absent.crt'\)/],
    [['nonsense', 'one.crt'], /nonsense' and '.*one.crt' cannot be used together/],
    [['one.key', 'nonsense'], /one.key' and '.*nonsense' cannot be used together/],
    [['locked.key', 'one.crt'], /locked.key' and '.*one.crt' cannot be used together/],
    [['two.key', 'one.crt'], /two.key' and '.*one.crt' cannot be used together/],
  ])('%j are refused in one clear line, exit code 2', ([key = '', cert = ''], message) => {
    const args = [
      ...(key ? ['--tls-keyfile', file(key)] : []),
      ...(cert ? ['--tls-certfile', file(cert)] : []),
    ];
    const text = expect.stringMatching(/^error: [^\n]+\n$/);
    const parsed = parseConfig(args, {});
    expect(parsed).toEqual({ kind: 'exit', code: 2, text });
    expect(parsed).toMatchObject({ text: expect.stringMatching(message) });
  });
});
