import { V1Error, promptFault, retryAfterHeader } from '../../dialects/errors.ts';
import { v2Error } from '../../protocol/job-api.ts';
import type { NodeErrors } from '../../protocol/v1.ts';
import type { V1Refusal } from '../../translate/prompt-refusal.ts';

/** The answer to `POST /prompt`. `releaseFrames` lets the frames of the prompt reach sockets. */
export type Accepted = {
  readonly promptId: string;
  readonly number: number;
  readonly nodeErrors: NodeErrors;
  readonly releaseFrames: () => void;
};

export const OUTBOX_FULL = v2Error(
  429,
  'queue_full',
  'Too many prompts are waiting for the job service to have room.',
  { retryAfterSeconds: 10 },
);

export function toV1Error({ status, body, retryAfterSeconds }: V1Refusal): V1Error {
  const headers = retryAfterHeader(retryAfterSeconds);
  return new V1Error(status, promptFault(body), { headers, blames: 'job service' });
}
