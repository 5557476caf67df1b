import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { silentLogger } from '../../src/observability/log.ts';
import { ReplicatedWrites } from '../../src/redis/replicated-writes.ts';

const MASTER = 'role:master\r\nconnected_slaves:1\r\n';
const replica = (state: string, lag: number): string =>
  `${MASTER}slave0:ip=127.0.0.1,port=7001,state=${state},offset=12,lag=${lag}\r\n`;

/** A node that says this of its replicas, and answers each WAIT with the next number. */
function createNode(infos: readonly string[], acks: readonly (number | Error)[] = []) {
  const calls: string[] = [];
  const [remainingInfos, remainingAcks] = [[...infos], [...acks]];
  const node = {
    options: { host: 'node', port: 7000 },
    async info() {
      calls.push('info');
      return remainingInfos.shift() ?? infos.at(-1) ?? '';
    },
    async wait() {
      calls.push('wait');
      const ack = remainingAcks.shift() ?? 1;
      if (ack instanceof Error) throw ack;
      return ack;
    },
  };
  return { node: node as unknown as Redis, calls };
}

const open = () => new ReplicatedWrites(silentLogger());

test.each([
  ['no replica', MASTER],
  ['a replica that is being filled', replica('wait_bgsave', 0)],
  ['a replica that is far behind', replica('online', 11)],
])('%s: there is no wait', async (_name, info) => {
  const { node, calls } = createNode([info]);
  const writes = open();
  await writes.whenReplicated(node);
  await writes.whenReplicated(node);
  expect(calls).toEqual(['info']);
});

test('one WAIT covers all writes that were answered before it', async () => {
  const { node, calls } = createNode([replica('online', 0)]);
  const writes = open();
  await Promise.all(Array.from({ length: 20 }, () => writes.whenReplicated(node)));
  expect(calls).toEqual(['info', 'wait']);
});

test('a call during a WAIT waits for another one', async () => {
  const { node, calls } = createNode([replica('online', 0)]);
  const writes = open();
  const first = writes.whenReplicated(node);
  await Promise.resolve();
  await Promise.resolve();
  await Promise.all([first, writes.whenReplicated(node)]);
  expect(calls).toEqual(['info', 'wait', 'wait']);
});

test('a slow replica is waited for until it is no longer counted', async () => {
  const infos = [replica('online', 0), replica('online', 5), replica('online', 11)];
  const { node, calls } = createNode(infos, [0, 0]);
  await open().whenReplicated(node);
  expect(calls).toEqual(['info', 'wait', 'info', 'wait', 'info']);
});

test('a closed connection, or a node that has become a replica, rejects', async () => {
  const closed = createNode([replica('online', 0)], [new Error('Connection is closed.')]);
  const writes = open();
  await expect(writes.whenReplicated(closed.node)).rejects.toThrow('closed');
  await writes.whenReplicated(closed.node);
  const demoted = createNode(['role:slave\r\n']);
  await expect(open().whenReplicated(demoted.node)).rejects.toThrow('has become a replica');
});
