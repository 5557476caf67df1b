import { hasControlCharacter } from '../wire/control-characters.ts';
import type { AssetRow } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import { yieldEvery } from '../lib/yield-every.ts';
import { isJsonObject, type Json, type JsonObject, stringifyJson } from '../wire/json.ts';
import { ANNOTATED_NAME, MAX_NAME_CHARS } from '../wire/v1.ts';
import type { Graph, GraphNode } from '../wire/v2.ts';
import { closure } from './plan.ts';
import type { ReadableFile } from './protocol.ts';

export type ResolveDeps = {
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** An asset of the job's user by id. */
  byId(id: string): Promise<AssetRow | undefined>;
  /** An asset of the job's user by file path. */
  byPath(filePath: string): Promise<AssetRow | undefined>;
  readonly pathOf: (hash: string) => string;
};

/** A workflow whose file inputs are plain names again, and what is behind the names. */
export type Resolved = {
  readonly workflow: Graph;
  readonly files: ReadonlyMap<string, ReadableFile>;
  readonly assetIds: ReadonlySet<string>;
  /** Ids of `core/ASSET` objects that are nobody's or another user's; empty text for a malformed one. */
  readonly missing: readonly string[];
  /** Plain names in file inputs the targets depend on, behind which there is nothing. */
  readonly unknownFiles: readonly {
    readonly nodeId: string;
    readonly input: string;
    readonly value: string;
  }[];
};

type Draft = {
  readonly files: Map<string, ReadableFile>;
  /** Which asset a name stands for: two assets may have the same path. */
  readonly names: Map<string, string>;
  readonly missing: string[];
  readonly unknownFiles: { nodeId: string; input: string; value: string }[];
};

/** Weight of one file look-up, in values. */
const FILE = 20;
/** Looked at between two looks at the event loop. */
const VALUES_A_TURN = 2_000;

/** Finds the assets a workflow names, as `core/ASSET` objects anywhere or as plain names in file inputs. */
export async function resolveFiles(
  { workflow, targets }: { readonly workflow: Graph; readonly targets: readonly string[] },
  deps: ResolveDeps,
): Promise<Resolved> {
  const needed = new Set(closure(workflow, targets));
  const draft: Draft = { files: new Map(), names: new Map(), missing: [], unknownFiles: [] };
  const resolved: [string, GraphNode][] = [];
  const turn = yieldEvery(VALUES_A_TURN);
  for (const [id, node] of Object.entries(workflow)) {
    const found = searchAssets(node.inputs);
    await turn(found.values);
    const inputs = found.isThere
      ? ((await resolveObjects(node.inputs, draft, deps)) as JsonObject)
      : node.inputs;
    if (needed.has(id)) await resolveNames({ id, node: { ...node, inputs } }, draft, deps, turn);
    resolved.push([id, { ...node, inputs }]);
  }
  const { files, names, missing, unknownFiles } = draft;
  return {
    workflow: Object.fromEntries(resolved),
    files,
    assetIds: new Set(names.values()),
    missing,
    unknownFiles,
  };
}

/** True when a value names assets, and how many values it has up to the first of them. */
function searchAssets(value: Json): { readonly isThere: boolean; readonly values: number } {
  if (typeof value !== 'object' || value === null) return { isThere: false, values: 1 };
  if (isJsonObject(value) && value['__type'] === 'core/ASSET') return { isThere: true, values: 1 };
  let values = 1;
  for (const item of Object.values(value) as readonly Json[]) {
    const found = searchAssets(item);
    values += found.values;
    if (found.isThere) return { isThere: true, values };
  }
  return { isThere: false, values };
}

async function resolveObjects(value: Json, draft: Draft, deps: ResolveDeps): Promise<Json> {
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const item of value as readonly Json[])
      items.push(await resolveObjects(item, draft, deps));
    return items;
  }
  if (!isJsonObject(value)) return value;
  if (value['__type'] === 'core/ASSET') return await resolveReference(value, draft, deps);
  const entries: [string, Json][] = [];
  for (const [key, item] of Object.entries(value))
    entries.push([key, await resolveObjects(item, draft, deps)]);
  return Object.fromEntries(entries);
}

/** The id alone decides; hash and file path are hints. */
async function resolveReference(
  reference: JsonObject,
  draft: Draft,
  deps: ResolveDeps,
): Promise<Json> {
  const info = reference['info'];
  const id = isJsonObject(info) && typeof info['id'] === 'string' ? info['id'] : '';
  const asset = id === '' || hasControlCharacter(id) ? undefined : await deps.byId(id);
  if (!asset) {
    draft.missing.push(id);
    return reference;
  }
  return addFile(asset, annotatedName(asset.filePath), draft, deps);
}

function addFile(asset: AssetRow, wanted: string, draft: Draft, deps: ResolveDeps): string {
  const taken = draft.names.get(wanted) ?? asset.id;
  const name = taken === asset.id ? wanted : `${asset.id}/${wanted}`;
  draft.names.set(name, asset.id);
  draft.files.set(name, { path: deps.pathOf(asset.hash), hash: asset.hash });
  return name;
}

async function resolveNames(
  { id, node }: { readonly id: string; readonly node: GraphNode },
  draft: Draft,
  deps: ResolveDeps,
  turn: ReturnType<typeof yieldEvery>,
): Promise<void> {
  for (const input of deps.nodes.get(node.class_type)?.fileInputs ?? []) {
    const given = node.inputs[input];
    if (given === undefined || Array.isArray(given)) continue;
    const value = typeof given === 'string' ? given : stringifyJson(given);
    if (draft.files.has(value)) continue;
    const isName = typeof given === 'string' && value.length <= MAX_NAME_CHARS;
    const asset = isName ? await findByName(value, deps) : undefined;
    // Each look at the ledger is one of SQLite's.
    await turn(FILE);
    if (asset) addFile(asset, value, draft, deps);
    else draft.unknownFiles.push({ nodeId: id, input, value });
  }
}

async function findByName(value: string, deps: ResolveDeps): Promise<AssetRow | undefined> {
  if (hasControlCharacter(value)) return undefined;
  const [, name = value, folder = 'input'] = ANNOTATED_NAME.exec(value) ?? [];
  const placed = await deps.byPath(`${folder}/${name}`);
  return placed ?? (folder === 'input' ? await deps.byPath(name) : undefined);
}

/** A file path as v1 writes it in an input: below `input/` by name, elsewhere with its folder in brackets. */
function annotatedName(filePath: string): string {
  const [, folder, name = filePath] = /^(input|output|temp)\/(.+)$/s.exec(filePath) ?? [];
  return folder === 'output' || folder === 'temp' ? `${name} [${folder}]` : name;
}
