import { describe, expect, test } from 'vitest';
import { endWord, LISTED_STATUS, liveWord } from '../../src/translate/status.ts';
import type { StatusWord } from '../../src/protocol/v1.ts';

describe('GET /api/job/{id}/status', () => {
  test.each([
    ['nothing known of the job yet', {}, 'submitted', 'pending'],
    ['queued', { status: 'queued' }, 'queued_waiting', 'pending'],
    ['running, nothing seen', { status: 'running' }, 'preparing', 'in_progress'],
    [
      'running, a node was seen',
      { status: 'running', hasEvidence: true },
      'executing',
      'in_progress',
    ],
    [
      'queued, cancel asked',
      { status: 'queued', cancelRequested: true },
      'cancel_requested',
      'cancelled',
    ],
    [
      'running, cancel asked',
      { status: 'running', hasEvidence: true, cancelRequested: true },
      'cancel_requested',
      'cancelled',
    ],
    ['canceling', { status: 'canceling' }, 'cancel_requested', 'cancelled'],
    ['canceled', { status: 'canceled' }, 'cancelled', 'cancelled'],
    [
      'succeeded though cancel was asked',
      { status: 'succeeded', cancelRequested: true },
      'success',
      'completed',
    ],
    ['failed', { status: 'failed' }, 'error', 'failed'],
    ['expired', { status: 'expired' }, 'lost', 'failed'],
  ] as const)('%s', (_, facts, word, listed) => {
    const none = { status: undefined, hasEvidence: false, cancelRequested: false };
    expect(liveWord({ ...none, ...facts })).toBe(word);
    expect(LISTED_STATUS[word]).toBe(listed);
  });

  test.each<[string, string | undefined, StatusWord]>([
    ['failed', 'node_execution_error', 'error'],
    ['failed', 'timeout', 'error'],
    ['failed', 'out_of_memory', 'error'],
    ['failed', 'an unknown code', 'error'],
    ['failed', 'invalid_workflow', 'non_retryable_error'],
    ['failed', 'missing_asset', 'non_retryable_error'],
    ['failed', 'missing_model', 'non_retryable_error'],
    ['failed', 'insufficient_credits', 'non_retryable_error'],
    ['failed', 'subscription_inactive', 'non_retryable_error'],
    ['failed', 'content_policy', 'non_retryable_error'],
    ['failed', 'deployment_stopped', 'non_retryable_error'],
    ['lost', 'lost', 'lost'],
    ['succeeded', undefined, 'success'],
    ['canceled', undefined, 'cancelled'],
  ])('%s with the code %s ends as %s', (outcome, code, word) => {
    expect(endWord(outcome as 'failed', code)).toBe(word);
  });
});
