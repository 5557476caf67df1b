import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type Koa from 'koa';
import { contentType } from 'mime-types';
import { packageUrl } from '../lib/package-url.ts';
import { type Packed, createPacker } from './compression.ts';
import { sendEmpty } from './errors.ts';
import { PICTURE } from './served-as.ts';
import { type StaticFile, findBelow, sendFile } from './static-file.ts';
import { type Templates, serveTemplateList } from './templates.ts';

/** A browser front end in a folder, as v1's `--front-end-root` mounts one. */
export type FrontEnd = {
  /** Serves its files where no route of the old API answers. */
  readonly serve: Koa.Middleware;
  /** What `/extensions` lists. */
  readonly extensions: () => Promise<readonly string[]>;
  /** The lists of `/workflow_templates`. */
  readonly workflowTemplates: Templates['packs'];
};

/** Types worth making smaller; pictures, fonts and archives are small already. */
const COMPRESSIBLE = /^(text\/|application\/(javascript|json|manifest\+json|xml|wasm)|image\/svg)/;
/** Names bundlers make from the content, with eight characters of a hash before the extension. */
const HASHED = /-(?=[\w-]*(\d|(?<!-)[A-Z_]))[\w-]{8}(\.\w+){1,2}$/;
/** Scripts of our own that a front end loads, at their addresses below `/extensions`. */
const OWN_EXTENSIONS = ['/extensions/holdover/starter-graph.js'];
const OWN_EXTENSION = /^(?:\/api)?\/extensions\/holdover(?=\/)/;
const OWN_FOLDER = fileURLToPath(packageUrl('page/extensions/'));

const MAX_EXTENSIONS = 10_000;

export function createFrontEnd(root: string, templates: Templates): FrontEnd {
  const pack = createPacker();

  async function serve(ctx: Koa.Context, file: StaticFile): Promise<void> {
    const type = contentType(extname(file.path)) || 'application/octet-stream';
    ctx.set('Content-Type', type);
    ctx.set(cachingOf(ctx.path));
    if (!COMPRESSIBLE.test(type)) return sendFile(ctx, file);
    ctx.vary('Accept-Encoding');
    const packed = await pack(ctx, file);
    return packed ? sendPacked(ctx, packed) : sendFile(ctx, file);
  }

  return {
    async serve(ctx, next) {
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
      const file =
        (await findBelow(root, ctx.path === '/' ? '/index.html' : ctx.path)) ??
        (await findOwn(templates, ctx.path));
      if (file) return serve(ctx, file);
      if (await serveTemplateList(templates, ctx)) return;
      if (ctx.path === '/user.css') return sendNoStyle(ctx);
      return next();
    },
    extensions: async () => [...(await listExtensions(root)), ...OWN_EXTENSIONS],
    workflowTemplates: templates.packs,
  };
}

/** Files given along with a front end; its own come first. */
function findOwn(templates: Templates, path: string): Promise<StaticFile | undefined> {
  if (OWN_EXTENSION.test(path)) return findBelow(OWN_FOLDER, path.replace(OWN_EXTENSION, ''));
  return templates.find(path);
}

function sendPacked(ctx: Koa.Context, packed: Packed): Promise<void> | void {
  ctx.set('Content-Encoding', packed.encoding);
  if ('file' in packed) return sendFile(ctx, packed.file);
  ctx.status = 200;
  ctx.set('ETag', packed.etag);
  if (ctx.fresh) {
    ctx.remove('Content-Encoding');
    ctx.status = 304;
    return;
  }
  const type = ctx.response.get('Content-Type');
  ctx.body = packed.bytes;
  ctx.set('Content-Type', type);
}

/** Pages ask for it whether or not there is one. */
function sendNoStyle(ctx: Koa.Context): void {
  sendEmpty(ctx);
  ctx.set('Content-Type', 'text/css; charset=utf-8');
}

/** The page itself must never be an old one; what carries a hash in its name never changes. */
function cachingOf(path: string): { readonly [header: string]: string } {
  if (path === '/' || path === '/index.html') {
    return { 'Cache-Control': 'no-cache', Pragma: 'no-cache', Expires: '0' };
  }
  if (path.startsWith('/assets/') && HASHED.test(basename(path))) {
    return { 'Cache-Control': 'public, max-age=31536000, immutable' };
  }
  // As v1 has it.
  if (PICTURE.test(path)) return { 'Cache-Control': 'public, max-age=86400' };
  return { 'Cache-Control': 'no-cache' };
}

/** Every script below `extensions/`, by its address; links are not followed. */
async function listExtensions(root: string): Promise<readonly string[]> {
  const top = join(root, 'extensions');
  const found: string[] = [];
  const folders = [top];
  for (const folder of folders) {
    for (const entry of await entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.name.endsWith('.js') && found.length < MAX_EXTENSIONS) found.push(path);
    }
  }
  return found.map((path) => `/extensions/${relative(top, path).split(sep).join('/')}`).toSorted();
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter(
    (entry) => !entry.name.startsWith('.') && (entry.isFile() || entry.isDirectory()),
  );
}
