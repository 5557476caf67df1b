import { V1Error, invalidRequest, plainError } from '../dialects/errors.ts';
import { pathOf } from '../files/asset-catalog.ts';
import type { PromptRow } from '../ledger/ledger.ts';
import { planFrom } from '../migration/plan-session.ts';
import { CODE_FILES, LANGUAGES, type Language, codeOf } from '../migration/session-code.ts';
import { type Session, type SessionEvent, endedJob } from '../migration/session.ts';
import { withoutSecrets } from '../migration/without-secrets.ts';
import { submittedFiles, submittedWorkflow } from '../prompts/submitted-workflow.ts';
import { isJsonObject, parseJson } from '../protocol/json.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { Job } from '../protocol/v2.ts';
import type { CodeAnswer } from './api-types.ts';

type CodeRequest = {
  readonly caller: Caller;
  readonly row: PromptRow;
  readonly language: Language;
  /** The address of v2 in the code. */
  readonly baseUrl: string;
};

/** The most characters of a workflow that is written as code: the event loop waits for it. */
const MAX_WORKFLOW_CHARS = 2_000_000;

const TOO_LONG = 'The workflow has more than 2 million characters, too many to write as code.';

/** Returns the language that the query names. Throws a 400 when there is none. */
export function readLanguage(query: URLSearchParams): Language {
  const found = LANGUAGES.find((language) => language === query.get('language'));
  if (found) return found;
  throw invalidRequest('"language" is python or typescript.');
}

/**
 * Returns the v2 code that uploads the inputs of a prompt, runs it and downloads its outputs. Throws a 413 when its
 * workflow is too long.
 */
export async function writeCode(jobs: JobApi, request: CodeRequest): Promise<CodeAnswer> {
  const { caller, language, baseUrl, row } = request;
  if (row.graphJson.length > MAX_WORKFLOW_CHARS)
    throw new V1Error(413, plainError('workflow_too_long', TOO_LONG));
  const session = withoutSecrets(await sessionOf(jobs, request), [caller.credential ?? '']);
  const plan = planFrom(session);
  return {
    language,
    file: CODE_FILES[language],
    code: codeOf(language, plan, { baseUrl, workflows: 'inside' }),
    files: plan.files.map(({ path }) => path),
  };
}

/** Returns the session of a client that submitted this prompt and fetched all its outputs. */
async function sessionOf(jobs: JobApi, { caller, row }: CodeRequest): Promise<Session> {
  const jobId = row.jobId ?? row.key;
  const submission = [...(await uploadsOf(jobs, caller, row)), submitEvent(row, jobId)];
  const job = row.jobId === null ? undefined : await jobs.get(caller, row.jobId);
  const session = { calls: [], events: submission, jobs: new Map(), usedSocket: false };
  if (!job?.ok) return session;
  const events = [...submission, ...downloadsOf(job.value)];
  return { ...session, events, jobs: new Map([[jobId, endedJob(job.value)]]) };
}

async function uploadsOf(
  jobs: JobApi,
  caller: Caller,
  row: PromptRow,
): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = [];
  for (const { assetId, type, subfolder, filename, hash } of submittedFiles(row)) {
    if (type !== 'input') continue;
    const asset = await jobs.asset(caller, assetId);
    const contentType = asset.ok ? asset.value.content_type : 'application/octet-stream';
    const path = pathOf({ subfolder, filename });
    events.push({ kind: 'upload', assetId, path, contentType, hash: hash ?? undefined });
  }
  return events;
}

function submitEvent(row: PromptRow, jobId: string): SessionEvent {
  const extraData = parseJson(row.extraDataJson);
  return {
    kind: 'submit',
    jobId,
    workflow: submittedWorkflow(row),
    secrets: [],
    hasExtraPngInfo: isJsonObject(extraData) && isJsonObject(extraData['extra_pnginfo']),
  };
}

function downloadsOf({ outputs }: Job): readonly SessionEvent[] {
  return outputs
    .filter(({ x_temp: isTemporary }) => isTemporary !== true)
    .map(({ id: assetId, name: filename }) => ({
      kind: 'download',
      assetId,
      filename,
      rendering: undefined,
    }));
}
