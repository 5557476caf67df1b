import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { FileStore, FileRow } from '../ledger/ledger.ts';
import type { Definitions } from './definitions.ts';
import { memberText } from './parse-definitions.ts';
import { type Json, isJsonObject } from '../protocol/json.ts';
import { COMPRESS, type Encoding } from '../http/content-encoding.ts';
import { createSemaphore } from '../lib/concurrency.ts';
import type { ClassInfo } from '../protocol/v1.ts';
import { contentTypeOf } from '../http/file-headers.ts';

/** An answer to send; an unchanged one is not sent again. */
type TaggedBody = { readonly etag: string; readonly body: Buffer };

/** `/object_info` as one user sees it, ready to be sent. */
export type UserObjectInfo = ReturnType<typeof createUserObjectInfo>;

/** The whole text for certain files, and its compressed forms once they were requested. */
type ObjectInfoVariant = TaggedBody & { compressed(encoding: Encoding): Promise<TaggedBody> };

const CACHE_BYTES = 128 * 1024 * 1024;
const MAX_VARIANT_CHARS = 1024 * 1024;
const MAX_CONCURRENT = 2;
const NO_UPLOADS: UploadNames = [];

/** Fills upload-flagged inputs with the user's files; all else is sent as its source wrote it. */
export function createUserObjectInfo(options: { readonly files: Pick<FileStore, 'list'> }) {
  const uploadsOf = createUploadLists(options.files);
  const withSlot = createSemaphore(MAX_CONCURRENT);
  const namesByText = new LRUCache<string, string>({
    maxSize: MAX_VARIANT_CHARS,
    sizeCalculation: (_name, text) => text.length,
  });
  const uploadClasses = new WeakMap<Definitions, ReadonlySet<string>>();
  const bodies = new LRUCache<string, Buffer>({ maxSize: CACHE_BYTES, sizeCalculation: sizeOf });
  const compressedBodies = new LRUCache<string, Buffer, Buffer>({
    maxSize: CACHE_BYTES,
    sizeCalculation: sizeOf,
    fetchMethod: (key, _stale, { context }) => withSlot(() => COMPRESS[encodingOf(key)](context)),
  });

  const variantNames = new WeakMap<
    UploadNames,
    { readonly version: string; readonly name: string }
  >();
  /**
   * The same text has the same name for every user: definitions and the files that can be chosen.
   */
  const variantNameOf = ({ version }: Definitions, uploads: UploadNames): string => {
    const last = variantNames.get(uploads);
    if (last?.version === version) return last.name;
    const text = JSON.stringify([version, uploads]);
    const name = namesByText.get(text) ?? digestOf(text);
    namesByText.set(text, name);
    variantNames.set(uploads, { version, name });
    return name;
  };
  const uploadClassesOf = (definitions: Definitions): ReadonlySet<string> => {
    const known = uploadClasses.get(definitions) ?? findUploadClasses(definitions);
    uploadClasses.set(definitions, known);
    return known;
  };
  const bodyFor = (key: string, definitions: Definitions, uploads: UploadNames): Buffer => {
    const known =
      bodies.get(key) ?? joinMembers(definitions, uploadClassesOf(definitions), uploads);
    bodies.set(key, known);
    return known;
  };
  return {
    /** Every class. Users whose files make no difference share the bytes. */
    async everyClass(definitions: Definitions, user: string): Promise<ObjectInfoVariant> {
      const dependsOnUploads = uploadClassesOf(definitions).size > 0;
      const uploads = dependsOnUploads ? await uploadsOf(user) : NO_UPLOADS;
      const key = variantNameOf(definitions, uploads);
      const body = bodyFor(key, definitions, uploads);
      return {
        etag: `"${key}"`,
        body,
        async compressed(encoding) {
          const compressedBody = await compressedBodies.fetch(`${key}-${encoding}`, {
            context: body,
          });
          return {
            etag: `"${key}-${encoding}"`,
            body: compressedBody ?? (await COMPRESS[encoding](body)),
          };
        },
      };
    },
    /** One class by its name, or `{}`: v1 answers 200 for an unknown class. */
    async oneClass(definitions: Definitions, user: string, name: string): Promise<TaggedBody> {
      const member = definitions.members.get(name);
      if (!member) return tagged(Buffer.from('{}'));
      if (!uploadClassesOf(definitions).has(name)) return tagged(inBraces([member]));
      return tagged(inBraces([withUploads(definitions, name, await uploadsOf(user))]));
    },
  };
}

function sizeOf({ length }: Buffer): number {
  return length + 1;
}

function encodingOf(key: string): Encoding {
  return key.endsWith('-br') ? 'br' : 'gzip';
}

function tagged(body: Buffer): TaggedBody {
  return { body, etag: `"${digestOf(body)}"` };
}

function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, 27);
}

/** The classes with a file chooser; most are recognised by their text alone. */
function findUploadClasses({ members, info }: Definitions): ReadonlySet<string> {
  const names = [...members].flatMap(([name, member]) => {
    const known = member.includes('_upload"') ? info[name] : undefined;
    return known && takesUploads(known) ? [name] : [];
  });
  return new Set(names);
}

function joinMembers(
  definitions: Definitions,
  uploadClasses: ReadonlySet<string>,
  uploads: UploadNames,
): Buffer {
  return inBraces(
    Array.from(definitions.members, ([name, member]) =>
      uploadClasses.has(name) ? withUploads(definitions, name, uploads) : member,
    ),
  );
}

function withUploads({ info, members }: Definitions, name: string, uploads: UploadNames): Buffer {
  const known = info[name];
  if (!known) return members.get(name) ?? Buffer.alloc(0);
  return memberText(name, withUploadChoices(known, uploads));
}

function inBraces(members: readonly Buffer[]): Buffer {
  const comma = Buffer.from(', ');
  const parts = members.flatMap((member, index) => (index === 0 ? [member] : [comma, member]));
  return Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')]);
}

/** A user's files that some upload button offers, sorted. */
type UploadNames = readonly string[];

/** The kinds of file an upload button offers. */
const MEDIA_TYPES_BY_FLAG: { readonly [flag: string]: readonly string[] } = {
  image_upload: ['image'],
  audio_upload: ['audio', 'video'],
  video_upload: ['video'],
};

const OFFERED_MEDIA_TYPES = new Set(Object.values(MEDIA_TYPES_BY_FLAG).flat());

/**
 * Files directly in the input folder; those in subfolders are valid but not listed. A ledger that
 * remembers a list hands out the same one until it changes, and so does this.
 */
function createUploadLists(files: Pick<FileStore, 'list'>): (user: string) => Promise<UploadNames> {
  const cache = new WeakMap<readonly FileRow[], UploadNames>();
  return async (user) => {
    const rows = await files.list(user, 'input');
    const uploads = cache.get(rows) ?? offeredNames(rows);
    cache.set(rows, uploads);
    return uploads;
  };
}

function offeredNames(rows: readonly FileRow[]): UploadNames {
  return rows
    .filter(({ subfolder }) => subfolder === '')
    .map(({ filename }) => filename)
    .filter((name) => OFFERED_MEDIA_TYPES.has(mediaTypeOf(name)))
    .toSorted();
}

/** True when a class lets its user choose among uploaded files. */
function takesUploads({ input }: ClassInfo): boolean {
  return Object.values(input).some((group) =>
    Object.values(group).some((spec) => mediaTypesOf(spec) !== undefined),
  );
}

/** The class with the files of one user, instead of those its source listed. */
function withUploadChoices(info: ClassInfo, files: UploadNames): ClassInfo {
  const groups = Object.entries(info.input).map(([name, group]) => {
    const specs = Object.entries(group).map(
      ([key, spec]) => [key, withChoices(spec, files)] as const,
    );
    return [name, Object.fromEntries(specs)] as const;
  });
  return { ...info, input: Object.fromEntries(groups) };
}

/** A legacy combo is a list instead of a type; a newer one has the list under `options`. */
function withChoices(spec: Json, files: UploadNames): Json {
  const mediaTypes = mediaTypesOf(spec);
  if (mediaTypes === undefined || !isList(spec)) return spec;
  const names = files.filter((name) => mediaTypes.includes(mediaTypeOf(name)));
  const [type, options] = spec;
  if (isList(type)) return [names, ...spec.slice(1)];
  if (!isJsonObject(options) || !isList(options['options'])) return spec;
  return [type ?? null, { ...options, options: names }];
}

/** A combo over another folder than the input folder fetches its own list. */
function mediaTypesOf(spec: Json): readonly string[] | undefined {
  const options = isList(spec) ? spec[1] : undefined;
  if (!isJsonObject(options) || (options['image_folder'] ?? 'input') !== 'input') return undefined;
  const flag = Object.keys(MEDIA_TYPES_BY_FLAG).find((name) => options[name] === true);
  return flag === undefined ? undefined : MEDIA_TYPES_BY_FLAG[flag];
}

function mediaTypeOf(filename: string): string {
  return contentTypeOf(filename)?.split('/', 1)[0] ?? '';
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
