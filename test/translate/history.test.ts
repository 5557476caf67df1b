import { describe, expect, test } from 'vitest';
import {
  historySteps,
  historyV2Detail,
  historyV2Item,
  type Submitted,
} from '../../src/translate/history.ts';
import { type JobView, jobDetail, jobItem, jobStatus } from '../../src/translate/job-views.ts';
import { endWord } from '../../src/translate/status.ts';
import { runSteps } from '../../src/protocol/steps.ts';
import type { Job } from '../../src/protocol/v2.ts';
import {
  PROMPT_ID,
  chain,
  fileRef,
  historyEntry,
  outputOf,
  runScript,
  settled,
  started,
  status,
} from './script.ts';

const GRAPH = chain(['1', 'EmptyImage'], ['2', 'PreviewImage'], ['3', 'SaveImage']);
const SUBMITTED: Submitted = {
  number: 4,
  promptId: PROMPT_ID,
  graph: GRAPH,
  extraData: { extra_pnginfo: { workflow: { id: 'wf-1' } }, client_id: 'c' },
  targets: ['2', '3'],
};
const made = [outputOf('t', '2', { x_temp: true }), outputOf('a', '3')];
const files = new Map([
  ['t', fileRef('t.png', 'temp')],
  ['a', fileRef('a.png')],
]);
const x_ui = {
  '2': { images: [{ x_asset: 't' }], animated: [false] },
  '3': { images: [{ x_asset: 'a' }] },
};

function ended(more: Partial<Job> = {}) {
  return runScript(GRAPH, [
    status('running', ['1']),
    started('2'),
    settled({ outputs: made, x_ui, ...more }, files),
  ]).state;
}

function viewOf(more: Partial<Job> = {}): JobView {
  const state = ended(more);
  const times = { createdAtMs: 5, startedAtMs: state.startedAtMs, endedAtMs: state.endedAtMs };
  return {
    submitted: SUBMITTED,
    word: endWord(state.outcome ?? 'lost', state.error?.code),
    ...times,
    entry: historyEntry(state, SUBMITTED),
  };
}

const LIVE: JobView = {
  submitted: SUBMITTED,
  word: 'queued_waiting',
  createdAtMs: 5,
  startedAtMs: null,
  endedAtMs: null,
  entry: null,
};

describe('the history entry', () => {
  test('of a failed run keeps what was shown before, and the payload the sockets got', () => {
    const state = ended({ status: 'failed', error: { code: 'x', message: 'no', node_id: '3' } });
    const entry = historyEntry(state, SUBMITTED);
    expect(entry.status).toMatchObject({ status_str: 'error', completed: false });
    expect(entry.status.messages.map(([type]) => type)).toEqual([
      'execution_start',
      'execution_cached',
      'execution_error',
    ]);
    expect(entry.status.messages.at(-1)?.[1]).toMatchObject({
      node_id: '3',
      exception_message: 'no\n',
    });
    expect(Object.keys(entry.outputs)).toEqual(['2', '3']);
    expect(entry.meta['2']).toEqual({
      node_id: '2',
      display_node: '2',
      parent_node: null,
      real_node_id: '2',
    });
  });

  test('of a prompt cancelled before its start is an error with one message and no outputs', () => {
    const { state } = runScript(GRAPH, [
      status('queued'),
      settled({ status: 'canceled', started_at: null }),
    ]);
    expect(historyEntry(state, SUBMITTED)).toMatchObject({
      outputs: {},
      status: {
        status_str: 'error',
        completed: false,
        messages: [
          [
            'execution_interrupted',
            { prompt_id: PROMPT_ID, node_id: '', node_type: '', executed: [], timestamp: 100 },
          ],
        ],
      },
      meta: {},
    });
    expect(endWord(state.outcome ?? 'lost')).toBe('cancelled');
  });
});

describe('GET /api/history_v2', () => {
  const entry = historyEntry(ended(), SUBMITTED);

  test('lists prompts without their graph', () => {
    expect(historyV2Item({ createdAtMs: 5 }, entry)).toEqual({
      prompt_id: PROMPT_ID,
      create_time: 5,
      workflow_id: 'wf-1',
      prompt: { priority: 4, prompt_id: PROMPT_ID, extra_data: SUBMITTED.extraData },
      outputs: entry.outputs,
      status: entry.status,
      meta: entry.meta,
    });
  });

  test('shows one with its graph', () => {
    expect(historyV2Detail(entry)).toMatchObject({
      prompt: { priority: 4, prompt_id: PROMPT_ID, prompt: GRAPH, outputs_to_execute: ['2', '3'] },
      status: { completed: true },
    });
  });
});

describe('GET /api/jobs', () => {
  test('a waiting prompt has no members that are unknown', () => {
    expect(jobItem(LIVE)).toEqual({
      id: PROMPT_ID,
      status: 'pending',
      priority: 4,
      create_time: 5,
      outputs_count: 0,
      previewable_outputs_count: 0,
      workflow_id: 'wf-1',
    });
  });

  test('a done prompt shows a saved file rather than a preview of one', () => {
    expect(jobItem(viewOf())).toEqual({
      id: PROMPT_ID,
      status: 'completed',
      priority: 4,
      create_time: 5,
      execution_start_time: 10,
      execution_end_time: 100,
      outputs_count: 2,
      previewable_outputs_count: 2,
      preview_output: {
        filename: 'a.png',
        subfolder: '',
        type: 'output',
        nodeId: '3',
        mediaType: 'images',
      },
      workflow_id: 'wf-1',
    });
  });

  test('a failed prompt shows why, an interrupted one does not', () => {
    const error = { code: 'x', message: 'no', node_id: '3' };
    expect(jobItem(viewOf({ status: 'failed', error }))).toMatchObject({
      status: 'failed',
      execution_error: { node_id: '3', exception_message: 'no\n' },
    });
    expect(jobItem(viewOf({ status: 'canceled' }))).not.toHaveProperty('execution_error');
    expect(jobItem(viewOf({ status: 'canceled' }))).toMatchObject({ status: 'cancelled' });
  });

  test('/{id} adds outputs, history status and the workflow', () => {
    const view = viewOf();
    expect(jobDetail(view)).toMatchObject({
      outputs: view.entry?.outputs,
      execution_status: view.entry?.status,
      workflow: { prompt: GRAPH, extra_data: SUBMITTED.extraData },
      update_time: 100,
    });
    expect(jobDetail(LIVE)).toMatchObject({ outputs: {}, update_time: 5 });
    expect(jobDetail(LIVE)).not.toHaveProperty('execution_status');
  });
});

describe('GET /api/job/{id}/status', () => {
  test('error_message is the error record as JSON text', () => {
    const answer = jobStatus(
      viewOf({ status: 'failed', error: { code: 'validation', message: 'no' } }),
    );
    expect(answer).toMatchObject({
      status: 'non_retryable_error',
      created_at: '1970-01-01T00:00:00.005Z',
    });
    expect(JSON.parse(answer.error_message as string)).toMatchObject({ exception_message: 'no\n' });
  });

  test('without an error it is null', () => {
    expect(jobStatus(LIVE)).toEqual({
      id: PROMPT_ID,
      status: 'queued_waiting',
      created_at: '1970-01-01T00:00:00.005Z',
      updated_at: '1970-01-01T00:00:00.005Z',
      last_state_update: '1970-01-01T00:00:00.005Z',
      assigned_inference: null,
      error_message: null,
    });
  });
});

test('a history entry takes the texts of graph and extra data as they are', () => {
  const given = { graphJson: '{ "a": 1.0 }', extraDataJson: '{ }' };
  expect(runSteps(historySteps(ended(), SUBMITTED, given))).toContain('{ "a": 1.0 },{ },');
});
