import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { type Flags, addServerOptions } from '../config/flags.ts';
import { LIMITS } from '../config/limits.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { addressWithoutLogin } from '../config/parse-values.ts';
import { type Upstream, objectInfoSource, upstreamOf } from '../config/upstream.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { objectInfo } from '../nodes/object-info.ts';
import { openDefinitions } from '../definitions/open-definitions.ts';
import { silentLogger } from '../observability/log.ts';
import { pruneTo } from '../translate/graph.ts';
import { chosenOutputs, fileMentions, outputNodes } from '../translate/file-mentions.ts';
import { insertAssetReferences } from '../files/resolve-files.ts';
import { createRemoteJobs } from '../remote/remote-jobs.ts';
import { inAssetMode } from '../remote/files/file-references.ts';
import {
  type Json,
  prettyJson,
  type JsonObject,
  isJsonObject,
  jsonFault,
  parseJson,
} from '../protocol/json.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import { uploadFiles } from './convert-files.ts';
import { DEFAULT_URL, runCommand } from './shared-options.ts';
import { refuseShape } from '../translate/prompt-refusal.ts';
import { partnerCredentialsOf } from '../translate/partner-credentials.ts';
import { V1Error } from '../dialects/errors.ts';
import { type Submission, readSubmission } from '../prompts/submission.ts';

type Settings = Pick<Flags, (typeof SERVER_OPTIONS)[number]> & {
  readonly inputDirectory?: string;
  readonly out?: string;
};

/** The v2 service to upload to. */
type UpstreamTarget = Upstream & { readonly kind: 'remote' };

/** Flags that the command shares with the server. */
const SERVER_OPTIONS = ['upstream', 'upstreamKey', 'upstreamAssets', 'objectInfo'] as const;
const CALLER = { user: 'convert' };

/** `holdover convert FILE`: prints the v2 submission of a v1 prompt. Resolves with the exit code. */
export function convertCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover convert')
    .description(
      'Turns a body of POST /prompt or a workflow in API format into the body of POST /api/v2/jobs. ' +
        'The files it names are uploaded; without --upstream to a Holdover that runs on port 8188.',
    )
    .argument('<FILE>', 'the prompt or workflow')
    .option('--input-directory <DIR>', "v1's input folder; else that of FILE")
    .option('--out <FILE>', 'where to write the submission; else standard output');
  return runCommand(addServerOptions(command, SERVER_OPTIONS), argv, run, String);
}

async function run(command: Command): Promise<number> {
  const [file = ''] = command.args;
  const settings = command.opts<Settings>();
  const target = targetOf(settings);
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new Error(`${file} cannot be read`, { cause });
  });
  const prompt = readPrompt(text);
  for (const note of prompt.leftOut) print(`left out: ${note}`);
  const workDir = await mkdtemp(join(tmpdir(), 'holdover-convert-'));
  try {
    const inputDir = settings.inputDirectory ?? dirname(file);
    const workflow = await submissionOf(prompt, { settings, target, inputDir, workDir });
    const submission = prettyJson({ workflow });
    if (settings.out === undefined) process.stdout.write(submission);
    else await writeFile(settings.out, submission);
    return 0;
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

type ConvertContext = {
  readonly settings: Settings;
  readonly target: UpstreamTarget;
  readonly inputDir: string;
  readonly workDir: string;
};

async function submissionOf(prompt: ConvertiblePrompt, context: ConvertContext): Promise<Json> {
  const { target, inputDir, workDir } = context;
  const info = await loadDefinitions(context);
  const graph = requestedPart(prompt, info);
  const { key, url: baseUrl, assetMode } = target;
  const jobs = createRemoteJobs({ service: { baseUrl, key }, log: silentLogger() });
  try {
    const onUpload = (path: string, id: string): void => print(`uploaded ${path} as ${id}`);
    const options = { jobs, caller: CALLER, inputDir, spoolDir: workDir, onUpload };
    const resolvedFiles = await uploadFiles(options, fileMentions(graph, info));
    const workflow = insertAssetReferences(graph, resolvedFiles);
    return inAssetMode(workflow, assetMode === 'string' ? 'string' : 'object') as Json;
  } finally {
    await jobs.close();
  }
}

/**
 * Returns the node definitions, which say which inputs are files. Without definitions of the upstream, returns the
 * embedded ones.
 */
async function loadDefinitions({ settings, target, workDir }: ConvertContext): Promise<ObjectInfo> {
  const embedded = objectInfo([...ALL_NODES.values()]);
  const named = objectInfoSource(settings.objectInfo);
  const source = openDefinitions({
    source: named,
    upstream: target,
    embedded,
    cacheDir: join(workDir, 'object-info'),
    log: silentLogger(),
  });
  try {
    const known = await source.current(CALLER);
    if (known.ok) return known.definitions.info;
    if (named.kind === 'auto') return embedded;
    throw new Error(
      `--object-info ${addressWithoutLogin(settings.objectInfo)} has no definitions to read`,
    );
  } finally {
    await source.close();
  }
}

/** Returns the nodes that the targets of a partial prompt need, because v2 runs whole graphs. */
function requestedPart(
  { graph, partialTargets }: ConvertiblePrompt,
  info: ObjectInfo,
): ConvertiblePrompt['graph'] {
  if (partialTargets === undefined) return graph;
  const targets = chosenOutputs(outputNodes(graph, info), partialTargets);
  if (targets.length === 0) throw new Error('none of its targets is an output');
  return pruneTo(graph, targets);
}

function targetOf(settings: Settings): UpstreamTarget {
  const upstream = settings.upstream === 'embedded' ? DEFAULT_URL : settings.upstream;
  const target = upstreamOf({ ...settings, upstream }, LIMITS, process.env);
  if (target.kind === 'embedded') throw new InvalidSetting('there is no upstream');
  return target;
}

function print(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A v1 prompt, and notes on its fields that v2 does not have. */
type ConvertiblePrompt = Pick<Submission, 'graph' | 'partialTargets'> & {
  readonly leftOut: readonly string[];
};

const HOW_TO_EXPORT =
  'it is a workflow as the editor saves it, and v2 runs the API format: in the editor, ' +
  'Workflow > Export (API), or "Save (API Format)" of older ones';

/** Fields that v2 does not have, and what v2 has in their place. */
const NO_V2_FIELD: Readonly<Record<string, string>> = {
  client_id: 'v2 has no sockets: follow the job by its id',
  prompt_id: 'v2 gives the job its id',
  number: 'v2 has no order of its own',
  front: 'v2 has no order of its own',
};

/** Reads a body of `POST /prompt`, or a bare graph in API format. Throws when the text is neither. */
export function readPrompt(text: string): ConvertiblePrompt {
  const body = readObject(text);
  if (isEditorFormat(body)) throw new Error(HOW_TO_EXPORT);
  const isBody = isJsonObject(body.prompt) && !('class_type' in body.prompt);
  const { graph, partialTargets, extraData } = parseSubmission(isBody ? body : { prompt: body });
  if (isEditorFormat(graph)) throw new Error(HOW_TO_EXPORT);
  const shapeError = refuseShape(graph as JsonObject);
  if (shapeError) {
    const { message, details } = shapeError.body.error;
    throw new Error(`it is no workflow in API format: ${message} ${details}`.trim());
  }
  if (Object.keys(graph).length === 0) throw new Error('it has no nodes');
  return { graph, partialTargets, leftOut: isBody ? leftOut(body, extraData) : [] };
}

function readObject(text: string): JsonObject {
  let value: Json;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw new Error(`it is not JSON: ${jsonFault(cause)}`, { cause });
  }
  if (isJsonObject(value)) return value;
  throw new Error('it is neither a v1 prompt nor a workflow: both are JSON objects');
}

function parseSubmission(body: JsonObject): Submission {
  try {
    return readSubmission(body, 0);
  } catch (cause) {
    if (!(cause instanceof V1Error)) throw cause;
    throw new Error(`v1 would refuse it: ${cause.fault.message}`, { cause });
  }
}

function isEditorFormat(graph: object): boolean {
  return 'nodes' in graph && Array.isArray(graph.nodes);
}

function leftOut(body: JsonObject, extraData: JsonObject): string[] {
  const fields = Object.entries(NO_V2_FIELD).flatMap(([name, why]) =>
    name in body ? [`${name}: ${why}`] : [],
  );
  const keys = Object.keys(partnerCredentialsOf(extraData)).map(
    (name) => `extra_data.${name}: keys are not written; send it along as extra_data.${name}`,
  );
  const info =
    'extra_pnginfo' in extraData ? ['extra_data.extra_pnginfo: v2 has no field for it'] : [];
  return [...fields, ...keys, ...info];
}
