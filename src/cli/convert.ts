import { access, constants, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { addServerOptions } from '../config/command-line.ts';
import type { Flags } from '../config/flags.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { objectInfoSource, upstreamOf } from '../config/upstream.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { objectInfo } from '../nodes/object-info.ts';
import { openDefinitions } from '../definitions/open-definitions.ts';
import { silentLogger } from '../observability/log.ts';
import { pruneTo } from '../translate/graph.ts';
import { chosenOutputs, fileMentions, outputNodes } from '../translate/file-mentions.ts';
import { insertAssetReferences } from '../files/resolve-files.ts';
import { createRemoteJobs } from '../upstreams/remote/remote-jobs.ts';
import { inAssetMode } from '../upstreams/remote-files/file-references.ts';
import { type Json, prettyJson } from '../protocol/json.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import { type ConvertiblePrompt, readPrompt } from './convert-read.ts';
import { uploadFiles } from './convert-files.ts';
import { runCommand } from './shared-options.ts';
import { Unconvertible } from './unconvertible.ts';

type Settings = Pick<Flags, 'upstream' | 'upstreamKey' | 'upstreamAssets' | 'objectInfo'> & {
  readonly inputDirectory?: string;
  readonly out?: string;
};

/** Where v2 is and how it is talked to. */
type UpstreamTarget = {
  readonly url: string;
  readonly key: string | undefined;
  readonly assetMode: Flags['upstreamAssets'];
};

/** Flags it shares with the server. */
const SERVER_OPTIONS = ['upstream', 'upstream-key', 'upstream-assets', 'object-info'];
/** A Holdover as it starts when nothing is said. */
const RUNNING_HOLDOVER = 'http://127.0.0.1:8188';
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
  await convert(command.args[0] ?? '', command.opts<Settings>());
  return 0;
}

async function convert(file: string, settings: Settings): Promise<void> {
  const target = targetOf(settings);
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new Unconvertible(`${file} cannot be read`, { cause });
  });
  const prompt = readPrompt(text);
  if (settings.out !== undefined) await requireWritable(settings.out);
  for (const note of prompt.leftOut) print(`left out: ${note}`);
  const workDir = await mkdtemp(join(tmpdir(), 'holdover-convert-'));
  try {
    const inputDir = settings.inputDirectory ?? dirname(file);
    const workflow = await submissionOf(prompt, { settings, target, inputDir, workDir });
    const submission = prettyJson({ workflow });
    if (settings.out === undefined) process.stdout.write(submission);
    else await writeFile(settings.out, submission);
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

/** Looked at before anything is uploaded for a submission that could not be written. */
async function requireWritable(out: string): Promise<void> {
  const known = await stat(out).catch(() => undefined);
  const folder = known ? undefined : await stat(dirname(out)).catch(() => undefined);
  const isUsable = known ? !known.isDirectory() : folder?.isDirectory();
  const mayWrite = await access(known ? out : dirname(out), constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!isUsable || !mayWrite) throw new Unconvertible(`${out} cannot be written`);
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
  const jobs = createRemoteJobs({
    baseUrl,
    credential: key === undefined ? { mode: 'pass-through' } : { mode: 'fixed', key },
    log: silentLogger(),
  });
  try {
    const uploadOptions = {
      jobs,
      caller: CALLER,
      inputDir,
      spoolDir: workDir,
      onUpload: printUpload,
    };
    const resolvedFiles = await uploadFiles(uploadOptions, fileMentions(graph, info));
    const workflow = insertAssetReferences(graph, resolvedFiles);
    return inAssetMode(workflow, assetMode === 'string' ? 'string' : 'object') as Json;
  } finally {
    await jobs.close();
  }
}

/** The upstream's definitions, which say which inputs are files; else those of the embedded library. */
async function loadDefinitions({ settings, target, workDir }: ConvertContext): Promise<ObjectInfo> {
  const embedded = objectInfo([...ALL_NODES.values()]);
  const source = openDefinitions({
    source: objectInfoSource(settings.objectInfo),
    upstream: { kind: 'remote', ...target },
    embedded,
    cacheDir: join(workDir, 'object-info'),
    log: silentLogger(),
  });
  try {
    const known = await source.current(CALLER);
    return known.ok ? known.definitions.info : embedded;
  } finally {
    await source.close();
  }
}

/** v2 takes a graph whole: of a partial one, what its targets need. */
function requestedPart(
  { graph, partialTargets }: ConvertiblePrompt,
  info: ObjectInfo,
): ConvertiblePrompt['graph'] {
  if (partialTargets === undefined) return graph;
  const targets = chosenOutputs(outputNodes(graph, info), partialTargets);
  if (targets.length === 0) throw new Unconvertible('none of its targets is an output');
  return pruneTo(graph, targets);
}

function targetOf(settings: Settings): UpstreamTarget {
  const upstream = settings.upstream === 'embedded' ? RUNNING_HOLDOVER : settings.upstream;
  const unused = { upstreamLabels: 'auto', upstreamStreams: 0, upstreamLimits: '{}' } as const;
  const flags = { ...settings, ...unused, upstream, routerPrefix: '/v1/models' };
  const target = upstreamOf(flags as unknown as Flags, process.env);
  if (target.kind === 'embedded') throw new InvalidSetting('there is no upstream');
  return target;
}

function printUpload(path: string, assetId: string): void {
  print(`uploaded ${path} as ${assetId}`);
}

function print(text: string): void {
  process.stderr.write(`${text}\n`);
}
