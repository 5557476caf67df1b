import { setTimeout as delay } from 'node:timers/promises';

/** A user of the servers: told apart by a key, or without one. */
export type Client = {
  readonly key: string;
  /** `undefined`: there is no answer, or not all of it. */
  ask(method: string, path: string, what?: Sent): Promise<Answer | undefined>;
};

type Sent = {
  readonly json?: unknown;
  readonly form?: FormData;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Answer = {
  readonly status: number;
  readonly bytes: Buffer;
  readonly json: () => any;
};

const TIMEOUT_MS = 20_000;
/** A server that was killed is back within seconds. */
const PATIENCE = { tries: 60, everyMs: 500 } as const;

/** Calls any of the servers, as a balancer would. */
export function createClient(
  urls: readonly string[],
  { key, random }: { readonly key: string; readonly random: () => number },
): Client {
  return {
    key,
    async ask(method, path, { json, form, headers = {} } = {}) {
      const url = urls[Math.floor(random() * urls.length)] ?? '';
      const body = json === undefined ? form : JSON.stringify(json);
      try {
        const response = await fetch(`${url}${path}`, {
          method,
          headers: {
            ...headers,
            ...(key !== '' && { 'X-API-Key': key }),
            ...(json !== undefined && { 'Content-Type': 'application/json' }),
          },
          ...(body !== undefined && { body }),
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        const bytes = Buffer.from(await response.arrayBuffer());
        return { status: response.status, bytes, json: () => JSON.parse(bytes.toString()) };
      } catch {
        return undefined;
      }
    },
  };
}

/** Reads until the answer is a server's, and no failure. */
export async function insist(client: Client, path: string): Promise<Answer> {
  for (let tries = 0; tries < PATIENCE.tries; tries++) {
    const answer = await client.ask('GET', path);
    if (answer && answer.status < 500) return answer;
    await delay(PATIENCE.everyMs);
  }
  throw new Error(`${path} is not answered`);
}
