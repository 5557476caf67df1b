import { BLOB_HASH } from '../blobs/blob-paths.ts';
import { toV1FileError } from '../dialects/file-error.ts';
import type { FileRow, FileStore, LabelStore } from '../ledger/ledger.ts';
import { createKeyedMutex } from '../lib/concurrency.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import { type Caller, isGone } from '../protocol/job-api.ts';
import { type JsonObject, parseJson, stringifyJson } from '../protocol/json.ts';
import type { FileRef } from '../protocol/v1.ts';
import { fileKey } from '../translate/file-mentions.ts';
import { assetIdOf } from './asset-id.ts';
import { FILE_TYPES } from './safe-name.ts';
import type { FileStoringServices } from './store-file.ts';

/** The properties that a user gave to a file in the assets API. */
export type FileLabels = {
  readonly name?: string;
  /** Tags beside those that follow from the place of the file. */
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
  /** The id of the asset that is shown in place of this one. */
  readonly previewId?: string;
  readonly updatedAtMs?: number;
};

/** A file of a user, as the assets API shows it. */
export type FileAsset = { readonly row: FileRow; readonly labels: FileLabels };

type CatalogOptions = FileStoringServices & { readonly labels: LabelStore };

/** Number of files that are processed before other calls get their turn. */
const FILES_PER_TURN = 500;
/** The labels of a user are read at once, and for every list. */
const MAX_LABEL_CHARS = { file: 16 * 1024, user: 4 * 1024 * 1024 } as const;

/** Ids of the files in a list. A changed list is another object. */
const indexes = new WeakMap<readonly FileRow[], ReadonlyMap<string, FileRow>>();

/** The files of each user with their labels. */
export class AssetCatalog {
  readonly #options: CatalogOptions;
  readonly #inOrder = createKeyedMutex();

  constructor(options: CatalogOptions) {
    this.#options = options;
  }

  async list(user: string): Promise<readonly FileAsset[]> {
    const texts = await this.#options.labels.all(user);
    const assets: FileAsset[] = [];
    const pause = yieldEvery(FILES_PER_TURN);
    for (const rows of await this.#rowsOf(user)) {
      for (const row of rows) {
        assets.push({ row, labels: labelsIn(texts, row) });
        await pause();
      }
    }
    return assets;
  }

  async find(user: string, id: string): Promise<FileAsset | undefined> {
    for (const rows of await this.#rowsOf(user)) {
      const listed = (await indexOf(user, rows)).get(id.toLowerCase());
      const row = listed && (await this.#options.files.get(user, listed));
      if (row) return await this.labelled(row);
    }
    return undefined;
  }

  /** Returns the file with the labels that are stored for its name. */
  async labelled(row: FileRow): Promise<FileAsset> {
    return { row, labels: labelsIn(await this.#options.labels.all(row.user), row) };
  }

  /** Changes the labels of a file. Returns `undefined`, and changes nothing, when they get too long. */
  change(
    row: FileRow,
    changed: (labels: FileLabels) => FileLabels,
  ): Promise<FileAsset | undefined> {
    const { labels: store, now } = this.#options;
    return this.#inOrder(row.user, async () => {
      const texts = await store.all(row.user);
      const labels = { ...changed(labelsIn(texts, row)), updatedAtMs: now() };
      const text = stringifyJson(labels as JsonObject);
      const total = Object.values(texts).reduce((sum, each) => sum + each.length, text.length);
      if (text.length > MAX_LABEL_CHARS.file || total > MAX_LABEL_CHARS.user) return undefined;
      await store.merge(row.user, { [fileKey(row)]: text });
      return { row, labels };
    });
  }

  /**
   * Removes a file from the catalog, and its asset where no other file has it and no job needs it.
   * The name of an output stays reserved, since history shows it. Returns `false` for a file that is
   * still there: the example, or one in a shared folder.
   */
  async remove(caller: Caller, row: FileRow): Promise<boolean> {
    const { files, labels } = this.#options;
    await this.#deleteAsset(caller, row);
    if (row.type === 'input') await files.remove(row.user, row);
    else await files.put({ ...row, assetId: '' });
    await labels.remove(row.user, fileKey(row));
    const left = (await files.list(row.user, row.type)).map(fileKey);
    return !left.includes(fileKey(row));
  }

  async #deleteAsset(caller: Caller, row: FileRow): Promise<void> {
    const { type, assetId, user } = row;
    const all = (await this.#rowsOf(user)).flat();
    if (all.some((one) => one.assetId === assetId && fileKey(one) !== fileKey(row))) return;
    const deleted = await this.#options.jobs.deleteAsset(caller, assetId);
    if (deleted.ok || isGone(deleted.error)) return;
    // The outputs of a job expire with it.
    if (type === 'input' || deleted.error.status !== 409) throw toV1FileError(deleted.error);
  }

  #rowsOf(user: string): Promise<readonly (readonly FileRow[])[]> {
    return Promise.all(FILE_TYPES.map((type) => this.#options.files.list(user, type)));
  }
}

/** Finds a file of the user by the hash of its bytes. `undefined` for a text that is no hash. */
export async function fileByHash(
  files: FileStore,
  user: string,
  hash: string | undefined,
): Promise<FileRow | undefined> {
  if (hash === undefined || !BLOB_HASH.test(hash)) return undefined;
  for (const type of FILE_TYPES) {
    const row = (await files.list(user, type)).find((candidate) => candidate.hash === hash);
    if (row !== undefined) return row;
  }
  return undefined;
}

/** Finds the newest file of a name in any folder of the user. */
export async function newestNamed(
  files: FileStore,
  user: string,
  { type, filename }: Pick<FileRow, 'type' | 'filename'>,
): Promise<FileRow | undefined> {
  return (await files.list(user, type)).find((row) => row.filename === filename);
}

async function indexOf(
  user: string,
  rows: readonly FileRow[],
): Promise<ReadonlyMap<string, FileRow>> {
  const known = indexes.get(rows);
  if (known) return known;
  const index = new Map<string, FileRow>();
  const pause = yieldEvery(FILES_PER_TURN);
  for (const row of rows) {
    index.set(assetIdOf(user, row), row);
    await pause();
  }
  indexes.set(rows, index);
  return index;
}

function labelsIn(texts: { readonly [key: string]: string }, name: FileRef): FileLabels {
  const key = fileKey(name);
  const text = Object.hasOwn(texts, key) ? texts[key] : undefined;
  return text === undefined ? {} : (parseJson(text) as FileLabels);
}

/** Tags that follow from the folder of a file. */
const TAGS_OF_TYPE = {
  input: ['input', 'uploaded'],
  output: ['output'],
  temp: ['temp'],
} as const satisfies Record<FileRow['type'], readonly string[]>;

/** Folders that front ends upload to, each with a tag of its name. */
const TAGGED_FOLDERS = new Set(['3d', 'painter', 'pasted', 'threed', 'webcam']);

/** Returns the tags that follow from the place of a file and cannot be removed. */
function placeTags({ type, subfolder }: FileRef): readonly string[] {
  const isTagged = type === 'input' && TAGGED_FOLDERS.has(subfolder);
  return isTagged ? [...TAGS_OF_TYPE[type], subfolder] : TAGS_OF_TYPE[type];
}

/** Returns the path of a file in its folder of inputs, outputs or temporary files. */
export function pathOf({ subfolder, filename }: Pick<FileRef, 'subfolder' | 'filename'>): string {
  return subfolder === '' ? filename : `${subfolder}/${filename}`;
}

/** Returns all tags of a file, sorted. */
export function tagsOf({ row, labels }: FileAsset): readonly string[] {
  return [...new Set([...placeTags(row), ...(labels.tags ?? [])])].toSorted();
}

export function nameOf({ row, labels }: FileAsset): string {
  return labels.name ?? row.filename;
}
