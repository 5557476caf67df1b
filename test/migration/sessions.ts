// Sessions as the recorder writes them.
import type { Session, SessionEvent, SessionJob } from '../../src/migration/session.ts';
import type { Graph, JobStatus } from '../../src/protocol/v2.ts';

export const A = 'asset-a';

export const load = (id: string, filePath: string): Graph =>
  ({
    '3': {
      class_type: 'LoadImage',
      inputs: { image: { __type: 'core/ASSET', info: { id, file_path: filePath } } },
    },
    '9': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'x' } },
  }) as unknown as Graph;

export const upload = (assetId = A, path = 'cat.png'): SessionEvent => ({
  kind: 'upload',
  assetId,
  path,
  contentType: 'image/png',
});
export const reupload = (assetId: string, hash: string, path = 'cat.png'): SessionEvent => ({
  kind: 'upload',
  assetId,
  path,
  contentType: 'image/png',
  hash,
});
export const cancel = (jobId: string, sinceSubmitMs = 0): SessionEvent => ({
  kind: 'cancel',
  jobId,
  sinceSubmitMs,
});
export const submit = (jobId: string, change: Partial<SessionEvent & { kind: 'submit' }> = {}) =>
  ({
    kind: 'submit',
    jobId,
    workflow: load(A, 'input/cat.png'),
    secrets: [],
    hasExtraPngInfo: false,
    ...change,
  }) as SessionEvent;
export const download = (assetId: string, filename = `${assetId}.png`): SessionEvent => ({
  kind: 'download',
  assetId,
  filename,
  rendering: undefined,
});

/** An output has the hash of its id. */
export function job(status: JobStatus, ...outputs: string[]): SessionJob {
  return {
    status,
    queuedMs: 0,
    outputs: outputs.map((id) => ({
      id,
      nodeId: '9',
      name: `${id}.png`,
      hash: `blake3:${id}`,
      isStreamed: false,
    })),
  };
}

export function session(events: readonly SessionEvent[], more: Partial<Session> = {}): Session {
  const jobs = new Map([
    ['one', job('succeeded', 'out-1', 'out-2')],
    ['two', job('succeeded', 'out-3')],
  ]);
  return { calls: [], events, jobs, usedSocket: false, ...more };
}
