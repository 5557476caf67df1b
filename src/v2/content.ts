import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../telemetry.ts';
import {
  type ByteRange,
  type Content,
  type ContentBytes,
  type Result,
  isGone,
  ok,
  refuse,
} from '../wire/jobs.ts';
import type { Account } from './accounts.ts';
import { tooLargePart } from './bounds.ts';
import { type Calls, isAccountWide, paused } from './call.ts';
import { type BytesDeps, type Head, bytesOf, rangeHeader } from './content-bytes.ts';
import { PlaceRefused } from './addresses.ts';
import type { Elsewhere } from './elsewhere.ts';
import { badAnswer, tooLargeAnswer, unreachable } from './errors.ts';
import type { RemoteLimits } from './limits.ts';
import { type UpstreamLinks, redirectTarget } from './links.ts';
import { readRefusal } from './refusal.ts';
import type { Renewals } from './renewals.ts';

type Deps = BytesDeps & {
  readonly calls: Calls;
  readonly links: UpstreamLinks;
  readonly elsewhere: Elsewhere;
  readonly renewals: Renewals;
  readonly limits: Pick<RemoteLimits, 'readBudgetMs' | 'readRetryMs'>;
  readonly log: Pick<Logger, 'warn'>;
};

type Wanted = { readonly account: Account; readonly assetId: string; readonly range?: ByteRange };

type Headers = Readonly<Record<string, string>>;

/** Bytes as they come, or where they are; with the key only the upstream itself is asked. */
export async function openContent(deps: Deps, given: Wanted): Promise<Result<Content>> {
  const { account, range } = given;
  const assetId = deps.renewals.current(account, given.assetId);
  const wanted = { ...given, assetId };
  const answer = await ask(deps, wanted, range && rangeHeader(range));
  if (!answer.ok) {
    const renewed = isGone(answer.error) && (await deps.renewals.renew(account, assetId));
    return renewed ? openContent(deps, { ...wanted, assetId: renewed }) : answer;
  }
  const head = answer.value;
  if (head.status >= 300) return linkOf(deps, wanted, head);
  const again = async (headers: Headers) => {
    const more = await ask(deps, wanted, headers);
    return more.ok && more.value.status < 300 ? more.value : undefined;
  };
  const bytes = bytesOf(deps, head, { range, again });
  if (bytes) return bytes;
  // What some servers call a part is none: then all of it.
  return range ? openContent(deps, { account, assetId }) : badAnswer();
}

/** The answer to one question: bytes, or where they are. */
async function ask(
  { calls, links, limits }: Deps,
  { account, assetId }: Wanted,
  headers: Headers = {},
): Promise<Result<Head>> {
  const path = contentPath({ links }, assetId);
  let answer: Result<Head> = { ok: false, error: unreachable() };
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1) await delay(limits.readRetryMs);
    if (!(await account.gate.pass({ budgetMs: limits.readBudgetMs }))) {
      return { ok: false, error: paused(account) };
    }
    const head = await calls.open(account, {
      method: 'GET',
      path,
      headers: { accept: '*/*', ...headers },
    });
    if (!head.ok && tooLargePart(head.cause)) return tooLargeAnswer();
    if (!head.ok) continue;
    if (BRINGS.has(head.status)) return ok(head);
    const error = calls.refusal(account, await readRefusal(head));
    answer = { ok: false, error };
    if (!isAccountWide(error)) break;
  }
  return answer;
}

function contentPath({ links }: Pick<Deps, 'links'>, assetId: string): string {
  return links.target('assets', assetId, 'content');
}

const ATTEMPTS = 2;
const BRINGS = new Set([200, 206, 301, 302, 303, 307, 308]);

/** A link authorizes whoever holds it; one that holds the key itself is nothing to hand out. */
function linkOf(deps: Deps, wanted: Wanted, { headers, body }: Head): Result<Content> {
  body.destroy();
  const { key } = wanted.account;
  const { origin } = deps.links;
  // Relative to what was asked for, mount prefix and all.
  const asked = new URL(contentPath(deps, wanted.assetId), origin).href;
  const location = redirectTarget(headers.location, asked);
  if (location === undefined) return badAnswer();
  if (key !== undefined && decoded(location).includes(key)) return badAnswer();
  const objection = deps.elsewhere.objection(location);
  if (objection !== undefined) return refusedPlace(deps, objection);
  return ok({
    kind: 'redirect',
    location,
    open: (range) => openLink(deps, { ...wanted, location, range }),
  });
}

function decoded(text: string): string {
  try {
    return text + decodeURIComponent(text);
  } catch {
    return text;
  }
}

type Linked = Omit<Wanted, 'range'> & {
  readonly location: string;
  readonly range: ByteRange | undefined;
};

/** Reads what a link leads to; one that has expired meanwhile is asked for once more. */
async function openLink(deps: Deps, wanted: Linked): Promise<Result<ContentBytes>> {
  const { account, assetId, range } = wanted;
  let { location } = wanted;

  async function renew(): Promise<boolean> {
    const answer = await openContent(deps, { account, assetId, range: { start: 0, end: 0 } });
    if (answer.ok && answer.value.kind === 'bytes') answer.value.stream.destroy();
    if (!answer.ok || answer.value.kind !== 'redirect') return false;
    ({ location } = answer.value);
    return true;
  }

  /** Clocks differ, so a link is tried whatever it says of its end. */
  async function visit(headers: Headers): Promise<Result<Head>> {
    const head = await deps.elsewhere.open(location, headers);
    if (head.ok && (head.status === 200 || head.status === 206)) return ok(head);
    if (head.ok) head.body.destroy();
    else if (head.cause instanceof PlaceRefused) return refusedPlace(deps, head.cause.message);
    return refusedThere(head.ok ? head.status : 0);
  }

  async function visitTwice(headers: Headers): Promise<Result<Head>> {
    const first = await visit(headers);
    if (first.ok || first.error.status === 416) return first;
    return (await renew()) ? visit(headers) : first;
  }

  const head = await visitTwice(range ? rangeHeader(range) : {});
  if (!head.ok) return head;
  const again = async (headers: Headers) => {
    const more = await visitTwice(headers);
    return more.ok ? more.value : undefined;
  };
  const bytes = bytesOf(deps, head.value, { range, again });
  if (bytes) return bytes;
  return range ? openLink(deps, { ...wanted, location, range: undefined }) : badAnswer();
}

/** The client is not told where that is: it is a place of the operator's network. */
function refusedPlace({ log }: Pick<Deps, 'log'>, reason: string): Result<never> {
  log.warn({ event: 'upstream.redirect_refused', reason }, 'a redirect of a file is not followed');
  const message =
    'The job service keeps this file on a host that Holdover may not read. The operator of Holdover can allow it with --upstream-redirects.';
  return refuse(502, 'bad_upstream_response', message);
}

/** Whoever keeps the files has its own words, which say nothing to a client of ours. */
function refusedThere(status: number): Result<never> {
  if (isGone({ status })) return refuse(404, 'not_found', 'The file is gone.');
  if (status === 416) return refuse(416, 'range_not_satisfiable', 'The file has no such part.');
  return refuse(502, 'bad_upstream_response', 'The file could not be read where it is kept.');
}
