import { createHmac } from 'node:crypto';
import type { Graph } from '../wire/v2.ts';
import { mapFileRefs } from './workflow.ts';

/** An upload by the path it asks for. */
export type PlacedUpload = {
  readonly user: string;
  readonly filePath: string;
  readonly hash: string;
};

/** Where uploads lie upstream. */
export type Places = {
  pathOf(upload: PlacedUpload): string;
  /** The workflow with the paths its files really have, for upstreams that go by them. */
  inWorkflow(workflow: Graph, user: string): Graph;
};

const FOLDER_CHARS = 16;

/**
 * Upstream our users may share an account, or there may be no accounts: a name there would be
 * anybody's. Each file gets a folder that nobody can guess, and other bytes get another.
 */
export function createPlaces(secret: Buffer | undefined): Places {
  function pathOf({ user, filePath, hash }: PlacedUpload): string {
    const [, name] = /^input\/(.+)$/s.exec(filePath) ?? [];
    if (secret === undefined || name === undefined) return filePath;
    const upload = ['place', user, hash.toLowerCase(), filePath].join('\0');
    const folder = createHmac('sha256', secret).update(upload).digest('hex');
    return `input/${MARK}${folder.slice(0, FOLDER_CHARS)}/${name}`;
  }
  return {
    pathOf,
    inWorkflow: (workflow, user) =>
      mapFileRefs(workflow, (info) => {
        const { hash, file_path: filePath } = info;
        if (hash === undefined || filePath === undefined) return info;
        return { ...info, file_path: pathOf({ user, filePath, hash }) };
      }),
  };
}

const MARK = 'holdover-';
const FOLDERS = /holdover-[0-9a-f]{16}(?:\/|\\+)/g;

/** What an upstream says about a file, with the file named as its user did. */
export function withoutFolders(text: string): string {
  return text.includes(MARK) ? text.replaceAll(FOLDERS, '') : text;
}
