import { randomInt } from 'node:crypto';
import { posix } from 'node:path';

import { MAX_FOLDER_BYTES, MAX_NAME_BYTES } from '../../protocol/v1.ts';
import { type NumberedName, fail } from '../node.ts';

/** The place of a saved file, before it has its number: `<subfolder>/<stem>_<5 digits>_.png`. */
export type SavePath = { readonly subfolder: string; readonly stem: string };

/** The values of the placeholders in a file name prefix. */
export type PrefixFacts = { readonly width: number; readonly height: number; readonly now: Date };

/** The letters of the random part of a preview's name in v1. */
const PREVIEW_LETTERS = 'abcdefghijklmnopqrstupvxyz';

/** Resolves a `filename_prefix` as v1 does. Refuses one that leads out of the output folder. */
export function savePath(prefix: string, facts: PrefixFacts): SavePath {
  const path = posix.normalize(fillPrefix(prefix, facts)).replace(/([^/])\/+$/, '$1');
  const slash = Math.max(0, path.lastIndexOf('/'));
  const subfolder = path.slice(0, slash);
  if (path.startsWith('/') || subfolder.split('/')[0] === '..' || path.includes('\0')) {
    return fail('Exception', `filename_prefix leads outside the output folder: ${prefix}`);
  }
  const isLong = subfolder.split('/').some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES);
  if (isLong || Buffer.byteLength(subfolder) > MAX_FOLDER_BYTES) return nameTooLong(subfolder);
  return { subfolder, stem: path.slice(path.lastIndexOf('/') + 1) };
}

function nameTooLong(name: string): never {
  return fail('OSError', `[Errno 36] File name too long: '${name}'`);
}

/** Returns the name of one file of a batch. Refuses names that a file system would not accept. */
export function numberedName(stem: string, end: string, index?: number): NumberedName {
  // v1 leaves `%batch_num%` unchanged where there is one file.
  const shown = index === undefined ? stem : stem.replaceAll('%batch_num%', String(index));
  const name = `${shown}_00001${end}`;
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return nameTooLong(name);
  return { series: `${stem}_`, start: `${shown}_`, end };
}

/**
 * Returns the prefix of a preview's name. It is random, so that a browser never shows an older
 * preview.
 */
export function previewPrefix(): string {
  const letters = Array.from(
    { length: 5 },
    () => PREVIEW_LETTERS[randomInt(PREVIEW_LETTERS.length)],
  );
  return `ComfyUI_temp_${letters.join('')}`;
}

/**
 * Fills in the placeholders that v1 fills in on the server. `%batch_num%` is filled for each
 * picture.
 */
function fillPrefix(prefix: string, { width, height, now }: PrefixFacts): string {
  const twoDigits = (value: number): string => String(value).padStart(2, '0');
  return prefix
    .replaceAll('%width%', String(width))
    .replaceAll('%height%', String(height))
    .replaceAll('%year%', twoDigits(now.getFullYear()))
    .replaceAll('%month%', twoDigits(now.getMonth() + 1))
    .replaceAll('%day%', twoDigits(now.getDate()))
    .replaceAll('%hour%', twoDigits(now.getHours()))
    .replaceAll('%minute%', twoDigits(now.getMinutes()))
    .replaceAll('%second%', twoDigits(now.getSeconds()));
}
