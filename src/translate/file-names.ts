import { type Json, isJsonObject } from '../protocol/json.ts';
import { WRAPPED } from './graph.ts';

/** The members of an object and the places in a list that lead to a name. */
export type NamePath = readonly (string | number)[];

type NameAt = { readonly path: NamePath; readonly name: string };

/** The flags in v1's input options that make an input a file chooser. */
export const UPLOAD_FLAGS = [
  'image_upload',
  'audio_upload',
  'video_upload',
  'file_upload',
] as const;

/** The types of input whose value a front end makes from files that it uploads. */
const RECORDED_TYPES: readonly string[] = ['AUDIO_RECORD', 'WEBCAM'];
const SCENE_TYPES: readonly string[] = ['LOAD_3D', 'LOAD_3D_ANIMATION'];

/** The members of a scene that name files. */
const SCENE_FILES: readonly string[] = ['image', 'mask', 'normal', 'recording'];

/** True when the value of an input names files. */
export function takesFileNames(spec: Json): boolean {
  const [type = null, options = null] = Array.isArray(spec) ? (spec as readonly Json[]) : [];
  const isChooser = isJsonObject(options) && UPLOAD_FLAGS.some((flag) => options[flag] === true);
  return isChooser || isOneOf(type, [...RECORDED_TYPES, ...SCENE_TYPES]);
}

/** Returns the names of files in the value of an input, and where they are. */
export function fileNamesIn(spec: Json, value: Json | undefined): readonly NameAt[] {
  if (value === undefined || !takesFileNames(spec)) return [];
  if (isJsonObject(value) && Object.hasOwn(value, WRAPPED))
    return below(WRAPPED, textsIn(value[WRAPPED] ?? null));
  const [type = null] = spec as readonly Json[];
  if (!isJsonObject(value) || !isOneOf(type, SCENE_TYPES)) return nameIn(value);
  return SCENE_FILES.flatMap((member) => below(member, nameIn(value[member] ?? null)));
}

/** Returns a value with the name at a path changed; unchanged when no name is there. */
export function changedAt(value: Json, path: NamePath, change: (name: Json) => Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return change(value);
  // Validation unwraps a value.
  if (key === WRAPPED && !isJsonObject(value)) return changedAt(value, rest, change);
  if (Array.isArray(value))
    return (value as readonly Json[]).map((item, index) =>
      index === key ? changedAt(item, rest, change) : item,
    );
  if (!isJsonObject(value)) return value;
  return Object.hasOwn(value, key)
    ? { ...value, [key]: changedAt(value[key] ?? null, rest, change) }
    : value;
}

/** Several files are a list, which is a link unless it is wrapped. */
function textsIn(value: Json): readonly NameAt[] {
  if (!Array.isArray(value)) return nameIn(value);
  return (value as readonly Json[]).flatMap((item, index) => below(index, nameIn(item)));
}

function nameIn(value: Json): readonly NameAt[] {
  return typeof value === 'string' ? [{ path: [], name: value }] : [];
}

function below(key: string | number, names: readonly NameAt[]): readonly NameAt[] {
  return names.map(({ path, name }) => ({ path: [key, ...path], name }));
}

function isOneOf(type: Json, types: readonly string[]): boolean {
  return typeof type === 'string' && types.includes(type);
}
