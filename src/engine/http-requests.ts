import { z } from 'zod';
import { type Json, isJsonObject } from '../wire/json.ts';
import { type JobListQuery, type Result, type SubmitRequest, ok, refuse } from '../wire/jobs.ts';
import { type Graph, JOB_STATUSES, type JobStatus } from '../wire/v2.ts';

/** Limits of the contract for labels. */
const METADATA_PAIRS = 16;
const METADATA_KEY = /^[A-Za-z0-9_.-]{1,40}$/;
const KEY_CHARS = 255;
const MAX_PAGE = 100;

/** Reserved words of the contract: accepting them silently would promise what does not happen. */
const RESERVED = ['webhook_url', 'inputs'] as const;

const SECRET = z.string().min(1).max(4096);

/** The submission body; `extra_data` is closed in the contract, `x_` members are Holdover's own. */
const SUBMIT = z.strictObject({
  workflow: z.custom<Graph>((value) => isJsonObject(value as Json), 'workflow must be an object'),
  extra_data: z
    .strictObject({
      api_key_comfy_org: SECRET.optional(),
      auth_token_comfy_org: SECRET.optional(),
      api_key_service_org: SECRET.optional(),
    })
    .nullish(),
  metadata: z.unknown().optional(),
  priority: z.number().int().min(-1_000_000).max(1_000_000).optional(),
  x_order: z.number().finite().optional(),
  x_prompt: z.custom<Json>(() => true).optional(),
  x_extra_pnginfo: z.custom<Json>(() => true).optional(),
});

/** `POST /jobs` as the port understands it. */
export function readSubmit(body: Json, idempotencyKey: string): Result<SubmitRequest> {
  if (!isJsonObject(body)) return refuse(400, 'invalid_request', 'The body must be a JSON object.');
  const reserved = RESERVED.find((name) => name in body);
  if (reserved) return refuse(422, 'invalid_workflow', `"${reserved}" is reserved and cannot be used yet.`);
  if (idempotencyKey.length > KEY_CHARS) {
    return refuse(400, 'invalid_request', `Idempotency-Key must have 1 to ${KEY_CHARS} characters.`);
  }
  const parsed = SUBMIT.safeParse(body);
  if (!parsed.success) return refuse(400, 'invalid_request', explain(parsed.error));
  const metadata = readMetadata(parsed.data.metadata);
  if (!metadata.ok) return metadata;
  return ok(toRequest(parsed.data, { idempotencyKey, metadata: metadata.value }));
}

type Submit = z.infer<typeof SUBMIT>;

function toRequest(
  data: Submit,
  { idempotencyKey, metadata }: { idempotencyKey: string; metadata: { [name: string]: string } | undefined },
): SubmitRequest {
  const { extra_data: secrets, x_order: order, x_prompt: prompt, x_extra_pnginfo: info } = data;
  const key = secrets?.api_key_comfy_org ?? secrets?.api_key_service_org;
  const token = secrets?.auth_token_comfy_org;
  return {
    workflow: data.workflow,
    extraData: {
      ...(key === undefined ? {} : { api_key_comfy_org: key }),
      ...(token === undefined ? {} : { auth_token_comfy_org: token }),
    },
    ...(idempotencyKey === '' ? {} : { idempotencyKey }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(order === undefined ? {} : { order }),
    ...(prompt === undefined && info === undefined
      ? {}
      : { provenance: { prompt: prompt ?? (data.workflow as Json), extraPngInfo: info ?? null } }),
  };
}

function readMetadata(value: unknown): Result<{ [name: string]: string } | undefined> {
  if (value === undefined || value === null) return ok(undefined);
  const entries = isJsonObject(value as Json) ? Object.entries(value) : undefined;
  const fits =
    entries !== undefined &&
    entries.length <= METADATA_PAIRS &&
    entries.every(([key, text]) => METADATA_KEY.test(key) && typeof text === 'string');
  if (!fits) {
    return refuse(422, 'metadata_invalid', `metadata must map at most ${METADATA_PAIRS} short names to texts.`);
  }
  return ok(Object.fromEntries(entries) as { [name: string]: string });
}

/** `GET /jobs?limit=&cursor=&status=a,b&metadata[key]=value` */
export function readListQuery(query: URLSearchParams): Result<JobListQuery> {
  const limit = query.get('limit');
  if (limit !== null && !/^\d{1,4}$/.test(limit)) return refuse(400, 'invalid_request', '"limit" must be an integer.');
  const names = query.get('status')?.split(',').filter(Boolean);
  const unknown = names?.find((name) => !JOB_STATUSES.some((status) => status === name));
  if (unknown !== undefined) return refuse(400, 'invalid_request', `Unknown status: ${unknown}`);
  const labels = [...query].flatMap(([name, value]) => {
    const key = /^metadata\[(.*)\]$/.exec(name)?.[1];
    return key === undefined ? [] : [[key, value] as const];
  });
  if (labels.length > 3 || labels.some(([key]) => !METADATA_KEY.test(key))) {
    return refuse(400, 'invalid_metadata_filter', 'At most three metadata filters, each metadata[name]=value.');
  }
  const cursor = query.get('cursor');
  return ok({
    ...(limit === null ? {} : { limit: Math.min(MAX_PAGE, Math.max(1, Number(limit))) }),
    ...(cursor === null ? {} : { cursor }),
    ...(names === undefined ? {} : { status: names as JobStatus[] }),
    ...(labels.length === 0 ? {} : { metadata: Object.fromEntries(labels) }),
  });
}

function explain(error: z.ZodError): string {
  const [issue] = error.issues;
  const path = issue?.path.join('.') ?? '';
  return path === '' ? (issue?.message ?? 'The body is not a submission.') : `${path}: ${issue?.message}`;
}
