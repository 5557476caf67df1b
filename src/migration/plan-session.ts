import { posix } from 'node:path';
import type { FileInput, LocalFile, OutputRef, Plan, Step, WorkflowFile } from './session-plan.ts';
import type { Session, SessionEvent } from './session.ts';
import { assetRefText } from '../protocol/asset-refs.ts';
import { type Json, LosslessNumber, prettyJson } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';

type EventOf<Kind> = SessionEvent & { readonly kind: Kind };

/** The member of `extra_data` that the official v2 clients can send. */
const PARTNER_KEY = 'api_key_comfy_org';

/** Returns the v2 steps that do the same as a recorded v1 session. */
export function planFrom(session: Session): Plan {
  const planner = createPlanner(session);
  for (const event of session.events) planner[event.kind](event as never);
  return planner.finish();
}

function createPlanner(session: Session) {
  const steps: Step[] = [];
  const files = new Map<string, LocalFile>();
  /** For each job id, the variable of the job in the code. */
  const jobs = new Map<string, string>();
  const awaitedJobs = new Set<string>();
  const savedOutputs = new Set<string>();
  /** For the asset id of an upload, the id of the output with the same bytes. */
  const reuploads = new Map<string, string>();
  const uploadedHashes = new Set<string>();
  const notes = new Set<string>();
  const inputNameOf = createLocalNames();
  const outputNameOf = createLocalNames();
  const outputsOf = (jobId: string) => session.jobs.get(jobId)?.outputs ?? [];

  /** Plans an upload, unless an earlier output has the same bytes: then later jobs use that output. */
  function upload(event: EventOf<'upload'>): void {
    const { assetId, hash } = event;
    const output = hash === undefined || uploadedHashes.has(hash) ? undefined : outputWith(hash);
    if (hash !== undefined) uploadedHashes.add(hash);
    if (output === undefined) return void addFile(event);
    reuploads.set(assetId, output);
  }

  function outputWith(hash: string): string | undefined {
    const outputs = [...jobs.keys()].flatMap((jobId) => outputsOf(jobId));
    return outputs.find((output) => output.hash === hash)?.id;
  }

  function addFile(upload: Omit<EventOf<'upload'>, 'kind'>): LocalFile {
    const known = files.get(upload.assetId);
    if (known) return known;
    const { assetId, path: filePath, contentType } = upload;
    const variable = `asset_${files.size + 1}`;
    const path = inputNameOf(inputPathOf(filePath));
    const file = { assetId, variable, path, filePath, contentType };
    files.set(assetId, file);
    steps.push({ kind: 'upload', file });
    return file;
  }

  /** Plans to wait for a job, once, if its end was recorded. */
  function wait(jobId: string): void {
    const job = jobs.get(jobId);
    const ended = session.jobs.get(jobId)?.status;
    if (job === undefined || ended === undefined || awaitedJobs.has(job)) return;
    awaitedJobs.add(job);
    steps.push({ kind: 'wait', job, ended });
    if (!session.usedSocket) return;
    for (const { id, name, isStreamed } of outputsOf(jobId)) if (isStreamed) save(id, name);
  }

  function outputRefOf(assetId: string): (OutputRef & { readonly jobId: string }) | undefined {
    for (const [jobId, job] of jobs) {
      const output = outputsOf(jobId).find(({ id }) => id === assetId);
      if (!output) continue;
      const ofNode = outputsOf(jobId).filter(({ nodeId }) => nodeId === output.nodeId);
      return { jobId, job, node: output.nodeId, index: ofNode.indexOf(output) };
    }
    return undefined;
  }

  function sourceOf(assetId: string, filePath = assetId): FileInput['from'] {
    const place = outputRefOf(reuploads.get(assetId) ?? assetId);
    if (place) wait(place.jobId);
    if (place) return { kind: 'output', place };
    const path = filePath.replace(/^input\//, '');
    return { kind: 'file', file: addFile({ assetId, path, contentType: UNKNOWN_TYPE }) };
  }

  function submit({ jobId, workflow: graph, ...more }: EventOf<'submit'>): void {
    const number = jobs.size + 1;
    const workflow = { path: `workflow-${number}.json`, ...workflowText(graph, sourceOf) };
    const job = `job_${number}`;
    jobs.set(jobId, job);
    const needsPartnerKey = more.secrets.includes(PARTNER_KEY);
    steps.push({ kind: 'submit', job, workflow, needsPartnerKey });
    for (const name of more.secrets) if (name !== PARTNER_KEY) notes.add(secretLeftOut(name));
    if (more.hasExtraPngInfo) notes.add(PNG_INFO_NOTE);
  }

  function save(assetId: string, filename: string): void {
    const place = outputRefOf(assetId);
    const key = `${assetId} ${filename}`;
    if (!place || savedOutputs.has(key)) return;
    wait(place.jobId);
    // `wait` also saves the outputs that v1 sent over the socket.
    if (savedOutputs.has(key)) return;
    savedOutputs.add(key);
    steps.push({ kind: 'download', place, path: outputNameOf(filename) });
  }

  function download({ assetId, filename, rendering }: EventOf<'download'>): void {
    if (rendering !== undefined)
      notes.add(`${commentSafe(filename)}, ${commentSafe(rendering)}: ${NOT_RENDERED}`);
    if (!outputRefOf(assetId)) notes.add(`${commentSafe(filename)}: ${NO_JOB_MADE_IT}`);
    save(assetId, filename);
  }

  function refused({ code, message }: EventOf<'refused'>): void {
    notes.add(`A workflow was refused (${commentSafe(code)}): ${commentSafe(message)}`);
  }

  /** Plans a cancel when the job runs, if it had run in v1; after its end, if it had ended. */
  function cancel({ jobId }: EventOf<'cancel'>): void {
    const job = jobs.get(jobId);
    const known = session.jobs.get(jobId);
    if (job === undefined) return;
    if (known !== undefined && known.status !== 'canceled') wait(jobId);
    else if (known?.hasRun === true) steps.push({ kind: 'until-running', job });
    steps.push({ kind: 'cancel', job });
  }

  function finish(): Plan {
    for (const jobId of jobs.keys()) wait(jobId);
    const { usedSocket } = session;
    return { steps, files: [...files.values()], usedSocket, notes: [...notes] };
  }

  return { upload, submit, refused, download, cancel, finish };
}

const UNKNOWN_TYPE = 'application/octet-stream';
const PNG_INFO_NOTE =
  'extra_data.extra_pnginfo: v2 has no field for it; saved files carry the workflow they were made by, and nothing else.';
const NOT_RENDERED = 'v1 drew the picture anew; v2 gives the file as it is.';
const NO_JOB_MADE_IT = 'no job of this session made this file; it is not downloaded.';

function secretLeftOut(secret: string): string {
  return `extra_data.${commentSafe(secret)}: the SDKs have no way to send it; it is left out.`;
}

/** Makes a text of a client safe for a comment: it stays on one line. */
function commentSafe(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .slice(0, 200)
    .replaceAll(/[^\x20-\x7e\p{L}\p{N}]/gu, '?');
}

/**
 * Returns a function that gives each file beside the code a unique name: `cat.png`, `cat-2.png` …
 * @internal
 */
export function createLocalNames(): (requested: string) => string {
  const taken = new Set<string>();
  return (requested) => {
    const safe = safePath(requested);
    const { dir, name, ext } = posix.parse(safe);
    let path = safe;
    for (let number = 2; taken.has(path.toLowerCase()); number++) {
      path = posix.join(dir, `${name}-${number}${ext}`);
    }
    taken.add(path.toLowerCase());
    return path;
  };
}

/**
 * Returns the path of an uploaded file, relative to the code.
 * @internal
 */
export function inputPathOf(filePath: string): string {
  return posix.join('inputs', safePath(filePath));
}

/** Makes a path of a client safe: it stays inside its folder, and has no special characters of a shell. */
function safePath(path: string): string {
  const parts = path.split(/[\\/]/).map((part) => part.replaceAll(/[^\p{L}\p{N}_.-]/gu, '_'));
  const safe = parts.map((part) => part.replace(/^[.-]+/, '_')).filter((part) => part !== '');
  return safe.join('/') || 'file';
}

/** Returns the text of a workflow, with a placeholder in place of each file reference. */
function workflowText(
  workflow: Graph,
  sourceOf: (assetId: string, filePath: string | undefined) => FileInput['from'],
): Omit<WorkflowFile, 'path'> {
  const inputs: FileInput[] = [];
  const rewrittenNodes = Object.entries(workflow).map(([node, entry]) => {
    const rewrittenInputs = Object.entries(entry.inputs ?? {}).map(
      ([input, value]): [string, Json] => {
        const assetId = assetRefText(value, 'id');
        if (assetId === undefined) return [input, value];
        const from = sourceOf(assetId, assetRefText(value, 'file_path'));
        inputs.push({ node, input, from });
        return [input, placeholderOf(from)];
      },
    );
    return [node, { ...entry, inputs: Object.fromEntries(rewrittenInputs) }];
  });
  const graph = Object.fromEntries(rewrittenNodes) as Json;
  return { text: prettyJson(graph), inputs, hasExactNumbers: hasExactNumbers(graph) };
}

/** Returns a text such as `@inputs/cat.png`. The code sets the input to the file itself. */
function placeholderOf(from: FileInput['from']): string {
  if (from.kind === 'file') return `@${from.file.path}`;
  const { job, node, index } = from.place;
  return `@${job}/${node}/${index}`;
}

function hasExactNumbers(value: Json): boolean {
  if (value instanceof LosslessNumber) return true;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((item) => hasExactNumbers(item as Json));
}
