import { randomUUID } from 'node:crypto';
import { hashFile } from '../../lib/hash.ts';
import {
  type AssetUpload,
  type Result,
  type StartedUpload,
  type UploadStart,
  type V2Error,
  ok,
  refuse,
  type JobApi,
} from '../../protocol/job-api.ts';
import type { Asset } from '../../protocol/v2.ts';
import type { Account } from '../calls/accounts.ts';
import { type RemoteClient, isAccountWide, pausedError } from '../calls/calls.ts';
import { lostError, type ServiceReply, invalidAnswer } from '../calls/errors.ts';
import { type MultipartBody, uploadBody } from './multipart-body.ts';
import { startUpload } from './started-upload.ts';
import type { ReadOutput } from './output-ids.ts';
import { readAsset } from '../schemas.ts';

const ATTEMPTS = 2;

/**
 * This many starts in a row have failed, and the same files were accepted when they were sent
 * whole: the upstream requires all fields before the file, or its length.
 */
const MAX_FAILED_STARTS = 2;

/**
 * The lowest speed of processing: some servers process a file only when it has arrived completely.
 */
const SLOWEST_BYTES_PER_MS = 10_000;

type FromHash = Parameters<JobApi['assetFromHash']>[1];

type UploadForm = MultipartBody & {
  readonly idempotencyKey: string;
  /** The size of the file, or an upper bound. */
  readonly sizeBytes: number;
  readonly signal?: AbortSignal;
};

/** The assets of one upstream, by account. */
export class RemoteAssets {
  readonly #client: RemoteClient;
  readonly #readOutput: ReadOutput;

  constructor(client: RemoteClient, readOutput: ReadOutput) {
    this.#client = client;
    this.#readOutput = readOutput;
  }

  /** Returns the record, under another id if the upstream has given the same file a new one. */
  get(account: Account, assetId: string): Promise<Result<Asset>> {
    const { calls, links } = this.#client;
    return this.#readOutput(account, assetId, async (currentId) => {
      const path = links.target('assets', currentId);
      return assetOf(await calls.callIdempotent(account, { method: 'GET', path }));
    });
  }

  async hasBlob(account: Account, hash: string): Promise<Result<boolean>> {
    const { calls, links } = this.#client;
    // Look-ups compare exact texts, and hashes are in lower case.
    const path = links.target('assets', 'by-hash', hash.toLowerCase());
    const answer = await calls.callIdempotent(account, { method: 'HEAD', path });
    if (answer.ok) return ok(true);
    return answer.error.status === 404 ? ok(false) : answer;
  }

  async fromHash(account: Account, request: FromHash): Promise<Result<Asset>> {
    const { calls, links } = this.#client;
    const { hash, filePath, tags, expiresInSeconds, idempotencyKey } = request;
    const body = JSON.stringify({
      hash: hash.toLowerCase(),
      file_path: filePath,
      tags,
      expires_in: expiresInSeconds,
    });
    const path = links.target('assets', 'from-hash');
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    const call = { method: 'POST', path, body, headers } as const;
    return assetOf(await calls.callIdempotent(account, call));
  }

  /** Sends a file while it arrives; `undefined` when it has to be complete first. */
  start(account: Account, upload: UploadStart): StartedUpload | undefined {
    const { capabilities } = this.#client;
    const mustWait = account.gate.waitMs() > 0 || account.credentialRefusal !== undefined;
    if (mustWait || capabilities.failedUploadStarts >= MAX_FAILED_STARTS) return undefined;
    const { atMostBytes: sizeBytes } = upload;
    return startUpload(upload, (body, signal) =>
      this.#post(account, { ...body, signal, sizeBytes, idempotencyKey: randomUUID() }),
    );
  }

  /** Finishes an upload. One whose start was of no use is sent like one that was never started. */
  async create(account: Account, upload: AssetUpload): Promise<Result<Asset>> {
    const { capabilities } = this.#client;
    if (!hasExpectedHash(upload)) return mismatch();
    const first = await upload.started?.finish(upload);
    if (first?.ok) {
      capabilities.failedUploadStarts = 0;
      return first;
    }
    const sent = await this.#sendWhole(account, upload);
    if (first && sent.ok && !isAccountWide(first.error)) capabilities.failedUploadStarts += 1;
    return sent;
  }

  async remove(account: Account, assetId: string): Promise<Result<null>> {
    const { calls, links } = this.#client;
    const path = links.target('assets', assetId);
    const answer = await calls.callIdempotent(account, { method: 'DELETE', path });
    return answer.ok ? ok(null) : answer;
  }

  /** Sends a whole file. Waits while the account is paused, and repeats a lost attempt once. */
  async #sendWhole(account: Account, given: AssetUpload): Promise<Result<Asset>> {
    const { limits, clock } = this.#client;
    let upload = given;
    const deadlineMs = clock.now() + limits.uploadBudgetMs;
    const mayCall = () => account.gate.waitUntilOpen({ budgetMs: deadlineMs - clock.now() });
    let error: V2Error | undefined;
    for (let failures = 0; ;) {
      if (!(await mayCall())) break;
      const sent = await this.#send(account, upload);
      if (sent.ok) return sent;
      ({ error } = sent);
      if (isAccountWide(error)) continue;
      failures += 1;
      if (failures >= ATTEMPTS) return sent;
      const { code } = error;
      if (code !== 'hash_mismatch' && code !== 'upstream_unreachable') return sent;
      // Damaged in transfer, or on this disk: the present bytes are sent.
      if (code === 'hash_mismatch') upload = await rehashed(upload);
      if (!hasExpectedHash(upload)) return mismatch();
      const arrived =
        code === 'upstream_unreachable' && (await this.#arrivedBytes(account, upload));
      if (arrived) return ok(arrived);
    }
    return { ok: false, error: error ?? pausedError(account) };
  }

  #send(account: Account, upload: AssetUpload): Promise<Result<Asset>> {
    const { file, idempotencyKey = randomUUID() } = upload;
    const { sizeBytes } = file;
    return this.#post(account, { ...uploadBody(upload, file.hash), idempotencyKey, sizeBytes });
  }

  /** Makes an asset of bytes that have arrived although the answer was lost. */
  async #arrivedBytes(account: Account, upload: AssetUpload): Promise<Asset | undefined> {
    // A key belongs to exactly the request that it comes with.
    if (upload.idempotencyKey !== undefined) return undefined;
    const { hash } = upload.file;
    const known = await this.hasBlob(account, hash);
    if (!known.ok || !known.value) return undefined;
    const created = await this.fromHash(account, { ...upload, hash });
    return created.ok ? created.value : undefined;
  }

  async #post(account: Account, form: UploadForm): Promise<Result<Asset>> {
    const { calls, links, limits } = this.#client;
    const { headers, body, idempotencyKey, sizeBytes, signal } = form;
    const exchange = await calls.once(account, {
      method: 'POST',
      path: links.target('assets'),
      headers: { ...headers, 'idempotency-key': idempotencyKey },
      body,
      timeoutMs: limits.submitTimeoutMs + sizeBytes / SLOWEST_BYTES_PER_MS,
      ...(signal && { signal }),
    });
    if (!exchange.ok) return { ok: false, error: lostError(exchange.cause) };
    if (exchange.reply.status < 300) return assetOf(ok(exchange.reply));
    return { ok: false, error: calls.recordRefusal(account, exchange.reply) };
  }
}

function hasExpectedHash({ expectedHash, file }: AssetUpload): boolean {
  return expectedHash === undefined || expectedHash.toLowerCase() === file.hash;
}

function mismatch(): Result<never> {
  return refuse(409, 'hash_mismatch', 'The bytes do not have the expected hash.');
}

async function rehashed(upload: AssetUpload): Promise<AssetUpload> {
  const { path } = upload.file;
  return { ...upload, file: { path, ...(await hashFile(path)) } };
}

/** Returns the asset in an answer. */
function assetOf(answer: Result<ServiceReply>): Result<Asset> {
  if (!answer.ok) return answer;
  const asset = readAsset(answer.value.json);
  return asset ? ok(asset) : invalidAnswer();
}
