import { isIP } from 'node:net';
import { Agent } from 'undici';
import {
  type Nearness,
  PUBLIC,
  guardedLookup,
  mayLead,
  nearnessOf,
  nearnessOfHost,
} from './addresses.ts';
import type { RemoteLimits } from './limits.ts';
import { redirectTarget } from './links.ts';
import type { WireAnswer } from './pool.ts';

/** Reads what the links of an upstream lead to, as a stranger: no credential, no header of a caller's. */
export type Elsewhere = {
  /** The head of the answer at the end of the link; a link that leads nowhere good is a lost call. */
  open(link: string, headers: Readonly<Record<string, string>>): Promise<WireAnswer>;
  close(): Promise<void>;
};

const MAX_HOPS = 3;

/** `origin` is the upstream's: what it may lead to depends on where it is itself. */
export function createElsewhere(
  origin: string,
  limits: Pick<RemoteLimits, 'connectTimeoutMs' | 'readTimeoutMs' | 'bodyIdleTimeoutMs'>,
): Elsewhere {
  const upstream = new URL(origin);
  let nearness: Nearness = PUBLIC;
  const connect = { timeout: limits.connectTimeoutMs, lookup: guardedLookup(() => nearness) };
  const agent = new Agent({ connect, pipelining: 1 });

  /** Why a link is not followed; names are judged when they are resolved. */
  function objection(url: URL): string | undefined {
    if (upstream.protocol === 'https:' && url.protocol !== 'https:') return 'it is not encrypted';
    if (url.host === upstream.host) return undefined;
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    if (isIP(host) === 0 || mayLead(nearness, nearnessOf(host))) return undefined;
    return 'it leads into a network that is not the upstream’s';
  }

  async function send(
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<WireAnswer & { ok: true }> {
    const {
      statusCode,
      headers: answered,
      body,
    } = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'GET',
      headers: { 'user-agent': 'holdover', 'accept-encoding': 'identity', ...headers },
      headersTimeout: limits.readTimeoutMs,
      bodyTimeout: limits.bodyIdleTimeoutMs,
    });
    body.on('error', () => {});
    return { ok: true, status: statusCode, headers: answered, body };
  }

  async function follow(
    link: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<WireAnswer> {
    nearness = await nearnessOfHost(upstream.hostname);
    let url = new URL(link);
    for (let hop = 1; hop <= MAX_HOPS; hop++) {
      const reason = objection(url);
      if (reason !== undefined) return lost(`a link was not followed: ${reason}`);
      const answer = await send(url, headers);
      if (answer.status < 300 || answer.status >= 400) return answer;
      answer.body.destroy();
      const next = redirectTarget(answer.headers.location, url.href);
      if (next === undefined) return lost('a link leads to no address');
      url = new URL(next);
    }
    return lost('a link leads on and on');
  }

  return {
    open: (link, headers) => follow(link, headers).catch((cause: Error) => asLost(cause)),
    close: () => agent.destroy(),
  };
}

function lost(message: string): WireAnswer {
  return asLost(new Error(message));
}

function asLost(cause: Error): WireAnswer {
  return { ok: false, wasSent: true, cause };
}
