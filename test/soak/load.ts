import { setTimeout as delay } from 'node:timers/promises';
import { entryOf, uploadInput } from '../support/clients/client-helpers.ts';
import type { Holdover } from '../support/processes/holdover.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import {
  type CountingSocket,
  type CountingSocketOptions,
  openCountingSocket,
} from './counting-socket.ts';
import { type LoadPrompt, loadPromptOf } from './load-prompts.ts';

/** How much is asked of a server, and how fast. */
export type Size = {
  readonly jobs: number;
  readonly sockets: number;
  readonly users: number;
  /** Over so long; 0: as fast as `atOnce` allows. */
  readonly spreadMs: number;
  /** Prompts on their way at a time. */
  readonly atOnce: number;
  /** A prompt that takes longer is missing. */
  readonly patienceMs: number;
};

/** A prompt that was accepted, and whose socket should have received its end. */
export type Sent = LoadPrompt & {
  readonly promptId: string;
  readonly key: string;
  readonly countingSocket: CountingSocket;
};

/** The progress of a load; `problems` are faults that no client may see. */
export type Load = {
  readonly sent: Sent[];
  readonly countingSockets: readonly CountingSocket[];
  readonly problems: string[];
  /** When a third of the prompts had been sent: memory still grows by some 20 MB once during the first 600. */
  readonly warmAtMs: () => number;
  /** Posts everything; resolves when all that was sent has ended or is missing. */
  run(): Promise<void>;
  close(): void;
};

/** One in so many reads slowly. */
const SLOW_EVERY = 10;
/** Sockets beside the first one that never read, so that nothing of theirs is lost for good. */
const UNREAD_SOCKETS = 3;
/** They are replaced: the server closes those that take nothing while much waits for them. */
const UNREAD_MS = 40_000;
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

export async function openLoad(holdover: Holdover, size: Size): Promise<Load> {
  const keys = Array.from({ length: size.users }, (_, i) => `soak-key-${i}`);
  const keyOf = (index: number): string => keys[index % keys.length] ?? '';
  const { wsUrl, url } = holdover;
  const openSocketAt = (index: number, reads: CountingSocketOptions['reads']) =>
    openCountingSocket({ wsUrl, clientId: `soak-${index}`, key: keyOf(index), reads });
  const countingSockets = await Promise.all(
    Array.from({ length: size.sockets }, (_, i) =>
      openSocketAt(i, i % SLOW_EVERY === SLOW_EVERY - 1 ? 'slowly' : 'at once'),
    ),
  );
  const unreadSockets = new Set<CountingSocket>();
  const problems: string[] = [];
  const sent: Sent[] = [];
  const live = new Set<Promise<void>>();
  let warmAtMs = Number.POSITIVE_INFINITY;

  async function changeSleepers(): Promise<void> {
    const before = [...unreadSockets];
    unreadSockets.clear();
    for (const countingSocket of before) countingSocket.close();
    for (let i = 0; i < UNREAD_SOCKETS; i++) unreadSockets.add(await openSocketAt(0, 'asleep'));
  }

  async function send(index: number): Promise<void> {
    const loadPrompt = await loadPromptOf(index);
    const socketIndex = loadPrompt.isLoud ? 0 : index % countingSockets.length;
    const countingSocket = countingSockets[socketIndex];
    if (countingSocket === undefined) throw new Error('no sockets');
    const key = keyOf(socketIndex);
    const headers = { 'X-API-Key': key };
    const { upload, graph } = loadPrompt;
    if (upload) {
      const placed = await uploadInput(url, upload, headers);
      if (placed.name !== upload.name)
        problems.push(`${loadPrompt.prefix}: upload is ${placed.name}`);
    }
    const body = { prompt: graph, client_id: countingSocket.clientId };
    const answer = await postPrompt(url, body, { headers });
    if (answer.status !== 200) return void problems.push(`${loadPrompt.prefix}: ${answer.status}`);
    const prompt: Sent = { ...loadPrompt, promptId: answer.body.prompt_id, key, countingSocket };
    sent.push(prompt);
    if (!(await countingSocket.closed(prompt.promptId, size.patienceMs))) return;
    problems.push(...(await readFiles(url, prompt)));
  }

  return {
    sent,
    countingSockets,
    problems,
    warmAtMs: () => warmAtMs,
    async run() {
      const everyMs = size.spreadMs / size.jobs;
      let dueAtMs = performance.now();
      await changeSleepers();
      const night = setInterval(() => void changeSleepers().catch(() => {}), UNREAD_MS);
      for (let index = 0; index < size.jobs; index++) {
        // A slow machine does not catch up on late prompts: the load is the same to the end.
        await delay(Math.max(0, dueAtMs - performance.now()));
        dueAtMs = Math.max(dueAtMs, performance.now()) + everyMs;
        if (index === Math.floor(size.jobs / 3)) warmAtMs = performance.now();
        while (live.size >= size.atOnce) await Promise.race(live);
        const task = send(index)
          .catch((error: unknown) => void problems.push(`soak-${index}: ${String(error)}`))
          .finally(() => live.delete(task));
        live.add(task);
      }
      await Promise.all(live);
      clearInterval(night);
    },
    close() {
      for (const countingSocket of [...countingSockets, ...unreadSockets]) countingSocket.close();
    },
  };
}

/** As a client does as soon as v1's last frame arrives: history, then its files. */
export async function readFiles(url: string, prompt: Sent): Promise<string[]> {
  const { prefix, key, end } = prompt;
  const headers = { 'X-API-Key': key };
  const entry = await entryOf(url, prompt.promptId, headers);
  if (entry === undefined) return [`${prefix}: no history entry at its end`];
  const files: any[] = Object.values(entry.outputs).flatMap((node: any) => node.images ?? []);
  const expected = end === 'execution_success' ? 1 : 0;
  if (files.length !== expected) return [`${prefix}: ${files.length} files`];
  const answers = await Promise.all(files.map((file) => readFile(url, { file, headers })));
  return answers.flatMap(({ status, bytes }, i) => {
    const isIt = status === 200 && bytes.subarray(0, 4).equals(PNG);
    const isOwn = String(files[i].filename).startsWith(`${prefix}_`);
    return isIt && isOwn ? [] : [`${prefix}: file ${files[i].filename} answers ${status}`];
  });
}

async function readFile(
  url: string,
  asked: { readonly file: any; readonly headers: Record<string, string> },
): Promise<{ status: number; bytes: Buffer }> {
  const { headers } = asked;
  const response = await fetch(`${url}/view?${new URLSearchParams(asked.file)}`, { headers });
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}
