import type { Bench } from './bench.ts';
import { type Sample, interleave, ratioRow } from './measure.ts';
import { type Program, startOurs } from './program.ts';

const EVENTS = 8000;

type Taken = { readonly frames: number; readonly ms: number };

/** Event streams read into WebSocket frames, against the stream parser of the public v2 SDK. */
export const sse: Bench = {
  name: 'sse',
  needs: [],
  async run({ rounds, keep }) {
    const source = await keep(startOurs('sse-source', { side: 'load' }));
    const args = [source.url];
    const holdover = await keep(startOurs('sse-holdover', { side: 'subject', args }));
    const sdk = await keep(startOurs('sse-sdk', { side: 'subject', args }));
    const contestants = {
      holdover: () => taken(holdover),
      sdk: () => taken(sdk),
    };
    await interleave(1, contestants);
    const samples = await interleave(rounds, contestants);
    return [
      ratioRow({
        bench: 'sse',
        figure: '30 KB previews from the stream to a ready frame',
        unit: 'events/s',
        samples: samples.holdover,
        against: { name: 'TypeScript v2 SDK, its parser', samples: samples.sdk },
        target: { kind: 'at least', ratio: 1.5 },
        cpuUnit: 'µs/event',
      }),
    ];
  },
};

async function taken(program: Program): Promise<Sample> {
  const cpuBefore = program.cpuNs();
  const { frames, ms } = await program.ask<Taken>({ events: EVENTS });
  if (frames !== EVENTS) throw new Error(`${frames} of ${EVENTS} events arrived`);
  return { value: frames / (ms / 1000), cpuUs: (program.cpuNs() - cpuBefore) / 1000 / frames };
}
