import { type Json, LosslessNumber, isJsonObject } from '../protocol/json.ts';
import type { NodeErrorEntry, NodeErrors, ObjectInfo } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { outputsWithoutErrors } from './prompt-refusal.ts';
import { classOf, dependenciesFirst, linkOf, nodeOf, unwrap } from './graph.ts';
import { dynamicInputError, missingInputError } from '../protocol/node-errors.ts';
import { declaredInputs } from './declared-inputs.ts';
import { UPLOAD_FLAGS } from './file-names.ts';
import { FOLDER_INPUT, loadsFolder } from './folder-loaders.ts';
import { nodeErrorsOf } from './node-errors.ts';
import { limitError, listError } from './value-errors.ts';

/** The options of inputs whose values only the engine knows. */
const OUTSIDE_LISTS = [...UPLOAD_FLAGS, 'remote', 'remote_combo'];

/**
 * Derives from node definitions the errors that v1 reports for the outputs that it left out of an
 * accepted prompt: one server runs the good outputs and does not mention the others. Empty when no
 * output is good by the definitions, since they are then not those of the engine that accepted the
 * prompt.
 */
export function partialNodeErrors(
  graph: Graph,
  info: ObjectInfo,
  outputs: readonly string[],
): NodeErrors {
  const errorsByNode = dependenciesFirst(graph, outputs)
    .map((id) => [id, errorsOf(graph, id, info)] as const)
    .filter(([, errors]) => errors.length > 0);
  if (errorsByNode.length === 0) return {};
  const found = nodeErrorsOf(new Map(errorsByNode), graph, outputs);
  return outputsWithoutErrors(found, outputs).length > 0 ? found : {};
}

function errorsOf(graph: Graph, id: string, info: ObjectInfo): readonly NodeErrorEntry[] {
  const className = classOf(graph, id);
  const inputs: Json | undefined = nodeOf(graph, id)?.inputs;
  if (!Object.hasOwn(info, className) || !isJsonObject(inputs)) return [];
  const declared = declaredInputs(info[className]?.input ?? {}, inputs);
  const refused = declared.find(({ fault }) => fault !== undefined);
  if (refused) return [dynamicInputError(refused)];
  const missing = declared.filter(({ name, required }) => required && !Object.hasOwn(inputs, name));
  // The folder may be one of the user's.
  const isFolder = loadsFolder(className, (each) => Object.hasOwn(info, each));
  const wrong = declared
    .filter(({ name }) => Object.hasOwn(inputs, name) && !(isFolder && name === FOLDER_INPUT))
    .flatMap(({ name, spec }) => valueError(name, spec, inputs[name]) ?? []);
  return [...missing.map(missingInputError), ...wrong];
}

function valueError(name: string, spec: Json, given: Json | undefined): NodeErrorEntry | undefined {
  const value = unwrap(given);
  if (!Array.isArray(spec) || value === undefined || linkOf(given) !== undefined) return undefined;
  const [type = null, settings = {}] = spec as readonly Json[];
  const declared = [type, isJsonObject(settings) ? settings : {}] as const;
  if (type === 'INT' || type === 'FLOAT')
    return isNumber(value) ? limitError(name, declared, value) : undefined;
  if (OUTSIDE_LISTS.some((flag) => flag in declared[1])) return undefined;
  return listError(name, declared, value, isFile);
}

function isNumber(value: Json): boolean {
  return typeof value === 'number' || value instanceof LosslessNumber;
}

/** True for a name of a file. Loaders without an upload flag list files, too. */
function isFile(value: Json): boolean {
  return typeof value === 'string' && /\.\w{2,12}( \[\w+\])?$/.test(value);
}
