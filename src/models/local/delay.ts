import { setTimeout as sleep } from 'node:timers/promises';
import { type JsonObject, stringifyJson } from '../../protocol/json.ts';
import type { Bucket } from '../../protocol/router.ts';
import { choice, decimal, inputSchema, integer, numberOf, textOf } from './file-schema.ts';
import { type ModelDef, answerJson } from '../model-def.ts';

/** Endings that other providers have and the rest of these models never do. */
const FAILURES: { readonly [outcome: string]: readonly [Bucket, string] } = {
  content_policy_violation: ['content_policy_violation', 'The input was refused, as it asked for.'],
  provider_error: ['provider_error', 'The model failed, as it was asked to.'],
  provider_timeout: ['provider_timeout', 'The model took too long, as it was asked to.'],
};

/** Waits, then answers what it was given: for trying out time-outs, retries and limits. */
export const delay: ModelDef = {
  provider: 'local',
  model: 'delay',
  title: 'Wait',
  description:
    'Waits, then answers with what it was given, or fails as asked. For trying out time-outs, ' +
    'replays and limits; a price given here counts against the spend ceiling.',
  billing: { charges_on_policy_rejection: 'no' },
  input: inputSchema(
    {
      seconds: decimal({ min: 0, max: 3600, default: 1 }, 'how long to wait'),
      echo: { description: 'comes back in the answer' },
      outcome: choice(['answer', ...Object.keys(FAILURES)], 'how it ends'),
      price_cents: integer({ min: 0, max: 1_000_000, default: 0 }, 'what the call commits to'),
    },
    ['echo'],
  ),
  output: {
    'application/json': {
      type: 'object',
      required: ['waited_seconds'],
      properties: { waited_seconds: { type: 'number' }, echo: {} },
    },
  },
  priceCents: (input) => numberOf(input, 'price_cents'),
  async run({ input, body, signal }) {
    const seconds = numberOf(input, 'seconds');
    await sleep(seconds * 1000, undefined, { signal });
    const failure = FAILURES[textOf(input, 'outcome')];
    if (failure) return { kind: 'failed', bucket: failure[0], detail: failure[1] };
    const { echo } = body as JsonObject;
    return answerJson(
      stringifyJson({ waited_seconds: seconds, ...(echo !== undefined && { echo }) }),
    );
  },
};
