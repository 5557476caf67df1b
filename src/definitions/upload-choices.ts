import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { type Json, isJsonObject } from '../protocol/json.ts';
import type { ClassInfo } from '../protocol/v1.ts';
import { contentTypeOf } from '../http/file-headers.ts';

/** A user's files that some upload button offers, sorted. */
export type UploadNames = readonly string[];

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
export function createUploadLists(
  files: Pick<FileStore, 'list'>,
): (user: string) => Promise<UploadNames> {
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
export function takesUploads({ input }: ClassInfo): boolean {
  return Object.values(input).some((group) =>
    Object.values(group).some((spec) => mediaTypesOf(spec) !== undefined),
  );
}

/** The class with the files of one user, instead of those its source listed. */
export function withUploadChoices(info: ClassInfo, files: UploadNames): ClassInfo {
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
