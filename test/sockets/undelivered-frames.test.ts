import { describe, expect, test, vi } from 'vitest';
import { UndeliveredFrames } from '../../src/sockets/undelivered-frames.ts';
import type { Frame } from '../../src/sockets/frame.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { Hub } from '../../src/sockets/hub.ts';
import type { V1Message } from '../../src/protocol/v1.ts';

const KIB = 1024;

const json = (message: V1Message): Frame => ({ kind: 'json', message });
const executing = (node: string): Frame =>
  json({ type: 'executing', data: { node, display_node: node, prompt_id: 'p' } });
const executed = (node: string, chars: number): Frame => {
  const output = { text: ['x'.repeat(chars)] };
  return json({ type: 'executed', data: { node, display_node: node, output, prompt_id: 'p' } });
};
const success = json({ type: 'execution_success', data: { prompt_id: 'p', timestamp: 1 } });
const text = (nodeId: string, chars: number): Frame => ({
  kind: 'text',
  nodeId,
  text: 'x'.repeat(chars),
});
const picture = (nodeId: string, bytes: number): Frame => ({
  kind: 'picture',
  picture: {
    nodeId,
    displayNodeId: nodeId,
    kind: 'result',
    mime: 'image/png',
    bytes: new Uint8Array(bytes),
  },
});
const state = (nodes: number): V1Message & { type: 'progress_state' } => {
  const node = {
    value: 1,
    max: 1,
    state: 'running',
    node_id: 'n',
    prompt_id: 'p',
    display_node_id: 'n',
    parent_node_id: null,
    real_node_id: 'n',
  } as const;
  const entries = Array.from({ length: nodes }, (_, i) => [String(i), node] as const);
  return { type: 'progress_state', data: { prompt_id: 'p', nodes: Object.fromEntries(entries) } };
};
const step = (value: number, nodes = 0): Frame => ({
  kind: 'step',
  ...(nodes > 0 && { state: state(nodes) }),
  progress: { type: 'progress', data: { value, max: 99, prompt_id: 'p', node: 'n' } },
});

function kept(backlog: UndeliveredFrames): string[] {
  return backlog.takeAll().frames.map((frame) => {
    if (frame.kind === 'json') {
      const { type, data } = frame.message;
      return 'node' in data && typeof data.node === 'string' ? `${type} ${data.node}` : type;
    }
    if (frame.kind === 'step') {
      const { value } = frame.progress.data as { value: number };
      return `step ${value}${frame.state ? ' with state' : ''}`;
    }
    return `${frame.kind} ${frame.kind === 'text' ? frame.nodeId : frame.picture.nodeId}`;
  });
}

describe('what no socket has received of a prompt', () => {
  test('is kept whole while it is little', () => {
    const backlog = new UndeliveredFrames();
    const frames = [json(state(1)), executing('1'), json(state(2)), step(1, 2), executed('1', 9)];
    for (const frame of frames) backlog.add(frame, 0);
    expect(backlog.takeAll().frames).toEqual(frames);
    expect(backlog.bytes).toBe(0);
  });

  test('names all nodes once when it is much, and loses nothing else', () => {
    const backlog = new UndeliveredFrames();
    const nodes = Array.from({ length: 200 }, (_, i) => String(i));
    for (const node of nodes) {
      backlog.add(json(state(100)), 0);
      backlog.add(executing(node), 0);
      backlog.add(step(1, 100), 0);
      backlog.add(executed(node, 10), 0);
    }
    expect(backlog.bytes).toBeLessThan(1024 * KIB);
    const words = kept(backlog);
    expect(words.filter((word) => word.startsWith('executing'))).toHaveLength(200);
    expect(words.filter((word) => word.startsWith('executed'))).toHaveLength(200);
    const states = words.flatMap((word, i) => (/state/.test(word) ? [i] : []));
    expect(states.length).toBeLessThan(30);
    expect(states.at(-1)).toBeGreaterThan(words.length - 4);
  });

  test('of very many steps is the latest, with the latest nodes', () => {
    const backlog = new UndeliveredFrames();
    backlog.add(executing('n'), 0);
    for (let i = 1; i <= 5000; i++) backlog.add(step(i, i === 4000 ? 1 : 0), 0);
    expect(backlog.size).toBeLessThan(3000);
    const words = kept(backlog);
    expect([words.includes('step 4000 with state'), words.at(-1)]).toEqual([true, 'step 5000']);
  });

  test('over its limit loses steps, texts, pictures and outputs, never a node or the end', () => {
    const onDrop = vi.fn();
    const backlog = new UndeliveredFrames(onDrop, 110 * KIB);
    backlog.add(executing('1'), 0);
    backlog.add(step(1), 0);
    backlog.add(text('t', 30 * KIB), 0);
    backlog.add(picture('p', 30 * KIB), 0);
    backlog.add(executed('1', 30 * KIB), 0);
    expect([onDrop.mock.calls.length, backlog.size]).toEqual([0, 5]);
    backlog.add(executed('2', 30 * KIB), 0);
    backlog.add(executing('2'), 0);
    backlog.add(executed('3', 30 * KIB), 0);
    backlog.add(success, 0);
    expect(onDrop).toHaveBeenCalledTimes(1);
    expect(kept(backlog)).toEqual([
      'executing 1',
      'executing 2',
      'executed 3',
      'execution_success',
    ]);
  });
});

test('of all prompts together it is bounded too; those that are over go first, and it is logged', () => {
  const log = Object.assign(silentLogger(), { warn: vi.fn() });
  const hub = new Hub({
    remaining: () => 0,
    serverFlags: {},
    previewMethod: 'auto',
    now: () => 0,
    maxReplayBytes: 1000 * KIB,
    log,
  });
  const open = (promptId: string) => hub.channels.open({ user: 'u', clientId: 'c', promptId });
  const [live, over] = [open('live'), open('over')];
  for (let i = 0; i < 5; i++) over.send(executed(String(i), 100 * KIB), 0);
  over.send(success, 0);
  hub.channels.close(over);
  for (let i = 0; i < 8; i++) live.send(executed(String(i), 100 * KIB), 0);
  expect(hub.channels.unreceivedBytes()).toBeLessThanOrEqual(1000 * KIB);
  expect(over.undelivered.size > 0).toBe(true);
  expect(over.undelivered.bytes).toBeLessThan(KIB);
  expect(live.undelivered.bytes).toBeGreaterThan(800 * KIB);
  expect(log.warn.mock.calls.map(([facts]) => facts)).toEqual([
    { event: 'socket.undelivered_dropped', user: 'u', promptId: 'over' },
  ]);
  hub.close();
});
