import type { Caller } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';
import { readdir } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type Koa from 'koa';
import { packageUrl } from '../lib/package-url.ts';
import { sendEmpty } from '../dialects/errors.ts';
import { type StaticFile, findBelow } from '../http/static-file.ts';
import { START_PATHS } from './home-page.ts';
import { sendPageFile } from './send-file.ts';
import { type Templates, serveTemplateList } from './templates.ts';

/** A browser front end in a folder, as v1's `--front-end-root` mounts one. */
export interface Frontend {
  /** Serves its files where no route of the old API answers. */
  serve(this: void, ctx: Koa.Context, next: Koa.Next): Promise<void>;
  /** The list of `/extensions`. */
  readonly extensions: () => Promise<readonly string[]>;
  /** The lists of `/workflow_templates`. */
  readonly workflowTemplates: (this: void, caller: Caller) => Promise<Json>;
}

/** Names bundlers make from the content, with eight characters of a hash before the extension. */
const HASHED_NAME = /-(?=[\w-]{0,7}(\d|(?<!-)[A-Z_]))[\w-]{8}(\.\w+){1,2}$/;
const PICTURE = /\.(jpe?g|png|ppm|bmp|pgm|tiff?|webp)$/;
/** Scripts of our own that a front end loads, at their addresses below `/extensions`. */
const BUNDLED_EXTENSIONS = ['/extensions/holdover/starter-graph.js'];
const BUNDLED_EXTENSION = /^(?:\/api)?\/extensions\/holdover(?=\/)/;
const BUNDLED_FOLDER = fileURLToPath(packageUrl('page/extensions/'));

const MAX_EXTENSIONS = 10_000;

export function createFrontend(root: string, templates: Templates): Frontend {
  const serve = (ctx: Koa.Context, file: StaticFile): Promise<void> => {
    ctx.set(cacheHeadersOf(ctx.path));
    return sendPageFile(ctx, file);
  };

  return {
    async serve(this: void, ctx, next) {
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
      const file =
        (await findBelow(root, START_PATHS.has(ctx.path) ? '/index.html' : ctx.path)) ??
        (await findBundled(templates, ctx.path));
      if (file) return serve(ctx, file);
      if (await serveTemplateList(templates, ctx)) return;
      if (ctx.path === '/user.css') return sendEmptyStylesheet(ctx);
      return next();
    },
    extensions: async () => [...(await listExtensions(root)), ...BUNDLED_EXTENSIONS],
    workflowTemplates: templates.packs,
  };
}

/** Files given along with a front end; its own come first. */
function findBundled(templates: Templates, path: string): Promise<StaticFile | undefined> {
  if (BUNDLED_EXTENSION.test(path))
    return findBelow(BUNDLED_FOLDER, path.replace(BUNDLED_EXTENSION, ''));
  return templates.find(path);
}

/** Pages ask for it whether or not there is one. */
function sendEmptyStylesheet(ctx: Koa.Context): void {
  sendEmpty(ctx);
  ctx.set('Content-Type', 'text/css; charset=utf-8');
}

/**
 * The answers that a shared cache may keep, of all that the server gives: files of a front end, by
 * their paths. A file with a hash in its name never changes; v1 has the rule for pictures.
 */
const PUBLIC_FILES = [
  { folder: '/assets/', name: HASHED_NAME, caching: 'public, max-age=31536000, immutable' },
  { folder: '/', name: PICTURE, caching: 'public, max-age=86400' },
] as const;

/** The page itself must never be an old one. */
function cacheHeadersOf(path: string): { readonly [header: string]: string } {
  if (START_PATHS.has(path) || path === '/index.html') {
    return { 'Cache-Control': 'no-cache', Pragma: 'no-cache', Expires: '0' };
  }
  const { caching = 'no-cache' } =
    PUBLIC_FILES.find(({ folder, name }) => path.startsWith(folder) && name.test(basename(path))) ??
    {};
  return { 'Cache-Control': caching };
}

/** Every script below `extensions/`, by its address; links are not followed. */
async function listExtensions(root: string): Promise<readonly string[]> {
  const top = join(root, 'extensions');
  const options = { recursive: true, withFileTypes: true } as const;
  return (await readdir(top, options).catch(() => []))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
    .map(({ parentPath, name }) => relative(top, join(parentPath, name)).split(sep))
    .filter((steps) => steps.every((step) => !step.startsWith('.')))
    .slice(0, MAX_EXTENSIONS)
    .map((steps) => `/extensions/${steps.join('/')}`)
    .toSorted();
}
