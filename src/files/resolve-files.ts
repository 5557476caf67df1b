import type { FileType } from '../ledger/columns.ts';
import { posix } from 'node:path';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import {
  type FileMention,
  type FoundAsset,
  assetRef,
  fileKey,
  fileMentions,
  withAssets,
} from '../translate/file-mentions.ts';
import { FOLDER_INPUT, folderMentions, withFileLoaders } from '../translate/folder-loaders.ts';
import { addTo } from '../translate/graph.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { type GivenNames, hashInContentName } from '../protocol/upload-folders.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { AssetRef, Graph } from '../protocol/v2.ts';
import type { DialectRules } from '../dialects/dialect.ts';
import { fileByHash, newestNamed } from './asset-catalog.ts';
import { uploadPathOf } from './safe-name.ts';

/** An input of a graph that names a file of its user, and the asset behind the name. */
export type ResolvedFile = FileMention & {
  readonly assetId: string;
  readonly hash: string | null;
  /** True for a file of a folder that the input names. */
  readonly isOfFolder?: true;
};

/** Finds the files that a graph names among those of its user. */
export type FileResolver = (
  caller: Caller,
  graph: Graph,
  subfolder?: DialectRules['subfolder'],
) => Promise<readonly ResolvedFile[]>;

export function createFileResolver(options: {
  readonly files: FileStore;
  /** True when v2 may find another user's file under a name that this user does not have. */
  readonly mayFindOthersFiles: boolean;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
}): FileResolver {
  return async (caller, graph, subfolder) => {
    const info = await options.objectInfo(caller);
    const mentionsInGraph = fileMentions(graph, info);
    const mentions: FileMention[] = [];
    const found = new Map<string, FoundAsset>();
    const yieldToEventLoop = yieldEvery(FILES_PER_TURN);
    for (const one of mentionsInGraph) {
      await yieldToEventLoop();
      const isName = !hasControlCharacter(one.value);
      const row = isName ? await rowOf(options.files, caller, one, subfolder) : undefined;
      // From here on the file is known by its folder and name in the ledger.
      const mention = row ? { ...one, subfolder: row.subfolder, filename: row.filename } : one;
      mentions.push(mention);
      if (row) found.set(fileKey(mention), { id: row.assetId, hash: row.hash });
      else if (options.mayFindOthersFiles && isGuessableName(mention)) {
        found.set(fileKey(mention), { id: MISSING_ASSET_ID });
      }
    }
    // The others stay names, which v2 checks.
    const named = mentions.flatMap((mention) => {
      const asset = found.get(fileKey(mention));
      return asset ? [{ ...mention, assetId: asset.id, hash: asset.hash ?? null }] : [];
    });
    return [...named, ...(await filesOfFolders(options.files, caller, { graph, info }))];
  };
}

/** Returns the uploads in the folders that a graph names, in the order of their names. */
async function filesOfFolders(
  files: Pick<FileStore, 'list'>,
  { user }: Caller,
  { graph, info }: { readonly graph: Graph; readonly info: ObjectInfo },
): Promise<readonly ResolvedFile[]> {
  const folders = folderMentions(graph, info);
  const uploads = folders.length === 0 ? [] : await files.list(user, 'input');
  const sorted = uploads.toSorted((a, b) => (a.filename < b.filename ? -1 : 1));
  return folders.flatMap(({ nodeId, folder, files: loaded }) =>
    sorted
      .filter(({ subfolder, filename }) => subfolder === folder && loaded.test(filename))
      .map(({ subfolder, filename, assetId, hash }) => {
        const mention = { nodeId, input: FOLDER_INPUT, value: folder, type: 'input' as const };
        return { ...mention, subfolder, filename, assetId, hash, isOfFolder: true as const };
      }),
  );
}

/** Finds the file of a name. The hosted service has no folders: a name is found in any of them. */
async function rowOf(
  files: FileStore,
  { user }: Caller,
  mention: FileMention,
  subfolder: DialectRules['subfolder'] | undefined,
): Promise<FileRow | undefined> {
  const row =
    (await files.get(user, mention)) ??
    (await uploadByContentName(files, user, mention)) ??
    (await fileByHash(files, user, mention.filename));
  if (row !== undefined || subfolder !== 'ignored') return row;
  return await newestNamed(files, user, mention);
}

/**
 * Finds an upload of the user by its content name, as graphs in files that a service made name it.
 * Its folder may be that of another user who uploaded the same bytes.
 */
export async function uploadByContentName(
  files: FileStore,
  user: string,
  { type, filename }: { readonly type: FileType; readonly filename: string },
): Promise<FileRow | undefined> {
  const hash = type === 'input' ? hashInContentName(filename) : undefined;
  if (hash === undefined) return undefined;
  return (await files.list(user, type)).find((row) => row.hash === hash);
}

/** The number of files that are looked up before other work gets its turn. */
const FILES_PER_TURN = 100;

/** An id that no service has, so that the answer is v1's for an unknown file. */
export const MISSING_ASSET_ID = '00000000-0000-4000-8000-000000000000';

/**
 * True for a name that another user can guess: names of outputs are counted, while uploads of other
 * users are in secret folders.
 */
function isGuessableName({ type, value }: FileMention): boolean {
  return type !== 'input' || value.split(/[\\/]/).includes('..');
}

/** Returns the graph for v2, with `core/ASSET` where the client named files of its own. */
export function insertAssetReferences(graph: Graph, placed: readonly ResolvedFile[]): Graph {
  const found = new Map(
    placed.map((file) => {
      // Some upstreams find an upload by its path. Outputs were not uploaded.
      const isUpload = file.type === 'input' && file.assetId !== MISSING_ASSET_ID;
      const path = isUpload ? { filePath: uploadPathOf(file) } : {};
      return [fileKey(file), { id: file.assetId, hash: file.hash, ...path }];
    }),
  );
  const ofFolders = placed.filter(({ isOfFolder }) => isOfFolder);
  const refsByNode = new Map<string, AssetRef[]>();
  for (const file of ofFolders) {
    addTo(refsByNode, file.nodeId, assetRef(found.get(fileKey(file)) ?? { id: file.assetId }));
  }
  const named = placed.filter(({ isOfFolder }) => !isOfFolder);
  return withFileLoaders(withAssets(graph, named, found), refsByNode);
}

/** Returns the names of files, with the folders that the client put them in, by hash. */
export function givenNames(placed: readonly ResolvedFile[]): GivenNames {
  return new Map(
    placed.flatMap(({ hash, subfolder, filename }) =>
      hash === null ? [] : [[hash, posix.join(subfolder, filename)]],
    ),
  );
}
