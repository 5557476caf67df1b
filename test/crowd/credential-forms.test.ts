import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// Sockets in every form a client may have, on one server: the key decides whose frames they receive,
// the form how many frames of a prompt without a client id.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

type Headers = Readonly<Record<string, string>>;
type Form = readonly [path: string, headers: Headers, user: string, dialect: 'local' | 'hosted'];

const basic = (text: string): Headers => ({
  Authorization: `Basic ${Buffer.from(text).toString('base64')}`,
});

const LOGIN = '$2b$12$abcdefghijklmnopqrstuu/x.y';

const BY_KEY: readonly Form[] = [
  ['/ws', {}, '', 'local'],
  ['/api/ws', {}, '', 'local'],
  ['/ws?clientId=', {}, '', 'local'],
  ['/ws?clientId=token', {}, '', 'local'],
  ['/ws', { Authorization: 'Bearer ' }, '', 'local'],
  ['/ws', { 'X-API-Key': '' }, '', 'local'],
  ['/ws', basic(':'), '', 'local'],
  ['/ws?token=', {}, '', 'local'],
  ['/ws?token=', { Authorization: 'Bearer ' }, '', 'local'],
  ['/ws?token=', { 'X-API-Key': '' }, '', 'local'],
  ['/ws?token=&token=k', {}, '', 'local'],
  ['/ws', { 'X-API-Key': 'k' }, 'k', 'local'],
  ['/api/ws', { 'X-API-Key': 'k' }, 'k', 'local'],
  ['/ws', { 'X-API-KEY': ' k ' }, 'k', 'local'],
  ['/ws', { Authorization: 'Bearer k' }, 'k', 'local'],
  ['/ws', { authorization: 'bearer   k' }, 'k', 'local'],
  ['/ws', basic(':k'), 'k', 'local'],
  ['/ws', basic('k:'), 'k', 'local'],
  ['/ws?token=k', {}, 'k', 'hosted'],
  ['/api/ws?token=k', {}, 'k', 'hosted'],
  ['/ws?clientId=same&token=k', {}, 'k', 'hosted'],
  ['/ws?token=%6b', {}, 'k', 'hosted'],
  ['/ws?token=k&token=', {}, 'k', 'hosted'],
  ['/ws?token=k&token=other', {}, 'k', 'hosted'],
  ['/ws?token=', { 'X-API-Key': 'k' }, 'k', 'local'],
  ['/ws?token=', { Authorization: 'Bearer k' }, 'k', 'local'],
  ['/ws?token=other', { 'X-API-Key': 'k' }, 'k', 'hosted'],
  ['/ws?token=other', { Authorization: 'Bearer k' }, 'k', 'hosted'],
  ['/ws?token=k', { Authorization: 'Bearer ' }, 'k', 'hosted'],
  // The same token of ComfyUI-Login, as it is and encoded, is one user.
  [`/ws?clientId=same&token=${LOGIN}`, {}, LOGIN, 'local'],
  [`/api/ws?token=${encodeURIComponent(LOGIN)}`, {}, LOGIN, 'local'],
  // Keys are compared as they are.
  ['/ws?token=K', {}, 'K', 'hosted'],
  ['/ws', { 'X-API-Key': 'K' }, 'K', 'local'],
];

const TOKEN = 'the-token';
const BY_TOKEN: readonly Form[] = [
  ['/ws', { 'X-API-Key': TOKEN }, '', 'local'],
  ['/api/ws', { Authorization: `Bearer ${TOKEN}` }, '', 'local'],
  ['/ws', basic(`me:${TOKEN}`), '', 'local'],
  [`/ws?token=${TOKEN}`, {}, '', 'hosted'],
  [`/ws?token=${TOKEN}`, { 'X-API-Key': 'other' }, '', 'hosted'],
  ['/ws?token=', { 'X-API-Key': TOKEN }, '', 'local'],
  ['/ws?token=other', { Authorization: `Bearer ${TOKEN}` }, '', 'hosted'],
];

const bearer = (key: string): Headers => (key === '' ? {} : { Authorization: `Bearer ${key}` });

describe.each<[string, readonly string[], readonly Form[], (user: string) => Headers]>([
  ['told by the form', [], BY_KEY, bearer],
  ['with --local-token', ['--local-token', TOKEN], BY_TOKEN, () => bearer(TOKEN)],
])('%s', (_name, args, forms, headersOf) => {
  const holdover = useHoldover({ args });
  let sockets: readonly Recorder[];

  beforeAll(async () => {
    sockets = await Promise.all(forms.map((form) => opened(holdover, form)));
    const users = new Set(forms.map(([, , user]) => user));
    for (const [at, user] of [...users].entries())
      await runOne(holdover, { user, at }, headersOf(user));
    await Promise.all(sockets.map(allHeard));
  });
  afterAll(async () => {
    for (const { socket } of sockets) socket.terminate();
  });

  test.each(forms.map((form, at) => [...form, at] as const))(
    '%s %j is of %j, and %s',
    (_path, _headers, user, dialect, at) => {
      const frames = sockets[at]!.frames.flatMap((frame) =>
        frame.kind === 'text' && frame.data.prompt_id !== undefined ? [frame] : [],
      );
      const ids = new Set(frames.map(({ data }) => data.prompt_id));
      const types = new Set(frames.map(({ type }) => type));
      expect([...ids]).toEqual([promptIdOf(user)]);
      expect([...types].toSorted()).toEqual(dialect === 'hosted' ? WHOLE : BROADCASTS);
    },
  );
});

const BROADCASTS = ['progress_state'];
const WHOLE = [
  'executed',
  'executing',
  'execution_cached',
  'execution_start',
  'execution_success',
  'progress_state',
];

const promptIdOf = (user: string): string =>
  `prompt-of-${user.replaceAll(/\W/g, '') || 'anonymous'}`;

function opened(holdover: Holdover, [path, headers]: Form): Promise<Recorder> {
  const [base, query = ''] = path.split('?') as [string, string?];
  return connect(holdover.wsUrl, { clientId: null, path: base, query, headers });
}

/** A prompt without a client id, by a script that holds the key, to its end. */
async function runOne(
  holdover: Holdover,
  { user, at }: { user: string; at: number },
  headers: Headers,
): Promise<void> {
  const watcher = await connect(holdover.wsUrl, { clientId: null, query: 'watch=1', headers });
  const prompt_id = promptIdOf(user);
  const body = { prompt: flat({ color: 1 + at }), prompt_id };
  const answer = await postPrompt(holdover.url, body, { headers });
  expect([answer.status, answer.body.error]).toEqual([200, undefined]);
  await watcher.untilDone(prompt_id);
  await watcher.close();
}

/** The answer to a ping comes after everything that was sent before. */
async function allHeard({ socket }: Recorder): Promise<void> {
  const answered = once(socket, 'pong');
  socket.ping();
  await answered;
}
