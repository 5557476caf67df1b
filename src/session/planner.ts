import { createLocalNames, inputPathOf } from './local-names.ts';
import type { FileInput, LocalFile, OutputPlace, Plan, Step } from './plan.ts';
import type { Session, SessionEvent } from './session.ts';
import { type ReferenceInfo, workflowText } from './workflow-text.ts';

type EventOf<Kind> = SessionEvent & { readonly kind: Kind };

/** What v2's `extra_data` takes from the official clients. */
const PARTNER_KEY = 'api_key_comfy_org';

/** The v2 steps that do what a client did in v1. */
export function planOf(session: Session): Plan {
  const planner = createPlanner(session);
  for (const event of session.events) {
    if (event.kind === 'upload') planner.keep(event);
    else if (event.kind === 'submit') planner.submit(event);
    else if (event.kind === 'download') planner.download(event);
    else if (event.kind === 'cancel') planner.cancel(event);
    else planner.note(`A workflow was refused (${shown(event.code)}): ${shown(event.message)}`);
  }
  return planner.finish();
}

function createPlanner(session: Session) {
  const steps: Step[] = [];
  const files = new Map<string, LocalFile>();
  /** Job id to the variable that holds the job. */
  const jobs = new Map<string, string>();
  const awaited = new Set<string>();
  const saved = new Set<string>();
  const notes = new Set<string>();
  const inputNames = createLocalNames();
  const outputNames = createLocalNames();
  const outputsOf = (jobId: string) => session.jobs.get(jobId)?.outputs ?? [];

  function keep(upload: Omit<EventOf<'upload'>, 'kind'>): LocalFile {
    const known = files.get(upload.assetId);
    if (known) return known;
    const { assetId, path: filePath, contentType } = upload;
    const variable = `asset_${files.size + 1}`;
    const path = inputNames.take(inputPathOf(filePath));
    const file = { assetId, variable, path, filePath, contentType };
    files.set(assetId, file);
    steps.push({ kind: 'upload', file });
    return file;
  }

  /** A job nobody waited for to its end has no outputs to wait for. */
  function wait(jobId: string): void {
    const job = jobs.get(jobId);
    const ended = session.jobs.get(jobId)?.status;
    if (job === undefined || ended === undefined || awaited.has(job)) return;
    awaited.add(job);
    steps.push({ kind: 'wait', job, ended });
    if (!session.usedSocket) return;
    for (const { id, name, isStreamed } of outputsOf(jobId)) if (isStreamed) save(id, name);
  }

  function placeOf(assetId: string): (OutputPlace & { readonly jobId: string }) | undefined {
    for (const [jobId, job] of jobs) {
      const output = outputsOf(jobId).find(({ id }) => id === assetId);
      if (!output) continue;
      const ofNode = outputsOf(jobId).filter(({ nodeId }) => nodeId === output.nodeId);
      return { jobId, job, node: output.nodeId, index: ofNode.indexOf(output) };
    }
    return undefined;
  }

  function sourceOf(info: ReferenceInfo): FileInput['from'] {
    const place = placeOf(info.id);
    if (place) wait(place.jobId);
    if (place) return { kind: 'output', place };
    const path = info.filePath?.replace(/^input\//, '') ?? info.id;
    return { kind: 'file', file: keep({ assetId: info.id, path, contentType: ANY_TYPE }) };
  }

  function submit({ jobId, workflow: graph, ...more }: EventOf<'submit'>): void {
    const number = jobs.size + 1;
    const workflow = { path: `workflow-${number}.json`, ...workflowText(graph, sourceOf) };
    const job = `job_${number}`;
    jobs.set(jobId, job);
    const needsPartnerKey = more.secrets.includes(PARTNER_KEY);
    steps.push({ kind: 'submit', job, workflow, needsPartnerKey });
    for (const name of more.secrets) if (name !== PARTNER_KEY) notes.add(leftOut(name));
    if (more.hasExtraPngInfo) notes.add(NO_PNG_INFO);
    if (more.isPartial) notes.add(PARTIAL);
    if (more.namesFolder) notes.add(NAMES_FOLDER);
  }

  function save(assetId: string, filename: string): void {
    const place = placeOf(assetId);
    const key = `${assetId} ${filename}`;
    if (!place || saved.has(key)) return;
    wait(place.jobId);
    // Waiting may have saved it: it came over the socket, too.
    if (saved.has(key)) return;
    saved.add(key);
    steps.push({ kind: 'download', place, path: outputNames.take(filename) });
  }

  function download({ assetId, filename, rendering }: EventOf<'download'>): void {
    if (rendering !== undefined) notes.add(`${shown(filename)}, ${shown(rendering)}: ${AS_IT_IS}`);
    if (!placeOf(assetId)) notes.add(`${shown(filename)}: ${ITS_OWN}`);
    save(assetId, filename);
  }

  function cancel({ jobId }: EventOf<'cancel'>): void {
    const job = jobs.get(jobId);
    if (job !== undefined) steps.push({ kind: 'cancel', job });
  }

  function finish(): Plan {
    for (const jobId of jobs.keys()) wait(jobId);
    const { usedSocket } = session;
    return { steps, files: [...files.values()], usedSocket, notes: [...notes] };
  }

  return { keep, submit, download, cancel, note: (text: string) => notes.add(text), finish };
}

const ANY_TYPE = 'application/octet-stream';
const NO_PNG_INFO =
  'extra_data.extra_pnginfo: v2 has no field for it; saved files carry the workflow they were made by, and nothing else.';
const PARTIAL =
  'partial_execution_targets: v2 gets the nodes that these need; saved files carry those alone, v1 wrote all of them.';
const NAMES_FOLDER =
  'an input "… [input]": v2 gets the file itself; saved files carry its name without the folder, v1 wrote it as it was sent.';
const AS_IT_IS = 'v1 drew the picture anew; v2 gives the file as it is.';
const ITS_OWN = 'no job of this session made this file; it is not downloaded.';

function leftOut(secret: string): string {
  return `extra_data.${shown(secret)}: the SDKs have no way to send it; it is left out.`;
}

/** Names come from clients: in a comment they stay on their line. */
function shown(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .slice(0, 200)
    .replaceAll(/[^\x20-\x7e\p{L}\p{N}]/gu, '?');
}
