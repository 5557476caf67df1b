import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Installed, installPackages } from './python-packages.ts';
import { runFolder } from '../graphs/v1-folders.ts';

const FOLDER = fileURLToPath(new URL('../../contract/', import.meta.url));
const DOCUMENTS = fileURLToPath(new URL('../../../fixtures/openapi/', import.meta.url));

/** One check of one generated call that failed. */
export type Finding = {
  readonly operation: string;
  readonly check: string;
  readonly method: string;
  readonly url: string;
  readonly sent: string;
  readonly status: number | undefined;
  readonly body: string;
  readonly message: string;
};

export type Fuzzed = {
  /** Calls by operation and status of the answer. */
  readonly answers: ReadonlyMap<string, ReadonlyMap<number, number>>;
  readonly findings: readonly Finding[];
};

/** Members of a call that name what exists; see `hooks.py`. */
export type Known = {
  readonly [operation: string]: {
    readonly path?: { readonly [name: string]: string | readonly string[] };
    readonly query?: { readonly [name: string]: string };
    readonly body?: object;
    readonly drop?: readonly string[];
  };
};

export type FuzzOptions = {
  readonly document: 'openapi-v2.yaml' | 'openapi-cloud.yaml';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly known: Known;
  /** Generated calls for each operation, beside those from examples and bounds. */
  readonly examples: number;
  /** Operations of the document that are not called, as `GET /api/x`. */
  readonly without?: readonly string[];
};

/** Installs it, or tells why it cannot. */
export function installSchemathesis(): Promise<Installed> {
  return installPackages('schemathesis', join(FOLDER, 'requirements.txt'));
}

/**
 * Calls every operation of a document with generated input, the same at each run, and checks each
 * answer against the document. Throws where schemathesis cannot be installed or does not finish.
 */
export async function fuzz(options: FuzzOptions): Promise<Fuzzed> {
  const installed = await installSchemathesis();
  if (!installed.ok) throw new Error(`schemathesis was NOT RUN: ${installed.why}`);
  const dir = await runFolder('contract');
  const report = join(dir, 'report.ndjson');
  const child = spawn('python3', argsOf(options, report), {
    cwd: dir,
    env: {
      ...process.env,
      PYTHONPATH: `${installed.packages}:${FOLDER}`,
      // Its tables of characters take two seconds to make.
      HYPOTHESIS_STORAGE_DIRECTORY: join(installed.packages, '../../hypothesis'),
      SCHEMATHESIS_HOOKS: 'hooks',
      CONTRACT_KNOWN: JSON.stringify(options.known),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => log.push(chunk.toString()));
  }
  const [code] = (await once(child, 'exit')) as [number | null];
  // 0: nothing found, 1: something found; all else is trouble of its own.
  if (code !== 0 && code !== 1) throw new Error(`schemathesis ended with ${code}: ${log.join('')}`);
  return readReport(await readFile(report, 'utf8'));
}

function argsOf(options: FuzzOptions, report: string): readonly string[] {
  const { document, url, headers = {}, examples, without = [] } = options;
  const fixed =
    'run --phases examples,coverage,fuzzing --generation-deterministic --no-shrink --workers 1 ' +
    // Counts of what was found end the run otherwise.
    '--continue-on-failure --max-failures 1000000 --request-timeout 30 --warnings off --no-color ' +
    '--suppress-health-check all';
  return [
    '-m',
    'schemathesis.cli',
    ...fixed.split(' '),
    `--url=${url}`,
    `--max-examples=${examples}`,
    `--report-ndjson-path=${report}`,
    join(DOCUMENTS, document),
    ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    ...without.flatMap((operation) => ['--exclude-name', operation]),
  ];
}

type Recorder = {
  readonly label: string;
  readonly checks?: {
    readonly [id: string]: readonly {
      readonly name: string;
      readonly status: 'success' | 'failure';
      readonly failure_info?: { readonly failure: { readonly message: string } };
    }[];
  };
  readonly interactions?: {
    readonly [id: string]: {
      readonly request: {
        readonly method: string;
        readonly uri: string;
        readonly body?: { readonly $base64: string } | null;
      };
      readonly response: {
        readonly status_code: number;
        readonly content?: { readonly $base64: string } | string | null;
      } | null;
    };
  };
};

type Event = {
  readonly ScenarioFinished?: { readonly recorder: Recorder };
  readonly NonFatalError?: object;
  readonly FatalError?: object;
  readonly EngineFinished?: { readonly stop_reason: string };
};

function readReport(text: string): Fuzzed {
  const events = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Event);
  const trouble = events.filter((event) => event.FatalError ?? event.NonFatalError);
  if (trouble.length > 0) throw new Error(`schemathesis failed: ${JSON.stringify(trouble)}`);
  const end = events.find(({ EngineFinished: finished }) => finished)?.EngineFinished;
  if (end?.stop_reason !== 'completed')
    throw new Error(`schemathesis stopped: ${end?.stop_reason}`);
  const recorders = events.flatMap(({ ScenarioFinished: done }) => (done ? [done.recorder] : []));
  return { answers: answersOf(recorders), findings: recorders.flatMap(findingsOf) };
}

function answersOf(recorders: readonly Recorder[]): Fuzzed['answers'] {
  const answers = new Map<string, Map<number, number>>();
  for (const { label, interactions = {} } of recorders) {
    const counts = answers.get(label) ?? new Map<number, number>();
    answers.set(label, counts);
    for (const { response } of Object.values(interactions)) {
      const status = response?.status_code ?? 0;
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
  }
  return answers;
}

function findingsOf({ label, checks = {}, interactions = {} }: Recorder): readonly Finding[] {
  return Object.entries(checks).flatMap(([id, all]) => {
    const { request, response } = interactions[id] ?? {};
    return all
      .filter(({ status }) => status === 'failure')
      .map(({ name, failure_info: info }) => ({
        operation: label,
        check: name,
        method: request?.method ?? '',
        url: request?.uri ?? '',
        sent: textOf(request?.body).slice(0, 2000),
        status: response?.status_code,
        body: textOf(response?.content).slice(0, 2000),
        message: info?.failure.message ?? '',
      }));
  });
}

function textOf(value: { readonly $base64: string } | string | null | undefined): string {
  if (typeof value === 'string') return value;
  return value ? Buffer.from(value.$base64, 'base64').toString() : '';
}
