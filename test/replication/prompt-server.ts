// A server without HTTP and jobs, over Redis: its event log, ledger, sockets and prompts.
import { onTestFinished } from 'vitest';
import { createLazyJson } from '../../src/lib/lazy-json.ts';
import { Keyring } from '../../src/auth/keyring.ts';
import { NEW_PROMPT } from '../../src/ledger/columns.ts';
import type { PromptRow, PromptStore } from '../../src/ledger/ledger.ts';
import { openRedisLedger } from '../../src/ledger/redis/redis-ledger.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { Follower } from '../../src/prompts/follow/follower.ts';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';
import { LivePrompts } from '../../src/prompts/live-prompts.ts';
import type { PromptParts } from '../../src/prompts/take-over-prompt.ts';
import { PromptTakeover } from '../../src/prompts/take-over.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { SharedEventLog } from '../../src/replication/shared-event-log.ts';
import { Hub } from '../../src/sockets/hub.ts';
import { type FakeSocket, openFake } from '../support/clients/fake-socket.ts';
import { fakePorts } from '../prompts/fake-ports.ts';

const USER = 'ann';
const CLIENT_ID = 'of-ann';
const NO_GRAPH = {};
let instances = 0;

export type PromptServer = Awaited<ReturnType<typeof openPromptServer>>;

/** `intercept`: replaces some reads and writes of its ledger. */
export async function openPromptServer(
  redisUrl: string,
  intercept: (prompts: PromptStore) => Partial<PromptStore> = () => ({}),
) {
  const log = silentLogger();
  const links = openRedis(redisUrl, { log });
  const promptEventLog = new SharedEventLog({ links, instance: `server ${instances++}`, log });
  const { prompts } = openRedisLedger({ links, leadership: () => promptEventLog.streams });
  const ledger = { prompts: { ...prompts, ...intercept(prompts) } };
  const livePrompts = new LivePrompts();
  const hub = new Hub({
    remaining: (user) => livePrompts.count(user),
    serverFlags: {},
    previewMethod: 'auto',
    onPresenceChange: (user, isThere) => promptEventLog.watch(user, isThere),
  });
  const ports = fakePorts({
    jobs: { keyring: new Keyring(), needsCredential: () => false },
    records: { prompts: ledger.prompts, eventLog: promptEventLog },
    frames: { livePrompts, hub },
    policy: { clock: systemClock },
  });
  const follower = new Follower(ports, async () => 'final');
  await new PromptTakeover(ports, { follower } as PromptParts).start(() => {});
  let isOpen = true;
  async function close(): Promise<void> {
    if (!isOpen) return;
    isOpen = false;
    hub.close();
    await follower.close();
    await promptEventLog.close();
    await links.close();
  }
  onTestFinished(close);
  return {
    links,
    promptEventLog,
    close,
    /** Accepts a prompt of the user and answers; it waits until it is told to end. */
    async accept(key: string): Promise<LivePrompt> {
      await promptEventLog.claim({ key, user: USER });
      const row = rowOf(key);
      const prompt = follower.trackPrompt(
        {
          ...row,
          lazy: { graph: createLazyJson(NO_GRAPH), extraData: createLazyJson({}) },
          targets: [],
        },
        { user: USER },
      );
      await ledger.prompts.insert(row);
      await follower.appendEntry(prompt, 'waits');
      await follower.appendEntry(prompt, 'released');
      return prompt;
    },
    end: (prompt: LivePrompt) => follower.finishWithoutJob(prompt, { kind: 'canceled' }),
    /** Other servers may take over what it leads; it writes nothing more. */
    die: () => promptEventLog.close(),
    /** Shows everything that any server did for the user before. */
    follow: () => promptEventLog.whenCaughtUp(USER),
    /** A socket of the user's client, once the server is ready for it. */
    async connect(): Promise<FakeSocket> {
      for (let round = 1; round <= 2; round++) await promptEventLog.whenCaughtUp(USER);
      await hub.channels.preload(USER);
      return openFake(hub, { dialect: 'local', user: USER, clientId: CLIENT_ID });
    },
  };
}

function rowOf(key: string): PromptRow {
  return {
    ...NEW_PROMPT,
    key,
    user: USER,
    promptId: `id of ${key}`,
    jobId: null,
    number: 1,
    clientId: CLIENT_ID,
    createdAtMs: 1000,
    graphJson: '{}',
    extraDataJson: '{}',
    targetsJson: '[]',
    state: 'outbox',
    intentJson: '{"key":"k","placed":[]}',
  };
}
