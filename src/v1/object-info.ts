import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { FileStore } from '../ledger/ledger.ts';
import { type Json, isJsonObject, stringifyJson } from '../wire/json.ts';
import type { ClassInfo, ObjectInfo } from '../wire/v1.ts';
import { contentTypeOf } from './served-as.ts';

/** `/object_info` as one user sees it, ready to be sent. */
export type UserObjectInfo = {
  /** Every class, JSON in UTF-8. */
  all(user: string): Promise<Buffer>;
  /** One class by its name, or `{}`: v1 answers 200 for a class nobody has. */
  one(user: string, name: string): Promise<string>;
};

/** Which kinds of file an upload button offers. */
const UPLOAD_FAMILIES: { readonly [flag: string]: readonly string[] } = {
  image_upload: ['image'],
  audio_upload: ['audio', 'video'],
  video_upload: ['video'],
};

const CACHE_BYTES = 64 * 1024 * 1024;

type Entry = string | ((files: readonly string[]) => string);
type Serialised = { readonly info: ObjectInfo; readonly entries: readonly Entry[] };

/**
 * Fills upload-flagged inputs with the user's files. Everything else is serialised once for as
 * long as `objectInfo` answers the same object.
 */
export function createUserObjectInfo(deps: {
  readonly objectInfo: () => Promise<ObjectInfo>;
  readonly files: Pick<FileStore, 'list'>;
}): UserObjectInfo {
  let serialised: Serialised | undefined;
  const whole = new LRUCache<string, Buffer>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ length }) => length + 1,
  });
  const current = async (): Promise<Serialised> => {
    const info = await deps.objectInfo();
    if (serialised?.info === info) return serialised;
    whole.clear();
    return (serialised = { info, entries: Object.entries(info).map(entryOf) });
  };
  return {
    async all(user) {
      const { entries } = await current();
      const files = await uploadsOf(deps.files, user);
      const key = createHash('sha256')
        .update([user, ...files].join('\0'))
        .digest('base64');
      const known = whole.get(key) ?? join(entries, files);
      whole.set(key, known);
      return known;
    },
    async one(user, name) {
      const { info } = await current();
      const known = Object.hasOwn(info, name) ? info[name] : undefined;
      if (known === undefined) return '{}';
      return stringifyJson({ [name]: withFiles(known, await uploadsOf(deps.files, user)) });
    },
  };
}

function join(entries: readonly Entry[], files: readonly string[]): Buffer {
  const texts = entries.map((entry) => (typeof entry === 'string' ? entry : entry(files)));
  return Buffer.from(`{${texts.join(',')}}`);
}

function entryOf([name, info]: [string, ClassInfo]): Entry {
  const text = (shown: ClassInfo) => `${JSON.stringify(name)}:${stringifyJson(shown)}`;
  return takesUploads(info) ? (files) => text(withFiles(info, files)) : text(info);
}

/** Files directly in the input folder; those in subfolders are valid but not listed. */
async function uploadsOf(files: Pick<FileStore, 'list'>, user: string): Promise<readonly string[]> {
  const rows = await files.list(user, 'input');
  return rows
    .filter(({ subfolder }) => subfolder === '')
    .map(({ filename }) => filename)
    .toSorted();
}

function takesUploads({ input }: ClassInfo): boolean {
  return Object.values(input).some((group) =>
    Object.values(group).some((spec) => familiesOf(spec) !== undefined),
  );
}

function withFiles(info: ClassInfo, files: readonly string[]): ClassInfo {
  const groups = Object.entries(info.input).map(([name, group]) => {
    const specs = Object.entries(group).map(([key, spec]) => [key, filled(spec, files)] as const);
    return [name, Object.fromEntries(specs)] as const;
  });
  return { ...info, input: Object.fromEntries(groups) };
}

/** A legacy combo is a list in place of the type; a newer one has it under `options`. */
function filled(spec: Json, files: readonly string[]): Json {
  const families = familiesOf(spec);
  if (families === undefined || !isList(spec)) return spec;
  const names = files.filter((name) => families.includes(familyOf(name)));
  const [type, options] = spec;
  if (isList(type)) return [names, ...spec.slice(1)];
  if (!isJsonObject(options) || !isList(options['options'])) return spec;
  return [type ?? null, { ...options, options: names }];
}

/** A combo over another folder than the input folder fetches its own list. */
function familiesOf(spec: Json): readonly string[] | undefined {
  const options = isList(spec) ? spec[1] : undefined;
  if (!isJsonObject(options) || (options['image_folder'] ?? 'input') !== 'input') return undefined;
  const flag = Object.keys(UPLOAD_FAMILIES).find((name) => options[name] === true);
  return flag === undefined ? undefined : UPLOAD_FAMILIES[flag];
}

function familyOf(filename: string): string {
  return contentTypeOf(filename)?.split('/', 1)[0] ?? '';
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
