import { isoTime } from '../lib/clock.ts';
import type { AssetRow } from '../ledger/ledger.ts';
import type { Asset, Job, Output } from '../protocol/v2.ts';
import { isImported } from './imported-asset.ts';
import type { StoredOutput } from './jobs/worker-protocol.ts';

/** How long a link works at least as stated. Every answer has a new link. */
const LINK_LIFETIME_MS = 60 * 60 * 1000;

/** Returns a link to an asset's bytes, relative to the host. */
function contentLink(assetId: string, nowMs: number): { url: string; url_expires_at: string } {
  const url = `/api/v2/assets/${encodeURIComponent(assetId)}/content`;
  return { url, url_expires_at: isoTime(nowMs + LINK_LIFETIME_MS) };
}

/**
 * Returns an output as a job lists it, with new links. In the contract, `job_id` is the job that
 * lists it, even when the result came from the cache. The asset names the job that made the file.
 */
export function showOutput(output: StoredOutput, jobId: string, nowMs: number): Output {
  return Object.assign({ ...output, job_id: jobId }, contentLink(output.id, nowMs));
}

/** Returns an asset as v2 shows it, with a new link. */
export function showAsset(row: AssetRow, nowMs: number): Asset {
  return {
    id: row.id,
    hash: row.hash,
    size_bytes: row.sizeBytes,
    content_type: row.contentType,
    created_at: isoTime(row.createdAtMs),
    ...contentLink(row.id, nowMs),
    file_path: row.filePath,
    expires_at: row.expiresAtMs === null ? null : isoTime(row.expiresAtMs),
    job_id: isImported(row) ? null : row.jobId,
    ...(row.tagsJson !== null && { tags: JSON.parse(row.tagsJson) as readonly string[] }),
  };
}

/** Returns the links of a job. */
export function jobLinks(jobId: string): Job['urls'] {
  const self = `/api/v2/jobs/${encodeURIComponent(jobId)}`;
  return { self, events: `${self}/events`, cancel: `${self}/cancel` };
}
