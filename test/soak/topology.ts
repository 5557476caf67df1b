import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

/** The processes of one load: the one that answers v1, and the one that runs the jobs when that is another. */
export type SoakTopology = {
  readonly front: Holdover;
  readonly processes: Readonly<Record<string, Holdover>>;
  dispose(): Promise<void>;
};

export const UPSTREAMS = ['embedded', 'remote'] as const;

export async function startSoakTopology(
  upstream: (typeof UPSTREAMS)[number],
): Promise<SoakTopology> {
  const env = { HOLDOVER_LOG_LEVEL: 'warn' };
  // By default these clients get no previews of samplers, which a slow reader can miss.
  const previews = ['--preview-method', 'auto'];
  const engine = await startHoldover({ upstream: 'embedded', env, args: previews });
  if (upstream === 'embedded')
    return { front: engine, processes: { holdover: engine }, dispose: () => engine.dispose() };
  const args = [...previews, '--upstream', engine.url];
  const front = await startHoldover({ upstream: 'embedded', env, args });
  return {
    front,
    processes: { holdover: front, upstream: engine },
    async dispose() {
      await front.dispose();
      await engine.dispose();
    },
  };
}
