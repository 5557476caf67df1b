import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { FileStore } from '../ledger/ledger.ts';
import type { Definitions } from '../wire/definitions.ts';
import { stringifyJson } from '../wire/json.ts';
import { COMPRESS, type Encoding } from './encodings.ts';
import { createSemaphore } from './render.ts';
import { type Uploads, createUploads, takesUploads, withFiles } from './upload-combos.ts';

/** An answer as it travels: one that is known to be the same is not sent again. */
type Served = { readonly etag: string; readonly body: Buffer };

/** `/object_info` as one user sees it, ready to be sent. */
export type UserObjectInfo = {
  /** Every class. Users whose files make no difference share the bytes. */
  all(definitions: Definitions, user: string): Promise<Variant>;
  /** One class by its name, or `{}`: v1 answers 200 for a class nobody has. */
  one(definitions: Definitions, user: string, name: string): Promise<Served>;
};

/** The whole text for certain files, and its compressed forms once somebody asked. */
type Variant = Served & { compressed(encoding: Encoding): Promise<Served> };

const CACHE_BYTES = 128 * 1024 * 1024;
const VARIANT_NAMES_CHARS = 1024 * 1024;
const COMPRESSED_AT_ONCE = 2;
const NO_UPLOADS: Uploads = [];

/** Fills upload-flagged inputs with the user's files; all else is sent as its source wrote it. */
export function createUserObjectInfo(deps: {
  readonly files: Pick<FileStore, 'list'>;
}): UserObjectInfo {
  const uploadsOf = createUploads(deps.files);
  const inTurn = createSemaphore(COMPRESSED_AT_ONCE);
  const variants = new LRUCache<string, string>({
    maxSize: VARIANT_NAMES_CHARS,
    sizeCalculation: (_name, text) => text.length,
  });
  const choosers = new WeakMap<Definitions, ReadonlySet<string>>();
  const wholes = new LRUCache<string, Buffer>({ maxSize: CACHE_BYTES, sizeCalculation: sizeOf });
  const packed = new LRUCache<string, Buffer, Buffer>({
    maxSize: CACHE_BYTES,
    sizeCalculation: sizeOf,
    fetchMethod: (key, _stale, { context }) => inTurn(() => COMPRESS[encodingOf(key)](context)),
  });

  const named = new WeakMap<Uploads, { readonly version: string; readonly name: string }>();
  /** The same text has the same name, whoever asks: definitions and the files that can be chosen. */
  const variantOf = ({ version }: Definitions, uploads: Uploads): string => {
    const last = named.get(uploads);
    if (last?.version === version) return last.name;
    const text = JSON.stringify([version, uploads]);
    const name = variants.get(text) ?? digestOf(text);
    variants.set(text, name);
    named.set(uploads, { version, name });
    return name;
  };
  const choosersOf = (definitions: Definitions): ReadonlySet<string> => {
    const known = choosers.get(definitions) ?? findChoosers(definitions);
    choosers.set(definitions, known);
    return known;
  };
  const whole = (key: string, definitions: Definitions, uploads: Uploads): Buffer => {
    const known = wholes.get(key) ?? join(definitions, choosersOf(definitions), uploads);
    wholes.set(key, known);
    return known;
  };
  return {
    async all(definitions, user) {
      const isTheirs = choosersOf(definitions).size > 0;
      const uploads = isTheirs ? await uploadsOf(user) : NO_UPLOADS;
      const key = variantOf(definitions, uploads);
      const body = whole(key, definitions, uploads);
      return {
        etag: `"${key}"`,
        body,
        async compressed(encoding) {
          const small = await packed.fetch(`${key}-${encoding}`, { context: body });
          return { etag: `"${key}-${encoding}"`, body: small ?? (await COMPRESS[encoding](body)) };
        },
      };
    },
    async one(definitions, user, name) {
      const member = definitions.members.get(name);
      if (!member) return served(Buffer.from('{}'));
      if (!choosersOf(definitions).has(name)) return served(braced([member]));
      return served(braced([filled(definitions, name, await uploadsOf(user))]));
    },
  };
}

function sizeOf({ length }: Buffer): number {
  return length + 1;
}

function encodingOf(key: string): Encoding {
  return key.endsWith('-br') ? 'br' : 'gzip';
}

function served(body: Buffer): Served {
  return { body, etag: `"${digestOf(body)}"` };
}

function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, 27);
}

/** The classes with a file chooser; most are told from their text alone. */
function findChoosers({ members, info }: Definitions): ReadonlySet<string> {
  const names = [...members].flatMap(([name, member]) => {
    const known = member.includes('_upload"') ? info[name] : undefined;
    return known && takesUploads(known) ? [name] : [];
  });
  return new Set(names);
}

function join(definitions: Definitions, choosers: ReadonlySet<string>, uploads: Uploads): Buffer {
  return braced(
    Array.from(definitions.members, ([name, member]) =>
      choosers.has(name) ? filled(definitions, name, uploads) : member,
    ),
  );
}

function filled({ info, members }: Definitions, name: string, uploads: Uploads): Buffer {
  const known = info[name];
  if (!known) return members.get(name) ?? Buffer.alloc(0);
  return Buffer.from(`${JSON.stringify(name)}:${stringifyJson(withFiles(known, uploads))}`);
}

function braced(members: readonly Buffer[]): Buffer {
  const comma = Buffer.from(',');
  const parts = members.flatMap((member, index) => (index === 0 ? [member] : [comma, member]));
  return Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')]);
}
