import { describe, expect, test, vi } from 'vitest';
import { LANGUAGES, codeOf } from '../../src/migration/session-code.ts';
import { createLocalNames, inputPathOf, planFrom } from '../../src/migration/plan-session.ts';
import type { Session, SessionEvent } from '../../src/migration/session.ts';
import { SessionRecorder } from '../../src/migration/session-recorder.ts';
import { type JobApi, refuse } from '../../src/protocol/job-api.ts';
import type { PortCall } from '../../src/observability/observed-port.ts';
import { parseJson } from '../../src/protocol/json.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { A, cancel, download, job, load, reupload, session, submit, upload } from './sessions.ts';

const ME = { user: 'me' };
const REFUSAL = refuse<never>(400, 'invalid_workflow', 'no');

/** `upload inputs/cat.png`, `submit job_1 image=asset_1`, … */
function outline(given: Session): readonly string[] {
  return planFrom(given).steps.map((step) => {
    if (step.kind === 'upload') return `upload ${step.file.path}`;
    if (step.kind === 'wait') return `wait ${step.job} ${step.ended}`;
    if (step.kind === 'cancel') return `cancel ${step.job}`;
    if (step.kind === 'pause') return `pause ${step.seconds}`;
    if (step.kind === 'until-running') return `until ${step.job} runs`;
    if (step.kind === 'download') {
      return `download ${step.place.job}/${step.place.node}/${step.place.index} ${step.path}`;
    }
    const files = step.workflow.inputs.map(({ input, from }) =>
      from.kind === 'file'
        ? ` ${input}=${from.file.variable}`
        : ` ${input}=${from.place.job}/${from.place.index}`,
    );
    const what = step.kind === 'refused' ? `refused ${step.name}` : `submit ${step.job}`;
    return `${what}${files.join('')}`;
  });
}

describe('the v2 steps of a session', () => {
  test.each<{ what: string; given: Session; steps: readonly string[] }>([
    { what: 'of nothing are none', given: session([]), steps: [] },
    {
      what: 'upload, submit, wait and download in the order of the v1 calls',
      given: session([upload(), submit('one'), download('out-2', 'second.png')]),
      steps: [
        'upload inputs/cat.png',
        'submit job_1 image=asset_1',
        'wait job_1 succeeded',
        'download job_1/9/1 second.png',
      ],
    },
    {
      what: 'upload a file that was there before',
      given: session([submit('one')]),
      steps: ['upload inputs/cat.png', 'submit job_1 image=asset_1', 'wait job_1 succeeded'],
    },
    {
      what: 'wait for a job before another works on what it made',
      given: session([submit('one'), submit('two', { workflow: load('out-1', 'x') })]),
      steps: [
        'upload inputs/cat.png',
        'submit job_1 image=asset_1',
        'wait job_1 succeeded',
        'submit job_2 image=job_1/0',
        'wait job_2 succeeded',
      ],
    },
    {
      what: 'submit all jobs that were submitted before one was waited for',
      given: session([submit('one'), submit('two'), download('out-3')]),
      steps: [
        'upload inputs/cat.png',
        'submit job_1 image=asset_1',
        'submit job_2 image=asset_1',
        'wait job_2 succeeded',
        'download job_2/9/0 out-3.png',
        'wait job_1 succeeded',
      ],
    },
    {
      what: 'cancel what was cancelled, as long after its submission',
      given: session([submit('one', { workflow: {} }), cancel('one', 1549)], {
        jobs: new Map([['one', { ...job('canceled'), queuedMs: null }]]),
      }),
      steps: ['submit job_1', 'pause 1.5', 'cancel job_1', 'wait job_1 canceled'],
    },
    {
      what: 'cancel a job that had run when it has run as long',
      given: session([submit('one', { workflow: {} }), cancel('one', 3000)], {
        jobs: new Map([['one', { ...job('canceled'), queuedMs: 1000 }]]),
      }),
      steps: ['submit job_1', 'until job_1 runs', 'pause 2', 'cancel job_1', 'wait job_1 canceled'],
    },
    {
      what: 'show a refusal of a workflow, with its files',
      given: session([
        { kind: 'refused', code: 'no', message: 'no', workflow: load(A, 'input/cat.png') },
        { kind: 'refused', code: 'unauthorized', message: 'not of a workflow' },
      ]),
      steps: ['upload inputs/cat.png', 'refused refused_1 image=asset_1'],
    },
    {
      what: 'wait for a job whose cancel came too late',
      given: session([submit('one', { workflow: {} }), cancel('one')]),
      steps: ['submit job_1', 'wait job_1 succeeded', 'cancel job_1'],
    },
    {
      what: 'take an output that was downloaded and uploaded again as it is',
      given: session([
        submit('one', { workflow: {} }),
        download('out-2'),
        reupload('again', 'blake3:out-2', 'out-2.png'),
        submit('two', { workflow: load('again', 'input/out-2.png') }),
      ]),
      steps: [
        'submit job_1',
        'wait job_1 succeeded',
        'download job_1/9/1 out-2.png',
        'submit job_2 image=job_1/1',
        'wait job_2 succeeded',
      ],
    },
    {
      what: 'upload what was uploaded before a job gave it back unchanged',
      given: session([
        reupload('first', 'blake3:out-1'),
        submit('one', { workflow: load('first', 'input/cat.png') }),
        reupload('first', 'blake3:out-1'),
        submit('two', { workflow: load('first', 'input/cat.png') }),
      ]),
      steps: [
        'upload inputs/cat.png',
        'submit job_1 image=asset_1',
        'submit job_2 image=asset_1',
        'wait job_1 succeeded',
        'wait job_2 succeeded',
      ],
    },
    {
      what: 'do not wait for a job that is gone',
      given: session([submit('one', { workflow: {} })], { jobs: new Map() }),
      steps: ['submit job_1'],
    },
    {
      what: 'download once what was asked for twice, and never under one name twice',
      given: session([
        submit('one', { workflow: {} }),
        download('out-1', 'same.png'),
        download('out-1', 'same.png'),
        download('out-2', 'same.png'),
      ]),
      steps: [
        'submit job_1',
        'wait job_1 succeeded',
        'download job_1/9/0 same.png',
        'download job_1/9/1 same-2.png',
      ],
    },
    {
      what: 'download what came over the socket',
      given: session([submit('one', { workflow: {} })], {
        usedSocket: true,
        jobs: new Map([
          [
            'one',
            {
              status: 'succeeded',
              queuedMs: 0,
              outputs: [{ id: 'o', nodeId: '7', name: 'ws.png', isStreamed: true }],
            },
          ],
        ]),
      }),
      steps: ['submit job_1', 'wait job_1 succeeded', 'download job_1/7/0 ws.png'],
    },
  ])('$what', ({ given, steps }) => {
    expect(outline(given)).toEqual(steps);
  });

  test.each<{ what: string; event: SessionEvent; note: RegExp }>([
    {
      what: 'a token',
      event: submit('one', { secrets: ['auth_token_comfy_org'] }),
      note: /auth_token/,
    },
    {
      what: 'extra_pnginfo',
      event: submit('one', { hasExtraPngInfo: true }),
      note: /extra_pnginfo/,
    },
    {
      what: 'a picture drawn anew',
      event: { kind: 'download', assetId: 'q', filename: 'q.png', rendering: 'preview=webp;90' },
      note: /preview=webp;90: v1 drew the picture anew/,
    },
    { what: 'a download of its own file', event: download('q'), note: /no job of this session/ },
    {
      what: 'a refusal, on one line',
      event: { kind: 'refused', code: 'invalid_workflow', message: 'no\nrm -rf /' },
      note: /^A workflow was refused \(invalid_workflow\): [^\n]*$/,
    },
  ])('say what v2 does not do: $what', ({ event, note }) => {
    expect(planFrom(session([event])).notes).toContainEqual(expect.stringMatching(note));
  });

  test('keep numbers to the digit, and name the places of files', () => {
    const graph = parseJson(
      '{"1":{"class_type":"K","inputs":{"seed":18446744073709551615}}}',
    ) as unknown as Graph;
    const [, submitted] = planFrom(
      session([upload(), submit('one', { workflow: { ...graph, ...load(A, 'input/cat.png') } })]),
    ).steps;
    const workflow = submitted?.kind === 'submit' ? submitted.workflow : undefined;
    expect(workflow?.text).toContain('"seed": 18446744073709551615');
    expect(workflow?.hasExactNumbers).toBe(true);
    expect(workflow?.text).toContain('"image": "@inputs/cat.png"');
  });

  test('keep the order of nodes', () => {
    const graph = '{"10":{"class_type":"K","inputs":{}},"9":{"class_type":"K","inputs":{}}}';
    const event = submit('one', { workflow: parseJson(graph) as unknown as Graph });
    const [submitted] = planFrom(session([event])).steps;
    const workflow = submitted?.kind === 'submit' ? submitted.workflow : undefined;
    expect(workflow?.text.replaceAll(/\s/g, '')).toBe(graph);
  });
});

test('a file that only a refused workflow names can be read', async () => {
  const content = vi.fn<JobApi['content']>(async () => REFUSAL);
  const recorder = new SessionRecorder();
  const onCall = recorder.subscribe({ content } as unknown as JobApi);
  const args = [{ workflow: load(A, 'input/cat.png'), extraData: {} }];
  onCall({ method: 'submit', caller: ME, args } as unknown as PortCall)?.onAnswer?.(REFUSAL, 0);
  await recorder.content(A);
  expect(content).toHaveBeenCalledWith(ME, A);
});

describe('names beside the code', () => {
  test.each([
    ['cat.png', 'inputs/cat.png'],
    ['sub/cat.png', 'inputs/sub/cat.png'],
    ['../../etc/passwd', 'inputs/_/_/etc/passwd'],
    ['-rf', 'inputs/_rf'],
    ["a'b;c|d&e.png", 'inputs/a_b_c_d_e.png'],
    ['katze ä.png', 'inputs/katze_ä.png'],
    ['', 'inputs/file'],
  ])('%j is kept as %s', (name, path) => {
    expect(inputPathOf(name)).toBe(path);
  });

  test('are given once, whatever the case', () => {
    const nameOf = createLocalNames();
    expect(['a.png', 'A.png', 'a.png'].map((name) => nameOf(name))).toEqual([
      'a.png',
      'A-2.png',
      'a-3.png',
    ]);
  });
});

describe.each(LANGUAGES)('%s', (language) => {
  const write = (events: readonly SessionEvent[], more: Partial<Session> = {}) =>
    codeOf(language, planFrom(session(events, more)), {
      baseUrl: 'https://v2.example/mount',
      workflows: 'beside',
    });

  test('goes to the upstream unless the environment says otherwise', () => {
    expect(write([])).toContain('https://v2.example/mount');
    expect(write([])).toContain('COMFY_BASE_URL');
  });

  test('takes keys from the environment', () => {
    const code = write([submit('one', { secrets: ['api_key_comfy_org'] })]);
    expect(code).toContain('COMFY_PARTNER_API_KEY');
    expect(write([submit('one')])).not.toContain('COMFY_PARTNER_API_KEY');
  });

  test('pauses for a whole number of milliseconds', () => {
    const jobs = new Map([['one', { ...job('canceled'), queuedMs: null }]]);
    const code = write([submit('one', { workflow: {} }), cancel('one', 16_100)], { jobs });
    expect(code).toMatch(language === 'python' ? 'sleep(16.1)' : 'sleep(16100)');
  });

  test.each(['"); evil("', "'; evil '", '$(evil)', '`evil`', '\\', '\n'])(
    'says the node id %j as a text',
    (nodeId) => {
      const jobs = new Map([
        ['one', { status: 'succeeded' as const, queuedMs: 0, outputs: [{ ...output, nodeId }] }],
      ]);
      const code = write([submit('one', { workflow: {} }), download('o', 'o.png')], { jobs });
      expect(code).toContain(JSON.stringify(nodeId));
    },
  );

  const output = { id: 'o', name: 'o.png', isStreamed: false };
});
