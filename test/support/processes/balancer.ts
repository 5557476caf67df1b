import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.ts';
import { kill9 } from './kill9.ts';
import { examplesOf, withChanges } from './proxy-programs.ts';

const PROGRAM = process.env['HOLDOVER_TEST_HAPROXY'] ?? 'haproxy';
/** The configuration that compose.yaml mounts. */
export const BALANCER_CONFIG = fileURLToPath(
  new URL('../../../deploy/haproxy.cfg', import.meta.url),
);

/** True when haproxy is installed. */
export function hasBalancer(): boolean {
  return spawnSync(PROGRAM, ['-v']).status === 0;
}

/** The program's complaints about a configuration; empty when there are none. */
export function complaintsAbout(config: string): string {
  const checked = spawnSync(PROGRAM, ['-c', '-q', '-f', config], { encoding: 'utf8' });
  return checked.status === 0 ? '' : checked.stderr;
}

export type Balancer = {
  readonly url: string;
  readonly wsUrl: string;
  kill9(): Promise<void>;
  /** At the same port. Resolves when it answers: its servers may be down. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

/** The shipped configuration, on another port and in front of these; names are resolved elsewhere. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const servers = serverLines(ports);
  const text = readFileSync(BALANCER_CONFIG, 'utf8').replace(/^ +server-template .*$/m, servers);
  return runBalancer(text, await freePort());
}

/** The example of docs/scaling.md, on this port and in front of the servers of two cells. */
export function startCellBalancer(
  port: number,
  cells: readonly [readonly number[], readonly number[]],
): Promise<Balancer> {
  const [example = ''] = examplesOf('haproxy', 'scaling.md');
  const changed = withChanges(example, [
    ['    server replica0 10.0.0.1:8188', serverLines(cells[0])],
    ['    server replica0 10.0.1.1:8188', serverLines(cells[1])],
  ]);
  const [common = ''] = readFileSync(BALANCER_CONFIG, 'utf8').split(/^(?=resolvers )/m);
  return runBalancer(common + changed, port);
}

function serverLines(ports: readonly number[]): string {
  return ports.map((port, i) => `    server replica${i} 127.0.0.1:${port}`).join('\n');
}

async function runBalancer(config: string, port: number): Promise<Balancer> {
  const text = withChanges(config, [['bind :8188', `bind 127.0.0.1:${port}`]]);
  const folder = mkdtempSync(join(tmpdir(), 'holdover-balancer-'));
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, text);
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const end = async (): Promise<void> => child && kill9(child);
  async function restart(): Promise<void> {
    await end();
    child = spawn(PROGRAM, ['-db', '-f', file], { stdio: 'ignore' });
    await untilAnswered(url, child, () => true);
  }
  async function close(): Promise<void> {
    await end();
    rmSync(folder, { recursive: true, force: true });
  }
  try {
    await restart();
    if (child) await untilAnswered(url, child, ({ ok }) => ok);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, wsUrl: url.replace('http', 'ws'), kill9: end, restart, close };
}

async function untilAnswered(
  url: string,
  child: ChildProcess,
  isEnough: (answer: Response) => boolean,
): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (child.exitCode !== null) break;
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer && isEnough(answer)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the balancer at ${url} does not serve`);
}
