import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type Koa from 'koa';
import { isNotModified } from '../http/file-headers.ts';
import type { PublicAddress, PublicAddresses } from '../http/public-address.ts';
import { findBelow } from '../http/static-file.ts';
import { sendEmpty } from '../dialects/errors.ts';
import { packageUrl } from '../lib/package-url.ts';
import { sendPageFile } from './send-file.ts';

/** `scripts/build-page.js` writes it. */
const PAGE_FOLDER = packageUrl('dist/page/');

/** v1's front end is below its second prefix, too: clients with such a base address probe it for a 200. */
export const START_PATHS: ReadonlySet<string> = new Set(['/', '/api/']);
/** The path of the page; its files are below. */
const PAGE_PATH = '/holdover';

/** Every path of Holdover's own page but `/`. */
export function pagePaths(): ReadonlySet<string> {
  const files = readdirSync(PAGE_FOLDER).filter((name) => /\.(js|css|svg)$/.test(name));
  const names = ['report.json', ...files];
  return new Set([PAGE_PATH, ...names.map((name) => `${PAGE_PATH}/${name}`)]);
}

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
}: {
  /** These facts are public: they are on the page before it has called the server. */
  readonly version: string;
  readonly upstream: string;
  readonly path?: '/' | '/holdover';
  readonly addresses: PublicAddresses;
}): Koa.Middleware {
  const pages = new Set([PAGE_PATH, ...(facts.path === PAGE_PATH ? [] : START_PATHS)]);
  return async (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    if (pages.has(ctx.path)) {
      return sendPage(ctx, { ...facts, ...toOrigins(addresses.of(ctx.req), ctx.path) });
    }
    if (!ctx.path.startsWith(`${PAGE_PATH}/`)) return next();
    const name = ctx.path.slice(PAGE_PATH.length);
    const file = await findBelow(fileURLToPath(PAGE_FOLDER), name);
    if (!file || name === '/index.html') return sendEmpty(ctx, 404);
    ctx.set(PAGE_HEADERS);
    await sendPageFile(ctx, file);
  };
}

const PAGE_HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Referrer-Policy': 'no-referrer',
  // Browsers must revalidate each time: after an update, page and scripts must match.
  'Cache-Control': 'no-cache',
};

async function sendPage(
  ctx: Koa.Context,
  facts: { readonly [name: string]: string },
): Promise<void> {
  const html = fillIn(await readFile(new URL('index.html', PAGE_FOLDER), 'utf8'), facts);
  ctx.set(PAGE_HEADERS);
  const hash = createHash('sha256').update(html).digest('base64url');
  if (isNotModified(ctx, { etag: `"${hash}"` })) return;
  ctx.body = html;
  ctx.set('Content-Type', 'text/html; charset=utf-8');
}

/**
 * With a prefix the page names its files from the root: some proxies treat `/prefix` as `/prefix/`.
 */
function toOrigins(address: PublicAddress | undefined, path: string) {
  const origin = address?.base ?? '';
  const nearRoot = path === '/api/' ? '../' : '';
  const root = address === undefined || address.prefix === '' ? nearRoot : `${address.prefix}/`;
  return { origin, socket: origin.replace(/^http/, 'ws'), root };
}

/** Replaces `{{name}}` by the fact of that name. */
function fillIn(html: string, facts: { readonly [name: string]: string }): string {
  return html.replace(/\{\{(\w+)\}\}/g, (_, name: string) => escapeHtml(facts[name] ?? ''));
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
