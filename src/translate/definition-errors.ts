import { type Json, type JsonObject, LosslessNumber, isJsonObject } from '../protocol/json.ts';
import { pythonStr } from '../protocol/python-text.ts';
import type { NodeErrorEntry, NodeErrors, ObjectInfo } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { outputsWithoutErrors } from './prompt-refusal.ts';
import { classOf, dependenciesFirst, linkOf, nodeOf } from './graph.ts';
import { comboOptions } from '../protocol/v1.ts';
import {
  dynamicInputError,
  errorEntry,
  missingInputError,
  notInListError,
} from '../protocol/node-errors.ts';
import { declaredInputs } from './declared-inputs.ts';
import { FOLDER_INPUT, loadsFolder } from './folder-loaders.ts';
import { nodeErrorsOf } from './node-errors.ts';

const UPLOADS = [
  'image_upload',
  'audio_upload',
  'video_upload',
  'file_upload',
  'remote',
  'remote_combo',
];

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

function valueError(name: string, spec: Json, value: Json | undefined): NodeErrorEntry | undefined {
  if (!Array.isArray(spec) || value === undefined || linkOf(value) !== undefined) return undefined;
  const [type = null, settings = {}] = spec as readonly Json[];
  const config = isJsonObject(settings) ? settings : {};
  const about = { input_name: name, received_value: value };
  if (type === 'INT' || type === 'FLOAT') return limitError(spec, config, about);
  return listError([type, config], about);
}

type InputFacts = { readonly input_name: string; readonly received_value: Json };

/** Checks a value against a list of options. Only the engine knows which files exist. */
function listError(
  spec: readonly [Json, JsonObject],
  { input_name: name, received_value: value }: InputFacts,
): NodeErrorEntry | undefined {
  const options = comboOptions(spec as Json);
  if (options === undefined || UPLOADS.some((flag) => flag in spec[1])) return undefined;
  const values = spec[1].multiselect === true && Array.isArray(value) ? value : [value];
  if (values.every((one: Json) => options.includes(one) || isFile(one))) return undefined;
  return notInListError(name, { options, config: spec as Json }, value);
}

/** True for a name of a file. Loaders without an upload flag list files, too. */
function isFile(value: Json): boolean {
  return typeof value === 'string' && /\.\w{2,12}( \[\w+\])?$/.test(value);
}

function limitError(
  spec: readonly Json[],
  { min, max }: JsonObject,
  about: InputFacts,
): NodeErrorEntry | undefined {
  const value = numberOf(about.received_value);
  const [least, most] = [numberOf(min), numberOf(max)];
  if (value === undefined) return undefined;
  const more = { ...about, input_config: spec as Json };
  const shown = pythonStr(about.received_value);
  if (least !== undefined && value < least) {
    const message = `Value ${shown} smaller than min of ${pythonStr(min as Json)}`;
    return errorEntry('value_smaller_than_min', message, about.input_name, more);
  }
  if (most !== undefined && value > most) {
    const message = `Value ${shown} bigger than max of ${pythonStr(max as Json)}`;
    return errorEntry('value_bigger_than_max', message, about.input_name, more);
  }
  return undefined;
}

function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return value instanceof LosslessNumber ? Number(value.toString()) : undefined;
}
