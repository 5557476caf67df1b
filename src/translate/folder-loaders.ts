import { type Json, isJsonObject, entriesInOrder, objectInOrder } from '../protocol/json.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { AssetRef, Graph, GraphNode } from '../protocol/v2.ts';

// A service places each upload in a folder of its own, and may have one file for equal bytes, so no
// folder of its engine has the files of a user's folder. A node that loads a folder is sent as
// nodes that load its files, and one that makes a list of them.

/** How the files of a folder are loaded one by one. */
type FolderClass = {
  readonly loader: string;
  readonly loaderInput: string;
  /** Matches the files that the class loads. */
  readonly files: RegExp;
};

/** The input that names the folder. */
export const FOLDER_INPUT = 'folder';

const FOLDER_CLASSES: ReadonlyMap<string, FolderClass> = new Map([
  [
    'LoadImageDataSetFromFolder',
    { loader: 'LoadImage', loaderInput: 'image', files: /\.(png|jpe?g|webp)$/i },
  ],
  [
    'LoadVideoDataSetFromFolder',
    { loader: 'LoadVideo', loaderInput: 'file', files: /\.(mp4|webm|mkv|mov|avi)$/i },
  ],
]);

const LIST_CLASS = 'CreateList';
/** The most inputs of such a node. */
const MAX_LIST_INPUTS = 10;

/** A node that loads the files of a folder. */
type FolderMention = {
  readonly nodeId: string;
  readonly folder: string;
  readonly files: RegExp;
};

/** True for a class that loads a folder, if the engine has the classes that load its files. */
export function loadsFolder(className: string, has: (className: string) => boolean): boolean {
  const known = FOLDER_CLASSES.get(className);
  return known !== undefined && [className, known.loader, LIST_CLASS].every(has);
}

/** Returns the folders that a graph names. */
export function folderMentions(graph: Graph, info: ObjectInfo): readonly FolderMention[] {
  return Object.entries(graph).flatMap(([nodeId, node]) => {
    const { class_type: name, inputs } = node as Partial<GraphNode>;
    const folder = isJsonObject(inputs as Json) ? inputs?.[FOLDER_INPUT] : undefined;
    const known = typeof name === 'string' ? FOLDER_CLASSES.get(name) : undefined;
    if (!known || typeof folder !== 'string') return [];
    if (!loadsFolder(String(name), (each) => Object.hasOwn(info, each))) return [];
    return [{ nodeId, folder, files: known.files }];
  });
}

/** Returns the graph with nodes for the files in place of those that load folders. */
export function withFileLoaders(
  graph: Graph,
  refsByNode: ReadonlyMap<string, readonly AssetRef[]>,
): Graph {
  if (refsByNode.size === 0) return graph;
  return objectInOrder(
    entriesInOrder(graph).flatMap(([id, node]) => {
      const known = FOLDER_CLASSES.get(node.class_type);
      const refs = refsByNode.get(id);
      return known && refs ? fileLoaders(id, refs, known) : [[id, node] as const];
    }),
  );
}

/** The nodes have ids as the original gives to nodes into which another one expands. */
function fileLoaders(
  id: string,
  refs: readonly AssetRef[],
  { loader, loaderInput }: FolderClass,
): readonly (readonly [string, GraphNode])[] {
  const nodes: (readonly [string, GraphNode])[] = [];
  const add = (class_type: string, inputs: GraphNode['inputs']): string => {
    const ownId = `${id}.0.0.${nodes.length + 1}`;
    nodes.push([ownId, { class_type, inputs }]);
    return ownId;
  };
  let ids: readonly string[] = refs.map((ref) => add(loader, { [loaderInput]: ref }));
  while (ids.length > MAX_LIST_INPUTS) {
    const count = Math.ceil(ids.length / MAX_LIST_INPUTS);
    ids = Array.from({ length: count }, (_, i) => i * MAX_LIST_INPUTS).map((start) =>
      add(LIST_CLASS, listInputs(ids.slice(start, start + MAX_LIST_INPUTS))),
    );
  }
  return [...nodes, [id, { class_type: LIST_CLASS, inputs: listInputs(ids) }]];
}

function listInputs(ids: readonly string[]): GraphNode['inputs'] {
  return Object.fromEntries(ids.map((from, index) => [`inputs.input${index}`, [from, 0]]));
}
