import { posix } from 'node:path';
import type { FileInput, LocalFile, OutputRef, Plan, Step, WorkflowFile } from './session-plan.ts';
import type { Session, SessionEvent, SessionJob } from './session.ts';
import { assetRefText } from '../protocol/asset-refs.ts';
import {
  type Json,
  LosslessNumber,
  entriesInOrder,
  objectInOrder,
  prettyJson,
} from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';

type EventOf<Kind> = SessionEvent & { readonly kind: Kind };

/** The member of `extra_data` that the official v2 clients can send. */
const PARTNER_KEY = 'api_key_comfy_org';

/** Returns the v2 steps that do the same as a recorded v1 session. */
export function planFrom(session: Session): Plan {
  const planner = new Planner(session);
  for (const event of session.events) planner[event.kind](event as never);
  return planner.finish();
}

/** Its public methods but `finish` are named as the kinds of events. */
class Planner {
  readonly #session: Session;
  readonly #steps: Step[] = [];
  readonly #files = new Map<string, LocalFile>();
  /** For each job id, the variable of the job in the code. */
  readonly #jobs = new Map<string, string>();
  readonly #awaitedJobs = new Set<string>();
  readonly #savedOutputs = new Set<string>();
  /** For the asset id of an upload, the id of the output with the same bytes. */
  readonly #reuploads = new Map<string, string>();
  readonly #uploadedHashes = new Set<string>();
  readonly #notes = new Set<string>();
  readonly #inputNameOf = createLocalNames();
  readonly #outputNameOf = createLocalNames();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Plans an upload, unless an earlier output has the same bytes: then later jobs use that output. */
  upload(event: EventOf<'upload'>): void {
    const { assetId, hash } = event;
    const output =
      hash === undefined || this.#uploadedHashes.has(hash) ? undefined : this.#outputWith(hash);
    if (hash !== undefined) this.#uploadedHashes.add(hash);
    if (output === undefined) return void this.#addFile(event);
    this.#reuploads.set(assetId, output);
  }

  submit({ jobId, workflow: graph, ...more }: EventOf<'submit'>): void {
    const number = this.#jobs.size + 1;
    const workflow = this.#workflowFile(`workflow-${number}.json`, graph);
    const job = `job_${number}`;
    this.#jobs.set(jobId, job);
    const needsPartnerKey = more.secrets.includes(PARTNER_KEY);
    this.#steps.push({ kind: 'submit', job, workflow, needsPartnerKey });
    for (const name of more.secrets) if (name !== PARTNER_KEY) this.#notes.add(secretLeftOut(name));
    if (more.hasExtraPngInfo) this.#notes.add(PNG_INFO_NOTE);
  }

  refused({ code, message, workflow: graph }: EventOf<'refused'>): void {
    this.#notes.add(`A workflow was refused (${commentSafe(code)}): ${commentSafe(message)}`);
    if (graph === undefined) return;
    const number = this.#steps.filter(({ kind }) => kind === 'refused').length + 1;
    const workflow = this.#workflowFile(`refused-${number}.json`, graph);
    this.#steps.push({ kind: 'refused', name: `refused_${number}`, workflow });
  }

  download({ assetId, filename, rendering }: EventOf<'download'>): void {
    if (rendering !== undefined)
      this.#notes.add(`${commentSafe(filename)}, ${commentSafe(rendering)}: ${NOT_RENDERED}`);
    if (!this.#outputRefOf(assetId)) this.#notes.add(`${commentSafe(filename)}: ${NO_JOB_MADE_IT}`);
    this.#save(assetId, filename);
  }

  /** Plans a cancel when the job has run as long as in v1; after its end, if it had ended. */
  cancel({ jobId, sinceSubmitMs }: EventOf<'cancel'>): void {
    const job = this.#jobs.get(jobId);
    const known = this.#session.jobs.get(jobId);
    if (job === undefined) return;
    if (known !== undefined && known.status !== 'canceled') this.#wait(jobId);
    else this.#pause(job, sinceSubmitMs, known?.queuedMs ?? null);
    this.#steps.push({ kind: 'cancel', job });
  }

  finish(): Plan {
    for (const jobId of this.#jobs.keys()) this.#wait(jobId);
    const { usedSocket } = this.#session;
    return {
      steps: this.#steps,
      files: [...this.#files.values()],
      usedSocket,
      notes: [...this.#notes],
    };
  }

  #pause(job: string, sinceSubmitMs: number, queuedMs: number | null): void {
    if (queuedMs !== null) this.#steps.push({ kind: 'until-running', job });
    const seconds = Math.round((sinceSubmitMs - (queuedMs ?? 0)) / 100) / 10;
    if (seconds > 0) this.#steps.push({ kind: 'pause', seconds });
  }

  #workflowFile(path: string, graph: Graph): WorkflowFile {
    return { path, ...workflowText(graph, (...file) => this.#sourceOf(...file)) };
  }

  #outputWith(hash: string): string | undefined {
    const outputs = [...this.#jobs.keys()].flatMap((jobId) => this.#outputsOf(jobId));
    return outputs.find((output) => output.hash === hash)?.id;
  }

  #addFile(upload: Omit<EventOf<'upload'>, 'kind'>): LocalFile {
    const known = this.#files.get(upload.assetId);
    if (known) return known;
    const { assetId, path: filePath, contentType } = upload;
    const variable = `asset_${this.#files.size + 1}`;
    const path = this.#inputNameOf(inputPathOf(filePath));
    const file = { assetId, variable, path, filePath, contentType };
    this.#files.set(assetId, file);
    this.#steps.push({ kind: 'upload', file });
    return file;
  }

  #sourceOf(assetId: string, filePath = assetId): FileInput['from'] {
    const place = this.#outputRefOf(this.#reuploads.get(assetId) ?? assetId);
    if (place) this.#wait(place.jobId);
    if (place) return { kind: 'output', place };
    const path = filePath.replace(/^input\//, '');
    return { kind: 'file', file: this.#addFile({ assetId, path, contentType: UNKNOWN_TYPE }) };
  }

  #save(assetId: string, filename: string): void {
    const place = this.#outputRefOf(assetId);
    const key = `${assetId} ${filename}`;
    if (!place || this.#savedOutputs.has(key)) return;
    this.#wait(place.jobId);
    // `wait` also saves the outputs that v1 sent over the socket.
    if (this.#savedOutputs.has(key)) return;
    this.#savedOutputs.add(key);
    this.#steps.push({ kind: 'download', place, path: this.#outputNameOf(filename) });
  }

  /** Plans to wait for a job, once, if its end was recorded. */
  #wait(jobId: string): void {
    const job = this.#jobs.get(jobId);
    const ended = this.#session.jobs.get(jobId)?.status;
    if (job === undefined || ended === undefined || this.#awaitedJobs.has(job)) return;
    this.#awaitedJobs.add(job);
    this.#steps.push({ kind: 'wait', job, ended });
    if (!this.#session.usedSocket) return;
    for (const { id, name, isStreamed } of this.#outputsOf(jobId))
      if (isStreamed) this.#save(id, name);
  }

  #outputRefOf(assetId: string): (OutputRef & { readonly jobId: string }) | undefined {
    for (const [jobId, job] of this.#jobs) {
      const output = this.#outputsOf(jobId).find(({ id }) => id === assetId);
      if (!output) continue;
      const ofNode = this.#outputsOf(jobId).filter(({ nodeId }) => nodeId === output.nodeId);
      return { jobId, job, node: output.nodeId, index: ofNode.indexOf(output) };
    }
    return undefined;
  }

  #outputsOf(jobId: string): SessionJob['outputs'] {
    return this.#session.jobs.get(jobId)?.outputs ?? [];
  }
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
  const rewrittenNodes = entriesInOrder(workflow).map(([node, entry]) => {
    const rewrittenInputs = Object.entries(entry.inputs ?? {}).map(
      ([input, value]): [string, Json] => {
        const assetId = assetRefText(value, 'id');
        if (assetId === undefined) return [input, value];
        const from = sourceOf(assetId, assetRefText(value, 'file_path'));
        inputs.push({ node, input, from });
        return [input, placeholderOf(from)];
      },
    );
    return [node, { ...entry, inputs: Object.fromEntries(rewrittenInputs) }] as const;
  });
  const graph: Json = objectInOrder(rewrittenNodes);
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
