import { batch, computed, signal } from '@preact/signals';
import type { TrafficAnswer, TrafficDetail, TrafficEntry } from '../../src/console/api-types.ts';
import { call, getJson, messageOf, successOf } from '../lib/server.ts';
import type { Scope } from '../lib/ui.tsx';
import { connection, identity, session, tellError } from '../state.ts';

const POLL_MS = 700;
/** The server forgets all entries 90 seconds after it was last asked. */
const PAUSED_POLL_MS = 45_000;
const MAX_ENTRIES = 20_000;

export type NamedEntry = TrafficEntry & {
  /** It tells entries of several servers apart. */
  readonly name: string;
  readonly causeName: string | undefined;
};

export const scope = signal<Scope>('own');
export const isPaused = signal(false);
export const entries = signal<ReadonlyMap<string, NamedEntry>>(new Map());
type Facts = {
  readonly dropped: number;
  readonly memoryBytes: number;
  /** Servers that share the ledger, and those of them that have answered. */
  readonly servers: number;
  readonly answered: number;
};
export const facts = signal<Facts | undefined>(undefined);
export const fault = signal('');

/** The latest revision of each server: with several, each poll may reach another. */
const revisions = new Map<string, number>();
let timer: ReturnType<typeof setTimeout> | undefined;
let readers = 0;
let askedAtMs = 0;

export const ordered = computed(() =>
  [...entries.value.values()].toSorted((a, b) => a.at_ms - b.at_ms || a.id - b.id),
);

async function poll(): Promise<void> {
  clearTimeout(timer);
  const { is } = connection.peek();
  const isDue = !isPaused.peek() || Date.now() - askedAtMs >= PAUSED_POLL_MS;
  if (is === 'open' && isDue) {
    askedAtMs = Date.now();
    const after = [...revisions].map(([server, revision]) => `${server}.${revision}`).join(',');
    const query = new URLSearchParams({ after, scope: scope.peek() });
    const [asked, asking] = [scope.peek(), identity.peek()];
    try {
      const answer = await getJson<TrafficAnswer>(`holdover/api/traffic?${query}`);
      const isWanted = asked === scope.peek() && asking === identity.peek();
      if (isWanted && !isPaused.peek()) add(answer);
      fault.value = '';
    } catch (error) {
      fault.value = messageOf(error);
    }
  }
  if (readers > 0) timer = setTimeout(() => void poll(), POLL_MS);
}

function add(answer: TrafficAnswer): void {
  const { server } = answer;
  revisions.set(server, answer.revision);
  batch(() => {
    const { dropped, memory_bytes: memoryBytes, servers } = answer;
    facts.value = { dropped, memoryBytes, servers, answered: revisions.size };
    if (answer.entries.length === 0) return;
    const next = new Map(entries.peek());
    for (const entry of answer.entries) {
      const name = `${server}.${entry.id}`;
      const causeName = entry.cause_id === null ? undefined : `${server}.${entry.cause_id}`;
      next.set(name, { ...entry, name, causeName });
    }
    for (const name of next.keys()) {
      if (next.size <= MAX_ENTRIES) break;
      next.delete(name);
    }
    entries.value = next;
  });
}

/** Begins to read; the server records while someone does, and a while longer. Returns a function that ends it. */
export function watchTraffic(): () => void {
  readers++;
  void poll();
  return () => {
    readers--;
    if (readers === 0) clearTimeout(timer);
  };
}

export function setScope(value: Scope): void {
  scope.value = value;
  // The server has entries of before, too.
  revisions.clear();
  forget();
  void poll();
}

/** Empties the list; what comes from here on is shown. */
function forget(): void {
  entries.value = new Map();
}

export function togglePause(): void {
  isPaused.value = !isPaused.peek();
}

identity.subscribe(() => {
  revisions.clear();
  scope.value = 'own';
  forget();
});

/** The entry as an address of the API names it. */
export function entryQuery({ id, name }: NamedEntry): string {
  const [server = ''] = name.split('.', 1);
  return String(new URLSearchParams({ id: String(id), scope: scope.peek(), server }));
}

const MAX_TRIES = 20;

/** Asks again while a balancer sends the call to another server than the one it names. */
export async function askServer(path: string): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const answer = await call(path);
    if (answer.status !== 404 || tries === MAX_TRIES) return answer;
    const refusal = (await answer
      .clone()
      .json()
      .catch(() => undefined)) as { readonly error?: { readonly type?: string } } | undefined;
    if (refusal?.error?.type !== 'other_server') return answer;
  }
}

export async function entryDetail(entry: NamedEntry): Promise<TrafficDetail> {
  const answer = await askServer(`holdover/api/traffic/entry?${entryQuery(entry)}`);
  return (await (await successOf(answer)).json()) as TrafficDetail;
}

export async function clearRecording(): Promise<void> {
  if (session.peek()?.is_operator === true) {
    await call('holdover/api/traffic/clear', { method: 'POST' }).catch(tellError);
  }
  forget();
}
