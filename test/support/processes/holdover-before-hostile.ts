import { type HostileV2, openHostileV2, output } from '../upstreams/hostile-v2.ts';
import { type Holdover, type StartOptions, startHoldover } from './holdover.ts';
import { postPrompt } from '../clients/v1-client.ts';
import { flat } from '../graphs/workflows.ts';
import { entryOf } from '../clients/client-helpers.ts';
import { useShared } from '../use-shared.ts';

/** Times cut down to what a test can sit through. */
export const FAST = {
  connectTimeoutMs: 1_000,
  submitTimeoutMs: 5_000,
  readTimeoutMs: 2_000,
  readBudgetMs: 1_000,
  readRetryMs: 20,
  bodyIdleTimeoutMs: 3_000,
  snapshotMs: 20,
  confirmAfterMs: 40,
  refusedPauseMs: 1,
  failedReadMs: 50,
  readsPerSecond: 1_000,
  pollMs: {
    watched: { first: 50, last: 50 },
    unwatched: { first: 50, last: 100 },
    queued: { first: 50, last: 50 },
  },
};

/** A real server in front of one that does what it is told. */
export async function startInFront(
  upstream: Pick<HostileV2, 'url'>,
  options: StartOptions & { readonly limits?: object } = {},
): Promise<Holdover> {
  const { args = [], limits = {}, ...more } = options;
  const cut = JSON.stringify({ upstream: { ...FAST, ...limits } });
  // Whatever stands in for a store of files is on this machine too.
  const redirects = ['--upstream-redirects', '127.0.0.1'];
  const front = ['--upstream', upstream.url, '--limits', cut, ...redirects, ...args];
  return startHoldover({ ...more, upstream: 'embedded', args: front });
}

export type Pair = {
  readonly upstream: HostileV2;
  readonly holdover: Holdover;
  close(): Promise<void>;
};

export async function openPair(
  options: StartOptions & { readonly limits?: object } = {},
): Promise<Pair> {
  const upstream = await openHostileV2();
  try {
    const holdover = await startInFront(upstream, options);
    return {
      upstream,
      holdover,
      async close() {
        await holdover.dispose();
        await upstream.close();
      },
    };
  } catch (error) {
    await upstream.close();
    throw error;
  }
}

export function usePair(options: Parameters<typeof openPair>[0] = {}): Pair {
  return useShared(
    () => openPair(options),
    (pair) => pair.close(),
  );
}

/** A prompt whose job made these outputs; gives the file references of its history entry. */
export async function madeOutputs(
  { upstream, holdover }: Omit<Pair, 'close'>,
  outputs: readonly object[],
  headers: Record<string, string> = {},
): Promise<{ readonly promptId: string; readonly files: readonly FileRef[] }> {
  const { status, body } = await postPrompt(holdover.url, { prompt: flat() }, { headers });
  if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`);
  const promptId = body.prompt_id as string;
  upstream.change(promptId, { status: 'succeeded', outputs: outputs.map((one) => output(one)) });
  for (let tries = 0; tries < 200; tries++) {
    const entry = await entryOf(holdover.url, promptId, headers);
    const files = Object.values(entry?.outputs ?? {}).flatMap((node: any) => node.images ?? []);
    if (entry) return { promptId, files };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the prompt does not end');
}

export type FileRef = {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
};

/** `/view`'s query for a file. */
export function viewQuery(file: Partial<FileRef>): string {
  return new URLSearchParams({ ...file } as Record<string, string>).toString();
}
