import type {
  AssetUpload,
  JobApi,
  JobEvent,
  LostSubmission,
  Result,
  SubmitRequest,
} from '../protocol/job-api.ts';
import type { Job } from '../protocol/v2.ts';

/** The arguments or the answer of a v2 call, as fields of a log line. */
export type CallFields = {
  readonly jobId?: string;
  readonly assetId?: string;
  /** The label by which a submission finds its prompt. */
  readonly key?: string | undefined;
  readonly secrets?: readonly (string | undefined)[];
  readonly [name: string]: unknown;
};

type Describe = (args: readonly unknown[]) => CallFields;

const ofJob: Describe = ([jobId]) => ({ jobId: jobId as string });
const ofAsset: Describe = ([assetId]) => ({ assetId: assetId as string });

/** No graph, no file and no secret is described: only ids, names and sizes. */
const ARGUMENTS = {
  submit: ([request]) => {
    const { workflow, metadata, extraData, order } = request as SubmitRequest;
    const { [Object.keys(metadata ?? {})[0] ?? '']: key } = metadata ?? {};
    const sent = Object.values(extraData);
    return { nodes: Object.keys(workflow).length, order, key, label: key, secrets: sent };
  },
  search: ([lost]) => {
    const { metadata, sentAtMs } = lost as LostSubmission;
    return { key: Object.values(metadata ?? {})[0], sentAtMs };
  },
  get: ofJob,
  workflow: ofJob,
  events: ofJob,
  cancel: ofJob,
  list: ([query]) => ({ query }),
  createAsset: ([upload]) => {
    const { filePath, contentType, file } = upload as AssetUpload;
    return { filePath, contentType, sizeBytes: file.sizeBytes, hash: file.hash };
  },
  assetFromHash: ([request]) => {
    const { hash, filePath } = request as { readonly hash: string; readonly filePath?: string };
    return { hash, filePath };
  },
  hasBlob: ([hash]) => ({ hash }),
  asset: ofAsset,
  deleteAsset: ofAsset,
  content: ([assetId, range]) => ({ assetId: assetId as string, range }),
  health: () => ({}),
} as const satisfies Record<keyof JobApi, Describe>;

/** The arguments of a v2 call after its caller, as fields of a log line. */
export function describeArguments(method: keyof JobApi, args: readonly unknown[]): CallFields {
  return ARGUMENTS[method](args);
}

/** The answer of a v2 call, as fields of a log line: an id and a status are those of its job or asset. */
export function describeAnswer(answer: Result<unknown>): CallFields {
  if (!answer.ok) {
    const { status, code, message } = answer.error;
    return { outcome: 'refused', status, code, reason: message };
  }
  const { id, status } = (answer.value ?? {}) as Partial<Job>;
  return { outcome: 'ok', id, status };
}

const MAX_TEXT_CHARS = 500;

/** An event of a job, as fields of a log line; of pictures only type and size. */
export function describeEvent({ event: kind, data }: JobEvent): {
  readonly [name: string]: unknown;
} {
  if (kind === 'preview') {
    const { bytes, ...fields } = data;
    return { kind, ...fields, bytes: bytes.length };
  }
  if (kind === 'status') {
    const { job, ...fields } = data;
    return { kind, ...fields, error: job?.error ?? undefined, outputs: job?.outputs.length };
  }
  if (kind === 'x_text') return { kind, ...data, text: data.text.slice(0, MAX_TEXT_CHARS) };
  if (kind === 'output') return { kind, outputId: data.id, node_id: data.node_id, name: data.name };
  if (kind === 'x_node') return { kind, node_id: data.node_id, phase: data.phase };
  return { kind, ...data };
}
