import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { createHasher } from '../hash.ts';
import {
  type AssetUpload,
  type JobApi,
  type Result,
  type V2Error,
  isGone,
  ok,
  refuse,
} from '../wire/jobs.ts';
import { type Json, stringifyJson } from '../wire/json.ts';
import type { Asset } from '../wire/v2.ts';
import type { Account } from './accounts.ts';
import { type Calls, isAccountWide, paused } from './call.ts';
import { tooLargePart } from './bounds.ts';
import { type Reply, badAnswer, tooLargeAnswer, unreachable } from './errors.ts';
import type { Facts } from './facts.ts';
import type { RemoteLimits } from './limits.ts';
import type { UpstreamLinks } from './links.ts';
import { uploadBody } from './multipart-body.ts';
import type { Renewals } from './renewals.ts';
import { readAsset } from './schemas.ts';

type FromHash = Parameters<JobApi['assetFromHash']>[1];

/** The assets of one upstream, by account. */
export type RemoteAssets = {
  /** Sends bytes only when the upstream does not have them. */
  create(account: Account, upload: AssetUpload): Promise<Result<Asset>>;
  fromHash(account: Account, request: FromHash): Promise<Result<Asset>>;
  hasBlob(account: Account, hash: string): Promise<Result<boolean>>;
  /** The record; under another id where the upstream has given the same file a new one. */
  get(account: Account, assetId: string): Promise<Result<Asset>>;
  remove(account: Account, assetId: string): Promise<Result<null>>;
};

type Deps = {
  readonly calls: Calls;
  readonly links: UpstreamLinks;
  readonly facts: Facts;
  readonly renewals: Renewals;
  readonly limits: Pick<RemoteLimits, 'submitTimeoutMs' | 'uploadBudgetMs'>;
  readonly clock: () => number;
};

const ATTEMPTS = 2;

/** Who asks whether bytes are known uploads them right away if they are not. */
const ABSENT = { max: 1_000, ttl: 5_000 };
/** Some servers do nothing with a file before all of it is there; then they take their time. */
const SLOWEST_BYTES_PER_MS = 10_000;

export function createAssets(deps: Deps): RemoteAssets {
  const { calls, links, facts, limits, clock } = deps;
  /** Each is believed once, by the next upload. */
  const absent = new LRUCache<string, true>(ABSENT);

  async function look(account: Account, hash: string): Promise<Result<boolean>> {
    // Lookups are by exact text, and hashes are written small.
    const path = links.target('assets', 'by-hash', hash.toLowerCase());
    const answer = await calls.read(account, { method: 'HEAD', path });
    if (answer.ok) return ok(true);
    const { status } = answer.error;
    if (status === 405 || status === 501) facts.byHash = 'no';
    return status === 404 ? ok(false) : answer;
  }

  async function read(account: Account, assetId: string): Promise<Result<Asset>> {
    const path = links.target('assets', assetId);
    return assetOf(await calls.read(account, { method: 'GET', path }));
  }

  async function mint(account: Account, request: FromHash): Promise<Result<Asset>> {
    const { hash, filePath, tags, expiresInSeconds, idempotencyKey } = request;
    const body: { [name: string]: Json } = { hash: hash.toLowerCase() };
    if (filePath !== undefined) body['file_path'] = filePath;
    if (tags) body['tags'] = tags;
    if (expiresInSeconds !== undefined) body['expires_in'] = expiresInSeconds;
    const path = links.target('assets', 'from-hash');
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    const ask = { method: 'POST', path, body: stringifyJson(body), headers } as const;
    return assetOf(await calls.read(account, ask));
  }

  /** Bytes the upstream has need not travel; every doubt means that they do. */
  async function reuse(account: Account, upload: AssetUpload): Promise<Asset | undefined> {
    // A key is for the very request it comes with.
    if (facts.byHash === 'no' || upload.idempotencyKey !== undefined) return undefined;
    if (absent.delete(keyOf(account, upload.file.hash))) return undefined;
    const { file, filePath, tags, expiresInSeconds } = upload;
    const known = await look(account, file.hash);
    if (!known.ok || !known.value) return undefined;
    const minted = await mint(account, {
      hash: file.hash,
      filePath,
      ...(tags && { tags }),
      ...(expiresInSeconds !== undefined && { expiresInSeconds }),
    });
    // The record is new, the bytes are not.
    return minted.ok ? { ...minted.value, created_new: false } : undefined;
  }

  async function send(account: Account, upload: AssetUpload): Promise<Result<Asset>> {
    const { headers, body } = uploadBody(upload, upload.file.hash);
    const exchange = await calls.once(account, {
      method: 'POST',
      path: links.target('assets'),
      headers: { ...headers, 'idempotency-key': upload.idempotencyKey ?? randomUUID() },
      body,
      timeoutMs: limits.submitTimeoutMs + upload.file.sizeBytes / SLOWEST_BYTES_PER_MS,
    });
    if (exchange.kind === 'lost') {
      if (tooLargePart(exchange.cause)) return tooLargeAnswer();
      return { ok: false, error: unreachable() };
    }
    if (exchange.reply.status < 300) return assetOf(ok(exchange.reply));
    return { ok: false, error: calls.refusal(account, exchange.reply) };
  }

  async function create(account: Account, given: AssetUpload): Promise<Result<Asset>> {
    let upload = given;
    const deadlineMs = clock() + limits.uploadBudgetMs;
    const mayCall = () => account.gate.pass({ budgetMs: deadlineMs - clock() });
    let error: V2Error | undefined;
    for (let failures = 0; ;) {
      if (!(await mayCall())) break;
      const reused = await reuse(account, upload);
      if (reused) return ok(reused);
      // Asking may have been answered with a pause.
      if (!(await mayCall())) break;
      const sent = await send(account, upload);
      if (sent.ok) return sent;
      ({ error } = sent);
      if (isAccountWide(error)) continue;
      failures += 1;
      if (failures >= ATTEMPTS) return sent;
      const { code } = error;
      if (code !== 'hash_mismatch' && code !== 'upstream_unreachable') return sent;
      // Damaged on the way, or on our own disk: what is sent is what is there now.
      if (code === 'hash_mismatch') upload = await rehashed(upload);
      if (!hasExpectedHash(upload)) return mismatch();
    }
    return { ok: false, error: error ?? paused(account) };
  }

  return {
    async hasBlob(account, hash) {
      const known = await look(account, hash);
      if (known.ok && !known.value) absent.set(keyOf(account, hash), true);
      return known;
    },
    async fromHash(account, request) {
      const minted = await mint(account, request);
      if (!minted.ok && minted.error.status === 404) absent.set(keyOf(account, request.hash), true);
      return minted;
    },
    create: async (account, upload) =>
      hasExpectedHash(upload) ? create(account, upload) : mismatch(),
    async get(account, assetId) {
      const known = deps.renewals.current(account, assetId);
      const asset = await read(account, known);
      if (asset.ok || !isGone(asset.error)) return asset;
      const renewed = await deps.renewals.renew(account, known);
      return renewed === undefined ? asset : read(account, renewed);
    },
    async remove(account, assetId) {
      const path = links.target('assets', assetId);
      const answer = await calls.read(account, { method: 'DELETE', path });
      return answer.ok ? ok(null) : answer;
    },
  };
}

function keyOf({ id }: Account, hash: string): string {
  return `${id} ${hash.toLowerCase()}`;
}

function assetOf(answer: Result<Reply>): Result<Asset> {
  if (!answer.ok) return answer;
  const asset = readAsset(answer.value.json);
  return asset ? ok(asset) : badAnswer();
}

function hasExpectedHash({ expectedHash, file }: AssetUpload): boolean {
  return expectedHash === undefined || expectedHash.toLowerCase() === file.hash;
}

function mismatch(): Result<never> {
  return refuse(409, 'hash_mismatch', 'The bytes do not have the expected hash.');
}

async function rehashed(upload: AssetUpload): Promise<AssetUpload> {
  const hasher = createHasher();
  try {
    let sizeBytes = 0;
    for await (const chunk of createReadStream(upload.file.path)) {
      sizeBytes += (chunk as Buffer).length;
      hasher.update(chunk as Buffer);
    }
    return { ...upload, file: { ...upload.file, sizeBytes, hash: hasher.digest() } };
  } finally {
    hasher.discard();
  }
}
