// Other servers keep no frame that counts as received here, so an entry counts when all of its frames were sent.
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { createDeferred } from '../../../src/lib/concurrency.ts';
import { Follower } from '../../../src/prompts/follow/follower.ts';
import { LivePrompts } from '../../../src/prompts/live-prompts.ts';
import {
  type LogSubscriber,
  type PromptLogEntry,
  createLocalEventLog,
} from '../../../src/prompts/prompt-event-log.ts';
import type { Output } from '../../../src/protocol/v2.ts';
import { Hub } from '../../../src/sockets/hub.ts';
import { openFake } from '../../support/clients/fake-socket.ts';
import { fakeNewPrompt, fakePorts } from '../fake-ports.ts';

const GRAPH = { '1': { class_type: 'SaveImageWebsocket', inputs: {} } };
const PNG = Buffer.from('89504e470d0a1a0a', 'hex');
const PICTURE = { id: 'asset', node_id: '1', content_type: 'image/png', x_websocket: true };
const output = PICTURE as unknown as Output;
const file = { filename: '', subfolder: '', type: 'temp' } as const;
const SENT_PICTURE: PromptLogEntry = {
  kind: 'input',
  input: { kind: 'output', output, file, atMs: 0 },
};

/** The log of a prompt that no socket listens to, and what other servers are told of it. */
function open(error?: Error) {
  const read = createDeferred();
  const receipts: string[] = [];
  const subscribers: LogSubscriber[] = [];
  const livePrompts = new LivePrompts();
  const hub = new Hub({ remaining: () => 0, serverFlags: {}, previewMethod: 'auto' });
  const api = {
    async content() {
      await read.promise;
      if (error) throw error;
      const stream = Readable.from([PNG]);
      return { ok: true, value: { kind: 'bytes', stream, totalBytes: PNG.length } };
    },
  };
  const eventLog = {
    ...createLocalEventLog(),
    subscribe: (_: unknown, subscriber: LogSubscriber) => void subscribers.push(subscriber),
    markReceived: (_: string, group: string, upTo: number) => receipts.push(`${group} ${upTo}`),
  };
  const follower = new Follower(
    fakePorts({ jobs: { api }, records: { eventLog }, frames: { livePrompts, hub } }),
    async () => 'final',
  );
  onTestFinished(async () => {
    await follower.close();
    hub.close();
  });
  follower.trackPrompt(fakeNewPrompt(GRAPH), { user: 'u' });
  return {
    apply: async (entry: PromptLogEntry, position: number) =>
      subscribers[0]?.apply(entry, position),
    connect: () => openFake(hub, { dialect: 'local', clientId: 'c' }),
    receipts,
    endRead: read.resolve,
  };
}

test('an entry counts when its picture was read and sent, not when a socket got the frames before it', async () => {
  const { apply, connect, receipts, endRead } = open();
  await apply({ kind: 'released' }, 1);
  const applied = apply(SENT_PICTURE, 2);
  const socket = connect();
  expect(socket.heard().at(-1)).toBe('executing:1');
  expect(receipts).toEqual(['client 1']);
  endRead();
  await applied;
  expect(socket.heard().at(-1)).toBe('binary:1');
  expect(receipts).toEqual(['client 1', 'client 2']);
});

test('a picture that is read when the socket is gone is not received', async () => {
  const { apply, connect, receipts, endRead } = open();
  await apply({ kind: 'released' }, 1);
  const applied = apply(SENT_PICTURE, 2);
  connect().close();
  endRead();
  await applied;
  expect(receipts).toEqual(['client 1']);
  expect(connect().heard()).toEqual(['executing:1', 'binary:1']);
});

test('a picture that cannot be read holds up no frame behind it', async () => {
  const { apply, connect, endRead } = open(new Error('the bucket is away'));
  const socket = connect();
  await apply({ kind: 'released' }, 1);
  endRead();
  await apply(SENT_PICTURE, 2);
  await apply({ kind: 'recorded' }, 3);
  expect(socket.heard().at(-1)).toBe('executing:1');
});
