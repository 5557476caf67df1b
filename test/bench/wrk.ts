import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Sample } from './measure.ts';
import { type Program, pinned } from './program.ts';

export type Load = {
  readonly url: string;
  readonly workDir: string;
  readonly connections: number;
  readonly seconds: number;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** An answer beyond it counts as lost. */
  readonly timeoutSeconds?: number;
};

type Summary = {
  readonly requests: number;
  readonly bytes: number;
  readonly micros: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
};

/** Requests a second in a closed loop, with what they cost the program they went to. */
export async function wrk(program: Program, load: Load): Promise<Sample> {
  const cpuBefore = program.cpuNs();
  const summary = await run(load);
  const cpuNs = program.cpuNs() - cpuBefore;
  if (summary.failed > summary.requests / 1000) {
    throw new Error(`${summary.failed} of ${summary.requests} requests to ${load.url} failed`);
  }
  const { requests, bytes, micros, p50, p99 } = summary;
  return {
    value: requests / (micros / 1e6),
    cpuUs: cpuNs / 1000 / requests,
    more: {
      p50Ms: p50 / 1000,
      p99Ms: p99 / 1000,
      bytesPerSecond: bytes / (micros / 1e6),
      cpuNs,
      bytes,
    },
  };
}

async function run(load: Load): Promise<Summary> {
  const { url, connections, seconds, timeoutSeconds = 10 } = load;
  const script = writeScript(load);
  const [command, args] = pinned('load', 'wrk', [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    `${timeoutSeconds}s`,
    '-s',
    script,
    url,
  ]);
  const { stdout } = await promisify(execFile)(command, args);
  const summary = /^summary (.*)$/m.exec(stdout)?.[1];
  if (summary === undefined) throw new Error(`wrk came to nothing: ${stdout.slice(0, 500)}`);
  return JSON.parse(summary) as Summary;
}

function writeScript({ workDir, method = 'GET', headers = {}, body }: Load): string {
  const path = join(workDir, 'load.lua');
  const lines = [
    `wrk.method = "${method}"`,
    ...Object.entries(headers).map(
      ([name, value]) => `wrk.headers[ ${lua(name)} ] = ${lua(value)}`,
    ),
    ...(body === undefined ? [] : [`wrk.body = ${lua(body)}`]),
    'function done(s, l)',
    '  local e = s.errors',
    '  io.write(string.format(\'summary {"requests":%d,"bytes":%.0f,"micros":%d,"p50":%d,"p99":%d,"failed":%d}\\n\',',
    '    s.requests, s.bytes, s.duration, l:percentile(50), l:percentile(99),',
    '    e.connect + e.read + e.write + e.status + e.timeout))',
    'end',
  ];
  writeFileSync(path, lines.join('\n'));
  return path;
}

/** A text as Lua writes it. */
function lua(text: string): string {
  return `[==[${text}]==]`;
}
