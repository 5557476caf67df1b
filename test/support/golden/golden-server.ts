import { randomUUID } from 'node:crypto';
import sharp from 'sharp';
import { parseConfig } from '../../../src/config/config.ts';
import { startServer } from '../../../src/app/server.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { ALL_NODES } from './golden-nodes.mjs';
import { argsOfPair, testedUpstream } from '../upstreams/tested-upstream.ts';
import { runFolder } from '../graphs/v1-folders.ts';

/** A whole server that also knows the recorder's test nodes; every scenario starts from zero. */
export type GoldenServer = { readonly port: number; close(): Promise<void> };

export async function startGoldenServer(
  args: readonly string[],
  inputs: ReadonlyMap<string, Buffer>,
): Promise<GoldenServer> {
  const server = testedUpstream() === 'remote' ? await startInFront(args) : await startOne(args);
  const black = { width: 8, height: 8, channels: 3, background: 'black' } as const;
  const example = await sharp({ create: black }).png().toBuffer();
  for (const [name, bytes] of new Map([['example.png', example], ...inputs])) {
    await placeInput(server.port, name, bytes);
  }
  return server;
}

/** Engines behind servers, by their arguments. */
const engines = new Map<string, Promise<GoldenServer>>();

/** Has its own user of an engine that other scenarios use, too: users share nothing. */
async function startInFront(args: readonly string[]): Promise<GoldenServer> {
  const { front, behind } = argsOfPair(args);
  const engine = engines.get(behind.join(' ')) ?? startOne(behind);
  engines.set(behind.join(' '), engine);
  const url = `http://127.0.0.1:${(await engine).port}`;
  return startOne(['--upstream', url, ...front], { HOLDOVER_UPSTREAM_KEY: randomUUID() });
}

/** Closes the engines behind servers that have been closed. */
export async function closeEngines(): Promise<void> {
  const started = await Promise.all(engines.values());
  engines.clear();
  await Promise.all(started.map((engine) => engine.close()));
}

async function startOne(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<GoldenServer> {
  const dataDir = await runFolder('golden');
  const parsed = parseConfig(['--port', '0', '--data-dir', dataDir, ...args], env);
  if (parsed.kind === 'exit') throw new Error(parsed.text);
  const nodesModule = new URL('./golden-nodes.mjs', import.meta.url).href;
  const library = { nodes: ALL_NODES, nodesModule };
  const server = await startServer(parsed.config, silentLogger(), library);
  return {
    port: server.port,
    async close() {
      await server.close();
    },
  };
}

async function placeInput(port: number, name: string, bytes: Buffer): Promise<void> {
  const form = new FormData();
  form.set('image', new File([new Uint8Array(bytes)], name));
  // `example.png` is there already.
  form.set('overwrite', 'true');
  const response = await fetch(`http://127.0.0.1:${port}/upload/image`, {
    method: 'POST',
    body: form,
  });
  if (!response.ok) throw new Error(`${name} was not taken: ${response.status}`);
}
