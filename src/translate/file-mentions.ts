import {
  type Json,
  type JsonObject,
  isJsonObject,
  entriesInOrder,
  objectInOrder,
  setMember,
} from '../protocol/json.ts';
import {
  ANNOTATED_NAME,
  type FileRef,
  MAX_NAME_CHARS,
  type ObjectInfo,
  toLookupPath,
} from '../protocol/v1.ts';
import type { AssetRef, Graph, GraphNode } from '../protocol/v2.ts';
import type { Steps } from '../protocol/steps.ts';
import { declaredInputs, someSpec } from './declared-inputs.ts';
import { type NamePath, changedAt, fileNamesIn, takesFileNames } from './file-names.ts';
import { nodeOf, withNodes } from './graph.ts';

/** An input of a submitted graph that names a v1 file. */
export type FileMention = FileRef & {
  readonly nodeId: string;
  readonly input: string;
  /** Where the name is in the value of the input, when it is not the whole value. */
  readonly path?: NamePath;
  /** The name as the client wrote it. */
  readonly value: string;
};

/** The asset behind a file name. */
export type FoundAsset = {
  readonly id: string;
  readonly hash?: string | null;
  readonly filePath?: string;
};

/** Found assets by `fileKey`. */
export type FoundAssets = ReadonlyMap<string, FoundAsset>;

/** The file inputs of classes that no node list describes. */
const KNOWN_INPUTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['LoadImage', ['image']],
  ['LoadImageMask', ['image']],
  ['LoadImageOutput', ['image']],
  ['LoadAudio', ['audio']],
  ['LoadVideo', ['file']],
  ['Load3D', ['model_file']],
  ['Load3DAnimation', ['model_file']],
  ['VHS_LoadVideo', ['video']],
  ['VHS_LoadVideoFFmpeg', ['video']],
  ['VHS_LoadAudioUpload', ['audio']],
]);

const KNOWN_SPEC: Json = ['COMBO', { file_upload: true }];

/**
 * Reads v1's name of a file in an input: `sub/x.png`, with its folder in brackets unless that is
 * `input`.
 * @internal
 */
export function parseFileName(value: string): FileRef {
  const annotated = value.length > MAX_NAME_CHARS ? null : ANNOTATED_NAME.exec(value);
  const [, written = value, folder = 'input'] = annotated ?? [];
  const path = toLookupPath(written).replaceAll(/(?<=\/)(?:\.?\/)+/g, '');
  const slash = path.lastIndexOf('/');
  return {
    filename: path.slice(slash + 1),
    subfolder: slash > 0 ? path.slice(0, slash) : '',
    type: folder as FileRef['type'],
  };
}

/** Returns a key for a file in a map. */
export function fileKey({ type, subfolder, filename }: FileRef): string {
  return `${type}/${subfolder}/${filename}`;
}

/**
 * Returns the files that a graph names. Only a file chooser names a file: another text that equals
 * a file's name stays a text.
 */
export function fileMentions(graph: Graph, objectInfo: ObjectInfo): readonly FileMention[] {
  return Object.entries(graph).flatMap(([nodeId, node]) =>
    fileInputs(node, objectInfo).flatMap(({ name: input, spec }) =>
      fileNamesIn(spec, node.inputs[input])
        .filter(({ name }) => name !== '' && name.length <= MAX_NAME_CHARS)
        .map(({ path, name }) => ({
          nodeId,
          input,
          ...(path.length > 0 ? { path } : {}),
          value: name,
          ...parseFileName(name),
        })),
    ),
  );
}

/** Returns the v2 workflow: v1's graph with `core/ASSET` in place of the resolved file names. */
export function withAssets(
  graph: Graph,
  mentions: readonly FileMention[],
  found: FoundAssets,
): Graph {
  return mapMentioned(graph, mentions, (mention, value) => {
    const asset = found.get(fileKey(mention));
    return asset ? assetRef(asset) : value;
  });
}

/**
 * Returns the graph that v1 stores and shows: literals as validation coerced them, but file names
 * as the client wrote them. Nodes and members that validation did not see stay unchanged.
 */
export function* applyCoercions(
  original: Graph,
  coerced: Graph,
  rewritten: readonly FileMention[],
): Steps<Graph> {
  if (rewritten.length === 0 && hasNoCoercions(coerced, original)) return original;
  const entries: [string, GraphNode][] = [];
  for (const [id, node] of entriesInOrder(original)) {
    const known = nodeOf(coerced, id)?.inputs ?? {};
    const inputs: { [name: string]: Json } = {};
    for (const [name, value] of Object.entries(node.inputs ?? {})) {
      setMember(inputs, name, (Object.hasOwn(known, name) ? known[name] : value) ?? null);
      yield 1;
    }
    entries.push([id, { ...node, inputs }]);
    yield 1;
  }
  return mapMentioned(objectInOrder(entries), rewritten, ({ value }) => value);
}

/** True when no literal was coerced and every node has inputs, as v1 shows it. */
function hasNoCoercions(coerced: Graph, original: Graph): boolean {
  if (coerced !== original && Object.keys(coerced).length > 0) return false;
  return Object.values(original).every(({ inputs }) => isJsonObject(inputs as Json | undefined));
}

/** Returns the nodes for which v1 runs a graph. A class without a description is left to v2. */
export function outputNodes(graph: Graph, objectInfo: ObjectInfo): readonly string[] {
  return Object.keys(graph).filter(
    (id) => classInfo(nodeOf(graph, id), objectInfo)?.output_node === true,
  );
}

/**
 * Reads `partial_execution_targets`. Without targets there is no restriction; a list without an
 * output leaves nothing to run.
 */
export function chosenOutputs(
  outputs: readonly string[],
  targets: readonly string[] | undefined,
): readonly string[] {
  if (targets === undefined) return outputs;
  const chosen = new Set(targets);
  return outputs.filter((id) => chosen.has(id));
}

type FileInput = { readonly name: string; readonly spec: Json };

function fileInputs(node: GraphNode, objectInfo: ObjectInfo): readonly FileInput[] {
  if (!isJsonObject(node as Json) || !isJsonObject(node.inputs as Json)) return [];
  const info = classInfo(node, objectInfo);
  if (!info)
    return (KNOWN_INPUTS.get(node.class_type) ?? []).map((name) => ({ name, spec: KNOWN_SPEC }));
  if (!mayNameFiles(info)) return [];
  return declaredInputs(info.input, node.inputs as JsonObject);
}

/**
 * The classes that can name a file. They are cached, since a class never changes and every node
 * asks for it.
 */
const namingClasses = new WeakMap<ObjectInfo[string], boolean>();

function mayNameFiles(info: ObjectInfo[string]): boolean {
  const known = namingClasses.get(info) ?? someSpec(info.input, takesFileNames);
  namingClasses.set(info, known);
  return known;
}

function classInfo(
  node: GraphNode | undefined,
  objectInfo: ObjectInfo,
): ObjectInfo[string] | undefined {
  const name = node?.class_type;
  return typeof name === 'string' && Object.hasOwn(objectInfo, name) ? objectInfo[name] : undefined;
}

function mapMentioned(
  graph: Graph,
  mentions: readonly FileMention[],
  change: (mention: FileMention, value: Json) => Json,
): Graph {
  const changed = new Map<string, GraphNode>();
  for (const mention of mentions) {
    const node = changed.get(mention.nodeId) ?? nodeOf(graph, mention.nodeId);
    const value = node?.inputs[mention.input];
    if (!node || value === undefined) continue;
    const input = changedAt(value, mention.path ?? [], (name) => change(mention, name));
    const inputs = { ...node.inputs, [mention.input]: input };
    changed.set(mention.nodeId, { ...node, inputs });
  }
  return withNodes(graph, changed);
}

/** Returns the reference to a file in a v2 workflow. */
export function assetRef({ id, hash, filePath }: FoundAsset): AssetRef {
  return {
    __type: 'core/ASSET',
    info: {
      id,
      ...(hash ? { hash } : {}),
      ...(filePath === undefined ? {} : { file_path: filePath }),
    },
  };
}
