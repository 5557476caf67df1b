import { LRUCache } from 'lru-cache';
import { type AssetUpload, type JobApi, type Result, ok } from '../../protocol/job-api.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import type { Asset } from '../../protocol/v2.ts';
import type { Account } from '../remote-calls/accounts.ts';
import type { RemoteClient } from '../remote-calls/calls.ts';
import { type Reply, invalidAnswer } from '../remote-calls/errors.ts';
import { readAsset } from '../remote/schemas.ts';

export type FromHash = Parameters<JobApi['assetFromHash']>[1];

/** A caller that asks whether bytes exist uploads them right away when they do not. */
const ABSENT_CACHE = { max: 1_000, ttl: 5_000 };

/** The bytes that one upstream has already, by their hash. */
export function createKnownBytes({ calls, links, capabilities }: RemoteClient) {
  /** Each entry is used once, by the next upload. */
  const recentlyAbsent = new LRUCache<string, true>(ABSENT_CACHE);

  async function lookUpHash(account: Account, hash: string): Promise<Result<boolean>> {
    // Lookups are by exact text, and hashes are written small.
    const path = links.target('assets', 'by-hash', hash.toLowerCase());
    const answer = await calls.callIdempotent(account, { method: 'HEAD', path });
    if (answer.ok) return ok(true);
    const { status } = answer.error;
    if (status === 405 || status === 501) capabilities.hashLookup = 'no';
    return status === 404 ? ok(false) : answer;
  }

  async function createFromHash(account: Account, request: FromHash): Promise<Result<Asset>> {
    const { hash, filePath, tags, expiresInSeconds, idempotencyKey } = request;
    const body: { [name: string]: Json } = { hash: hash.toLowerCase() };
    if (filePath !== undefined) body['file_path'] = filePath;
    if (tags) body['tags'] = tags;
    if (expiresInSeconds !== undefined) body['expires_in'] = expiresInSeconds;
    const path = links.target('assets', 'from-hash');
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    const call = { method: 'POST', path, body: stringifyJson(body), headers } as const;
    return assetOf(await calls.callIdempotent(account, call));
  }

  /** Bytes the upstream already has are not sent. Every doubt means that they are sent. */
  async function reuseBytes(account: Account, upload: AssetUpload): Promise<Asset | undefined> {
    // A key is for the very request it comes with.
    if (capabilities.hashLookup === 'no' || upload.idempotencyKey !== undefined) return undefined;
    if (recentlyAbsent.delete(keyOf(account, upload.file.hash))) return undefined;
    const { file, filePath, tags, expiresInSeconds } = upload;
    const known = await lookUpHash(account, file.hash);
    if (!known.ok || !known.value) return undefined;
    const created = await createFromHash(account, {
      hash: file.hash,
      filePath,
      ...(tags && { tags }),
      ...(expiresInSeconds !== undefined && { expiresInSeconds }),
    });
    // The record is new, the bytes are not.
    return created.ok ? { ...created.value, created_new: false } : undefined;
  }

  return {
    /** The same for an upload; `undefined` when its bytes have to be sent. */
    reuse: reuseBytes,
    async has(account: Account, hash: string): Promise<Result<boolean>> {
      const known = await lookUpHash(account, hash);
      if (known.ok && !known.value) recentlyAbsent.set(keyOf(account, hash), true);
      return known;
    },
    /** Makes an asset of bytes that the upstream has. */
    async createAsset(account: Account, request: FromHash): Promise<Result<Asset>> {
      const created = await createFromHash(account, request);
      if (!created.ok && created.error.status === 404)
        recentlyAbsent.set(keyOf(account, request.hash), true);
      return created;
    },
  };
}

function keyOf({ id }: Account, hash: string): string {
  return `${id} ${hash.toLowerCase()}`;
}

/** The asset of an answer. */
export function assetOf(answer: Result<Reply>): Result<Asset> {
  if (!answer.ok) return answer;
  const asset = readAsset(answer.value.json);
  return asset ? ok(asset) : invalidAnswer();
}
