import { createHash } from 'node:crypto';
import type { Logger } from '../telemetry.ts';
import type { Definitions } from '../wire/definitions.ts';
import { completesWithin } from '../within.ts';
import { type Answer, type Missing, RETRY_MS, answerTo, tell } from './answer.ts';
import type { Copy } from './copies.ts';
import type { Outcome, Text } from './outcome.ts';
import { readDefinitions } from './read.ts';
import {
  EMPTY_PATIENCE_MS,
  type Need,
  STALE_MS,
  type Timing,
  UNCONFIRMED_PATIENCE_MS,
} from './timing.ts';

/** Versions in memory, by their name; old ones may be gone. */
export type Versions = {
  find(version: string): Definitions | undefined;
  keep(definitions: Definitions, sizeBytes: number): void;
};

/** What one source says to one account. */
export type View =
  | { readonly kind: 'definitions'; readonly definitions: Definitions; readonly isStale: boolean }
  | (Missing & { readonly retryAfterMs: number });

export type Slot = {
  view(need: Need): Promise<View>;
  /** How the source answered last. */
  last(): 'known' | Missing['kind'] | undefined;
};

type Held = Omit<Text, 'bytes'> & {
  readonly version: string;
  readonly digest: string;
  readonly confirmedAtMs: number;
  readonly isConfirmed: boolean;
};

type SlotDeps = {
  readonly ask: (known: Omit<Text, 'bytes'> | undefined) => Promise<Outcome>;
  readonly versions: Versions;
  readonly timing: Timing;
  readonly copy?: Copy | undefined;
  readonly now: () => number;
  readonly log: Logger;
  /** Of the source, as people may see it. */
  readonly name: string;
};

/** Asks its source one question at a time, and serves the last good answer meanwhile and after. */
export function createSlot(deps: SlotDeps): Slot {
  const { versions, timing, copy, now, log, name } = deps;
  let held: Held | undefined;
  let answer: Answer | undefined;
  let flight: Promise<void> | undefined;
  let restoring: Promise<void> | undefined;

  const peek = (): Definitions | undefined => held && versions.find(held.version);

  async function take(text: Text, confirmedAtMs: number): Promise<Outcome> {
    const digest = createHash('sha256').update(text.bytes).digest('base64');
    const { from, validators } = text;
    if (held?.digest === digest && peek()) {
      held = { ...held, from, validators };
      return { kind: 'same' };
    }
    const reading = await readDefinitions(text.bytes);
    if (!reading.ok) return { kind: 'none', reason: reading.reason };
    const { definitions, leftOut } = reading;
    versions.keep(definitions, text.bytes.length);
    const { version, members } = definitions;
    held = { from, validators, version, digest, confirmedAtMs, isConfirmed: false };
    log.info({ source: name, classes: members.size, leftOut }, 'node definitions read');
    return { kind: 'text', ...text };
  }

  async function restore(): Promise<void> {
    const text = await copy?.read();
    if (text) await take(text, text.confirmedAtMs);
  }

  async function attempt(): Promise<void> {
    const told = await deps.ask(peek() ? held : undefined);
    const outcome = told.kind === 'text' ? await take(told, now()) : told;
    if (outcome.kind === 'text') void copy?.write(outcome);
    if (outcome.kind === 'same') void copy?.confirm(now());
    hear(outcome);
  }

  function hear(outcome: Outcome): void {
    const next = answerTo(outcome, { atMs: now(), timing, isHeld: !!peek() });
    if (next.kind === 'known' && held) {
      held = { ...held, confirmedAtMs: next.atMs, isConfirmed: true };
    }
    tell(answer, next, { log, name });
    answer = next;
  }

  function isDue(need: Need): boolean {
    if (need === 'stored') return false;
    if (!answer) return true;
    const ageMs = now() - answer.atMs;
    const isPatient = need === 'refresh' && answer.kind !== 'failed';
    const waitMs = isPatient ? timing.demandMs : answer.waitMs;
    return ageMs < 0 || ageMs >= waitMs || (answer.kind === 'known' && !peek());
  }

  function patienceMs(need: Need): number {
    if (!peek()) return EMPTY_PATIENCE_MS[need];
    const least = need === 'show' && held?.isConfirmed === false ? UNCONFIRMED_PATIENCE_MS : 0;
    return Math.max(least, timing.patienceMs[need]);
  }

  function current(need: Need): View {
    const definitions = peek();
    const isOld = held !== undefined && now() - held.confirmedAtMs > STALE_MS;
    if (definitions && held && (need === 'use' || !isOld)) {
      return {
        kind: 'definitions',
        definitions,
        isStale: answer?.kind !== 'known',
      };
    }
    if (!answer || answer.kind === 'known') return NOT_YET;
    return { kind: answer.kind, isReached: answer.isReached, retryAfterMs: answer.waitMs };
  }

  const broke = (error: unknown): void => {
    log.error({ err: error, source: name }, 'node definitions could not be read');
    hear({ kind: 'failed', reason: 'it cannot be read' });
  };
  const landed = (): void => {
    flight = undefined;
  };

  return {
    last: () => answer?.kind,
    async view(need) {
      await (restoring ??= restore());
      if (isDue(need)) {
        flight ??= attempt().catch(broke).finally(landed);
      }
      const waitMs = patienceMs(need);
      if (flight && waitMs > 0) await completesWithin(waitMs, flight);
      return current(need);
    },
  };
}

const NOT_YET: View = { kind: 'failed', isReached: false, retryAfterMs: RETRY_MS };
