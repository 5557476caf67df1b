import type { SavedFile } from '../../nodes/node.ts';
import type { SpooledFile, JobEventData } from '../../protocol/job-api.ts';
import type { Output } from '../../protocol/v2.ts';

/**
 * An output as it is stored, with the `job_id` of the job that made it. Links are added when it is
 * shown.
 */
export type StoredOutput = Omit<Output, 'url' | 'url_expires_at' | 'job_id'> & {
  readonly job_id: string;
};

/** The start parameters of a worker thread. */
export type WorkerSetup = {
  /** The URL of the module whose `ALL_NODES` the worker runs. */
  readonly nodesModule: string;
  readonly cacheBytes: number;
  /** The folder for the files that nodes make. */
  readonly spoolDir: string;
};

/** The hashes of the files that a workflow may read, by the text of its inputs. */
export type ReadableFiles = ReadonlyMap<string, string>;

/**
 * One job for a worker. JSON is sent as text, since a structured clone would lose exact numbers.
 */
export type RunRequest = {
  readonly type: 'run';
  readonly user: string;
  readonly workflowJson: string;
  readonly targets: readonly string[];
  readonly files: ReadableFiles;
  /** The prompt and its metadata as saved files hold them. `null`: the workflow is the prompt. */
  readonly provenanceJson: string | null;
  readonly memoryLimitBytes: number;
  /** A value that both threads see: not zero when the job has to stop. */
  readonly stopFlag: Int32Array;
};

export type ToWorker =
  | RunRequest
  /** Drops the kept results of this user, including those of a running job. */
  | { readonly type: 'forget'; readonly user: string }
  | { readonly type: 'reply'; readonly id: number; readonly value: unknown }
  | {
      readonly type: 'reply';
      readonly id: number;
      readonly failure: string;
      readonly code?: string;
    };

/** A file that a node saves. The worker has written its bytes. */
export type WrittenFile = Omit<SavedFile, 'bytes'> & SpooledFile;

/** The requests of a worker to the main thread, and their replies. */
export type WorkerRequests = {
  /** Says that the first node of a job is about to begin. Replied when that is recorded. */
  begin(): null;
  save(nodeId: string, file: WrittenFile): StoredOutput;
  /** Reads the bytes of a hash. `null`: they are gone. */
  read(hash: string): Uint8Array | null;
  /** Returns the outputs that still exist. They are retained for the job from then on. */
  alive(outputs: readonly StoredOutput[]): readonly string[];
  /** Replied when all earlier messages have been handled: a worker must not run far ahead. */
  handled(): null;
};

export type WorkerRequest = {
  [K in keyof WorkerRequests]: { readonly kind: K; readonly args: Parameters<WorkerRequests[K]> };
}[keyof WorkerRequests];

export type RunEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'stopped' }
  /** `systemCode`: the code of the system's error that made a node fail, for example `ENOSPC`. */
  | { readonly kind: 'failed'; readonly errorJson: string; readonly systemCode?: string };

export type ShownResult = {
  readonly nodeId: string;
  /** The JSON of the values that the node shows; absent when it shows none. */
  readonly uiJson?: string | undefined;
  /** Present when the result was reused instead of computed. */
  readonly reused?: readonly StoredOutput[];
};

export type FromWorker =
  | {
      readonly type: 'begin';
      readonly cached: readonly string[];
      readonly total: number;
      readonly done: number;
    }
  | { readonly type: 'started'; readonly nodeId: string; readonly classType: string }
  | {
      readonly type: 'step';
      readonly nodeId: string;
      readonly step: number;
      readonly steps: number;
    }
  | { readonly type: 'preview'; readonly data: JobEventData['preview'] }
  | { readonly type: 'text'; readonly nodeId: string; readonly text: string }
  | ({ readonly type: 'finished' } & ShownResult)
  /** The shown values of a cached node that did not run; only of a class with an intermediate output. */
  | ({ readonly type: 'shown' } & ShownResult)
  | ({ readonly type: 'request'; readonly id: number } & WorkerRequest)
  | { readonly type: 'end'; readonly end: RunEnd };

/** Sends a request to the main thread and waits for the reply. */
export type AskMainThread = <K extends keyof WorkerRequests>(
  kind: K,
  ...args: Parameters<WorkerRequests[K]>
) => Promise<ReturnType<WorkerRequests[K]>>;
