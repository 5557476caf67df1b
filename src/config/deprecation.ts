import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';

/** A brownout: v1 calls are refused or delayed for a while, to show what its end will be like. */
export type Brownout = {
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

const MAX_DELAY_MS = 60_000;
const KEYS = ['from', 'to', 'percent', 'delay-ms', 'client'] as const;
type Key = (typeof KEYS)[number];

/** By this day the documentation of the hosted v1 API called it deprecated. */
const DEPRECATED_AT_MS = Date.UTC(2026, 7, 21);

export type DeprecationSettings = {
  /** The value of the header `Deprecation` (RFC 9745). */
  readonly deprecatedAtMs: number;
  /** The value of the header `Sunset` (RFC 8594). */
  readonly sunsetAtMs: number | undefined;
  readonly brownouts: readonly Brownout[];
};

/** Reads the flags of v1's end. */
export function deprecationSettings(flags: Flags): DeprecationSettings {
  const sunsetAtMs =
    flags.sunset === undefined ? undefined : parseInstant(flags.sunset, "option '--sunset'");
  if (sunsetAtMs !== undefined && sunsetAtMs < DEPRECATED_AT_MS) {
    throw new InvalidSetting("option '--sunset' must not be earlier than 2026-08-21");
  }
  // Of its variable: several, with semicolons between them.
  const specs = (flags.brownout ?? []).flatMap((text) => text.split(';'));
  return { deprecatedAtMs: DEPRECATED_AT_MS, sunsetAtMs, brownouts: specs.map(parseBrownout) };
}

function parseBrownout(spec: string): Brownout {
  const parts = parseParts(spec);
  const { from, to, percent, client } = parts;
  const fromMs = from === undefined ? undefined : parseInstant(from, optionPart('from'));
  const toMs = to === undefined ? undefined : parseInstant(to, optionPart('to'));
  if (fromMs !== undefined && toMs !== undefined && toMs <= fromMs) {
    throw new InvalidSetting(`${optionPart('to')} must be later than its from`);
  }
  const delayText = parts['delay-ms'];
  return {
    fromMs,
    toMs,
    percent: parseNumber('percent', percent ?? '100', { min: 0.01, max: 100 }),
    delayMs:
      (delayText && parseNumber('delay-ms', delayText, { min: 1, max: MAX_DELAY_MS })) || undefined,
    client,
  };
}

function parseParts(spec: string): { readonly [key in Key]?: string } {
  const parts: { [key in Key]?: string } = {};
  for (const part of spec.split(',')) {
    const at = part.indexOf('=');
    const [key, value] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
    if (!isKey(key)) {
      throw new InvalidSetting(
        `option '--brownout': '${part.trim()}' is none of ${KEYS.join('=, ')}=`,
      );
    }
    if (parts[key] !== undefined) throw new InvalidSetting(`${optionPart(key)} is given twice`);
    if (value === '') throw new InvalidSetting(`${optionPart(key)} is empty`);
    parts[key] = value;
  }
  return parts;
}

function isKey(text: string): text is Key {
  return (KEYS as readonly string[]).includes(text);
}

function optionPart(key: Key): string {
  return `option '--brownout': ${key}`;
}

function parseNumber(key: Key, text: string, { min, max }: { min: number; max: number }): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new InvalidSetting(
    `${optionPart(key)} must be a number from ${min} to ${max}, not '${text}'`,
  );
}

const INSTANT = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** A day (its beginning, in UTC), or a time with its zone: anything else means something else elsewhere. */
function parseInstant(text: string, option: string): number {
  const [, year, month, day] = INSTANT.exec(text.trim()) ?? [];
  const ms = Date.parse(text.trim());
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate();
  if (year !== undefined && !Number.isNaN(ms) && isDay === Number(day)) return ms;
  throw new InvalidSetting(
    `${option} needs a date such as 2026-12-01 or 2026-12-01T10:00Z, not '${text.trim()}'`,
  );
}
