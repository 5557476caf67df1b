import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type Koa from 'koa';
import { packageUrl } from '../lib/package-url.ts';
import type { DefinitionSource } from '../definitions/definitions.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';
import { sendJson } from '../dialects/errors.ts';
import { type StaticFile, findBelow } from '../http/static-file.ts';

/** Workflows that need no model, for people who open a front end for the first time. */
export interface Templates {
  /** `/templates/index.json` for this caller: those whose classes are there to run them. */
  index(caller: Caller): Promise<Json>;
  /** `/workflow_templates` for this caller: the names of each pack's example workflows. */
  packs(this: void, caller: Caller): Promise<Json>;
  /** A workflow or its thumbnail by its address below `/templates` or `/workflow_templates`. */
  find(path: string): Promise<StaticFile | undefined>;
}

type TemplateOptions = {
  readonly definitions: DefinitionSource;
  /** True when inputs have the `example.png` that some of the workflows load. */
  readonly hasExample: boolean;
};

type Category = { readonly templates: readonly { readonly name: string }[] };

/** The node classes and files a workflow needs. */
type Requirements = { readonly classes: readonly string[]; readonly needsExample: boolean };

const FOLDER = packageUrl('fixtures/templates/');
/** The class of our own comes from a pack, to a front end. */
const PACK_NAME = 'holdover';
/** Nodes that only front ends know. */
const NOTE_CLASSES = new Set(['Note', 'MarkdownNote']);
const URL_PREFIX = /^\/(?:api\/)?(?:templates|workflow_templates)(?=\/)/;

/** Reads the workflows once; each is listed only for callers whose upstream can run it. */
export function openTemplates({ definitions, hasExample }: TemplateOptions): Templates {
  const index = JSON.parse(readFileSync(new URL('index.json', FOLDER), 'utf8')) as Category[];
  const requirements = new Map(workflowNames().map((name) => [name, requirementsOf(name)]));

  async function runnableBy(caller: Caller): Promise<(name: string) => boolean> {
    const known = await definitions.current(caller);
    // The embedded fallback says what this server could run, not what the service can.
    if (!known.ok || known.isEmbeddedFallback) return () => false;
    const { members } = known.definitions;
    return (name) => {
      const { classes = [], needsExample = false } = requirements.get(name) ?? {};
      return classes.every((type) => members.has(type)) && (hasExample || !needsExample);
    };
  }

  return {
    async index(caller) {
      const isRunnable = await runnableBy(caller);
      return index.map((category) => ({
        ...category,
        templates: category.templates.filter(({ name }) => isRunnable(name)),
      })) as Json;
    },
    async packs(this: void, caller) {
      const isRunnable = await runnableBy(caller);
      const packTemplates = [...requirements.keys()].filter((name) =>
        name.startsWith(`${PACK_NAME}/`),
      );
      const names = packTemplates
        .filter(isRunnable)
        .map((name) => name.slice(PACK_NAME.length + 1));
      return names.length === 0 ? {} : { [PACK_NAME]: names };
    },
    async find(path) {
      const isList = !URL_PREFIX.test(path) || TEMPLATE_LIST.test(path);
      return isList ? undefined : findBelow(fileURLToPath(FOLDER), path.replace(URL_PREFIX, ''));
    },
  };
}

/** `name` of those the index lists, `holdover/name` of the pack's. */
function workflowNames(): readonly string[] {
  return readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.json') && path !== 'index.json')
    .map((path) => path.replace(/\.json$/, '').replaceAll('\\', '/'))
    .toSorted();
}

function requirementsOf(name: string): Requirements {
  const text = readFileSync(new URL(`${name}.json`, FOLDER), 'utf8');
  const { nodes } = JSON.parse(text) as { nodes: readonly { type: string }[] };
  const classes = nodes.map(({ type }) => type).filter((type) => !NOTE_CLASSES.has(type));
  return { classes: [...new Set(classes)], needsExample: text.includes('"example.png"') };
}

/** A list of templates in the language asked for: ours is in English, which front ends fall back on. */
const TEMPLATE_LIST = /^\/templates\/index(\.[\w-]+)?\.json$/;
const TEMPLATE_LOGOS_PATH = '/templates/index_logo.json';

/** Answers lists of templates. True when it did. */
export async function serveTemplateList(templates: Templates, ctx: Koa.Context): Promise<boolean> {
  if (ctx.path === TEMPLATE_LOGOS_PATH) sendJson(ctx, {});
  else if (TEMPLATE_LIST.test(ctx.path)) {
    sendJson(ctx, await templates.index(ctx.state.caller as Caller));
  } else return false;
  return true;
}
