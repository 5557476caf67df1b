import { type Case, expectedDifferences } from './golden-differences.ts';
import { CALL_CASES } from './golden-http-differences.ts';
import { RUN_CASES } from './golden-run-differences.ts';
import { SOCKET_CASES } from './golden-ws-differences.ts';

/** The differences that only a server with assets has, by scenario. */
const MORE: { readonly [scenario: string]: Partial<Case> } = {
  'mask-upload': { tolerances: { otherBytes: true } },
  uploads: {
    // The recorded server takes the type of the first file with these bytes.
    expectedDifferences: [13, 14].map((n) =>
      expectedDifferences(
        'asset-types',
        `${n} POST /upload/image`,
        'asset.mime_type "application/gzip"',
      ),
    ),
  },
};

const SCENARIOS = [
  'animated',
  'cached-rerun',
  'connect',
  'feature-flags',
  'history',
  'info-routes',
  'mask-upload',
  'normal-run',
  'text-frame',
  'uploads',
];

/** The scenarios that were recorded again on a server with assets. */
export const ASSET_CASES: readonly Case[] = [...SOCKET_CASES, ...RUN_CASES, ...CALL_CASES]
  .filter(({ scenario }) => SCENARIOS.includes(scenario))
  .map((golden) => ({
    ...golden,
    ...MORE[golden.scenario],
    recordings: 'assets-on',
    expectedDifferences: [
      ...(golden.expectedDifferences ?? []),
      ...(MORE[golden.scenario]?.expectedDifferences ?? []),
    ],
  }));
