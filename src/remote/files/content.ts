import {
  type ByteRange,
  type Content,
  type ContentBytes,
  type Result,
  isGone,
  ok,
  refuse,
} from '../../protocol/job-api.ts';
import { decodedPart } from '../../protocol/request-target.ts';
import type { Account } from '../calls/accounts.ts';
import { tooLargePart } from '../calls/connections.ts';
import { type RemoteClient, isAccountWide, pausedError } from '../calls/calls.ts';
import type { OpenAnswer, RequestHeaders } from '../calls/exchange.ts';
import { contentBytes, rangeHeader } from './content-bytes.ts';
import { AddressRefused, type ForeignLinks } from './foreign-links.ts';
import { invalidAnswer, lostError, unreachable, readRefusal } from '../calls/errors.ts';
import { redirectTarget } from '../calls/upstream-links.ts';
import type { ReadOutput } from './output-ids.ts';

type ContentOptions = RemoteClient & {
  readonly foreignLinks: ForeignLinks;
  readonly readOutput: ReadOutput;
};

type ContentRequest = {
  readonly account: Account;
  readonly assetId: string;
  readonly range?: ByteRange | undefined;
};

/** Returns the bytes, or a link to them. The key is sent to the upstream itself only. */
export function openRemoteContent(
  options: ContentOptions,
  request: ContentRequest,
): Promise<Result<Content>> {
  return options.readOutput(request.account, request.assetId, (assetId) =>
    openById(options, { ...request, assetId }),
  );
}

async function openById(
  options: ContentOptions,
  request: ContentRequest,
): Promise<Result<Content>> {
  const { range } = request;
  const fetch = (headers: RequestHeaders) => fetchContent(options, request, headers);
  const head = await fetch(range ? rangeHeader(range) : {});
  if (!head.ok) return head;
  if (head.value.status >= 300) return redirectContent(options, request, head.value);
  const bytes = contentBytes(options, head.value, { range, fetch });
  if (bytes) return bytes;
  // Some servers answer a part with an invalid one. Then all bytes are requested.
  return range ? openById(options, { ...request, range: undefined }) : invalidAnswer();
}

/** Makes one request. The answer is the bytes, or a redirect to them. */
async function fetchContent(
  { calls, links, limits, clock }: ContentOptions,
  { account, assetId }: ContentRequest,
  headers: RequestHeaders,
): Promise<Result<OpenAnswer>> {
  const path = contentPath(links, assetId);
  let answer: Result<OpenAnswer> = { ok: false, error: unreachable() };
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1) await clock.sleep(limits.readRetryMs);
    if (!(await account.gate.waitUntilOpen({ budgetMs: limits.readBudgetMs }))) {
      return { ok: false, error: pausedError(account) };
    }
    const head = await calls.open(account, {
      method: 'GET',
      path,
      headers: { accept: '*/*', ...headers },
    });
    if (!head.ok && tooLargePart(head.cause)) return { ok: false, error: lostError(head.cause) };
    if (!head.ok) continue;
    if (USABLE_STATUSES.has(head.status)) return ok(head);
    const error = calls.recordRefusal(account, await readRefusal(head));
    answer = { ok: false, error };
    if (!isAccountWide(error)) break;
  }
  return answer;
}

function contentPath(links: RemoteClient['links'], assetId: string): string {
  return links.target('assets', assetId, 'content');
}

const ATTEMPTS = 2;
const USABLE_STATUSES = new Set([200, 206, 301, 302, 303, 307, 308]);

/**
 * Returns the redirect. A link authorizes its holder, so one that contains the key is not passed
 * on.
 */
function redirectContent(
  options: ContentOptions,
  request: ContentRequest,
  { headers, body }: OpenAnswer,
): Result<Content> {
  body.destroy();
  const { key } = request.account;
  const { origin } = options.links;
  // `Location` may be relative to the requested URL, including the mount prefix.
  const contentUrl = new URL(contentPath(options.links, request.assetId), origin).href;
  const location = redirectTarget(headers.location, contentUrl);
  if (location === undefined) return invalidAnswer();
  const spellings = location + (decodedPart(location) ?? '');
  if (key !== undefined && spellings.includes(key)) return invalidAnswer();
  const refusalReason = options.foreignLinks.refusalReason(location);
  if (refusalReason !== undefined) return redirectRefused(options, refusalReason);
  return ok({
    kind: 'redirect',
    location,
    open: (range) => openLink(options, { ...request, location, range }),
  });
}

type LinkRequest = ContentRequest & { readonly location: string };

/** Reads the target of a link. An expired link is requested once more. */
async function openLink(
  options: ContentOptions,
  request: LinkRequest,
): Promise<Result<ContentBytes>> {
  const { range } = request;
  let { location } = request;

  async function fetchLinkOrRenew(headers: RequestHeaders): Promise<Result<OpenAnswer>> {
    const first = await fetchLink(options, location, headers);
    if (first.ok || first.error.status === 416) return first;
    const renewed = await renewedLink(options, request);
    if (renewed === undefined) return first;
    location = renewed;
    return fetchLink(options, location, headers);
  }

  const head = await fetchLinkOrRenew(range ? rangeHeader(range) : {});
  if (!head.ok) return head;
  const bytes = contentBytes(options, head.value, { range, fetch: fetchLinkOrRenew });
  if (bytes) return bytes;
  return range ? openLink(options, { ...request, location, range: undefined }) : invalidAnswer();
}

/** Fetches a link, whatever expiry it states: clocks differ. */
async function fetchLink(
  options: ContentOptions,
  location: string,
  headers: RequestHeaders,
): Promise<Result<OpenAnswer>> {
  const head = await options.foreignLinks.open(location, headers);
  if (head.ok && (head.status === 200 || head.status === 206)) return ok(head);
  if (head.ok) head.body.destroy();
  else if (head.cause instanceof AddressRefused)
    return redirectRefused(options, head.cause.message);
  return linkFailed(head.ok ? head.status : 0);
}

/** Requests the link of a file again; `undefined` when the upstream gives none. */
async function renewedLink(
  options: ContentOptions,
  { account, assetId }: ContentRequest,
): Promise<string | undefined> {
  const range = { start: 0, end: 0 };
  const answer = await openRemoteContent(options, { account, assetId, range });
  if (answer.ok && answer.value.kind === 'bytes') answer.value.stream.destroy();
  return answer.ok && answer.value.kind === 'redirect' ? answer.value.location : undefined;
}

/**
 * Refuses a redirect. The client does not learn the host, which is inside the operator's network.
 */
function redirectRefused({ log }: ContentOptions, reason: string): Result<never> {
  log.warn(
    { event: 'upstream.redirect_refused', reason },
    'does not follow the redirect of a file',
  );
  const message =
    'The job service keeps this file on a host that Holdover may not read. The operator of Holdover can allow it with --upstream-redirects.';
  return refuse(502, 'bad_upstream_response', message);
}

/**
 * Returns the error of a link. The storage host has error texts of its own, which mean nothing to a
 * v1 client.
 */
function linkFailed(status: number): Result<never> {
  if (isGone({ status })) return refuse(404, 'not_found', 'The file is gone.');
  if (status === 416) return refuse(416, 'range_not_satisfiable', 'The file has no such part.');
  return refuse(502, 'bad_upstream_response', 'The file could not be read where it is kept.');
}
