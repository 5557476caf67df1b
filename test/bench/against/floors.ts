import { type Program, startOurs } from '../program.ts';

/** A program that does only what an embedded prompt cannot do without. */
export function startFloor(workDir: string): Promise<Program> {
  return startOurs('against/floor', { side: 'subject', args: [workDir] });
}

type Relay = {
  readonly workDir: string;
  readonly upstream: string;
  /** Of Node. */
  readonly flags?: readonly string[];
};

/** One that does only what a prompt in front of a v2 service cannot do without. */
export function startRelayFloor({ workDir, upstream, flags = [] }: Relay): Promise<Program> {
  return startOurs('against/relay-floor', { side: 'subject', args: [workDir, upstream], flags });
}

/** One that has loaded what an embedded server cannot leave out, and does nothing. */
export function startMemoryFloor(workDir: string): Promise<Program> {
  return startOurs('against/memory-floor', { side: 'subject', args: [workDir] });
}
