import { type Signal, signal } from '@preact/signals';
import { onMessage, onPicture } from '../state.ts';

/** State of a running job, from the messages of the socket. */
export type LiveJob = {
  readonly node?: string;
  readonly value?: number;
  readonly max?: number;
  /** Nodes that are done, as `progress_state` counts them. */
  readonly done?: number;
  readonly preview?: string;
};

const jobs = new Map<string, Signal<LiveJob>>();
/** Jobs that are shown now. */
const watched = new Set<string>();
/** The latest preview of each job that has no address yet. */
const pictures = new Map<string, () => Blob>();
/** Pictures of clients without metadata are of the prompt that runs. */
let lastPromptId: string | undefined;
const MAX_JOBS = 300;

export function liveJob(id: string): Signal<LiveJob> {
  let found = jobs.get(id);
  if (found === undefined) {
    found = signal<LiveJob>(
      {},
      {
        watched() {
          watched.add(id);
          showPicturesSoon();
        },
        unwatched: () => void watched.delete(id),
      },
    );
    jobs.set(id, found);
    const oldest = jobs.size > MAX_JOBS && [...jobs.keys()].find((other) => !watched.has(other));
    if (typeof oldest === 'string' && oldest !== id) forgetLive(oldest);
  }
  return found;
}

/** The job has ended. */
export function forgetLive(id: string): void {
  const { preview } = jobs.get(id)?.peek() ?? {};
  if (preview !== undefined) URL.revokeObjectURL(preview);
  jobs.delete(id);
  pictures.delete(id);
}

/** The jobs of another key may have the same ids. */
export function forgetAllLive(): void {
  for (const id of jobs.keys()) forgetLive(id);
  lastPromptId = undefined;
}

type NodeStates = Readonly<Record<string, { readonly state?: string }>>;

onMessage(({ type, data }) => {
  const id = data['prompt_id'];
  if (typeof id !== 'string') return;
  const job = liveJob(id);
  if (type === 'progress') {
    lastPromptId = id;
    job.value = {
      ...job.peek(),
      node: String(data['node']),
      value: Number(data['value']),
      max: Number(data['max']),
    };
  } else if (type === 'executing' && typeof data['node'] === 'string') {
    lastPromptId = id;
    const { value: _value, max: _max, ...rest } = job.peek();
    job.value = { ...rest, node: data['node'] };
  } else if (type === 'progress_state') {
    const nodes = data['nodes'] as NodeStates;
    const done = Object.values(nodes).filter(({ state }) => state === 'finished').length;
    job.value = { ...job.peek(), done };
  }
});

onPicture((promptId, picture) => {
  const id = promptId ?? lastPromptId;
  if (id === undefined) return;
  liveJob(id);
  pictures.set(id, picture);
  if (watched.has(id)) showPicturesSoon();
});

const PICTURE_INTERVAL_MS = 120;
let isShowingSoon = false;

/** Many come in a second, and each address takes time to make: only jobs that are shown get one. */
function showPicturesSoon(): void {
  if (isShowingSoon || pictures.size === 0) return;
  isShowingSoon = true;
  setTimeout(() => requestAnimationFrame(showPictures), PICTURE_INTERVAL_MS);
}

function showPictures(): void {
  isShowingSoon = false;
  for (const [id, picture] of pictures) {
    if (!watched.has(id)) continue;
    pictures.delete(id);
    const job = liveJob(id);
    const { preview } = job.peek();
    job.value = { ...job.peek(), preview: URL.createObjectURL(picture()) };
    if (preview !== undefined) URL.revokeObjectURL(preview);
  }
}

/** Share of the work that is done, 0 to 1; `undefined`: not known. */
export function fractionOf(
  { done, value, max }: LiveJob,
  nodeCount: number | null,
): number | undefined {
  const step = max !== undefined && max > 0 && value !== undefined ? Math.min(1, value / max) : 0;
  if (nodeCount === null || nodeCount === 0) return max === undefined ? undefined : step;
  const share = ((done ?? 0) + step) / nodeCount;
  return done === undefined && max === undefined ? undefined : Math.min(1, share);
}
