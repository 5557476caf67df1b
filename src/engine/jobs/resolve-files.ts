import { posix } from 'node:path';
import { hasControlCharacter } from '../../protocol/control-characters.ts';
import type { AssetRow } from '../../ledger/ledger.ts';
import type { NodeDef } from '../../nodes/node.ts';
import { type Pause, yieldEvery } from '../../lib/event-loop.ts';
import {
  assetRefText,
  findAssetRefs,
  isAssetRef,
  mapAssetRefs,
} from '../../protocol/asset-refs.ts';
import {
  type Json,
  type JsonObject,
  stringifyJson,
  entriesInOrder,
  objectInOrder,
} from '../../protocol/json.ts';
import { ANNOTATED_NAME, MAX_NAME_CHARS } from '../../protocol/v1.ts';
import type { Graph, GraphNode } from '../../protocol/v2.ts';
import { addTo, dependenciesFirst, unwrap } from '../../translate/graph.ts';
import type { UnknownFile, ValidationContext } from '../validation/validate-node.ts';
import { inputsOf } from '../execution/run-plan.ts';
import type { ReadableFiles } from './worker-protocol.ts';

export type FileLookup = {
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** Finds an asset of the job's user by id. */
  byId(id: string): Promise<AssetRow | undefined>;
  /** Finds an asset of the job's user by file path. */
  byPath(filePath: string): Promise<AssetRow | undefined>;
};

/** A workflow whose file inputs are plain names, and the files behind the names. */
export type ResolvedWorkflow = {
  /** The same object if the workflow names no assets. */
  readonly workflow: Graph;
  readonly files: ReadableFiles;
  readonly assetIds: ReadonlySet<string>;
  /**
   * The ids in `core/ASSET` objects that do not exist or belong to another user; an empty text for
   * a malformed one.
   */
  readonly missing: readonly string[];
  /** Plain names without a file, in the file inputs of nodes that the targets depend on. */
  readonly unknownFiles: ValidationContext['unknownFiles'];
};

type Resolution = {
  /** The asset of each name: two assets may have the same path. */
  readonly assets: Map<string, AssetRow>;
  readonly missing: string[];
  readonly unknownFiles: Map<string, UnknownFile[]>;
};

/** The weight of one file look-up, in values. */
const FILE_WEIGHT = 20;
/** The number of values that are searched between two turns of the event loop. */
const VALUES_PER_TURN = 2_000;

/**
 * Finds the assets that a workflow names, in `core/ASSET` objects anywhere or as plain names in
 * file inputs.
 */
export async function resolveFiles(
  { workflow, targets }: { readonly workflow: Graph; readonly targets: readonly string[] },
  deps: FileLookup,
): Promise<ResolvedWorkflow> {
  const needed = new Set(dependenciesFirst(workflow, targets));
  const resolution: Resolution = { assets: new Map(), missing: [], unknownFiles: new Map() };
  const nodes = entriesInOrder(workflow).map(([id, node]) => {
    const fileInputs = needed.has(id) ? deps.nodes.get(node.class_type)?.fileInputs : undefined;
    return { id, node, fileInputs: fileInputs ?? [] };
  });
  const resolved: [string, GraphNode][] = [];
  let isChanged = false;
  const pause = yieldEvery(VALUES_PER_TURN);
  // Plain names are resolved first: such a name stays unchanged, and a reference may want the same
  // name.
  for (const each of nodes) await resolveNames(each, resolution, deps, pause);
  for (const { id, node, fileInputs } of nodes) {
    const refs: JsonObject[] = [];
    const step = pause(findAssetRefs(node.inputs, refs));
    if (step) await step;
    const plain = refs.length > 0 ? await withNames(node, refs, resolution, deps) : node;
    isChanged ||= plain !== node;
    noteOtherValues({ id, node: plain, fileInputs }, resolution);
    resolved.push([id, plain]);
  }
  const { assets, missing, unknownFiles } = resolution;
  return {
    workflow: isChanged ? objectInOrder(resolved) : workflow,
    files: new Map(Array.from(assets, ([name, { hash }]) => [name, hash])),
    assetIds: new Set(Array.from(assets.values(), ({ id }) => id)),
    missing,
    unknownFiles,
  };
}

async function withNames(
  node: GraphNode,
  refs: readonly JsonObject[],
  resolution: Resolution,
  deps: FileLookup,
): Promise<GraphNode> {
  const names = new Map<JsonObject, Json>();
  for (const ref of refs) names.set(ref, await resolveReference(ref, resolution, deps));
  const inputs = mapAssetRefs(node.inputs, (ref) => names.get(ref) ?? ref);
  return { ...node, inputs: inputs as JsonObject };
}

/** Resolves a reference. The id alone decides; hash and file path are hints. */
async function resolveReference(
  reference: JsonObject,
  resolution: Resolution,
  deps: FileLookup,
): Promise<Json> {
  const id = assetRefText(reference, 'id') ?? '';
  const asset = id === '' || hasControlCharacter(id) ? undefined : await deps.byId(id);
  if (!asset) {
    resolution.missing.push(id);
    return reference;
  }
  return addFile(asset, annotatedName(asset.filePath), resolution);
}

function addFile(asset: AssetRow, wanted: string, { assets }: Resolution): string {
  const { id: ownerId } = assets.get(wanted) ?? asset;
  const name = ownerId === asset.id ? wanted : `${asset.id}/${wanted}`;
  assets.set(name, asset);
  return name;
}

type FileNode = {
  readonly id: string;
  readonly node: GraphNode;
  readonly fileInputs: readonly string[];
};

async function resolveNames(
  { id, node, fileInputs }: FileNode,
  resolution: Resolution,
  deps: FileLookup,
  pause: Pause,
): Promise<void> {
  for (const input of fileInputs) {
    const value = unwrap(inputsOf(node)[input]);
    if (typeof value !== 'string' || resolution.assets.has(value)) continue;
    const asset = value.length <= MAX_NAME_CHARS ? await findByName(value, deps) : undefined;
    // Each look-up in the ledger is a query of SQLite.
    await pause(FILE_WEIGHT);
    if (asset) addFile(asset, value, resolution);
    else addTo(resolution.unknownFiles, id, { input, value });
  }
}

/** Reports numbers and objects, which name no file. */
function noteOtherValues({ id, node, fileInputs }: FileNode, { unknownFiles }: Resolution): void {
  for (const input of fileInputs) {
    const given = unwrap(inputsOf(node)[input]);
    if (given === undefined || typeof given === 'string' || Array.isArray(given)) continue;
    // A reference that is still here names a missing asset.
    if (isAssetRef(given)) continue;
    addTo(unknownFiles, id, { input, value: stringifyJson(given) });
  }
}

async function findByName(value: string, deps: FileLookup): Promise<AssetRow | undefined> {
  if (hasControlCharacter(value)) return undefined;
  const [, name = value, folder = 'input'] = ANNOTATED_NAME.exec(value) ?? [];
  const path = posix.normalize(name);
  const asset = await deps.byPath(`${folder}/${path}`);
  return asset ?? (folder === 'input' ? await deps.byPath(path) : undefined);
}

/**
 * Returns a file path as v1 writes it in an input: by name below `input/`, elsewhere with its
 * folder in brackets.
 */
function annotatedName(filePath: string): string {
  const [, folder, name = filePath] = /^(input|output|temp)\/(.+)$/s.exec(filePath) ?? [];
  return folder === 'output' || folder === 'temp' ? `${name} [${folder}]` : name;
}
