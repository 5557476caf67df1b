import { b as readTarget, v as withoutLogin, y as decodedPart } from "./ledger-B4DYGOuk.js";
import { _ as routerHeaders, g as bucketOfStatus, h as PARTNER_PATHS, p as MODEL_PATHS, t as parseWithinLimits, v as isV2Path } from "./server-CcvvMUVn.js";
import { E as NO_VALID_KEY } from "./object-info-CQQmKRsU.js";
import { n as isJsonObject } from "./json-CIUMQIEJ.js";
import { p as IS_TERMINAL } from "./asset-refs-D0EjDw6l.js";
import { n as createInterimAnswerCounter } from "./interim-answers-QQbjp5yj.js";
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import { Agent, STATUS_CODES } from "node:http";
import { Agent as Agent$1 } from "node:https";
import { Pool, buildConnector } from "undici";
// src/upstreams/passthrough/headers.ts
/** Headers for the next connection only, which are never forwarded. */
const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings)$/;
/**
* Headers that are not about the call: keys, facts of browsers about their page, and the origin and
* routing of the request. `Expect` was answered here.
*/
const NOT_FORWARDED = /^(host|expect|content-length|authorization|x-api-key|cookie2?|origin|referer|sec-.*|access-control-.*|forwarded|x-forwarded(-.*)?|x-real-ip|x-(http-)?method-override|x-http-method|x-original-(url|host)|x-rewrite-url)$/;
/** Headers of the service that the client would relate to this server. */
const NOT_RETURNED = /^(set-cookie2?|access-control-.*|alt-svc|clear-site-data|strict-transport-security)$/;
const MAX_MEMOIZED_NAMES = 500;
const isNotForwarded = memoized((name) => HOP_BY_HOP.test(name) || NOT_FORWARDED.test(name));
const isNotReturned = memoized((name) => HOP_BY_HOP.test(name) || NOT_RETURNED.test(name));
/**
* Returns the end-to-end headers of a call for the upstream, with the only key that may be sent.
*/
function requestHeaders({ rawHeaders, headers }, { host, key }) {
	const lines = ["Host", host];
	addEndToEnd(lines, rawHeaders, isNotForwarded);
	const length = headers["content-length"];
	if (headers["transfer-encoding"] !== void 0) lines.push("Transfer-Encoding", "chunked");
	else if (length !== void 0) lines.push("Content-Length", length);
	if (key !== void 0) lines.push("Authorization", `Bearer ${key}`);
	return lines;
}
/** Returns the headers of an answer for the client, and those of `extraHeaders` that it lacks. */
function answerHeaders(raw, ...extraHeaders) {
	const lines = [];
	addEndToEnd(lines, raw, isNotReturned);
	for (const more of extraHeaders) for (let i = 0; i + 1 < more.length; i += 2) {
		const [name = "", value = ""] = [more[i], more[i + 1]];
		if (!hasHeader(lines, name)) lines.push(name, value);
	}
	return lines;
}
/** True when the list has the header, in any case. */
function hasHeader(lines, name) {
	const lower = name.toLowerCase();
	for (let i = 0; i < lines.length; i += 2) {
		const each = lines[i];
		if (each?.length === name.length && each.toLowerCase() === lower) return true;
	}
	return false;
}
/** Returns the headers by their names. */
function toHeaderObject(lines) {
	const headers = Object.create(null);
	const written = /* @__PURE__ */ new Map();
	for (let i = 0; i + 1 < lines.length; i += 2) {
		const [name = "", value = ""] = [lines[i], lines[i + 1]];
		const lower = name.toLowerCase();
		const before = written.get(lower);
		if (before === void 0) {
			written.set(lower, name);
			headers[name] = value;
		} else headers[before] = [headers[before] ?? [], value].flat();
	}
	return headers;
}
/** True when the transfer coding of the body would be lost in forwarding. */
function hasUnsupportedCoding({ headers }) {
	const coding = headers["transfer-encoding"];
	return coding !== void 0 && coding.trim().toLowerCase() !== "chunked";
}
/** Copies the headers that are for the other end. */
function addEndToEnd(lines, raw, isRefused) {
	const connectionNames = namesInConnection(raw);
	for (let i = 0; i + 1 < raw.length; i += 2) {
		const [name = "", value = ""] = [raw[i], raw[i + 1]];
		if (isRefused(name) || connectionNames?.has(name.toLowerCase())) continue;
		lines.push(name, value);
	}
}
/** Returns the headers that `Connection` names. It is rarely set. */
function namesInConnection(raw) {
	let names;
	for (let i = 0; i + 1 < raw.length; i += 2) {
		if (raw[i]?.length !== 10 || raw[i]?.toLowerCase() !== "connection") continue;
		const value = raw[i + 1] ?? "";
		if (value === "keep-alive" || value === "close") continue;
		names ??= /* @__PURE__ */ new Set();
		for (const name of value.toLowerCase().split(",")) names.add(name.trim());
	}
	names?.delete("content-length");
	return names;
}
/**
* Caches the results, since calls repeat the same names. The size limit protects memory from a
* caller that invents names.
*/
function memoized(predicate) {
	const results = /* @__PURE__ */ new Map();
	return (name) => {
		const known = results.get(name);
		if (known !== void 0) return known;
		const result = predicate(name.toLowerCase());
		if (results.size < MAX_MEMOIZED_NAMES) results.set(name, result);
		return result;
	};
}
/** The contract names these headers `X-Service-…`; present services and clients use `X-Comfy-…`. */
const ALIASES = [["x-comfy-", "X-Service-"], ["x-service-", "X-Comfy-"]];
/**
* Returns the missing aliases: headers that an answer has under one of the two names, under the
* other name.
*/
function missingAliases(lines) {
	const missing = [];
	for (let i = 0; i + 1 < lines.length; i += 2) {
		const alias = aliasOf(lines[i] ?? "");
		if (alias !== void 0 && !hasHeader(lines, alias)) missing.push(alias, lines[i + 1] ?? "");
	}
	return missing;
}
function aliasOf(name) {
	if (name[1] !== "-") return void 0;
	const start = name.slice(0, 10).toLowerCase();
	for (const [prefix, other] of ALIASES) if (start.startsWith(prefix)) return other + name.slice(prefix.length);
}
// src/upstreams/passthrough/router-headers.ts
/**
* The headers that each answer of the router has, as far as this one lacks them: what stands
* between the service and its router answers without.
*/
function missingRouterHeaders(lines, status) {
	const aliases = missingAliases(lines);
	const stated = [...lines, ...aliases];
	const needed = routerHeaders(randomUUID(), status >= 400 ? bucketOf(status, lines) : void 0);
	const missing = Object.entries(needed).filter(([name]) => !hasHeader(stated, name));
	return [...aliases, ...missing.flat()];
}
/** Of the two buckets of a 429, only one says when to try again. */
function bucketOf(status, lines) {
	return status === 429 && hasHeader(lines, "Retry-After") ? "rate_limited" : bucketOfStatus(status);
}
// src/upstreams/passthrough/answer-head.ts
/**
* Answers may contain files of users. This header keeps such a file from running as a page of this
* server.
*/
const SANDBOX_HEADER = ["Content-Security-Policy", "default-src 'none'; sandbox"];
/**
* Writes the head of an answer, with the headers that `beside` adds. Returns false when it could
* not be written.
*/
function writeAnswerHead(res, { headersBeside, extraHeaders }, { status, reason, raw }) {
	if (status < 200) return false;
	const lines = answerHeaders(raw, SANDBOX_HEADER, extraHeaders ?? []);
	if (headersBeside) lines.push(...headersBeside(lines, status));
	putLengthLast(lines);
	const earlierHeaders = extraHeaders ? {} : res.getHeaders();
	try {
		if (extraHeaders) res.writeHead(status, reason, lines);
		else mergeHead(res, {
			status,
			reason,
			raw: lines
		});
	} catch {
		for (const name of res.getHeaderNames()) res.removeHeader(name);
		for (const [name, value = ""] of Object.entries(earlierHeaders)) res.setHeader(name, value);
		return false;
	}
	return true;
}
/**
* Moves the length to the end: Node writes a `Content-Disposition` behind the length as UTF-8, not
* byte by byte.
*/
function putLengthLast(lines) {
	const at = lines.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
	if (at >= 0) lines.push(...lines.splice(at, 2));
}
/** Merges the head with headers that middleware has set before. */
function mergeHead(res, { status, reason, raw }) {
	const headers = toHeaderObject(raw);
	for (const name in headers) res.setHeader(name, headers[name] ?? "");
	exposeHeaders(res, Object.keys(headers));
	res.writeHead(status, reason);
}
/** Sends a head before its body. Otherwise Node would write its bytes anew, as UTF-8. */
function flushHead(res) {
	res.write(Buffer.alloc(0));
}
const EXPOSED_HEADERS = "Access-Control-Expose-Headers";
/** Lists headers for pages: in CORS mode a page may read only these. */
function exposeHeaders(res, names) {
	const exposed = res.getHeader(EXPOSED_HEADERS);
	if (typeof exposed === "string") res.setHeader(EXPOSED_HEADERS, [exposed, ...names].join(", "));
}
// src/upstreams/passthrough/failures.ts
/** The texts for both formats. They do not name the upstream. */
const MESSAGES = {
	unauthorized: NO_VALID_KEY.message,
	foreign_key: "All callers of this server share one account of the service behind it, and nobody may see what belongs to others: a call with a key of its own is not passed on.",
	bad_path: "A path with dot segments is not passed on.",
	bad_method: "This method is not passed on.",
	bad_coding: "The only transfer coding that is passed on is chunked.",
	unreachable: "The service behind this server cannot be reached. Nothing was sent.",
	lost: "The connection to the service behind this server was lost. The call may have taken effect."
};
/** `code` is that of the v2 contract; `bucket` is that of the router. */
const ANSWERS = {
	unauthorized: {
		code: "unauthorized",
		bucket: "unauthorized",
		status: 401
	},
	foreign_key: {
		code: "forbidden",
		bucket: "forbidden",
		status: 403
	},
	bad_path: {
		code: "invalid_request",
		bucket: "invalid_input",
		status: 400
	},
	bad_method: {
		code: "method_not_allowed",
		bucket: "invalid_input",
		status: 405
	},
	bad_coding: {
		code: "not_implemented",
		bucket: "invalid_input",
		status: 501
	},
	unreachable: {
		code: "upstream_unreachable",
		bucket: "service_unavailable",
		status: 503
	},
	lost: {
		code: "upstream_error",
		bucket: "internal_error",
		status: 502,
		routerStatus: 500
	}
};
const ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
/** Writes the error envelope of the v2 contract. */
const writeV2Failure = (ctx, failure) => {
	const { status, code } = ANSWERS[failure];
	answer(ctx, {
		status,
		failure,
		json: { error: {
			code,
			message: MESSAGES[failure],
			details: null
		} }
	});
};
/** Writes the router's two members, and both names of its two headers. */
const writeRouterFailure = (ctx, failure) => {
	const { bucket, status, routerStatus = status } = ANSWERS[failure];
	const headers = routerHeaders(randomUUID(), bucket);
	ctx.set(headers);
	exposeHeaders(ctx.res, Object.keys(headers));
	answer(ctx, {
		status: routerStatus,
		failure,
		json: {
			detail: MESSAGES[failure],
			error_type: bucket
		}
	});
};
function answer(ctx, answered) {
	ctx.status = answered.status;
	ctx.set("Content-Type", "application/json");
	ctx.set("Cache-Control", "no-store");
	if (answered.failure === "unauthorized") ctx.set("WWW-Authenticate", "Bearer");
	if (answered.failure === "bad_method") ctx.set("Allow", ALLOWED_METHODS);
	ctx.body = JSON.stringify(answered.json);
}
// src/upstreams/passthrough/job-call-observer.ts
/**
* The largest copy of a message; the bytes themselves are never delayed. Another Holdover answers a
* submission with its whole workflow.
*/
const MAX_COPY_BYTES = {
	body: 4194304,
	submitted: 5242880,
	read: 1048576
};
const MAX_ID_CHARS = 300;
/**
* The maximum number of request bodies that are copied at a time, of all callers. Further ones are
* not copied.
*/
const MAX_COPIES = 16;
const JOBS_PATH = /\/api\/v2\/jobs\/?$/;
const JOB_PATH = /\/api\/v2\/jobs\/([^/]+)$/;
const CANCEL_PATH = /\/api\/v2\/jobs\/([^/]+)\/cancel$/;
const DECODERS = {
	identity: async (bytes) => bytes,
	gzip: boundedDecoder(promisify(gunzip)),
	deflate: boundedDecoder(promisify(inflate)),
	br: boundedDecoder(promisify(brotliDecompress))
};
/** Observes the calls that submit, cancel and read jobs, and no others. */
function createJobCallObserver(onJobCall) {
	let openCopies = 0;
	function observeSubmission({ req, res }, caller) {
		let requestCopy = Promise.resolve(void 0);
		return {
			onRequest(body) {
				if (body) requestCopy = Promise.resolve(body);
				if (body || openCopies >= MAX_COPIES) return;
				openCopies++;
				const bodyCopy = createBodyCopy(MAX_COPY_BYTES.body);
				copyBody(req, bodyCopy);
				requestCopy = bodyCopy.bytes.finally(() => openCopies--);
			},
			onAnswer({ status, coding }) {
				if (!isSuccess(status)) return void 0;
				const bodyCopy = createBodyCopy(MAX_COPY_BYTES.submitted);
				const body = () => jsonOf(requestCopy, req.headers["content-encoding"]);
				jsonOf(bodyCopy.bytes, coding).then((answered) => {
					const job = answered ?? jobAtStart(bodyCopy.start());
					if (job) onJobCall({
						kind: "submitted",
						caller,
						job,
						body,
						response: res
					});
				});
				return bodyCopy;
			}
		};
	}
	function observeRead({ req }, caller, jobId) {
		return {
			onRequest() {},
			onAnswer({ status, coding }) {
				if (!isSuccess(status)) return void 0;
				const bodyCopy = createBodyCopy(MAX_COPY_BYTES.read);
				jsonOf(bodyCopy.bytes, coding).then((job) => {
					if (hasEnded(job)) onJobCall({
						kind: "fetched",
						caller,
						jobId,
						request: req
					});
				});
				return bodyCopy;
			}
		};
	}
	/**
	* Returns the observer for a call with this target (path and query); `undefined` when there is
	* nothing to observe.
	*/
	return (exchange, target, caller) => {
		const { method } = exchange.req;
		if (method !== "POST" && method !== "GET") return void 0;
		const path = target.split("?", 1)[0] ?? "";
		if (method === "GET") {
			const jobId = decodedPart(JOB_PATH.exec(path)?.[1]);
			return jobId === void 0 ? void 0 : observeRead(exchange, caller, jobId);
		}
		if (JOBS_PATH.test(path)) return observeSubmission(exchange, caller);
		const jobId = decodedPart(CANCEL_PATH.exec(path)?.[1]);
		if (jobId === void 0) return void 0;
		return {
			onRequest() {},
			onAnswer({ status }) {
				if (isSuccess(status)) onJobCall({
					kind: "cancelled",
					caller,
					jobId
				});
			}
		};
	};
}
/** Copies all bytes of a message while they pass. */
function copyBody(message, bodyCopy) {
	if (!bodyCopy) return;
	message.on("data", (chunk) => bodyCopy.add(chunk));
	message.once("end", () => bodyCopy.end("whole"));
	message.once("close", () => bodyCopy.end("cut off"));
}
function createBodyCopy(maxBytes) {
	let chunks = [];
	let size = 0;
	let resolve = () => {};
	return {
		bytes: new Promise((then) => resolve = then),
		add(chunk) {
			size += chunk.length;
			if (size <= maxBytes) return void chunks.push(chunk);
			chunks = chunks.slice(0, 1);
			resolve(void 0);
		},
		start: () => chunks[0],
		end: (how) => resolve(how === "whole" && size <= maxBytes ? Buffer.concat(chunks) : void 0)
	};
}
/**
* Returns the job of an answer that is too long to copy. Its id comes first, and the rest can be
* read by that id.
*/
function jobAtStart(start) {
	const text = start?.toString("latin1", 0, MAX_ID_CHARS) ?? "";
	const [, id] = /^\s*\{\s*"id"\s*:\s*"([\w.:-]+)"/.exec(text) ?? [];
	return id === void 0 ? void 0 : {
		id,
		urls: {}
	};
}
function isSuccess(status) {
	return status >= 200 && status < 300;
}
function hasEnded(job) {
	const status = job?.["status"];
	return typeof status === "string" && IS_TERMINAL[status] === true;
}
async function jsonOf(given, contentEncoding) {
	const coding = contentEncoding?.trim().toLowerCase() || "identity";
	const bytes = await given;
	if (bytes === void 0 || !Object.hasOwn(DECODERS, coding)) return void 0;
	try {
		const text = await DECODERS[coding](bytes);
		const value = await parseWithinLimits(text);
		return isJsonObject(value) ? value : void 0;
	} catch {
		return;
	}
}
function boundedDecoder(decode) {
	return (bytes) => decode(bytes, { maxOutputLength: 4 * MAX_COPY_BYTES.body });
}
// src/upstreams/passthrough/proxy-call.ts
/**
* How long the rest of an upload is read after its answer: to close at once would lose the answer.
*/
const DRAIN_TIMEOUT_MS = 1e4;
function createProxyCall({ proxyExchange, proxyRequest, connectTimeoutMs, resolve }) {
	const { req, res } = proxyExchange;
	let request;
	let stage = "unsent";
	function end(proxyOutcome) {
		if (stage === "over") return;
		stage = "over";
		if (proxyOutcome === "answered") proxyExchange.respond = false;
		if (!req.complete || proxyOutcome !== "answered" || !res.writableFinished) request?.destroy();
		req.unpipe();
		resolve(proxyOutcome);
	}
	function fail(cause) {
		if (stage === "answering" && cause) return abortAnswer();
		if (req.socket.destroyed) end("answered");
		else if (stage === "unsent") end("unreachable");
		else if (stage === "sent") end("lost");
	}
	function abortAnswer() {
		if (res.writableEnded) return;
		if (req.httpVersion === "1.0") req.socket.resetAndDestroy();
		else res.destroy();
	}
	if (res.destroyed) end("answered");
	else res.once("close", () => end("answered"));
	return {
		visibleRequest: {
			method: "POST",
			url: proxyRequest.path,
			headers: toHeaderObject(proxyRequest.headers),
			httpVersion: req.httpVersion,
			socket: req.socket,
			on: req.on.bind(req)
		},
		/** Called when the call has got a connection, a new one or one that was used before. */
		onConnection(opened) {
			request = opened;
			if (stage === "over") return void opened.destroy();
			opened.path = proxyRequest.path;
			opened.once("close", () => fail());
			const countInterim = createInterimAnswerCounter();
			opened.on("information", () => {
				try {
					countInterim();
				} catch (cause) {
					opened.destroy(cause);
				}
			});
			whenConnected(opened, connectTimeoutMs, () => {
				if (stage === "unsent") stage = "sent";
			});
		},
		onAnswer(answer) {
			if (stage === "over") return void answer.destroy();
			const { statusCode: status = 0, statusMessage: reason = "", rawHeaders: raw } = answer;
			if (!writeAnswerHead(res, proxyRequest, {
				status,
				reason,
				raw
			})) return end("lost");
			if (answer.headers["content-length"] === void 0) flushHead(res);
			stage = "answering";
			const coding = answer.headers["content-encoding"];
			copyBody(answer, proxyRequest.observer?.onAnswer({
				status,
				coding
			}));
			answer.on("error", abortAnswer);
			res.on("error", () => res.destroy());
			res.once("finish", () => {
				end("answered");
				if (!req.complete) drainRequest(req);
			});
			if (req.method === "HEAD" || status === 204 || status === 304) res.end();
			else answer.pipe(res);
		},
		fail
	};
}
/** Waits for a connection before anything is sent. One that was used before is ready at once. */
function whenConnected(request, timeoutMs, onConnected) {
	const { socket } = request;
	if (!socket?.connecting) return onConnected();
	const timer = setTimeout(() => request.destroy(/* @__PURE__ */ new Error("not connected in time")), timeoutMs);
	socket.once("encrypted" in socket ? "secureConnect" : "connect", () => {
		clearTimeout(timer);
		onConnected();
	});
	request.once("close", () => clearTimeout(timer));
}
function drainRequest(request) {
	const { socket } = request;
	const timer = setTimeout(() => socket.destroySoon(), DRAIN_TIMEOUT_MS).unref();
	request.once("close", () => clearTimeout(timer));
	request.resume();
}
// src/upstreams/passthrough/fast-call.ts
/** Writes an answer to the client as it arrives. */
function createFastCall(options) {
	const { exchange, order, silenceMs, connectionError, resolve } = options;
	const { req, res } = exchange;
	let stage = "unsent";
	let dispatchController;
	let bodyCopy;
	const countInterim = createInterimAnswerCounter();
	/** The bytes of the body that are still to come; NaN when the length is unknown. */
	let bytesLeft = NaN;
	let drainTimer;
	let lastChunk;
	function end(outcome) {
		if (stage === "over") return;
		stage = "over";
		clearTimeout(drainTimer);
		if (outcome === "answered") exchange.respond = false;
		if (!res.writableFinished) dispatchController?.abort(/* @__PURE__ */ new Error("the call is over"));
		resolve(outcome);
	}
	function abortAnswer() {
		bodyCopy?.end("cut off");
		if (res.writableEnded) return;
		if (req.httpVersion === "1.0") req.socket.resetAndDestroy();
		else res.destroy();
	}
	/**
	* Pauses until the client reads. A client that does not read has the same time limit as the
	* service.
	*/
	function pauseUntilDrained() {
		dispatchController?.pause();
		if (!drainTimer) res.on("drain", resume);
		drainTimer = setTimeout(() => res.destroy(), silenceMs);
	}
	function resume() {
		clearTimeout(drainTimer);
		dispatchController?.resume();
	}
	if (res.destroyed) end("answered");
	else res.once("close", () => end("answered"));
	return {
		onRequestStart(controller) {
			dispatchController = controller;
			if (stage === "over") controller.abort(/* @__PURE__ */ new Error("the client is gone"));
			else stage = "sent";
		},
		onResponseStart(controller, status, headers, text = "") {
			if (status >= 100 && status < 200) return countInterim();
			const raw = rawHeaderTexts(controller.rawHeaders);
			const reason = reasonPhrase(status, text);
			if (stage === "over" || !writeAnswerHead(res, order, {
				status,
				reason,
				raw
			})) return end("lost");
			stage = "answering";
			const { "content-length": length, "content-encoding": coding } = headers;
			bodyCopy = order.observer?.onAnswer({
				status,
				coding: coding?.toString()
			});
			res.on("error", () => res.destroy());
			if (status === 304 || status === 204) return void res.end();
			if (length === void 0) flushHead(res);
			else bytesLeft = Number(length);
		},
		onResponseData(_controller, chunk) {
			if (stage !== "answering") return;
			bodyCopy?.add(chunk);
			bytesLeft -= chunk.length;
			if (bytesLeft === 0) lastChunk = chunk;
			else if (!res.write(chunk)) pauseUntilDrained();
		},
		onResponseEnd() {
			if (stage !== "answering") return;
			if (connectionError.isCurrent && Number.isNaN(bytesLeft)) return abortAnswer();
			bodyCopy?.end("whole");
			if (!res.writableEnded) res.end(lastChunk);
		},
		onResponseError() {
			if (stage === "answering") abortAnswer();
			else if (req.socket.destroyed) end("answered");
			else end(stage === "unsent" ? "unreachable" : "lost");
		}
	};
}
function rawHeaderTexts(raw) {
	return Array.isArray(raw) ? raw.map((each) => each.toString("latin1")) : [];
}
/**
* Returns the reason phrase. The library reads it as UTF-8; bytes that are not UTF-8 are lost, so
* the phrase is dropped.
*/
function reasonPhrase(status, text) {
	if (text.includes("�")) return STATUS_CODES[status] ?? "";
	return Buffer.from(text).toString("latin1");
}
// src/upstreams/passthrough/fast-relay.ts
/** The pool scans all its connections for a free one, and never closes idle ones early. */
const MAX_CONCURRENT = 256;
/** For these methods the library adds no length and closes no connection. */
const WITH_BODY = /* @__PURE__ */ new Set([
	"POST",
	"PUT",
	"PATCH"
]);
const WITHOUT_BODY = /* @__PURE__ */ new Set(["GET", "DELETE"]);
/** Sends small calls to one upstream, each after its whole body has arrived. */
function createFastRelay(origin, options) {
	const { connectTimeoutMs, silenceMs, keepAliveMs } = options;
	const connectionError = { isCurrent: false };
	const pool = new Pool(origin, {
		connect: skippingContinue(trackingErrors(connectionError, buildConnector({ timeout: connectTimeoutMs }))),
		pipelining: 1,
		headersTimeout: silenceMs,
		bodyTimeout: silenceMs,
		keepAliveTimeout: keepAliveMs,
		keepAliveMaxTimeout: keepAliveMs
	});
	let active = 0;
	async function send(exchange, order) {
		const { req } = exchange;
		const length = smallLength(req) ?? 0;
		const body = length > 0 ? await readSmallBody(req, length) : void 0;
		if (length > 0 && body === void 0) {
			exchange.respond = false;
			return "answered";
		}
		if (body) order.observer?.onRequest(body);
		return new Promise((resolve) => {
			const { path, headers } = order;
			const handler = createFastCall({
				exchange,
				order,
				silenceMs,
				connectionError,
				resolve
			});
			pool.dispatch({
				path,
				method: req.method ?? "",
				headers,
				body: body ?? null
			}, handler);
		});
	}
	return {
		/** True when a call may take this path. */
		accepts({ method = "", headers }) {
			if (active >= MAX_CONCURRENT || smallLength({ headers }) === void 0) return false;
			if (headers.accept?.includes("text/event-stream")) return false;
			if (WITH_BODY.has(method)) return true;
			return WITHOUT_BODY.has(method) && headers["content-length"] === void 0;
		},
		/** Sends a call once. */
		async send(exchange, order) {
			active++;
			try {
				return await send(exchange, order);
			} finally {
				active--;
			}
		},
		close: () => void pool.destroy()
	};
}
/**
* Tracks reset connections. The library takes an answer without a length as complete even when its
* connection was reset. It notices a reset later than this listener, within the same event.
*/
function trackingErrors(connectionError, connect) {
	return (options, callback) => connect(options, (...result) => {
		result[1]?.prependListener("error", () => {
			connectionError.isCurrent = true;
			queueMicrotask(() => connectionError.isCurrent = false);
		});
		callback(...result);
	});
}
/** Larger bodies are streamed. */
const MAX_SMALL_BODY_BYTES = 65536;
/**
* Returns the length of a body that is small enough to wait for; `undefined` when it is unknown or
* too long.
*/
function smallLength({ headers }) {
	if (headers["transfer-encoding"] !== void 0) return void 0;
	const length = Number(headers["content-length"] ?? 0);
	return length <= MAX_SMALL_BODY_BYTES ? length : void 0;
}
/** Reads a body of known length. Most bodies arrive together with their head. */
function readSmallBody(request, length) {
	const chunks = [];
	let size = 0;
	return new Promise((resolve) => {
		request.on("data", (chunk) => {
			chunks.push(chunk);
			size += chunk.length;
			if (size === length) resolve(chunks.length === 1 ? chunk : Buffer.concat(chunks));
		});
		request.once("close", () => resolve(void 0));
	});
}
const CONTINUE = "HTTP/1.1 100";
const END_OF_HEAD = "\r\n\r\n";
/** The maximum size of a head that is held until it is complete. */
const MAX_HEAD_BYTES = 16384;
const EMPTY = Buffer.alloc(0);
/**
* Removes `100 Continue` answers. Some services send one unrequested, before an answer. The library
* closes such a connection, and loses a call that may have taken effect.
*/
function skippingContinue(connect) {
	return (options, callback) => connect(options, (...result) => {
		if (result[1]) skipContinue(result[1]);
		callback(...result);
	});
}
/**
* Does this for a connection with one call at a time: bytes that are read after a call was written
* begin an answer.
* @internal
*/
function skipContinue(socket) {
	const read = socket.read.bind(socket);
	let written = 0;
	let isAnswerStart = false;
	let held = EMPTY;
	socket.read = (bytes) => {
		if (bytes !== void 0) return read(bytes);
		for (let chunk = read(); chunk !== null; chunk = read()) {
			if (socket.bytesWritten !== written) {
				written = socket.bytesWritten;
				isAnswerStart = true;
			}
			if (!isAnswerStart) return chunk;
			held = afterContinue(held.length === 0 ? chunk : Buffer.concat([held, chunk]));
			if (mayBeContinue(held)) continue;
			isAnswerStart = false;
			const answer = held;
			held = EMPTY;
			return answer;
		}
		return null;
	};
}
function afterContinue(bytes) {
	let rest = bytes;
	while (rest.toString("latin1", 0, 12) === CONTINUE) {
		const end = rest.indexOf(END_OF_HEAD);
		if (end < 0) break;
		rest = rest.subarray(end + 4);
	}
	return rest;
}
function mayBeContinue(bytes) {
	const start = bytes.toString("latin1", 0, 12);
	return bytes.length < MAX_HEAD_BYTES && CONTINUE.startsWith(start);
}
// src/upstreams/passthrough/relay.ts
/** @internal */
const DEFAULT_RELAY_LIMITS = {
	connectTimeoutMs: 5e3,
	/**
	* The longest silence in both directions. A model may compute for ten minutes before its first
	* byte.
	*/
	silenceMs: 9e5
};
/**
* Servers close idle connections after five seconds or more, and a call on a closing connection is
* lost.
*/
const IDLE_CONNECTION_MS = 4e3;
/** Sends small calls through undici and all others through `http-proxy` (see docs/decisions). */
function createRelay(origin, limits = {}) {
	const allLimits = {
		...DEFAULT_RELAY_LIMITS,
		...limits
	};
	const streaming = createStreamingRelay(origin, allLimits);
	const fast = createFastRelay(origin, {
		...allLimits,
		keepAliveMs: IDLE_CONNECTION_MS
	});
	return {
		/** True when a call is sent after its whole body has arrived. */
		isSmall: (request) => fast.accepts(request),
		/** Sends a call once. The caller answers the client when this fails. */
		send: (exchange, proxyRequest) => (fast.accepts(exchange.req) ? fast : streaming).send(exchange, proxyRequest),
		close() {
			fast.close();
			streaming.close();
		}
	};
}
/** Sends requests through `http-proxy`. The call itself writes the answer. */
function createStreamingRelay(origin, { connectTimeoutMs, silenceMs }) {
	const { protocol, hostname, port } = new URL(origin);
	const agent = new (protocol === "https:" ? Agent$1 : Agent)({
		keepAlive: true,
		timeout: IDLE_CONNECTION_MS,
		scheduling: "lifo"
	});
	const host = hostname.replace(/^\[|\]$/g, "");
	const proxy = loadHttpProxy().createProxyServer({
		target: {
			protocol,
			host,
			hostname: host,
			port
		},
		agent,
		proxyTimeout: silenceMs,
		selfHandleResponse: true,
		prependPath: false,
		toProxy: true
	});
	const calls = /* @__PURE__ */ new WeakMap();
	proxy.on("proxyReq", (request, visibleRequest) => calls.get(visibleRequest)?.onConnection(request));
	proxy.on("proxyRes", (answer, visibleRequest) => calls.get(visibleRequest)?.onAnswer(answer));
	return {
		send: (exchange, proxyRequest) => new Promise((resolve) => {
			const { req, res } = exchange;
			const call = createProxyCall({
				proxyExchange: exchange,
				proxyRequest,
				connectTimeoutMs,
				resolve
			});
			const options = {
				method: req.method,
				buffer: req
			};
			calls.set(call.visibleRequest, call);
			try {
				proxy.web(call.visibleRequest, res, options, (error) => call.fail(error));
				proxyRequest.observer?.onRequest();
			} catch (error) {
				call.fail(error);
			}
		}),
		close: () => agent.destroy()
	};
}
const require = createRequire(import.meta.url);
/**
* Loads http-proxy 1.18.1 without its deprecated call. The library copies `util._extend` while it
* loads, and Node 24 reports DEP0060 at the first call of that function. For the arguments of the
* library, `Object.assign` has the same effect.
*/
function loadHttpProxy() {
	const util = require("node:util");
	const extend = util._extend;
	util._extend = Object.assign;
	try {
		return require("http-proxy");
	} finally {
		util._extend = extend;
	}
}
// src/upstreams/passthrough/target.ts
const V2_PATH = "/api/v2";
/**
* Returns the path below which the upstream's services are, without `/api/v2` and a slash at its
* end.
*/
function mountOf(baseUrl) {
	const path = new URL(baseUrl).pathname.replace(/\/+$/, "");
	return path.endsWith(V2_PATH) ? path.slice(0, -7) : path;
}
/**
* Returns the targets of the v2 API. Host-relative links of its answers include the mount already.
*/
function v2TargetOf(mount) {
	const mounted = mount + V2_PATH;
	return (path) => {
		if (mount !== "" && isBelow(mounted, path)) return path;
		return isV2Path(path) ? mount + path : void 0;
	};
}
const JOB_TARGET = /^([^?]*?\/api\/v2\/jobs\/)([^/?]+)(.*)$/s;
/** Returns the id of the job that a v2 call is about; `undefined`: it is not about a job. */
function jobIdOfTarget(target) {
	return decodedPart(JOB_TARGET.exec(target)?.[2]);
}
/** Returns the target of the same call for another job. */
function withJobId(target, jobId) {
	return target.replace(JOB_TARGET, (_all, before, _id, after) => before + encodeURIComponent(jobId) + after);
}
/** Returns the targets of the model router and of its queue. */
function modelTargetOf(mount, prefix) {
	return (path) => MODEL_PATHS.test(path) ? mount + prefix + path.slice(10) : void 0;
}
/** Returns the targets of the partner routes beside the model router. */
function partnerTargetOf(mount) {
	return (path) => PARTNER_PATHS.test(path) ? mount + path : void 0;
}
function isBelow(prefix, path) {
	return path === prefix || path.startsWith(`${prefix}/`);
}
const DOT_SEGMENTS = /(^|\/|\\|%2f|%5c)(\.|%2e){1,2}($|\/|\\|;|%2f|%5c|%3b)/i;
/**
* True when a path has dot segments: a proxy in between may resolve them, and the call would leave
* the allowed prefix.
*/
function hasDotSegments(path) {
	return DOT_SEGMENTS.test(path) || path.includes("#");
}
// src/upstreams/passthrough/pass-through.ts
/** Sends one call of a route upstream, or returns why it is refused. */
function createForward(options, relay) {
	const { host } = new URL(options.baseUrl);
	const observerFor = options.onJobCall && createJobCallObserver(options.onJobCall);
	async function forward(exchange, route, extraHeaders) {
		const { req } = exchange;
		const refused = refusalOf(req);
		if (refused) return { failure: refused };
		const caller = await options.authenticate(req);
		if (caller === void 0) return { failure: "unauthorized" };
		if (options.key !== void 0 && caller.credential !== void 0) return {
			caller,
			failure: "foreign_key"
		};
		const key = options.key ?? caller.credential;
		const { headersBeside, api } = route.dialect;
		const path = api === "v2" ? await withServiceJobId(route.target, caller) : withoutCallerKeys(caller, route.target);
		const observer = api === "v2" ? observerFor?.(exchange, path, caller) : void 0;
		const outcome = await relay.send(exchange, {
			path,
			headers: requestHeaders(req, {
				host,
				key
			}),
			extraHeaders,
			headersBeside,
			observer
		});
		return outcome === "answered" ? { caller } : {
			caller,
			failure: outcome
		};
	}
	/** Replaces a prompt's id in the target: the service knows a job only by its own id. */
	async function withServiceJobId(target, { user }) {
		const id = jobIdOfTarget(target);
		if (id === void 0 || options.jobIdOf === void 0) return target;
		const jobId = await options.jobIdOf(user, id).catch(() => void 0);
		return jobId === void 0 || jobId === id ? target : withJobId(target, jobId);
	}
	/**
	* Removes the caller's keys. In a partner's call, a `token` may be something else, such as a
	* signature.
	*/
	function withoutCallerKeys({ credential }, target) {
		const { path, query } = readTarget(target);
		return path + withoutLogin(query, [
			credential,
			options.key,
			options.localToken
		]);
	}
	return forward;
}
function upstreamTarget({ targetOf, api }, { url = "" }) {
	const { path, query } = readTarget(url);
	const target = targetOf(path);
	return target === void 0 ? void 0 : target + (api === "v2" ? withoutLogin(query) : query);
}
function createPassThrough(options) {
	const relay = createRelay(new URL(options.baseUrl).origin, options.limits);
	const forward = createForward(options, relay);
	const mount = mountOf(options.baseUrl);
	/**
	* The failures of calls that were sent already. They are reported when the middleware gets the
	* call.
	*/
	const failures = /* @__PURE__ */ new WeakMap();
	const middlewareFor = (dialect) => (ctx, next) => {
		const target = upstreamTarget(dialect, ctx.req);
		return target === void 0 ? next() : forwardOrRefuse(ctx, {
			target,
			dialect
		});
	};
	async function forwardOrRefuse(ctx, route) {
		const known = failures.get(ctx.req);
		const { caller, failure } = known ? { failure: known } : await forward(ctx, route);
		if (caller) ctx.state.caller = caller;
		if (failure === void 0) return;
		if (failure === "unreachable" || failure === "lost") {
			const id = ctx.state.requestId;
			options.log.warn({
				event: "upstream.call_not_passed",
				id,
				failure
			}, "could not pass a call through");
		}
		route.dialect.writeFailure(ctx, failure);
	}
	const v2 = {
		api: "v2",
		targetOf: v2TargetOf(mount),
		writeFailure: writeV2Failure
	};
	const models = {
		api: "router",
		targetOf: modelTargetOf(mount, options.routerPrefix),
		writeFailure: writeRouterFailure,
		headersBeside: missingRouterHeaders
	};
	const partners = {
		...models,
		targetOf: partnerTargetOf(mount),
		headersBeside: missingAliases
	};
	const [passModels, passPartners] = [middlewareFor(models), middlewareFor(partners)];
	return {
		/** Serves `/api/v2/*`. Other paths continue to the next middleware. */
		v2: middlewareFor(v2),
		/**
		* Serves `/v1/models`, everything below it, and `/proxy/*`. Other paths continue to the next
		* middleware.
		*/
		router: (ctx, next) => passModels(ctx, () => passPartners(ctx, next)),
		/** Returns a small call that needs no middleware; `undefined` for other calls. */
		fastCall(exchange) {
			const { req } = exchange;
			for (const dialect of [
				v2,
				models,
				partners
			]) {
				const target = upstreamTarget(dialect, req);
				if (target !== void 0) return relay.isSmall(req) ? fastCallFor({
					target,
					dialect
				}) : void 0;
			}
			return;
			function fastCallFor(route) {
				return {
					api: route.dialect.api,
					async send(extraHeaders) {
						const { caller, failure } = await forward(exchange, route, extraHeaders);
						if (failure === void 0) return caller;
						failures.set(req, failure);
					}
				};
			}
		},
		/** Cuts off the calls in progress. */
		close: () => relay.close()
	};
}
/**
* Refuses methods: `TRACE` would return the key that is added, and `OPTIONS` is about this server.
*/
function refusalOf(req) {
	if (hasDotSegments(readTarget(req.url ?? "").path)) return "bad_path";
	if (req.method === "TRACE" || req.method === "OPTIONS") return "bad_method";
	return hasUnsupportedCoding(req) ? "bad_coding" : void 0;
}
export { createPassThrough };
