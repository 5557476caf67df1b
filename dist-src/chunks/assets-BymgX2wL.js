import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { i as refuse, r as ok } from "./job-api-DUOBoLDS.js";
import { n as hasHalfCharacter, t as hasControlCharacter } from "./control-characters-CRFC75pz.js";
import { i as isImported } from "./store-DmnZ7I1J.js";
import { rm } from "node:fs/promises";
import { createHash, randomUUID } from "node:crypto";
// src/upstreams/job-links.ts
/** How long a link works at least as stated. Every answer has a new link. */
const LINK_LIFETIME_MS = 36e5;
/** A time as v2 writes it. */
function isoTime(ms) {
	return new Date(ms).toISOString();
}
/** Returns a link to an asset's bytes, relative to the host. */
function contentLink(assetId, nowMs) {
	return {
		url: `/api/v2/assets/${encodeURIComponent(assetId)}/content`,
		url_expires_at: isoTime(nowMs + LINK_LIFETIME_MS)
	};
}
/**
* Returns an output as a job lists it, with new links. In the contract, `job_id` is the job that
* lists it, even when the result came from the cache. The asset names the job that made the file.
*/
function showOutput(output, jobId, nowMs) {
	return Object.assign({
		...output,
		job_id: jobId
	}, contentLink(output.id, nowMs));
}
/** Returns the links of a job. */
function jobLinks(jobId) {
	const self = `/api/v2/jobs/${encodeURIComponent(jobId)}`;
	return {
		self,
		events: `${self}/events`,
		cancel: `${self}/cancel`
	};
}
// src/upstreams/assets/upload-checks.ts
const MIN_EXPIRES_IN_S = 60;
const MAX_EXPIRES_IN_S = 604800;
const MAX_FILE_PATH_CHARS = 1024;
/** Returns why an upload is refused, if it is. Nothing has been stored before this check. */
function checkUpload(upload) {
	const { expectedHash, file } = upload;
	if (expectedHash !== void 0 && expectedHash.toLowerCase() !== file.hash) return refuse(409, "hash_mismatch", "the bytes do not have the expected hash");
	return checkPathAndLifetime(upload);
}
/** Returns why a record with this path and lifetime is refused, if it is. */
function checkPathAndLifetime(asset) {
	const { filePath, expiresInSeconds: seconds } = asset;
	if (filePath !== void 0 && !isRelativePath(filePath)) return refuse(422, "invalid_request", "file_path must be a relative path without special segments and broken characters");
	if (seconds === void 0) return void 0;
	if (Number.isInteger(seconds) && seconds >= MIN_EXPIRES_IN_S && seconds <= MAX_EXPIRES_IN_S) return void 0;
	return refuse(422, "invalid_request", `expires_in must be a whole number of seconds from ${`${MIN_EXPIRES_IN_S} to ${MAX_EXPIRES_IN_S}`}`);
}
/**
* True for a relative path. Some systems use the backslash as a separator, so it is refused like
* the special segments.
*/
function isRelativePath(filePath) {
	if (filePath.length > MAX_FILE_PATH_CHARS || filePath.includes("\\")) return false;
	if (hasHalfCharacter(filePath) || filePath.includes("�") || hasControlCharacter(filePath)) return false;
	return filePath.split("/").every((segment) => ![
		"",
		".",
		".."
	].includes(segment));
}
// src/upstreams/assets/idempotency.ts
/**
* Returns the idempotency key of a request for an asset, with a fingerprint of everything that
* distinguishes the request: the operation, the bytes and the record. `undefined`: the request has
* no key.
*/
function keyedRequest(operation, hash, { idempotencyKey: key, contentType, filePath, tags, expiresInSeconds }) {
	if (key === void 0) return void 0;
	const parts = [
		operation,
		hash,
		contentType,
		filePath,
		tags,
		expiresInSeconds
	];
	return {
		key,
		fingerprint: createHash("sha256").update(JSON.stringify(parts)).digest("hex")
	};
}
/**
* A retry within this time after the first answer gets the same links. A later one gets new links.
*/
const SAME_LINKS_WITHIN_MS = 9e5;
/**
* Answers a request whose key was used before. The first answer is repeated, with links of the time
* that `show` gets. A different request is refused.
*/
function repeatAnswer({ fingerprint }, first, { nowMs, show }) {
	if (first.fingerprint !== fingerprint) return refuseReusedKey(DIFFERENT_REQUEST);
	if (!show) return refuseReusedKey(ASSET_GONE);
	const shown = show(nowMs - first.claimedAtMs < SAME_LINKS_WITHIN_MS ? first.claimedAtMs : nowMs);
	return ok({
		...shown,
		created_new: first.createdNew
	});
}
const DIFFERENT_REQUEST = "This Idempotency-Key was sent with a different request: use a new one.";
const ASSET_GONE = "The asset that this Idempotency-Key made is gone: use a new one.";
function refuseReusedKey(message) {
	return refuse(422, "idempotency_key_reuse", message);
}
// src/upstreams/assets/assets.ts
const NO_IDS = /* @__PURE__ */ new Set();
/**
* The asset calls of the port, by user, over content-addressed files: every create makes a record
* of its own, and equal bytes are stored once.
*/
var Assets = class {
	#options;
	/** The ids that jobs need which are being accepted. */
	#held = /* @__PURE__ */ new Set();
	constructor(options) {
		this.#options = options;
	}
	/** Creates an asset. The file of the upload is moved or removed, even when this throws. */
	async create(user, upload) {
		try {
			return checkUpload(upload) ?? await this.#createOnce(user, upload);
		} finally {
			await rm(upload.file.path, { force: true });
		}
	}
	async #createOnce(user, upload) {
		const keyed = keyedRequest("upload", upload.file.hash, upload);
		return await this.#options.withLock(upload.file.hash, async () => {
			return await this.#findFirstAnswer(user, keyed) ?? await this.#store(user, upload, keyed);
		});
	}
	async fromHash(user, request) {
		const refusal = checkPathAndLifetime(request);
		if (refusal) return refusal;
		const keyed = keyedRequest("from-hash", request.hash, request);
		const { ledger, blobs, withLock } = this.#options;
		return await withLock(request.hash, async () => {
			const first = await this.#findFirstAnswer(user, keyed);
			const created = first ?? await this.#recordKnownBytes(user, request, keyed);
			if (!created.ok || await blobs.sizeOf(request.hash) !== void 0) return created;
			if (!first) await ledger.assets.remove(created.value.id);
			return noSuchBytes();
		});
	}
	async hasBlob(user, hash) {
		return ok(await this.#findByHash(user, hash) !== void 0);
	}
	async get(user, id) {
		const row = await this.find(user, id);
		return row ? ok(showAsset(row, this.#nowMs())) : notFound();
	}
	async remove(user, id) {
		const { ledger } = this.#options;
		const row = await this.find(user, id);
		if (!row) return notFound();
		if (!(row.jobId !== null && await ledger.jobs.get(row.jobId) !== void 0) && await this.removeUnused(row, this.#options.isInUse)) return ok(null);
		return refuse(409, "asset_in_use", "this asset is in use and cannot be deleted");
	}
	async content(user, id, range) {
		const row = await this.find(user, id);
		return row ? await readContent(row, this.#options.blobs, range) : notFound();
	}
	/** Returns the row of an id of this user that has not expired; ids in `kept` may have expired. */
	async find(user, id, kept = NO_IDS) {
		const row = await this.#options.ledger.assets.get(id);
		return row?.user === user && (kept.has(row.id) || this.#isLive(row)) ? row : void 0;
	}
	async findByPath(user, filePath, kept = NO_IDS) {
		const row = await this.#options.ledger.assets.byFilePath(user, filePath);
		return row && (kept.has(row.id) || this.#isLive(row)) ? row : void 0;
	}
	/** Removes a record, and its bytes when no other record shares them. */
	async removeAsset(row) {
		await this.removeUnused(row, async () => false);
	}
	/** Removes the asset. `false`: an unfinished job reads it, so it stays. */
	removeUnused({ id, hash }, isInUse) {
		const { ledger, blobs, withLock } = this.#options;
		return withLock(hash, async () => {
			if ([...this.#held].some((ids) => ids.has(id)) || await isInUse(id)) return false;
			await blobs.markUnrecorded(hash);
			await ledger.assets.remove(id);
			await removeBlobIfUnused(hash, this.#options);
			return true;
		});
	}
	/** Keeps assets until the job that reads them is recorded. `missing`: those that are gone. */
	async hold(ids) {
		const { ledger, withLock } = this.#options;
		this.#held.add(ids);
		const missing = [];
		for (const id of ids) {
			const row = await ledger.assets.get(id);
			if (!(row && await withLock(row.hash, () => ledger.assets.get(id)))) missing.push(id);
		}
		return {
			missing,
			release: () => void this.#held.delete(ids)
		};
	}
	async #store(user, upload, keyed) {
		const { blobs } = this.#options;
		const { file } = upload;
		const createdNew = await this.#findByHash(user, file.hash) === void 0;
		await blobs.moveIntoPlace(file);
		reached("after-bytes-stored");
		const row = newRow(user, {
			...upload,
			...file
		}, this.#nowMs());
		const created = await this.#record(row, {
			keyed,
			createdNew
		});
		reached("after-asset-recorded");
		await (keyed ? removeBlobIfUnused(row.hash, this.#options) : blobs.markRecorded(row.hash));
		return created;
	}
	async #recordKnownBytes(user, request, keyed) {
		const existing = await this.#findByHash(user, request.hash);
		if (!existing) return noSuchBytes();
		const row = newRow(user, {
			...existing,
			...request
		}, this.#nowMs());
		return await this.#record(row, {
			keyed,
			createdNew: false
		});
	}
	/** Records the asset. Another process, or a request for other bytes, may have claimed the key. */
	async #record(row, { keyed, createdNew }) {
		const claim = keyed && {
			...keyed,
			createdNew
		};
		const first = await this.#options.ledger.assets.insert(row, claim);
		if (keyed && first) return await this.#repeatFirstAnswer(keyed, row.user, first);
		return ok({
			...showAsset(row, row.createdAtMs),
			created_new: createdNew
		});
	}
	async #findFirstAnswer(user, keyed) {
		const first = keyed && await this.#options.ledger.keys.ofAsset(user, keyed.key);
		return keyed && first && await this.#repeatFirstAnswer(keyed, user, first);
	}
	async #repeatFirstAnswer(keyed, user, first) {
		const row = await this.find(user, first.assetId);
		const show = row && ((atMs) => showAsset(row, atMs));
		return repeatAnswer(keyed, first, {
			nowMs: this.#nowMs(),
			show
		});
	}
	async #findByHash(user, hash) {
		const row = await this.#options.ledger.assets.byHash(user, hash);
		return row && this.#isLive(row) ? row : void 0;
	}
	#isLive({ expiresAtMs }) {
		return expiresAtMs === null || expiresAtMs > this.#nowMs();
	}
	#nowMs() {
		return this.#options.clock.now();
	}
};
/** Removes bytes without a record, if this ledger has recorded or marked them before. */
async function removeBlobIfUnused(hash, { ledger, blobs }) {
	await (await ledger.assets.countByHash(hash) === 0 ? blobs.remove(hash) : blobs.markRecorded(hash));
}
async function readContent(row, blobs, range) {
	const end = Math.min(range?.end ?? Infinity, row.sizeBytes - 1);
	if (range && (range.start > end || range.start < 0)) {
		const details = { size_bytes: row.sizeBytes };
		return refuse(416, "range_not_satisfiable", "the range lies outside of the content", { details });
	}
	const stream = await blobs.open(row.hash, range && {
		start: range.start,
		end
	});
	if (!stream) return refuse(404, "not_found", "the bytes of this asset are gone");
	return ok({
		kind: "bytes",
		stream,
		contentType: row.contentType,
		totalBytes: row.sizeBytes,
		etag: `"${row.hash}"`,
		...range && { range: {
			start: range.start,
			end
		} }
	});
}
function newRow(user, asset, nowMs) {
	return {
		id: randomUUID(),
		user,
		hash: asset.hash,
		sizeBytes: asset.sizeBytes,
		contentType: asset.contentType,
		filePath: asset.filePath,
		tagsJson: asset.tags ? JSON.stringify(asset.tags) : null,
		createdAtMs: nowMs,
		expiresAtMs: asset.expiresInSeconds === void 0 ? null : nowMs + asset.expiresInSeconds * 1e3,
		jobId: null
	};
}
function showAsset(row, nowMs) {
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
		...row.tagsJson !== null && { tags: JSON.parse(row.tagsJson) }
	};
}
function noSuchBytes() {
	return refuse(404, "blob_not_found", "no bytes with this hash");
}
function notFound() {
	return refuse(404, "not_found", "no such asset");
}
export { showOutput as a, jobLinks as i, removeBlobIfUnused as n, isoTime as r, Assets as t };
