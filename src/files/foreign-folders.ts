import type { FileRow, FileStore, FileType } from '../ledger/ledger.ts';
import { nodeErrorsOf } from '../translate/node-errors.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';
import { uploadFoldersIn } from '../protocol/upload-folders.ts';
import type { NodeErrorEntry } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { V1Error, promptFault, promptRefusal } from '../dialects/errors.ts';
import { MISSING_ASSET_ID, type ResolvedFile } from './resolve-files.ts';
import { uploadPathOf } from './safe-name.ts';

/**
 * Returns the folder of a user's upload at the upstream; `undefined`: the upload has no folder of
 * its own.
 */
type UploadFolderOf = (upload: {
  readonly user: string;
  readonly filePath: string;
  readonly hash: string;
}) => string | undefined;

type FolderCheckOptions = {
  readonly files: Pick<FileStore, 'list'>;
  /** Absent: the job service has no such folders. */
  readonly uploadFolderOf?: UploadFolderOf | undefined;
};

/** An input of a graph that names an upload folder. */
type FolderMention = {
  readonly nodeId: string;
  readonly input: string;
  readonly folders: readonly string[];
};

/**
 * Refuses graphs that name the upload folder of another user, in any input of any node. An engine
 * does not separate users. These folders do, as long as no other user can name them.
 */
export function createFolderCheck({ files, uploadFolderOf }: FolderCheckOptions) {
  return async (
    caller: Caller,
    {
      graph,
      resolvedFiles,
      outputs,
    }: {
      readonly graph: Graph;
      readonly resolvedFiles: readonly ResolvedFile[];
      readonly outputs: readonly string[];
    },
  ): Promise<void> => {
    if (uploadFolderOf === undefined) return;
    const mentions = foldersIn(graph, resolvedFiles);
    if (mentions.length === 0) return;
    const ownedFolders = await foldersOf(caller.user, { files, uploadFolderOf });
    const foreign = mentions.filter(({ folders }) =>
      folders.some((folder) => !ownedFolders.has(folder)),
    );
    if (foreign.length > 0) throw foreignFolderError(foreign, graph, outputs);
  };
}

/**
 * Returns the folders that a graph names. The caller's own files are sent by their ids, whatever
 * their names.
 */
function foldersIn(graph: Graph, resolvedFiles: readonly ResolvedFile[]): readonly FolderMention[] {
  const keyOf = (nodeId: string, input: string): string => JSON.stringify([nodeId, input]);
  const found = resolvedFiles.filter(({ assetId }) => assetId !== MISSING_ASSET_ID);
  const resolved = new Set(found.map(({ nodeId, input }) => keyOf(nodeId, input)));
  return Object.entries(graph).flatMap(([nodeId, node]) =>
    Object.entries((node as Partial<typeof node> | null)?.inputs ?? {}).flatMap(
      ([input, value]) => {
        if (resolved.has(keyOf(nodeId, input))) return [];
        const folders = [...textsIn(value), input].flatMap(uploadFoldersIn);
        return folders.length > 0 ? [{ nodeId, input, folders }] : [];
      },
    ),
  );
}

function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(textsIn);
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member as Json)]);
}

const TYPES: readonly FileType[] = ['input', 'output', 'temp'];

async function foldersOf(
  user: string,
  { files, uploadFolderOf }: Required<FolderCheckOptions>,
): Promise<ReadonlySet<string>> {
  const lists = await Promise.all(TYPES.map((type) => files.list(user, type)));
  const folderOf = (row: FileRow): string | undefined =>
    row.hash === null
      ? undefined
      : uploadFolderOf?.({ user, filePath: uploadPathOf(row), hash: row.hash });
  return new Set(lists.flat().flatMap((row) => folderOf(row) ?? []));
}

/** Returns the error that v1 has for a choice that is not in its list. */
function foreignFolderError(
  foreign: readonly FolderMention[],
  graph: Graph,
  outputs: readonly string[],
): V1Error {
  const errorsByNode = new Map(
    foreign.map(({ nodeId, input }): [string, readonly NodeErrorEntry[]] => {
      const details = `${input}: there is no such folder`;
      const extra_info = { input_name: input };
      return [nodeId, [{ ...NOT_IN_LIST, details, extra_info }]];
    }),
  );
  const node_errors = nodeErrorsOf(errorsByNode, graph, outputs);
  const body = promptRefusal(
    'prompt_outputs_failed_validation',
    'Prompt outputs failed validation',
  );
  return new V1Error(400, promptFault({ ...body, node_errors }));
}

const NOT_IN_LIST = { type: 'value_not_in_list', message: 'Value not in list' } as const;
