import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';
import type Koa from 'koa';
import { contentType } from 'mime-types';
import { COMPRESS, type Encoding, encodingsFor } from '../http/content-encoding.ts';
import { isCopyCurrent } from '../http/file-headers.ts';
import type { PublicAddress, PublicAddresses } from '../http/public-address.ts';
import { sendEmpty } from '../dialects/errors.ts';
import { packageUrl } from '../lib/package-url.ts';

/** A text file of the page, as it is sent. */
type PageFile = {
  readonly contentType: string;
  readonly text: string;
  /** The same compressed, made when a browser first asks for it. */
  readonly compressed: Map<Encoding, Promise<Buffer>>;
};

/** `scripts/build-page.js` writes it. */
const PAGE_FOLDER = packageUrl('dist/page/');

type Page = {
  readonly html: PageFile;
  readonly files: ReadonlyMap<string, PageFile>;
};

/** Names of the files that the page loads. */
function fileNames(): readonly string[] {
  return readdirSync(PAGE_FOLDER).filter((name) => /\.(js|css|svg)$/.test(name));
}

/** Reads the page and all its files; they are small. */
function readPage(): Page {
  return {
    html: readPageFile('index.html'),
    files: new Map(fileNames().map((name) => [name, readPageFile(name)])),
  };
}

/** The path of the page; its files are below. */
/** v1's front end is below its second prefix, too: clients with such a base address probe it for a 200. */
export const START_PATHS: ReadonlySet<string> = new Set(['/', '/api/']);
const PAGE_PATH = '/holdover';
/** Where earlier versions had the usage report: the page shows that part of it there. */
const REPORT_PATH = `${PAGE_PATH}/report`;

/** Every path of Holdover's own page but `/`. */
export function pagePaths(): ReadonlySet<string> {
  const names = ['report', 'report.json', ...fileNames()];
  return new Set([PAGE_PATH, ...names.map((name) => `${PAGE_PATH}/${name}`)]);
}

function readPageFile(name: string): PageFile {
  return {
    contentType: contentType(extname(name)) || 'application/octet-stream',
    text: readFileSync(new URL(name, PAGE_FOLDER), 'utf8'),
    compressed: new Map(),
  };
}

/** Facts on the page that are public, before it has called the server. */
type PageFacts = { readonly version: string; readonly upstream: string };

/** No foreign and no inline resources: the page shows names and errors that others chose. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Holdover's own page, served before authentication. It is at `/` and `/api/`, which v1 clients probe for a
 * 200, unless a mounted front end has these; and always at `/holdover`.
 */
export function homePage({
  addresses,
  ...facts
}: PageFacts & {
  readonly path?: '/' | '/holdover';
  readonly addresses: PublicAddresses;
}): Koa.Middleware {
  let page: Page | undefined;
  // All at once, at the first call: page and scripts match.
  const read = (): Page => (page ??= readPage());
  const own = [PAGE_PATH, REPORT_PATH];
  const pages = new Set(facts.path === PAGE_PATH ? own : [...own, ...START_PATHS]);
  return (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    if (pages.has(ctx.path)) {
      return sendPage(
        ctx,
        fillIn(read().html, { ...facts, ...toOrigins(addresses.of(ctx.req), ctx.path) }),
      );
    }
    if (!ctx.path.startsWith(`${PAGE_PATH}/`)) return next();
    const file = read().files.get(ctx.path.slice(PAGE_PATH.length + 1));
    if (file) return sendPage(ctx, file);
    sendEmpty(ctx, 404);
  };
}

/** Browsers must revalidate each time: after an update, page and scripts must match. */
async function sendPage(ctx: Koa.Context, file: PageFile): Promise<void> {
  ctx.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
  ctx.set('Referrer-Policy', 'no-referrer');
  ctx.set('Cache-Control', 'no-cache');
  ctx.vary('Accept-Encoding');
  ctx.status = 200;
  const [encoding] = file.text.length < MIN_COMPRESSED_CHARS ? [] : encodingsFor(ctx);
  const tag = createHash('sha256').update(file.text).digest('base64url');
  ctx.etag = encoding === undefined ? tag : `${tag}-${encoding}`;
  if (isCopyCurrent(ctx.req, { etag: ctx.response.get('ETag') })) {
    ctx.status = 304;
    return;
  }
  if (encoding !== undefined) ctx.set('Content-Encoding', encoding);
  ctx.body = encoding === undefined ? file.text : await compressedBy(encoding, file);
  ctx.set('Content-Type', file.contentType);
}

/** A compressed answer of less is hardly smaller. */
const MIN_COMPRESSED_CHARS = 2048;

function compressedBy(encoding: Encoding, { text, compressed }: PageFile): Promise<Buffer> {
  const bytes = compressed.get(encoding) ?? COMPRESS[encoding](Buffer.from(text));
  compressed.set(encoding, bytes);
  return bytes;
}

/**
 * With a prefix the page names its files from the root: some proxies treat `/prefix` as `/prefix/`.
 */
function toOrigins(
  address: PublicAddress | undefined,
  path: string,
): {
  readonly origin: string;
  readonly socket: string;
  readonly root: string;
} {
  const origin = address?.base ?? '';
  const nearRoot = path === REPORT_PATH || path === '/api/' ? '../' : '';
  const root = address === undefined || address.prefix === '' ? nearRoot : `${address.prefix}/`;
  return { origin, socket: origin.replace(/^http/, 'ws'), root };
}

/** Replaces `{{name}}` in the page by the fact of that name. */
function fillIn(page: PageFile, facts: { readonly [name: string]: string }): PageFile {
  const text = page.text.replace(/\{\{(\w+)\}\}/g, (_, name: string) =>
    escapeHtml(facts[name] ?? ''),
  );
  return { ...page, text };
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
