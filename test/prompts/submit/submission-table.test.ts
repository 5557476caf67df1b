// The table of submissions decides by these rules, and docs/architecture.md prints it.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { v2Error } from '../../../src/protocol/job-api.ts';
import { SubmissionFacts } from '../../../src/prompts/submit/submission-facts.ts';
import { DEFAULT_PACE } from '../../../src/prompts/submission-pace.ts';
import {
  CONDITIONS,
  type Rules,
  type SearchInput,
  type SubmissionState,
  SUBMISSION_TABLE,
  nextAction,
} from '../../../src/prompts/submit/submission-table.ts';

const SECOND = 1000;
const WINDOW = DEFAULT_PACE.searchWindowMs;

/** The action when a search has had this result for so long. */
function actionAfter(
  state: SubmissionState,
  result: SearchInput,
  key: 'key free' | 'key used',
  forMs: number,
): string {
  const facts = new SubmissionFacts(true, 0);
  const error = v2Error(503, 'upstream_unreachable', '', { engineDown: true });
  facts.noteAttempt({ input: 'unknown', error }, 0);
  if (key === 'key used') facts.noteAttempt({ input: 'key used', error }, 0);
  facts.noteSearch({ result, mayForgetKeys: false }, 0);
  const input = facts.noteSearch({ result, mayForgetKeys: false }, forMs);
  const now = { nowMs: forMs, ageMs: 0, lacksSecrets: false, isOutboxFull: false };
  return nextAction(state, input, facts.conditions(DEFAULT_PACE, now));
}

test.each([
  // The client was told an error: what the service lacks is given up within seconds.
  ['unknown', 'not listed', 'key free', 0, 'wait'],
  ['unknown', 'not listed', 'key free', 3 * SECOND, 'give up: not taken'],
  ['unknown', 'engine down', 'key used', 3 * SECOND, 'give up: not known'],
  ['unknown', 'not seen', 'key free', 3 * SECOND, 'wait'],
  ['unknown', 'not seen', 'key free', WINDOW, 'give up: not known'],
  ['unknown', 'no answer', 'key free', WINDOW, 'give up: not known'],
  // It was told that the prompt is accepted: it is sent until it has a job.
  ['sent', 'none', 'key free', 0, 'send'],
  ['sent', 'none', 'key used', 0, 'send with new key'],
  ['sent', 'not listed', 'key free', 0, 'send'],
  ['sent', 'not listed', 'key used', 30 * SECOND, 'wait'],
  ['sent', 'not listed', 'key used', 61 * SECOND, 'send with new key'],
  ['sent', 'engine down', 'key used', 100 * WINDOW, 'wait'],
  ['sent', 'no answer', 'key used', WINDOW, 'give up: not known'],
  ['sent', 'unreachable', 'key free', 100 * WINDOW, 'wait'],
  // It was told nothing, as the process died.
  ['unanswered', 'none', 'key free', 0, 'send'],
  ['unanswered', 'none', 'key used', 0, 'remove'],
  ['unanswered', 'not listed', 'key free', 0, 'send'],
  ['unanswered', 'not listed', 'key used', 3 * SECOND, 'give up: not taken'],
] as const)('%s, %s, %s, for %i ms: %s', (state, result, key, forMs, action) => {
  expect(actionAfter(state, result, key, forMs)).toBe(action);
});

test('nothing is sent after the lifetime of a key', () => {
  const facts = new SubmissionFacts(true, 0);
  facts.noteSearch({ result: 'not listed', mayForgetKeys: false }, 0);
  const maySend = (ageMs: number): boolean =>
    facts.conditions(DEFAULT_PACE, { nowMs: 0, ageMs, lacksSecrets: false, isOutboxFull: false })[
      'may send'
    ];
  expect([maySend(0), maySend(21 * 60 * 60_000)]).toEqual([true, false]);
});

test('keys that leave no job again and again are not replaced for ever', () => {
  const facts = new SubmissionFacts(true, 0);
  const now = { nowMs: 0, ageMs: 0, lacksSecrets: false, isOutboxFull: false };
  const keysLeft = (): boolean => facts.conditions(DEFAULT_PACE, now)['keys left'];
  const left = [1, 2, 3, 4].map(() => {
    const isLeft = keysLeft();
    facts.noteNewKey();
    return isLeft;
  });
  expect(left).toEqual([true, true, true, false]);
});

const PAGE = new URL('../../../docs/architecture.md', import.meta.url);
const PRINTED = /(?<=<!-- `npm run settings` writes these tables. -->\n\n)[^]*?(?=\n<!-- end -->)/;

/** Returns the rules in words. */
function words(rules: Rules): string {
  return rules
    .map((rule) => (typeof rule === 'string' ? rule : `\`${rule[0]}\`: ${rule[1]}`))
    .map((text, i) => (i > 0 && i === rules.length - 1 ? `else ${text}` : text))
    .join('; ');
}

/** Prints the table: one line for the inputs of a state that have the same rules. */
function printed(): string {
  const lines = Object.entries(SUBMISSION_TABLE).flatMap(([state, row]) => {
    const inputs = new Map<string, string[]>();
    for (const [input, rules] of Object.entries(row)) {
      inputs.set(words(rules), [...(inputs.get(words(rules)) ?? []), input]);
    }
    return [...inputs].map(([text, names]) => `| \`${state}\` | ${names.join(', ')} | ${text} |`);
  });
  const conditions = Object.entries(CONDITIONS).map(([name, text]) => `| \`${name}\` | ${text} |`);
  return [
    '| State | Learned | Next |',
    '|---|---|---|',
    ...lines,
    '',
    '| Condition | Meaning |',
    '|---|---|',
    ...conditions,
    '',
  ].join('\n');
}

// `npm run settings` writes it.
test('docs/architecture.md prints the table', async () => {
  const page = readFileSync(PAGE, 'utf8');
  const shown = page.replace(PRINTED, () => printed());
  await expect(shown).toMatchFileSnapshot('../../../docs/architecture.md');
});
