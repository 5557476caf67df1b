import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { NOT_A_PICTURE, uploadInput } from '../support/clients/client-helpers.ts';
import { BY_KEY } from './callers.ts';
import { misplaced, mispreviewed } from './binary-frames.ts';
import { keyedUsers, keyedV2, previews, sharedUser } from './scenarios.ts';
import { CORRUPT, type ClientGroup, createClientGroup } from './client-group.ts';
import { outlineOf } from './frame-rules.ts';
import { TOPOLOGIES, type Topology } from './topologies.ts';
import { wrongWatcherFrames, wrongOrder, unexpectedFrames, unlike } from './unexpected-frames.ts';

// Programs written for the original server, for the hosted one and for v2, on one Holdover and all at
// once. Each receives exactly the frames its own server would have sent it. Requirements 22 and 30.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 180_000 });

describe.each(TOPOLOGIES.map((one) => [one.name, one] as const))('%s', (_name, topology) => {
  let group: ClientGroup;
  let stop: () => Promise<void>;
  let failed: string[];

  beforeAll(async () => {
    const { holdover, close } = await topology.open();
    group = createClientGroup(holdover, topology.mostLiveJobs);
    stop = close;
    failed = await perform(group, topology);
  });
  afterAll(async () => {
    await group?.close();
    await stop?.();
  });

  test('each program ends with its own result', () => {
    expect(failed).toEqual([]);
  });

  test('each job is reported whole and in order', async () => {
    expect(await wrongOrder(group, outlineOf)).toEqual([]);
  });

  test('each socket hears of each job what its server would have sent it', async () => {
    expect(await unexpectedFrames(group)).toEqual([]);
  });

  test('the first end a local program hears is its own', () => {
    expect(wrongWatcherFrames(group)).toEqual([]);
  });

  test('counts, words for exceptions and notifications are those of its server', () => {
    expect(unlike(group)).toEqual([]);
  });

  test('texts and pictures of nodes go where they belong', () => {
    expect(misplaced(group)).toEqual([]);
  });

  test('previews go to those who want them', () => {
    expect(mispreviewed(group)).toEqual([]);
  });
});

/** Runs all programs at once; tells what failed them. */
async function perform(group: ClientGroup, { isV2ByKey = true }: Topology): Promise<string[]> {
  const users = [
    BY_KEY.keyless,
    ...KEYS.flatMap((key) => [BY_KEY.hosted(key), BY_KEY.bareKey(key)]),
  ];
  for (const { headers } of users) {
    await uploadInput(group.holdover.url, { bytes: NOT_A_PICTURE, name: CORRUPT }, { ...headers });
  }
  const programs = [
    ...sharedUser(group, BY_KEY),
    ...keyedUsers(group, BY_KEY),
    previews(group, BY_KEY),
    ...(isV2ByKey ? keyedV2(group, BY_KEY) : []),
  ];
  const ended = await Promise.allSettled(programs.map(inTime));
  const failures = ended.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  if (failures.length === 0) await group.settle();
  return failures;
}

/** A program that waits for what never comes is told apart by its place in the cast. */
async function inTime(program: Promise<unknown>, at: number): Promise<void> {
  const stop = new AbortController();
  const late = delay(PATIENCE_MS, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`program ${at} waits in vain`);
  });
  late.catch(() => {});
  await Promise.race([program, late]).finally(() => stop.abort());
}

const PATIENCE_MS = 90_000;

/** Whose prompts fail by a broken upload. */
const KEYS = ['tabs-key', 'local-tabs', 'n8n-key', 'mixed-key', 'sample-key', 'namesake-2'];
