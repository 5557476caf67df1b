import { expect, test } from 'vitest';
import { runSteps } from '../../src/protocol/steps.ts';
import { historySteps } from '../../src/translate/history.ts';
import { type ResultForm, shownEntry } from '../../src/translate/stored-history-entry.ts';
import type { HistoryEntry } from '../../src/protocol/v1.ts';
import type { JobError } from '../../src/protocol/v2.ts';
import { PROMPT_ID, chain, runScript, settled, started, status } from './script.ts';

const GRAPH = chain(['1', 'EmptyImage'], ['2', 'SaveImage']);
const FAILED: JobError = {
  code: 'insufficient_credits',
  message: 'no',
  node_id: '2',
  x_exception_type: 'requests.HTTPError',
};

function stored(error: JobError | null): string {
  const end = settled({ status: error ? 'failed' : 'succeeded', error }, new Map());
  const { state } = runScript(GRAPH, [status('running', []), started('1'), end]);
  const submitted = { number: 1, promptId: PROMPT_ID, graph: GRAPH, extraData: {}, targets: ['2'] };
  const texts = { graphJson: JSON.stringify(GRAPH), extraDataJson: '{}' };
  return runSteps(historySteps(state, submitted, texts));
}

type ErrorData = { readonly exception_type?: string; readonly exception_message?: string };

function errorIn(text: string, form: ResultForm): ErrorData | undefined {
  const { status: how } = JSON.parse(shownEntry(text, form)) as HistoryEntry;
  const said = how.messages.find(([type]) => type === 'execution_error');
  return said?.[1] as ErrorData | undefined;
}

const typeIn = (text: string, form: ResultForm) => errorIn(text, form)?.exception_type;

test('an entry is shown with the word the client knows', () => {
  expect(typeIn(stored(FAILED), 'own')).toBe('requests.HTTPError');
  expect(typeIn(stored(FAILED), 'documented')).toBe('InsufficientFundsError');
});

test('the message ends in a newline for local clients only', () => {
  expect(errorIn(stored(FAILED), 'own')?.exception_message).toBe('no\n');
  expect(errorIn(stored(FAILED), 'documented')?.exception_message).toBe('no');
});

test('both have the members v1 has, in its order', () => {
  for (const word of ['own', 'documented'] as const) {
    const shown = JSON.parse(shownEntry(stored(FAILED), word)) as HistoryEntry;
    expect(Object.keys(shown)).toEqual(['prompt', 'outputs', 'status', 'meta']);
  }
});

test('the text of one that succeeded is not touched', () => {
  const text = stored(null);
  expect(shownEntry(text, 'own')).toBe(text);
  expect(shownEntry(text, 'documented')).toBe(text);
});
