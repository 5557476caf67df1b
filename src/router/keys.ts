import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** The rights of a key. An absent member has the default for all callers. */
export type KeyGrant = Readonly<Omit<KeysFile['keys'][number], 'key'>>;

/** The configured keys, of which only digests are kept. */
export type ModelKeys = {
  /** The prefix of all keys. Any other value is a token of an identity provider. */
  readonly prefix: string;
  find(key: string): KeyGrant | undefined;
};

const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** Reads a keys file. Throws an error that says what to change and never shows a key. */
export function readKeys(path: string): ModelKeys {
  const { prefix, keys } = parse(path);
  const grants = new Map<string, KeyGrant>();
  for (const [at, { key, ...grant }] of keys.entries()) {
    if (!DIGEST.test(key) && !key.startsWith(prefix)) {
      throw new Error(`--model-keys ${path}: key ${at + 1} does not start with '${prefix}'`);
    }
    grants.set(DIGEST.test(key) ? key : digest(key), grant);
  }
  return { prefix, find: (key) => grants.get(digest(key)) };
}

/** Returns true when a grant covers a model. */
export function grantCovers({ models }: KeyGrant, id: string): boolean {
  if (models === undefined) return true;
  return models.some(
    (each) => each === id || (each.endsWith('/*') && id.startsWith(each.slice(0, -1))),
  );
}

const COUNT = z.int().min(0);
const ENTRY = z.strictObject({
  key: z.string().min(1),
  workspace: z.string().min(1).max(128),
  /** False when the router is not enabled for this workspace. */
  enabled: z.boolean().optional(),
  /** Model ids, or `provider/*`; absent for all models. */
  models: z.array(z.string()).optional(),
  in_flight: COUNT.optional(),
  committed_cents: COUNT.optional(),
  requests_per_minute: COUNT.min(1).optional(),
  /** The most that the workspace may be charged in total, in US cents; absent for no limit. */
  credits_cents: COUNT.optional(),
});
const FILE = z.strictObject({ prefix: z.string().default('comfyui-'), keys: z.array(ENTRY) });

type KeysFile = z.infer<typeof FILE>;

function parse(path: string): KeysFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new Error(`--model-keys ${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
  const parsed = FILE.safeParse(readJson(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join('.') || 'the file';
  throw new Error(`--model-keys ${path}: ${where}: ${issue?.message ?? 'is not understood'}`);
}

/** Reads JSON. The schema refuses invalid JSON, since a parser error would quote the file. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function digest(key: string): string {
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}
