import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type Koa from 'koa';
import { packageUrl } from '../lib/package-url.ts';
import type { DefinitionSource } from '../wire/definitions.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Json } from '../wire/json.ts';
import { sendJson } from './errors.ts';
import { type StaticFile, findBelow } from './static-file.ts';

/** Workflows that need no model, for people who open a front end for the first time. */
export type Templates = {
  /** `/templates/index.json` for this caller: those whose classes are there to run them. */
  index(caller: Caller): Promise<Json>;
  /** `/workflow_templates` for this caller: the names of each pack's example workflows. */
  readonly packs: (caller: Caller) => Promise<Json>;
  /** A workflow or its thumbnail by its address below `/templates` or `/workflow_templates`. */
  find(path: string): Promise<StaticFile | undefined>;
};

type Deps = {
  readonly definitions: Pick<DefinitionSource, 'known'>;
  /** Whether inputs hold the `example.png` that some of the workflows load. */
  readonly hasExample: boolean;
};

type Category = { readonly templates: readonly { readonly name: string }[] };

/** What a workflow needs of the server that runs it. */
type Needs = { readonly classes: readonly string[]; readonly example: boolean };

const FOLDER = packageUrl('fixtures/templates/');
/** The class of our own comes from a pack, to a front end. */
const PACK = 'holdover';
/** Nodes that only front ends know. */
const NOTES = new Set(['Note', 'MarkdownNote']);
const PREFIX = /^\/(?:api\/)?(?:templates|workflow_templates)(?=\/)/;

/** Reads the workflows once: what each of them needs decides who is shown it. */
export function openTemplates({ definitions, hasExample }: Deps): Templates {
  const index = JSON.parse(readFileSync(new URL('index.json', FOLDER), 'utf8')) as Category[];
  const needs = new Map(workflowNames().map((name) => [name, needsOf(name)]));

  async function runnableBy(caller: Caller): Promise<(name: string) => boolean> {
    const known = await definitions.known(caller);
    // A stand-in tells what this server could run, not what the service can.
    if (!known.ok || known.isStandIn) return () => false;
    const { members } = known.definitions;
    return (name) => {
      const { classes = [], example = false } = needs.get(name) ?? {};
      return classes.every((type) => members.has(type)) && (hasExample || !example);
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
    async packs(caller) {
      const isRunnable = await runnableBy(caller);
      const ofPack = [...needs.keys()].filter((name) => name.startsWith(`${PACK}/`));
      const names = ofPack.filter(isRunnable).map((name) => name.slice(PACK.length + 1));
      return names.length === 0 ? {} : { [PACK]: names };
    },
    async find(path) {
      const isList = !PREFIX.test(path) || TEMPLATE_LIST.test(path);
      return isList ? undefined : findBelow(fileURLToPath(FOLDER), path.replace(PREFIX, ''));
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

function needsOf(name: string): Needs {
  const text = readFileSync(new URL(`${name}.json`, FOLDER), 'utf8');
  const { nodes } = JSON.parse(text) as { nodes: readonly { type: string }[] };
  const classes = nodes.map(({ type }) => type).filter((type) => !NOTES.has(type));
  return { classes: [...new Set(classes)], example: text.includes('"example.png"') };
}

/** A list of templates in the language asked for: ours is in English, which front ends fall back on. */
const TEMPLATE_LIST = /^\/templates\/index(\.[\w-]+)?\.json$/;
const TEMPLATE_LOGOS = '/templates/index_logo.json';

/** Answers lists of templates; whether it did. */
export async function serveTemplateList(templates: Templates, ctx: Koa.Context): Promise<boolean> {
  if (ctx.path === TEMPLATE_LOGOS) sendJson(ctx, {});
  else if (TEMPLATE_LIST.test(ctx.path)) {
    sendJson(ctx, await templates.index((ctx.state as { caller: Caller }).caller));
  } else return false;
  return true;
}
