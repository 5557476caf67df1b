import { testedUpstream } from '../upstreams/tested-upstream.ts';
import type { Tolerances } from './golden-frames.ts';

/** A difference that is meant: the row of `docs/differences.md` that explains it, where, and what. */
export type ExpectedDifference = {
  readonly row: string;
  /** `socket a`, or an exchange: `7 POST /prompt`. */
  readonly where: string;
  readonly differs: readonly string[];
};

/** How a recorded scenario is replayed, and every way in which ours is meant to differ. */
export type Case = {
  readonly scenario: string;
  /** The recordings of a server with assets; absent: those of one without. */
  readonly recordings?: 'assets-on';
  readonly args?: readonly string[];
  readonly tolerances?: Tolerances;
  readonly expectedDifferences?: readonly ExpectedDifference[];
};

export const JSON_TYPE = 'content-type: application/json; charset=utf-8';
/** The first id the recorded server made up; the last digit counts. */
export const FIRST = '00000000-0000-4000-8000-000000000001';

/** A clear 400 where the original answers 500. */
export const badInput = (where: string, type = 'invalid_json'): ExpectedDifference => ({
  row: 'bad-input',
  where,
  differs: ['status 400', JSON_TYPE, `body error ${type}`],
});
/** The same for an upload. */
export const badUpload = (where: string): ExpectedDifference => ({
  ...badInput(where, 'invalid_upload'),
  row: 'bad-upload',
});
/** Any other difference. */
export const expectedDifferences = (
  row: string,
  where: string,
  ...differs: string[]
): ExpectedDifference => ({
  row,
  where,
  differs,
});

/** One that there is only where another process runs the jobs. */
export const elsewhereOnly = (...difference: Parameters<typeof expectedDifferences>) =>
  testedUpstream() === 'embedded' ? [] : [expectedDifferences(...difference)];

/** Frames only ours sends. */
export const saidToo = (...frames: string[]): string[] => frames.map((frame) => `+ ${frame}`);

/** The text ours shows for a small picture that was an input of the node that failed. */
export const TENSOR = '"IMAGE of shape [1, 16, 16, 3]"';

/** Where a history answer holds the failure of a prompt. */
export const failureOf = (id: string): string => `${id}.status.messages[2][1]`;
