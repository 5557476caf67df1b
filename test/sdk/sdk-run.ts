import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

const PICTURE = fileURLToPath(new URL('../../fixtures/demo/evening-hills.jpg', import.meta.url));

/** Set where every test has to run (`.ci/run`): one that cannot run fails. */
export const MUST_RUN = process.env['HOLDOVER_TEST_MUST_RUN'] === '1';

/** Keys of the model router, by what becomes of their calls. */
const KEYS = {
  user: {},
  unknown: undefined,
  forbidden: { models: ['local/echo'] },
  disabled: { enabled: false },
  poor: { credits_cents: 1 },
  rare: { requests_per_minute: 1 },
  alone: { in_flight: 1 },
} as const;

/** The results of an SDK session, the SDK's public surface, and the parts of it that were used. */
export type Seen = {
  readonly [part: string]: any;
  readonly surface: readonly string[];
  readonly used: readonly string[];
};

type Servers = { readonly url: string; dispose(): Promise<void> };

/** A server in front of an engine in which one job waits, and no more: what comes then is told to come again. */
async function startServers(dir: string): Promise<Servers> {
  const file = join(dir, 'keys.json');
  const keys = Object.entries(KEYS).flatMap(([name, rules]) =>
    rules === undefined ? [] : [{ key: keyOf(name), workspace: name, ...rules }],
  );
  await writeFile(file, JSON.stringify({ keys }));
  const args = ['--model-keys', file, '--queue-limit', '1'];
  const engine = await startHoldover({ upstream: 'embedded', args });
  const front = await startFront(engine);
  return {
    url: front.url,
    async dispose() {
      await front.dispose();
      await engine.dispose();
    },
  };
}

async function startFront(engine: Holdover): Promise<Holdover> {
  try {
    return await startHoldover({ upstream: 'embedded', args: ['--upstream', engine.url] });
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

function keyOf(name: string): string {
  return `comfyui-${name}`;
}

/** Runs a program that takes PICTURE OUTPUT_DIR KEYS_JSON. */
export async function runSession(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = {},
): Promise<Seen> {
  const dir = await runFolder('sdk');
  const servers = await startServers(dir);
  try {
    const keys = Object.fromEntries(Object.keys(KEYS).map((name) => [name, keyOf(name)]));
    const { stdout } = await promisify(execFile)(
      program,
      [...args, PICTURE, dir, JSON.stringify(keys)],
      {
        env: {
          ...process.env,
          COMFY_BASE_URL: servers.url,
          COMFY_ROUTER_BASE_URL: servers.url,
          ...env,
        },
        timeout: 150_000,
      },
    );
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Seen;
  } finally {
    await servers.dispose();
  }
}

/** Members that a session has not used. */
export function unused({ surface, used }: Seen): string[] {
  const all = new Set(used);
  return surface.filter((name) => !all.has(name));
}
