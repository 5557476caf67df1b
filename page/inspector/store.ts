import { batch, computed, effect, signal } from '@preact/signals';
import type { TrafficAnswer, TrafficEntry } from '../../src/console/api-types.ts';
import { call, getJson } from '../lib/server.ts';
import { connection, identity, session, tellError } from '../state.ts';

const POLL_MS = 700;
const MAX_ENTRIES = 20_000;

export type Scope = 'own' | 'all';
/** A name that tells entries of several servers apart. */
export type Name = string;
export type NamedEntry = TrafficEntry & {
  readonly name: Name;
  readonly causeName: Name | undefined;
};

export const scope = signal<Scope>('own');
export const isPaused = signal(false);
export const entries = signal<ReadonlyMap<Name, NamedEntry>>(new Map());
export const facts = signal<{ readonly dropped: number; readonly memoryBytes: number } | undefined>(
  undefined,
);
export const fault = signal('');

/** What is known of each server: with several, each poll may reach another. */
const revisions = new Map<string, number>();
let timer: ReturnType<typeof setTimeout> | undefined;
let readers = 0;

export const ordered = computed(() =>
  [...entries.value.values()].toSorted((a, b) => a.at_ms - b.at_ms || a.id - b.id),
);

async function poll(): Promise<void> {
  clearTimeout(timer);
  const { is } = connection.peek();
  if (is === 'open' && !isPaused.peek()) {
    const after = [...revisions].map(([server, revision]) => `${server}.${revision}`).join(',');
    const query = new URLSearchParams({ after, scope: scope.peek() });
    const asked = scope.peek();
    try {
      const answer = await getJson<TrafficAnswer>(`holdover/api/traffic?${query}`);
      if (asked === scope.peek()) add(answer);
      fault.value = '';
    } catch (error) {
      fault.value = error instanceof Error ? error.message : String(error);
    }
  }
  if (readers > 0) timer = setTimeout(() => void poll(), POLL_MS);
}

function add(answer: TrafficAnswer): void {
  const { server } = answer;
  revisions.set(server, answer.revision);
  batch(() => {
    facts.value = { dropped: answer.dropped, memoryBytes: answer.memory_bytes };
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

/** Begins to read; the server records while someone does. Returns a function that ends it. */
export function watchTraffic(): () => void {
  readers++;
  void poll();
  return () => {
    readers--;
    if (readers === 0) stop();
  };
}

function stop(): void {
  clearTimeout(timer);
  void call(`holdover/api/traffic/close?scope=${scope.peek()}`, {
    method: 'POST',
    keepalive: true,
  }).catch(() => {});
}

addEventListener('pagehide', () => {
  if (readers > 0) stop();
});

export function setScope(value: Scope): void {
  scope.value = value;
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

let lastIdentity = identity.peek();
effect(() => {
  if (identity.value === lastIdentity) return;
  lastIdentity = identity.value;
  revisions.clear();
  scope.value = 'own';
  forget();
});

/** The entry as an address of the API names it. */
export function entryQuery({ id }: NamedEntry): string {
  return String(new URLSearchParams({ id: String(id), scope: scope.peek() }));
}

export async function clearRecording(): Promise<void> {
  if (session.peek()?.is_operator === true) {
    await call('holdover/api/traffic/clear', { method: 'POST' }).catch(tellError);
  }
  forget();
}
