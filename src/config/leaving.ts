import type { Flags } from './flags.ts';
import { Refused } from './refused.ts';

/** One rehearsal of the end of v1. */
type Brownout = {
  /** Without one it begins at once. */
  readonly fromMs: number | undefined;
  /** Without one it does not end. */
  readonly toMs: number | undefined;
  /** How many of the clients it is for, in hundredths. */
  readonly percent: number;
  /** Calls are held up for so long; without one they are refused. */
  readonly delayMs: number | undefined;
  /** Part of the user agents it is for. */
  readonly client: string | undefined;
};

/** How v1 clients are told that their API is on its way out. */
export type LeavingSettings = {
  readonly deprecatedAtMs: number;
  readonly sunsetAtMs: number | undefined;
  readonly brownouts: readonly Brownout[];
};

/** By this day the documentation of the hosted v1 API called it deprecated. */
export const DEPRECATION_DATE = '2026-08-21';

const LONGEST_DELAY_MS = 60_000;
const KEYS = ['from', 'to', 'percent', 'delay-ms', 'client'] as const;
type Key = (typeof KEYS)[number];

/** Reads the flags of v1's end. */
export function leavingSettings(flags: Flags): LeavingSettings {
  const deprecatedAtMs = instantOf(flags.deprecationDate, '--deprecation-date');
  const sunsetAtMs = flags.sunset === undefined ? undefined : instantOf(flags.sunset, '--sunset');
  if (sunsetAtMs !== undefined && sunsetAtMs < deprecatedAtMs) {
    throw new Refused("option '--sunset' must not be earlier than --deprecation-date");
  }
  // Of its variable: several, with semicolons between them.
  const specs = (flags.brownout ?? []).flatMap((text) => text.split(';'));
  return { deprecatedAtMs, sunsetAtMs, brownouts: specs.map(brownoutOf) };
}

function brownoutOf(spec: string): Brownout {
  const parts = partsOf(spec);
  const { from, to, percent, client } = parts;
  const fromMs = from === undefined ? undefined : instantOf(from, inPart('from'));
  const toMs = to === undefined ? undefined : instantOf(to, inPart('to'));
  if (fromMs !== undefined && toMs !== undefined && toMs <= fromMs) {
    throw new Refused(`${inPart('to')} must be later than its from`);
  }
  const delay = parts['delay-ms'];
  return {
    fromMs,
    toMs,
    percent: numberOf('percent', percent ?? '100', { min: 0.01, max: 100 }),
    delayMs: (delay && numberOf('delay-ms', delay, { min: 1, max: LONGEST_DELAY_MS })) || undefined,
    client,
  };
}

function partsOf(spec: string): { readonly [key in Key]?: string } {
  const parts: { [key in Key]?: string } = {};
  for (const part of spec.split(',')) {
    const at = part.indexOf('=');
    const [key, value] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
    if (!isKey(key)) {
      throw new Refused(`option '--brownout': '${part.trim()}' is none of ${KEYS.join('=, ')}=`);
    }
    if (parts[key] !== undefined) throw new Refused(`${inPart(key)} is given twice`);
    if (value === '') throw new Refused(`${inPart(key)} is empty`);
    parts[key] = value;
  }
  return parts;
}

function isKey(text: string): text is Key {
  return (KEYS as readonly string[]).includes(text);
}

function inPart(key: Key): string {
  return `option '--brownout': ${key}`;
}

function numberOf(key: Key, text: string, { min, max }: { min: number; max: number }): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Refused(`${inPart(key)} must be a number from ${min} to ${max}, not '${text}'`);
}

const INSTANT = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** A day (its beginning, in UTC), or a time with its zone: anything else means something else elsewhere. */
function instantOf(text: string, where: string): number {
  const [, year, month, day] = INSTANT.exec(text.trim()) ?? [];
  const ms = Date.parse(text.trim());
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate();
  if (year !== undefined && !Number.isNaN(ms) && isDay === Number(day)) return ms;
  const name = where.startsWith('--') ? `option '${where}'` : where;
  throw new Refused(
    `${name} needs a date such as 2026-12-01 or 2026-12-01T10:00Z, not '${text.trim()}'`,
  );
}
