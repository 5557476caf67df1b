import { t as __exportAll } from "./rolldown-runtime-BJohB4LM.js";
import { n as bucketUrl } from "./files-IQBw9w4W.js";
import { i as monotonicClock, o as systemClock } from "./event-loop-BDDWO5Ig.js";
import { r as hashOf, t as createHasher } from "./hash-DYRd5MjV.js";
import { t as readAtMost } from "./read-at-most-0g521mbO.js";
import { i as hexOf, r as hashOfAside, t as BLOB_HASH } from "./blob-paths-BiKJO-Db.js";
import { a as mayPass, i as isAbsence, n as WrongBytes, o as refusalTextOf, r as isAboutCredentials, t as BucketError } from "./errors-omDftraz.js";
import { c as createSemaphore, l as forEachConcurrently } from "./concurrency-DwpPd4rK.js";
import { t as resumedBytes } from "./resumed-bytes-Blv7-93E.js";
import { open, rm } from "node:fs/promises";
import { createWriteStream } from "node:fs";
import { LRUCache } from "lru-cache";
import { randomUUID } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { Transform, pipeline as pipeline$1 } from "node:stream";
import { Pool } from "undici";
// src/upstreams/bucket/bucket-blobs.ts
/**
* The keys below the prefix. Their names are those of a data folder, so that each can be copied to
* the other.
*/
const FOLDERS = {
	blobs: "blobs/",
	markers: "blobs-unrecorded/",
	aside: "blobs-leaving/",
	staging: "staging/"
};
/** How long a job waits for an unavailable bucket before it fails. */
const JOB_PATIENCE = { retryForMs: 6e4 };
/** The limits for inputs of recent jobs in memory: of all together, and of each. */
const CACHE_BYTES = {
	total: 64 * 2 ** 20,
	each: 32 * 2 ** 20
};
const ABANDONED_AFTER_MS = 864e5;
/** The contract says "at most an hour": an old link found in a history or a log opens nothing. */
const LINK_LIFETIME_S = 3600;
const MAX_READ_BYTES = 2 ** 32;
const NOTHING = /* @__PURE__ */ new Uint8Array();
/**
* Creates blobs in a bucket. Each one is an object whose key is its hash. S3 shows an object only
* when all its bytes have arrived. Every part is sent with its SHA-256, which the server compares.
*/
function createBucketBlobs({ client, objects, staged, clock }) {
	const recentInputs = new LRUCache({
		maxSize: CACHE_BYTES.total,
		maxEntrySize: CACHE_BYTES.each,
		sizeCalculation: (bytes) => bytes.length + 1
	});
	const markRecorded = (hash) => objects.remove(markerKey(hash));
	const markUnrecorded = async (hash, patience) => void await objects.put(markerKey(hash), NOTHING, patience);
	/**
	* Stores bytes once. Existing bytes without a record may belong to another ledger, so this one
	* must never remove them.
	*/
	async function storeOnce({ hash, sizeBytes }, store, patience) {
		const size = await objects.head(blobKey(hash), patience);
		if (size === sizeBytes) return;
		if (size === void 0) await markUnrecorded(hash, patience);
		await store();
	}
	async function readAll(hash) {
		const stream = await objects.open(blobKey(hash), void 0, JOB_PATIENCE);
		if (!stream) return void 0;
		const bytes = await readAtMost(MAX_READ_BYTES, stream);
		if (bytes === void 0) throw new RangeError("Array buffer allocation failed");
		if (hashOf(bytes) !== hash) throw wrongBytes(hash);
		return bytes;
	}
	return {
		blobsDir: void 0,
		pathOf: () => void 0,
		markRecorded,
		markUnrecorded: (hash) => markUnrecorded(hash),
		async moveIntoPlace(file) {
			const key = blobKey(file.hash);
			await storeOnce(file, async () => {
				if (!await staged.finish(file, key)) await objects.putFile(key, file);
			});
			staged.cancel(file);
			await rm(file.path, { force: true });
		},
		put: (hash, bytes) => storeOnce({
			hash,
			sizeBytes: bytes.length
		}, () => objects.putBytes(blobKey(hash), bytes, JOB_PATIENCE), JOB_PATIENCE),
		sync: async () => {},
		isInPlace: async (hash) => await objects.head(blobKey(hash), JOB_PATIENCE) !== void 0,
		sizeOf: (hash) => objects.head(blobKey(hash)),
		async open(hash, range) {
			const stream = await objects.open(blobKey(hash), range);
			return stream && range === void 0 ? verified(stream, hash) : stream;
		},
		async read(hash) {
			const recent = recentInputs.get(hash);
			if (recent) return recent;
			const bytes = await readAll(hash);
			if (bytes) recentInputs.set(hash, bytes);
			return bytes;
		},
		async copyTo(hash, path) {
			const stream = await objects.open(blobKey(hash));
			if (!stream) return false;
			await pipeline(verified(stream, hash), createWriteStream(path, {
				flags: "wx",
				mode: 384
			}));
			return true;
		},
		async remove(hash) {
			recentInputs.delete(hash);
			await objects.remove(blobKey(hash));
			await markRecorded(hash);
		},
		async *listUnrecorded() {
			for await (const { key, modifiedAtMs } of objects.list(FOLDERS.markers)) {
				const hash = `blake3:${key.slice(FOLDERS.markers.length)}`;
				if (BLOB_HASH.test(hash)) yield {
					hash,
					sinceMs: modifiedAtMs
				};
			}
		},
		async *list() {
			for await (const { key, sizeBytes, modifiedAtMs } of objects.list(FOLDERS.blobs)) {
				const hash = `blake3:${key.slice(FOLDERS.blobs.length + 3)}`;
				if (BLOB_HASH.test(hash) && blobKey(hash) === key) yield {
					hash,
					sizeBytes,
					modifiedAtMs,
					placedAtMs: modifiedAtMs
				};
			}
		},
		async setAside(hash) {
			const name = `${hexOf(hash)}.${randomUUID()}`;
			if (!await objects.copy(blobKey(hash), FOLDERS.aside + name)) return void 0;
			recentInputs.delete(hash);
			await objects.remove(blobKey(hash));
			return name;
		},
		async putBack(name) {
			const hash = hashOfAside(name);
			if (await objects.head(blobKey(hash)) === void 0) await objects.copy(FOLDERS.aside + name, blobKey(hash));
			await objects.remove(FOLDERS.aside + name);
		},
		removeAside: (name) => objects.remove(FOLDERS.aside + name),
		async *listAside() {
			for await (const { key, modifiedAtMs } of objects.list(FOLDERS.aside)) {
				const name = key.slice(FOLDERS.aside.length);
				yield {
					name,
					hash: hashOfAside(name),
					sinceMs: modifiedAtMs
				};
			}
		},
		async removeAbandoned() {
			const beforeMs = clock.now() - ABANDONED_AFTER_MS;
			for (const upload of await objects.unfinished("")) if (upload.sinceMs < beforeMs) await objects.abortParts(upload);
			for await (const { key, modifiedAtMs } of objects.list(FOLDERS.staging)) if (modifiedAtMs < beforeMs) await objects.remove(key);
		},
		linkTo: (hash, { contentType, disposition }) => client.link(blobKey(hash), {
			"response-content-type": contentType,
			"response-content-disposition": disposition,
			"response-cache-control": "private, no-cache"
		}, LINK_LIFETIME_S)
	};
}
function blobKey(hash) {
	const hex = hexOf(hash);
	return `${FOLDERS.blobs}${hex.slice(0, 2)}/${hex}`;
}
function markerKey(hash) {
	return FOLDERS.markers + hexOf(hash);
}
/** Passes on the bytes. The stream fails before the last ones when they do not match the hash. */
function verified(stream, hash) {
	const hasher = createHasher();
	let held;
	const check = new Transform({
		transform(chunk, _encoding, done) {
			hasher.update(chunk);
			const former = held;
			held = chunk;
			done(null, former);
		},
		flush(done) {
			if (hasher.digest() === hash) done(null, held);
			else done(wrongBytes(hash));
		},
		destroy(error, done) {
			hasher.discard();
			done(error);
		}
	});
	return pipeline$1(stream, check, () => {});
}
function wrongBytes(hash) {
	return new WrongBytes(`the object of ${hash} holds other bytes`);
}
// src/upstreams/bucket/xml.ts
const ENTITIES = /* @__PURE__ */ new Map([
	["amp", "&"],
	["lt", "<"],
	["gt", ">"],
	["quot", "\""],
	["apos", "'"]
]);
/**
* Returns the texts of all elements with this name, in order. S3's answers nest no element in one
* of the same name.
*/
function textsOf(xml, name) {
	const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([^]*?)</${name}>`, "g");
	return [...xml.matchAll(pattern)].map(([, text = ""]) => text);
}
/** Returns the text of the first element with this name, with its entities decoded. */
function textOf(xml, name) {
	const [text] = textsOf(xml, name);
	return text === void 0 ? void 0 : decoded(text);
}
function decoded(text) {
	return text.replaceAll(/&(#x?[0-9a-fA-F]+|\w+);/g, (whole, entity) => {
		if (entity.startsWith("#x")) return String.fromCodePoint(Number.parseInt(entity.slice(2), 16));
		if (entity.startsWith("#")) return String.fromCodePoint(Number(entity.slice(1)));
		return ENTITIES.get(entity) ?? whole;
	});
}
/** Escapes a text for an element. */
function escapedXml(text) {
	return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
// src/upstreams/bucket/client.ts
const TIMEOUTS_MS = {
	connect: 5e3,
	headers: 3e4,
	body: 3e4
};
const CONNECTIONS = 64;
/** How long an interactive caller waits for the head of an answer, repetitions included. */
const RETRY_FOR_MS = 5e3;
const RETRY_DELAY_MS = {
	first: 100,
	longest: 5e3
};
const MAX_ERROR_BYTES = 65536;
/** Opens a pool. `connections` is the maximum number at a time; `null` for no limit. */
function openPool(endpoint, connections) {
	return new Pool(new URL(endpoint).origin, {
		connect: { timeout: TIMEOUTS_MS.connect },
		connections,
		pipelining: 1,
		headersTimeout: TIMEOUTS_MS.headers,
		bodyTimeout: TIMEOUTS_MS.body
	});
}
/** Creates a client. Its calls are signed, and repeated after temporary errors. */
function createBucketClient(options) {
	const { bucket, prefix, endpoint, publicEndpoint, signer, deadlineClock: clock, log } = options;
	const calls = openPool(endpoint, CONNECTIONS);
	const downloads = openPool(endpoint, null);
	let isReported = false;
	function urlOf(base, { key, query = {} }) {
		const path = key === void 0 ? bucket : `${bucket}/${prefix}${key}`;
		const url = new URL(`${base.replace(/\/$/, "")}/${path.split("/").map(encoded).join("/")}`);
		for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
		return url;
	}
	/** Waits for a free connection and for the head of the answer, together at most `limitMs`. */
	async function request(pool, options, limitMs) {
		const late = new AbortController();
		const stop = clock.callAfter(limitMs, () => late.abort(/* @__PURE__ */ new Error("it does not answer in time")));
		try {
			return await pool.request({
				...options,
				signal: late.signal
			});
		} finally {
			stop();
		}
	}
	async function attempt(call, limitMs) {
		const url = urlOf(endpoint, call);
		const headers = await headersOf(call);
		const signed = await signer.sign({
			method: call.method,
			url: url.href,
			headers
		});
		const path = url.pathname + url.search;
		const { method, body: bytes = null } = call;
		const reply = await request(method === "GET" && call.key !== void 0 ? downloads : calls, {
			method,
			path,
			headers: signed.headers,
			body: bytes
		}, movesBytes(call) ? Math.max(limitMs, TIMEOUTS_MS.headers) : limitMs);
		const { statusCode: status, body } = reply;
		body.on("error", () => {});
		const isAccepted = call.accept?.includes(status) === true;
		if (status >= 200 && status < 300 || isAccepted && status !== 404) return {
			status,
			headers: reply.headers,
			body
		};
		const answer = await readError(reply);
		if (isAccepted && isAbsence(answer)) return {
			status,
			headers: {},
			body: NO_BODY
		};
		return {
			answer,
			renew: signed.renew
		};
	}
	/** Returns true when a repeated call may succeed. */
	async function isWorthRepeating({ answer, renew }) {
		const serverMs = Date.parse(answer.date ?? "");
		if (answer.code === "RequestTimeTooSkewed" && Number.isFinite(serverMs)) {
			signer.setTime(serverMs);
			return true;
		}
		if (isAboutCredentials(answer)) return await renew();
		return mayPass(answer);
	}
	async function readError(reply) {
		const text = await readText(reply.body);
		const region = reply.headers["x-amz-bucket-region"];
		const isElsewhere = reply.statusCode === 301 || textOf(text, "Region") !== void 0;
		return {
			status: reply.statusCode,
			code: textOf(text, "Code") ?? "",
			date: String(reply.headers["date"] ?? ""),
			...isElsewhere && { region: textOf(text, "Region") ?? region }
		};
	}
	/** Repeats a call while that may help, within its time limit. */
	async function send(call) {
		const untilMs = clock.now() + (call.retryForMs ?? RETRY_FOR_MS);
		for (let tries = 0;; tries += 1) {
			let failure;
			let mayHelp = true;
			try {
				const result = await attempt(call, untilMs - clock.now());
				if ("body" in result) {
					reportReturn();
					return {
						...result,
						isRepeated: tries > 0
					};
				}
				const { answer } = result;
				failure = new BucketError(`the bucket ${bucket} refuses: ${refusalTextOf(answer)}`, { answer });
				mayHelp = await isWorthRepeating(result);
			} catch (cause) {
				failure = new BucketError(`${endpoint} cannot be reached: ${causeText(cause)}`, { cause });
			}
			const waitMs = delayOf(tries);
			if (!mayHelp || clock.now() + waitMs > untilMs) {
				report(failure, call);
				throw failure;
			}
			await clock.sleep(waitMs);
		}
	}
	/** Logs each outage of the bucket once. */
	function report(err, { method }) {
		const fields = {
			event: "bucket.call_failed",
			bucket,
			method,
			reason: err.message
		};
		if (isReported) log.debug(fields, "a call of the bucket failed");
		else log.error(fields, "a call of the bucket failed: calls that need its files are answered 503");
		isReported = true;
	}
	function reportReturn() {
		if (isReported) log.info({
			event: "bucket.back",
			bucket
		}, "the bucket answers again");
		isReported = false;
	}
	return {
		bucket,
		send,
		/** Makes a call whose answer has no relevant body. */
		async done(call) {
			const reply = await send(call);
			await reply.body.dump();
			return reply;
		},
		/** Makes a call whose answer is a short text. */
		async text(call) {
			return await (await send(call)).body.text();
		},
		/** Returns a key with the prefix, as the bucket has it. */
		fullKey: (key) => prefix + key,
		/** Returns a key of the bucket without the prefix. */
		ownKey: (fullKey) => fullKey.slice(prefix.length),
		/** Returns the value of `x-amz-copy-source` for a key. */
		copySource: (key) => `/${bucket}/${prefix}${key}`.split("/").map(encoded).join("/"),
		/** Returns a link that callers may open without credentials. */
		link: (key, query, lifetimeS) => signer.link(urlOf(publicEndpoint, {
			key,
			query
		}), lifetimeS),
		async close() {
			await Promise.all([calls.destroy(), downloads.destroy()]);
		}
	};
}
const NO_BODY = {
	text: async () => "",
	dump: async () => {},
	async *[Symbol.asyncIterator]() {}
};
/** Returns true for a call that sends bytes, or makes the bucket join some. Such a call takes longer. */
function movesBytes({ body, headers = {} }) {
	return (body?.length ?? 0) > 0 || "x-amz-copy-source" in headers;
}
async function headersOf({ body, headers = {} }) {
	if (body === void 0) return { ...headers };
	return {
		...headers,
		"x-amz-content-sha256": await sha256Hex(body)
	};
}
/** Runs in the thread pool, so that it does not block the event loop. */
async function sha256Hex(bytes) {
	const digest = await crypto.subtle.digest("SHA-256", bytes);
	return Buffer.from(digest).toString("hex");
}
/** Encodes all characters but those that every URL may hold, as signatures require. */
function encoded(segment) {
	return encodeURIComponent(segment).replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
function delayOf(tries) {
	return Math.min(RETRY_DELAY_MS.first * 2 ** tries, RETRY_DELAY_MS.longest) * (.5 + Math.random() / 2);
}
/** Reads a text. If it cannot be read, the status is enough. */
async function readText(body) {
	const bytes = await readAtMost(MAX_ERROR_BYTES, body).catch(() => void 0);
	return String(bytes ?? "");
}
/** Returns the text of a cause. Errors of a connection contain no credentials. */
function causeText(cause) {
	if (!(cause instanceof Error)) return String(cause);
	const { code } = cause;
	return code === void 0 || cause.message.includes(code) ? cause.message || String(code) : `${cause.message} (${code})`;
}
// src/upstreams/bucket/credentials.ts
const SDK_PACKAGE = "@aws-sdk/credential-providers";
/**
* Opens credentials as every S3 client does: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
* `AWS_SESSION_TOKEN`, else profiles and roles through the package of the AWS SDK, if it is
* installed. Throws one sentence when there are none.
*/
async function openCredentials(env) {
	const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
	if (accessKeyId && secretAccessKey) {
		const sessionToken = env["AWS_SESSION_TOKEN"] || void 0;
		return async () => ({
			accessKeyId,
			secretAccessKey,
			sessionToken
		});
	}
	if (accessKeyId || secretAccessKey) throw new Error("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set, and not the other");
	const { fromNodeProviderChain } = await loadSdkProviders();
	const provide = fromNodeProviderChain();
	return async ({ renew = false } = {}) => provide({ forceRefresh: renew });
}
async function loadSdkProviders() {
	try {
		return await import(SDK_PACKAGE);
	} catch (cause) {
		throw new Error(`AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; profiles and roles need the package ${SDK_PACKAGE}, which is not installed (npm install ${SDK_PACKAGE})`, { cause });
	}
}
// src/upstreams/bucket/read-object.ts
/** How often the rest of an object is requested after its connection broke. */
const MAX_RESUMES = 5;
/** Opens an object, or a range of it. An interrupted read continues at the same byte. */
async function openObject(client, key, { start = 0, end, ...patience }) {
	const first = await get({
		client,
		key,
		start,
		end,
		patience
	});
	if (first === void 0) return void 0;
	const { "content-length": length, etag } = first.headers;
	let resumes = 0;
	async function reopen(at, cause) {
		const rest = resumes++ < MAX_RESUMES ? await get({
			client,
			key,
			start: at,
			end,
			patience,
			etag
		}) : void 0;
		if (rest) return rest.body;
		throw new BucketError("an object broke off while it was read", { cause });
	}
	const plan = {
		start,
		end: start + Number(length) - 1,
		reopen
	};
	return resumedBytes(first.body, plan).once("close", () => void first.body.dump().catch(() => {}));
}
async function get({ client, key, start, end, patience, etag }) {
	const isWhole = start === 0 && end === void 0;
	const range = `bytes=${start}-${end === void 0 || end === Infinity ? "" : end}`;
	const headers = {
		...!isWhole && { range },
		...typeof etag === "string" && { "if-match": etag }
	};
	const reply = await client.send({
		method: "GET",
		key,
		headers,
		accept: [404],
		...patience
	});
	if (reply.status !== 404) return reply;
	await reply.body.dump();
}
// src/upstreams/bucket/objects.ts
const TRANSFER_SIZES = {
	partBytes: 8 * 2 ** 20,
	copyPartBytes: 256 * 2 ** 20
};
/** The maximum number of parts in memory at a time, for all uploads. */
const MAX_PARTS_IN_MEMORY = 4;
const COPIES_AT_A_TIME = 4;
/** Creates the objects of a bucket over its client. */
function createObjects(client, sizes) {
	const { partBytes, copyPartBytes } = sizes;
	const inMemory = createSemaphore(MAX_PARTS_IN_MEMORY);
	async function stat(key, patience) {
		const call = {
			method: "HEAD",
			key,
			accept: [404],
			...patience
		};
		const { status, headers } = await client.done(call);
		if (status === 404) return void 0;
		const modifiedAtMs = Date.parse(String(headers["last-modified"]));
		return {
			sizeBytes: Number(headers["content-length"]),
			modifiedAtMs
		};
	}
	/** Returns the size of an object; `undefined` when it does not exist. */
	const head = async (key, patience) => (await stat(key, patience))?.sizeBytes;
	async function startParts(key, patience) {
		const uploadId = textOf(await client.text({
			method: "POST",
			key,
			query: { uploads: "" },
			...patience
		}), "UploadId");
		if (uploadId === void 0) throw new BucketError("the bucket began no upload", {});
		return uploadId;
	}
	/** Completes an upload. A retry whose first answer was lost finds it completed. */
	async function completeParts({ key, uploadId, sizeBytes }, parts, patience) {
		const items = parts.toSorted((a, b) => a.number - b.number).map(({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${escapedXml(etag)}</ETag></Part>`);
		const body = Buffer.from(`<CompleteMultipartUpload>${items.join("")}</CompleteMultipartUpload>`);
		const call = {
			method: "POST",
			key,
			query: { uploadId },
			body,
			...patience
		};
		const reply = await client.send({
			...call,
			accept: [404]
		});
		const text = await reply.body.text();
		if (reply.status !== 404 && textOf(text, "Error") === void 0) return;
		if (await head(key) !== sizeBytes) throw new BucketError(failureText(text), {});
	}
	/**
	* Aborts an upload. S3 keeps the parts of an unfinished upload until it is told to remove them.
	*/
	async function abortParts({ key, uploadId }) {
		await client.done({
			method: "DELETE",
			key,
			query: { uploadId },
			accept: [404]
		});
	}
	async function putPart(upload, { number, body, ...patience }) {
		const { key, uploadId } = upload;
		const query = {
			partNumber: String(number),
			uploadId
		};
		const reply = await client.done({
			method: "PUT",
			key,
			query,
			body,
			...patience
		});
		return {
			number,
			etag: String(reply.headers["etag"])
		};
	}
	async function inParts({ key, sizeBytes, partSize }, put, patience) {
		const upload = {
			key,
			uploadId: await startParts(key, patience)
		};
		const done = [];
		try {
			await forEachConcurrently(COPIES_AT_A_TIME, rangesOf(sizeBytes, partSize), async (part) => {
				done.push(await put(upload, part));
			});
			await completeParts({
				...upload,
				sizeBytes
			}, done, patience);
		} catch (error) {
			await abortParts(upload).catch(() => {});
			throw error;
		}
	}
	async function readPart(handle, { start, end }) {
		const buffer = Buffer.allocUnsafeSlow(end - start + 1);
		for (let at = 0; at < buffer.length;) {
			const { bytesRead } = await handle.read(buffer, at, buffer.length - at, start + at);
			if (bytesRead === 0) throw new Error("a file became shorter while it was read");
			at += bytesRead;
		}
		return buffer;
	}
	return {
		stat,
		head,
		startParts,
		completeParts,
		abortParts,
		/** Uploads a part of a growing file. A limited number of parts is in memory at a time. */
		putFilePart: (upload, handle, part) => inMemory(async () => putPart(upload, {
			number: part.number,
			body: await readPart(handle, part)
		})),
		/** Puts a small object. With `onlyNew`, `false` (412) means that another object exists. */
		async put(key, body, { onlyNew = false, ...patience } = {}) {
			const call = {
				method: "PUT",
				key,
				body,
				headers: onlyNew ? { "if-none-match": "*" } : {},
				accept: onlyNew ? [412] : [],
				...patience
			};
			const { status, isRepeated } = await client.done(call);
			if (status < 300 || !isRepeated) return status < 300;
			const stored = await openObject(client, key, patience);
			return (stored && await readAtMost(body.length, stored))?.equals(body) === true;
		},
		/** Uploads bytes of any length. The object exists completely or not at all. */
		async putBytes(key, bytes, patience) {
			if (bytes.length <= partBytes * 2) return void await client.done({
				method: "PUT",
				key,
				body: bytes,
				...patience
			});
			await inParts({
				key,
				sizeBytes: bytes.length,
				partSize: partBytes
			}, (upload, { number, start, end }) => putPart(upload, {
				number,
				body: bytes.subarray(start, end + 1),
				...patience
			}), patience);
		},
		async putFile(key, file) {
			const { sizeBytes } = file;
			const handle = await open(file.path, "r");
			try {
				if (sizeBytes <= partBytes) return await inMemory(async () => {
					const body = await readPart(handle, {
						start: 0,
						end: sizeBytes - 1
					});
					await client.done({
						method: "PUT",
						key,
						body
					});
				});
				await inParts({
					key,
					sizeBytes,
					partSize: partBytes
				}, (upload, { number, ...range }) => inMemory(async () => putPart(upload, {
					number,
					body: await readPart(handle, range)
				})));
			} finally {
				await handle.close();
			}
		},
		/**
		* Copies an object within the bucket, whose server moves the bytes. Returns false when the object does not exist.
		*/
		async copy(from, to) {
			const sizeBytes = await head(from);
			if (sizeBytes === void 0) return false;
			const source = { "x-amz-copy-source": client.copySource(from) };
			if (sizeBytes <= copyPartBytes) {
				const reply = await client.send({
					method: "PUT",
					key: to,
					headers: source,
					accept: [404]
				});
				const text = await reply.body.text();
				if (reply.status === 404) return false;
				if (textOf(text, "Error") === void 0) return true;
				throw new BucketError(failureText(text), {});
			}
			await inParts({
				key: to,
				sizeBytes,
				partSize: copyPartBytes
			}, async ({ key, uploadId }, { number, start, end }) => {
				const query = {
					partNumber: String(number),
					uploadId
				};
				const headers = {
					...source,
					"x-amz-copy-source-range": `bytes=${start}-${end}`
				};
				const xml = await client.text({
					method: "PUT",
					key,
					query,
					headers
				});
				const etag = textOf(xml, "ETag");
				if (etag === void 0) throw new BucketError(failureText(xml), {});
				return {
					number,
					etag
				};
			});
			return true;
		},
		async remove(key) {
			await client.done({
				method: "DELETE",
				key,
				accept: [404]
			});
		},
		/** Returns a small object as text. */
		async text(key) {
			const reply = await client.send({
				method: "GET",
				key,
				accept: [404]
			});
			return reply.status === 404 ? void 0 : await reply.body.text();
		},
		/** Opens an object, or a range of it. An interrupted read continues at the same byte. */
		async open(key, range, patience) {
			return await openObject(client, key, {
				...range,
				...patience
			});
		},
		/** Lists all objects below a prefix. */
		async *list(prefix) {
			for (let token;;) {
				const query = {
					"list-type": "2",
					prefix: client.fullKey(prefix),
					"encoding-type": "url",
					...token !== void 0 && { "continuation-token": token }
				};
				const xml = await client.text({
					method: "GET",
					query
				});
				for (const item of textsOf(xml, "Contents")) yield listedObject(client, item);
				token = textOf(xml, "IsTruncated") === "true" ? textOf(xml, "NextContinuationToken") : void 0;
				if (token === void 0) return;
			}
		},
		/** Lists the uploads in parts that are neither completed nor aborted. */
		async unfinished(prefix) {
			const query = {
				uploads: "",
				prefix: client.fullKey(prefix)
			};
			return textsOf(await client.text({
				method: "GET",
				query
			}), "Upload").map((item) => ({
				key: client.ownKey(textOf(item, "Key") ?? ""),
				uploadId: textOf(item, "UploadId") ?? "",
				sinceMs: Date.parse(textOf(item, "Initiated") ?? "")
			}));
		}
	};
}
function* rangesOf(sizeBytes, partBytes) {
	for (let start = 0; start < sizeBytes; start += partBytes) yield {
		number: start / partBytes + 1,
		start,
		end: Math.min(start + partBytes, sizeBytes) - 1
	};
}
function listedObject(client, xml) {
	return {
		key: client.ownKey(decodeURIComponent((textOf(xml, "Key") ?? "").replaceAll("+", " "))),
		sizeBytes: Number(textOf(xml, "Size")),
		modifiedAtMs: Date.parse(textOf(xml, "LastModified") ?? "")
	};
}
function failureText(xml) {
	return `the bucket failed: ${textOf(xml, "Code") ?? "it said no reason"}`;
}
// src/upstreams/bucket/signer.ts
const PACKAGE = "aws4fetch";
/** Loads the package that signs. Throws one sentence when it is not installed. */
async function createSigner(options) {
	const { region, clock } = options;
	const { AwsV4Signer: V4Signer } = await loadPackage();
	const cache = /* @__PURE__ */ new Map();
	/** The difference between this clock and that of the bucket. */
	let offsetMs = 0;
	let current = await options.credentials();
	function signerOf(request, place) {
		const datetime = new Date(clock.now() + offsetMs).toISOString().replace(/[:-]|\.\d{3}/g, "");
		const { accessKeyId, secretAccessKey, sessionToken } = current;
		return new V4Signer({
			...request,
			headers: { ...request.headers },
			accessKeyId,
			secretAccessKey,
			...sessionToken !== void 0 && { sessionToken },
			service: "s3",
			region,
			datetime,
			cache,
			...place
		});
	}
	/**
	* Asks for new credentials, unless another call has done so. `false` when they are those that
	* were refused.
	*/
	async function renew(refused) {
		if (isSame$1(current, refused)) current = await options.credentials({ renew: true });
		return !isSame$1(current, refused);
	}
	return {
		/** Returns the headers to send. Call `renew` when the bucket refuses their credentials. */
		async sign(request) {
			const used = await options.credentials();
			current = used;
			const { headers } = await signerOf(request, { signQuery: false }).sign();
			const signed = Object.fromEntries(headers.entries());
			delete signed["host"];
			return {
				headers: signed,
				renew: () => renew(used)
			};
		},
		/** Returns a link that needs no credentials for `lifetimeS` seconds. */
		async link(url, lifetimeS) {
			current = await options.credentials();
			url.searchParams.set("X-Amz-Expires", String(lifetimeS));
			return (await signerOf({
				method: "GET",
				url: url.href,
				headers: {}
			}, { signQuery: true }).sign()).url.href;
		},
		/** Sets the clock to that of the bucket. */
		setTime(serverMs) {
			offsetMs = serverMs - clock.now();
		}
	};
}
function isSame$1(one, other) {
	return one.accessKeyId === other.accessKeyId && one.sessionToken === other.sessionToken;
}
async function loadPackage() {
	try {
		return await import(PACKAGE);
	} catch (cause) {
		throw new Error(`needs the package ${PACKAGE}, which is not installed (npm install ${PACKAGE})`, { cause });
	}
}
// src/upstreams/bucket/staged-uploads.ts
/** Creates the staged uploads of a bucket. */
function createStagedUploads(objects, { stagingFolder, partBytes }) {
	const started = /* @__PURE__ */ new Map();
	function cancel({ path }) {
		started.get(path)?.cancel();
		started.delete(path);
	}
	return {
		start(_caller, { file, atMostBytes }) {
			if (atMostBytes <= partBytes * 2) return void 0;
			const key = `${stagingFolder}${randomUUID()}`;
			started.set(file.path, new StagedUpload(objects, {
				file,
				key,
				partBytes
			}));
			return {
				finish: async () => void 0,
				cancel: () => cancel(file)
			};
		},
		async finish(file, key) {
			const upload = started.get(file.path);
			started.delete(file.path);
			return await upload?.finish(file.sizeBytes, key) ?? false;
		},
		cancel
	};
}
var StagedUpload = class {
	#objects;
	#options;
	#sent = [];
	/** Resolves when all whole parts are being sent, or with the error. */
	#arrival;
	#handle;
	#upload;
	#isCancelled = false;
	constructor(objects, options) {
		this.#objects = objects;
		this.#options = options;
		this.#arrival = this.#follow().then(() => void 0, (error) => error);
	}
	/**
	* Completes the upload. Any failure means that the file must be sent from its beginning; it is in
	* the spool folder.
	*/
	async finish(sizeBytes, key) {
		const failure = await this.#arrival;
		const upload = this.#upload;
		if (failure || upload === void 0) {
			await this.cancel();
			return false;
		}
		try {
			const start = this.#sent.length * this.#options.partBytes;
			if (start < sizeBytes) this.#send(upload, {
				start,
				end: sizeBytes - 1
			});
			await this.#objects.completeParts({
				...upload,
				sizeBytes
			}, await Promise.all(this.#sent));
			await this.#handle?.close();
			return await this.#moveTo(key);
		} catch {
			await this.cancel();
			return false;
		}
	}
	async cancel() {
		this.#isCancelled = true;
		await this.#arrival;
		await Promise.allSettled(this.#sent);
		await this.#handle?.close().catch(() => {});
		if (this.#upload) await this.#objects.abortParts(this.#upload).catch(() => {});
	}
	async #moveTo(key) {
		const isThere = await this.#objects.copy(this.#options.key, key);
		await this.#objects.remove(this.#options.key).catch(() => {});
		return isThere;
	}
	async #follow() {
		const { file, key, partBytes } = this.#options;
		for (let start = 0; !this.#isCancelled; start += partBytes) {
			if (await file.sizeBeyond(start + partBytes - 1) < start + partBytes || this.#isCancelled) return;
			this.#handle ??= await open(file.path, "r");
			this.#upload ??= {
				key,
				uploadId: await this.#objects.startParts(key)
			};
			this.#send(this.#upload, {
				start,
				end: start + partBytes - 1
			});
			await this.#sent.at(-3);
		}
	}
	#send(upload, range) {
		const handle = this.#handle;
		if (!handle) throw new Error("the file is not open");
		const number = this.#sent.length + 1;
		const sent = this.#objects.putFilePart(upload, handle, {
			number,
			...range
		});
		sent.catch(() => {});
		this.#sent.push(sent);
	}
};
// src/upstreams/bucket/open-bucket.ts
var open_bucket_exports = /* @__PURE__ */ __exportAll({ openBucket: () => openBucket });
/** A start with an unusable bucket is refused soon instead of being delayed. */
const START_PATIENCE = { retryForMs: 3e3 };
const WATCH_EVERY_MS = 1e4;
/** Opens a bucket. Throws one sentence that names it and the reason when that fails. */
async function openBucket(options) {
	const { source, env, log, sizes } = options;
	const { clock = systemClock, deadlineClock = monotonicClock } = options;
	const url = bucketUrl(source);
	let client;
	try {
		const signer = await createSigner({
			credentials: await openCredentials(env),
			region: source.region,
			clock
		});
		client = createBucketClient({
			...source,
			signer,
			deadlineClock,
			log
		});
		await requireAccess(client);
		const transferSizes = {
			...TRANSFER_SIZES,
			...sizes
		};
		const objects = createObjects(client, transferSizes);
		const { partBytes } = transferSizes;
		const staged = createStagedUploads(objects, {
			stagingFolder: FOLDERS.staging,
			partBytes
		});
		const opened = client;
		const identity = identityOf(url, objects);
		return {
			blobs: createBucketBlobs({
				client,
				objects,
				staged,
				clock
			}),
			startUpload: staged.start,
			objects,
			identity,
			watch: (folderId) => watchBucket(identity, folderId, clock),
			close: () => opened.close()
		};
	} catch (cause) {
		await client?.close();
		throw new Error(`--files ${url} ${reasonFor(cause)}`, { cause });
	}
}
/** Lists, writes and removes an object, because a later refusal would fail a job. */
async function requireAccess(client) {
	const query = {
		"list-type": "2",
		"max-keys": "1",
		prefix: client.fullKey("")
	};
	await client.done({
		method: "GET",
		query,
		...START_PATIENCE
	});
	const key = `staging/${randomUUID()}`;
	await client.done({
		method: "PUT",
		key,
		body: /* @__PURE__ */ new Uint8Array(),
		...START_PATIENCE
	});
	await client.done({
		method: "DELETE",
		key,
		...START_PATIENCE
	});
}
function reasonFor(cause) {
	if (cause instanceof BucketError && cause.answer) return `cannot be used: ${refusalTextOf(cause.answer)}`;
	const reason = cause instanceof Error ? cause.message : String(cause);
	return reason.startsWith("needs ") ? reason : `cannot be used: ${reason}`;
}
function identityOf(url, objects) {
	return {
		url,
		async holdsFiles() {
			for (const folder of ["blobs/", "userdata/"]) for await (const _object of objects.list(folder)) return true;
			return false;
		},
		readId: (name) => objects.text(name),
		createId: async (name, id) => {
			if (await objects.head(name) === void 0) await objects.put(name, Buffer.from(id), { onlyNew: true });
		},
		writeId: async (name, id) => void await objects.put(name, Buffer.from(id))
	};
}
/** A single check that finds nothing may be a fault of the connection. */
const CHECKS_BEFORE_LOSS = 2;
function watchBucket(identity, folderId, clock) {
	const ended = new AbortController();
	return {
		lost: new Promise((resolve) => {
			watchUntilLost(identity, folderId, {
				clock,
				signal: ended.signal
			}).then((error) => {
				if (error) resolve(error);
			});
		}),
		close: () => ended.abort()
	};
}
/** Returns the error of a lost bucket; `undefined` when the watch was ended. */
async function watchUntilLost(identity, folderId, { clock, signal }) {
	for (let losses = 0; losses < CHECKS_BEFORE_LOSS;) {
		try {
			await clock.sleep(WATCH_EVERY_MS, signal);
		} catch {
			return;
		}
		losses = await isSame(identity, folderId) ? 0 : losses + 1;
	}
	return /* @__PURE__ */ new Error(`--files ${identity.url} was emptied or replaced while in use: nothing can be kept any more, so this process stops; start it again once the files are back`);
}
/**
* Returns true when the bucket still has this id. A bucket that refuses or does not answer is unavailable,
* not lost.
*/
async function isSame(identity, folderId) {
	try {
		return await identity.readId("folder.id") === folderId;
	} catch {
		return true;
	}
}
export { open_bucket_exports as n, openBucket as t };
