// Which socket is sent what: a test for each cell of the rules about sockets in src/dialects/dialect.ts.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Channel } from '../../src/sockets/channel.ts';
import type { Dialect } from '../../src/dialects/dialect.ts';
import type { Frame } from '../../src/sockets/frame.ts';
import { Hub } from '../../src/sockets/hub.ts';
import type { V1Message } from '../../src/protocol/v1.ts';
import { fakeSocket, openFake } from '../support/clients/fake-socket.ts';

const P = 'p';
const json = (message: V1Message, more: object = {}): Frame => ({ kind: 'json', message, ...more });
const timed = { prompt_id: P, timestamp: 1 };
const START = json({ type: 'execution_start', data: timed });
const CACHED = json({ type: 'execution_cached', data: { nodes: [], ...timed } });
const STATE = json({ type: 'progress_state', data: { prompt_id: P, nodes: {} } });
const NODE = json({ type: 'executing', data: { node: '1', display_node: '1', prompt_id: P } });
const STEP: Frame = {
  kind: 'step',
  progress: { type: 'progress', data: { value: 1, max: 2, prompt_id: P, node: '1' } },
};
const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0]);
const PICTURE: Frame = {
  kind: 'picture',
  picture: {
    nodeId: '1',
    displayNodeId: '1',
    mime: 'image/png',
    bytes: PNG,
    kind: 'result',
  },
};
const TEXT: Frame = { kind: 'text', nodeId: '1', text: 'so far' };
const OUTPUT = json({
  type: 'executed',
  data: { node: '1', display_node: '1', output: null, prompt_id: P },
});
const INTERRUPTED = json({
  type: 'execution_interrupted',
  data: { node_id: '1', node_type: 'N', executed: [], ...timed },
});
const ERROR = json(
  {
    type: 'execution_error',
    data: {
      node_id: '1',
      node_type: 'N',
      executed: [],
      exception_message: 'no\n',
      exception_type: 'PIL.UnidentifiedImageError',
      traceback: [],
      current_inputs: {},
      current_outputs: [],
      ...timed,
    },
  },
  { documented: 'ImageDownloadError' },
);
const CLOSING = json({ type: 'executing', data: { node: null, prompt_id: P } });

const RUN = [START, CACHED, STATE, NODE, STEP, PICTURE, TEXT, OUTPUT, INTERRUPTED, CLOSING];
const WHOLE = [
  'execution_start',
  'execution_cached',
  'progress_state',
  'executing:1',
  'progress:1/2',
  'binary:1',
  'binary:3',
  'executed:1',
  'execution_interrupted',
  'executing:null',
];
/** The frames that reference/v1-wire T11 to T13 and the recordings show on every socket. */
const BROADCASTS = [
  'progress_state',
  'progress:1/2',
  'binary:1',
  'binary:3',
  'execution_interrupted',
];

let hub: Hub;
beforeEach(() => {
  vi.useFakeTimers();
  hub = new Hub({ remaining: () => 0, serverFlags: {}, previewMethod: 'auto', now: Date.now });
});
afterEach(() => {
  hub.close();
  vi.useRealTimers();
});

let made = 0;
/** A prompt whose `POST` was answered. */
function submit(clientId: string | null, more: object = {}): Channel {
  const channel = hub.channels.open({ user: 'u', clientId, promptId: `${P}${++made}`, ...more });
  hub.channels.supersedeOthers(channel);
  return channel;
}
function run(channel: Channel, frames: readonly Frame[] = RUN): void {
  for (const frame of frames) channel.send(frame, 0);
  if (frames.at(-1) === CLOSING) hub.channels.close(channel);
}

describe('a prompt with a client_id', () => {
  test.each<[Dialect, string, string[]]>([
    ['local', 'its-own', WHOLE],
    // The original sends TEXT frames to every socket, whichever client submitted.
    ['local', 'other', ['binary:3']],
    ['hosted', 'its-own', WHOLE],
    ['hosted', 'other', WHOLE],
  ])('a %s socket with %s id hears', (dialect, id, heard) => {
    const socket = openFake(hub, { dialect, clientId: id });
    run(submit('its-own'));
    expect(socket.heard()).toEqual(heard);
  });
});

describe.each([
  ['a prompt without a client_id', {}],
  ['a v2 job', { isV2Job: true }],
])('%s', (_title, more) => {
  test.each<[Dialect, string[]]>([
    ['local', BROADCASTS],
    ['hosted', WHOLE],
  ])('a %s socket hears', (dialect, heard) => {
    const socket = openFake(hub, { dialect });
    run(submit(null, more));
    expect(socket.heard()).toEqual(heard);
  });

  test('no socket of another user hears anything', () => {
    const sockets = (['local', 'hosted'] as const).map((dialect) =>
      openFake(hub, { dialect, user: 'other' }),
    );
    run(submit(null, more));
    expect(sockets.map((socket) => socket.heard())).toEqual([[], []]);
  });

  test('taken out of the queue, it is sent to hosted sockets only', () => {
    const [local, hosted] = [
      openFake(hub, { dialect: 'local' }),
      openFake(hub, { dialect: 'hosted' }),
    ];
    run(submit(null, more), [INTERRUPTED, CLOSING]);
    expect(local.heard()).toEqual([]);
    expect(hosted.heard()).toEqual(['execution_interrupted', 'executing:null']);
  });

  test('its failure and its end are not sent to local sockets', () => {
    const socket = openFake(hub, { dialect: 'local' });
    run(submit(null, more), [START, NODE, ERROR, CLOSING]);
    expect(socket.heard()).toEqual([]);
  });
});

test('a picture of a prompt without client_id is of type 1 to a local socket, whatever it negotiated', () => {
  const sockets = (['local', 'hosted'] as const).map((dialect) => openFake(hub, { dialect }));
  for (const socket of sockets) {
    socket.say({ type: 'feature_flags', data: { supports_preview_metadata: true } });
  }
  run(submit(null), [PICTURE]);
  expect(sockets.map((socket) => socket.heard())).toEqual([
    ['feature_flags', 'binary:1'],
    ['feature_flags', 'binary:4'],
  ]);
});

test('a socket that watches hears everything of its user, and takes nothing from its client', () => {
  const watcher = openFake(hub, { dialect: 'local', clientId: 'id', watches: true });
  run(submit('id'));
  run(submit(null));
  expect(watcher.heard()).toEqual([...WHOLE, ...WHOLE]);
  expect(openFake(hub, { dialect: 'local', clientId: 'id' }).heard()).toEqual(WHOLE);
});

describe('exception_type and exception_message', () => {
  test.each<[Dialect, string]>([
    ['local', 'PIL.UnidentifiedImageError'],
    ['hosted', 'ImageDownloadError'],
  ])('to a %s socket, live and late', (dialect, type) => {
    const errorsOn = (socket: ReturnType<typeof openFake>) =>
      socket.messages().map(({ data }) => [data.exception_type, data.exception_message]);
    // Messages of the hosted service do not end in a newline.
    const shown = [type, dialect === 'local' ? 'no\n' : 'no'];
    run(submit('id'), [ERROR, CLOSING]);
    const socket = openFake(hub, { dialect, clientId: 'id' });
    expect(errorsOn(socket)).toEqual([shown, [undefined, undefined]]);
    run(submit('id'), [ERROR]);
    expect(errorsOn(socket).at(-1)).toEqual(shown);
  });
});

describe('the nodes of a progress_state', () => {
  const NODES = {
    '1': {
      value: 1,
      max: 2,
      state: 'running',
      node_id: '1',
      prompt_id: P,
      display_node_id: '1',
      parent_node_id: null,
      real_node_id: '1',
    },
  } as const;
  const WITH_CLASS = { '1': { ...NODES['1'], class_type: 'KSampler' } } as const;
  const message = { type: 'progress_state', data: { prompt_id: P, nodes: WITH_CLASS } } as const;
  const progress = {
    type: 'progress',
    data: { value: 1, max: 2, prompt_id: P, node: '1' },
  } as const;

  test.each<[Dialect, Frame, object]>([
    ['local', { kind: 'json', message }, NODES],
    ['local', { kind: 'step', state: message, progress }, NODES],
    ['hosted', { kind: 'json', message }, WITH_CLASS],
    ['hosted', { kind: 'step', state: message, progress }, WITH_CLASS],
  ])('are sent to a %s socket with their class, or without', (dialect, frame, nodes) => {
    run(submit('id'), [frame]);
    const socket = openFake(hub, { dialect, clientId: 'id' });
    run(submit('id'), [frame]);
    const states = socket.messages().filter(({ type }) => type === 'progress_state');
    expect(states.map(({ data }) => data.nodes)).toEqual([nodes, nodes]);
  });
});

test('a delayed progress_state does not follow a later step', () => {
  const socket = openFake(hub, { dialect: 'local', clientId: 'id' });
  Object.assign(socket.connection.ws, { bufferedAmount: 300 * 1024 });
  run(submit('id'), [STATE, STEP, INTERRUPTED]);
  expect(socket.heard()).toEqual(['progress:1/2', 'execution_interrupted']);
});

describe('a late local socket', () => {
  const open = (clientId: string) => openFake(hub, { dialect: 'local', clientId });

  test('is handed every prompt of its id, not only the last', () => {
    run(submit('id'));
    run(submit('id'));
    run(submit('other'));
    expect(open('id').heard()).toEqual([...WHOLE, ...WHOLE]);
  });

  test('is handed nothing of a prompt without client_id, nor of another id', () => {
    run(submit(null));
    run(submit('other'));
    expect(open('id').heard()).toEqual([]);
  });

  test('is handed what its id missed after a reconnect, and where the run is', () => {
    const first = open('id');
    const channel = submit('id');
    run(channel, [START, CACHED, STATE, NODE]);
    first.close();
    run(channel, [OUTPUT, CLOSING]);
    expect(open('id').heard()).toEqual(['executing:1', 'executed:1', 'executing:null']);
  });

  test('is handed it although a hosted socket of its user has received it', () => {
    openFake(hub, { dialect: 'hosted', clientId: 'tab' });
    run(submit('id'));
    expect(open('id').heard()).toEqual(WHOLE);
  });

  test('is handed nothing that a socket of its id has received, of either dialect', () => {
    openFake(hub, { dialect: 'hosted', clientId: 'id' });
    run(submit('id'));
    expect(open('id').heard()).toEqual([]);
  });

  test('is handed nothing after 120 seconds', () => {
    run(submit('id'));
    vi.advanceTimersByTime(119_000);
    expect(open('id').heard()).toEqual(WHOLE);
    run(submit('id'));
    vi.advanceTimersByTime(121_000);
    expect(open('id').heard()).toEqual([]);
  });

  test('is handed nothing of a result that was fetched', () => {
    const [one, two] = [submit('id'), submit('id')];
    run(one);
    run(two, [START, NODE]);
    hub.channels.discardFetched('u', [one.address.promptId]);
    expect(open('id').heard()).toEqual(['execution_start', 'executing:1']);
  });
});

describe('a late hosted socket', () => {
  const open = (clientId = 'late') => openFake(hub, { dialect: 'hosted', clientId });

  test.each([null, 'other'])('is handed the last prompt of its user, of id %s', (id) => {
    run(submit(id), [START, NODE]);
    run(submit(id));
    expect(open().heard()).toEqual(WHOLE);
    expect(open().heard()).toEqual([]);
  });

  test('is handed what the sockets of its id missed, also of an earlier prompt', () => {
    for (const channel of [submit('late'), submit('late')]) run(channel);
    expect(open().heard()).toEqual([...WHOLE, ...WHOLE]);
    expect(open().heard()).toEqual([]);
  });

  test('is handed nothing of one that was superseded, even if its own was never received', () => {
    run(submit(null));
    hub.channels.supersedeOthers(
      hub.channels.open({ user: 'u', clientId: null, promptId: 'next' }),
    );
    expect(open().heard()).toEqual([]);
  });

  test('still hears the rest of an older prompt that runs', () => {
    const older = submit(null);
    run(older, [START]);
    submit(null);
    const socket = open();
    run(older, [NODE]);
    expect(socket.heard()).toEqual(['executing:1']);
  });

  test.each<[Dialect, string]>([
    ['hosted', 'any'],
    ['local', 'id'],
  ])('is handed nothing of a prompt a %s socket has heard', (dialect, clientId) => {
    const first = openFake(hub, { dialect, clientId });
    const channel = submit('id');
    run(channel, [START, NODE]);
    first.close();
    run(channel, [OUTPUT, CLOSING]);
    expect(open().heard()).toEqual([]);
  });

  test('that comes back is handed what it missed', () => {
    const first = open('returns');
    const channel = submit(null);
    run(channel, [START, NODE]);
    first.close();
    submit(null);
    run(channel, [OUTPUT, CLOSING]);
    expect(open('another').heard()).toEqual([]);
    expect(open('returns').heard()).toEqual(['executed:1', 'executing:null']);
  });

  test('is handed nothing of broadcasts only: a local socket of no id has not received the prompt', () => {
    openFake(hub, { dialect: 'local' });
    run(submit(null));
    expect(open().heard()).toEqual(WHOLE);
  });

  test('leaves it to the sockets of its id', () => {
    run(submit('id'));
    expect(open().heard()).toEqual(WHOLE);
    expect(openFake(hub, { dialect: 'local', clientId: 'id' }).heard()).toEqual(WHOLE);
  });

  test('is handed nothing after 120 seconds, nor of a result that was fetched', () => {
    run(submit(null));
    vi.advanceTimersByTime(121_000);
    expect(open().heard()).toEqual([]);
    const channel = submit(null);
    run(channel);
    hub.channels.discardFetched('u', [channel.address.promptId]);
    expect(open().heard()).toEqual([]);
  });

  test('is handed no v2 job, and a v2 job supersedes nothing', () => {
    run(submit(null));
    run(submit(null, { isV2Job: true }));
    expect(open().heard()).toEqual(WHOLE);
  });
});

describe('notification', () => {
  test.each<[Dialect, boolean, string[]]>([
    ['local', false, []],
    ['hosted', false, ['on connect', 'it waits']],
    ['hosted', true, []],
  ])('a %s socket that watches: %s', (dialect, watches, told) => {
    const socket = fakeSocket();
    const who = { user: 'u', clientId: 'id', dialect, watches, notice: 'on connect' };
    hub.addConnection(socket.connection, who);
    hub.notify('other', 'not theirs');
    hub.notify('u', 'it waits');
    const notices = told.map((value) => ({ type: 'notification', data: { value } }));
    expect(socket.messages()).toEqual(notices);
  });
});

test('nothing is kept of prompts that no socket may ask for', () => {
  run(submit(null));
  run(submit(null, { isV2Job: true }));
  expect(hub.channels.unreceivedBytes()).toBeGreaterThan(0);
  const channel = submit(null);
  expect(hub.channels.unreceivedBytes()).toBe(0);
  run(channel);
  hub.channels.discardFetched('u', [channel.address.promptId]);
  expect(hub.channels.unreceivedBytes()).toBe(0);
});

test('a socket listens to what it is sent more of than texts', () => {
  openFake(hub, { dialect: 'local', clientId: 'id' });
  expect(hub.hasListener('u', 'id')).toBe(true);
  expect(hub.hasListener('u', null)).toBe(true);
  expect(hub.hasListener('u', 'other')).toBe(false);
  openFake(hub, { dialect: 'hosted', clientId: 'tab' });
  expect(hub.hasListener('u', 'other')).toBe(true);
});
