import { s as createMutex } from "./concurrency-B9CCxp_8.js";
import { c as contentTypeFor } from "./server-DbarU6Tm.js";
import { f as uploadPathOf } from "./file-headers-Di12YiA_.js";
import { n as isGone, r as ok } from "./job-api-DUOBoLDS.js";
import { copyFile, link, rm } from "node:fs/promises";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
// src/app/upload-copies.ts
/** The prefix of the ids of copies. An embedded engine that used the data directory before has assets without it. */
const COPY_ID_PREFIX = "kept-";
const BATCH = 100;
/** The codes with which the service, or the engine behind it, cannot deliver the file now. */
const UNAVAILABLE_CODES = /* @__PURE__ */ new Set(["upstream_unreachable", "upstream_error"]);
/** Wraps a service: each upload to it is also copied into the data directory. */
function createUploadCopies(options) {
	const { jobs, ledger, blobs, spoolDir, log, now } = options;
	const inOrder = createMutex();
	async function storeCopy({ user }, { file, contentType, filePath }) {
		await blobs.moveIntoPlace(file);
		const { hash, sizeBytes } = file;
		const row = {
			id: `${COPY_ID_PREFIX}${randomUUID()}`,
			user,
			hash,
			sizeBytes,
			contentType,
			filePath,
			createdAtMs: now()
		};
		await ledger.assets.insert({
			...row,
			tagsJson: null,
			expiresAtMs: null,
			jobId: null
		});
		await blobs.markRecorded(hash);
		await enforceBudget();
	}
	async function enforceBudget() {
		for (const row of await ledger.assets.oldest(BATCH)) {
			if (await ledger.assets.totalBytes() <= options.budgetBytes) return;
			if (row.id.startsWith(COPY_ID_PREFIX)) await removeCopy(row);
		}
	}
	async function removeCopy({ id, hash }) {
		await blobs.markUnrecorded(hash);
		await ledger.assets.remove(id);
		if (await ledger.assets.countByHash(hash) === 0) await blobs.remove(hash);
		else await blobs.markRecorded(hash);
	}
	/** Resolves when the copies of all earlier uploads are stored. */
	const copiesStored = () => inOrder(async () => {});
	/** Logs a failed copy. The upload itself succeeded, and a copy is not guaranteed. */
	function logNotCopied(error) {
		log.warn({
			event: "uploads.not_kept",
			err: error
		}, "an upload could not be copied");
	}
	/** Links or copies the bytes of an upload to a new path. Returns `undefined` when a copy exists, or that fails. */
	async function linkUpload({ user }, { file }) {
		if (await ledger.assets.byHash(user, file.hash)) return void 0;
		const path = join(spoolDir, `${COPY_ID_PREFIX}${randomUUID()}`);
		try {
			await linkOrCopy(file.path, path);
			return {
				...file,
				path
			};
		} catch (error) {
			logNotCopied(error);
			return;
		}
	}
	async function storeLinked(caller, upload) {
		try {
			await inOrder(async () => {
				const { file } = upload;
				if (!await ledger.assets.byHash(caller.user, file.hash)) await storeCopy(caller, upload);
			});
		} catch (error) {
			logNotCopied(error);
		} finally {
			await rm(upload.file.path, { force: true });
		}
	}
	async function openCopy({ user }, assetId, range) {
		const row = await ledger.files.byAsset(user, assetId);
		if (!row || row.hash === null) return void 0;
		const size = await blobs.sizeOf(row.hash);
		if (size === void 0) return void 0;
		const start = range?.start ?? 0;
		const end = Math.min(range?.end ?? Infinity, size - 1);
		if (range && start > end) return void 0;
		const stream = await blobs.open(row.hash, size > 0 ? {
			start,
			end
		} : void 0);
		if (!stream) return void 0;
		const { contentType } = row;
		return {
			kind: "bytes",
			stream,
			contentType,
			totalBytes: size,
			...range && { range: {
				start,
				end
			} }
		};
	}
	async function content(caller, assetId, range) {
		const answer = await jobs.content(caller, assetId, range);
		if (answer.ok || !(isGone(answer.error) || UNAVAILABLE_CODES.has(answer.error.code))) return answer;
		await copiesStored();
		const copy = await openCopy(caller, assetId, range);
		return copy ? ok(copy) : answer;
	}
	async function spoolCopy(file) {
		const sizeBytes = file.hash === null ? void 0 : await blobs.sizeOf(file.hash);
		if (sizeBytes === void 0 || file.hash === null) return void 0;
		const path = join(spoolDir, `${COPY_ID_PREFIX}${randomUUID()}`);
		if (!await blobs.copyTo(file.hash, path)) return void 0;
		return {
			path,
			sizeBytes,
			hash: file.hash
		};
	}
	return {
		copiesStored,
		jobs: {
			...jobs,
			content,
			async createAsset(caller, upload) {
				const linked = await linkUpload(caller, upload);
				let isSent = false;
				try {
					const sent = await jobs.createAsset(caller, upload);
					isSent = sent.ok;
					return sent;
				} finally {
					if (linked && isSent) storeLinked(caller, {
						...upload,
						file: linked
					});
					else if (linked) await rm(linked.path, { force: true });
				}
			}
		},
		async reupload(caller, resolvedFile) {
			await copiesStored();
			const row = await ledger.files.get(caller.user, resolvedFile);
			const file = row?.hash === resolvedFile.hash ? await spoolCopy(resolvedFile) : void 0;
			if (!row || !file) return void 0;
			const upload = {
				file,
				contentType: contentTypeFor(resolvedFile.filename),
				filePath: uploadPathOf(resolvedFile),
				expectedHash: file.hash
			};
			const sent = await jobs.createAsset(caller, upload);
			if (!sent.ok) return void 0;
			await putUnlessChanged(ledger, row, sent.value.id);
			return sent.value.id;
		}
	};
}
async function putUnlessChanged({ files }, row, assetId) {
	if ((await files.get(row.user, row))?.assetId === row.assetId) await files.put({
		...row,
		assetId
	});
}
async function linkOrCopy(from, to) {
	await link(from, to).catch(() => copyFile(from, to));
}
export { createUploadCopies };
