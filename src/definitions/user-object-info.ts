import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { FileStore } from '../ledger/ledger.ts';
import type { Definitions } from './definitions.ts';
import { memberText } from './parse-definitions.ts';
import { type Json, isJsonObject, isList, mapParts } from '../protocol/json.ts';
import { COMPRESS, type Encoding } from '../http/content-encoding.ts';
import { createSemaphore } from '../lib/concurrency.ts';
import type { ClassInfo, ObjectInfo } from '../protocol/v1.ts';
import { FOLDER_INPUT, loadsFolder } from '../translate/folder-loaders.ts';
import { someSpec } from '../translate/declared-inputs.ts';
import { contentTypeOf } from '../http/file-headers.ts';

/** An answer to send; an unchanged one is not sent again. */
type TaggedBody = { readonly etag: string; readonly body: () => Promise<Buffer> };

/** The files of a user that some upload button offers, and the folders (`x/`), sorted. */
type UploadNames = readonly string[];

/** The whole text for certain files, in an encoding. */
type Variant = {
  readonly definitions: Definitions;
  readonly uploads: UploadNames;
  readonly encoding: Encoding | undefined;
};

const CACHE_BYTES = 256 * 1024 * 1024;
const MAX_CONCURRENT = 2;

/** `/object_info` as one user sees it, ready to be sent. */
export class UserObjectInfo {
  readonly #files: FileStore;
  readonly #withSlot = createSemaphore(MAX_CONCURRENT);
  readonly #uploadClasses = new WeakMap<Definitions, ReadonlySet<string>>();
  readonly #bodies = new LRUCache<string, Buffer, Variant>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ length }) => length + 1,
    // A text that leaves the cache while it is made is sent all the same.
    ignoreFetchAbort: true,
    fetchMethod: (_etag, _stale, { context }) => this.#withSlot(() => this.#write(context)),
  });

  constructor(files: FileStore) {
    this.#files = files;
  }

  /** Every class. Users whose files make no difference share the bytes. */
  async everyClass(
    definitions: Definitions,
    user: string,
    encoding: Encoding | undefined,
  ): Promise<TaggedBody> {
    const dependsOnUploads = this.#uploadClassesOf(definitions).size > 0;
    const uploads = dependsOnUploads ? await this.#uploadsOf(user) : [];
    const name = digestOf(JSON.stringify([definitions.version, uploads]));
    const etag = encoding === undefined ? `"${name}"` : `"${name}-${encoding}"`;
    const context = { definitions, uploads, encoding };
    return { etag, body: () => this.#bodies.forceFetch(etag, { context }) };
  }

  /** One class by its name, or `{}`: v1 answers 200 for an unknown class. */
  async oneClass(definitions: Definitions, user: string, name: string): Promise<TaggedBody> {
    const { members, info } = definitions;
    const takesFiles = this.#uploadClassesOf(definitions).has(name);
    const member = takesFiles
      ? withUploads(info, name, await this.#uploadsOf(user))
      : (members.get(name) ?? Buffer.alloc(0));
    const body = inBraces([member]);
    return { etag: `"${digestOf(body)}"`, body: async () => body };
  }

  async #write({ definitions, uploads, encoding }: Variant): Promise<Buffer> {
    const uploadClasses = this.#uploadClassesOf(definitions);
    const members = Array.from(definitions.members, ([name, member]) =>
      uploadClasses.has(name) ? withUploads(definitions.info, name, uploads) : member,
    );
    const body = inBraces(members);
    return encoding === undefined ? body : await COMPRESS[encoding](body);
  }

  #uploadClassesOf(definitions: Definitions): ReadonlySet<string> {
    const known = this.#uploadClasses.get(definitions) ?? findUploadClasses(definitions);
    this.#uploadClasses.set(definitions, known);
    return known;
  }

  /** Files directly in the input folder, and models in theirs; others are valid but not listed. */
  async #uploadsOf(user: string): Promise<UploadNames> {
    const rows = await this.#files.list(user, 'input');
    const names = rows
      .map(({ subfolder, filename }) => posix.join(subfolder, filename))
      .filter((name) => OFFERED.some((isOffered) => isOffered(name)));
    // As v1, only folders directly in the input folder.
    const folders = rows.flatMap(({ subfolder }) => subfolder.match(/^[^/]+$/) ?? []);
    return [...names, ...new Set(folders.map((folder) => `${folder}/`))].toSorted();
  }
}

function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, 27);
}

/** The classes with a file chooser; most are recognised by their text alone. */
function findUploadClasses({ members, info }: Definitions): ReadonlySet<string> {
  const names = [...members].flatMap(([name, member]) => {
    if (loadsFolder(name, (each) => members.has(each))) return [name];
    const known = member.includes('_upload"') ? info[name] : undefined;
    const offers = (spec: Json): boolean => offeredBy(spec) !== undefined;
    return known && someSpec(known.input, offers) ? [name] : [];
  });
  return new Set(names);
}

function withUploads(info: ObjectInfo, name: string, uploads: UploadNames): Buffer {
  return memberText(name, withUploadChoices(info[name] as ClassInfo, uploads, name));
}

function inBraces(members: readonly Buffer[]): Buffer {
  const comma = Buffer.from(', ');
  const parts = members.flatMap((member, index) => (index === 0 ? [member] : [comma, member]));
  return Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')]);
}

type IsOffered = (name: string) => boolean;

const isMedia =
  (...types: readonly string[]): IsOffered =>
  (name) =>
    !name.includes('/') && types.includes(contentTypeOf(name)?.split('/', 1)[0] ?? '');

/** The files that each upload button offers. */
const OFFERED_BY_FLAG: { readonly [flag: string]: IsOffered } = {
  image_upload: isMedia('image'),
  audio_upload: isMedia('audio', 'video'),
  video_upload: isMedia('video'),
  file_upload: isModel,
};

const OFFERED = Object.values(OFFERED_BY_FLAG);

/** True for a 3D model in the folder into which front ends upload them. */
function isModel(name: string): boolean {
  return name.startsWith('3d/') && MODEL_EXTENSION.test(name);
}

const MODEL_EXTENSION = /\.(gltf|glb|obj|fbx|stl|ply|spz|splat|ksplat|usdz)$/i;

/** The class with the files of one user, instead of those its source listed. */
function withUploadChoices(info: ClassInfo, files: UploadNames, className: string): ClassInfo {
  const isFolder = (key: string): boolean =>
    key === FOLDER_INPUT && loadsFolder(className, () => true);
  const choicesOf = (key: string, spec: Json): Json =>
    isFolder(key) ? withFolders(spec, files) : withChoices(spec, files);
  const groups = Object.entries(info.input).map(([name, group]) => {
    const specs = Object.entries(group).map(([key, spec]) => [key, choicesOf(key, spec)] as const);
    return [name, Object.fromEntries(specs)] as const;
  });
  return { ...info, input: Object.fromEntries(groups) };
}

/**
 * A legacy combo is a list instead of a type; a newer one has the list under `options`. Choosers
 * inside a dynamic input are at some depth of its definition.
 */
function withChoices(spec: Json, files: UploadNames): Json {
  const isOffered = offeredBy(spec);
  if (isOffered === undefined || !isList(spec))
    return mapParts(spec, (part) => withChoices(part, files));
  const [type, options] = spec;
  const names = files.filter(isOffered);
  if (isList(type)) return [names, ...spec.slice(1)];
  if (!isJsonObject(options) || !isList(options['options'])) return spec;
  // A model is optional: the source lists `none` first.
  const none = options['options'].filter((option) => option === 'none');
  return [type ?? null, { ...options, options: [...none, ...names] }];
}

/** Adds the folders of a user to those of the engine. */
function withFolders(spec: Json, files: UploadNames): Json {
  const [type = null, options] = isList(spec) ? spec : [];
  if (!isJsonObject(options) || !isList(options['options'])) return spec;
  const own = files.filter((name) => name.endsWith('/')).map((name) => name.slice(0, -1));
  return [type, { ...options, options: [...new Set([...options['options'], ...own])] }];
}

/** A combo over another folder than the input folder fetches its own list. */
function offeredBy(spec: Json): IsOffered | undefined {
  const options = isList(spec) ? spec[1] : undefined;
  if (!isJsonObject(options) || (options['image_folder'] ?? 'input') !== 'input') return undefined;
  const flag = Object.keys(OFFERED_BY_FLAG).find((name) => options[name] === true);
  return flag === undefined ? undefined : OFFERED_BY_FLAG[flag];
}
