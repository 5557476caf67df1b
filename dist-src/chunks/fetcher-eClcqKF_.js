import { t as readAtMost } from "./read-at-most-0g521mbO.js";
import { t as readRetryAfter } from "./retry-after-Ku8rrA8Q.js";
import { createGunzip } from "node:zlib";
import { pipeline } from "node:stream";
import { Pool } from "undici";
// src/definitions/fetcher.ts
/** Answers that mean there is nothing here; whatever else is wrong may pass. */
const NO_DEFINITIONS_STATUSES = /* @__PURE__ */ new Set([
	400,
	404,
	405,
	406,
	410,
	501
]);
const UNREACHABLE_STATUSES = /* @__PURE__ */ new Set([
	502,
	503,
	504
]);
const CONNECTIONS = 4;
/** It talks to this origin only and follows no redirect, so that a key cannot leave it. */
function createFetcher(origin, limits) {
	const connect = { timeout: limits.connectTimeoutMs };
	const pool = new Pool(origin, {
		connect,
		connections: CONNECTIONS,
		pipelining: 1
	});
	return {
		origin,
		async fetch({ url, key, validators }) {
			const { pathname, search } = new URL(url);
			try {
				return await outcomeOf(await pool.request({
					method: "GET",
					path: pathname + search,
					headers: {
						...HEADERS,
						...keyHeaders(key),
						...conditions(validators)
					},
					headersTimeout: limits.headersTimeoutMs,
					bodyTimeout: limits.bodyIdleTimeoutMs,
					signal: AbortSignal.timeout(limits.wholeTimeoutMs)
				}), limits);
			} catch (error) {
				return {
					kind: "failed",
					reason: error.message
				};
			}
		},
		close: () => pool.destroy()
	};
}
const HEADERS = {
	"user-agent": "holdover",
	accept: "application/json",
	"accept-encoding": "gzip"
};
/** The jobs' own header, and the one v1 services read. */
function keyHeaders(key) {
	return key === void 0 ? {} : {
		authorization: `Bearer ${key}`,
		"x-api-key": key
	};
}
function conditions({ etag, lastModified } = {}) {
	return {
		...etag !== void 0 && { "if-none-match": etag },
		...lastModified !== void 0 && { "if-modified-since": lastModified }
	};
}
async function outcomeOf({ statusCode: status, headers, body }, { maxBytes }) {
	if (status === 200) {
		const bytes = await readAtMost(maxBytes, decodedBody(body, headers["content-encoding"]));
		if (!bytes) return {
			kind: "failed",
			reason: `it is larger than ${maxBytes} bytes`,
			isReachable: true
		};
		const etag = headers["etag"];
		const lastModified = headers["last-modified"];
		return {
			kind: "text",
			bytes,
			from: 0,
			validators: {
				...typeof etag === "string" && { etag },
				...typeof lastModified === "string" && { lastModified }
			}
		};
	}
	body.on("error", () => {}).destroy();
	const reason = `it answers ${status}`;
	if (status === 304) return { kind: "same" };
	if (status === 401 || status === 403) return {
		kind: "locked",
		reason
	};
	if (NO_DEFINITIONS_STATUSES.has(status) || status >= 300 && status < 400) return {
		kind: "none",
		reason
	};
	return {
		kind: "failed",
		reason,
		...retryAfter(headers),
		...!UNREACHABLE_STATUSES.has(status) && status !== 429 && { isReachable: true }
	};
}
function decodedBody(body, encoding) {
	if (encoding === void 0 || encoding === "identity") return body;
	if (encoding === "gzip") return pipeline(body, createGunzip(), () => {});
	body.on("error", () => {}).destroy();
	throw new Error("it answers in an encoding that was not requested");
}
function retryAfter(headers) {
	const seconds = readRetryAfter(headers, Date.now());
	return seconds === void 0 ? {} : { retryAfterMs: seconds * 1e3 };
}
export { createFetcher };
