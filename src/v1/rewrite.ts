import type { FileStore } from '../ledger/ledger.ts';
import {
  type FoundAsset,
  adoptCoerced,
  fileKey,
  fileMentions,
  foundMentions,
  withAssets,
} from '../translate/workflow.ts';
import type { Graph } from '../wire/v2.ts';
import type { ObjectInfo } from '../wire/v1.ts';

/** A v1 graph made fit for v2, and the way back. */
export type Rewritten = {
  /** With `core/ASSET` where the client named files of its own. */
  readonly graph: Graph;
  /** Which asset stands for which name. */
  readonly placed: readonly { nodeId: string; input: string; value: string; assetId: string }[];
  /** The graph v1 shows: literals as v2 coerced them, files as the client named them. */
  restore(coerced: Graph | undefined): Graph;
};

/** Finds the files a graph names among those of its user. */
export type AssetRewriter = { rewrite(user: string, graph: Graph): Promise<Rewritten> };

export function createRewriter(deps: {
  readonly files: FileStore;
  readonly objectInfo: () => Promise<ObjectInfo>;
}): AssetRewriter {
  return {
    async rewrite(user, graph) {
      const mentions = fileMentions(graph, await deps.objectInfo());
      const found = new Map<string, FoundAsset>();
      for (const mention of mentions) {
        const row = await deps.files.get(user, mention);
        if (row) found.set(fileKey(mention), { id: row.assetId, hash: row.hash });
      }
      const rewritten = foundMentions(mentions, found);
      return {
        graph: withAssets(graph, rewritten, found),
        placed: rewritten.map((mention) => ({
          ...mention,
          assetId: found.get(fileKey(mention))?.id ?? '',
        })),
        restore: (coerced) => adoptCoerced(graph, coerced ?? {}, rewritten),
      };
    },
  };
}
