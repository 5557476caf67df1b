import { describe, expect, test } from 'vitest';
import { planFrom } from '../../src/migration/plan-session.ts';
import type { Session, SessionEvent } from '../../src/migration/session.ts';
import { withoutSecrets } from '../../src/migration/without-secrets.ts';
import { parseJson } from '../../src/protocol/json.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { A, download, load, session, submit, upload } from './sessions.ts';

describe('keys are left out', () => {
  const clean = (events: readonly SessionEvent[], ...secrets: string[]): Session =>
    withoutSecrets(session(events), secrets);
  const graphOf = ({ events: [event] }: Session) =>
    event?.kind === 'submit' ? event.workflow : undefined;

  test.each<{ what: string; event: SessionEvent }>([
    { what: 'a name that was uploaded', event: upload(A, 'my-key/cat.png') },
    { what: 'a name that was downloaded', event: download('out-1', 'my-key.png') },
    { what: 'a refusal', event: { kind: 'refused', code: 'no', message: 'is it my-key?' } },
    {
      what: 'a refused graph',
      event: { kind: 'refused', code: '', message: '', workflow: load('a', 'my-key.png') },
    },
    { what: 'a file in a graph', event: submit('one', { workflow: load('a', 'my-key.png') }) },
  ])('of $what', ({ event }) => {
    const written = JSON.stringify(planFrom(clean([event], 'my-key')));
    expect([written.includes('my-key'), written.includes('[removed]')]).toEqual([false, true]);
  });

  test('of a call, however it is written', () => {
    const call = { method: 'GET', target: '/view?filename=k%20e%20y%20&a=k e y ', status: 404 };
    const { calls } = withoutSecrets(session([], { calls: [{ ...call, v2: [] }] }), ['k e y ']);
    expect(calls[0]?.target).toBe('/view?filename=[removed]&a=[removed]');
  });

  test('of the texts of a graph, wherever they are, and nothing else of it', () => {
    const workflow = parseJson(
      `{"inputs":{"class_type":"inputs","inputs":{"inputs":["a \\"inputs\\"",{"b":"inputs"}],
        "seed":18446744073709551615}},
        "two":{"class_type":"Two","inputs":{"from":["inputs",0]},"_meta":{"title":"inputs"}}}`,
    ) as unknown as Graph;
    const cleaned = graphOf(clean([submit('one', { workflow })], 'inputs'));
    expect(cleaned).toEqual({
      inputs: {
        class_type: 'inputs',
        inputs: {
          inputs: ['a "[removed]"', { b: '[removed]' }],
          seed: workflow['inputs']?.inputs['seed'],
        },
      },
      two: {
        class_type: 'Two',
        inputs: { from: ['inputs', 0] },
        _meta: { title: '[removed]' },
      },
    });
  });
});
