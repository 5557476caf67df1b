import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import {
  type ReceivedFrames,
  listen,
  longChain,
  wideGraph,
} from '../support/graphs/large-graphs.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { testedUpstream } from '../support/upstreams/tested-upstream.ts';
import type { Graph } from '../../src/protocol/v2.ts';

const IS_STACK = testedUpstream() === 'stack';
// Costs that grow with the square of the nodes show with either number, so the most that a prompt may have run once.
// Each entry of a stack waits until Redis has it on disk, one after the other.
const FEWER_NODES = 2_000;
const MOST_NODES = testedUpstream() === 'embedded' ? 10_000 : FEWER_NODES;
vi.setConfig({ testTimeout: 120_000, hookTimeout: IS_STACK ? 180_000 : 60_000 });
/** Two `progress_state` are never closer than this, but those of the first hundred nodes and the last one. */
const STATE_INTERVAL_MS = 50;
const STATES_AT_ONCE = 2 * 100 + 2;
const MIB = 1024 * 1024;
const HOOK = new URL('../support/processes/count-turns.mjs', import.meta.url).href;
const SHAPES: readonly (readonly [string, (nodes: number) => Graph, number, number])[] = [
  ['independent outputs', wideGraph, FEWER_NODES, FEWER_NODES],
  ['a chain', longChain, MOST_NODES, 1],
];

const TURNS_FILE = join(tmpdir(), `holdover-turns-${process.pid}`);

let server: Holdover;

beforeAll(async () => {
  const env = { NODE_OPTIONS: `--import ${HOOK}`, COUNT_TURNS_FILE: TURNS_FILE };
  server = await startHoldover({ env });
});
afterAll(async () => {
  await server.dispose();
  rmSync(TURNS_FILE, { force: true });
});

async function run(heard: ReceivedFrames, graph: Graph, clientId: string): Promise<string> {
  const answer = await postPrompt(server.url, { client_id: clientId, prompt: graph });
  expect(answer.status).toBe(200);
  await heard.ended;
  return answer.body.prompt_id;
}

/** Resident memory now and at its highest, in bytes. */
function memory(): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024;
  return { now: of('VmRSS'), peak: of('VmHWM') };
}

describe.each(SHAPES)('a large graph: %s', (name, graphOf, nodeCount, outputs) => {
  let heard: ReceivedFrames;
  let promptId: string;
  let grownBytes: number;
  let tookMs: number;

  beforeAll(async () => {
    const clientId = name.replaceAll(' ', '-');
    heard = await listen(server.wsUrl, clientId);
    const before = memory().now;
    const startedAtMs = performance.now();
    promptId = await run(heard, graphOf(nodeCount), clientId);
    tookMs = performance.now() - startedAtMs;
    grownBytes = memory().peak - before;
  });
  afterAll(() => heard.close());

  const nodesOf = (type: string) =>
    heard.messages.flatMap(({ type: its, data }) =>
      its === type && data.node !== null ? [data.node as string] : [],
    );

  test('every node is announced once, every output reported once', async () => {
    expect(new Set(nodesOf('executing')).size).toBe(nodeCount);
    expect(nodesOf('executing')).toHaveLength(nodeCount);
    expect(new Set(nodesOf('executed')).size).toBe(outputs);
    expect(nodesOf('executed')).toHaveLength(outputs);
    const history = await getJson(`${server.url}/history/${promptId}`);
    expect(Object.keys(history[promptId].outputs)).toHaveLength(outputs);
  });

  test('its frames cost as much as its nodes, not as the square of them', () => {
    // Said at every change, `progress_state` alone would be more than 10 GB.
    const states = heard.messages.filter(({ type }) => type === 'progress_state');
    expect(states.length).toBeLessThanOrEqual(STATES_AT_ONCE + tookMs / STATE_INTERVAL_MS);
    expect(heard.bytes()).toBeLessThan(nodeCount * 500);
  });

  test('it takes less than 400 MiB of memory', () => {
    expect(grownBytes).toBeLessThan(400 * MIB);
  });

  test('progress_state comes a last time before the end, with the newest nodes finished', () => {
    const types = heard.messages.map(({ type }) => type);
    const states = heard.messages.filter(({ type }) => type === 'progress_state');
    expect(types.lastIndexOf('progress_state')).toBeLessThan(types.indexOf('execution_success'));
    const { nodes } = states.at(-1)?.data ?? {};
    const last = nodesOf('executing').at(-1) ?? '';
    expect(nodes[last]).toMatchObject({ state: 'finished', value: 1, max: 1 });
    const told = Object.values(nodes).map((node: any) => node.state);
    expect(new Set(told)).toEqual(new Set(['finished']));
  });
});

test('others have their turn all the time: little is written between two turns of the event loop', () => {
  const { writes, bytes } = JSON.parse(readFileSync(TURNS_FILE, 'utf8'));
  expect(writes).toBeGreaterThan(0);
  // The second server of a stack applies what one read of its connection to Redis brings: 64 KB.
  expect(writes).toBeLessThan(IS_STACK ? 700 : 200);
  // One frame is the most: the last `progress_state` names every node, each in some 210 bytes.
  expect(bytes).toBeLessThan(10_000 * 250);
});
