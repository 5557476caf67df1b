import path from 'node:path';
import { onTestFinished } from 'vitest';
import { createEmbeddedEngine } from '../../../src/engine/memory/embedded-engine.ts';
import {
  type Engine,
  type EngineOptions,
  DEFAULT_LIMITS,
  type EngineLimits,
} from '../../../src/engine/job-engine.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { graph } from '../../support/app/jobs.ts';
import { ALL_NODES } from './tiny-nodes.mjs';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

/** An engine over the tiny node library; closed when the test is over. */
export async function openEngine(
  options: Partial<Omit<EngineOptions, 'limits'>> & {
    readonly limits?: Partial<EngineLimits>;
    readonly dataDir?: string;
  } = {},
): Promise<Engine> {
  const dataDir = options.dataDir ?? (await tempFolder('data'));
  const engine = await createEmbeddedEngine({
    ledger: createMemoryLedger(),
    blobs: createFolderBlobs(path.join(dataDir, 'blobs')),
    outputFiles: { spoolDir: dataDir },
    library: {
      nodes: ALL_NODES,
      nodesModule: new URL('./tiny-nodes.mjs', import.meta.url).href,
    },
    log: silentLogger(),
    ...options,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
  });
  onTestFinished(() => engine.close());
  return engine;
}

/** An engine that runs what it is given. */
export async function startEngine(options: Parameters<typeof openEngine>[0] = {}): Promise<Engine> {
  const engine = await openEngine(options);
  engine.start();
  return engine;
}

/** The shared suite's workflows in the tiny node library. */
export const TINY_WORKFLOWS = {
  saving: (seed: number) =>
    graph({ 1: ['Number', { value: seed }], 2: ['Save', { value: ['1', 0], prefix: 'suite' }] }),
  endless: (seed: number) => graph({ 1: ['Spin', { seed }], 2: ['Sink', { value: ['1', 0] }] }),
  failing: () =>
    graph({
      1: ['Number', { value: 1 }],
      2: ['Fail', { image: ['1', 0], message: 'on purpose' }],
      3: ['Sink', { value: ['2', 0] }],
    }),
  reading: (file: Parameters<typeof graph>[0][string][1][string]) =>
    graph({ 1: ['Load', { file }], 2: ['Save', { value: ['1', 0], prefix: 'read' }] }),
  invalid: () => graph({ 1: ['Number', { value: 1 }] }),
};
