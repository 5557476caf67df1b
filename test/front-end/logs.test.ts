import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Received, type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

let holdover: Holdover;
beforeAll(async () => {
  holdover = await startHoldover({ upstream: 'embedded' });
});
afterAll(() => holdover.dispose());

type Entry = { readonly t: string; readonly m: string };

const withKey = (key: string): Record<string, string> => ({ 'X-API-Key': key });

async function raw(key: string): Promise<{ entries: Entry[]; size: object }> {
  const answer = await call(holdover.url, '/internal/logs/raw', { headers: withKey(key) });
  return JSON.parse(answer.text) as { entries: Entry[]; size: object };
}

async function subscribe(key: string, clientId: string, enabled: boolean): Promise<void> {
  const body = JSON.stringify({ clientId, enabled });
  const options = { method: 'PATCH', headers: withKey(key), body };
  const answer = await call(holdover.url, '/internal/logs/subscribe', options);
  expect([answer.status, answer.text]).toEqual([200, '']);
}

async function run(key: string, clientId: string): Promise<string> {
  const prompt = { prompt: flat(), client_id: clientId };
  const { body } = await postPrompt(holdover.url, prompt, { headers: withKey(key) });
  return body.prompt_id;
}

const isLog =
  (text: string) =>
  (frame: Received): boolean =>
    frame.kind === 'text' && frame.type === 'logs' && frame.text.includes(text);
const logFrames = (socket: Recorder): Received[] => socket.frames.filter(isLog(''));

const STARTED = {
  t: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  m: expect.stringMatching(/^Holdover \d+\.\d+\.\d+ started\n$/),
};

describe('/internal/logs', () => {
  // The panel of a front end that is opened after a restart would be empty.
  test('begins with the start of the server, for who has done nothing yet', async () => {
    expect((await raw('new')).entries).toEqual([STARTED]);
  });

  test('tells of the caller’s own prompts in v1’s words', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'a', headers: withKey('words') });
    await socket.untilDone(await run('words', 'a'));
    await expect
      .poll(() => raw('words'))
      .toEqual({
        entries: [
          STARTED,
          { t: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), m: 'got prompt\n' },
          {
            t: expect.any(String),
            m: expect.stringMatching(/^Prompt executed in \d+\.\d\d seconds\n$/),
          },
        ],
        size: { cols: 80, rows: 24 },
      });
    const whole = await call(holdover.url, '/internal/logs', { headers: withKey('words') });
    expect(JSON.parse(whole.text)).toMatch(
      /^\S+ - Holdover \S+ started\n\S+ - got prompt\n\S+ - Prompt executed in .*\n$/,
    );
    await socket.close();
  });

  test('shows no user the lines, the files or the key of another', async () => {
    await call(holdover.url, '/userdata/of-alice.json', {
      method: 'POST',
      headers: withKey('alice-secret'),
      body: 'x',
    });
    expect(JSON.stringify(await raw('alice-secret'))).toContain('/userdata/of-alice.json -> 200');
    expect(JSON.stringify(await raw('alice-secret'))).not.toContain('alice-secret');
    for (const other of ['bob', '']) {
      expect(JSON.stringify(await raw(other))).not.toContain('of-alice');
    }
  });

  test('has no alias under /api', async () => {
    expect((await call(holdover.url, '/api/internal/logs')).status).toBe(404);
  });
});

describe('PATCH /internal/logs/subscribe', () => {
  test('sends new lines to this socket; the size of the terminal once', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'sub', headers: withKey('carol') });
    await subscribe('carol', 'sub', true);
    await run('carol', 'sub');
    await socket.until(isLog('Prompt executed in'));
    await run('carol', 'sub');
    await expect.poll(() => logFrames(socket).length).toBeGreaterThan(1);
    const [first, ...later] = logFrames(socket).map((frame) =>
      frame.kind === 'text' ? frame.data : {},
    );
    expect(first).toEqual({
      entries: expect.arrayContaining([{ t: expect.any(String), m: 'got prompt\n' }]),
      size: { cols: 80, rows: 24 },
    });
    expect(later.map(({ size }) => size)).toEqual(later.map(() => null));
    await socket.close();
  });

  test('reaches a socket that comes back under its id', async () => {
    await subscribe('dave', 'again', true);
    const socket = await connect(holdover.wsUrl, { clientId: 'again', headers: withKey('dave') });
    await run('dave', 'again');
    await socket.until(isLog('got prompt'));
    await socket.close();
  });

  test('with enabled false ends it', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'end', headers: withKey('erin') });
    const witness = await connect(holdover.wsUrl, { clientId: 'see', headers: withKey('erin') });
    await subscribe('erin', 'end', true);
    await subscribe('erin', 'end', false);
    await subscribe('erin', 'see', true);
    await run('erin', 'end');
    await witness.until(isLog('Prompt executed in'));
    expect(logFrames(socket)).toEqual([]);
    await Promise.all([socket.close(), witness.close()]);
  });

  test('of another user’s socket brings nothing, to neither', async () => {
    const victim = await connect(holdover.wsUrl, { clientId: 'shared', headers: withKey('frank') });
    const spy = await connect(holdover.wsUrl, { clientId: 'shared', headers: withKey('grace') });
    await subscribe('grace', 'shared', true);
    await victim.untilDone(await run('frank', 'shared'));
    await run('grace', 'shared');
    await spy.until(isLog('Prompt executed in'));
    const entries = logFrames(spy).flatMap((f) => (f.kind === 'text' ? f.data.entries : []));
    expect(entries.filter(({ m }: Entry) => m === 'got prompt\n')).toHaveLength(1);
    expect(logFrames(victim)).toEqual([]);
    await Promise.all([victim.close(), spy.close()]);
  });
});
