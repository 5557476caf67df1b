import { setTimeout as delay } from 'node:timers/promises';
import type { PromptJob, PromptRow, PromptStore } from './ledger.ts';
import { type Lead, LOST } from './redis-lead.ts';
import { type Argument, type Link, own } from './redis-link.ts';
import { createOutlines } from './redis-outlines.ts';
import { PROMPT_SCRIPTS } from './redis-prompts-lua.ts';
import { type Columns, createTable, token } from './redis-table.ts';

const COLUMNS: Columns<PromptRow> = {
  key: 'text',
  user: 'text',
  promptId: 'text',
  jobId: 'text',
  number: 'number',
  clientId: 'text',
  createdAtMs: 'number',
  graphJson: 'text',
  extraDataJson: 'text',
  targetsJson: 'text',
  state: 'text',
  intentJson: 'text',
  cancelAskedAtMs: 'number',
  entryJson: 'text',
  statusWord: 'text',
  startedAtMs: 'number',
  endedAtMs: 'number',
};

/** Between tries to take back what was refused. */
const AGAIN_MS = 1000;

/** The prompts of v1, live and done. */
export function promptStore(link: Link, lead: () => Lead): PromptStore {
  const table = createTable<PromptRow>(link, 'prompt', COLUMNS);
  const lua = link.scripts('prompts', PROMPT_SCRIPTS);
  const { write, ask, read, redis, prefix } = link;
  const ids = (index: string, from: number, to: number): Promise<string[]> =>
    read(() => redis.zrange(`${prefix}prompts:${index}`, from, String(to)));
  const done = async (user: string, { from = 0, to = -1 }): Promise<PromptRow[]> =>
    table.rows(await ids(`done:${user}`, from, to));
  type Act = 'setState' | 'setIntent' | 'attach' | 'detach' | 'begin' | 'remove' | 'finish';
  async function writeAsLeader(act: Act, key: string, ...args: Argument[]): Promise<void> {
    const token = lead().token(key);
    const reply = await ask(() => lua[act](key, token, ...args));
    if (reply === LOST) throw lead().refused(key, token);
  }
  return {
    async insert(row) {
      const mark = token();
      const leader = lead().token(row.key);
      const insert = () => lua.insert(mark, row.key, leader, ...table.fields(row));
      const reply = await ask(insert).catch((error: unknown) => {
        void insist(link, () => lua.revoke(mark, row.key));
        throw error;
      });
      if (reply === LOST) throw lead().refused(row.key, leader);
    },
    setState: (key, state) => writeAsLeader('setState', key, state),
    setIntent: (key, { intentJson, targetsJson }) =>
      writeAsLeader('setIntent', key, ...table.fields({ intentJson, targetsJson })),
    detach: (key, intent) =>
      writeAsLeader('detach', key, ...table.fields({ state: 'outbox', jobId: null, ...intent })),
    begin: (key, atMs) => writeAsLeader('begin', key, atMs),
    askCancel: (key, atMs) =>
      write(() => lua.change(key, ...table.fields({ cancelAskedAtMs: atMs }))),
    attach: (key, patch) =>
      writeAsLeader('attach', key, ...table.fields({ ...only(patch), state: 'live' })),
    remove: (key) => writeAsLeader('remove', key),
    finish: (key, { shortened, ...outcome }) => {
      const row = { ...outcome, ...shortened, state: 'done' as const };
      return writeAsLeader('finish', key, ...table.fields(row));
    },
    entries: (keys) =>
      read(async () => (keys.length === 0 ? [] : entriesIn(await lua.entries(...keys)))),
    async live(user) {
      const rows = await table.rows(await ids(user === undefined ? 'live' : `live:${user}`, 0, -1));
      return rows.filter(({ state }) => state !== 'done');
    },
    find: (user, promptId) => table.last(`prompts:id:${own(user, promptId)}`),
    findByJob: (user, jobId) => table.first(`prompts:job:${own(user, jobId)}`),
    hasJob: async (jobId) => (await read(() => lua.hasJob(jobId))) === 1,
    async history(user, { maxItems, offset }) {
      if (maxItems !== undefined && maxItems <= 0) return [];
      // v1 takes the newest when only a maximum is given; a negative offset counts as none.
      if (maxItems !== undefined && (offset === undefined || offset < 0))
        return done(user, { from: -maxItems });
      const from = Math.max(0, offset ?? 0);
      return done(user, { from, ...(maxItems !== undefined && { to: from + maxItems - 1 }) });
    },
    outlines: createOutlines(link),
    get: table.get,
    deleteHistory: (user, promptIds) => write(() => lua.deleteHistory(user, ...promptIds)),
    clearHistory: (user) => write(() => lua.clearHistory(user)),
    pruneHistory: ({ count, bytes }) => write(() => lua.pruneHistory(count, bytes)),
    highestNumber: async () => Number(String(await read(() => lua.highestNumber()))),
  };
}

/** Nobody may run what its client was told was not taken; Redis may yet get to it. */
async function insist({ redis }: Link, send: () => Promise<unknown>): Promise<void> {
  while (redis.status !== 'end') {
    try {
      await send();
      return;
    } catch {
      await delay(AGAIN_MS, undefined, { ref: false });
    }
  }
}

function entriesIn(reply: unknown): readonly (string | null)[] {
  return (reply as readonly (Buffer | null)[]).map((text) => text && text.toString());
}

/** Callers may hand over more than is asked for. */
function only({ promptId, jobId, graphJson, targetsJson }: PromptJob) {
  return { promptId, jobId, targetsJson, ...(graphJson !== undefined && { graphJson }) };
}
