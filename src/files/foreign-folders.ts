import { nodeErrorsOf } from '../translate/node-errors.ts';
import { type Json, isJsonObject } from '../protocol/json.ts';
import { uploadFoldersIn } from '../protocol/upload-folders.ts';
import { errorEntry, promptRefusal } from '../protocol/node-errors.ts';
import type { NodeErrorEntry } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { V1Error, promptFault } from '../dialects/errors.ts';
import { MISSING_ASSET_ID, type ResolvedFile } from './resolve-files.ts';

/** The submission of a graph, as far as it names files. */
type CheckedGraph = {
  readonly graph: Graph;
  readonly resolvedFiles: readonly ResolvedFile[];
  readonly outputs: readonly string[];
};

/**
 * Refuses graphs that name an upload folder, in any input of any node. An engine does not separate
 * users. These folders do, as long as a graph names a file in them only by the id of its own.
 */
export function refuseFolderNames({ graph, resolvedFiles, outputs }: CheckedGraph): void {
  const foreign = foreignInputs(graph, resolvedFiles);
  if (foreign.length === 0) return;
  // The error that v1 has for a choice that is not in its list.
  const errorsByNode = new Map(
    foreign.map(({ nodeId, input }): [string, readonly NodeErrorEntry[]] => {
      const details = `${input}: there is no such folder`;
      return [nodeId, [errorEntry('value_not_in_list', details, { input_name: input })]];
    }),
  );
  const node_errors = nodeErrorsOf(errorsByNode, graph, outputs);
  const message = 'Prompt outputs failed validation';
  const body = promptRefusal('prompt_outputs_failed_validation', message);
  throw new V1Error(400, promptFault({ ...body, node_errors }));
}

/**
 * Returns the inputs that name upload folders. The caller's own files are sent by their ids,
 * whatever their names.
 */
function foreignInputs(
  graph: Graph,
  resolvedFiles: readonly ResolvedFile[],
): readonly Pick<ResolvedFile, 'nodeId' | 'input'>[] {
  const keyOf = (nodeId: string, input: string): string => JSON.stringify([nodeId, input]);
  const found = resolvedFiles.filter(({ assetId }) => assetId !== MISSING_ASSET_ID);
  const resolved = new Set(found.map(({ nodeId, input }) => keyOf(nodeId, input)));
  return Object.entries(graph).flatMap(([nodeId, node]) =>
    Object.entries((node as Partial<typeof node> | null)?.inputs ?? {}).flatMap(
      ([input, value]) => {
        const isForeign = namesFolder(input) || namesFolder(value);
        return isForeign && !resolved.has(keyOf(nodeId, input)) ? [{ nodeId, input }] : [];
      },
    ),
  );
}

function namesFolder(value: Json): boolean {
  if (typeof value === 'string') return uploadFoldersIn(value).length > 0;
  if (Array.isArray(value)) return (value as readonly Json[]).some(namesFolder);
  if (!isJsonObject(value)) return false;
  return Object.entries(value).some(([name, member]) => namesFolder(name) || namesFolder(member));
}
