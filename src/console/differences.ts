import { readFileSync } from 'node:fs';
import { packageUrl } from '../lib/package-url.ts';
import type { DifferenceRow, TrafficEntry } from './api-types.ts';
import { apiOf } from './traffic/recorded-call.ts';
import {
  type CallFacts,
  DIFFERENCE_RULES,
  type DifferenceName,
  type FrameFacts,
  type Rule,
} from './traffic/difference-rules.ts';

type Call = Pick<TrafficEntry, 'method' | 'target' | 'status'>;
type Frame = Pick<TrafficEntry, 'type' | 'text' | 'bytes'>;

/** Returns the rows of docs/differences.md that are visible in a v1 call. */
export function differencesOf(
  { target = '', status = 0, method = '' }: Call,
  facts: Pick<CallFacts, 'headers' | 'isRemote' | 'body'>,
): readonly DifferenceName[] {
  const [address = '', query = ''] = target.split('?', 2);
  // In v1 there is a front end at `/`.
  if (address !== '/' && apiOf(address) !== 'v1') return [];
  const isHosted = address.startsWith('/api/') && facts.headers['x-api-key'] !== undefined;
  const path = address.replace(/^\/api(?=\/)/, '');
  let text: string | undefined;
  const body = (): string => (text ??= facts.body());
  const call: CallFacts = { ...facts, body, method, path, query, status, isHosted };
  return namesWhere((rule) => rule.call?.(call) === true);
}

/** Returns the rows that are visible in a frame that was sent to a v1 client. */
export function frameDifferences(
  { type = '', text = '', bytes = 0 }: Frame,
  { isRemote }: Pick<FrameFacts, 'isRemote'>,
): readonly DifferenceName[] {
  return namesWhere((rule) => rule.frame?.({ type, text, bytes, isRemote }) === true);
}

const NAMED_RULES = Object.entries(DIFFERENCE_RULES) as [DifferenceName, Rule][];

function namesWhere(applies: (rule: Rule) => boolean): readonly DifferenceName[] {
  return NAMED_RULES.filter(([, rule]) => applies(rule)).map(([name]) => name);
}

let rows: ReadonlyMap<string, DifferenceRow> | undefined;

/** Returns the rows with these names, in the words of docs/differences.md. */
export function differenceRows(names: readonly string[]): readonly DifferenceRow[] {
  rows ??= readRows();
  return names.flatMap((name) => rows?.get(name) ?? []);
}

/**
 * Returns the names of all rows of docs/differences.md.
 * @internal
 */
export function documentedRows(): readonly string[] {
  return [...readRows().keys()];
}

function readRows(): ReadonlyMap<string, DifferenceRow> {
  const text = readFileSync(packageUrl('docs/differences.md'), 'utf8');
  const found = text.matchAll(/^\| `([\w-]+)` \| ([^|\n]*?) ?\| ([^|\n]*) \| ([^|\n]*) \|$/gm);
  return new Map(
    [...found].map(([, row = '', original = '', holdover = '', why = '']) => [
      row,
      { row, original, holdover, why },
    ]),
  );
}
