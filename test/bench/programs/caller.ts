// Sends the same call again and again on each of its connections, and reads the answers.
import { Pool } from 'undici';
import { answer, ready } from './serve.ts';

export type Calls = {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
  readonly connections: number;
  readonly seconds: number;
};

export type Called = { readonly count: number; readonly ms: number; readonly bytes: number };

answer(async ({ url, connections, seconds, ...call }: Calls): Promise<Called> => {
  const pool = new Pool(url, { connections });
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  let count = 0;
  let bytes = 0;
  async function connection(): Promise<void> {
    while (performance.now() < endsAt) {
      const headers = { 'content-type': 'application/json' };
      const { statusCode, body } = await pool.request({ ...call, headers });
      for await (const chunk of body) bytes += (chunk as Buffer).length;
      if (statusCode >= 300) throw new Error(`${call.path} was answered with ${statusCode}`);
      count++;
    }
  }
  await Promise.all(Array.from({ length: connections }, connection));
  await pool.close();
  return { count, ms: performance.now() - startedAt, bytes };
});
ready();
