import type { NodeDef } from '../../nodes/node.ts';
import { type AssetOptions, Assets } from './assets.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { createKeyedMutex, type KeyedMutex } from '../../lib/concurrency.ts';
import { type OutputOptions, createSaveOutput, type SaveOutput } from './outputs.ts';
import type { FileLookup } from '../jobs/resolve-files.ts';

export type JobFilesOptions = Omit<AssetOptions & OutputOptions, 'withLock'> & {
  readonly nodes: ReadonlyMap<string, NodeDef>;
};

/** The files that jobs read and make, with their names and their retention. */
export interface JobFiles {
  readonly withLock: KeyedMutex;
  readonly blobs: Blobs;
  readonly assets: Assets;
  readonly saveOutput: SaveOutput;
  /** `reads`: the assets of an accepted job, which stay although they expire. */
  readonly fileLookupOf: (user: string, reads?: ReadonlySet<string>) => FileLookup;
}

export function createJobFiles(deps: JobFilesOptions): JobFiles {
  const { blobs, nodes } = deps;
  const withLock = createKeyedMutex();
  const assets = new Assets({ ...deps, withLock });
  return {
    withLock,
    blobs,
    assets,
    saveOutput: createSaveOutput({ ...deps, withLock }),
    fileLookupOf: (user, reads) => ({
      nodes,
      byId: (id) => assets.find(user, id, reads),
      byPath: (filePath) => assets.findByPath(user, filePath, reads),
    }),
  };
}
