import { i as refuse, n as isGone, o as errorCodeOf, r as ok, t as isAboutContent } from "./job-api-DUOBoLDS.js";
import { a as mapParts, l as stringifyJson, n as isJsonObject, o as parseJson, t as LosslessNumber } from "./json-0U1hIHCx.js";
import { t as readRetryAfter } from "./retry-after-Ku8rrA8Q.js";
import { B as engineFileOf, _ as isCapacityRefusal, d as uploadFolder, f as uploadFoldersIn } from "./object-info-dvDLu96x.js";
import { a as StopRequest, c as JobFeed, g as outputTypeOf, h as OUTPUT_TYPES, i as mapAssetRefs, m as JOB_STATUSES, o as jsonWeight, p as IS_TERMINAL, r as isAssetRef, t as assetRefText, u as endedJobEvents } from "./asset-refs-DdHYYwNI.js";
import { t as readAtMost } from "./read-at-most-0g521mbO.js";
import { i as monotonicClock } from "./event-loop-BDDWO5Ig.js";
import { t as I } from "./index.min-rxNe_V92.js";
import { i as createAdaptiveSemaphore } from "./concurrency-B9CCxp_8.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { n as hashFile } from "./hash-DYRd5MjV.js";
import { t as require_undici } from "./undici-WQfxp4Nq.js";
import { n as createInterimAnswerCounter, t as TooManyInterimAnswers } from "./interim-answers-QQbjp5yj.js";
import { t as hasControlCharacter } from "./control-characters-FG2-esMS.js";
import { C as decodedPart } from "./ledger-Bul7BDb8.js";
import { t as resumedBytes } from "./resumed-bytes-Blv7-93E.js";
import { open, rm } from "node:fs/promises";
import { posix } from "node:path";
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { lookup } from "node:dns";
import { StringDecoder } from "node:string_decoder";
// src/upstreams/remote-files/file-references.ts
/**
* True when a submission names no file, as most do. To search the prepared JSON text is faster than
* a walk.
*/
function namesNoFile({ workflowJson }) {
	return workflowJson !== void 0 && !workflowJson.includes("core/ASSET");
}
/** True when a submission has a file reference that could also be written as a path. */
function hasFileRefs(request) {
	if (namesNoFile(request)) return false;
	return someRef(request.workflow, (ref) => filePathOf(ref) !== void 0);
}
/** Returns the workflow with its files named as an upstream of this kind requires. */
function inAssetMode(workflow, mode) {
	const engineReferenceOf = (ref) => engineNameOf(ref) ?? (mode === "string" ? filePathOf(ref) : void 0);
	return mapRefs(workflow, (ref) => engineReferenceOf(ref) ?? ref);
}
/** Returns the workflow with `change` applied to the info of each file reference. */
function mapFileRefs(workflow, change) {
	return mapRefs(workflow, (ref) => {
		const id = assetRefText(ref, "id");
		if (id === void 0) return ref;
		const [hash, filePath] = [assetRefText(ref, "hash"), assetRefText(ref, "file_path")];
		const info = change({
			id,
			...hash !== void 0 && { hash },
			...filePath !== void 0 && { file_path: filePath }
		});
		return {
			...ref,
			info
		};
	});
}
/**
* True when two workflows are the same submission. One server stores the names with which it
* replaced file references, so a reference and a text count as equal.
*/
function isSameWorkflow(sent, stored) {
	if (isAssetRef(sent)) return typeof stored === "string" || isAssetRef(stored);
	if (Array.isArray(sent)) {
		const items = sent;
		return Array.isArray(stored) && stored.length === items.length && items.every((item, i) => isSameWorkflow(item, stored[i] ?? null));
	}
	if (!isJsonObject(sent)) return stringifyJson(sent) === stringifyJson(stored);
	if (!isJsonObject(stored)) return false;
	const keys = Object.keys(sent);
	return keys.length === Object.keys(stored).length && keys.every((key) => key in stored && isSameWorkflow(sent[key] ?? null, stored[key] ?? null));
}
/** Changes the references. Most workflows name no file; they stay the same object. */
function mapRefs(workflow, change) {
	return someRef(workflow, isAssetRef) ? mapAssetRefs(workflow, change) : workflow;
}
/** True when a reference matches. Builds no list of members, since graphs are large. */
function someRef(value, matches) {
	if (typeof value !== "object" || value === null) return false;
	if (Array.isArray(value)) return value.some((item) => someRef(item, matches));
	if (matches(value)) return true;
	const members = value;
	for (const name in members) if (someRef(members[name] ?? null, matches)) return true;
	return false;
}
/**
* Returns the engine's name of an output. The self-hosted server itself would replace an output's
* id with the bare name.
*/
function engineNameOf(ref) {
	const file = engineFileOf(assetRefText(ref, "id") ?? "");
	return file && annotatedName(file);
}
function filePathOf(value) {
	return assetRefText(value, "file_path");
}
/**
* Returns the name with its folder: without the folder a v1 engine would search among the uploads.
*/
function annotatedName({ name, subfolder, type }) {
	return `${posix.join(subfolder, name)} [${type}]`;
}
// src/upstreams/remote-files/upload-paths.ts
const FOLDER_CHARS = 16;
const INPUT_PATH = /^input\/(.+)$/s;
/**
* Creates the paths. Users of this server may share one account upstream, or there may be no
* accounts, so a plain name would belong to every user. Each file gets a folder that cannot be
* guessed; other bytes get another folder.
*/
function createUploadPaths(secret) {
	function folderOf({ user, filePath, hash }) {
		if (secret === void 0 || !INPUT_PATH.test(filePath)) return void 0;
		const upload = [
			"place",
			user,
			hash.toLowerCase(),
			filePath
		].join("\0");
		const digits = createHmac("sha256", secret).update(upload).digest("hex");
		return uploadFolder(digits.slice(0, FOLDER_CHARS));
	}
	function pathOf(upload) {
		const folder = folderOf(upload);
		const [, name = ""] = INPUT_PATH.exec(upload.filePath) ?? [];
		return folder === void 0 ? upload.filePath : `input/${folder}/${name}`;
	}
	return {
		/** Returns the folder that holds only this upload, if there is one. */
		folderOf,
		pathOf,
		/** Returns the workflow with the real paths of its files, for upstreams that use paths. */
		rewriteWorkflow: (workflow, user) => mapFileRefs(workflow, (info) => {
			const { hash, file_path: filePath } = info;
			if (hash === void 0 || filePath === void 0) return info;
			return {
				...info,
				file_path: pathOf({
					user,
					filePath,
					hash
				})
			};
		})
	};
}
/**
* The three patterns of a folder: before a name; alone, as folders are listed; and in a list of
* choices, with its content.
*/
const FOLDER_BEFORE_NAME = /holdover-[0-9a-f]{16}(?:\/|\\+)/g;
/** The space before a choice is bounded, since a service may send any amount. */
const QUOTED_CHOICE = /(?<=[[(,]\s{0,64})(\\*["'])holdover-[0-9a-f]{16}(?:(?!\1).)*\1\s*(?:,\s*|(?=[\])]|$))/g;
const FOLDER = /holdover-[0-9a-f]{16}/g;
/**
* Returns the upstream's message about a file, with the name that the user gave the file. Choices
* inside upload folders are left out, as they may belong to other users.
*/
function withoutFolders(text) {
	if (!text.includes("holdover-")) return text;
	return text.replaceAll(QUOTED_CHOICE, "").replaceAll(FOLDER_BEFORE_NAME, "").replaceAll(FOLDER, "");
}
/** Does this for JSON. */
function withoutFoldersIn(value) {
	if (typeof value === "string") return withoutFolders(value);
	if (Array.isArray(value)) {
		const items = value;
		const isChoice = (item) => typeof item === "string" && items.length > 1 && uploadFoldersIn(item).length > 0;
		return items.filter((item) => !isChoice(item)).map(withoutFoldersIn);
	}
	return mapParts(value, withoutFoldersIn, withoutFolders);
}
// src/upstreams/remote-calls/redact.ts
/** Shorter texts are ordinary words, or empty. */
const MIN_SECRET_CHARS = 4;
function redactText(text, secrets) {
	return secrets.reduce((clear, secret) => secret.length < MIN_SECRET_CHARS ? clear : clear.replaceAll(secret, "[removed]"), text);
}
/** Returns a value without the secrets in its texts and in the names of its members. */
function redact(value, secrets) {
	const clear = (text) => redactText(text, secrets);
	return typeof value === "string" ? clear(value) : mapParts(value, (part) => redact(part, secrets), clear);
}
function redactError(error, secrets) {
	if (secrets.length === 0) return error;
	const { code, message, details } = error;
	return {
		...error,
		code: redactText(code, secrets),
		message: redactText(message, secrets),
		details: redact(details, secrets)
	};
}
/** Redacts a job. Its outputs stay unchanged, since their names and links must work. */
function redactJob(job, secrets) {
	const { error, progress, x_ui: ui } = job;
	if (secrets.length === 0 || !error && !progress && !ui) return job;
	return {
		...job,
		error: error && redactMembers(error, secrets),
		progress: progress && redactMembers(progress, secrets),
		...ui && { x_ui: redactMembers(ui, secrets) }
	};
}
function redactEvent(event, secrets) {
	if (secrets.length === 0 || !EVENTS_WITH_TEXT.has(event.event)) return event;
	return {
		...event,
		data: redactMembers(event.data, secrets)
	};
}
/** The events with texts of the service's own. */
const EVENTS_WITH_TEXT = /* @__PURE__ */ new Set([
	"progress",
	"x_node",
	"x_text"
]);
/** Redacts members. Names of the contract stay unchanged, even when they equal a key. */
function redactMembers(value, secrets) {
	return mapParts(value, (part) => redact(part, secrets));
}
// src/upstreams/remote-calls/errors.ts
/** The statuses that may come from a proxy when the body is a page, even if the service is down. */
const PROXY_PAGE_STATUSES = /* @__PURE__ */ new Set([
	403,
	404,
	405,
	410
]);
/** The code for a status when the body has no code of the contract. */
const CODE_OF_STATUS = {
	400: "invalid_request",
	401: "unauthorized",
	402: "insufficient_credits",
	403: "forbidden",
	404: "not_found",
	413: "payload_too_large",
	416: "range_not_satisfiable",
	429: "rate_limited",
	501: "not_implemented"
};
/** Codes for which the hosted service has names of its own. */
const CODE_ALIASES = /* @__PURE__ */ new Map([["job_not_found", "not_found"], ["asset_not_found", "not_found"]]);
/** Returns a refusal as a value. A client never gets the text of a proxy's page. */
function toError(reply, secret) {
	const { status, headers, json } = reply;
	const envelope = isJsonObject(json) ? isJsonObject(json["error"]) ? json["error"] : json : {};
	const statedCode = textOf(envelope, "code");
	const isAnswer = status >= 400 && !isProxyPage(reply);
	const fallback = isAnswer ? fallbackCode(status) : "bad_upstream_response";
	const code = statedCode === void 0 ? fallback : CODE_ALIASES.get(statedCode) ?? statedCode;
	const message = textOf(envelope, "message") ?? `The job service answered ${status}.`;
	const retryAfterSeconds = readRetryAfter(headers, Date.now());
	return redactError({
		status: isAnswer ? status : 502,
		code,
		message: withoutFolders(message),
		details: withoutFoldersIn(detailsOf(envelope)),
		...retryAfterSeconds !== void 0 && { retryAfterSeconds },
		...statedCode === "upstream_unreachable" && { engineDown: true }
	}, secret === void 0 ? [] : [secret]);
}
/** Returns the error for a call without a complete answer. */
function unreachable() {
	return {
		status: 503,
		code: "upstream_unreachable",
		message: "The job service could not be reached.",
		details: null
	};
}
/**
* Refuses an answer that is not in the contract: a login page, a proxy's page, an incomplete body.
*/
function invalidAnswer() {
	return refuse(502, "bad_upstream_response", "The job service gave an answer that is none.");
}
/** Refuses an answer that was cut off for its size. */
function tooLargeAnswer() {
	return refuse(502, "bad_upstream_response", "The job service gave an answer that is too large.");
}
/** Returns the wait to use. A missing, meaningless or very long one is replaced by a bound. */
function retryAfterMs(seconds, limits) {
	const wanted = seconds === void 0 ? limits.defaultRetryAfterMs : seconds * 1e3;
	return Math.min(limits.maxRetryAfterMs, Math.max(limits.minRetryAfterMs, wanted));
}
function isProxyPage({ status, isPage }) {
	return isPage === true && PROXY_PAGE_STATUSES.has(status);
}
function fallbackCode(status) {
	return CODE_OF_STATUS[status] ?? (status >= 500 ? "upstream_error" : "bad_upstream_response");
}
/** Returns the details of a refusal. Some refusals have more members than the contract's three. */
function detailsOf(envelope) {
	const { code: _code, message: _message, details = null, ...extraMembers } = envelope;
	const extra = Object.keys(extraMembers).length > 0 && "code" in envelope ? extraMembers : void 0;
	return details ?? extra ?? null;
}
function textOf(value, key) {
	const text = value[key];
	return typeof text === "string" && text !== "" ? text : void 0;
}
const MAX_BYTES = 65536;
const READ_TIMEOUT_MS = 5e3;
/** Reads the body of a refusal, up to the size and the time that a refusal may take. */
async function readRefusal(answer) {
	const { status, headers, body } = answer;
	const timer = setTimeout(() => body.destroy(), READ_TIMEOUT_MS);
	try {
		const { json, isPage } = readBody(String(await readAtMost(MAX_BYTES, body)));
		const isHtml = /\bhtml\b/i.test(headers["content-type"] ?? "");
		return {
			status,
			headers,
			...json !== void 0 && { json },
			isPage: isPage === true && isHtml
		};
	} catch {
		return {
			status,
			headers
		};
	} finally {
		clearTimeout(timer);
	}
}
/** Returns the members of a reply that depend on its body. */
function readBody(text) {
	if (text === "") return { isPage: false };
	try {
		return { json: parseJson(text) };
	} catch {
		return { isPage: true };
	}
}
// src/upstreams/remote-calls/accounts.ts
const MAX_ACCOUNTS$1 = 1e4;
/** The characters that a header value may contain. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;
function createAccounts(credential, options) {
	const secret = randomBytes(32);
	const accounts = new I(atMost(MAX_ACCOUNTS$1));
	const createAccount = (id, key) => ({
		id,
		key,
		gate: createRateGate(options.clock),
		submissions: {
			gate: createRateGate(options.clock),
			semaphore: createAdaptiveSemaphore(options.maxConcurrentSubmissions)
		},
		credentialRefusal: void 0
	});
	return { of(caller) {
		const key = credential.mode === "fixed" ? credential.key : caller.credential;
		if (key !== void 0 && !HEADER_VALUE.test(key)) return refuse(401, "unauthorized", "This key has characters that a header cannot carry.", { outcome: "refused" });
		const id = key === void 0 ? "no-key" : createHmac("sha256", secret).update(key).digest("hex");
		const account = accounts.get(id) ?? createAccount(id, key);
		accounts.set(id, account);
		return {
			ok: true,
			value: account
		};
	} };
}
/** Runs work with the account of a caller. A caller without a usable key is refused. */
function withAccount(accounts) {
	return async (caller, work) => {
		const account = accounts.of(caller);
		return account.ok ? work(account.value) : account;
	};
}
/** Waiting calls continue spread over a fifth of the wait, not all at once. */
const JITTER = .2;
/** @internal */
function createRateGate(clock) {
	let opensAtMs = Number.NEGATIVE_INFINITY;
	const waitMs = () => Math.max(0, opensAtMs - clock.now());
	return {
		waitMs,
		closeFor: (forMs) => void (opensAtMs = Math.max(opensAtMs, clock.now() + forMs)),
		/** Waits until the gate is open, with a little jitter. False when that would take too long. */
		async waitUntilOpen({ budgetMs, signal }) {
			const deadlineMs = clock.now() + budgetMs;
			for (let ms = waitMs(); ms > 0; ms = waitMs()) {
				if (clock.now() + ms > deadlineMs) return false;
				await clock.sleep(ms * (1 + Math.random() * JITTER), signal);
			}
			return true;
		}
	};
}
// src/upstreams/remote-calls/credential-check.ts
/** An id that no service has: with an accepted credential the answer is 404, at no cost. */
const UNKNOWN_JOB_ID = "00000000-0000-4000-8000-000000000000";
const ACCEPTED_TTL_MS = 3e5;
/**
* When no answer arrives, the credential counts as accepted and is checked again after this time.
*/
const UNREACHABLE_TTL_MS = 5e3;
const MAX_ACCOUNTS = 1e4;
/** Checks if the upstream accepts an account. The answer is cached, so that not every call asks. */
function createCredentialCheck({ calls, links, clock, limits }) {
	const accepted = new I({
		...atMost(MAX_ACCOUNTS),
		ttlResolution: 0
	});
	const pendingChecks = /* @__PURE__ */ new Map();
	async function check(account) {
		const path = links.target("jobs", UNKNOWN_JOB_ID);
		const exchange = await calls.once(account, {
			method: "GET",
			path,
			timeoutMs: limits.discoverTimeoutMs
		});
		if (exchange.kind === "lost") {
			accepted.set(account.id, true, { ttl: UNREACHABLE_TTL_MS });
			return true;
		}
		if (exchange.reply.status === 401) {
			calls.recordRefusal(account, exchange.reply);
			return false;
		}
		accepted.set(account.id, true, { ttl: ACCEPTED_TTL_MS });
		return true;
	}
	return { async isAccepted(account) {
		if (account.credentialRefusal?.error.status === 401) {
			if (clock.now() < account.credentialRefusal.untilMs) return false;
			accepted.delete(account.id);
		}
		if (accepted.has(account.id)) return true;
		const pendingCheck = pendingChecks.get(account.id) ?? check(account);
		pendingChecks.set(account.id, pendingCheck);
		try {
			return await pendingCheck;
		} finally {
			pendingChecks.delete(account.id);
		}
	} };
}
// src/upstreams/remote-calls/exchange.ts
var import_undici = require_undici();
/** Sends a request. The caller reads the body of the answer. */
async function openAnswer(dispatcher, options) {
	try {
		const onInfo = createInterimAnswerCounter();
		const { statusCode: status, headers, body } = await dispatcher.request({
			...options,
			onInfo
		});
		body.on("error", () => {});
		return {
			ok: true,
			status,
			headers,
			body
		};
	} catch (cause) {
		return {
			ok: false,
			cause
		};
	}
}
/**
* One request, and its answer with the whole body. An answer above a limit fails. Interim answers
* are dropped, since no caller waits for one.
*/
var WholeExchange = class {
	#resolve;
	#signal;
	#bounds;
	#chunks = [];
	#size = 0;
	/** False for a request that never got a connection: it was not sent, whatever its error says. */
	#wasSent = false;
	#countInterim;
	#head;
	#begunAtMs = 0;
	/** An abort of the signal ends the request and its answer. */
	constructor(resolve, signal, bounds) {
		this.#resolve = resolve;
		this.#signal = signal;
		this.#bounds = bounds;
	}
	onRequestStart(controller) {
		this.#wasSent = true;
		const signal = this.#signal;
		if (!signal) return;
		const abort = () => controller.abort(signal.reason);
		if (signal.aborted) abort();
		else signal.addEventListener("abort", abort, { once: true });
	}
	onResponseStart(_controller, status, headers) {
		if (status < 200) {
			this.#countInterim ??= createInterimAnswerCounter();
			return this.#countInterim();
		}
		if (Number(headers["content-length"]) > this.#bounds.maxBytes) throw new AnswerTooLarge(`it has ${headers["content-length"]} bytes`);
		this.#head = {
			status,
			headers
		};
		this.#begunAtMs = performance.now();
	}
	/** Receives a chunk. An exception ends the connection. */
	onResponseData(_controller, chunk) {
		const { maxBytes, maxBodyMs, budget } = this.#bounds;
		if (this.#size + chunk.length > maxBytes) throw new AnswerTooLarge(`it has more than ${maxBytes} bytes`);
		if (!budget.reserve(chunk.length)) throw new AnswerTooLarge("the answers that are being read have too many bytes");
		this.#size += chunk.length;
		this.#chunks.push(chunk);
		if (performance.now() - this.#begunAtMs > maxBodyMs) throw new Error("the answer took too long");
	}
	onResponseEnd() {
		const text = Buffer.concat(this.#chunks, this.#size).toString("utf8");
		this.#release();
		if (this.#head) this.#resolve({
			ok: true,
			...this.#head,
			text
		});
	}
	onResponseError(_controller, cause) {
		this.fail(cause);
	}
	fail(cause) {
		this.#release();
		this.#resolve({
			ok: false,
			wasSent: this.#wasSent,
			cause
		});
	}
	#release() {
		this.#bounds.budget.release(this.#size);
		this.#size = 0;
	}
};
/** Thrown for a body that never ends, or is larger than any that a real service sends. */
var AnswerTooLarge = class extends Error {
	name = "AnswerTooLarge";
};
function createByteBudget(maxBytes) {
	let reservedBytes = 0;
	return {
		/** Reserves bytes. False when the limit is reached. */
		reserve(bytes) {
			if (reservedBytes + bytes > maxBytes) return false;
			reservedBytes += bytes;
			return true;
		},
		release: (bytes) => void (reservedBytes -= bytes)
	};
}
// src/upstreams/remote-calls/connections.ts
/** Opens connections. This client follows no redirects, so credentials cannot leave the origin. */
function createConnections(origin, limits, traceHeaders) {
	const connect = { timeout: limits.connectTimeoutMs };
	const pools = {
		calls: new import_undici.Pool(origin, {
			connect,
			connections: limits.connections,
			pipelining: 1
		}),
		bodies: new import_undici.Pool(origin, {
			connect,
			pipelining: 1
		})
	};
	const bounds = {
		maxBytes: limits.maxAnswerBytes,
		budget: createByteBudget(limits.maxAnswersBytes),
		maxBodyMs: limits.readTimeoutMs * 2
	};
	function optionsOf(request) {
		const { method, path, headers, body = null, headersTimeoutMs, bodyTimeoutMs } = request;
		return {
			method,
			path,
			headers: traceHeaders ? {
				...headers,
				...traceHeaders()
			} : headers,
			headersTimeout: headersTimeoutMs,
			bodyTimeout: bodyTimeoutMs,
			body
		};
	}
	return {
		send: (request) => {
			const { pool, signal = null } = request;
			return openAnswer(pools[pool], {
				...optionsOf(request),
				signal
			});
		},
		/** Sends a request and reads the whole body of its answer. */
		sendAndCollect: (request) => new Promise((resolve) => {
			const exchange = new WholeExchange(resolve, request.signal, bounds);
			try {
				pools[request.pool].dispatch(optionsOf(request), exchange);
			} catch (error) {
				exchange.fail(error instanceof Error ? error : new Error(String(error)));
			}
		}),
		async close() {
			await Promise.all([pools.calls.destroy(), pools.bodies.destroy()]);
		}
	};
}
/**
* Returns the part of an answer that was too large; `undefined` when it failed for another reason.
*/
function tooLargePart(cause) {
	if (cause instanceof AnswerTooLarge) return "body";
	if (cause instanceof TooManyInterimAnswers) return "headers";
	return cause.code === "UND_ERR_HEADERS_OVERFLOW" ? "headers" : void 0;
}
const EVENTS = {
	body: "upstream.answer_too_large",
	headers: "upstream.headers_too_large"
};
/** Logs an answer that was cut off for its size. False when that was not the reason. */
function logTooLarge(log, call, cause) {
	const part = tooLargePart(cause);
	if (part === void 0) return false;
	const [path = ""] = call.path.split("?", 1);
	const fields = {
		event: EVENTS[part],
		method: call.method,
		path,
		reason: cause.message
	};
	log.warn(fields, "cut off an answer of the job service: it is too large");
	return true;
}
// src/upstreams/remote-calls/calls.ts
/** The calls of one upstream. */
function createCalls(connections, { limits, clock, log, capabilities }) {
	async function once(account, call) {
		const answer = await connections.sendAndCollect(requestOf(account, call, limits));
		if (!answer.ok) {
			logTooLarge(log, call, answer.cause);
			const event = "upstream.call_failed";
			const reason = codeOf(answer.cause);
			log.debug({
				event,
				method: call.method,
				reason
			}, "a call to the job service failed");
			return {
				kind: "lost",
				wasSent: answer.wasSent,
				cause: answer.cause
			};
		}
		const { status, headers } = answer;
		const dateMs = Date.parse(String(headers.date));
		if (!Number.isNaN(dateMs)) capabilities.clockAheadMs = dateMs - Date.now();
		if (account && (status < 400 || status === 404)) account.credentialRefusal = void 0;
		return {
			kind: "reply",
			reply: {
				status,
				headers,
				...readBody(answer.text)
			}
		};
	}
	function recordRefusal(account, reply) {
		const error = toError(reply, account.key);
		if (isAccountWide(error)) account.gate.closeFor(retryAfterMs(readRetryAfter(reply.headers, Date.now()), limits));
		if (error.status === 401 || error.code === "sso_required") account.credentialRefusal = {
			error,
			untilMs: clock.now() + limits.refusedPauseMs,
			isBeingChecked: false
		};
		return error;
	}
	async function callIdempotent(account, call) {
		const deadlineMs = clock.now() + limits.readBudgetMs;
		let error;
		for (let lostAttempts = 0; lostAttempts < 2;) {
			const budgetMs = deadlineMs - clock.now();
			if (!await account.gate.waitUntilOpen({ budgetMs })) break;
			const outcome = await once(account, call);
			if (outcome.kind === "lost" && tooLargePart(outcome.cause)) return tooLargeAnswer();
			if (outcome.kind === "lost") {
				error = unreachable();
				lostAttempts += 1;
				if (lostAttempts < 2) await clock.sleep(limits.readRetryMs);
				continue;
			}
			if (outcome.reply.status < 300) return ok(outcome.reply);
			error = recordRefusal(account, outcome.reply);
			if (!isAccountWide(error)) break;
		}
		return {
			ok: false,
			error: error ?? pausedError(account)
		};
	}
	return {
		/** Makes one attempt and reads the whole answer. */
		once,
		/**
		* Makes a call that is safe to repeat: waits while the account is paused, and retries a lost
		* call once.
		*/
		callIdempotent,
		/** Turns a refusal into an error and records it in the account. */
		recordRefusal,
		/** Returns the head of an answer. The caller reads the body. */
		open: async (account, call) => {
			const request = requestOf(account, call, limits);
			const bodyTimeoutMs = limits.bodyIdleTimeoutMs;
			const answer = await connections.send({
				...request,
				pool: "bodies",
				bodyTimeoutMs
			});
			if (!answer.ok) logTooLarge(log, call, answer.cause);
			return answer;
		}
	};
}
/**
* True when all calls of the account have to wait. A `429` about a subscription asks for no pause.
*/
function isAccountWide({ status, code }) {
	return status === 429 && errorCodeOf(code)?.isOfOneCall !== true && !/subscription/i.test(code);
}
function requestOf(account, call, limits) {
	const { method, path, body, signal, timeoutMs = limits.readTimeoutMs } = call;
	return {
		method,
		path,
		headers: headersOf(account, call),
		body,
		signal,
		headersTimeoutMs: timeoutMs,
		bodyTimeoutMs: timeoutMs,
		pool: typeof body === "object" ? "bodies" : "calls"
	};
}
/** Builds the headers without spreads, which are slow: this runs for every prompt. */
function headersOf(account, { body, headers }) {
	const all = {
		"user-agent": "holdover",
		accept: "application/json",
		"accept-encoding": "identity"
	};
	if (account?.key !== void 0) all["authorization"] = `Bearer ${account.key}`;
	if (typeof body === "string") all["content-type"] = "application/json";
	return headers ? Object.assign(all, headers) : all;
}
/** Returns the error that replaces a call while the account is paused. */
function pausedError({ gate }) {
	return {
		status: 429,
		code: "rate_limited",
		message: "The job service asked for a pause.",
		details: null,
		retryAfterSeconds: Math.max(1, Math.ceil(gate.waitMs() / 1e3))
	};
}
function codeOf(cause) {
	return typeof cause.code === "string" ? cause.code : cause.name;
}
// src/upstreams/remote-files/multipart-body.ts
const CHUNK_BYTES = 1048576;
/** Fewer bytes are read only at the end of a file. */
const MIN_CHUNK_BYTES = 262144;
/**
* Builds the form of `POST /assets` with a known length: the fields first and the file last, as
* streaming servers need it.
*/
function uploadBody(upload, hash) {
	const { file, contentType, filePath } = upload;
	const boundary = newBoundary();
	const head = Buffer.from(fieldParts(boundary, [["content_type", contentType], ...laterFields(upload, hash)]) + fileHead(boundary, filePath, contentType));
	const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
	return {
		headers: {
			...contentTypeOf(boundary),
			"content-length": String(head.length + file.sizeBytes + tail.length)
		},
		body: bodyParts(head, completeFile(file), async () => tail)
	};
}
/**
* Builds the form while its file still arrives: the file is before the fields that are known only
* when it is complete. Without a length, the receiver takes no part for the whole.
*/
function startedUploadBody({ file, contentType }, complete) {
	const boundary = newBoundary();
	const head = Buffer.from(fieldParts(boundary, [["content_type", contentType]]) + fileHead(boundary, "file", contentType));
	const tail = async () => {
		const upload = await complete;
		const fields = fieldParts(boundary, laterFields(upload, upload.file.hash));
		return Buffer.from(`\r\n${fields}--${boundary}--\r\n`);
	};
	return {
		headers: contentTypeOf(boundary),
		body: bodyParts(head, file, tail)
	};
}
function newBoundary() {
	return `holdover-${randomBytes(16).toString("hex")}`;
}
function contentTypeOf(boundary) {
	return { "content-type": `multipart/form-data; boundary=${boundary}` };
}
/** Returns the fields that are known when the file is complete. */
function laterFields({ filePath, tags = [], expiresInSeconds }, hash) {
	return [
		["file_path", filePath],
		["expected_hash", hash],
		...tags.map((tag) => ["tags", tag]),
		...expiresInSeconds === void 0 ? [] : [["expires_in", String(expiresInSeconds)]]
	];
}
function completeFile({ path, sizeBytes }) {
	return {
		path,
		sizeBeyond: async () => sizeBytes
	};
}
async function* bodyParts(head, file, tail) {
	yield head;
	yield* readFileChunks(file);
	yield await tail();
}
/**
* Reads chunks into two alternating buffers: one is filled while the other is sent. A request for
* the next part means that the previous one was sent: no socket accepts a chunk of this size before
* it is sent.
*/
async function* readFileChunks(file) {
	const bufferBytes = Math.min(CHUNK_BYTES, await file.sizeBeyond(MIN_CHUNK_BYTES) + 1);
	const handle = await open(file.path);
	try {
		const readNext = chunkReader(file, handle);
		let [next, other] = [Buffer.allocUnsafeSlow(bufferBytes), Buffer.allocUnsafeSlow(bufferBytes)];
		let reading = readNext(next);
		for (let bytes = await reading; bytes.length > 0; bytes = await reading) {
			reading = readNext(other);
			reading.catch(() => {});
			[next, other] = [other, next];
			yield bytes;
		}
	} finally {
		await handle.close();
	}
}
/**
* Fills a buffer with the next bytes of the file, as far as it is written; with none at its end.
*/
function chunkReader(file, handle) {
	let doneBytes = 0;
	return async (buffer) => {
		const sizeBytes = await file.sizeBeyond(doneBytes + MIN_CHUNK_BYTES);
		const length = Math.min(buffer.length, sizeBytes - doneBytes);
		await readFully(handle, buffer.subarray(0, length));
		doneBytes += length;
		return buffer.subarray(0, length);
	};
}
async function readFully(handle, buffer) {
	for (let length = 0; length < buffer.length;) {
		const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
		if (bytesRead === 0) throw new Error("a file to be sent is shorter than it was");
		length += bytesRead;
	}
}
function fieldParts(boundary, fields) {
	return fields.map(([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`).join("");
}
function fileHead(boundary, filename, contentType) {
	return `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted(filename)}"\r\nContent-Type: ${contentType.replaceAll(/[\r\n]/g, " ")}\r\n\r\n`;
}
/** Escapes a name as browsers do. */
function quoted(name) {
	return name.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll("\"", "%22");
}
// src/upstreams/remote-files/started-upload.ts
/** Sends a file while it still arrives, with a request that `post` makes. */
function startUpload({ file, contentType }, post) {
	const cancelled = new AbortController();
	let isOver = false;
	let complete = () => {};
	let giveUp = () => {};
	const whole = new Promise((resolve, reject) => {
		complete = resolve;
		giveUp = reject;
	});
	whole.catch(() => {});
	const answer = post(startedUploadBody({
		file,
		contentType
	}, whole), cancelled.signal);
	return {
		async finish(upload) {
			if (isOver || upload.contentType !== contentType) return void 0;
			isOver = true;
			complete(upload);
			return answer;
		},
		cancel() {
			if (isOver) return;
			isOver = true;
			giveUp(/* @__PURE__ */ new Error("the upload was cancelled"));
			cancelled.abort();
		}
	};
}
// src/upstreams/remote/vendor-fields.ts
const isText = (value) => typeof value === "string";
const isFlag = (value) => typeof value === "boolean";
const isObject = (value) => isJsonObject(value);
const isList = (value) => Array.isArray(value);
const isMapOf = (check) => (value) => isObject(value) && Object.values(value).every(check);
/** True for the output of one node. */
const isNodeUi = isMapOf(isList);
/** The fields of another Holdover. */
const VENDOR_FIELDS = {
	x_cached_nodes: (value) => isList(value) && value.every(isText),
	x_current_inputs: isMapOf(isList),
	x_exception_type: isText,
	x_subfolder: isText,
	x_temp: isFlag,
	x_ui: isMapOf(isNodeUi),
	x_websocket: isFlag,
	x_workflow: isObject
};
/** Adds the vendor fields. One with an unexpected value is left out. */
function addVendorFields(result, members) {
	for (const [name, value] of Object.entries(members)) if (name.startsWith("x_") && VENDOR_FIELDS[name]?.(value) !== false) result[name] = value;
	return result;
}
// src/upstreams/remote/schemas.ts
const DAY_MS = 864e5;
/** The latest time of `Date`, less a day for an expiry after it. */
const MAX_TIME_MS = 86399999136e5;
/** Used when the service states no expiry, so that such a link is never stored. */
const EPOCH = (/* @__PURE__ */ new Date(0)).toISOString();
/** The result for a value that the contract does not allow. */
const INVALID = Symbol("invalid");
const text = (value) => typeof value === "string" ? value : INVALID;
const number = (value) => {
	const read = value instanceof LosslessNumber ? Number(value.toString()) : value;
	return typeof read === "number" && Number.isFinite(read) ? read : INVALID;
};
const count = (value) => {
	const read = number(value);
	return typeof read === "number" && read >= 0 ? read : 0;
};
const share = (value) => {
	const read = number(value);
	return typeof read === "number" ? Math.min(1, Math.max(0, read)) : INVALID;
};
/**
* Reads an id. Ids are used as keys here, where a NUL would change their meaning, and in addresses,
* which cannot have half of a surrogate pair. Any other text is accepted.
*/
const id = (value) => typeof value === "string" && value !== "" && !/[\0\p{Surrogate}]/u.test(value) ? value : INVALID;
const mediaType = (value) => typeof value === "string" && !hasControlCharacter(value) ? value : "application/octet-stream";
const time = (value) => typeof value === "string" && Date.parse(value) < MAX_TIME_MS ? value : INVALID;
const texts = (value) => Array.isArray(value) && value.every((item) => typeof item === "string") ? value : INVALID;
const flag = (value) => typeof value === "boolean" ? value : INVALID;
/** Reads a status. A service may have states of its own: a job in such a state has not ended. */
const status = (value) => {
	if (typeof value !== "string") return INVALID;
	return JOB_STATUSES.find((known) => known === value) ?? "running";
};
const outputType = (value) => OUTPUT_TYPES.find((known) => known === value);
function or(reader, instead) {
	return (value) => {
		const read = reader(value);
		return read === INVALID ? instead : read;
	};
}
function optional(reader) {
	return (value) => value === void 0 ? void 0 : reader(value);
}
const maybeText = or(text, null);
const maybeHash = or(id, null);
const maybeTime = or(time, null);
const maybeNumber = or(number, null);
const anyText = or(text, "");
const PROGRESS = {
	value: share,
	nodes_done: count,
	nodes_total: count,
	current_node: optional(maybeText),
	current_node_class: optional(maybeText),
	step: optional(maybeNumber),
	steps: optional(maybeNumber),
	message: optional(maybeText)
};
const OUTPUT = {
	node_id: anyText,
	name: anyText,
	type: outputType,
	content_type: mediaType,
	size_bytes: count,
	id,
	hash: maybeHash,
	url: anyText,
	url_expires_at: or(time, EPOCH),
	job_id: optional(maybeText)
};
const JOB_ERROR = {
	code: or(text, "job_failed"),
	message: or(text, "The job failed."),
	node_id: optional(maybeText),
	class_type: optional(maybeText),
	traceback: optional(maybeText)
};
const ASSET = {
	id,
	hash: maybeHash,
	size_bytes: count,
	content_type: mediaType,
	created_at: (value) => or(time, (/* @__PURE__ */ new Date()).toISOString())(value),
	url: anyText,
	url_expires_at: or(time, EPOCH),
	file_path: or(text, void 0),
	created_new: or(flag, void 0),
	expires_at: optional(maybeTime),
	job_id: optional(maybeText),
	tags: or(texts, void 0)
};
/**
* Returns the members that these readers accept, and vendor fields; `undefined` when the object is
* invalid.
*/
function readMembers(readers, json) {
	if (!isJsonObject(json)) return void 0;
	const members = json;
	const result = {};
	for (const [name, reader] of Object.entries(readers)) {
		const value = reader(members[name]);
		if (value === INVALID) return void 0;
		if (value !== void 0) result[name] = value;
	}
	return addVendorFields(result, members);
}
/** Reads a job as any of the servers writes it; `undefined` when it is not a job. */
function readJob(json) {
	if (!isJsonObject(json)) return void 0;
	const members = json;
	const jobId = id(members["id"]);
	const jobStatus = status(members["status"]);
	if (jobId === INVALID || jobStatus === INVALID) return void 0;
	const createdAt = createdAtOf(members);
	const expiresAt = or(time, void 0)(members["expires_at"]);
	const metrics = readMetrics(members["metrics"]);
	const labels = readLabels(members["metadata"]);
	const outputs = Array.isArray(members["outputs"]) ? members["outputs"] : [];
	return addVendorFields({
		id: jobId,
		status: jobStatus,
		created_at: createdAt,
		started_at: maybeTime(members["started_at"]),
		completed_at: maybeTime(members["completed_at"]),
		expires_at: expiresAt ?? new Date(Date.parse(createdAt) + DAY_MS).toISOString(),
		queue_position: maybeNumber(members["queue_position"]),
		progress: readProgress(members["progress"]) ?? null,
		outputs: outputs.flatMap((item) => readOutput(item) ?? []),
		error: readError(members["error"]),
		urls: readUrls(members["urls"]),
		...metrics && { metrics },
		...labels && { metadata: labels }
	}, members);
}
function readUrls(json) {
	const urls = isJsonObject(json) ? json : {};
	const urlOf = (name) => anyText(urls[name]);
	return {
		self: urlOf("self"),
		events: urlOf("events"),
		cancel: urlOf("cancel")
	};
}
/** Returns the time of creation, which has another name in a list of jobs. */
function createdAtOf(members) {
	return [members["created_at"], members["create_time"]].find((value) => time(value) !== INVALID) ?? (/* @__PURE__ */ new Date()).toISOString();
}
function readMetrics(json) {
	if (!isJsonObject(json)) return void 0;
	const entries = Object.entries(json);
	return Object.fromEntries(entries.map(([name, value]) => [name, maybeNumber(value)]));
}
function readError(json) {
	const error = readMembers(JOB_ERROR, json);
	return error ? withoutFoldersIn(error) : null;
}
/** Reads a progress snapshot; `undefined` for `null` and incomplete ones. */
function readProgress(json) {
	return readMembers(PROGRESS, json);
}
function readOutput(json) {
	const read = readMembers(OUTPUT, json);
	if (!read) return void 0;
	const type = read.type ?? outputTypeOf(read.content_type);
	return {
		...folderFields(read.id),
		...read,
		type
	};
}
/**
* Returns the folder of an output. v1 has folders, v2 does not; the ids of one server contain more
* than its members.
*/
function folderFields(outputId) {
	const file = engineFileOf(outputId);
	if (!file) return {};
	const { subfolder, type } = file;
	return {
		...subfolder !== "" && { x_subfolder: subfolder },
		...type === "temp" && { x_temp: true }
	};
}
function readAsset(json) {
	return readMembers(ASSET, json);
}
const STATUS = {
	status,
	queue_position: optional(maybeNumber)
};
function readStatus(json) {
	return readMembers(STATUS, json);
}
/** Reads the answer of `GET /jobs/{id}/workflow`. */
function readWorkflow(json) {
	if (!isJsonObject(json) || !isJsonObject(json["workflow"])) return void 0;
	const format = json["format"] === "save" ? "save" : "api";
	return {
		workflow: json["workflow"],
		format
	};
}
/** Reads labels. They are a map or, at one server, a text that Holdover fills with the map. */
function readLabels(metadata) {
	if (metadata === null || metadata === void 0) return void 0;
	const map = typeof metadata === "string" ? parseLabelText(metadata) : metadata;
	if (!isJsonObject(map)) return void 0;
	return Object.values(map).every((label) => typeof label === "string") ? map : void 0;
}
function parseLabelText(labels) {
	try {
		return JSON.parse(labels);
	} catch {
		return;
	}
}
// src/upstreams/remote-files/assets.ts
const ATTEMPTS$1 = 2;
/**
* This many starts in a row have failed, and the same files were accepted when they were sent
* whole: the upstream requires all fields before the file, or its length.
*/
const MAX_FAILED_STARTS = 2;
/**
* The lowest speed of processing: some servers process a file only when it has arrived completely.
*/
const SLOWEST_BYTES_PER_MS = 1e4;
/** The assets of one upstream, by account. */
function createAssets(client, outputIds) {
	const { calls, links, limits, clock, capabilities } = client;
	const knownBytes = createKnownBytes(client);
	async function read(account, assetId) {
		const path = links.target("assets", assetId);
		return assetOf(await calls.callIdempotent(account, {
			method: "GET",
			path
		}));
	}
	function send(account, upload) {
		const { file, idempotencyKey = randomUUID() } = upload;
		const { sizeBytes } = file;
		return post(account, {
			...uploadBody(upload, file.hash),
			idempotencyKey,
			sizeBytes
		});
	}
	async function post(account, form) {
		const { headers, body, idempotencyKey, sizeBytes, signal } = form;
		const exchange = await calls.once(account, {
			method: "POST",
			path: links.target("assets"),
			headers: {
				...headers,
				"idempotency-key": idempotencyKey
			},
			body,
			timeoutMs: limits.submitTimeoutMs + sizeBytes / SLOWEST_BYTES_PER_MS,
			...signal && { signal }
		});
		if (exchange.kind === "lost") {
			if (tooLargePart(exchange.cause)) return tooLargeAnswer();
			return {
				ok: false,
				error: unreachable()
			};
		}
		if (exchange.reply.status < 300) return assetOf(ok(exchange.reply));
		return {
			ok: false,
			error: calls.recordRefusal(account, exchange.reply)
		};
	}
	function start(account, upload) {
		if (account.gate.waitMs() > 0 || account.credentialRefusal !== void 0 || capabilities.failedUploadStarts >= MAX_FAILED_STARTS) return void 0;
		const { atMostBytes: sizeBytes } = upload;
		return startUpload(upload, (body, signal) => post(account, {
			...body,
			signal,
			sizeBytes,
			idempotencyKey: randomUUID()
		}));
	}
	/** Finishes an upload. One whose start was of no use is sent like one that was never started. */
	async function finishOrCreate(account, upload) {
		const first = await upload.started?.finish(upload);
		if (first?.ok) {
			capabilities.failedUploadStarts = 0;
			return first;
		}
		const sent = await create(account, upload);
		if (first && sent.ok && !isAccountWide(first.error)) capabilities.failedUploadStarts += 1;
		return sent;
	}
	async function create(account, given) {
		let upload = given;
		const deadlineMs = clock.now() + limits.uploadBudgetMs;
		const mayCall = () => account.gate.waitUntilOpen({ budgetMs: deadlineMs - clock.now() });
		let error;
		for (let failures = 0;;) {
			if (!await mayCall()) break;
			const existing = await knownBytes.reuse(account, upload);
			if (existing) return ok(existing);
			if (!await mayCall()) break;
			const sent = await send(account, upload);
			if (sent.ok) return sent;
			({error} = sent);
			if (isAccountWide(error)) continue;
			failures += 1;
			if (failures >= ATTEMPTS$1) return sent;
			const { code } = error;
			if (code !== "hash_mismatch" && code !== "upstream_unreachable") return sent;
			if (code === "hash_mismatch") upload = await rehashed(upload);
			if (!hasExpectedHash(upload)) return mismatch();
		}
		return {
			ok: false,
			error: error ?? pausedError(account)
		};
	}
	return {
		hasBlob: (account, hash) => knownBytes.has(account, hash),
		fromHash: (account, request) => knownBytes.createAsset(account, request),
		/** Sends a file while it arrives; `undefined` when it has to be complete first. */
		start,
		/** Sends bytes only when the upstream lacks them, or has most of them already. */
		create: async (account, upload) => hasExpectedHash(upload) ? finishOrCreate(account, upload) : mismatch(),
		/** Returns the record, under another id if the upstream has given the same file a new one. */
		async get(account, assetId) {
			const known = outputIds.current(account, assetId);
			const asset = await read(account, known);
			if (asset.ok || !isGone(asset.error)) return asset;
			const renewed = await outputIds.renew(account, known);
			return renewed === void 0 ? asset : read(account, renewed);
		},
		async remove(account, assetId) {
			const path = links.target("assets", assetId);
			const answer = await calls.callIdempotent(account, {
				method: "DELETE",
				path
			});
			return answer.ok ? ok(null) : answer;
		}
	};
}
function hasExpectedHash({ expectedHash, file }) {
	return expectedHash === void 0 || expectedHash.toLowerCase() === file.hash;
}
function mismatch() {
	return refuse(409, "hash_mismatch", "The bytes do not have the expected hash.");
}
async function rehashed(upload) {
	const { path } = upload.file;
	return {
		...upload,
		file: {
			path,
			...await hashFile(path)
		}
	};
}
/** A caller that asks if bytes exist uploads them right away when they do not. */
const ABSENT_CACHE = {
	...atMost(1e3),
	ttl: 5e3
};
/** Finds the bytes that one upstream has already, by their hash. */
function createKnownBytes({ calls, links, capabilities }) {
	/** Each entry is used once, by the next upload. */
	const recentlyAbsent = new I(ABSENT_CACHE);
	async function lookUpHash(account, hash) {
		const path = links.target("assets", "by-hash", hash.toLowerCase());
		const answer = await calls.callIdempotent(account, {
			method: "HEAD",
			path
		});
		if (answer.ok) return ok(true);
		const { status } = answer.error;
		if (status === 405 || status === 501) capabilities.hashLookup = "no";
		return status === 404 ? ok(false) : answer;
	}
	async function createFromHash(account, request) {
		const { hash, filePath, tags, expiresInSeconds, idempotencyKey } = request;
		const body = { hash: hash.toLowerCase() };
		if (filePath !== void 0) body["file_path"] = filePath;
		if (tags) body["tags"] = tags;
		if (expiresInSeconds !== void 0) body["expires_in"] = expiresInSeconds;
		const path = links.target("assets", "from-hash");
		const headers = idempotencyKey === void 0 ? {} : { "idempotency-key": idempotencyKey };
		const call = {
			method: "POST",
			path,
			body: stringifyJson(body),
			headers
		};
		return assetOf(await calls.callIdempotent(account, call));
	}
	/** Reuses bytes that the upstream has. In any uncertain case they are sent. */
	async function reuseBytes(account, upload) {
		if (capabilities.hashLookup === "no" || upload.idempotencyKey !== void 0) return void 0;
		if (recentlyAbsent.delete(keyOf(account, upload.file.hash))) return void 0;
		const { file, filePath, tags, expiresInSeconds } = upload;
		const known = await lookUpHash(account, file.hash);
		if (!known.ok || !known.value) return void 0;
		const created = await createFromHash(account, {
			hash: file.hash,
			filePath,
			...tags && { tags },
			...expiresInSeconds !== void 0 && { expiresInSeconds }
		});
		return created.ok ? {
			...created.value,
			created_new: false
		} : void 0;
	}
	return {
		/** Reuses the bytes of an upload; `undefined` when they have to be sent. */
		reuse: reuseBytes,
		async has(account, hash) {
			const known = await lookUpHash(account, hash);
			if (known.ok && !known.value) recentlyAbsent.set(keyOf(account, hash), true);
			return known;
		},
		/** Makes an asset of bytes that the upstream has. */
		async createAsset(account, request) {
			const created = await createFromHash(account, request);
			if (!created.ok && created.error.status === 404) recentlyAbsent.set(keyOf(account, request.hash), true);
			return created;
		}
	};
}
function keyOf({ id }, hash) {
	return `${id} ${hash.toLowerCase()}`;
}
/** Returns the asset in an answer. */
function assetOf(answer) {
	if (!answer.ok) return answer;
	const asset = readAsset(answer.value.json);
	return asset ? ok(asset) : invalidAnswer();
}
// src/upstreams/remote-calls/upstream-links.ts
const API_PATH = "/api/v2";
/** Creates the targets. Throws on an address that is not a plain http(s) URL. */
function createLinks(baseUrl) {
	const base = new URL(baseUrl);
	if (!isPlainHttp(base)) throw new Error("an upstream must be an http or https URL without a login");
	const mount = base.pathname.replace(/\/+$/, "");
	const prefix = mount.endsWith(API_PATH) ? mount : mount + API_PATH;
	return {
		origin: base.origin,
		/** Returns the request target of an operation without a link. Segments are encoded. */
		target: (...segments) => [prefix, ...segments.map(encodeURIComponent)].join("/"),
		/** Returns the request target of a link; `undefined` when it leads to another origin. */
		targetOf(link) {
			if (link === void 0 || !/^(https?:\/\/|\/(?!\/))/i.test(link)) return void 0;
			const url = resolveUrl(link, base.origin);
			if (!url || !isPlainHttp(url) || url.origin !== base.origin) return void 0;
			return url.pathname + url.search;
		}
	};
}
/**
* Returns the absolute form of a `Location`, if it is an http(s) address. It may lead to any host.
*/
function redirectTarget(location, origin) {
	if (location === void 0) return void 0;
	const url = resolveUrl(location, origin);
	return url && isPlainHttp(url) ? url.href : void 0;
}
function resolveUrl(link, origin) {
	return URL.canParse(link, origin) ? new URL(link, origin) : void 0;
}
function isPlainHttp({ protocol, username, password }) {
	return (protocol === "http:" || protocol === "https:") && username === "" && password === "";
}
// src/upstreams/remote-files/foreign-links.ts
const BLOCK_LISTS = [
	[
		"forbidden",
		"169.254.0.0",
		16
	],
	[
		"forbidden",
		"fe80::",
		10
	],
	[
		"forbidden",
		"fd00:ec2::254",
		128
	],
	[
		"forbidden",
		"100.100.100.200",
		32
	],
	[
		"forbidden",
		"168.63.129.16",
		32
	],
	[
		"forbidden",
		"0.0.0.0",
		8
	],
	[
		"forbidden",
		"192.0.0.0",
		24
	],
	[
		"forbidden",
		"198.18.0.0",
		15
	],
	[
		"forbidden",
		"224.0.0.0",
		3
	],
	[
		"forbidden",
		"::",
		128
	],
	[
		"forbidden",
		"ff00::",
		8
	],
	[
		"forbidden",
		"64:ff9b::",
		96
	],
	[
		"forbidden",
		"64:ff9b:1::",
		48
	],
	[
		"forbidden",
		"2001::",
		32
	],
	[
		"forbidden",
		"2002::",
		16
	],
	[
		"forbidden",
		"::ffff:0:0:0",
		96
	],
	[
		"private",
		"127.0.0.0",
		8
	],
	[
		"private",
		"::1",
		128
	],
	[
		"forbidden",
		"::",
		96
	],
	[
		"private",
		"10.0.0.0",
		8
	],
	[
		"private",
		"172.16.0.0",
		12
	],
	[
		"private",
		"192.168.0.0",
		16
	],
	[
		"private",
		"100.64.0.0",
		10
	],
	[
		"private",
		"fc00::",
		7
	],
	[
		"private",
		"fec0::",
		10
	],
	[
		"forbidden",
		"192.0.2.0",
		24
	],
	[
		"forbidden",
		"198.51.100.0",
		24
	],
	[
		"forbidden",
		"203.0.113.0",
		24
	],
	[
		"forbidden",
		"192.88.99.0",
		24
	],
	[
		"forbidden",
		"2001:db8::",
		32
	],
	[
		"forbidden",
		"100::",
		64
	]
].map(([scope, address, bits]) => {
	const list = new BlockList();
	list.addSubnet(address, bits, familyOf(address));
	return {
		reach: scope,
		list
	};
});
/**
* Returns the scope of an address. IPv4 addresses written as IPv6 (`::ffff:10.0.0.1`) count as
* IPv4.
* @internal
*/
function addressScope(address) {
	const family = familyOf(address);
	return BLOCK_LISTS.find(({ list }) => list.check(address, family))?.reach ?? "public";
}
/** Thrown for a name or an address that is refused for where it leads. */
var AddressRefused = class extends Error {
	name = "AddressRefused";
};
/**
* Resolves names to addresses of allowed scopes only. The connection itself uses this lookup, so
* that a name cannot lead elsewhere between a check and the connection (DNS rebinding).
*/
function guardedLookup(allowed, resolve = lookup) {
	return (hostname, options, done) => {
		resolve(hostname, {
			...options,
			all: true
		}, (error, addresses) => {
			if (error) return done(error, "", 0);
			const usable = addresses.filter(({ address }) => allowed.has(addressScope(address)));
			const [first] = usable;
			if (!first) return done(new AddressRefused(`${hostname} is in a private network`), "", 0);
			if (options.all === true) return done(null, usable);
			done(null, first.address, first.family);
		});
	};
}
function familyOf(address) {
	return isIP(address) === 6 ? "ipv6" : "ipv4";
}
const ALLOWED_SCOPES = {
	own: /* @__PURE__ */ new Set([
		"public",
		"private",
		"forbidden"
	]),
	named: /* @__PURE__ */ new Set(["public", "private"]),
	other: /* @__PURE__ */ new Set(["public"])
};
const MAX_HOPS = 3;
/**
* `origin` is that of the upstream. `hosts` are those to which it may redirect, beside itself and
* the internet.
*/
function createForeignLinks(origin, limits, { hosts = [], resolve } = {}) {
	const upstream = new URL(origin);
	const agentFor = (kind) => {
		const guarded = { lookup: guardedLookup(ALLOWED_SCOPES[kind], resolve) };
		const connect = {
			timeout: limits.connectTimeoutMs,
			...kind !== "own" && guarded
		};
		return new import_undici.Agent({
			connect,
			pipelining: 1
		});
	};
	const agents = {
		own: agentFor("own"),
		named: agentFor("named"),
		other: agentFor("other")
	};
	function kindOf(url) {
		if (url.origin === upstream.origin) return "own";
		return hosts.some((host) => matchesHost(host, url)) ? "named" : "other";
	}
	/** Returns why a URL is refused. Names are checked when they are resolved. */
	function refusalReasonOf(url) {
		const kind = kindOf(url);
		const isDowngrade = upstream.protocol === "https:" && url.protocol !== "https:";
		if (kind === "other" && isDowngrade) return `${url.host} is not encrypted`;
		const host = url.hostname.replaceAll(/[[\]]/g, "");
		if (isIP(host) === 0 || ALLOWED_SCOPES[kind].has(addressScope(host))) return void 0;
		return `${url.host} is in a private network`;
	}
	function send(url, headers) {
		return openAnswer(agents[kindOf(url)], {
			origin: url.origin,
			path: url.pathname + url.search,
			method: "GET",
			headers: {
				"user-agent": "holdover",
				"accept-encoding": "identity",
				...headers
			},
			headersTimeout: limits.readTimeoutMs,
			bodyTimeout: limits.bodyIdleTimeoutMs
		});
	}
	async function follow(link, headers) {
		let url = new URL(link);
		for (let hop = 1; hop <= MAX_HOPS; hop++) {
			const reason = refusalReasonOf(url);
			if (reason !== void 0) return failedAnswer(new AddressRefused(reason));
			const answer = await send(url, headers);
			if (!answer.ok || answer.status < 300 || answer.status >= 400) return answer;
			answer.body.destroy();
			const next = redirectTarget(answer.headers.location, url.href);
			if (next === void 0) return failedAnswer(/* @__PURE__ */ new Error("a link leads to no address"));
			url = new URL(next);
		}
		return failedAnswer(/* @__PURE__ */ new Error("a link leads on and on"));
	}
	return {
		/**
		* Returns why a link may not be followed, as far as its text shows; `undefined` when it may.
		*/
		refusalReason: (link) => refusalReasonOf(new URL(link)),
		/**
		* Returns the head of the answer at the end of the link. A link to a forbidden address is a
		* lost call with the cause `AddressRefused`.
		*/
		open: (link, headers) => follow(link, headers).catch((cause) => failedAnswer(cause)),
		async close() {
			await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
		}
	};
}
function matchesHost({ hostname, port }, url) {
	return url.hostname === hostname && (port === void 0 || port === portOf(url));
}
function portOf({ port, protocol }) {
	return port || (protocol === "https:" ? "443" : "80");
}
function failedAnswer(cause) {
	return {
		ok: false,
		cause
	};
}
// src/upstreams/remote/capabilities.ts
function unknownCapabilities() {
	return {
		/** How workflows name files: by `core/ASSET` objects, or by the path of the upload. */
		assetMode: "unknown",
		/** How the upstream takes labels: as a map, as one text, or not at all. */
		labels: "unknown",
		/** `no`: `extra_data` may not hold the token of a logged-in caller. */
		authToken: "unknown",
		/** `yes`: the upstream has `GET /jobs`. */
		listing: "unknown",
		/** `yes`: the upstream finds bytes by their hash. */
		hashLookup: "unknown",
		/** True when it has answered a cancel with success, and the job still waited. */
		ignoresCancel: false,
		/**
		* True when an output of a job had another id than before: the upstream was restarted and has
		* no state directory.
		*/
		changesIds: false,
		/**
		* The number of uploads in a row that failed while they arrived, and were then accepted whole.
		*/
		failedUploadStarts: 0,
		/** No event stream is opened before this time. */
		pollOnlyUntilMs: 0,
		/**
		* Says if the upstream is another Holdover with its own engine, which takes members that begin
		* with `x_`. Found by `GET /health`.
		*/
		holdover: void 0,
		/** How far the upstream's clock is ahead of this one. */
		clockAheadMs: 0
	};
}
// src/upstreams/remote/limits.ts
const MINUTE_MS = 6e4;
/** The values of the official clients, where they have one. */
const DEFAULT_REMOTE_LIMITS = {
	connectTimeoutMs: 5e3,
	/** With a shorter time, outcomes would be unknown that the answer would have shown. */
	submitTimeoutMs: MINUTE_MS,
	readTimeoutMs: 15e3,
	/**
	* The limit for silence in a body that is being read. A slow body that continues is not ended.
	*/
	bodyIdleTimeoutMs: MINUTE_MS,
	/** The largest JSON answer. */
	maxAnswerBytes: 67108864,
	/** The limit for all JSON answers in memory that are being read. */
	maxAnswersBytes: 134217728,
	/** The number of connections for calls. Streams, uploads and downloads have their own. */
	connections: 64,
	/** How long one submission waits until the upstream accepts it, `429` answers included. */
	submitBudgetMs: MINUTE_MS,
	/** The waits before a submission that was not sent is tried again. */
	unsentRetryMs: [250, 1e3],
	/** The waits before a submission of unknown outcome is sent again under its key. */
	unknownRetryMs: [1e3, 4e3],
	/** How long, and how often, the job list is searched for a job that may exist. */
	recoverBudgetMs: 1e4,
	recoverEveryMs: 1e3,
	/** The number of submissions of one account in progress at a time. */
	submitsAtOnce: 16,
	/** How long an upload waits while the account is paused. */
	uploadBudgetMs: MINUTE_MS,
	/** How long a read waits while the account is paused. */
	readBudgetMs: 1e4,
	readRetryMs: 100,
	minRetryAfterMs: 1e3,
	maxRetryAfterMs: MINUTE_MS,
	defaultRetryAfterMs: 2e3,
	/**
	* How long the jobs of an account are neither read nor followed after its credential was refused.
	*/
	refusedPauseMs: 3e4,
	/** How long a snapshot of a job answers every request. */
	snapshotMs: 1e3,
	/** `expired` and `404` count when the answer after this time is the same. */
	confirmAfterMs: 500,
	maxStreams: 6,
	streamIdleTimeoutMs: 45e3,
	/** How long a stream is read after a terminal status. */
	afterTerminalMs: 2e3,
	/** The largest single event. */
	maxEventChars: 8388608,
	/** How long a stream may be silent before the job is read. The interval doubles up to `last`. */
	streamCheckMs: {
		first: 1500,
		last: 15e3
	},
	/** The limit for all these reads at one upstream. */
	streamChecks: {
		perSecond: 2,
		burst: 6
	},
	reconnectMs: {
		first: 250,
		last: 5e3
	},
	/** After a stream that lasted this long, the next wait is short again. */
	longStreamMs: 1e4,
	/** How long no stream is tried at an upstream without streams. */
	pollOnlyMs: 10 * MINUTE_MS,
	/** How long no stream is tried after an answer that may be a temporary page of a proxy. */
	uncertainStreamMs: MINUTE_MS,
	pollMs: {
		watched: {
			first: 1e3,
			last: 1e3
		},
		unwatched: {
			first: 2e3,
			last: 5e3
		},
		queued: {
			first: 2e3,
			last: 1e4
		}
	},
	discoverTimeoutMs: 5e3,
	discoverAgainMs: 10 * MINUTE_MS,
	discoverRetryMs: 1e4
};
const POLL_GROWTH = 1.5;
/** Returns the wait before a job in this state is read again, without jitter. */
function pollDelayMs(limits, job) {
	const running = job.isWatched ? "watched" : "unwatched";
	const { first, last } = limits.pollMs[job.status === "queued" ? "queued" : running];
	return Math.min(last, first * POLL_GROWTH ** Math.min(job.polls, 20));
}
/** Varies a wait by a fifth, so that many calls do not continue at the same time. */
function jittered(ms) {
	return ms * (.8 + Math.random() * .4);
}
// src/upstreams/remote/recovery.ts
const MAX_CLAIMED = 5e4;
const PAGE_SIZE = 100;
/** A single list may have been read just before the job was written. */
const READS_TO_CONFIRM_ABSENCE = 2;
/** The tolerance for the clocks of two machines, and for the whole seconds of a `Date` header. */
const CLOCK_SLACK_MS = 2e3;
function createRecovery(client, snapshots) {
	const { calls, links, capabilities, limits, clock } = client;
	const claimed = new I(atMost(MAX_CLAIMED));
	/**
	* The jobs whose workflow is known to differ from that of the lost submission: a search is
	* repeated for minutes.
	*/
	const compared = new I(atMost(MAX_CLAIMED));
	async function page(account, query) {
		const path = `${links.target("jobs")}${queryText(query)}`;
		const answer = await calls.callIdempotent(account, {
			method: "GET",
			path
		});
		if (!answer.ok) {
			const { status } = answer.error;
			if (status === 501 || status === 404 || status === 405) capabilities.listing = "no";
			return answer;
		}
		const { json } = answer.value;
		if (!isJsonObject(json) || !Array.isArray(json["jobs"])) return invalidAnswer();
		capabilities.listing = "yes";
		const next = json["next_cursor"];
		const listed = json["jobs"].flatMap((item) => readJob(item) ?? []);
		for (const { id, status } of listed) if (IS_TERMINAL[status]) snapshots.noteListedEnd(account, id);
		const jobs = listed.map((job) => redactJob(job, snapshots.secretsOf(account, job.id)));
		const nextCursor = typeof next === "string" && next !== "" ? next : void 0;
		const isFull = json["jobs"].length >= (query.limit ?? Infinity);
		const hasMore = nextCursor !== void 0 || json["truncated"] === true || isFull;
		return ok({
			jobs,
			nextCursor,
			hasMore
		});
	}
	async function list(account, query) {
		const read = await page(account, query);
		if (!read.ok) return read;
		const { jobs, nextCursor } = read.value;
		return ok({
			jobs,
			...nextCursor !== void 0 && { next_cursor: nextCursor }
		});
	}
	/**
	* True when the page reaches back far enough. Lists are newest first: jobs on later pages are
	* older.
	*/
	function coversTime({ jobs, hasMore }, { sentAtMs }) {
		if (!hasMore) return true;
		return Date.parse(jobs.at(-1)?.created_at ?? "") - capabilities.clockAheadMs < sentAtMs - CLOCK_SLACK_MS;
	}
	/**
	* True when the job may be the one. A label proves it, whatever the clocks say. The same workflow
	* may have been submitted twice.
	*/
	function isCandidate(job, lost) {
		if (claimed.has(job.id)) return false;
		if (lost.metadata !== void 0 && hasLabels(job, lost.metadata)) return true;
		return Date.parse(job.created_at) - capabilities.clockAheadMs >= lost.sentAtMs - CLOCK_SLACK_MS;
	}
	async function hasWorkflow(account, job, lost) {
		const name = JSON.stringify([
			job.id,
			lost.sentAtMs,
			lost.metadata
		]);
		if (compared.has(name)) return false;
		const path = snapshots.workflowTarget(account, job.id);
		const answer = await calls.callIdempotent(account, {
			method: "GET",
			path
		});
		const stored = answer.ok ? readWorkflow(answer.value.json) : void 0;
		if (stored === void 0) return false;
		const isSame = isSameWorkflow(inAssetMode(lost.workflow, capabilities.assetMode), stored.workflow);
		if (!isSame) compared.set(name, true);
		return isSame;
	}
	async function find(account, lost) {
		const { metadata } = lost;
		const byLabel = capabilities.labels === "map" && metadata ? { metadata: firstLabels(metadata) } : {};
		const read = await page(account, {
			limit: PAGE_SIZE,
			...byLabel
		});
		if (!read.ok) return read;
		const candidates = read.value.jobs.filter((job) => isCandidate(job, lost)).toReversed();
		for (const job of candidates) {
			const isLabelled = metadata !== void 0 && hasLabels(job, metadata);
			if (!isLabelled && job.metadata !== void 0 && metadata !== void 0 || !(isLabelled || await hasWorkflow(account, job, lost))) continue;
			if (claimed.has(job.id) || await lost.isClaimed?.(job.id) === true) continue;
			claimed.set(job.id, true);
			const snapshot = await snapshots.refresh(account, job.id);
			return ok({
				job: snapshot.ok ? snapshot.value : job,
				isListed: true
			});
		}
		return ok({
			job: null,
			isListed: coversTime(read.value, lost)
		});
	}
	return {
		list,
		/** Finds the job of a lost submission; `null` when no job is visible. */
		find,
		/** Records that a job belongs to a submission, so that no other one can claim it. */
		claim: (jobId) => void claimed.set(jobId, true),
		/**
		* Searches repeatedly, as the first request may still be in progress. `absent`: every request
		* was answered, and the complete list of the service lacked the job twice in a row.
		*/
		async search(account, lost) {
			const deadlineMs = clock.now() + limits.recoverBudgetMs;
			for (let absentReads = 0;;) {
				if (capabilities.listing === "no") return "not seen";
				const found = await find(account, lost);
				if (found.ok && found.value.job) return found.value.job;
				if (!found.ok && found.error.engineDown) return "engine down";
				absentReads = found.ok && found.value.isListed ? absentReads + 1 : 0;
				if (lost.isAnswered && absentReads >= READS_TO_CONFIRM_ABSENCE) return "absent";
				if (clock.now() + limits.recoverEveryMs > deadlineMs) return "not seen";
				await clock.sleep(limits.recoverEveryMs);
			}
		}
	};
}
function queryText({ limit, cursor, status, metadata = {} }) {
	const query = new URLSearchParams();
	if (limit !== void 0) query.set("limit", String(limit));
	if (cursor !== void 0 && cursor !== "") query.set("cursor", cursor);
	if (status && status.length > 0) query.set("status", status.join(","));
	for (const [name, value] of Object.entries(metadata)) query.set(`metadata[${name}]`, value);
	const text = query.toString();
	return text === "" ? "" : `?${text}`;
}
/** Returns the first labels: a query may contain three. */
function firstLabels(metadata) {
	return Object.fromEntries(Object.entries(metadata).slice(0, 3));
}
function hasLabels(job, metadata) {
	return Object.entries(metadata).every(([name, value]) => job.metadata?.[name] === value);
}
// src/upstreams/remote-files/output-ids.ts
const MAX_RENEWED_IDS = 1e4;
function createOutputIds({ snapshots, capabilities }) {
	const currentIds = new I(atMost(MAX_RENEWED_IDS));
	return {
		/** Returns the known current id of the file. */
		current: ({ id }, assetId) => currentIds.get(`${id} ${assetId}`) ?? assetId,
		/** Reads the job that made the file. `undefined`: the file has no other id. */
		async renew(account, assetId) {
			const file = engineFileOf(assetId);
			if (file?.jobId === void 0) return void 0;
			const read = await snapshots.refresh(account, file.jobId);
			const sameFile = (read.ok ? read.value.outputs : []).find(({ id }) => isSame(engineFileOf(id), file));
			if (!sameFile || sameFile.id === assetId) return void 0;
			capabilities.changesIds = true;
			currentIds.set(`${account.id} ${assetId}`, sameFile.id);
			return sameFile.id;
		}
	};
}
function isSame(one, other) {
	return one?.name === other.name && one.subfolder === other.subfolder && one.type === other.type;
}
// src/upstreams/remote-events/stream-slots.ts
/** The tens digit of a rank says if a client watches the job. */
const RANK = {
	unwatched: 10,
	queued: 1
};
function createStreamSlots(options) {
	const holders = /* @__PURE__ */ new Set();
	const waiting = /* @__PURE__ */ new Set();
	let knownLimit = options.max;
	let growsAtMs = 0;
	let pauseMs = 0;
	/** Returns the limit. Some time after a refusal, one more stream is tried. */
	function currentLimit() {
		if (knownLimit < options.max && options.clock.now() >= growsAtMs) return knownLimit + 1;
		return knownLimit;
	}
	/**
	* True when fewer than `count` waiting candidates precede this one. Equal ranks keep their order
	* of arrival.
	*/
	function isAmongFirst(candidate, count) {
		const rank = candidate.rank();
		let preceding = 0;
		let isLater = false;
		for (const other of waiting) {
			if (preceding >= count) return false;
			if (other === candidate) isLater = true;
			else if (isLater ? other.rank() < rank : other.rank() <= rank) preceding++;
		}
		return preceding < count;
	}
	function preemptLowest(candidate) {
		const worst = firstOf(holders, -1);
		if (worst && worst.rank() > candidate.rank()) worst.preempt();
	}
	function release(candidate) {
		if (holders.delete(candidate)) wakeNext();
	}
	function wakeNext() {
		if (holders.size < currentLimit()) firstOf(waiting, 1)?.wake();
	}
	return {
		/** Takes a slot. True: open a stream, and call `release` when it is over. */
		acquire(candidate) {
			waiting.add(candidate);
			const free = currentLimit() - holders.size;
			if (free <= 0) preemptLowest(candidate);
			if (!isAmongFirst(candidate, Math.max(0, free))) return false;
			waiting.delete(candidate);
			holders.add(candidate);
			if (holders.size > knownLimit) {
				knownLimit = holders.size;
				growsAtMs = options.clock.now() + pauseMs;
			}
			return true;
		},
		release,
		/** Removes a candidate that needs no stream any more, or may open none now. */
		remove(candidate) {
			if (waiting.delete(candidate)) wakeNext();
			release(candidate);
		},
		/**
		* Notes that the upstream opens no more streams for this time. The candidate has released its
		* slot.
		*/
		noteLimit(forMs) {
			knownLimit = Math.min(knownLimit, holders.size);
			pauseMs = forMs;
			growsAtMs = options.clock.now() + forMs;
		},
		openCount: () => holders.size
	};
}
/** Returns the first candidate of the lowest rank; with `sign` -1, of the highest. */
function firstOf(candidates, sign) {
	let first;
	for (const candidate of candidates) {
		const rank = sign * candidate.rank();
		if (!first || rank < first.rank) first = {
			candidate,
			rank
		};
	}
	return first?.candidate;
}
// src/upstreams/remote-events/silence-watch.ts
/**
* `clock` must be monotonic: after a wall clock is set back, the next slot would be far in the
* future.
*/
function createCheckRate(options) {
	const slotMs = 1e3 / options.perSecond;
	let nextMs = Number.NEGATIVE_INFINITY;
	return { 
	/** Reserves one read. Returns the milliseconds to wait before it. */
reserve() {
		const nowMs = options.clock.now();
		const slotAtMs = Math.max(nextMs, nowMs - (options.burst - 1) * slotMs);
		nextMs = slotAtMs + slotMs;
		return Math.max(0, slotAtMs - nowMs);
	} };
}
/**
* Calls `onSilence` when a stream was silent for `first` ms, then after twice the time, up to every
* `last` ms. One server connects to the engine only after it has read the job's state: events in
* between are on no stream.
*/
function watchSilence(options, onSilence) {
	const { first, last, rate, jitter } = options;
	let waitMs = first;
	let timer = setTimeout(scheduleCheck, jitter(waitMs));
	/** True while the first timer runs, which can be restarted unchanged. */
	let isFirst = true;
	function scheduleCheck() {
		isFirst = false;
		const delayMs = rate.reserve();
		if (delayMs > 0) timer = setTimeout(checkNow, delayMs);
		else checkNow();
	}
	function checkNow() {
		waitMs = Math.min(last, waitMs * 2);
		timer = setTimeout(scheduleCheck, jitter(waitMs));
		onSilence();
	}
	return {
		/** Restarts the time of silence: the stream has sent something. */
		noteActivity() {
			if (isFirst) return void timer.refresh();
			clearTimeout(timer);
			waitMs = first;
			isFirst = true;
			timer = setTimeout(scheduleCheck, jitter(waitMs));
		},
		close: () => clearTimeout(timer)
	};
}
// src/upstreams/remote-events/snapshots.ts
/**
* True for an answer that is older than the end of the job: an answer may arrive after the event of
* the end. Servers report `expired` too early, so that status may change.
*/
function isOutdated(latest, answer) {
	return latest.status !== "expired" && IS_TERMINAL[latest.status] && !IS_TERMINAL[answer.status];
}
/**
* Drops the workflow with which another Holdover answers a submission. Only the fact that it was
* there is read.
*/
function withoutWorkflow(job) {
	return job.x_workflow === void 0 ? job : {
		...job,
		x_workflow: {}
	};
}
/** Returns the key of a job: jobs of two accounts may have the same id. */
function nameOf({ id }, jobId) {
	return `${id} ${jobId}`;
}
const MAX_JOBS = 5e3;
/** The limit for all snapshots: 16 MiB of text, or less with many short values. */
const MAX_WEIGHT = 262144;
/**
* Each job counts at most this, so that it is kept: answers above 5 MiB are not read, however many
* values they have.
*/
const MAX_JOB_WEIGHT = MAX_WEIGHT / 3;
function sizeOf({ value }) {
	const weight = jsonWeight(value, MAX_JOB_WEIGHT);
	return Math.ceil(Math.min(weight, MAX_JOB_WEIGHT));
}
const SUFFIX = {
	self: [],
	events: ["events"],
	cancel: ["cancel"]
};
/**
* The jobs of one upstream that were read last, by account. One request serves all callers that ask
* at about the same time.
*/
var Snapshots = class {
	#client;
	#entries = new I(atMost(MAX_JOBS));
	#jobs = new I({
		maxSize: MAX_WEIGHT,
		sizeCalculation: sizeOf
	});
	#onEnd = () => {};
	constructor(client) {
		this.#client = client;
	}
	/** Registers a listener, which is called when any answer says that a job is over or gone. */
	onEnd(listener) {
		this.#onEnd = listener;
	}
	/** Returns the entry of a job, or a new one. */
	#entryOf(account, jobId) {
		const entry = this.#find(account, jobId) ?? {};
		this.#entries.set(nameOf(account, jobId), entry);
		return entry;
	}
	#find(account, jobId) {
		return this.#entries.get(nameOf(account, jobId));
	}
	#snapshotOf(account, jobId) {
		return this.#jobs.get(nameOf(account, jobId));
	}
	#set(account, jobId, { value, readAtMs }) {
		this.#jobs.set(nameOf(account, jobId), {
			value: withoutWorkflow(value),
			readAtMs
		});
	}
	/** Returns the texts that must be removed from everything that the service says about a job. */
	secretsOf(account, jobId) {
		const { secrets = [] } = this.#find(account, jobId) ?? {};
		return account.key === void 0 ? secrets : [account.key, ...secrets];
	}
	/** Stores a job from the answer to another call. Returns the job as it may be shown. */
	store(account, job) {
		const latest = this.latest(account, job.id);
		const value = latest !== void 0 && isOutdated(latest, job) ? latest : redactJob(job, this.secretsOf(account, job.id));
		this.#set(account, job.id, {
			value,
			readAtMs: this.#client.clock.now()
		});
		delete this.#entryOf(account, job.id).gone;
		if (IS_TERMINAL[value.status]) this.#onEnd(account, job.id);
		return value;
	}
	/** Stores a job whose prompt was sent with keys of its own. */
	storeSecrets(account, job, secrets) {
		const entry = this.#entryOf(account, job.id);
		if (secrets.length > 0) entry.secrets = secrets;
		const value = redactJob(job, this.secretsOf(account, job.id));
		const snapshot = this.#snapshotOf(account, job.id);
		if (snapshot) this.#set(account, job.id, {
			...snapshot,
			value
		});
		return value;
	}
	#isFresh({ readAtMs }) {
		return this.#client.clock.now() - readAtMs < this.#client.limits.snapshotMs;
	}
	/** Returns a recent snapshot, if there is one. */
	fresh(account, jobId) {
		const job = this.#snapshotOf(account, jobId);
		return job && this.#isFresh(job) ? job.value : void 0;
	}
	/** Makes the next caller read the job again, since something has happened. */
	invalidate(account, jobId) {
		const job = this.#snapshotOf(account, jobId);
		if (job) job.readAtMs = Number.NEGATIVE_INFINITY;
	}
	/** Drops a job that has ended in an unknown way: the next caller reads it. */
	forgetJob(account, jobId) {
		this.#jobs.delete(nameOf(account, jobId));
	}
	/** Notes that a list has reported the end of the job. Its final state is still to be read. */
	noteListedEnd(account, jobId) {
		const job = this.#snapshotOf(account, jobId);
		if (!job || IS_TERMINAL[job.value.status]) return;
		job.readAtMs = Number.NEGATIVE_INFINITY;
		this.#onEnd(account, jobId);
	}
	/** Returns the last snapshot, however old. */
	latest(account, jobId) {
		return this.#snapshotOf(account, jobId)?.value;
	}
	/** Returns the time before which a job that the account may not read is not read again. */
	refusedUntilMs(account, jobId) {
		return this.#find(account, jobId)?.refused?.untilMs;
	}
	/** Returns the request target for an operation of a job: the job's own link, if it has one. */
	target(account, jobId, link) {
		const { links } = this.#client;
		const { urls } = this.latest(account, jobId) ?? {};
		return links.targetOf(urls?.[link]) ?? links.target("jobs", jobId, ...SUFFIX[link]);
	}
	/** Returns the request target of a job's workflow, which is below the job's link. */
	workflowTarget(account, jobId) {
		return this.target(account, jobId, "self").replace(/(?=\?|$)/, "/workflow");
	}
	/** Returns a recent snapshot, or reads the job. */
	async get(account, jobId) {
		const { gone, pendingRead } = this.#entryOf(account, jobId);
		const job = this.#snapshotOf(account, jobId);
		if (job && this.#isFresh(job)) return ok(job.value);
		if (gone && this.#isFresh(gone)) return {
			ok: false,
			error: gone.error
		};
		const { credentialRefusal: refused } = account;
		if (refused && this.#client.clock.now() < refused.untilMs) return {
			ok: false,
			error: refused.error
		};
		if (job && account.gate.waitMs() > 0) return ok(job.value);
		return pendingRead ?? this.refresh(account, jobId);
	}
	/** Makes a new request, whatever is cached. */
	refresh(account, jobId) {
		const entry = this.#entryOf(account, jobId);
		const pendingRead = this.#readConfirmed(account, jobId).finally(() => {
			if (entry.pendingRead === pendingRead) delete entry.pendingRead;
		});
		entry.pendingRead = pendingRead;
		return pendingRead;
	}
	/**
	* Reads the job after an answer that said it is over or gone: that is not confirmed a second
	* time.
	*/
	async confirm(account, jobId) {
		return this.#accept(account, jobId, await this.#readOnce(account, jobId));
	}
	/**
	* Reads the job, and confirms some answers: one server says `expired`, or 404, about a job that
	* it moves between two lists.
	*/
	async #readConfirmed(account, jobId) {
		const first = await this.#readOnce(account, jobId);
		if (!(first.ok ? first.value.status === "expired" : isGone(first.error))) return this.#accept(account, jobId, first);
		await this.#client.clock.sleep(this.#client.limits.confirmAfterMs);
		return this.confirm(account, jobId);
	}
	async #readOnce(account, jobId) {
		const { calls, clock } = this.#client;
		const entry = this.#entryOf(account, jobId);
		if (entry.refused && clock.now() < entry.refused.untilMs) return {
			ok: false,
			error: entry.refused.error
		};
		const path = this.target(account, jobId, "self");
		const answer = await calls.callIdempotent(account, {
			method: "GET",
			path
		});
		if (!answer.ok) return this.#recordJobRefusal(entry, answer.error);
		delete entry.refused;
		const job = readJob(answer.value.json);
		return job === void 0 ? invalidAnswer() : ok(job);
	}
	/** Records a refusal for this job: a valid key may still not be valid for this job. */
	#recordJobRefusal(entry, error) {
		const { clock, limits } = this.#client;
		if (error.status === 403 && error.code !== "sso_required") entry.refused = {
			error,
			untilMs: clock.now() + limits.refusedPauseMs
		};
		return {
			ok: false,
			error
		};
	}
	#accept(account, jobId, read) {
		if (read.ok) return ok(this.store(account, read.value));
		if (isGone(read.error)) {
			const { error } = read;
			this.#entryOf(account, jobId).gone = {
				error,
				readAtMs: this.#client.clock.now()
			};
			this.#onEnd(account, jobId);
		}
		return read;
	}
};
// src/upstreams/remote-events/subscribers.ts
/** The number of outputs of one job that are published. The end of the job names the others. */
const MAX_OUTPUTS = 1e5;
/** The subscribers of one job. All get the same events, each event once. */
var Subscribers = class {
	#feed;
	/** Created when needed: thousands of jobs wait at a time. */
	#publishedOutputs;
	#isOver = false;
	constructor(onEmpty) {
		this.#feed = new JobFeed(void 0, onEmpty);
	}
	status() {
		return this.#feed.status()?.status;
	}
	/** Publishes an event of the stream. */
	publish(event) {
		if (this.#isOver) return;
		if (event.event === "status") return this.#publishStatus(event);
		if (event.event === "output" && !this.#isNewOutput(event.data.id)) return;
		if (event.event === "progress" && isEmptyProgress(event.data)) return;
		if (this.status() === "queued") this.#send({
			event: "status",
			data: { status: "running" }
		});
		this.#send(event);
	}
	/**
	* Publishes that the stream has reported the end of the job. The final state is still to be read.
	*/
	publishEnding() {
		this.publish({
			event: "status",
			data: {
				status: this.status() ?? "queued",
				x_ends: true
			}
		});
	}
	/** Publishes everything in a snapshot that was not published yet. */
	publishSnapshot(job) {
		const isEnd = IS_TERMINAL[job.status];
		const status = statusEventOf(job);
		if (!isEnd) this.publish(status);
		const { progress } = job;
		if (progress && !isEnd && JSON.stringify(this.#feed.progress()) !== JSON.stringify(progress)) this.publish({
			event: "progress",
			data: progress
		});
		for (const output of job.outputs) this.publish({
			event: "output",
			data: output
		});
		if (isEnd) this.publish(status);
	}
	subscribe(signal) {
		return this.#feed.subscribe(signal);
	}
	/** Ends the subscriptions. */
	end() {
		this.#isOver = true;
		this.#feed.end();
	}
	#publishStatus(event) {
		const latest = this.#feed.status();
		if (!latest || !isSameStatus(latest, event.data)) this.#send(event);
	}
	#isNewOutput(id) {
		this.#publishedOutputs ??= /* @__PURE__ */ new Set();
		if (this.#publishedOutputs.has(id) || this.#publishedOutputs.size >= MAX_OUTPUTS) return false;
		this.#publishedOutputs.add(id);
		return true;
	}
	#send(event) {
		this.#feed.emit(event);
		this.#feed.endSlowSubscribers();
	}
};
/** Returns the status event of a snapshot. */
function statusEventOf(job) {
	const { status, queue_position, x_cached_nodes } = job;
	return {
		event: "status",
		data: {
			status,
			...queue_position !== null && { queue_position },
			...x_cached_nodes && { x_cached_nodes }
		}
	};
}
/**
* True for progress of zeros: one server answers every poll of a running job with these. They must
* not replace progress from the stream.
*/
function isEmptyProgress({ value, nodes_total, current_node, step }) {
	return value === 0 && nodes_total === 0 && !current_node && !step;
}
function isSameStatus(one, other) {
	const key = ({ status, queue_position = null, x_cached_nodes = [], x_ends = false }) => JSON.stringify([
		status,
		queue_position,
		x_cached_nodes,
		x_ends
	]);
	return key(one) === key(other);
}
// node_modules/eventsource-parser/dist/index.js
var ParseError = class extends Error {
	constructor(message, options) {
		super(message), this.name = "ParseError", this.type = options.type, this.field = options.field, this.value = options.value, this.line = options.line;
	}
};
const LF = 10;
const CR = 13;
const SPACE = 32;
function noop(_arg) {}
function createParser(config) {
	if (typeof config == "function") throw new TypeError("`config` must be an object, got a function instead. Did you mean `createParser({onEvent: fn})`?");
	const { onEvent = noop, onError = noop, onRetry = noop, onComment, maxBufferSize } = config, pendingFragments = [];
	let pendingFragmentsLength = 0, isFirstChunk = !0, id, data = "", dataLines = 0, eventType, terminated = !1;
	function feed(chunk) {
		if (terminated) throw new Error("Cannot feed parser: it was terminated after exceeding the configured max buffer size. Call `reset()` to resume parsing.");
		if (isFirstChunk && (isFirstChunk = !1, chunk.charCodeAt(0) === 239 && chunk.charCodeAt(1) === 187 && chunk.charCodeAt(2) === 191 && (chunk = chunk.slice(3))), pendingFragments.length === 0) {
			const trailing2 = processLines(chunk);
			trailing2 !== "" && (pendingFragments.push(trailing2), pendingFragmentsLength = trailing2.length), checkBufferSize();
			return;
		}
		if (chunk.indexOf(`
`) === -1 && chunk.indexOf("\r") === -1) {
			pendingFragments.push(chunk), pendingFragmentsLength += chunk.length, checkBufferSize();
			return;
		}
		pendingFragments.push(chunk);
		const input = pendingFragments.join("");
		pendingFragments.length = 0, pendingFragmentsLength = 0;
		const trailing = processLines(input);
		trailing !== "" && (pendingFragments.push(trailing), pendingFragmentsLength = trailing.length), checkBufferSize();
	}
	function checkBufferSize() {
		maxBufferSize !== void 0 && (pendingFragmentsLength + data.length <= maxBufferSize || (terminated = !0, pendingFragments.length = 0, pendingFragmentsLength = 0, id = void 0, data = "", dataLines = 0, eventType = void 0, onError(new ParseError(`Buffered data exceeded max buffer size of ${maxBufferSize} characters`, { type: "max-buffer-size-exceeded" }))));
	}
	function processLines(chunk) {
		let searchIndex = 0;
		if (chunk.indexOf("\r") === -1) {
			let lfIndex = chunk.indexOf(`
`, searchIndex);
			for (; lfIndex !== -1;) {
				if (searchIndex === lfIndex) {
					dataLines > 0 && onEvent({
						id,
						event: eventType,
						data
					}), id = void 0, data = "", dataLines = 0, eventType = void 0, searchIndex = lfIndex + 1, lfIndex = chunk.indexOf(`
`, searchIndex);
					continue;
				}
				const firstCharCode = chunk.charCodeAt(searchIndex);
				if (isDataPrefix(chunk, searchIndex, firstCharCode)) {
					const valueStart = chunk.charCodeAt(searchIndex + 5) === SPACE ? searchIndex + 6 : searchIndex + 5, value = chunk.slice(valueStart, lfIndex);
					if (dataLines === 0 && chunk.charCodeAt(lfIndex + 1) === LF) {
						onEvent({
							id,
							event: eventType,
							data: value
						}), id = void 0, data = "", eventType = void 0, searchIndex = lfIndex + 2, lfIndex = chunk.indexOf(`
`, searchIndex);
						continue;
					}
					data = dataLines === 0 ? value : `${data}
${value}`, dataLines++;
				} else isEventPrefix(chunk, searchIndex, firstCharCode) ? eventType = chunk.slice(chunk.charCodeAt(searchIndex + 6) === SPACE ? searchIndex + 7 : searchIndex + 6, lfIndex) || void 0 : parseLine(chunk, searchIndex, lfIndex);
				searchIndex = lfIndex + 1, lfIndex = chunk.indexOf(`
`, searchIndex);
			}
			return chunk.slice(searchIndex);
		}
		for (; searchIndex < chunk.length;) {
			const crIndex = chunk.indexOf("\r", searchIndex), lfIndex = chunk.indexOf(`
`, searchIndex);
			let lineEnd = -1;
			if (crIndex !== -1 && lfIndex !== -1 ? lineEnd = crIndex < lfIndex ? crIndex : lfIndex : crIndex !== -1 ? crIndex === chunk.length - 1 ? lineEnd = -1 : lineEnd = crIndex : lfIndex !== -1 && (lineEnd = lfIndex), lineEnd === -1) break;
			parseLine(chunk, searchIndex, lineEnd), searchIndex = lineEnd + 1, chunk.charCodeAt(searchIndex - 1) === CR && chunk.charCodeAt(searchIndex) === LF && searchIndex++;
		}
		return chunk.slice(searchIndex);
	}
	function parseLine(chunk, start, end) {
		if (start === end) {
			dispatchEvent();
			return;
		}
		const firstCharCode = chunk.charCodeAt(start);
		if (isDataPrefix(chunk, start, firstCharCode)) {
			const valueStart = chunk.charCodeAt(start + 5) === SPACE ? start + 6 : start + 5, value2 = chunk.slice(valueStart, end);
			data = dataLines === 0 ? value2 : `${data}
${value2}`, dataLines++;
			return;
		}
		if (isEventPrefix(chunk, start, firstCharCode)) {
			eventType = chunk.slice(chunk.charCodeAt(start + 6) === SPACE ? start + 7 : start + 6, end) || void 0;
			return;
		}
		if (firstCharCode === 105 && chunk.charCodeAt(start + 1) === 100 && chunk.charCodeAt(start + 2) === 58) {
			const value2 = chunk.slice(chunk.charCodeAt(start + 3) === SPACE ? start + 4 : start + 3, end);
			value2.includes("\0") || (id = value2);
			return;
		}
		if (firstCharCode === 58) {
			if (onComment) {
				const line2 = chunk.slice(start, end);
				onComment(line2.slice(chunk.charCodeAt(start + 1) === SPACE ? 2 : 1));
			}
			return;
		}
		const line = chunk.slice(start, end), fieldSeparatorIndex = line.indexOf(":");
		if (fieldSeparatorIndex === -1) {
			processField(line, "", line);
			return;
		}
		const field = line.slice(0, fieldSeparatorIndex), offset = line.charCodeAt(fieldSeparatorIndex + 1) === SPACE ? 2 : 1;
		processField(field, line.slice(fieldSeparatorIndex + offset), line);
	}
	function processField(field, value, line) {
		switch (field) {
			case "event":
				eventType = value || void 0;
				break;
			case "data":
				data = dataLines === 0 ? value : `${data}
${value}`, dataLines++;
				break;
			case "id":
				value.includes("\0") || (id = value);
				break;
			case "retry":
				/^\d+$/.test(value) ? onRetry(parseInt(value, 10)) : onError(new ParseError(`Invalid \`retry\` value: "${value}"`, {
					type: "invalid-retry",
					value,
					line
				}));
				break;
			default: onError(new ParseError(`Unknown field "${field.length > 20 ? `${field.slice(0, 20)}\u2026` : field}"`, {
				type: "unknown-field",
				field,
				value,
				line
			}));
		}
	}
	function dispatchEvent() {
		dataLines > 0 && onEvent({
			id,
			event: eventType,
			data
		}), id = void 0, data = "", dataLines = 0, eventType = void 0;
	}
	function reset(options = {}) {
		if (options.consume && pendingFragments.length > 0) {
			const incompleteLine = pendingFragments.join("");
			parseLine(incompleteLine, 0, incompleteLine.length);
		}
		isFirstChunk = !0, id = void 0, data = "", dataLines = 0, eventType = void 0, pendingFragments.length = 0, pendingFragmentsLength = 0, terminated = !1;
	}
	return {
		feed,
		reset
	};
}
function isDataPrefix(chunk, i, firstCharCode) {
	return firstCharCode === 100 && chunk.charCodeAt(i + 1) === 97 && chunk.charCodeAt(i + 2) === 116 && chunk.charCodeAt(i + 3) === 97 && chunk.charCodeAt(i + 4) === 58;
}
function isEventPrefix(chunk, i, firstCharCode) {
	return firstCharCode === 101 && chunk.charCodeAt(i + 1) === 118 && chunk.charCodeAt(i + 2) === 101 && chunk.charCodeAt(i + 3) === 110 && chunk.charCodeAt(i + 4) === 116 && chunk.charCodeAt(i + 5) === 58;
}
// src/upstreams/remote-events/read-stream.ts
/** Opens one event stream and reads it. A refusal updates the capabilities. */
async function readStreamOnce(client, request) {
	const { calls, limits, log } = client;
	const { account, path, signal } = request;
	const answer = await calls.open(account, {
		method: "GET",
		path,
		headers: {
			accept: "text/event-stream",
			"cache-control": "no-cache"
		},
		signal
	});
	if (!answer.ok) return { kind: "none" };
	const isStream = /^text\/event-stream\b/i.test(answer.headers["content-type"] ?? "");
	if (answer.status === 200 && isStream) {
		const end = await readStream(answer.body, {
			onEvent: request.onEvent,
			secrets: request.secrets,
			idleTimeoutMs: limits.streamIdleTimeoutMs,
			afterTerminalMs: limits.afterTerminalMs,
			maxEventChars: limits.maxEventChars
		});
		if (end === "too large") {
			const fields = {
				event: "upstream.event_too_large",
				path,
				limit: limits.maxEventChars
			};
			log.warn(fields, "cut off an event stream: one event is too large");
		}
		return {
			kind: "read",
			end
		};
	}
	return readStreamRefusal(client, account, answer);
}
/** Reads a refusal and updates the capabilities. */
async function readStreamRefusal({ calls, capabilities, limits, clock }, account, answer) {
	const { status, headers, body } = answer;
	if (status === 429) {
		const error = calls.recordRefusal(account, await readRefusal(answer));
		if (isAccountWide(error)) return { kind: "none" };
		return {
			kind: "no capacity",
			forMs: retryAfterMs(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS, limits)
		};
	}
	body.destroy();
	const isJson = /\bjson\b/i.test(headers["content-type"] ?? "");
	if (status === 501 || status === 405 || status === 404 && !isJson) capabilities.pollOnlyUntilMs = clock.now() + limits.pollOnlyMs;
	else if (status < 400) capabilities.pollOnlyUntilMs = clock.now() + limits.uncertainStreamMs;
	return { kind: "none" };
}
const DEFAULT_RETRY_SECONDS = 5;
const BYTE_ORDER_MARK = "﻿";
/**
* The maximum number of lines without an event, comments included: each data line costs much more
* than its bytes.
*/
const MAX_LINES = 1e5;
/**
* Reads one event stream to its end. To abort it, destroy the body.
* @internal
*/
function readStream(body, options) {
	return new Promise((resolve) => {
		const reader = new StreamReader(body, options);
		body.on("data", (chunk) => reader.receive(chunk));
		body.once("end", () => reader.complete());
		body.once("close", () => resolve(reader.close()));
	});
}
var StreamReader = class {
	#body;
	#options;
	#parser;
	#idle;
	#endTimer;
	#decoder = new StringDecoder("utf8");
	#end;
	#text = "";
	#isFirst = true;
	#lines = 0;
	constructor(body, options) {
		this.#body = body;
		this.#options = options;
		this.#idle = setTimeout(() => this.#stop("idle"), options.idleTimeoutMs);
		this.#parser = createParser({
			maxBufferSize: options.maxEventChars,
			onComment: () => void this.#idle.refresh(),
			onError: (error) => error.type === "max-buffer-size-exceeded" && this.#stop("too large"),
			onEvent: ({ event = "message", data }) => this.#receiveEvent(event, data)
		});
	}
	receive(chunk) {
		this.#text = this.#decoder.write(chunk);
		if (this.#isFirst && this.#text !== "") {
			this.#isFirst = false;
			if (this.#text.startsWith(BYTE_ORDER_MARK)) this.#text = this.#text.slice(1);
		}
		if (this.#end === void 0) this.#parser.feed(this.#text);
		if ((this.#lines += linesIn(this.#text)) > MAX_LINES) this.#stop("too large");
	}
	/** Called when the whole stream was read. */
	complete() {
		if (this.#end === void 0 && this.#text.endsWith("\r")) this.#parser.feed("\n");
		this.#end ??= "ended";
	}
	close() {
		clearTimeout(this.#idle);
		clearTimeout(this.#endTimer);
		return this.#end ??= "broken";
	}
	#receiveEvent(name, data) {
		this.#idle.refresh();
		this.#lines = 0;
		if (this.#end !== void 0) return;
		if (name === "error") return this.#stop("error event");
		const event = readEvent(name, data);
		if (!event) return;
		this.#options.onEvent(redactEvent(event, this.#options.secrets));
		if (event.event !== "status" || !IS_TERMINAL[event.data.status]) return;
		this.#endTimer ??= setTimeout(() => this.#stop("ended"), this.#options.afterTerminalMs);
	}
	#stop(reason) {
		this.#end ??= reason;
		this.#body.destroy();
	}
};
function linesIn(text) {
	let count = 0;
	for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
	return count;
}
const EVENT_READERS = {
	status(data) {
		const json = parseJson(data);
		const read = readStatus(json);
		if (!read) return void 0;
		const { status, queue_position, x_cached_nodes } = read;
		const job = IS_TERMINAL[status] ? endedJob(json) : void 0;
		return {
			event: "status",
			data: {
				status,
				...queue_position !== void 0 && { queue_position },
				...x_cached_nodes && { x_cached_nodes },
				...job && { job }
			}
		};
	},
	progress(data) {
		const read = readProgress(parseJson(data));
		return read && {
			event: "progress",
			data: read
		};
	},
	output(data) {
		const read = readOutput(parseJson(data));
		return read && {
			event: "output",
			data: read
		};
	},
	preview: (data) => previewEvent(JSON.parse(data)),
	x_node: (data) => nodeEvent(parseJson(data)),
	x_text: (data) => textEvent(JSON.parse(data))
};
/** Reads one event; `undefined` when its name is unknown or its data do not match the contract. */
function readEvent(name, data) {
	if (!Object.hasOwn(EVENT_READERS, name)) return void 0;
	try {
		return EVENT_READERS[name](data);
	} catch {
		return;
	}
}
/** Returns the job in a terminal `status`. Some services send the status alone. */
function endedJob(json) {
	if (!isJsonObject(json) || !Array.isArray(json["outputs"])) return void 0;
	return readJob(json);
}
function previewEvent(json) {
	if (!isJsonObject(json)) return void 0;
	const { node_id, content_type, data_base64, x_with_step, x_own } = json;
	if (typeof data_base64 !== "string") return void 0;
	const bytes = Buffer.from(data_base64, "base64");
	if (bytes.length === 0) return void 0;
	return {
		event: "preview",
		data: {
			node_id: typeof node_id === "string" ? node_id : "",
			content_type: typeof content_type === "string" ? content_type : "image/jpeg",
			bytes,
			...x_with_step === true && { x_with_step },
			...x_own === true && { x_own }
		}
	};
}
function nodeEvent(json) {
	if (!isJsonObject(json)) return void 0;
	const { node_id, phase, ui } = json;
	if (typeof node_id !== "string" || phase !== "started" && phase !== "finished") return;
	return {
		event: "x_node",
		data: {
			node_id,
			phase,
			...ui === null || isNodeUi(ui) ? { ui } : {}
		}
	};
}
function textEvent(json) {
	if (!isJsonObject(json)) return void 0;
	const { node_id, text } = json;
	if (typeof node_id !== "string" || typeof text !== "string") return void 0;
	return {
		event: "x_text",
		data: {
			node_id,
			text
		}
	};
}
// src/upstreams/remote-events/interruptible-sleep.ts
/**
* A sleep that can be ended early. A call of `interrupt` while nothing sleeps ends the next sleep
* at once.
*/
var InterruptibleSleep = class {
	#stop;
	#isInterrupted = false;
	#wake;
	/** Ends the sleep when `stop` is requested. The object must not outlive `stop`. */
	constructor(stop) {
		this.#stop = stop;
		stop.onRequest(() => this.interrupt());
	}
	interrupt() {
		this.#isInterrupted = true;
		this.#wake?.();
	}
	/** Sleeps with one plain timer, since thousands of jobs sleep at a time. */
	sleep(ms) {
		return new Promise((resolve) => {
			const timer = setTimeout(() => this.#wake?.(), ms);
			this.#wake = () => {
				clearTimeout(timer);
				this.#wake = void 0;
				this.#isInterrupted = false;
				resolve();
			};
			if (this.#isInterrupted || this.#stop.reason !== void 0) this.#wake();
		});
	}
};
// src/upstreams/remote-events/streamed-job.ts
/**
* Collects the events of a job that another Holdover runs, so that a succeeded job is known without
* a read: the terminal status of Holdover 0.1 does not include the job. The stream is complete when
* it begins with `queued`: nothing has happened to the job before, and a Holdover leaves out only
* previews and outdated progress. A job that ran twice has outputs of the first run among its
* events; it has begun twice.
*/
var StreamedJob = class StreamedJob {
	#submitted;
	#outputs = [];
	#ui = {};
	#phase = "opening";
	#cachedNodes;
	#progress = null;
	constructor(submitted) {
		this.#submitted = submitted;
	}
	/**
	* Returns a collector; `undefined` unless the job is the answer to a submission that another
	* Holdover accepted.
	*/
	static of(latest) {
		if (latest?.status !== "queued" || latest.x_workflow === void 0) return void 0;
		const { x_workflow: _, ...submitted } = latest;
		return new StreamedJob(submitted);
	}
	/**
	* Adds the next event of the stream. Returns the job when the event ends it with success and all
	* events were received. The times are those of the submission.
	*/
	receive(event) {
		if (event.event === "status") return this.#receiveStatus(event.data);
		if (this.#phase === "opening") this.#phase = "incomplete";
		if (event.event === "progress") this.#progress = event.data;
		if (event.event === "output") {
			const { x_with_step: _, ...output } = event.data;
			this.#outputs.push(output);
		}
		if (event.event === "x_node" && event.data.ui) this.#ui[event.data.node_id] = event.data.ui;
	}
	#receiveStatus({ status, x_cached_nodes: cached }) {
		const isComplete = this.#phase === "running" && this.#cachedNodes !== void 0;
		if (status === "succeeded" && isComplete) return this.#succeeded();
		const hasBegunAgain = cached !== void 0 && this.#cachedNodes !== void 0;
		this.#cachedNodes ??= cached;
		if (status === "queued" && (this.#phase === "opening" || this.#phase === "queued")) this.#phase = "queued";
		else {
			const follows = this.#phase === "queued" || this.#phase === "running";
			this.#phase = status === "running" && follows && !hasBegunAgain ? "running" : "incomplete";
		}
	}
	#succeeded() {
		return {
			...this.#submitted,
			status: "succeeded",
			queue_position: null,
			progress: this.#progress,
			outputs: this.#outputs,
			...this.#cachedNodes && { x_cached_nodes: this.#cachedNodes },
			x_ui: this.#ui
		};
	}
};
// src/upstreams/remote-events/follow-job.ts
/**
* Publishes everything about a job until it ends: from a stream when a slot is free, else from
* polls. When a stream reports the end by a status alone, the job is read, unless the stream has
* carried the whole job. The only state is the timing of streams and polls; everything else is read
* from the services.
*/
var JobFollower = class {
	#options;
	#job;
	#pause;
	#stream;
	#reconnectMs;
	#noStreamUntilMs = 0;
	#tooLargeCount = 0;
	#cycles = 0;
	#polls = 0;
	/** The number of events that streams have brought. */
	#events = 0;
	#isEndReported = false;
	/**
	* The job as the first stream tells it. A later stream may begin after events that it does not
	* repeat.
	*/
	#streamedJob;
	#hasStreamedEnd = false;
	constructor(options, job) {
		this.#options = options;
		this.#job = job;
		this.#pause = new InterruptibleSleep(job.stop);
		this.#streamedJob = StreamedJob.of(options.snapshots.latest(job.account, job.jobId));
		this.#reconnectMs = options.limits.reconnectMs.first;
	}
	rank() {
		const isRunning = this.#job.subscribers.status() === "running";
		return (this.#isWatched() ? 0 : RANK.unwatched) + (isRunning ? 0 : RANK.queued);
	}
	wake() {
		this.#pause.interrupt();
	}
	preempt() {
		this.#stream?.abort();
	}
	/** Resolves when the job is over, or when a stop is requested. */
	async run() {
		const { stop, subscribers } = this.#job;
		try {
			while (stop.reason === void 0) {
				const waitMs = await this.#cycle();
				if (waitMs === void 0) return;
				await this.#pause.sleep(waitMs);
			}
		} catch (error) {
			if (stop.reason === void 0) throw error;
		} finally {
			this.#options.streamSlots.remove(this);
			subscribers.end();
		}
	}
	/**
	* Reads one stream, or polls once. Returns the wait before the next time; `undefined` when the
	* job is over.
	*/
	async #cycle() {
		const { streamSlots } = this.#options;
		const mayStream = this.#mayStream();
		if (!mayStream) streamSlots.remove(this);
		const waitMs = mayStream && streamSlots.acquire(this) ? await this.#readStreamUntilEnd() : void 0;
		if (this.#job.stop.reason !== void 0 || this.#hasStreamedEnd) return void 0;
		if (await this.#readUnlessFresh()) return void 0;
		return Math.max(jittered(waitMs ?? this.#nextPollMs()), this.#refusedForMs());
	}
	/** Reads the job now: another call has reported its end. */
	reportEnd() {
		this.#isEndReported = true;
		this.#pause.interrupt();
		this.#stream?.abort();
	}
	/** Reads the job, unless it was just read. After a pause it is read again. */
	async #readUnlessFresh() {
		const { account, jobId, subscribers } = this.#job;
		const isFresh = this.#cycles++ === 0 || this.#isEndReported;
		this.#isEndReported = false;
		const freshJob = isFresh ? this.#options.snapshots.fresh(account, jobId) : void 0;
		if (freshJob === void 0) return this.#readAndPublish();
		subscribers.publishSnapshot(freshJob);
		return IS_TERMINAL[freshJob.status];
	}
	/**
	* Reads the job. While the credential is refused, one caller at a time checks if that is over.
	*/
	async #readUnlessRefused() {
		const { snapshots, clock } = this.#options;
		const { account, jobId } = this.#job;
		const { credentialRefusal: refusal } = account;
		if (refusal === void 0) return snapshots.refresh(account, jobId);
		if (refusal.isBeingChecked || clock.now() < refusal.untilMs) return void 0;
		refusal.isBeingChecked = true;
		try {
			return await snapshots.refresh(account, jobId);
		} finally {
			refusal.isBeingChecked = false;
		}
	}
	/**
	* Reads the job and shows it. True when it has ended. An answer is out of date when an event
	* arrives before it.
	*/
	async #readAndPublish() {
		const { subscribers } = this.#job;
		const eventsBefore = this.#events;
		const read = await this.#readUnlessRefused();
		if (read === void 0) return false;
		if (!read.ok) return isGone(read.error);
		if (this.#events !== eventsBefore && !IS_TERMINAL[read.value.status]) return false;
		const before = subscribers.status();
		subscribers.publishSnapshot(read.value);
		if (subscribers.status() !== before) this.#polls = 0;
		return IS_TERMINAL[read.value.status];
	}
	/**
	* Handles an event. The job itself reports its end, after all its outputs. A terminal status may
	* include the job.
	*/
	#handleEvent(event) {
		const { account, jobId, subscribers } = this.#job;
		this.#events++;
		const streamedJob = this.#streamedJob?.receive(event);
		if (event.event !== "status") return subscribers.publish(event);
		this.#options.snapshots.invalidate(account, jobId);
		const { status, job } = event.data;
		if (!IS_TERMINAL[status]) return subscribers.publish(event);
		if (job?.id === jobId && status !== "expired") this.#options.snapshots.store(account, job);
		else if (streamedJob) this.#publishStreamedEnd(event, streamedJob);
		else subscribers.publishEnding();
	}
	/**
	* Publishes the end. The job lacks the times of its run, so it is not stored: other callers read
	* it.
	*/
	#publishStreamedEnd({ data }, job) {
		const { account, jobId, subscribers } = this.#job;
		this.#hasStreamedEnd = true;
		this.#options.snapshots.forgetJob(account, jobId);
		subscribers.publish({
			event: "status",
			data: {
				...data,
				job
			}
		});
	}
	/** Reads the job while its stream is open: even a working stream may have missed the end. */
	#readBesideStream(current) {
		this.#readAndPublish().then((isOver) => isOver && current.abort(), (error) => this.#options.log.debug({
			event: "upstream.read_failed",
			err: error
		}, "could not read a job beside its stream"));
	}
	/** Reads one stream. Returns the wait before the next attempt. */
	async #readStreamUntilEnd() {
		const { limits, clock, checkRate, streamSlots } = this.#options;
		const current = new AbortController();
		const takeBack = this.#job.stop.onRequest(() => current.abort());
		this.#stream = current;
		const startedAtMs = clock.now();
		const silence = watchSilence({
			...limits.streamCheckMs,
			rate: checkRate,
			jitter: jittered
		}, () => this.#readBesideStream(current));
		try {
			const attempt = await this.#readStream(current.signal, silence);
			streamSlots.release(this);
			return this.#waitAfter(attempt, clock.now() - startedAtMs);
		} finally {
			takeBack();
			silence.close();
			streamSlots.release(this);
			this.#stream = void 0;
			this.#streamedJob = void 0;
		}
	}
	#readStream(stop, silence) {
		const { snapshots } = this.#options;
		const { account, jobId } = this.#job;
		return readStreamOnce(this.#options, {
			account,
			path: snapshots.target(account, jobId, "events"),
			signal: stop,
			onEvent: (event) => {
				silence.noteActivity();
				this.#handleEvent(event);
			},
			secrets: snapshots.secretsOf(account, jobId)
		});
	}
	#waitAfter(attempt, livedMs) {
		const { limits, clock, streamSlots } = this.#options;
		if (attempt.kind === "no capacity") streamSlots.noteLimit(attempt.forMs);
		if (attempt.kind === "read" && attempt.end === "too large" && this.#tooLargeCount++ > 0) this.#noStreamUntilMs = clock.now() + limits.uncertainStreamMs;
		if (livedMs >= limits.longStreamMs) this.#reconnectMs = limits.reconnectMs.first;
		return attempt.kind === "no capacity" ? this.#nextPollMs() : this.#nextReconnectMs();
	}
	/** How long no job of the account, or this job alone, must not be read. */
	#refusedForMs() {
		const { account, jobId } = this.#job;
		const ofJob = this.#options.snapshots.refusedUntilMs(account, jobId) ?? 0;
		return Math.max(account.credentialRefusal?.untilMs ?? 0, ofJob) - this.#options.clock.now();
	}
	#mayStream() {
		const { snapshots, capabilities, clock } = this.#options;
		const { account, jobId } = this.#job;
		const mayCall = (account.credentialRefusal ?? snapshots.refusedUntilMs(account, jobId)) === void 0 && account.gate.waitMs() === 0;
		const notBeforeMs = Math.max(capabilities.pollOnlyUntilMs, this.#noStreamUntilMs);
		return mayCall && clock.now() >= notBeforeMs;
	}
	#nextReconnectMs() {
		const ms = this.#reconnectMs;
		this.#reconnectMs = Math.min(ms * 2, this.#options.limits.reconnectMs.last);
		return ms;
	}
	#nextPollMs() {
		const status = this.#job.subscribers.status() ?? "queued";
		const polls = this.#polls++;
		return pollDelayMs(this.#options.limits, {
			status,
			isWatched: this.#isWatched(),
			polls
		});
	}
	#isWatched() {
		return this.#options.isWatched(this.#job.user, this.#job.jobId);
	}
};
// src/upstreams/remote-events/shared-streams.ts
/** Lets all subscribers to a job of one account share one stream, or one poller. */
function createSharedStreams(options) {
	const streams = /* @__PURE__ */ new Map();
	const tasks = /* @__PURE__ */ new Set();
	function removeStream(key, stop) {
		if (streams.get(key)?.stop === stop) streams.delete(key);
	}
	function startStream(account, { user }, jobId) {
		const key = `${account.id} ${jobId}`;
		const stop = new StopRequest();
		const subscribers = new Subscribers(() => {
			stop.request("unread");
			removeStream(key, stop);
		});
		const stream = {
			subscribers,
			stop,
			follower: new JobFollower(options, {
				account,
				user,
				jobId,
				subscribers,
				stop
			})
		};
		streams.set(key, stream);
		const task = followToEnd(key, stream, jobId).finally(() => tasks.delete(task));
		tasks.add(task);
		return stream;
	}
	async function followToEnd(key, stream, jobId) {
		try {
			await stream.follower.run();
		} catch (error) {
			const facts = {
				event: "upstream.follow_failed",
				err: error,
				jobId
			};
			options.log.error(facts, "could not follow a job");
		} finally {
			removeStream(key, stream.stop);
		}
	}
	options.snapshots.onEnd((account, jobId) => streams.get(`${account.id} ${jobId}`)?.follower.reportEnd());
	return {
		async events(account, { caller, jobId, signal }) {
			const latest = options.snapshots.latest(account, jobId);
			const read = latest ? ok(latest) : await options.snapshots.get(account, jobId);
			if (!read.ok) return read;
			if (IS_TERMINAL[read.value.status]) return ok(endedJobEvents(statusEventOf(read.value).data));
			const stream = streams.get(`${account.id} ${jobId}`) ?? startStream(account, caller, jobId);
			return ok(stream.subscribers.subscribe(signal));
		},
		async close() {
			for (const { stop } of streams.values()) stop.request("unread");
			await Promise.all(tasks);
		}
	};
}
// src/upstreams/remote/remote-services.ts
function createRemoteServices(options) {
	const { clock = monotonicClock, log, isWatched = () => true } = options;
	const limits = {
		...DEFAULT_REMOTE_LIMITS,
		...options.limits
	};
	const links = createLinks(options.baseUrl);
	const connections = createConnections(links.origin, limits, options.traceHeaders);
	const capabilities = unknownCapabilities();
	if (options.assetMode === "object" || options.assetMode === "string") capabilities.assetMode = options.assetMode;
	if (options.labels && options.labels !== "auto") capabilities.labels = options.labels;
	const client = {
		calls: createCalls(connections, {
			limits,
			clock,
			log,
			capabilities
		}),
		links,
		capabilities,
		limits,
		clock,
		log
	};
	const snapshots = new Snapshots(client);
	const streamSlots = createStreamSlots({
		max: Math.min(limits.maxStreams, 6),
		clock
	});
	const checkRate = createCheckRate({
		...limits.streamChecks,
		clock
	});
	const outputIds = createOutputIds({
		snapshots,
		capabilities
	});
	return {
		...client,
		snapshots,
		streamSlots,
		outputIds,
		connections,
		foreignLinks: createForeignLinks(links.origin, limits, { hosts: options.redirectHosts ?? [] }),
		accounts: createAccounts(options.credential, {
			clock,
			maxConcurrentSubmissions: limits.submitsAtOnce
		}),
		credentialCheck: createCredentialCheck(client),
		recovery: createRecovery(client, snapshots),
		assets: createAssets(client, outputIds),
		uploadPaths: createUploadPaths(options.uploadPathSecret),
		sharedStreams: createSharedStreams({
			...client,
			snapshots,
			streamSlots,
			checkRate,
			isWatched
		})
	};
}
// src/upstreams/remote/submit-format.ts
/** Browser front ends send it with every prompt, but some servers refuse unknown fields. */
const AUTH_TOKEN = "auth_token_comfy_org";
/** Returns the body of `POST /jobs`. */
function submitBody(request, format) {
	const { workflow, extraData, metadata, order, provenance } = request;
	const namedWorkflow = namesNoFile(request) ? workflow : inAssetMode(workflow, format.assetMode);
	const body = {};
	const secrets = Object.entries(extraData).filter(([name, secret]) => secret !== void 0 && (name !== AUTH_TOKEN || format.authToken !== "no"));
	if (secrets.length > 0) body["extra_data"] = Object.fromEntries(secrets);
	if (metadata && format.labels !== "none") body["metadata"] = format.labels === "string" ? JSON.stringify(metadata) : metadata;
	if (format.vendorFields && order !== void 0) body["x_order"] = order;
	if (format.vendorFields && provenance) {
		const { prompt, extraPngInfo } = provenance;
		if (prompt !== namedWorkflow) body["x_prompt"] = prompt;
		if (extraPngInfo !== null) body["x_extra_pnginfo"] = extraPngInfo;
	}
	const text = namedWorkflow === workflow ? request.workflowJson : void 0;
	const otherMembers = stringifyJson(body).slice(1);
	return `{"workflow":${text ?? stringifyJson(namedWorkflow)}${otherMembers === "}" ? "" : ","}${otherMembers}`;
}
/**
* Returns the next format for a refused submission while the upstream's formats are unknown;
* `undefined` when the refusal is about the submission itself.
*/
function nextFormat(capabilities, format, { request, error }) {
	if (request.metadata && format.labels !== "none" && isAboutLabels(error)) {
		const next = capabilities.labels === "unknown" && error.code !== "metadata_not_supported" && format.labels !== "string" ? "string" : "none";
		return {
			...format,
			labels: next
		};
	}
	if (request.extraData[AUTH_TOKEN] && format.authToken !== "no" && isAboutSecrets(error)) return {
		...format,
		authToken: "no"
	};
	if (namesMissingIds(error) && hasFileRefs(request) && format.assetMode !== "string") {
		if (capabilities.assetMode === "unknown") capabilities.assetMode = "object";
		return;
	}
	return error.status === 422 && capabilities.assetMode === "unknown" && format.assetMode !== "string" && errorCodeOf(error.code)?.isNotAboutFiles !== true && hasFileRefs(request) ? {
		...format,
		assetMode: "string"
	} : void 0;
}
/**
* Records a format that the upstream has accepted. A refusal proves nothing: the workflow may
* contain `metadata`, too.
*/
function rememberFormat(capabilities, format, request) {
	if (request.metadata) capabilities.labels = format.labels === "unknown" ? "map" : format.labels;
	if (format.authToken === "no") capabilities.authToken = "no";
	if (capabilities.assetMode === "unknown" && hasFileRefs(request)) capabilities.assetMode = format.assetMode === "string" ? "string" : "object";
}
/** True when a service lists missing ids: it understands ids. */
function namesMissingIds({ code, details }) {
	const ids = isJsonObject(details) ? details["missing_ids"] : void 0;
	return code === "missing_asset" && Array.isArray(ids) && ids.length > 0;
}
function isAboutSecrets({ status, message }) {
	return (status === 400 || status === 422) && /\bextra_data\b|auth_token/i.test(message);
}
function isAboutLabels({ status, code, message }) {
	if (code === "metadata_not_supported" || code === "metadata_invalid") return true;
	return (status === 400 || status === 422) && /\bmetadata\b/i.test(message);
}
// src/upstreams/remote/submit.ts
/**
* Submits under one key until the outcome is known, as far as possible. The first request that
* reaches the service uses up the key and is never replayed: to send it again cannot run a job
* twice, but does not return its id either. No other key is used.
*/
async function submitJob(options, asked) {
	const { account, request, format } = asked;
	const submission = {
		account,
		request,
		key: request.idempotencyKey ?? randomUUID()
	};
	const sentAtMs = Date.now();
	const state = {
		format,
		deadlineMs: options.clock.now() + options.limits.submitBudgetMs,
		unsent: 0,
		unknown: 0,
		isAnswerMissing: false,
		firstRefusal: void 0
	};
	let next;
	for (;;) {
		const result = await attempt(options, submission, state);
		if (result.kind === "accepted") {
			rememberFormat(options.capabilities, state.format, request);
			return accept(options, account, result.job);
		}
		next = decide(options, {
			state,
			request,
			result
		});
		if (next.kind === "give up") return refuseWithOutcome(next.outcome, next.error);
		if (next.kind === "search") break;
		await options.clock.sleep(next.afterMs);
	}
	const { workflow, metadata } = request;
	const isAnswered = state.unknown > 0 && !state.isAnswerMissing;
	const lost = {
		workflow,
		sentAtMs,
		isAnswered,
		...metadata && { metadata }
	};
	const recovered = await options.recovery.search(account, lost);
	if (typeof recovered === "object") return accept(options, account, recovered);
	if (!isAnswered || next.outcome !== "unknown") return refuseWithOutcome(next.outcome, next.error);
	return recovered === "absent" ? refuseWithOutcome("not_taken", NOT_TAKEN) : refuseWithOutcome("unknown", recovered === "engine down" ? ENGINE_DOWN : next.error);
}
/** Decides what follows an attempt that made no known job. */
function decide(options, { state, request, result }) {
	const { limits, clock, log } = options;
	if (result.kind === "refused") return afterRefusal(options, state, {
		request,
		...result
	});
	if (result.kind === "wait") {
		if (clock.now() + result.forMs <= state.deadlineMs) return {
			kind: "retry",
			afterMs: 0
		};
		if (result.error.status === 409) return SEARCH;
		return giveUp(state, "refused", result.error);
	}
	if (result.kind === "not_sent") {
		const afterMs = limits.unsentRetryMs[state.unsent++];
		if (afterMs !== void 0) return {
			kind: "retry",
			afterMs
		};
		return giveUp(state, "not_sent", unreachable());
	}
	log.warn({
		event: "upstream.submission_outcome_unknown",
		status: result.error.status
	}, "the outcome of a submission is unknown");
	state.isAnswerMissing ||= !result.isAnswered;
	const afterMs = limits.unknownRetryMs[state.unknown++];
	return afterMs === void 0 ? SEARCH : {
		kind: "retry",
		afterMs
	};
}
function afterRefusal(options, state, refused) {
	const { error } = refused;
	const next = nextFormat(options.capabilities, state.format, refused);
	if (!next) return giveUp(state, "refused", (isAboutContent(error) ? state.firstRefusal : void 0) ?? error);
	if (next.assetMode !== state.format.assetMode) state.firstRefusal = error;
	state.format = next;
	return {
		kind: "retry",
		afterMs: 0
	};
}
/**
* Ends the submission, unless an earlier attempt may have made a job. Services check keys last, so
* a full queue or a refused credential says nothing about that. A fault in the submission itself
* existed at the earlier attempt too.
*/
function giveUp(state, outcome, error) {
	if (state.unknown === 0) return {
		kind: "give up",
		outcome,
		error
	};
	return isAboutContent(error) ? {
		kind: "search",
		outcome: "refused_late",
		error
	} : SEARCH;
}
const UNKNOWN = {
	status: 500,
	code: "submit_outcome_unknown",
	message: "The job service did not answer in time; whether it took the job is unknown.",
	details: null
};
const NOT_TAKEN = {
	status: 503,
	code: "upstream_unreachable",
	message: "The job service cannot reach its engine, and has no job of this submission.",
	details: null
};
const ENGINE_DOWN = {
	...UNKNOWN,
	message: "The job service cannot reach its engine; whether that took the job is unknown.",
	engineDown: true
};
const SEARCH = {
	kind: "search",
	outcome: "unknown",
	error: UNKNOWN
};
/** Makes one attempt, when the account may call and the semaphore admits it. */
async function attempt(options, submission, { format, deadlineMs }) {
	const { account, request, key } = submission;
	const { gate, semaphore } = account.submissions;
	await semaphore.acquire();
	let end = "other";
	try {
		const budgetMs = deadlineMs - options.clock.now();
		if (!(await gate.waitUntilOpen({ budgetMs }) && await account.gate.waitUntilOpen({ budgetMs }))) return {
			kind: "refused",
			error: tooBusy(account)
		};
		const result = interpretAnswer(options, account, await options.calls.once(account, {
			method: "POST",
			path: options.links.target("jobs"),
			headers: { "idempotency-key": key },
			body: submitBody(request, format),
			timeoutMs: options.limits.submitTimeoutMs
		}));
		if (result.kind === "accepted") end = "passed";
		if (result.kind === "wait") {
			end = "no capacity";
			gate.closeFor(result.forMs);
		}
		return result;
	} finally {
		semaphore.release(end);
	}
}
/** True when an answer does not show if a job exists: proxies have status codes of their own. */
function isAmbiguous(status) {
	return AMBIGUOUS.has(status) || status >= 500 && status !== 501;
}
const AMBIGUOUS = /* @__PURE__ */ new Set([
	408,
	425,
	499
]);
function interpretAnswer(options, account, answer) {
	if (answer.kind === "lost") {
		if (!answer.wasSent) return { kind: "not_sent" };
		return {
			kind: "unknown",
			error: unreachable(),
			isAnswered: false
		};
	}
	const { reply } = answer;
	const { status, headers } = reply;
	if (status < 300) {
		const job = readJob(reply.json);
		if (job) return {
			kind: "accepted",
			job
		};
		const isPage = /\bhtml\b/i.test(headers["content-type"] ?? "");
		const error = {
			...toError(reply, account.key),
			status: 502,
			code: "bad_upstream_response"
		};
		return isPage && status === 200 ? {
			kind: "refused",
			error
		} : {
			kind: "unknown",
			error,
			isAnswered: false
		};
	}
	if (isAmbiguous(status)) {
		const error = toError(reply, account.key);
		return {
			kind: "unknown",
			error,
			isAnswered: error.engineDown === true
		};
	}
	const error = options.calls.recordRefusal(account, reply);
	const isInFlight = status === 409 && error.retryAfterSeconds !== void 0;
	if (!isCapacityRefusal(error) && !isInFlight) return {
		kind: "refused",
		error
	};
	return {
		kind: "wait",
		error,
		forMs: retryAfterMs(error.retryAfterSeconds, options.limits)
	};
}
function accept({ recovery, snapshots }, account, job) {
	recovery.claim(job.id);
	snapshots.store(account, job);
	if (IS_TERMINAL[job.status]) snapshots.invalidate(account, job.id);
	return ok(job);
}
function refuseWithOutcome(outcome, error) {
	return {
		ok: false,
		error: {
			...error,
			outcome
		}
	};
}
function tooBusy({ gate, submissions }) {
	const waitMs = Math.max(gate.waitMs(), submissions.gate.waitMs());
	return {
		status: 429,
		code: "queue_full",
		message: "The job service has no room for more jobs right now.",
		details: null,
		retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1e3))
	};
}
// src/upstreams/remote/job-calls.ts
function createJobCalls(services) {
	const { accounts, calls, snapshots, recovery, sharedStreams, uploadPaths } = services;
	const forAccount = withAccount(accounts);
	return {
		submit: (caller, request) => forAccount(caller, async (account) => {
			if (namesNoFile(request)) return submit(services, account, request);
			const { workflowJson: _, ...rest } = request;
			const workflow = uploadPaths.rewriteWorkflow(request.workflow, caller.user);
			return submit(services, account, {
				...rest,
				workflow
			});
		}),
		recover: (caller, lost) => forAccount(caller, async (account) => {
			const recovered = await recovery.find(account, {
				...lost,
				workflow: uploadPaths.rewriteWorkflow(lost.workflow, caller.user)
			});
			if (!recovered.ok) return recovered;
			const secrets = Object.values(lost.extraData ?? {});
			const { job, isListed } = recovered.value;
			const guarded = job && snapshots.storeSecrets(account, job, secrets);
			return ok({
				job: guarded,
				isCertain: false,
				isListed
			});
		}),
		get: (caller, jobId) => forAccount(caller, (account) => snapshots.get(account, jobId)),
		list: (caller, query) => forAccount(caller, (account) => recovery.list(account, query)),
		events: (caller, jobId, signal) => forAccount(caller, (account) => sharedStreams.events(account, {
			caller,
			jobId,
			signal
		})),
		workflow: (caller, jobId) => forAccount(caller, async (account) => {
			const path = snapshots.workflowTarget(account, jobId);
			const answer = await calls.callIdempotent(account, {
				method: "GET",
				path
			});
			if (!answer.ok) return answer;
			const read = readWorkflow(answer.value.json);
			return read ? ok(read) : invalidAnswer();
		}),
		cancel: (caller, jobId) => forAccount(caller, async (account) => {
			if (!snapshots.latest(account, jobId)) {
				const read = await snapshots.get(account, jobId);
				if (!read.ok) return read;
			}
			const path = snapshots.target(account, jobId, "cancel");
			const answer = await calls.callIdempotent(account, {
				method: "POST",
				path
			});
			if (!answer.ok) {
				if (isGone(answer.error)) await snapshots.confirm(account, jobId);
				return answer;
			}
			const job = readJob(answer.value.json);
			if (!job) return snapshots.refresh(account, jobId);
			if (job.status === "expired") return snapshots.confirm(account, jobId);
			if (job.status === "queued") warnIgnoredCancel(services);
			return ok(snapshots.store(account, job));
		})
	};
}
/** Submits a prompt. Its keys are removed from everything that the service returns. */
async function submit(services, account, request) {
	const submitted = await submitJob(services, {
		account,
		request,
		format: await submitFormatFor(services, request)
	});
	const secrets = Object.values(request.extraData);
	if (!submitted.ok) return {
		ok: false,
		error: redactError(submitted.error, secrets)
	};
	return ok(services.snapshots.storeSecrets(account, submitted.value, secrets));
}
async function submitFormatFor(services, request) {
	const { assetMode, labels, authToken } = services.capabilities;
	return {
		assetMode,
		labels,
		authToken,
		vendorFields: (request.order !== void 0 || request.provenance !== void 0) && await isHoldover(services)
	};
}
/** True for a Holdover with its own engine: no other service reports `embedded` as its upstream. */
async function isHoldover({ calls, links, capabilities, limits, clock }) {
	const { holdover: known } = capabilities;
	if (known && clock.now() < known.untilMs) return known.isOne;
	const path = links.target("health");
	const timeoutMs = limits.discoverTimeoutMs;
	const outcome = await calls.once(void 0, {
		method: "GET",
		path,
		timeoutMs
	});
	const answer = outcome.kind === "reply" ? upstreamOf(outcome.reply) : void 0;
	const isOne = answer === void 0 ? known?.isOne === true : answer === "embedded";
	const forMs = answer === void 0 ? limits.discoverRetryMs : limits.discoverAgainMs;
	capabilities.holdover = {
		isOne,
		untilMs: clock.now() + forMs
	};
	return isOne;
}
/**
* Returns the upstream that a service reports; `null` for none, `undefined` while it starts or is
* unavailable.
*/
function upstreamOf({ status, json, isPage }) {
	if (status >= 500 || status === 429 || isPage === true) return void 0;
	return isJsonObject(json) ? json["upstream"] ?? null : null;
}
/**
* Warns once that a cancel was answered with success and the job still waits. The self-hosted
* server asks its engine and ignores the answer; an engine without that route cancels nothing. A
* queued job is gone when the cancel is answered; a running job may continue for a while.
*/
function warnIgnoredCancel({ capabilities, log }) {
	if (capabilities.ignoresCancel) return;
	capabilities.ignoresCancel = true;
	log.warn({ event: "upstream.cancel_ignored" }, CANCEL_IGNORED);
}
const CANCEL_IGNORED = "the job service answered a cancel with success, but the job still waits: it stays in the queue and will run. Behind comfy-api-proxy the engine must have POST /api/jobs/{id}/cancel";
// src/upstreams/remote-files/content-bytes.ts
/** How often an interrupted transfer is resumed. */
const MAX_RESUMES = 3;
function rangeHeader({ start, end }) {
	return { range: `bytes=${start}-${Number.isFinite(end) ? end : ""}` };
}
/** Returns the bytes of a 200 or 206; `undefined` when it is not the requested part. */
function contentBytes(client, answer, request) {
	const { status, headers, body } = answer;
	const { "content-type": contentType = "application/octet-stream", etag } = headers;
	const part = status === 206 ? contentRange(headers) : wholeRange(headers);
	const isAskedPart = part && request.range && isWithin(part, request.range);
	if (status === 206 && !(isAskedPart && hasLengthOf(part, headers))) {
		body.destroy();
		return;
	}
	if ((headers["content-encoding"] ?? "identity") !== "identity") {
		body.destroy();
		return invalidAnswer();
	}
	const meta = {
		kind: "bytes",
		contentType,
		...etag !== void 0 && { etag }
	};
	if (part === void 0) return ok({
		...meta,
		stream: body,
		totalBytes: Infinity
	});
	const { totalBytes, start, end } = part;
	const stream = resumingStream(client, answer, {
		part,
		refetch: request.refetch
	});
	return ok({
		...meta,
		stream,
		totalBytes,
		...status === 206 && { range: {
			start,
			end
		} }
	});
}
/**
* Returns a stream that resumes. Only a strong validator shows that the rest belongs to the same
* bytes.
*/
function resumingStream({ limits, clock }, { headers, body }, { part, refetch }) {
	const { etag, "content-length": length } = headers;
	const validator = etag?.startsWith("\"") ? etag : void 0;
	if (validator === void 0 && length !== void 0) return body;
	const condition = validator !== void 0 && { "if-range": validator };
	let triesLeft = validator === void 0 ? 0 : MAX_RESUMES;
	async function reopen(start, cause) {
		while (!stream.destroyed && triesLeft-- > 0) {
			await clock.sleep(limits.readRetryMs);
			const answer = await refetch({
				...rangeHeader({
					start,
					end: part.end
				}),
				...condition
			});
			if (!answer) continue;
			const received = answer.status === 206 ? contentRange(answer.headers) : void 0;
			if (received?.start === start && received.totalBytes === part.totalBytes) return answer.body;
			answer.body.destroy();
			if (answer.status < 500) break;
		}
		throw cause;
	}
	const stream = resumedBytes(body, {
		...part,
		reopen
	});
	return stream.once("close", () => body.destroy());
}
/** Reads `bytes 2-4/10`. A total of `*` counts as unknown. */
function contentRange(headers) {
	const match = /^bytes (\d+)-(\d+)\/(\d+)$/i.exec(headers["content-range"] ?? "");
	if (!match) return void 0;
	const [start = 0, end = 0, totalBytes = 0] = match.slice(1).map(Number);
	return start <= end && end < totalBytes ? {
		start,
		end,
		totalBytes
	} : void 0;
}
function wholeRange({ "content-length": length }) {
	if (length === void 0) return void 0;
	return {
		start: 0,
		end: Number(length) - 1,
		totalBytes: Number(length)
	};
}
function hasLengthOf({ start, end }, { "content-length": length }) {
	return length === void 0 || Number(length) === end - start + 1;
}
function isWithin(part, request) {
	return part.start === request.start && part.end <= request.end;
}
// src/upstreams/remote-files/content.ts
/** Returns the bytes, or a link to them. The key is sent to the upstream itself only. */
async function openRemoteContent(options, request) {
	const { account } = request;
	const assetId = options.outputIds.current(account, request.assetId);
	const content = await openById(options, {
		...request,
		assetId
	});
	if (content.ok || !isGone(content.error)) return content;
	const renewed = await options.outputIds.renew(account, assetId);
	return renewed === void 0 ? content : openById(options, {
		...request,
		assetId: renewed
	});
}
async function openById(options, request) {
	const { account, assetId, range } = request;
	const answer = await fetchContent(options, request, range && rangeHeader(range));
	if (!answer.ok) return answer;
	const head = answer.value;
	if (head.status >= 300) return redirectContent(options, request, head);
	const refetch = async (headers) => {
		const next = await fetchContent(options, request, headers);
		return next.ok && next.value.status < 300 ? next.value : void 0;
	};
	const bytes = contentBytes(options, head, {
		range,
		refetch
	});
	if (bytes) return bytes;
	return range ? openById(options, {
		account,
		assetId
	}) : invalidAnswer();
}
/** Makes one request. The answer is the bytes, or a redirect to them. */
async function fetchContent({ calls, links, limits, clock }, { account, assetId }, headers = {}) {
	const path = contentPath(links, assetId);
	let answer = {
		ok: false,
		error: unreachable()
	};
	for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
		if (attempt > 1) await clock.sleep(limits.readRetryMs);
		if (!await account.gate.waitUntilOpen({ budgetMs: limits.readBudgetMs })) return {
			ok: false,
			error: pausedError(account)
		};
		const head = await calls.open(account, {
			method: "GET",
			path,
			headers: {
				accept: "*/*",
				...headers
			}
		});
		if (!head.ok && tooLargePart(head.cause)) return tooLargeAnswer();
		if (!head.ok) continue;
		if (USABLE_STATUSES.has(head.status)) return ok(head);
		const error = calls.recordRefusal(account, await readRefusal(head));
		answer = {
			ok: false,
			error
		};
		if (!isAccountWide(error)) break;
	}
	return answer;
}
function contentPath(links, assetId) {
	return links.target("assets", assetId, "content");
}
const ATTEMPTS = 2;
const USABLE_STATUSES = /* @__PURE__ */ new Set([
	200,
	206,
	301,
	302,
	303,
	307,
	308
]);
/**
* Returns the redirect. A link authorizes its holder, so one that contains the key is not passed
* on.
*/
function redirectContent(options, request, { headers, body }) {
	body.destroy();
	const { key } = request.account;
	const { origin } = options.links;
	const contentUrl = new URL(contentPath(options.links, request.assetId), origin).href;
	const location = redirectTarget(headers.location, contentUrl);
	if (location === void 0) return invalidAnswer();
	const spellings = location + (decodedPart(location) ?? "");
	if (key !== void 0 && spellings.includes(key)) return invalidAnswer();
	const refusalReason = options.foreignLinks.refusalReason(location);
	if (refusalReason !== void 0) return redirectRefused(options, refusalReason);
	return ok({
		kind: "redirect",
		location,
		open: (range) => openLink(options, {
			...request,
			location,
			range
		})
	});
}
/** Reads the target of a link. An expired link is requested once more. */
async function openLink(options, request) {
	const { account, assetId, range } = request;
	let { location } = request;
	async function renew() {
		const answer = await openRemoteContent(options, {
			account,
			assetId,
			range: {
				start: 0,
				end: 0
			}
		});
		if (answer.ok && answer.value.kind === "bytes") answer.value.stream.destroy();
		if (!answer.ok || answer.value.kind !== "redirect") return false;
		({location} = answer.value);
		return true;
	}
	/** Fetches a link, whatever expiry it states: clocks differ. */
	async function fetchLink(headers) {
		const head = await options.foreignLinks.open(location, headers);
		if (head.ok && (head.status === 200 || head.status === 206)) return ok(head);
		if (head.ok) head.body.destroy();
		else if (head.cause instanceof AddressRefused) return redirectRefused(options, head.cause.message);
		return linkFailed(head.ok ? head.status : 0);
	}
	async function fetchLinkOrRenew(headers) {
		const first = await fetchLink(headers);
		if (first.ok || first.error.status === 416) return first;
		return await renew() ? fetchLink(headers) : first;
	}
	const head = await fetchLinkOrRenew(range ? rangeHeader(range) : {});
	if (!head.ok) return head;
	const refetch = async (headers) => {
		const next = await fetchLinkOrRenew(headers);
		return next.ok ? next.value : void 0;
	};
	const bytes = contentBytes(options, head.value, {
		range,
		refetch
	});
	if (bytes) return bytes;
	return range ? openLink(options, {
		...request,
		location,
		range: void 0
	}) : invalidAnswer();
}
/**
* Refuses a redirect. The client does not learn the host, which is inside the operator's network.
*/
function redirectRefused({ log }, reason) {
	log.warn({
		event: "upstream.redirect_refused",
		reason
	}, "does not follow the redirect of a file");
	return refuse(502, "bad_upstream_response", "The job service keeps this file on a host that Holdover may not read. The operator of Holdover can allow it with --upstream-redirects.");
}
/**
* Returns the error of a link. The storage host has error texts of its own, which mean nothing to a
* v1 client.
*/
function linkFailed(status) {
	if (isGone({ status })) return refuse(404, "not_found", "The file is gone.");
	if (status === 416) return refuse(416, "range_not_satisfiable", "The file has no such part.");
	return refuse(502, "bad_upstream_response", "The file could not be read where it is kept.");
}
// src/upstreams/remote/remote-jobs.ts
function createRemoteJobs(options) {
	const services = createRemoteServices(options);
	const { streamSlots, capabilities, sharedStreams, connections } = services;
	return {
		...createJobCalls(services),
		...createAssetCalls(services),
		noteSubmitted(caller, answer) {
			const account = services.accounts.of(caller);
			const job = readJob(answer);
			if (!account.ok || !job) return;
			if (services.snapshots.latest(account.value, job.id)) return;
			services.snapshots.store(account.value, job);
		},
		startUpload(caller, upload) {
			const account = services.accounts.of(caller);
			return account.ok ? services.assets.start(account.value, upload) : void 0;
		},
		health: () => checkHealth(services),
		uploadFolderOf: (upload) => services.uploadPaths.folderOf(upload),
		async acceptsCaller(caller) {
			if (options.credential.mode === "fixed") return true;
			const account = services.accounts.of(caller);
			return account.ok && services.credentialCheck.isAccepted(account.value);
		},
		capabilities: () => ({
			...capabilities,
			openStreams: streamSlots.openCount()
		}),
		async close() {
			await sharedStreams.close();
			await Promise.all([connections.close(), services.foreignLinks.close()]);
		}
	};
}
/**
* Checks the health, without a key. A service without this route counts as healthy when it answers
* at all.
*/
async function checkHealth({ calls, links }) {
	const outcome = await calls.once(void 0, {
		method: "GET",
		path: links.target("health")
	});
	if (outcome.kind === "lost") return {
		ok: false,
		error: unreachable()
	};
	const { reply } = outcome;
	if (reply.status >= 500) return {
		ok: false,
		error: {
			...toError(reply),
			status: 503
		}
	};
	return ok({
		status: "healthy",
		upstream: "remote"
	});
}
function createAssetCalls(services) {
	const { accounts, assets, uploadPaths } = services;
	const forAccount = withAccount(accounts);
	return {
		async createAsset(caller, upload) {
			try {
				const { filePath, file } = upload;
				const uploadPath = uploadPaths.pathOf({
					user: caller.user,
					filePath,
					hash: file.hash
				});
				return await forAccount(caller, (account) => assets.create(account, {
					...upload,
					filePath: uploadPath
				}));
			} finally {
				await rm(upload.file.path, { force: true });
			}
		},
		assetFromHash(caller, request) {
			const { filePath, hash } = request;
			const uploadPath = filePath && { filePath: uploadPaths.pathOf({
				user: caller.user,
				filePath,
				hash
			}) };
			return forAccount(caller, (account) => assets.fromHash(account, {
				...request,
				...uploadPath
			}));
		},
		hasBlob: (caller, hash) => forAccount(caller, (account) => assets.hasBlob(account, hash)),
		asset: (caller, assetId) => forAccount(caller, (account) => assets.get(account, assetId)),
		deleteAsset: (caller, assetId) => forAccount(caller, (account) => assets.remove(account, assetId)),
		content: (caller, assetId, range) => forAccount(caller, (account) => openRemoteContent(services, {
			account,
			assetId,
			...range && { range }
		}))
	};
}
export { createRemoteJobs, inAssetMode as t };
