import { createHmac } from 'node:crypto';
import { type Json, mapParts } from '../../protocol/json.ts';
import { contentName, uploadFolder, uploadFoldersIn } from '../../protocol/upload-folders.ts';
import type { Graph } from '../../protocol/v2.ts';
import { mapFileRefs } from './file-references.ts';

/** An upload by its requested path. */
type RequestedUpload = {
  readonly user: string;
  readonly filePath: string;
  readonly hash: string;
};

const FOLDER_CHARS = 16;
const INPUT_PATH = /^input\/(.+)$/s;

/**
 * The paths of uploads. Users of this server may share one account upstream, or there may be no
 * accounts, so a plain name would belong to every user. A service may show the path of an upload to
 * another user who sends the same bytes: each upload has a folder of its own, so that this one path
 * leads to no other file.
 */
export class UploadPaths {
  readonly #secret: Buffer | undefined;

  constructor(secret: Buffer | undefined) {
    this.#secret = secret;
  }

  pathOf({ user, filePath, hash }: RequestedUpload): string {
    if (this.#secret === undefined || !INPUT_PATH.test(filePath)) return filePath;
    const upload = ['place', user, hash.toLowerCase()].join('\0');
    const digits = createHmac('sha256', this.#secret).update(upload).digest('hex');
    return `input/${uploadFolder(digits.slice(0, FOLDER_CHARS))}/${contentName(hash, filePath)}`;
  }

  /** Returns the workflow with the real paths of its files, for upstreams that use paths. */
  rewriteWorkflow(workflow: Graph, user: string): Graph {
    return mapFileRefs(workflow, (info) => {
      const { hash, file_path: filePath } = info;
      if (hash === undefined || filePath === undefined) return info;
      return { ...info, file_path: this.pathOf({ user, filePath, hash }) };
    });
  }
}

/**
 * The three patterns of a folder: before a name; alone, as folders are listed; and in a list of
 * choices, with its content.
 */
const FOLDER_BEFORE_NAME = /holdover-[0-9a-f]{16}(?:\/|\\+)/g;
/** The space before a choice is bounded, since a service may send any amount. */
const QUOTED_CHOICE =
  /(?<=[[(,]\s{0,64})(\\*["'])holdover-[0-9a-f]{16}(?:(?!\1).)*\1\s*(?:,\s*|(?=[\])]|$))/g;
const FOLDER = /holdover-[0-9a-f]{16}/g;

/**
 * Matches the part of a host's path before the folder of a file. An engine may have its inputs in a
 * folder of another name. A path may have spaces only in quotation marks. The length is bounded,
 * since each match begins anew.
 */
const HOST_PATH =
  /(?:(?<=["'`])(?:[a-z]:)?[\\/](?:[^"'\n]{0,400}[\\/])?|(?<=^|[\s(=])(?:[a-z]:)?[\\/](?:[^\s"']{0,400}[\\/])?)(?=(?:input|output|temp|(?<!(?:input|output|temp)[\\/]{1,4})holdover-[0-9a-f]{16})[\\/])/gi;

/**
 * Returns the upstream's message about files without upload folders, and without the host's folders
 * before these and before `input`, `output` and `temp`. Choices inside upload folders are left out,
 * as they may belong to other users.
 */
export function withoutFolders(text: string): string {
  if (!text.includes('holdover-')) return text.replaceAll(HOST_PATH, '');
  // Choices first: without the host's path, a quoted file looks like one.
  return text
    .replaceAll(QUOTED_CHOICE, '')
    .replaceAll(HOST_PATH, '')
    .replaceAll(FOLDER_BEFORE_NAME, '')
    .replaceAll(FOLDER, '');
}

/** Does this for JSON. */
export function withoutFoldersIn(value: Json): Json {
  if (typeof value === 'string') return withoutFolders(value);
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    // A text in a list of several texts is a choice.
    const isChoice = (item: Json): boolean =>
      typeof item === 'string' && items.length > 1 && uploadFoldersIn(item).length > 0;
    return items.filter((item) => !isChoice(item)).map(withoutFoldersIn);
  }
  return mapParts(value, withoutFoldersIn, withoutFolders);
}
