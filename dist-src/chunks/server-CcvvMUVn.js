import { i as presentsKey, n as createAuthenticate, r as createIdentify, t as LOCAL_USER } from "./identity-Dwa03of1.js";
import { n as upstreamName } from "./upstream-DU15CGzj.js";
import { t as packageVersion } from "./version-eXUY6IRP.js";
import { _ as withoutCredentialsIn, b as readTarget, c as logRequest, d as withoutRedaction, g as withoutCredentials, l as requestId, m as isCredentialMember, p as hasLogin, y as decodedPart } from "./ledger-B4DYGOuk.js";
import { r as targetHasControlCharacter, t as hasControlCharacter } from "./control-characters-CRFC75pz.js";
import { a as mapParts, c as setMember, i as jsonFault, l as stringifyJson, n as isJsonObject, o as parseJson, r as isSameJson, s as prettyJson, t as LosslessNumber } from "./json-CIUMQIEJ.js";
import { A as invalidRequest, B as engineFileOf, C as toPromptRefusal, D as V1Error, E as NO_VALID_KEY, F as retryAfterHeader, H as applyCoercionsSteps, I as ruleFault, L as sendEmpty, M as promptFault, N as promptRefusal, O as emptyError, P as requirePrintable, R as sendJson, S as submitUnknown, T as nodeErrorsOf, U as chosenOutputs, V as applyCoercions, W as extraPngInfo, _ as isCapacityRefusal, a as insertAssetReferences, b as refuseShape, c as readSubmission, f as uploadFoldersIn, g as tooLargeText, h as spoolStream, i as createFileResolver, j as plainError, k as faultOf, l as usesCounter, m as spoolBytes$1, n as openDefinitions, o as partnerCredentialsOf, p as pipeInto, q as outputNodes, r as MISSING_ASSET_ID, s as withoutSecrets$1, t as objectInfo, u as memberText, v as messageOf$1, w as unreachableUpstream, x as serverStalled, y as outputsWithoutErrors, z as v1Json } from "./object-info-CQQmKRsU.js";
import { a as decodeBmp, c as readPngChunks, i as pictureFormatOf, l as writePng, o as decodeInks, s as isPng, t as ALL_NODES } from "./library-CGWaePEd.js";
import { A as createMetrics, C as observeEvents, D as setValue, E as rememberJson, O as toJsonText, S as interceptCalls, T as readValue, _ as jobLock, a as workerLost, b as openTracing, c as showJob, d as createJobFiles, f as createOutputNames, g as importedBytes, h as SWEEP_FAILURE, i as createEngine, j as withRouteLabel, k as unload, l as toEndPatch, m as freeNames, n as JobRun, o as jobFromRow, p as counterIn, r as PeriodicTask, s as jobStateOf, t as DEFAULT_LIMITS$1, u as toPatch, w as createLazyJson, x as V2_CALLS, y as sweepWithUnrecorded } from "./job-engine-CEUdsca2.js";
import { i as isStorageFull, o as storageProblem } from "./storage-errors-D5OCISk9.js";
import { a as successorLink, i as V1_ROUTES, n as ignoreUsage, r as openUsageCounter, t as reportOf } from "./usage-report-qYZ579YX.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { a as isCopyCurrent, c as safeFolder, d as uploadPathOf, f as withinRoot, i as headersElsewhere, l as safeName, n as contentTypeOf, o as isFileType, r as fileHeaders, s as parseAnnotation, t as PICTURE, u as splitPath } from "./file-headers-C86A5Ow4.js";
import { t as isOwnUserAgent } from "./own-user-agent-BEdeO88m.js";
import { a as createDeferred, c as createSemaphore, n as Latch, o as createKeyedMutex, t as BackgroundTasks, u as lazily } from "./concurrency-DwpPd4rK.js";
import { a as v2Error, i as refuse, n as isGone, o as errorCodeOf, r as ok, t as isAboutContent } from "./job-api-DUOBoLDS.js";
import { a as monotonicNow, i as monotonicClock, n as yieldEvery, o as systemClock, r as yieldToEventLoop, t as runInSteps } from "./event-loop-BDDWO5Ig.js";
import { E as pythonStr, S as notInListError, a as StopRequest, d as EventSubscriber, g as outputTypeOf$2, l as drainEvents, m as JOB_STATUSES, o as jsonWeight, p as IS_TERMINAL, s as stringifySteps, w as isTruthyInPython, y as errorEntry } from "./asset-refs-D0EjDw6l.js";
import { r as isoTime$1 } from "./assets-BymgX2wL.js";
import { t as packageUrl } from "./package-url-DJPOFjBU.js";
import { i as toPythonText, n as pythonJson, r as PythonTextWriter } from "./python-json-ZZa01XnG.js";
import { a as statPath, i as safePathBelow, n as createUserDataStore, r as lstatOrUndefined, t as createBucketUserData } from "./bucket-user-data-icZ9MTPt.js";
import { t as readAtMost } from "./read-at-most-0g521mbO.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { a as displayNode, c as pruneTo, l as soleSink, n as classOf, o as linkOf, r as dependenciesFirst, s as nodeOf, t as addTo } from "./graph-_gvMsCf-.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { A as linkOrRenameNew } from "./sqlite-ledger-CF5LsL03.js";
import { r as OWN_SEGMENTS, t as isLoopback } from "./config-D5zm_B4n.js";
import { l as NEW_PROMPT } from "./outline-cache-BLjCgPfz.js";
import { t as openStore } from "./store-DmnZ7I1J.js";
import { once } from "node:events";
import { lstat, mkdir, open, readFile, readdir, realpath, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import path, { basename, extname, isAbsolute, join, posix, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocket, WebSocketServer } from "ws";
import { constants as constants$1, readFileSync, readdirSync, statSync } from "node:fs";
import { freemem, hostname, totalmem } from "node:os";
import { LRUCache } from "lru-cache";
import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { TextDecoder, promisify } from "node:util";
import { Semaphore, withTimeout } from "async-mutex";
import { brotliCompress, brotliDecompressSync, constants as constants$2, createGunzip, createInflate, gunzipSync, gzip } from "node:zlib";
import { setImmediate as setImmediate$1, setTimeout as setTimeout$1 } from "node:timers/promises";
import { isUtf8 } from "node:buffer";
import { Readable, Transform, addAbortSignal, finished as finished$1, pipeline as pipeline$1 } from "node:stream";
import { STATUS_CODES, createServer } from "node:http";
import { createServer as createServer$1 } from "node:https";
import Router from "@koa/router";
import Koa from "koa";
import { contentType, lookup } from "mime-types";
import busboy from "busboy";
import parseRange from "range-parser";
import send from "send";
import { isIP } from "node:net";
import parseForwarded from "forwarded-parse";
import proxyAddr from "proxy-addr";
import { getHeapStatistics } from "node:v8";
// src/http/client-connection.ts
/** True when the client has left. */
function isClientGone({ req, writable }) {
	return !writable || req.socket.destroyed;
}
/** A signal that aborts when the caller disconnects. */
function disconnectSignal(res) {
	const controller = new AbortController();
	if (res.destroyed) controller.abort();
	res.once("close", () => controller.abort());
	res.on("error", () => {});
	return controller.signal;
}
/** Writes the last answer of a connection that has no `ServerResponse`. */
function closingAnswer(status, headers, body = "") {
	const lines = headerLines({
		Connection: "close",
		"Content-Length": String(Buffer.byteLength(body)),
		...headers
	});
	return [
		`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
		...lines,
		"",
		body
	].join("\r\n");
}
function headerLines(headers) {
	return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}
/** When this many calls of one connection wait for their turn, no more are read. */
const MAX_WAITING = 1e3;
const callsOf = /* @__PURE__ */ new WeakMap();
/** Returns the response to the last call on a connection. */
function lastAnswer(socket) {
	return callsOf.get(socket)?.last;
}
/**
* Serves pipelined calls of a client one after the other, each in another iteration of the event
* loop. Their answers have this order anyway, and other clients are served in between. Node would
* begin all of them at once.
*/
function serveInOrder(serve) {
	return (request, response) => {
		const { socket } = request;
		const calls = callsOf.get(socket) ?? {
			last: response,
			waiting: 0
		};
		const earlier = calls.last;
		calls.last = response;
		callsOf.set(socket, calls);
		if (response.socket !== null) return serve(request, response);
		if (++calls.waiting === MAX_WAITING) socket.on("resume", pause$1).pause();
		const handleTurn = () => {
			if (calls.waiting-- === MAX_WAITING) socket.off("resume", pause$1).resume();
			if (response.socket !== null) serve(request, response);
		};
		earlier.once("close", () => setImmediate(handleTurn));
	};
}
/** Keeps a connection paused: Node resumes it at the end of each call. */
function pause$1() {
	this.pause();
}
// src/dialects/dialect.ts
/**
* The differences between the two v1 servers, in the order local, hosted. No other code tests for
* the dialect.
*/
const RULES$1 = {
	/** The sockets that get a prompt with a `client_id`: those of that id, or all of the user. */
	promptWithClientId: ["its-sockets", "all-sockets"],
	/** The frames that a socket gets of a prompt without `client_id`, and of a v2 job. */
	promptWithoutClientId: ["broadcasts", "everything"],
	/** The previews of samplers: as `--preview-method` and the prompt say, or always. */
	samplerPreviews: ["by-method", "always"],
	/** The error bodies below `/api`. */
	apiErrors: ["as-recorded", "code-and-message"],
	/**
	* The status of an upstream failure: that of a gateway (502, 503), or those documented for the
	* route.
	*/
	serviceFailure: ["gateway", "documented"],
	/**
	* The name in `exception_type`: the class of the node's own language, or one of the six
	* documented ones. The place of videos: among the `images` of a node, or in its `video`.
	*/
	results: ["own", "documented"],
	/** The nodes of a `progress_state`: their progress, or their `class_type` too. */
	nodeStates: ["own", "documented"],
	/**
	* The prompts that `GET /queue` shows as running: one, as the original runs one at a time, or
	* all.
	*/
	queueRunning: ["one", "all"],
	/** The prompts that `POST /queue` with `delete` ends: pending ones, or running ones as well. */
	queueDelete: ["pending", "pending-and-running"],
	/** The body of that answer: none, or the cancelled ids. */
	queueAnswer: ["empty", "deleted"],
	/**
	* `POST /api/jobs/…/cancel` with an id that names no job: the id is ignored, or the answer is
	* 404.
	*/
	jobCancel: ["any-id", "known-ids"],
	/**
	* The members of a prompt in `GET /queue`: number, `extra_data`, outputs; or place, outputs,
	* `create_time`.
	*/
	queueItem: ["as-submitted", "as-scheduled"],
	/**
	* `subfolder` of uploads, of `/view` and in the names of a prompt: it is a folder, or is ignored.
	*/
	subfolder: ["folder", "ignored"],
	/**
	* `/view` without `filename`: nothing is found, or a field is missing (400: "missing fields").
	*/
	viewWithoutName: ["not-found", "bad-request"],
	/** The values of `channel` in `/view` that ask for the alpha channel. */
	alphaChannel: ["a", "a-or-alpha"],
	/** `/api/view`: a 302 to a link that expires, except to browsers or to all. */
	apiView: ["redirect-except-browsers", "redirect"],
	/**
	* The answers of the settings routes: bare values and empty bodies; or `{value}`, the merged
	* object and a 404.
	*/
	settings: ["bare", "wrapped"],
	/** A folder of models without a file: an empty list, or 404. */
	emptyModelFolder: ["listed", "not-found"],
	/** `notification` messages: texts that tell users why their prompt waits. */
	notifications: ["none", "sent"]
};
const RULES_OF = {
	local: rulesAt(0),
	hosted: rulesAt(1)
};
function rulesAt(index) {
	const rules = Object.entries(RULES$1).map(([rule, values]) => [rule, values[index]]);
	return Object.fromEntries(rules);
}
function createDialects(setting) {
	if (setting !== "auto") return {
		ofCall: () => setting,
		ofSocket: () => setting
	};
	return {
		ofCall({ headers, url = "" }) {
			return headers["x-api-key"] !== void 0 && isBelowApi(url) ? "hosted" : "local";
		},
		ofSocket: ({ url = "" }) => hasLogin(url) ? "hosted" : "local"
	};
}
function rulesOf(dialect) {
	return RULES_OF[dialect];
}
/** Returns the rules for the call that is being answered. */
function rulesFor(ctx) {
	return RULES_OF[ctx.state.dialect ?? "local"];
}
/** Returns how `/view` sends a file. Redirects are used only for paths below `/api`. */
function viewRuleFor(ctx) {
	return isBelowApi(ctx.url) ? rulesFor(ctx).apiView : "stream";
}
function isBelowApi(url) {
	return readTarget(url).path.startsWith("/api/");
}
// src/protocol/v2-paths.ts
const PREFIX$3 = "/api/v2";
/** v1 has routes under `/v2`, too; their `/api` forms do not belong to v2. */
const V1_ALIASES = /^\/api\/v2\/userdata(\/|$)/;
/**
* True when v2 answers for a path, if only with a 404: everything below its prefix except v1's
* routes.
*/
function isV2Path(path) {
	return (path === PREFIX$3 || path.startsWith(`${PREFIX$3}/`)) && !V1_ALIASES.test(path);
}
const CONTENT = /^\/api\/v2\/assets\/([^/]+)\/content$/;
/** True when a request target addresses the bytes of an asset with a signature, valid or not. */
function isSignedContent(url) {
	const { path, query } = readTarget(url);
	return CONTENT.test(path) && new URLSearchParams(query).has("signature");
}
// src/protocol/router.ts
/**
* The closed set of error buckets, in the contract's order, with the status of each answer.
* `client_disconnected` is written to the audit record only: there is no client left to receive it.
*/
const BUCKET_STATUS = {
	invalid_input: 400,
	content_policy_violation: 400,
	provider_error: 502,
	provider_timeout: 504,
	insufficient_credits: 402,
	model_not_found: 404,
	unauthorized: 401,
	forbidden: 403,
	concurrency_limit_exceeded: 429,
	client_disconnected: 499,
	internal_error: 500,
	deadline_exceeded: 504,
	not_enabled: 403,
	service_unavailable: 503,
	rate_limited: 429
};
/** The buckets of errors by their status, as clients read a bare status. */
const BUCKET_OF_STATUS = {
	401: "unauthorized",
	402: "insufficient_credits",
	403: "forbidden",
	404: "model_not_found",
	429: "concurrency_limit_exceeded",
	499: "client_disconnected",
	502: "provider_error",
	503: "service_unavailable",
	504: "provider_timeout",
	507: "service_unavailable"
};
/** Returns the bucket of an error that names none. */
function bucketOfStatus(status) {
	return BUCKET_OF_STATUS[status] ?? (status < 500 ? "invalid_input" : "internal_error");
}
/** Paths of models: the contract uses `/v1`, today's clients use `/v2`. */
const MODEL_PATHS = /^\/v[12]\/models(?=\/|$)/;
/** Paths of partners beside them: what they answer is the partners' own. */
const PARTNER_PATHS = /^\/proxy\//;
/** True when a path belongs to the router: a model's, or a partner's. */
function isRouterPath(path) {
	return MODEL_PATHS.test(path) || PARTNER_PATHS.test(path);
}
/** Headers that are sent under two names: the contract's name and the one that clients read. */
const REQUEST_ID_HEADERS = ["X-Service-Request-Id", "X-Comfy-Request-Id"];
/** Sent with every error. On a 422 only this header names the bucket. */
const ERROR_TYPE_HEADERS = ["X-Service-Error-Type", "X-Comfy-Error-Type"];
/** Returns the headers of every answer, under both names. With a bucket, the answer is an error. */
function routerHeaders(requestId, bucket) {
	const ids = REQUEST_ID_HEADERS.map((name) => [name, requestId]);
	const types = bucket === void 0 ? [] : ERROR_TYPE_HEADERS.map((name) => [name, bucket]);
	return Object.fromEntries([...ids, ...types]);
}
/** Pattern of both segments of a model id. */
const MODEL_SEGMENT = /^[a-z0-9]+([._-][a-z0-9]+)*$/;
// src/dialects/router-refusal.ts
/**
* Returns headers and body for a call that is refused before the model router has seen it, in the
* router's form. `undefined` when the call does not belong to the router. Without a service, a
* partner's path is any unknown path of v1, and so is the method that is not allowed there.
*/
function routerRefusal(path, status, detail) {
	if (!isRouterPath(path) || status === 405 && !MODEL_PATHS.test(path)) return void 0;
	const bucket = bucketOfStatus(status);
	return {
		headers: {
			"Content-Type": "application/json",
			"Cache-Control": "no-store",
			...routerHeaders(randomUUID(), bucket)
		},
		body: JSON.stringify({
			detail,
			error_type: bucket
		})
	};
}
/** True when a request target, which may be an absolute URL, belongs to the router. */
function isRouterTarget(url = "") {
	return isRouterPath(readTarget(url).path);
}
// src/dialects/error-reply.ts
/**
* Returns the answer to a failed call in the form that its caller parses: that of the model router,
* of v2, or of the call's dialect.
*/
function errorReply(error, call) {
	const { status, headers, body } = replyInForm(error, call);
	const length = { "Content-Length": String(Buffer.byteLength(body)) };
	return {
		status,
		headers: {
			...error.headers,
			...headers,
			...length
		},
		body: call.method === "HEAD" ? "" : body
	};
}
function replyInForm(error, call) {
	const { status, fault } = error;
	const { path } = readTarget(call.url);
	const refusal = routerRefusal(path, status, fault.message);
	if (refusal) return {
		status,
		...refusal
	};
	if (isV2Path(path)) return v2Reply(error, path);
	return {
		status: v1Status(error, call),
		...v1Reply(v1Body(fault, call))
	};
}
function v2Reply({ status, fault }, path) {
	const { code, message, rule } = fault;
	const shownStatus = rule === "control_character" && hasControlCharacter(path, "encoded again") ? 404 : status;
	const error = rule === void 0 ? {
		code,
		message,
		details: null
	} : {
		code: faultOf(shownStatus).code,
		message,
		details: { rule }
	};
	return {
		status: shownStatus,
		headers: typed("application/json"),
		body: stringifyJson({ error })
	};
}
function v1Reply(body) {
	if (body === void 0) return {
		headers: {},
		body: ""
	};
	if (typeof body === "string") return {
		headers: typed("text/plain"),
		body
	};
	return {
		headers: typed("application/json"),
		body: v1Json(body)
	};
}
function typed(type) {
	return { "Content-Type": `${type}; charset=utf-8` };
}
function v1Body(fault, { method, url, rules }) {
	if (rules.apiErrors === "as-recorded") return fault.localBody;
	return HOSTED_BODIES[documentedForm$1(method, pathOf$1(url))](fault);
}
const HOSTED_BODIES = {
	PromptErrorResponse: ({ code, message, localBody: local }) => ({
		code,
		message,
		...isPromptRefusal(local) ? local : promptRefusal(code, message)
	}),
	text: ({ message }) => message,
	ErrorResponse: ({ code, message }) => ({
		code,
		message
	})
};
/** Returns the schema that the hosted service's document names for the errors of a call. */
function documentedForm$1(method, path) {
	if (isSubmission(method, path)) return "PromptErrorResponse";
	return /^\/userdata(\/|$)/.test(path) ? "text" : "ErrorResponse";
}
function isPromptRefusal(local) {
	return isJsonObject(local) && isJsonObject(local.error) && "node_errors" in local;
}
/**
* Routes for which the document names no error of the service: clients may try again after a 503.
*/
const DOCUMENTED_WITHOUT_500 = /^\/(object_info|features|workflow_templates|system_stats)(\/|$)/;
/**
* Returns the status of an error. In the hosted dialect the service itself has failed: there is no
* gateway.
*/
function v1Status({ status, blames }, { method, url, rules }) {
	if (!(blames === "job service" && (status === 502 || status === 503)) || rules.serviceFailure === "gateway") return status;
	const path = pathOf$1(url);
	return isSubmission(method, path) || DOCUMENTED_WITHOUT_500.test(path) ? 503 : 500;
}
function isSubmission(method, path) {
	return method === "POST" && path === "/prompt";
}
/** Returns the path. `--dialect hosted` holds for calls without the prefix as well. */
function pathOf$1(url) {
	return readTarget(url).path.replace(/^\/api(?=\/)/, "");
}
/** Answers an error in the form of the call. */
function sendError(ctx, error) {
	const { status, headers, body } = errorReply(error, {
		method: ctx.method,
		url: ctx.url,
		rules: rulesFor(ctx)
	});
	ctx.status = status;
	ctx.body = Buffer.from(body);
	ctx.remove("Content-Type");
	ctx.set(headers);
}
// src/http/unserved/early-refusal.ts
/**
* Returns the answer to a call that no handler sees, in the form of its API. v1's own server sends
* no body here, so local clients get none.
*/
function earlyRefusal(call, { status, message }, dialectOf) {
	const { method = "", url = "" } = call;
	return errorReply({
		status,
		fault: faultOf(status, void 0, message)
	}, {
		method,
		url,
		rules: rulesOf(dialectOf(call))
	});
}
// src/http/unserved/unreadable-request.ts
/** The refusals, with the statuses of Node's own answers. */
const REFUSALS = {
	HPE_HEADER_OVERFLOW: {
		status: 431,
		message: "The address or the headers are too long."
	},
	HPE_CHUNK_EXTENSIONS_OVERFLOW: {
		status: 413,
		message: "An extension of a chunk is too long."
	},
	HPE_INVALID_EOF_STATE: {
		status: 400,
		message: "The request was cut off."
	},
	ERR_HTTP_REQUEST_TIMEOUT: {
		status: 408,
		message: "The headers did not come in time."
	}
};
/**
* Answers bytes that are not a request, with an id that the log also has, and closes the
* connection.
*/
function answerUnreadable({ log, dialectOf }) {
	const refused = /* @__PURE__ */ new WeakSet();
	return (error, socket) => {
		if (refused.has(socket)) return;
		refused.add(socket);
		const answer = () => {
			if (!canBeAnswered(socket)) return void socket.destroy();
			const refusal = refusalOf$4(error);
			const id = randomUUID();
			const { headers, body } = earlyRefusal(callOf$1(error, socket), refusal, dialectOf);
			const own = {
				"X-Content-Type-Options": "nosniff",
				"X-Request-Id": id,
				...headers
			};
			socket.write(closingAnswer(refusal.status, own, body));
			socket.destroySoon();
			const fields = {
				event: "request.unreadable",
				id,
				status: refusal.status,
				reason: error.code
			};
			log?.info(fields, "refused a request that cannot be read");
		};
		const last = lastAnswer(socket);
		if (last?.req.complete === true && !last.headersSent && !last.closed) last.once("close", answer);
		else answer();
	};
}
function refusalOf$4({ code = "", reason = "unknown" }) {
	const message = `The request is not valid HTTP: ${reason}.`;
	return REFUSALS[code] ?? {
		status: 400,
		message
	};
}
const REQUEST_LINE = /^([a-z-]+) +((?:\/|https?:)\S*)/i;
/** Returns the facts about the unreadable request that its first line shows. */
function callOf$1({ rawPacket, bytesParsed = 0 }, socket) {
	const last = lastAnswer(socket);
	if (last && !last.closed) return last.req;
	const text = rawPacket?.toString("latin1") ?? "";
	const end = text.indexOf("\n", bytesParsed);
	const line = text.slice(0, end < 0 ? void 0 : end).split(/\r?\n/).findLast((each) => REQUEST_LINE.test(each)) ?? "";
	const [, method = "", url = ""] = REQUEST_LINE.exec(line) ?? [];
	return {
		method,
		url,
		headers: /^x-api-key:/im.test(text) ? { "x-api-key": "" } : {}
	};
}
/**
* False while an answer to an earlier request is being sent: this answer would become part of it.
*/
function canBeAnswered(socket) {
	const last = lastAnswer(socket);
	if (!socket.writable) return false;
	return last === void 0 || last.closed || last.socket === socket && !last.headersSent;
}
// src/http/server.ts
/**
* An idle connection is closed after this time. It is longer than a proxy keeps its own (75 s in
* nginx) and than clients pause between polls: a connection that closes during a poll looks like a
* reset.
*/
const IDLE_CONNECTION_MS = 8e4;
const DEFAULT_TIMEOUTS = {
	headersMs: 1e4,
	bodyIdleMs: 3e4
};
const local = () => "local";
/**
* Creates a server with limits, so that a slow or hostile client cannot block it. A slow upload
* that continues is not cut off.
*/
function createHttpServer(handler, options = {}) {
	const { tls, log, dialectOf = local, ...given } = options;
	const timeouts = {
		...DEFAULT_TIMEOUTS,
		...given
	};
	const limits = {
		maxHeaderSize: 16384,
		headersTimeout: timeouts.headersMs,
		connectionsCheckingInterval: Math.min(5e3, timeouts.headersMs),
		requestTimeout: 0,
		requireHostHeader: false,
		keepAliveTimeout: IDLE_CONNECTION_MS
	};
	const server = tls ? createServer$1({
		...limits,
		...tls,
		handshakeTimeout: timeouts.headersMs
	}) : createServer(limits);
	server.on("request", serveInOrder(withReadableTarget(handler, dialectOf)));
	server.maxHeadersCount = 100;
	const { bodyIdleMs } = timeouts;
	server.on("request", createBodyTimeouts(server, {
		bodyIdleMs,
		dialectOf
	}));
	server.on("checkExpectation", serveInOrder(createRefusal(UNKNOWN_EXPECTATION, dialectOf)));
	server.on("clientError", answerUnreadable({
		log,
		dialectOf
	}));
	return server;
}
/**
* Ends requests whose body has stopped, as Node does for headers. One timer checks all of them, so
* a stopped body is noticed after once to twice the time.
*/
function createBodyTimeouts(server, { bodyIdleMs, dialectOf }) {
	const openBodies = /* @__PURE__ */ new Map();
	const timer = setInterval(() => {
		for (const [request, body] of openBodies) {
			const { socket } = request;
			if (request.complete || request.destroyed) {
				openBodies.delete(request);
				continue;
			}
			const isHeldUp = request.readableLength >= request.readableHighWaterMark || socket.isPaused();
			if (socket.bytesRead === body.bytes && !isHeldUp) endStalledRequest(request, body.response, dialectOf);
			body.bytes = socket.bytesRead;
		}
	}, bodyIdleMs).unref();
	server.once("close", () => clearInterval(timer));
	return (request, response) => {
		const { headers } = request;
		if (headers["transfer-encoding"] === void 0 && !(Number(headers["content-length"]) > 0)) return;
		openBodies.set(request, {
			response,
			bytes: NOT_YET_READ
		});
		request.once("close", () => openBodies.delete(request));
	};
}
/** The byte count of a socket that has not been checked yet. */
const NOT_YET_READ = -1;
const STALLED$1 = {
	status: 408,
	message: "The rest of the body did not come in time."
};
const UNKNOWN_EXPECTATION = {
	status: 417,
	message: "The only expectation that can be met is 100-continue."
};
const NO_TARGET = {
	status: 400,
	message: "The address asked for is no address."
};
function endStalledRequest(request, response, dialectOf) {
	const { socket } = request;
	if (!response.headersSent && response.socket === socket) {
		const { headers, body } = earlyRefusal(request, STALLED$1, dialectOf);
		const id = response.getHeader("X-Request-Id");
		const own = {
			...headers,
			...id !== void 0 && { "X-Request-Id": String(id) }
		};
		socket.write(closingAnswer(STALLED$1.status, own, body));
	}
	socket.destroySoon();
}
/** Returns a handler that answers every request with this refusal. */
function createRefusal(refusal, dialectOf) {
	return (request, response) => {
		const { headers, body } = earlyRefusal(request, refusal, dialectOf);
		const own = {
			"X-Request-Id": randomUUID(),
			"X-Content-Type-Options": "nosniff"
		};
		response.writeHead(refusal.status, {
			...own,
			...headers
		}).end(body);
	};
}
/** Refuses a target that is neither a path nor an address, on which the framework would fail. */
function withReadableTarget(handler, dialectOf) {
	const refuse = createRefusal(NO_TARGET, dialectOf);
	return (request, response) => {
		const { url = "" } = request;
		(url.startsWith("/") || url === "*" || URL.canParse(url) ? handler : refuse)(request, response);
	};
}
/**
* Passes on WebSocket upgrades. A request that offers another protocol (`h2c`: curl, Java) is
* served without the upgrade, as the standard allows.
*/
function onWebSocket(server, onOpen) {
	server.on("upgrade", (request, socket, head) => {
		const isWebSocket = /\bwebsocket\b/i.test(request.headers.upgrade ?? "");
		const serve = () => {
			if (socket.destroyed) return;
			if (isWebSocket) onOpen(request, socket, head);
			else reparseRequest(server, socket, [headWithoutUpgrade(request), head]);
		};
		const earlier = lastAnswer(socket);
		if (earlier === void 0 || earlier.closed) return serve();
		socket.on("error", destroy);
		earlier.once("close", serve);
	});
}
/** Lets the server parse these bytes again, as those of a new connection. */
function reparseRequest(server, socket, bytes) {
	socket.off("error", destroy).removeAllListeners("timeout").setTimeout(0);
	socket.unshift(Buffer.concat(bytes));
	server.emit("encrypted" in socket ? "secureConnection" : "connection", socket);
}
function destroy() {
	this.destroy();
}
function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }) {
	const lines = [`${method} ${url} HTTP/${httpVersion}`];
	for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
		const [name = "", value = ""] = [rawHeaders[i], rawHeaders[i + 1]];
		if (UPGRADE_HEADERS.test(name)) continue;
		lines.push(`${name}: ${/^connection$/i.test(name) ? withoutUpgradeTokens(value) : value}`);
	}
	return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}
const UPGRADE_HEADERS = /^(upgrade|http2-settings)$/i;
function withoutUpgradeTokens(connection) {
	return connection.split(",").map((name) => name.trim()).filter((name) => !UPGRADE_HEADERS.test(name)).join(", ");
}
/**
* Listens on the address. Resolves with the port; rejects with a sentence that says what to change.
*/
function listen(server, address) {
	return new Promise((resolve, reject) => {
		server.once("error", (cause) => {
			const reason = cause.code === "EADDRINUSE" ? "the port is in use" : cause.message;
			reject(new Error(`cannot listen on ${address.listen}:${address.port}: ${reason}`, { cause }));
		});
		server.listen(address.port, address.listen, () => resolve(server.address().port));
	});
}
/** The number of connections that Node lets wait until the process accepts them. */
const MAX_WAITING_CONNECTIONS = 511;
/**
* Accepts the connections that wait, then stops to listen. The system would reset these connections
* with the calls on them, and a load balancer does not send such calls again.
*/
async function stopListening(server) {
	let taken = 0;
	const count = () => taken++;
	server.on("connection", count);
	await setImmediate$1();
	let before = -1;
	for (let turn = 0; taken > before && turn <= MAX_WAITING_CONNECTIONS; turn++) {
		before = taken;
		await setImmediate$1();
	}
	server.off("connection", count);
	server.close();
}
const READING = /* @__PURE__ */ new Set([
	"GET",
	"HEAD",
	"OPTIONS"
]);
/**
* Counts the calls in progress that change something and have arrived completely: they wait for
* this process only.
*/
function countChanges(server) {
	const changes = /* @__PURE__ */ new Set();
	server.on("request", (request, response) => {
		if (READING.has(request.method ?? "")) return;
		changes.add(request);
		response.once("close", () => changes.delete(request));
	});
	return () => [...changes].filter((request) => request.complete).length;
}
/** Returns the address as a user types it. */
function urlOf(address, port) {
	const host = address.listen.includes(":") ? `[${address.listen}]` : address.listen;
	return `${address.tls ? "https" : "http"}://${host}:${port}`;
}
// src/translate/notification-texts.ts
/** Texts of `notification` messages. They tell users why their prompt waits. */
const NOTIFICATION_TEXTS = {
	waits: (promptId) => `Prompt ${promptId} waits: the service that runs it has no room for it right now, or your earlier prompts are sent first. It is sent as soon as there is room. You need not submit it again; delete it from the queue if you do not want to wait.`,
	queued: (promptId) => `Prompt ${promptId} waits in the queue for its turn. You need not submit it again; delete it from the queue if you do not want to wait.`,
	sentAgain: (promptId) => `Prompt ${promptId} will be retried: the service that runs it lost it before it began. You need not submit it again.`,
	outcomeUnknown: (promptId) => `Prompt ${promptId} is being looked for: the service that runs it did not say whether it took the prompt. It will be retried if the service does not have it. You need not submit it again.`,
	brownout: ({ fromMs, toMs, delayMs }) => {
		const until = toMs === void 0 ? "" : ` to ${isoOf(toMs)}`;
		const what = delayMs === void 0 ? "be refused" : `be held up for ${delayMs / 1e3} s each`;
		return `The end of the v1 API will be rehearsed from ${isoOf(fromMs)}${until}: your calls may ${what} during that time. Plan your work around it, and move to the v2 API before v1 ends.`;
	}
};
function isoOf(atMs) {
	return new Date(atMs).toISOString();
}
// src/migration/brownout.ts
/** The length of the windows of a brownout without an end. `Retry-After` needs the end of a window. */
const HOUR_MS = 36e5;
/** Returns the combined effect of the active brownouts on a client. A refusal has priority over a delay. */
function effectOf(brownouts, client, nowMs) {
	const active = brownouts.filter((brownout) => isActive(brownout, nowMs) && isSelected(brownout, client, nowMs));
	const refusals = active.filter(({ delayMs }) => delayMs === void 0);
	if (refusals.length > 0) return {
		kind: "refused",
		untilMs: Math.max(...refusals.map((brownout) => windowOf(brownout, nowMs).endMs))
	};
	const delayMs = Math.max(0, ...active.map((brownout) => brownout.delayMs ?? 0));
	return delayMs > 0 ? {
		kind: "delayed",
		delayMs
	} : void 0;
}
/**
* Returns true when a brownout affects a client at some time. A brownout without an end chooses other clients each
* hour, so it affects all clients that it names.
*/
function affects(brownout, client) {
	const { fromMs = 0, toMs } = brownout;
	return isSelected(toMs === void 0 ? {
		...brownout,
		percent: 100
	} : brownout, client, fromMs);
}
function isActive({ fromMs = -Infinity, toMs = Infinity }, nowMs) {
	return nowMs >= fromMs && nowMs < toMs;
}
function isSelected(brownout, { user, agent }, nowMs) {
	const { client, percent } = brownout;
	if (client !== void 0 && !agent.toLowerCase().includes(client.toLowerCase())) return false;
	if (percent >= 100) return true;
	const { startMs } = windowOf(brownout, nowMs);
	return createHash("sha256").update(`${startMs}\0${user}\0${agent}`).digest().readUInt32BE(0) / 2 ** 32 * 100 < percent;
}
function windowOf({ fromMs, toMs }, nowMs) {
	if (toMs !== void 0) return {
		startMs: fromMs ?? 0,
		endMs: toMs
	};
	const startMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
	return {
		startMs,
		endMs: startMs + HOUR_MS
	};
}
/** The time between the notice to open sockets and the brownout. */
const NOTICE_MS = 6e5;
/** The maximum time of a timer. Short timers notice when the clock is set; very long ones would overflow. */
const MAX_TIMER_MS = 6e4;
/** Returns the text about the next brownout that affects a client; `undefined` when there is none. */
function announcementFor(brownouts, client, nowMs) {
	const next = upcoming(brownouts, nowMs).find((brownout) => affects(brownout, client));
	return next && NOTIFICATION_TEXTS.brownout(next);
}
/**
* Tells open sockets about each brownout shortly before it begins. Returns a function that stops
* it.
*/
function scheduleAnnouncements(deps) {
	const { brownouts, now, notifyClients } = deps;
	const waiting = new Set(upcoming(brownouts, now()).filter((brownout) => waitMs(brownout) > 0));
	let timer;
	function waitMs({ fromMs }) {
		return fromMs - NOTICE_MS - now();
	}
	function announceDue() {
		for (const brownout of waiting) {
			if (waitMs(brownout) > 0) continue;
			waiting.delete(brownout);
			if (brownout.fromMs <= now()) continue;
			notifyClients((client) => affects(brownout, client) ? NOTIFICATION_TEXTS.brownout(brownout) : void 0);
		}
		schedule();
	}
	function schedule() {
		if (waiting.size === 0) return;
		timer = setTimeout(announceDue, Math.min(MAX_TIMER_MS, ...[...waiting].map(waitMs)));
		timer.unref();
	}
	schedule();
	return () => clearTimeout(timer);
}
/** Returns the brownouts that have not begun, the next one first. */
function upcoming(brownouts, nowMs) {
	return brownouts.filter((brownout) => (brownout.fromMs ?? -Infinity) > nowMs).toSorted((a, b) => a.fromMs - b.fromMs);
}
// src/migration/deprecation.ts
/** The headers that a page of another origin may read. */
const DEPRECATION_HEADERS = "Deprecation, Sunset, Link";
/** Creates the headers, notices and brownouts for v1 clients, as configured. */
function createDeprecation({ deprecatedAtMs, sunsetAtMs, brownouts, now, countCall }) {
	const commonHeaders = {
		Deprecation: `@${Math.floor(deprecatedAtMs / 1e3)}`,
		...sunsetAtMs !== void 0 && { Sunset: new Date(sunsetAtMs).toUTCString() }
	};
	return {
		/** Counts a call. Failed and refused calls also count. */
		countCall,
		/** Returns the headers for every answer of a route. `prefix` is the public path in front of the server's own. */
		headersFor(route, params, prefix = "") {
			const link = successorLink(route, params);
			return link === void 0 ? commonHeaders : {
				...commonHeaders,
				Link: `<${prefix}${link}>; rel="successor-version"`
			};
		},
		/** Returns the notice about the next brownout that affects a client; `undefined` when there is none. */
		nextBrownoutNotice: (client) => announcementFor(brownouts, client, now()),
		/** Notifies connected clients shortly before each brownout. Returns a function that stops it. */
		startAnnouncing: (notifyClients) => scheduleAnnouncements({
			brownouts,
			now,
			notifyClients
		}),
		/** Delays the call, or throws its refusal, when a brownout affects this client. */
		async checkBrownout(route, client) {
			if (brownouts.length === 0) return;
			const effect = effectOf(brownouts, client, now());
			if (effect?.kind === "delayed") await setTimeout$1(effect.delayMs, void 0, { ref: false });
			if (effect?.kind === "refused") throw brownoutError(route, effect.untilMs, now());
		}
	};
}
/** Returns the refusal of a call. Its status is 503, not 410, because a brownout is temporary. */
function brownoutError(route, untilMs, nowMs) {
	const { call } = V1_ROUTES[route];
	const instead = call === null ? "v2 has nothing in its place yet" : `v2 has ${call} in its place`;
	const message = `A brownout is on until ${new Date(untilMs).toISOString()}: the end of the v1 API is being rehearsed, and ${route} is refused on purpose; ${instead}.`;
	const seconds = Math.max(1, Math.ceil((untilMs - nowMs) / 1e3));
	return new V1Error(503, plainError("brownout", message), { headers: { "Retry-After": String(seconds) } });
}
// src/http/drain-request.ts
/** How long an unwanted body is read further: in total, and without any new byte. */
const DRAIN_MS = {
	max: 1e4,
	idle: 2e3
};
/**
* Reads and drops the rest of a request body after the answer is ready. Many clients send the whole
* body before they read the answer: to close the connection then resets it, and the answer is lost.
* The v1 server also reads on for ten seconds.
*/
const drainRequest = async (ctx, next) => {
	await next();
	const { body, req, res } = ctx;
	if (req.complete || req.destroyed) return;
	if (typeof body !== "string" && !Buffer.isBuffer(body)) return;
	const type = ctx.response.get("Content-Type");
	ctx.body = Readable.from(answerThenDrain(ctx, body), { objectMode: false });
	ctx.length = Buffer.byteLength(body);
	if (type) ctx.set("Content-Type", type);
	else ctx.remove("Content-Type");
	res.once("finish", () => {
		if (!req.complete) req.socket.destroySoon();
	});
};
async function* answerThenDrain({ req, res }, answer) {
	res.flushHeaders();
	if (answer.length > 0) yield answer;
	await drain(req);
}
function drain(request) {
	return new Promise((resolve) => {
		const idle = setTimeout(done, DRAIN_MS.idle);
		const max = setTimeout(done, DRAIN_MS.max);
		function done() {
			clearTimeout(idle);
			clearTimeout(max);
			resolve();
		}
		request.removeAllListeners("data").removeAllListeners("readable");
		request.on("data", () => idle.refresh()).resume();
		request.once("end", done).once("close", done);
	});
}
// src/v1/routing/not-found.ts
/** The paths outside v1's static root: `/internal/*` and everything below `//`. */
const NO_STATIC_ROOT = /^\/(internal)?\//;
/** Serves a front end where a path may have files behind it. */
function frontendFallback(frontEnd) {
	return (ctx, next) => NO_STATIC_ROOT.test(ctx.path) ? next() : frontEnd(ctx, next);
}
const MAX_REMEMBERED = 1e3;
/** Logs each unknown route once, however often it is called. */
function logUnknownRoutes(log) {
	const seen = new LRUCache(atMost(MAX_REMEMBERED));
	return async (ctx, next) => {
		await next();
		const { method, path, status } = ctx;
		const key = `${method} ${path.slice(0, 200)}`;
		if (seen.has(key)) return;
		seen.set(key, true);
		const route = {
			user: ctx.state.caller?.user,
			method,
			path: path.slice(0, 200),
			status
		};
		log.info({
			event: "route.unknown",
			...route
		}, "unknown route");
	};
}
/**
* Answers unknown paths as v1 does, where they fall into the static root: an empty 404 for a GET,
* else a 405 that allows GET. A known path with another method gets the list of its methods.
* `/internal/*` and `//…` are outside the static root and get an answer with a text.
*/
function notFound(router) {
	return (ctx) => {
		const isRead = ctx.method === "GET" || ctx.method === "HEAD";
		const allowedMethods = new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods));
		const isInternal = NO_STATIC_ROOT.test(ctx.path);
		if (isInternal && allowedMethods.size === 0) return sendError(ctx, new V1Error(404, "404: Not Found"));
		if (isRead && !isInternal) {
			sendError(ctx, emptyError(404, "There is nothing at this path."));
			if (ctx.response.type === "") ctx.set("Content-Type", "application/octet-stream");
			return;
		}
		if (!isInternal && (allowedMethods.size === 0 || allowedMethods.has("POST"))) for (const method of ["GET", "HEAD"]) allowedMethods.add(method);
		ctx.set("Allow", [...allowedMethods].toSorted().join(","));
		sendError(ctx, new V1Error(405, "405: Method Not Allowed"));
	};
}
// src/v1/routing/log-refusal.ts
/** The most characters of a header that the log repeats. */
const MAX_SHOWN_CHARS = 200;
/** Logs which rule refused a request, and the value that broke the rule. */
function logRefusal(options, request, { status, rule }) {
	const { headers, method } = request;
	const shown = (text) => typeof text === "string" ? text.slice(0, MAX_SHOWN_CHARS) : text;
	const fields = {
		host: shown(headers.host),
		origin: shown(headers.origin),
		site: shown(headers["sec-fetch-site"]),
		forwardedHost: shown(options.addresses.forwardedHostOf(request)),
		client: options.addresses.clientOf(request)
	};
	options.log.warn({
		event: "request.refused",
		status,
		rule,
		method,
		...fields
	}, "request refused");
}
// src/v1/routes.ts
/** Returns the name of the route's row in `V1_ROUTES`. */
function routeNameOf({ method, path }) {
	return `${method} ${path}`;
}
/**
* Returns the function that makes the routes of a family: each name with its handler, which gets
* the services of the family.
*/
function routesFor(handlers) {
	return (services) => Object.entries(handlers).map(([name, handler]) => {
		const [method, path] = name.split(" ");
		const handle = (request) => handler(services, request);
		return {
			method,
			path,
			handle
		};
	});
}
/** Returns the paths at which the route is served. */
function aliasesOf({ path }) {
	return path.startsWith("/internal/") || path.startsWith("/api/") ? [path] : [path, `/api${path}`];
}
/** Returns routes that answer after `isReady` has resolved for the user of the call. */
function whenReady(isReady, routes) {
	return routes.map((route) => ({
		...route,
		async handle(request) {
			await isReady(request.caller.user);
			await route.handle(request);
		}
	}));
}
// src/auth/calling-client.ts
/** A longer user agent is cut off. */
const MAX_AGENT_CHARS = 200;
/** Returns the name of the calling program, as it states itself. */
function agentOf({ headers }) {
	const text = (headers["user-agent"] ?? "").replace(/[\p{Cc}\p{Cf}]/gu, " ").trim();
	return withoutCredentialsIn(text).slice(0, MAX_AGENT_CHARS) || "(none)";
}
/** True when a browser calls: browsers send `Mozilla/`; other programs rarely do. */
function isBrowser({ headers }) {
	return headers["user-agent"]?.startsWith("Mozilla/") ?? false;
}
/**
* True when a page calls, by the headers that browsers send. Node's `fetch` sends `Sec-Fetch-Mode`
* alone and is a script.
*/
function isPageCall({ headers }) {
	return "sec-fetch-site" in headers || "sec-fetch-dest" in headers || "comfy-user" in headers;
}
/**
* True when Python's websocket-client opens a socket, as most scripts do: it sends an origin and no
* user agent. It reads, and so answers pings, only while its program waits for a message.
*/
function mayBeSilent({ headers }) {
	return headers.origin !== void 0 && headers["user-agent"] === void 0;
}
const MAX_CLIENT_ID_CHARS$1 = 128;
/** True when a client id is allowed. */
function isUsableClientId(clientId) {
	return clientId.length <= MAX_CLIENT_ID_CHARS$1 && !hasControlCharacter(clientId);
}
/** Returns the client id in a query; empty when it is absent or not allowed. */
function clientIdIn(query) {
	if (!query.includes("clientId")) return "";
	const clientId = new URLSearchParams(query).get("clientId") ?? "";
	return isUsableClientId(clientId) ? clientId : "";
}
/**
* True for Holdover's own page, its sample and its commands: they are not clients that must move to
* v2.
*/
function isOwnCall({ headers, url = "" }) {
	if (headers["holdover-page"] !== void 0 || isOwnUserAgent(headers["user-agent"] ?? "")) return true;
	if (headers.upgrade !== void 0) return /[?&](watch|sample)=1(&|$)/.test(url);
	return isOfPlayer(url);
}
/**
* True for a video or audio player of Holdover's own page, which cannot send the header of the
* page.
*/
function isOfPlayer(url) {
	return /[?&]holdover-page=1(&|$)/.test(url);
}
// src/v1/routing/serve-route.ts
/**
* Serves one call of a route. All of it is one step, since each step costs every call a promise.
*/
function serveRoute(options, route, { apiPrefixed }) {
	const { deprecation, addresses } = options;
	const name = routeNameOf(route);
	const handle = async (ctx, caller) => {
		const query = new URLSearchParams(ctx.querystring);
		await route.handle({
			ctx,
			caller,
			params: paramsOf(ctx),
			query
		});
		setCacheHeaders(ctx);
	};
	const countedHandle = deprecation ? withDeprecation(deprecation, name, handle) : handle;
	return async (ctx) => {
		if (deprecation) ctx.set(deprecation.headersFor(name, paramsOf(ctx), addresses.prefixOf(ctx.req)));
		ctx.state.apiPrefixed = apiPrefixed;
		await withCaller(options, ctx, countedHandle);
	};
}
/**
* Adds the deprecation headers. Calls of Holdover's own page and commands are not counted, and no
* brownout refuses or delays them.
*/
function withDeprecation(deprecation, route, handle) {
	return async (ctx, caller) => {
		if (isOwnCall(ctx.req)) return await handle(ctx, caller);
		const { user } = caller;
		const agent = agentOf(ctx.req);
		try {
			await deprecation.checkBrownout(route, {
				user,
				agent
			});
			await handle(ctx, caller);
		} finally {
			const { clientId: clientIdInBody } = ctx.state;
			const clientId = clientIdInBody || clientIdIn(ctx.querystring);
			deprecation.countCall({
				user,
				agent,
				clientId,
				route
			});
		}
	};
}
function paramsOf(ctx) {
	return ctx.params ?? {};
}
/** Authenticates the call and serves it, or answers 401. */
async function withCaller(options, ctx, serve) {
	const { authenticate, callLog, frontend } = options;
	const caller = await authenticate(ctx.req);
	if (caller === void 0) {
		const challenge = frontend !== void 0 && opensPage(ctx) ? BASIC_OR_BEARER : "Bearer";
		throw new V1Error(401, NO_VALID_KEY, { headers: { "WWW-Authenticate": challenge } });
	}
	ctx.state.caller = caller;
	callLog.begin(caller, ctx.state.v2Calls, ctx.req);
	try {
		await serve(ctx, caller);
	} finally {
		callLog.end(caller);
	}
}
/** Makes a browser ask its user for a key (as the password) and send it from then on. */
const BASIC_OR_BEARER = "Basic realm=\"Holdover\", charset=\"UTF-8\", Bearer";
function opensPage(ctx) {
	return (ctx.method === "GET" || ctx.method === "HEAD") && (ctx.get("Sec-Fetch-Mode") || "navigate") === "navigate" && wantsHtml(ctx);
}
function wantsHtml(ctx) {
	return ctx.get("Accept").includes("text/html");
}
/** Sets the cache headers as v1 does: by the form of the path, whatever the answer is. */
function setCacheHeaders(ctx) {
	if (ctx.response.get("Cache-Control")) return;
	if (/\.(js|css)$|\/index[^/]*\.json$/.test(ctx.path)) ctx.set("Cache-Control", "no-cache");
	else if (PICTURE.test(ctx.path)) ctx.set("Cache-Control", "public, max-age=86400");
}
// src/v1/app.ts
/** Assembles the HTTP side: the middleware that every call passes, in order, then the v1 routes. */
function createApp(options) {
	const app = new Koa();
	const { router, exactRoutes } = routerOf(options);
	for (const middleware of options.observers ?? []) app.use(middleware);
	app.use(drainRequest);
	app.use(logRequests(options));
	app.use(renderErrors(options.log));
	app.use(confirmStorage(options.checkDataDir));
	app.use(enforceGuard(options));
	app.use(cors(options.corsOrigin));
	app.use(handleOptions(options.corsOrigin));
	for (const middleware of options.beforeAuthentication ?? []) app.use(middleware);
	app.use(exactRoutes);
	for (const middleware of options.publicMiddleware ?? []) app.use(middleware);
	app.use(router.routes());
	app.use((ctx, next) => withCaller(options, ctx, async () => {
		await next();
		setCacheHeaders(ctx);
	}));
	if (options.frontend) app.use(frontendFallback(options.frontend));
	app.use(logUnknownRoutes(options.log));
	app.use(notFound(router));
	app.on("error", (error) => options.log.debug({
		event: "response.aborted",
		err: error
	}, "the response was cut short"));
	return app;
}
/**
* Builds the router. v1 serves every route below `/api` too; `ctx.state.apiPrefixed` is true for
* such a call.
*/
function routerOf(options) {
	const { routes } = options;
	const router = new Router({
		strict: true,
		sensitive: true
	});
	const exact = createExactRoutes();
	for (const route of routes) {
		const methods = route.method === "GET" ? ["GET", "HEAD"] : [route.method];
		for (const path of aliasesOf(route)) {
			const serve = serveRoute(options, route, { apiPrefixed: path.startsWith("/api/") });
			router.register(path, methods, serve);
			exact.add(path, methods, serve);
		}
	}
	return {
		router,
		exactRoutes: exact.serve
	};
}
function logRequests({ requestLog, dialects, addresses, onAnswered }) {
	return async (ctx, next) => {
		const startedAt = performance.now();
		const id = requestId(ctx.get("X-Request-Id") || void 0);
		const v2Calls = [];
		const client = addresses.clientOf(ctx.req);
		ctx.state.v2Calls = v2Calls;
		ctx.state.requestId = id;
		ctx.state.dialect = dialects.ofCall(ctx.req);
		ctx.set("X-Request-Id", id);
		ctx.set("X-Content-Type-Options", "nosniff");
		await next();
		const { method, status, url } = ctx;
		const user = ctx.state.caller?.user;
		logRequest(requestLog, {
			id,
			user,
			client,
			method,
			url,
			status,
			startedAt,
			v2: v2Calls
		});
		const ms = Math.round(performance.now() - startedAt);
		onAnswered?.({
			method,
			url,
			status,
			ms,
			user,
			promptIds: promptIdsOf(ctx)
		}, ctx.req);
	};
}
/** The paths of prompts. Settings and assets have ids of their own in their paths. */
const PROMPT_PATH = /\/(history|history_v2|jobs?)\//;
/**
* Returns the prompts that a call is about: those that its route has named, and the id in its path.
*/
function promptIdsOf(ctx) {
	const { state, params, path } = ctx;
	const inPath = params?.id !== void 0 && PROMPT_PATH.test(path) ? [params.id] : [];
	return [...state.promptIds ?? [], ...inPath];
}
/** Turns an error into an answer; no other place does. Internal details are never shown. */
function renderErrors(log) {
	return async (ctx, next) => {
		try {
			await next();
		} catch (error) {
			sendError(ctx, error instanceof V1Error ? error : unexpectedError(log, ctx, error));
		}
	};
}
function unexpectedError(log, ctx, error) {
	const { caller, requestId: id } = ctx.state;
	log.error({
		event: "request.failed",
		id,
		user: caller?.user,
		err: error
	}, "request failed");
	const { status, code, message, retryAfterSeconds } = storageProblem(error) ?? INTERNAL_ERROR;
	const headers = retryAfterHeader(retryAfterSeconds);
	return new V1Error(status, plainError(code, message), { headers });
}
/** Acknowledges a change only while the data directory is still there. */
function confirmStorage(checkDataDir = () => {}) {
	return async (ctx, next) => {
		await next();
		if (!READ_METHODS.has(ctx.method) && ctx.status < 400) checkDataDir();
	};
}
const READ_METHODS = /* @__PURE__ */ new Set([
	"GET",
	"HEAD",
	"OPTIONS"
]);
const INTERNAL_ERROR = {
	status: 500,
	code: "internal_error",
	message: "The server could not serve this call.",
	retryAfterSeconds: void 0
};
function enforceGuard(options) {
	return (ctx, next) => {
		const refusal = options.guard(ctx.req);
		if (refusal === void 0) return next();
		logRefusal(options, ctx.req, refusal);
		const { status, rule, message } = refusal;
		sendError(ctx, {
			status,
			fault: ruleFault(rule, message)
		});
	};
}
/** Request headers that clients of either API send. */
const ALLOWED_REQUEST_HEADERS = [
	"Content-Type, Authorization, X-API-Key, Comfy-User, Range",
	"Idempotency-Key, If-None-Match, Last-Event-ID, Comfy-Usage-Source, User-Agent",
	"X-Comfy-Router-Fallback-Provider, X-Service-Router-Fallback-Provider"
].join(", ");
/** Response headers that a page may read; passed-through and router routes list their own. */
const EXPOSED_RESPONSE_HEADERS = ["Content-Disposition, Content-Range, Accept-Ranges, ETag, Location, Retry-After, X-Request-Id", DEPRECATION_HEADERS].join(", ");
/** v1's four CORS headers, and the response headers that a page may read. */
function cors(corsOrigin) {
	return (ctx, next) => {
		if (corsOrigin !== void 0) {
			ctx.set("Access-Control-Allow-Origin", corsOrigin);
			ctx.set("Access-Control-Allow-Methods", "POST, GET, DELETE, PUT, PATCH, OPTIONS");
			ctx.set("Access-Control-Allow-Headers", ALLOWED_REQUEST_HEADERS);
			ctx.set("Access-Control-Allow-Credentials", "true");
			ctx.set("Access-Control-Expose-Headers", EXPOSED_RESPONSE_HEADERS);
		}
		return next();
	};
}
/**
* Answers `OPTIONS` with an empty 200 on any path, even one that does not exist. Without CORS a
* call for the model router is passed on: there `OPTIONS` is a method like others.
*/
function handleOptions(corsOrigin) {
	return (ctx, next) => {
		const isForRouter = corsOrigin === void 0 && isRouterTarget(ctx.url);
		if (ctx.method !== "OPTIONS" || isForRouter) return next();
		sendEmpty(ctx);
	};
}
/**
* Finds the routes without a pattern in their path at once. The router tries the patterns of its
* two hundred routes one after the other, and most calls of most clients are to three of these.
*/
function createExactRoutes() {
	const routes = /* @__PURE__ */ new Map();
	const serve = (ctx, next) => {
		const route = routes.get(`${ctx.method} ${ctx.path}`);
		if (route === void 0) return next();
		ctx.state.answeredBy = route.path;
		return route.middleware(ctx, next);
	};
	return {
		serve,
		add(path, methods, middleware) {
			if (/[^\w/.-]/.test(path)) return;
			for (const method of methods) {
				const name = `${method} ${path}`;
				if (!routes.has(name)) routes.set(name, {
					path,
					middleware
				});
			}
		}
	};
}
// src/v1/upgrade.ts
/** Received frames above v1's limit close the socket with code 1009. */
const MAX_FRAME_BYTES = 4194304;
/** Clients do not fragment what they send; each fragment costs far more memory than its bytes. */
const FRAGMENT_LIMITS = {
	maxFragments: 64,
	maxBufferedChunks: 4096
};
/**
* After this time a client has read the 101, also on a busy machine. People do not notice the
* delay.
*/
const FIRST_FRAME_DELAY_MS = 20;
/** A plain `GET /ws`: a 400 with a message, so that the client learns what is missing. */
const plainSocketRoutes = routesFor({ "GET /ws"() {
	throw new V1Error(400, "This path speaks WebSocket: the request has no upgrade header.");
} });
/** Handles the server's `upgrade` event; every refusal is an HTTP answer before the upgrade. */
function createUpgrade(options) {
	const { log, hub, onUpgrade } = options;
	const refuse = (request, socket, refusal) => {
		const { status, headers, body } = errorReply(refusal, callOf(options, request));
		onUpgrade?.(status, request);
		const own = {
			"X-Request-Id": requestId(request.headers["x-request-id"]?.toString()),
			"X-Content-Type-Options": "nosniff"
		};
		socket.once("finish", destroySocket);
		socket.end(closingAnswer(status, {
			...own,
			...headers
		}, body));
	};
	const server = createSocketServer(options, refuse);
	return (request, socket, head) => {
		socket.on("error", destroySocket);
		checkUpgrade(options, request).then((result) => {
			if (!("user" in result)) return refuse(request, socket, result);
			if (!hasRoom(options, result)) {
				const headers = deprecationHeaders(options, request);
				return refuse(request, socket, {
					...noRoom(options),
					headers
				});
			}
			dropEmptyProtocols(request);
			server.handleUpgrade(request, socket, head, (ws) => {
				onUpgrade?.(101, request);
				hub.addConnection({
					ws,
					socket,
					firstFrameDelayMs: FIRST_FRAME_DELAY_MS
				}, result);
			});
		}, (error) => {
			log.error({
				event: "socket.upgrade_failed",
				err: error
			}, "a WebSocket upgrade failed");
			refuse(request, socket, refusalOf$3(500));
		});
	};
}
/**
* Removes empty protocol names. v1 knows no sub-protocols; some libraries send one without a name.
*/
function dropEmptyProtocols({ headers }) {
	if (headers["sec-websocket-protocol"]?.trim() === "") delete headers["sec-websocket-protocol"];
}
function createSocketServer(options, refuse) {
	const server = new WebSocketServer({
		noServer: true,
		maxPayload: MAX_FRAME_BYTES,
		...FRAGMENT_LIMITS,
		perMessageDeflate: false
	});
	server.on("headers", (lines, request) => {
		lines.push(...headerLines(deprecationHeaders(options, request)));
	});
	server.on("wsClientError", ({ message }, socket, request) => {
		refuse(request, socket, {
			status: 400,
			fault: plainError("invalid_upgrade", `${message}.`),
			headers: {
				...deprecationHeaders(options, request),
				"Sec-WebSocket-Version": "13"
			}
		});
	});
	return server;
}
/**
* Defined outside the request handler: a handler that lives as long as the socket would keep the
* request alive.
*/
function destroySocket() {
	this.destroy();
}
const LONG_CLIENT_ID = "\"clientId\" must be a text of at most 128 printable characters.";
function refusalOf$3(status, message = faultOf(status).message) {
	return {
		status,
		fault: plainError(faultOf(status).code, message)
	};
}
function noRoom({ hub }) {
	return refusalOf$3(503, hub.isClosed() ? "This server is stopping." : "There is no room for another WebSocket.");
}
async function checkUpgrade(options, request) {
	const { path } = readTarget(request.url ?? "");
	const refusal = options.guard(request);
	if (refusal) {
		logRefusal(options, request, refusal);
		return {
			status: refusal.status,
			fault: ruleFault(refusal.rule, refusal.message)
		};
	}
	if (path !== "/ws" && path !== "/api/ws") return refusalOf$3(404, "There is no WebSocket at this path.");
	if (request.method !== "GET") return {
		...refusalOf$3(405, "A WebSocket is opened with GET."),
		headers: { Allow: "GET,HEAD" }
	};
	const result = await checkCaller(options, request);
	if ("user" in result) return result;
	return {
		...result,
		headers: {
			...deprecationHeaders(options, request),
			...result.headers
		}
	};
}
function deprecationHeaders({ deprecation, addresses }, request) {
	return deprecation.headersFor("GET /ws", {}, addresses.prefixOf(request));
}
async function checkCaller(options, request) {
	const { deprecation } = options;
	const caller = await options.authenticate(request);
	if (caller === void 0) return {
		status: 401,
		fault: NO_VALID_KEY,
		headers: { "WWW-Authenticate": "Bearer" }
	};
	const { user } = caller;
	const params = new URLSearchParams(readTarget(request.url ?? "").query);
	const clientId = params.get("clientId");
	if (clientId !== null && !isUsableClientId(clientId)) return refusalOf$3(400, LONG_CLIENT_ID);
	const agent = agentOf(request);
	if (!isOwnCall(request)) {
		deprecation.countCall({
			user,
			agent,
			clientId: clientId ?? "",
			route: "GET /ws"
		});
		const refused = await checkBrownout(deprecation, {
			user,
			agent
		});
		if (refused) return refused;
	}
	await options.whenCurrent?.(user);
	const watches = params.get("watch") === "1";
	const dialect = options.dialects.ofSocket(request);
	const byBrowser = isBrowser(request) && request.headers.origin !== void 0;
	const notice = deprecation.nextBrownoutNotice({
		user,
		agent
	});
	return {
		user,
		clientId,
		isBrowser: byBrowser,
		mayBeSilent: mayBeSilent(request),
		watches,
		dialect,
		agent,
		notice
	};
}
function hasRoom({ hub, maxSockets, maxSocketsPerUser }, { user, clientId }) {
	if (hub.isClosed()) return false;
	if (hub.count(user) >= maxSocketsPerUser) return hub.makeRoom({
		user,
		clientId,
		where: "user"
	});
	return hub.count() < maxSockets || hub.makeRoom({
		user,
		clientId,
		where: "server"
	});
}
async function checkBrownout(deprecation, client) {
	try {
		await deprecation.checkBrownout("GET /ws", client);
		return;
	} catch (error) {
		if (error instanceof V1Error) return error;
		throw error;
	}
}
/** Returns the call as an error needs it: with the dialect of the requested socket. */
function callOf({ dialects }, { method = "", url = "", headers }) {
	return {
		method,
		url,
		rules: rulesOf(dialects.ofSocket({
			url,
			headers
		}))
	};
}
// src/models/lazy-router.ts
/**
* Creates a router that loads later: its modules are a fifth of all, and would slow every start.
*/
function createLazyModelRouter(load) {
	const router = lazily(load);
	return {
		async middleware(ctx, next) {
			if (!MODEL_PATHS.test(ctx.path)) return await next();
			const { middleware } = await router.get();
			await middleware(ctx, next);
		},
		async open() {
			await router.get();
		},
		async close() {
			await (await router.known()?.catch(() => void 0))?.close();
		}
	};
}
// src/lib/rate-limiter.ts
const MAX_CALLERS = 1e5;
const MINUTE_MS = 6e4;
/**
* Creates a limit for requests that refills continuously. A caller is forgotten when its allowance
* is full again.
*/
function createRateLimiter(now) {
	const callers = new LRUCache({
		...atMost(MAX_CALLERS),
		ttl: MINUTE_MS
	});
	return { 
	/** Takes one request; otherwise returns the whole seconds until one is available. */
take(caller, perMinute) {
		const atMs = now();
		const before = callers.get(caller) ?? {
			left: perMinute,
			atMs
		};
		const refilled = Math.max(0, atMs - before.atMs) * perMinute / MINUTE_MS;
		const left = Math.min(perMinute, before.left + refilled);
		if (left < 1) {
			const waitMs = (1 - left) * MINUTE_MS / perMinute;
			return {
				ok: false,
				retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1e3))
			};
		}
		callers.set(caller, {
			left: left - 1,
			atMs
		});
		return { ok: true };
	} };
}
// src/prompts/external-job.ts
/** Describes a job that the embedded engine has just accepted. */
function externalJobOfEngine({ caller, request, job, response }) {
	return {
		caller,
		jobId: job.id,
		graph: applyCoercions(request.workflow, job.x_workflow ?? {}, []),
		order: request.order,
		extraData: extraDataOf(request.provenance?.extraPngInfo),
		answered: whenAnswered(response)
	};
}
/**
* Describes the job of a request that was forwarded to a service. `undefined`: the answer is not a
* job.
*/
async function externalJobOfService({ caller, body: read, job, response }) {
	const { id, urls, x_workflow: coerced } = job;
	if (typeof id !== "string" || id === "" || !isJsonObject(urls)) return void 0;
	const answered = whenAnswered(response);
	const body = await read();
	const graph = graphOf(body?.workflow);
	return {
		caller,
		jobId: id,
		graph: graph && applyCoercions(graph, graphOf(coerced) ?? {}, []),
		order: orderOf(body?.x_order),
		extraData: extraDataOf(body?.x_extra_pnginfo),
		answered
	};
}
/** Returns the workflow when v1 can show it, that is when it is an object of nodes. */
function graphOf(value) {
	if (!isJsonObject(value) || refuseShape(value)) return void 0;
	return Object.values(value).every((node) => isJsonObject(node.inputs)) ? value : void 0;
}
function orderOf(value) {
	if (typeof value !== "number" && !(value instanceof LosslessNumber)) return void 0;
	const order = Number(value.toString());
	return Number.isFinite(order) ? order : void 0;
}
/** Leaves out v2's `extra_data`, which holds only keys. The data for saved files is no secret. */
function extraDataOf(extraPngInfo) {
	return isJsonObject(extraPngInfo) ? { extra_pnginfo: extraPngInfo } : {};
}
function whenAnswered(response) {
	if (response.destroyed || response.writableFinished) return Promise.resolve();
	return new Promise((resolve) => {
		response.once("finish", resolve).once("close", resolve);
	});
}
// src/prompts/find-by-prompt-id.ts
/** Creates a function that searches the live prompts first, then the ledger. */
function createFindJobId({ livePrompts, ledger }) {
	return async (user, promptId) => {
		return (livePrompts.find(user, promptId) ?? await ledger.prompts.find(user, promptId))?.jobId ?? void 0;
	};
}
/** Returns the same port, in which a job is also found by the `prompt_id` that its client chose. */
function withPromptIds(jobs, sources) {
	const findJobId = createFindJobId(sources);
	/** Asks for a job with this id first, then for the job of the prompt with this id. */
	async function askByEitherId({ user }, id, request) {
		const answer = await request(id);
		if (answer.ok || answer.error.status !== 404) return answer;
		const jobId = await findJobId(user, id);
		return jobId === void 0 || jobId === id ? answer : await request(jobId);
	}
	return {
		...jobs,
		get: (caller, id) => askByEitherId(caller, id, (jobId) => jobs.get(caller, jobId)),
		workflow: (caller, id) => askByEitherId(caller, id, (jobId) => jobs.workflow(caller, jobId)),
		events: (caller, id, signal) => askByEitherId(caller, id, (jobId) => jobs.events(caller, jobId, signal)),
		cancel: (caller, id) => askByEitherId(caller, id, (jobId) => jobs.cancel(caller, jobId))
	};
}
// src/http/transfer-encoding.ts
/** For other names, `constructor` included, the content is not encoded. */
const ENCODINGS$1 = /* @__PURE__ */ new Map([["base64", {
	clean: (text) => text.replaceAll(/[^\w+/=-]/g, ""),
	wholeLength: ({ length }) => length - length % 4,
	decode: (text) => Buffer.from(text, "base64")
}], ["quoted-printable", {
	clean: (text) => text,
	wholeLength: (text) => text.length - (/=.?$/s.exec(text)?.[0].length ?? 0),
	decode: (text) => Buffer.from(text.replaceAll(/=\r?\n/g, "").replaceAll(/=([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))), "latin1")
}]]);
/**
* Decodes a file of a form by its `Content-Transfer-Encoding`. RFC 7578 has dropped that header,
* but form writers that are made from mail libraries send it, and v1 decodes.
*/
function decodeFile(stream, encodingName) {
	const encoding = ENCODINGS$1.get(encodingName);
	return encoding === void 0 ? stream : pipeline$1(stream, createDecoder(encoding), () => {});
}
/** Decodes a text field by its `Content-Transfer-Encoding`. */
function decodeField(value, encodingName) {
	const encoding = ENCODINGS$1.get(encodingName);
	return encoding === void 0 ? value : encoding.decode(encoding.clean(value)).toString("utf8");
}
function createDecoder({ clean, wholeLength, decode }) {
	let rest = "";
	return new Transform({
		transform(chunk, _encoding, done) {
			const text = rest + clean(chunk.toString("latin1"));
			const length = wholeLength(text);
			rest = text.slice(length);
			done(null, decode(text.slice(0, length)));
		},
		flush(done) {
			done(null, decode(rest));
		}
	});
}
// src/http/unpacked-body.ts
/** The content codings that v1's server unpacks. */
const UNPACKERS = /* @__PURE__ */ new Map([["gzip", () => createGunzip(OPTIONS)], ["deflate", () => createInflate(OPTIONS)]]);
const OPTIONS = { chunkSize: 65536 };
/** Refuses a body that cannot be unpacked, or whose stated length is too large. */
function refusedByHeaders({ headers }, maxBytes) {
	const encoding = encodingOf$1(headers);
	if (encoding !== "identity" && !UNPACKERS.has(encoding)) return refusedBody(415, `Content-Encoding ${encoding} is not taken.`);
	return Number(headers["content-length"]) > maxBytes ? refusedBody(413, tooLargeText(maxBytes)) : void 0;
}
function refusedBody(status, message) {
	return {
		ok: false,
		status,
		message
	};
}
/**
* Returns the unpacked bytes of a body, which may be many times the announced length. A reader that
* stops calls `stopUnpacking`: the request itself stays open for the answer.
*/
function unpackedBody(request) {
	const unpacker = UNPACKERS.get(encodingOf$1(request.headers))?.();
	if (unpacker === void 0) return request;
	unpacker.on("error", () => {});
	finished$1(request, { writable: false }, (cause) => cause && unpacker.destroy(cause));
	return request.pipe(unpacker);
}
function stopUnpacking(body, request) {
	if (body !== request) body.destroy();
}
/** True for the error of a body that does not match its stated encoding. */
function isUnpackError(error) {
	const { code } = error ?? {};
	return typeof code === "string" && code.startsWith("Z_");
}
function encodingOf$1(headers) {
	return headers["content-encoding"]?.toLowerCase() || "identity";
}
// src/http/multipart.ts
/**
* Reads a multipart body. Its files are spooled to disk and hashed meanwhile. Reading stops at the
* first fault. After a refusal no file is left on disk and the rest of the body is not read: answer
* with `Connection: close`.
*/
async function receiveMultipart(request, options) {
	const refusedEarly = refusedByHeaders(request, options.maxFileBytes);
	if (refusedEarly) return refusedEarly;
	let parser;
	try {
		parser = busboy(parserConfig(request, options));
	} catch {
		return refusedBody(400, "The body is not multipart/form-data.");
	}
	const boundary = boundaryOf(request.headers["content-type"] ?? "") ?? "";
	const filter = createBodyFilter(options.maxFileBytes, new HeaderRepair(boundary));
	const stopped = new AbortController();
	const form = createForm(options, (cause) => queueMicrotask(() => stopped.abort(cause)));
	form.attach(parser);
	const body = unpackedBody(request);
	let failure;
	try {
		const parsed = pipeline(filter, parser, { signal: stopped.signal });
		await Promise.all([pipeInto(body, filter), parsed]);
	} catch (error) {
		failure = stopped.signal.aborted ? stopped.signal.reason : error;
		stopUnpacking(body, request);
	}
	return form.finish(failure);
}
/** Thrown at a limit. Its message is sent to the client. */
var LimitExceeded = class extends Error {};
/** Thrown when a file could not be stored. The refusal of the file says why. */
var NotStored = class extends Error {};
function parserConfig(request, options) {
	return {
		headers: { "content-type": readableType(request.headers["content-type"] ?? "") },
		defParamCharset: "utf8",
		preservePath: true,
		limits: limitsOf$1(options)
	};
}
function limitsOf$1({ maxFieldBytes, maxFields, maxFiles, maxFileBytes }) {
	const fields = maxFields ?? 20;
	const files = maxFiles ?? 5;
	return {
		fieldSize: maxFieldBytes ?? 65536,
		fields,
		files,
		fileSize: maxFileBytes,
		parts: fields + files
	};
}
/**
* Returns the content type with its boundary quoted. v1 accepts an unquoted one with `=`, `/` or
* `:` in it, blanks around the `=`, and a semicolon at the end.
*/
function readableType(type) {
	const [form = "", ...parameters] = type.split(";").map((text) => text.trim());
	const boundary = boundaryOf(type);
	if (form.toLowerCase() !== "multipart/form-data" || boundary === void 0) return type;
	return [
		form,
		...parameters.filter((text) => text !== "" && !/^boundary\s*=/i.test(text)),
		`boundary="${boundary}"`
	].join("; ");
}
function boundaryOf(type) {
	const [, quoted, bare] = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^;]*))/i.exec(type) ?? [];
	return quoted ?? bare?.trim();
}
/** Counts the bytes of the whole body, since many small parts need as much as one large part. */
function createBodyFilter(maxBytes, headers) {
	let size = 0;
	return new Transform({
		transform(chunk, _encoding, done) {
			size += chunk.length;
			if (size > maxBytes) return done(new LimitExceeded(tooLargeText(maxBytes)));
			for (const bytes of headers.write(chunk)) this.push(bytes);
			done();
		},
		flush: (done) => done(null, headers.rest())
	});
}
/** Longer headers are left to the parser, which refuses them. */
const MAX_HEADER_BYTES = 16384;
const END_OF_HEADERS = "\r\n\r\n";
const CARRIAGE_RETURN = 13;
const DASHES = Buffer.from("\r\n--");
/**
* Removes semicolons at the end of a part's `Content-Disposition`, as v1 does, and reads other
* types of it (`attachment`) as `form-data`: the parser skips such parts. A form writer for C# that
* many programs have copied sends the semicolon.
*/
var HeaderRepair = class {
	#delimiter;
	/** The parser skips the line end before the first boundary, like everything before a part. */
	#pending = Buffer.from("\r\n");
	#isInHeaders = false;
	constructor(boundary) {
		this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
	}
	/** The bytes so far, but for those that have to wait for the next ones. */
	*write(chunk) {
		this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
		for (;;) {
			const end = this.#isInHeaders ? this.#endOfHeaders() : this.#endOfDelimiter();
			if (end === void 0) break;
			const bytes = this.#take(end);
			yield this.#isInHeaders ? withReadableDisposition(inUtf8(bytes)) : bytes;
			this.#isInHeaders = !this.#isInHeaders;
		}
		if (!this.#isInHeaders) yield this.#take(this.#startOfTail());
	}
	rest() {
		return this.#pending;
	}
	#take(end) {
		const bytes = this.#pending.subarray(0, end);
		this.#pending = this.#pending.subarray(end);
		return bytes;
	}
	#endOfHeaders() {
		const start = this.#pending.indexOf(END_OF_HEADERS);
		if (start >= 0) return start + 4;
		return this.#pending.length > MAX_HEADER_BYTES ? this.#pending.length : void 0;
	}
	#endOfDelimiter() {
		const { length } = this.#delimiter;
		for (let at = -1; (at = this.#pending.indexOf(DASHES, at + 1)) >= 0;) if (this.#pending.subarray(at, at + length).equals(this.#delimiter)) return at + length;
	}
	/** Returns where a delimiter may begin that continues in the next chunk. */
	#startOfTail() {
		const from = Math.max(0, this.#pending.length - this.#delimiter.length + 1);
		const start = this.#pending.indexOf(CARRIAGE_RETURN, from);
		return start < 0 ? this.#pending.length : start;
	}
};
function withReadableDisposition(headers) {
	const text = headers.toString("latin1");
	const repaired = text.replaceAll(/^(content-disposition:[ \t]*)[^;\s]+/gim, "$1form-data").replaceAll(/^(content-disposition:.*?)[ \t]*;[; \t]*$/gim, "$1");
	return repaired === text ? headers : Buffer.from(repaired, "latin1");
}
/**
* Converts headers that are not UTF-8. Windows programs write file names in the code page of their
* machine. Read as Latin-1, such a name is usable, and the answer tells it. Bytes that are no
* letter in Latin-1 become `_`.
*/
function inUtf8(headers) {
	if (isUtf8(headers)) return headers;
	return Buffer.from(headers.toString("latin1").replaceAll(/[\u0080-\u009f]/g, "_"));
}
function createForm(options, stop) {
	const fields = /* @__PURE__ */ new Map();
	const files = [];
	const limits = limitsOf$1(options);
	const limit = (message) => () => stop(new LimitExceeded(message));
	const limitField = limit(`Maximum size of a form field ${limits.fieldSize} exceeded.`);
	async function spoolPart(stream, part, encoding) {
		stream.on("error", () => {});
		stream.once("limit", limit(tooLargeText(limits.fileSize)));
		const { dir, durability, maxFileBytes: maxBytes } = options;
		const follow = (file) => options.follow?.(part, file);
		const content = decodeFile(stream, encoding);
		const spooled = await spoolStream(content, {
			dir,
			maxBytes,
			durability,
			follow
		});
		if (!spooled.ok) stop(new NotStored());
		return {
			...spooled,
			part
		};
	}
	return {
		attach(parser) {
			parser.on("file", (field, stream, info) => {
				const { filename, mimeType: contentType, encoding } = info;
				const part = {
					field: field ?? "",
					filename: filename ?? "",
					contentType
				};
				files.push(spoolPart(stream, part, encoding));
			});
			parser.on("field", (name, value, info) => {
				if (info.valueTruncated || info.nameTruncated) limitField();
				if (name === void 0) return;
				fields.set(name, [...fields.get(name) ?? [], decodeField(value, info.encoding)]);
			});
			parser.on("fieldsLimit", limit(`Maximum number of form fields ${limits.fields} exceeded.`));
			parser.on("filesLimit", limit(`Maximum number of files ${limits.files} exceeded.`));
			parser.on("partsLimit", limit(`Maximum number of form parts ${limits.parts} exceeded.`));
		},
		async finish(failure) {
			const settled = await Promise.all(files);
			const spooled = settled.flatMap((file) => file.ok ? [{
				...file.part,
				file: file.value
			}] : []);
			const failed = settled.find((file) => !file.ok && file.status === 507);
			const refusal = failed?.ok === false ? failed : refusalOf$2(failure);
			if (refusal === void 0) return {
				ok: true,
				value: {
					fields,
					files: spooled
				}
			};
			await Promise.all(spooled.map(({ file }) => rm(file.path, { force: true })));
			return refusedBody(refusal.status, refusal.message);
		}
	};
}
function refusalOf$2(failure) {
	if (failure === void 0) return void 0;
	if (failure instanceof LimitExceeded) return refusedBody(413, failure.message);
	return refusedBody(400, "The multipart body is malformed.");
}
// src/http/received-form.ts
/**
* Receives the form of a user and passes it to `work`. The first file may be forwarded while the
* form still arrives. An upload that `work` does not finish is cancelled.
*/
async function withReceivedForm({ spoolDir: dir, durability, maxUploadBytes, limitUploads, startUpload }, { ctx, caller }, { maxFields, sentAs, work }) {
	let first;
	const atMostBytes = ctx.request.length ?? maxUploadBytes;
	const follow = (part, file) => {
		const contentType = first ? void 0 : sentAs(part);
		if (contentType === void 0) return;
		const started = startUpload?.(caller, {
			file,
			contentType,
			atMostBytes
		});
		first = started && {
			path: file.path,
			started
		};
	};
	const options = {
		dir,
		durability,
		maxFileBytes: maxUploadBytes,
		maxFields,
		follow
	};
	try {
		return await work(await limitUploads(caller.user, () => receiveMultipart(ctx.req, options)), ({ path }) => first?.path === path ? first.started : void 0);
	} finally {
		first?.started.cancel();
	}
}
// src/v2/reply.ts
/** Refuses a request that violates the contract. */
function badRequest$1(message) {
	return refuse(400, "invalid_request", message);
}
/** Refuses a field whose value violates the contract. */
function badField(message) {
	return refuse(422, "invalid_request", message);
}
/** Writes a handler's answer. */
function sendReply(ctx, reply) {
	ctx.status = reply.status;
	if (reply.json !== void 0) {
		ctx.set("Content-Type", "application/json; charset=utf-8");
		ctx.set("Cache-Control", "no-store");
		ctx.body = stringifyJson(reply.json);
	} else if (reply.stream) ctx.body = reply.stream;
	else sendEmpty(ctx, reply.status);
	ctx.set({ ...reply.headers });
}
/** Writes the error envelope; empty `details` become null. */
function sendV2Error(ctx, error) {
	const { code, message, details } = error;
	const isEmpty = isJsonObject(details) && Object.keys(details).length === 0;
	const headers = {};
	if (error.retryAfterSeconds !== void 0) headers["Retry-After"] = String(error.retryAfterSeconds);
	if (error.status === 401) headers["WWW-Authenticate"] = "Bearer";
	if (error.status === 413) headers["Connection"] = "close";
	const json = { error: {
		code,
		message,
		details: isEmpty ? null : details
	} };
	sendReply(ctx, {
		status: error.status,
		headers,
		json
	});
}
// src/v2/read-body.ts
/** Status and code for a body that cannot be read; the contract has 422 for malformed bodies. */
const BODY_REFUSALS = {
	400: [422, "invalid_request"],
	413: [413, "payload_too_large"],
	415: [415, "unsupported_media_type"],
	503: [503, "server_busy"],
	507: [507, "insufficient_storage"]
};
const MAX_KEY_CHARS = 255;
/** Reads a JSON object, whatever its content type is, and keeps all digits of its numbers. */
async function readObject(ctx, bodies, graphMember) {
	const read = await bodies.read(ctx, graphMember === void 0 ? {} : { graphMember });
	if (!read.ok) {
		if (!read.isSyntax) ctx.set("Connection", "close");
		return refuseBody(read);
	}
	return isJsonObject(read.value) ? ok(read.value) : badField("The body must be a JSON object.");
}
/** Returns a refused body as a v2 error. */
function refuseBody({ status, message, retryAfterSeconds }) {
	const retry = retryAfterSeconds === void 0 ? {} : { retryAfterSeconds };
	const [replyStatus, code] = BODY_REFUSALS[status];
	return refuse(replyStatus, code, message, retry);
}
/** Refuses a field for a control character in its value. */
function refuseControlCharacter(field) {
	return badField(`"${field}" has a control character.`);
}
/** Reads the `Idempotency-Key` header, if there is one. */
function readIdempotencyKey(ctx) {
	const key = ctx.req.headers["idempotency-key"];
	if (key === void 0) return ok({});
	if (typeof key === "string" && hasControlCharacter(key)) return refuseControlCharacter("Idempotency-Key");
	if (typeof key === "string" && key.length > 0 && key.length <= MAX_KEY_CHARS) return ok({ idempotencyKey: key });
	return badField(`Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters.`);
}
// src/http/byte-ranges.ts
/**
* Matches a suffix range (the last n bytes), at the start of a list of ranges or behind a comma.
*/
const SUFFIX = /([=,]\s*)-(\d+)/g;
/**
* Reads a `Range` header. By RFC 9110, a suffix longer than the content means all of it; the parser
* would take it for a range outside of the content.
*/
function parseRanges(size, header) {
	return parseRange(size, withinContent(size, header));
}
function withinContent(size, header) {
	return header.replaceAll(SUFFIX, (_, before, length) => `${before}-${Math.min(Number(length), size)}`);
}
/** One range in v1's form: it refuses several, other units, and what it cannot read. */
const ONE_RANGE = /^bytes=(\d+-\d*|-\d+)$/;
/** The header of a request for one range; `undefined` in v1 is a range outside of the content. */
function readOneRange(header) {
	const text = header.trim().toLowerCase();
	return ONE_RANGE.test(text) ? text : void 0;
}
/** The same as a header that says so to every reader of it, for content of this size. */
function toPlainRange(size, header) {
	const range = readOneRange(header);
	return range === void 0 ? `bytes=${size}-` : withinContent(size, range);
}
// src/v2/send-content.ts
/**
* Uploaded pages must not run in this origin, and shared caches must not store a caller's bytes.
*/
const SAFE_HEADERS = {
	"Content-Security-Policy": "default-src 'none'; sandbox",
	"X-Content-Type-Options": "nosniff",
	"Cache-Control": "private, no-cache"
};
/** A range whose answer shows size, type and validator and carries one byte. */
const FIRST_BYTE$1 = {
	start: 0,
	end: 0
};
/** Answers with an asset's bytes, the requested range of them, or a redirect to them. */
async function sendContent(jobs, { ctx, caller, params: { id = "" } }) {
	const open = (range) => jobs.content(caller, id, range);
	if (asksForAll(ctx)) return answer$1(ctx, await open());
	const shown = await openFirstByte(open);
	if (!shown.ok || shown.value.kind === "redirect") return answer$1(ctx, shown);
	shown.value.stream.destroy();
	if (isCurrent(ctx, shown.value)) return ok({
		status: 304,
		headers: {
			...SAFE_HEADERS,
			...validators(shown.value)
		}
	});
	const range = rangeOf$1(ctx, shown.value);
	if (range === "unsatisfiable") return unsatisfiable(ctx, shown.value);
	return ctx.method === "HEAD" ? ok(headOf({
		...shown.value,
		range
	})) : answer$1(ctx, await open(range));
}
function asksForAll(ctx) {
	return ctx.method === "GET" && ctx.get("Range") === "" && ctx.get("If-None-Match") === "";
}
async function openFirstByte(open) {
	const content = await open(FIRST_BYTE$1);
	return !content.ok && content.error.status === 416 ? await open() : content;
}
function answer$1(ctx, content) {
	if (!content.ok) return content;
	if (content.value.kind === "redirect") {
		const headers = {
			Location: content.value.location,
			"Cache-Control": "no-store"
		};
		return ok({
			status: 302,
			headers
		});
	}
	const { stream } = content.value;
	stream.reuseBuffersFor?.(ctx.res);
	return ok({
		...headOf(content.value),
		stream
	});
}
function headOf(content) {
	const { range, totalBytes, contentType } = content;
	const headers = {
		...SAFE_HEADERS,
		...validators(content),
		"Accept-Ranges": "bytes",
		"Content-Type": contentType,
		"Content-Length": String(range ? range.end - range.start + 1 : totalBytes),
		...range && { "Content-Range": `bytes ${range.start}-${range.end}/${totalBytes}` }
	};
	return {
		status: range ? 206 : 200,
		headers
	};
}
function validators({ etag }) {
	return etag === void 0 ? {} : { ETag: etag };
}
function isCurrent(ctx, { etag }) {
	return etag !== void 0 && isCopyCurrent(ctx.req, { etag });
}
/**
* Returns the range to send. Only a single byte range is served; several ranges, another unit or an
* invalid header get the whole content.
*/
function rangeOf$1(ctx, { totalBytes, etag }) {
	const condition = ctx.get("If-Range");
	if (condition !== "" && condition !== etag) return void 0;
	const header = ctx.get("Range");
	if (!header.startsWith("bytes=")) return void 0;
	const ranges = parseRanges(totalBytes, header);
	if (ranges === -1) return "unsatisfiable";
	if (ranges === -2 || ranges.length !== 1) return void 0;
	return ranges[0];
}
function unsatisfiable(ctx, { totalBytes }) {
	ctx.set("Content-Range", `bytes */${totalBytes}`);
	return refuse(416, "range_not_satisfiable", "The range lies outside of the content.", { details: { size_bytes: totalBytes } });
}
// src/v2/read-upload.ts
const HASH = /^blake3:[0-9a-f]{64}$/;
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}(\s*;[\x20-\x7e]{0,128})?$/;
/** Reads the form of `POST /assets`. A refused file is removed from disk. */
async function readUpload(form) {
	const upload = uploadOf(form);
	if (!upload.ok) await Promise.all(form.files.map(({ file }) => rm(file.path, { force: true })));
	return upload;
}
/** Reads the body of `POST /assets/from-hash`. */
function readFromHash(body) {
	const { hash } = body;
	const unprintable = [
		"hash",
		"file_path",
		"tags"
	].find((name) => hasControlCharacters(body[name]));
	if (unprintable !== void 0) return refuseControlCharacter(unprintable);
	const { file_path: filePath, tags, expires_in: expiresIn } = withoutNulls(body);
	if (typeof hash !== "string" || !HASH.test(hash)) return badField("\"hash\" must be blake3:<64 hex digits>.");
	if (!isOptional(filePath, isText$1)) return badField("\"file_path\" must be a string.");
	if (!isOptional(tags, isTexts)) return badField("\"tags\" must be a list of strings.");
	if (!isOptional(expiresIn, isNumber)) return badField("\"expires_in\" must be a number of seconds.");
	return ok({
		hash,
		...filePath !== void 0 && { filePath },
		...tags && { tags },
		...expiresIn !== void 0 && { expiresInSeconds: expiresIn }
	});
}
function uploadOf({ fields, files }) {
	const [file] = files;
	const unprintable = [...fields].find(([name, values]) => hasControlCharacters([name, ...values]));
	if (unprintable) return refuseControlCharacter(unprintable[0]);
	if (!file || files.length > 1 || file.field !== "file") return badField("Send exactly one file, in the field \"file\".");
	const contentType = soleField(fields, "content_type");
	if (contentType === void 0 || !MEDIA_TYPE.test(contentType)) return badField("\"content_type\" must be a media type.");
	const filePath = soleField(fields, "file_path");
	if (filePath === void 0 || filePath === "") return badField("\"file_path\" is required.");
	const expectedHash = soleField(fields, "expected_hash")?.toLowerCase();
	if (expectedHash !== void 0 && !HASH.test(expectedHash)) return refuse(409, "hash_mismatch", "\"expected_hash\" must be blake3:<64 hex digits>: no bytes have this one.");
	const expiresIn = soleField(fields, "expires_in");
	if (expiresIn !== void 0 && !/^\d{1,9}$/.test(expiresIn)) return badField("\"expires_in\" must be a whole number of seconds.");
	const tags = fields.get("tags");
	return ok({
		file: file.file,
		contentType,
		filePath,
		...tags && { tags },
		...expectedHash !== void 0 && { expectedHash },
		...expiresIn !== void 0 && { expiresInSeconds: Number(expiresIn) }
	});
}
/** Returns the value of a field. When a field is sent twice, the last value counts. */
function soleField(fields, name) {
	return fields.get(name)?.at(-1);
}
function withoutNulls(body) {
	return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}
function isOptional(value, is) {
	return value === void 0 || is(value);
}
function hasControlCharacters(value) {
	if (Array.isArray(value)) return value.some((item) => hasControlCharacters(item));
	return typeof value === "string" && hasControlCharacter(value);
}
function isText$1(value) {
	return typeof value === "string";
}
function isNumber(value) {
	return typeof value === "number";
}
function isTexts(value) {
	return Array.isArray(value) && value.every((item) => typeof item === "string");
}
// src/v2/asset-handlers.ts
/** The maximum number of form fields. Tags are sent as repeated fields. */
const MAX_FORM_FIELDS = 64;
/** The handlers of the asset operations, by the names of their routes. */
function createAssetHandlers(options) {
	const { jobs, bodies } = options;
	const assetReply = (status, asset, links) => ok({
		status,
		json: links.asset(asset)
	});
	return {
		async "POST /assets"({ ctx, caller, links }) {
			const key = readIdempotencyKey(ctx);
			if (!key.ok) return key;
			const created = await withReceivedForm(options, {
				ctx,
				caller
			}, {
				maxFields: MAX_FORM_FIELDS,
				sentAs: () => "",
				async work(form) {
					if (!form.ok) {
						ctx.set("Connection", "close");
						return refuseBody(form);
					}
					const upload = await readUpload(form.value);
					if (!upload.ok) return upload;
					return await jobs.createAsset(caller, {
						...upload.value,
						...key.value
					});
				}
			});
			if (!created.ok) return created;
			return assetReply(created.value.created_new === false ? 200 : 201, created.value, links);
		},
		async "POST /assets/from-hash"({ ctx, caller, links }) {
			const key = readIdempotencyKey(ctx);
			if (!key.ok) return key;
			const body = await readObject(ctx, bodies);
			if (!body.ok) return asBlobNotFound(body);
			const request = readFromHash(body.value);
			if (!request.ok) return asBlobNotFound(request);
			const keyed = {
				...request.value,
				...key.value
			};
			const created = await jobs.assetFromHash(caller, keyed);
			return created.ok ? assetReply(201, created.value, links) : asBlobNotFound(created);
		},
		async "HEAD /assets/by-hash/:hash"({ caller, params: { hash = "" } }) {
			const exists = await jobs.hasBlob(caller, hash);
			return exists.ok ? ok({ status: exists.value ? 200 : 404 }) : exists;
		},
		async "GET /assets/:id"({ caller, params: { id = "" }, links }) {
			const asset = await jobs.asset(caller, id);
			return asset.ok ? ok({
				status: 200,
				json: links.asset(asset.value)
			}) : asset;
		},
		async "DELETE /assets/:id"({ caller, params: { id = "" } }) {
			const removed = await jobs.deleteAsset(caller, id);
			return removed.ok ? ok({ status: 204 }) : removed;
		},
		"GET /assets/:id/content": (request) => sendContent(jobs, request)
	};
}
/**
* Turns the refusal of a request that names no bytes into "not found": the contract documents no
* 422 here.
*/
function asBlobNotFound(refused) {
	const { code, message } = refused.error;
	return code === "invalid_request" ? refuse(404, "blob_not_found", message) : refused;
}
// src/sockets/by-user.ts
const NO_ITEMS = /* @__PURE__ */ new Set();
/** A set of items for each user that has any. */
var ByUser = class {
	#sets = /* @__PURE__ */ new Map();
	#size = 0;
	/** The number of items of all users. */
	get size() {
		return this.#size;
	}
	of(user) {
		return this.#sets.get(user) ?? NO_ITEMS;
	}
	has(user) {
		return this.#sets.has(user);
	}
	add(user, item) {
		const items = this.#sets.get(user) ?? /* @__PURE__ */ new Set();
		if (items.has(item)) return;
		this.#sets.set(user, items.add(item));
		this.#size += 1;
	}
	delete(user, item) {
		const items = this.#sets.get(user);
		if (!items?.delete(item)) return;
		this.#size -= 1;
		if (items.size === 0) this.#sets.delete(user);
	}
	/** Removes and returns the items of a user. */
	take(user) {
		const items = this.of(user);
		this.#size -= items.size;
		this.#sets.delete(user);
		return items;
	}
	/** Deletes the items that are not among these. */
	retain(items) {
		for (const user of this.users()) for (const item of this.of(user)) if (!items.has(item)) this.delete(user, item);
	}
	users() {
		return this.#sets.keys();
	}
	*all() {
		for (const items of this.#sets.values()) yield* items;
	}
};
// src/v2/read-submission.ts
/** The keys of `extra_data` that the contract allows, and the internal name of each. */
const EXTRA_DATA = {
	api_key_comfy_org: "api_key_comfy_org",
	auth_token_comfy_org: "auth_token_comfy_org",
	api_key_service_org: "api_key_comfy_org"
};
/**
* Fields that the contract reserves. They are refused: to accept them without an effect would
* deceive the caller.
*/
const RESERVED = ["webhook_url", "inputs"];
const MAX_LABELS = 16;
const MAX_LABEL_CHARS = 1024;
const LABEL_NAME = /^[A-Za-z0-9_.-]{1,40}$/;
/** Characters that change the direction of the surrounding text. */
const DIRECTION_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/u;
/** Reads the body of `POST /jobs`. */
function readJobSubmission(body, idempotencyKey) {
	const reserved = RESERVED.find((name) => isGiven(body[name]));
	if (reserved !== void 0) return refuse(422, "invalid_workflow", `"${reserved}" is reserved and not supported yet.`);
	const { workflow } = body;
	if (!isJsonObject(workflow)) return refuse(422, "invalid_workflow", "\"workflow\" must be an object: a graph in API format, node id to node.");
	const extraData = readExtraData(body["extra_data"]);
	if (!extraData.ok) return extraData;
	const metadata = readMetadata(body["metadata"]);
	if (!metadata.ok) return metadata;
	const order = readOrder(body["x_order"]);
	if (!order.ok) return order;
	return ok({
		workflow,
		extraData: extraData.value,
		...idempotencyKey !== void 0 && { idempotencyKey },
		...metadata.value && { metadata: metadata.value },
		...order.value !== void 0 && { order: order.value },
		...readProvenance(body, workflow)
	});
}
/** True when this may be the label of a job, or a search for one. */
function isLabel(name, value) {
	return LABEL_NAME.test(name) && value.length <= MAX_LABEL_CHARS && !DIRECTION_CONTROLS.test(value) && !hasControlCharacter(value);
}
function readExtraData(value) {
	if (!isGiven(value)) return ok({});
	if (!isJsonObject(value)) return badField("\"extra_data\" must be an object.");
	const read = {};
	for (const [name, secret] of Object.entries(value)) {
		const field = Object.hasOwn(EXTRA_DATA, name) ? EXTRA_DATA[name] : void 0;
		if (field === void 0) return badField(`"extra_data" has no field "${name.slice(0, 100)}".`);
		if (!isGiven(secret)) continue;
		if (typeof secret !== "string") return badField(`"extra_data.${name}" must be a string.`);
		read[field] = secret;
	}
	return ok(read);
}
function readMetadata(value) {
	if (!isGiven(value)) return ok(void 0);
	const fits = ([name, text]) => typeof text === "string" && isLabel(name, text);
	if (isJsonObject(value) && Object.keys(value).length <= MAX_LABELS && Object.entries(value).every(fits)) return ok(value);
	return refuse(422, "metadata_invalid", `"metadata" takes up to ${MAX_LABELS} labels: names of 1 to 40 characters out of A-Z a-z 0-9 _ . -, values that are strings of up to ${MAX_LABEL_CHARS} printable characters.`);
}
function readOrder(value) {
	if (!isGiven(value)) return ok(void 0);
	const order = typeof value === "number" || value instanceof LosslessNumber ? Number(value.toString()) : NaN;
	return Number.isFinite(order) ? ok(order) : badField("\"x_order\" must be a number.");
}
function readProvenance(body, workflow) {
	const { x_prompt: prompt, x_extra_pnginfo: extraPngInfo } = body;
	if (!isGiven(prompt) && !isGiven(extraPngInfo)) return {};
	return { provenance: {
		prompt: prompt ?? workflow,
		extraPngInfo: extraPngInfo ?? null
	} };
}
/** True when the client gave a value. Clients send null for a field that they leave out. */
function isGiven(value) {
	return value !== void 0 && value !== null;
}
// src/v2/list-query.ts
const MAX_LIMIT$1 = 100;
const MAX_LABEL_FILTERS = 3;
/** Reads the query of `GET /jobs`. Parameters that the contract does not know are ignored. */
function readListQuery$1(querystring) {
	const query = new URLSearchParams(querystring);
	const limit = readLimit(query.get("limit"));
	if (!limit.ok) return limit;
	const status = readStatuses(query.get("status"));
	if (!status.ok) return status;
	const metadata = readFilter(query, querystring);
	if (!metadata.ok) return metadata;
	const cursor = query.get("cursor");
	return ok({
		...limit.value !== void 0 && { limit: limit.value },
		...cursor !== null && cursor !== "" && { cursor },
		...status.value && { status: status.value },
		...metadata.value && { metadata: metadata.value }
	});
}
/**
* Returns the whole job as a list item, with the two times under the names that the hosted service
* uses.
*/
function toListItem(job) {
	const changedAt = job.completed_at ?? job.started_at ?? job.created_at;
	return {
		...job,
		create_time: job.created_at,
		update_time: changedAt
	};
}
function readLimit(text) {
	if (text === null) return ok(void 0);
	const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
	if (limit >= 1 && limit <= MAX_LIMIT$1) return ok(limit);
	return badRequest$1(`"limit" must be a whole number from 1 to ${MAX_LIMIT$1}.`);
}
function readStatuses(text) {
	if (text === null) return ok(void 0);
	const words = text.split(",").map((word) => word.trim());
	if (words.every(isStatus)) return ok(words);
	return badRequest$1(`"status" must be a comma-separated list of ${JOB_STATUSES.join(", ")}.`);
}
function isStatus(word) {
	return JOB_STATUSES.includes(word);
}
/**
* Reads `metadata[name]=value`, each name once. A truncated escape is refused, since it would match
* another value.
*/
function readFilter(query, querystring) {
	const pairs = [...query].flatMap(([key, value]) => {
		const name = /^metadata\[(.*)\]$/s.exec(key)?.[1];
		return name === void 0 ? [] : [[name, value]];
	});
	if (pairs.length === 0) return ok(void 0);
	const metadata = new Map(pairs);
	const hasRepeatedName = metadata.size !== pairs.length;
	const hasBrokenEscape = /%(?![0-9a-f]{2})/i.test(querystring);
	const fits = pairs.every(([name, value]) => isLabel(name, value));
	if (pairs.length > MAX_LABEL_FILTERS || hasRepeatedName || hasBrokenEscape || !fits) return refuse(400, "invalid_metadata_filter", `Labels are searched for with ${`up to ${MAX_LABEL_FILTERS} filters metadata[name]=value, each name once, URL-encoded`}.`);
	return ok(Object.fromEntries(metadata));
}
// src/v2/early-events.ts
/** How long the events of a new job are buffered for its submitter. */
const BUFFER_MS = 2e3;
/**
* The readers of an event stream. A Holdover in front of this one reads the events as well as its
* client.
*/
const READERS = ["client", "holdover"];
/**
* Subscribes to a new job for the client that submitted it. A job that starts at once is ahead of
* its `201` and of the stream that is opened after it, and a stream does not repeat missed events.
*/
function createEarlyEvents(jobs, clock = systemClock) {
	const newJobs = /* @__PURE__ */ new Map();
	function expire(name) {
		for (const stream of newJobs.get(name)?.streams ?? []) close(stream);
		newJobs.delete(name);
	}
	/** Removes and returns the stream of this reader, so that it is given to no other one. */
	function remove(caller, { jobId, reader }) {
		const name = nameOf$1(caller, jobId);
		const job = newJobs.get(name);
		const index = job?.streams.findIndex((one) => one.reader === reader) ?? -1;
		const [stream] = index < 0 ? [] : job?.streams.splice(index, 1) ?? [];
		if (job?.streams.length === 0) {
			job.cancelExpiry();
			newJobs.delete(name);
		}
		return stream;
	}
	async function subscribe(caller, jobId, stream) {
		try {
			const events = await jobs.events(caller, jobId, stream.controller.signal);
			if (events.ok) stream.events = events.value;
			if (stream.controller.signal.aborted) close(stream);
		} catch {}
	}
	return {
		/** Subscribes, and gives up after `BUFFER_MS`. Never rejects. */
		async open(caller, jobId) {
			const name = nameOf$1(caller, jobId);
			if (newJobs.has(name)) return;
			const streams = READERS.map((reader) => ({
				reader,
				controller: new AbortController()
			}));
			const cancelExpiry = clock.callAfter(BUFFER_MS, () => expire(name));
			newJobs.set(name, {
				streams: [...streams],
				cancelExpiry
			});
			await Promise.all(streams.map((stream) => subscribe(caller, jobId, stream)));
		},
		/**
		* Removes the events for a reader that knows the end of the job: it must get no earlier status.
		*/
		forget(caller, recipient) {
			const stream = remove(caller, recipient);
			if (stream) close(stream);
		},
		/**
		* Returns all events since `open`, for the first request of each reader. Ends with the signal.
		*/
		take(caller, recipient, signal) {
			const stream = remove(caller, recipient);
			if (!stream) return void 0;
			const { controller, events } = stream;
			if (signal.aborted || !events) controller.abort();
			else signal.addEventListener("abort", () => controller.abort(), { once: true });
			return events;
		}
	};
}
function close({ controller, events }) {
	controller.abort();
	if (events) drainEvents(events).catch(() => {});
}
function nameOf$1({ user }, jobId) {
	return `${user} ${jobId}`;
}
// src/v2/job-at-status.ts
/** How far a job with each status has come. */
const STAGE = {
	queued: 0,
	running: 1,
	canceling: 2,
	succeeded: 3,
	canceled: 3,
	failed: 3,
	expired: 3
};
/**
* Returns the job as a `status` event shows it: a job with a later status is shown as it was at
* this one. `undefined` if the job ended in another way than the event says.
*/
function jobAtStatus(job, status) {
	if (IS_TERMINAL[status]) return job.status === status ? job : void 0;
	const { x_cached_nodes: _nodes, x_ui: _ui, ...shown } = job;
	if (STAGE[job.status] <= STAGE[status]) return {
		...shown,
		status
	};
	const hasBegun = status !== "queued";
	return {
		...shown,
		status,
		started_at: hasBegun ? job.started_at : null,
		completed_at: null,
		queue_position: null,
		progress: null,
		outputs: [],
		error: null,
		...job.metrics && { metrics: metricsAt(job.metrics, status) }
	};
}
function metricsAt(metrics, status) {
	return {
		...metrics,
		execution_ms: null,
		...status === "queued" && { queue_ms: null }
	};
}
// src/v2/event-stream.ts
/** A comment line, which shows proxies and readers that the stream is alive. */
const KEEP_ALIVE = ": keep-alive\n\n";
const KEEP_ALIVE_MS = 15e3;
/** The number of events that are written before other work gets its turn. */
const EVENTS_PER_TURN$1 = 32;
/** A reader that accepts nothing for this many keep-alive intervals is disconnected. */
const STALLED_KEEP_ALIVES = 4;
/**
* Writes the events of a job until its terminal status, until the events end, or until the reader
* disconnects. A slow reader gets only the newest previews. A reader that accepts nothing is
* disconnected and reads the job instead.
*/
async function streamEvents(response, events, options) {
	const backlog = new EventSubscriber(options.signal);
	response.write(KEEP_ALIVE);
	const ended = new AbortController();
	sendKeepAlives(response, options, ended.signal);
	const [filling, writing] = await Promise.allSettled([fillBacklog(backlog, events, response), writeBacklog(response, backlog, options)]);
	ended.abort();
	response.end();
	for (const part of [filling, writing]) if (part.status === "rejected") throw part.reason;
}
/** Writes a comment line at every interval until the stream has ended. */
async function sendKeepAlives(response, { keepAliveMs = KEEP_ALIVE_MS, clock, signal }, ended) {
	const wait = () => clock.sleep(keepAliveMs, ended).then(() => !ended.aborted, () => false);
	while (await wait()) if (!response.writableNeedDrain && !signal.aborted) response.write(KEEP_ALIVE);
}
/** The bytes of one event. */
function eventText$2(event) {
	return `event: ${event.event}\ndata: ${stringifyJson(dataOf(event))}\n\n`;
}
function dataOf(event) {
	if (event.event === "preview") return previewData(event.data);
	if (event.event !== "status") return event.data;
	const { job, ...status } = event.data;
	return {
		...job,
		...status
	};
}
async function fillBacklog(backlog, events, response) {
	const pause = yieldEvery(EVENTS_PER_TURN$1);
	try {
		for await (const event of events) {
			backlog.push(event);
			if (backlog.isOverLimit()) return void response.destroy();
			await pause();
			if (event.event === "status" && IS_TERMINAL[event.data.status]) return;
		}
	} finally {
		backlog.end();
	}
}
async function writeBacklog(response, backlog, options) {
	const pause = yieldEvery(EVENTS_PER_TURN$1);
	for await (const event of backlog) {
		if (options.signal.aborted) return;
		if (!response.write(eventText$2(event))) await waitForDrain(response, options);
		else await pause();
	}
}
async function waitForDrain(response, { keepAliveMs = KEEP_ALIVE_MS, clock, signal }) {
	if (signal.aborted) return;
	const drained = new AbortController();
	clock.sleep(STALLED_KEEP_ALIVES * keepAliveMs, drained.signal).then(() => response.destroy(), () => {});
	try {
		await once(response, "drain", { signal });
	} catch (error) {
		if (!signal.aborted) throw error;
	} finally {
		drained.abort();
	}
}
function previewData(data) {
	const { bytes, ...rest } = data;
	const { buffer, byteOffset, byteLength } = bytes;
	return {
		...rest,
		data_base64: Buffer.from(buffer, byteOffset, byteLength).toString("base64")
	};
}
// src/v2/job-handlers.ts
const DEFAULT_STREAM_CAP = 64;
const STREAM_RETRY_S = 5;
const STREAM_HEADERS = {
	"Content-Type": "text/event-stream; charset=utf-8",
	"Cache-Control": "no-cache, no-transform",
	"X-Accel-Buffering": "no"
};
/** The handlers of the job operations, by the names of their routes. */
function createJobHandlers(options) {
	const { jobs, bodies } = options;
	const earlyEvents = createEarlyEvents(jobs, options.clock);
	return {
		async "POST /jobs"({ ctx, caller, links }) {
			const key = readIdempotencyKey(ctx);
			if (!key.ok) return key;
			const body = await readObject(ctx, bodies, "workflow");
			if (!body.ok) return body;
			const request = readJobSubmission(body.value, key.value.idempotencyKey);
			if (!request.ok) return request;
			const submitted = await jobs.submit(caller, request.value);
			const { res: response } = ctx;
			if (submitted.ok) {
				await earlyEvents.open(caller, submitted.value.id);
				await options.onSubmit?.({
					caller,
					request: request.value,
					job: submitted.value,
					response
				});
			}
			return reply(submitted, links.job, 201);
		},
		async "GET /jobs"({ ctx, caller, links }) {
			const query = readListQuery$1(ctx.querystring);
			if (!query.ok) return query;
			return reply(await jobs.list(caller, query.value), (value) => ({
				...value,
				jobs: value.jobs.map((job) => toListItem(links.job(job)))
			}));
		},
		async "GET /jobs/:id"({ ctx, caller, params, links }) {
			const job = await jobs.get(caller, idOf(params));
			if (job.ok && IS_TERMINAL[job.value.status]) {
				const jobId = job.value.id;
				earlyEvents.forget(caller, {
					jobId,
					reader: readerOf$1(ctx)
				});
				options.onFetch?.({
					caller,
					jobId,
					request: ctx.req
				});
			}
			return reply(job, links.job);
		},
		"GET /jobs/:id/workflow": async ({ caller, params }) => reply(await jobs.workflow(caller, idOf(params)), unchanged),
		"POST /jobs/:id/cancel": async ({ caller, params, links }) => reply(await jobs.cancel(caller, idOf(params)), links.job),
		/** The embedded engine captures no logs, so the list of every job is empty. */
		async "GET /jobs/:id/logs"({ caller, params }) {
			const job = await jobs.get(caller, idOf(params));
			return job.ok ? ok({ status: 204 }) : job;
		},
		"GET /jobs/:id/events": createEventsHandler(options, earlyEvents)
	};
}
function createEventsHandler(options, earlyEvents) {
	const { jobs, streamCap = DEFAULT_STREAM_CAP, keepAliveMs, clock = systemClock } = options;
	const open = new ByUser();
	return async ({ ctx, caller, params, links }) => {
		if (ctx.method === "HEAD") {
			const job = await jobs.get(caller, idOf(params));
			return job.ok ? ok({
				status: 200,
				headers: STREAM_HEADERS
			}) : job;
		}
		if (open.of(caller.user).size >= streamCap) return tooManyStreams(streamCap);
		open.add(caller.user, ctx);
		const signal = disconnectSignal(ctx.res);
		try {
			const recipient = {
				jobId: idOf(params),
				reader: readerOf$1(ctx)
			};
			const first = earlyEvents.take(caller, recipient, signal);
			const events = first ? ok(first) : await jobs.events(caller, idOf(params), signal);
			if (!events.ok) return events;
			startStream(ctx);
			const job = () => jobs.get(caller, idOf(params));
			await streamEvents(ctx.res, clientEvents(events.value, {
				links,
				job
			}), {
				keepAliveMs,
				clock,
				signal
			});
			return ok("sent");
		} finally {
			open.delete(caller.user, ctx);
		}
	};
}
function tooManyStreams(cap) {
	const message = `At most ${cap} event streams may be open at a time; poll the job meanwhile.`;
	return refuse(429, "too_many_streams", message, { retryAfterSeconds: STREAM_RETRY_S });
}
function startStream(ctx) {
	ctx.respond = false;
	ctx.status = 200;
	ctx.set(STREAM_HEADERS);
	ctx.res.flushHeaders();
}
/** Yields the events as a client gets them: each status has its job, if the job can be read. */
async function* clientEvents(events, { links, job }) {
	for await (const event of events) {
		if (event.event !== "status") {
			yield links.event(event);
			continue;
		}
		const read = await job().catch(() => void 0);
		const shown = read?.ok ? jobAtStatus(read.value, event.data.status) : void 0;
		yield shown ? {
			...event,
			data: {
				...event.data,
				job: links.job(shown)
			}
		} : event;
	}
}
function reply(answer, show, status = 200) {
	return answer.ok ? ok({
		status,
		json: show(answer.value)
	}) : answer;
}
function unchanged(value) {
	return value;
}
/** A Holdover in front of this one follows a job as well as its clients do. */
function readerOf$1(ctx) {
	return ctx.get("User-Agent") === "holdover" ? "holdover" : "client";
}
function idOf({ id = "" }) {
	return id;
}
// src/auth/link-signature.ts
/** Signs the claims of one kind of link. A signature of another `kind` is never valid. */
function createLinkSignature(secret, kind) {
	const sign = (claims) => createHmac("sha256", secret).update(`${kind}\0${claims}`).digest("base64url");
	const isGenuine = (claims, signature) => isSameText(signature, sign(claims));
	return {
		sign,
		isGenuine
	};
}
function isSameText(given, expected) {
	const [a, b] = [Buffer.from(given), Buffer.from(expected)];
	return a.length === b.length && timingSafeEqual(a, b);
}
// src/v2/link-rewriter.ts
/**
* Turns the links of the port into those that a caller gets. A file's `url` is a URI in the
* contract, and the official Python client accepts nothing less. A job's own links may be relative
* to the host.
*/
function createLinkRewriter(options) {
	const { address, sign } = options;
	const link = (url) => absolute(url, address?.isStated === true ? address.base : void 0);
	const linked = (file) => {
		if (!isHostRelative(file.url)) return file;
		const url = absolute(file.url, address?.base);
		const signed = sign?.(file.id);
		if (signed === void 0) return {
			...file,
			url
		};
		return {
			...file,
			url: `${url}?${signed.query}`,
			url_expires_at: signed.expiresAt
		};
	};
	return {
		asset: (asset) => linked(asset),
		job: (job) => ({
			...job,
			outputs: job.outputs.map(linked),
			urls: {
				self: link(job.urls.self),
				events: link(job.urls.events),
				cancel: link(job.urls.cancel)
			}
		}),
		event: (event) => event.event === "output" ? {
			...event,
			data: linked(event.data)
		} : event
	};
}
/** `//host/…` names another host: such a link is complete already. */
function isHostRelative(url) {
	return url.startsWith("/") && !url.startsWith("//");
}
function absolute(url, base) {
	return base !== void 0 && isHostRelative(url) ? base + url : url;
}
/** The contract says "at most an hour": an old link found in a history or a log opens nothing. */
const LIFETIME_S = 3600;
/**
* `secret` belongs to the data folder or the shared ledger, so links outlive restarts and work at
* every server.
*/
function createContentSigner(options) {
	const { now } = options;
	const signature = createLinkSignature(options.secret, "signed content");
	return {
		sign(grant) {
			const expiresS = Math.floor(now() / 1e3) + LIFETIME_S;
			const shown = {
				user: grant.user,
				expires: String(expiresS)
			};
			return {
				query: new URLSearchParams({
					...shown,
					signature: signature.sign(claimsOf$1(grant, expiresS))
				}).toString(),
				expiresAt: isoTime$1(expiresS * 1e3)
			};
		},
		userOf(assetId, query) {
			const user = query.get("user") ?? "";
			const expiresS = Number(query.get("expires"));
			const claims = claimsOf$1({
				user,
				assetId
			}, expiresS);
			return signature.isGenuine(claims, query.get("signature") ?? "") && now() < expiresS * 1e3 ? user : void 0;
		}
	};
}
function claimsOf$1({ user, assetId }, expiresS) {
	return new URLSearchParams({
		user,
		asset: assetId,
		expires: String(expiresS)
	}).toString();
}
// src/v2/routes.ts
const PREFIX$2 = "/api/v2";
/** Serves the v2 contract over any `JobApi`. Other paths go on to the next middleware. */
function createV2Routes(options) {
	const router = createRouter(options);
	const serve = router.routes();
	return (ctx, next) => isV2Path(ctx.path) ? answer(ctx) : next();
	async function answer(ctx) {
		try {
			await serve(ctx, async () => refuseUnrouted(router, ctx));
		} catch (error) {
			const facts = {
				event: "v2.request_failed",
				err: error,
				path: ctx.path
			};
			if (options.log) options.log.error(facts, "a v2 request failed");
			else ctx.app.emit("error", error, ctx);
			sendFailure(ctx, error);
		}
	}
}
/**
* Returns every route below the prefix except health, which takes no parameters.
* @internal
*/
function v2Routes(options) {
	const handlers = {
		...createJobHandlers(options),
		...createAssetHandlers(options)
	};
	return Object.entries(handlers).map(([name, handle]) => {
		const [method = "", path = ""] = name.split(" ");
		return {
			method,
			path,
			handle
		};
	});
}
function createRouter(options) {
	const router = new Router({
		strict: true,
		sensitive: true
	});
	for (const { method, path, handle } of v2Routes(options)) {
		const methods = method === "GET" ? ["GET", "HEAD"] : [method];
		router.register(PREFIX$2 + path, methods, async (routed) => {
			const ctx = routed;
			const { params } = routed;
			const linked = callerByLink(options, ctx, params);
			const caller = linked ?? identifyCaller(options, ctx);
			if (caller === void 0) return sendV2Error(ctx, unknownCaller(ctx));
			const refusal = linked ? void 0 : refuseRate(options, caller);
			if (refusal) return sendV2Error(ctx, refusal);
			render$1(ctx, await handle({
				ctx,
				caller,
				params,
				links: linksFor(options, ctx, caller)
			}));
		});
	}
	router.register(`${PREFIX$2}/health`, ["GET", "HEAD"], async (routed) => {
		const health = await options.jobs.health();
		render$1(routed, health.ok ? ok({
			status: 200,
			json: health.value
		}) : health);
	});
	return router;
}
function linksFor({ addresses, signer }, ctx, { user }) {
	const sign = signer && ((assetId) => signer.sign({
		user,
		assetId
	}));
	return createLinkRewriter({
		address: addresses.of(ctx.req),
		sign
	});
}
/**
* Returns the caller of a signed link. The link is its own authorization: its holder may read this
* one asset in the name of its owner.
*/
function callerByLink({ signer }, ctx, { id = "" }) {
	if (!isSignedContent(ctx.url)) return void 0;
	const user = signer?.userOf(id, new URLSearchParams(ctx.querystring));
	return user === void 0 ? void 0 : { user };
}
/** Identifies the caller. A link that is not valid gives no access, but a key beside it may. */
function identifyCaller({ identify }, ctx) {
	if (isSignedContent(ctx.url) && !presentsKey(ctx.req)) return void 0;
	return identify(ctx);
}
/**
* Refuses calls above the caller's limit before their job is looked up: the answer does not reveal
* if the job exists.
*/
function refuseRate({ rate }, { user }) {
	const allowance = rate?.limiter.take(user, rate.perMinute);
	if (!rate || !allowance || allowance.ok) return void 0;
	const message = `The allowance of ${rate.perMinute} requests in a rolling minute is spent.`;
	const { retryAfterSeconds } = allowance;
	return v2Error(429, "rate_limited", message, { retryAfterSeconds });
}
/** Returns the error of an unknown caller. An invalid link reveals nothing about its target. */
function unknownCaller(ctx) {
	return isSignedContent(ctx.url) ? NO_SUCH_CONTENT : UNAUTHORIZED;
}
const NO_SUCH_CONTENT = v2Error(404, "not_found", "This link has expired or was altered, or its file is gone.");
const UNAUTHORIZED = v2Error(401, "unauthorized", "A valid key is needed: Authorization: Bearer.");
function render$1(ctx, answer) {
	if (!answer.ok) sendV2Error(ctx, answer.error);
	else if (answer.value !== "sent") sendReply(ctx, answer.value);
}
/** Refuses an unknown path, or a known path with another method. */
function refuseUnrouted(router, ctx) {
	const layers = router.match(ctx.path, ctx.method).path;
	const allowed = new Set(layers.flatMap((layer) => layer.methods));
	if (allowed.size === 0) return sendV2Error(ctx, v2Error(404, "not_found", "There is nothing here."));
	ctx.set("Allow", [...allowed].toSorted().join(", "));
	const message = `${ctx.method} is not possible here.`;
	sendV2Error(ctx, v2Error(405, "method_not_allowed", message));
}
const FAILURE = {
	status: 500,
	code: "upstream_error",
	message: "The job service could not serve this call."
};
/**
* Answers an internal error as the contract says. A response that has begun can only be cut off.
*/
function sendFailure(ctx, error) {
	if (ctx.res.headersSent) return void ctx.res.destroy();
	const { status, code, message, ...more } = storageProblem(error) ?? FAILURE;
	sendV2Error(ctx, v2Error(status, code, message, more));
}
// src/app/mount-v2.ts
/** The v2 routes of the embedded engine. Those of a remote service are passed through. */
function mountEmbeddedV2(services) {
	const { config, upstream, auth, logs, store, bodies, prompts, ledger, now } = services;
	if (config.upstream.kind !== "embedded") return [];
	const { externalJobs, markJobFetched } = prompts.life;
	return [createV2Routes({
		maxUploadBytes: config.maxUploadBytes,
		limitUploads: services.files.limitUploads,
		bodies,
		jobs: withPromptIds(upstream.runner.jobs, {
			livePrompts: prompts.live,
			ledger
		}),
		log: logs.log,
		spoolDir: store.dir.spool,
		startUpload: store.files.bucket?.startUpload,
		addresses: auth.addresses,
		rate: {
			limiter: createRateLimiter(now),
			perMinute: config.v2RequestsPerMinute
		},
		signer: createContentSigner({
			secret: store.dir.secret,
			now
		}),
		identify: (ctx) => auth.identify(ctx.req),
		onSubmit: (submitted) => externalJobs.importJob(externalJobOfEngine(submitted)),
		onFetch: markJobFetched
	})];
}
/** The models that run here. Those of a remote service are passed through. */
async function openEmbeddedRouter(services) {
	const { config, store, auth, upstream, ledger, logs, now, bodies } = services;
	if (config.upstream.kind !== "embedded") return void 0;
	const models = createLazyModelRouter(async () => {
		const { openEmbeddedModels } = await import("./open-models-B1uh26mk.js");
		return openEmbeddedModels({
			jobs: upstream.jobs,
			ledger,
			isLedgerShared: store.links !== void 0,
			log: logs.log,
			now,
			bodies,
			addresses: auth.addresses,
			keysFile: config.models.keysFile,
			limits: config.models.limits,
			secret: store.dir.secret,
			spoolDir: store.dir.spool,
			callerOf: (key) => auth.identify({
				headers: { "x-api-key": key },
				url: ""
			})
		});
	});
	if (config.models.keysFile !== void 0) await models.open();
	return models;
}
/** The v2 and model routes of a remote service, passed through unchanged. */
async function openPassThrough(services) {
	const { config, auth, logs, prompts, ledger } = services;
	const { upstream } = config;
	if (upstream.kind === "embedded") return void 0;
	const { createPassThrough } = await import("./pass-through-BB9Vm7Ht.js");
	const { url: baseUrl, key, routerPrefix, limits } = upstream;
	return createPassThrough({
		baseUrl,
		key,
		localToken: config.localToken,
		routerPrefix,
		authenticate: (request) => auth.authenticate(request),
		jobIdOf: createFindJobId({
			livePrompts: prompts.live,
			ledger
		}),
		log: logs.log,
		limits,
		onJobCall(observed) {
			if (observed.kind === "submitted") services.upstream.runner.noteSubmitted?.(observed.caller, observed.job);
			observeJobCall(prompts.life, observed);
		}
	});
}
/** Updates the v1 view of a job that a caller submits, cancels or reads through v2. */
function observeJobCall({ externalJobs, markJobFetched }, observed) {
	if (observed.kind === "fetched") return markJobFetched(observed);
	if (observed.kind === "cancelled") {
		externalJobs.recordCancel(observed.caller, observed.jobId);
		return;
	}
	externalJobOfService(observed).then((externalJob) => externalJob && externalJobs.importJob(externalJob));
}
// src/prompts/prompt-event-log.ts
/** Thrown when another process leads the prompt: this one must not append to its log. */
var LeadershipLost = class extends Error {
	constructor() {
		super("another process leads this prompt");
	}
};
/**
* Returns a handler for a rejection: it returns `instead` when leadership is lost, and rethrows any
* other error.
*/
function ifLeadershipLost(instead) {
	return (error) => {
		if (error instanceof LeadershipLost) return instead;
		throw error;
	};
}
/**
* The event log of a server that has the ledger alone: every entry is applied at once, and this
* process leads all prompts.
*/
function createLocalEventLog() {
	const subscribers = /* @__PURE__ */ new Map();
	return {
		async claim() {},
		takeOver: async () => true,
		stopLeading() {},
		async discard(key) {
			subscribers.delete(key);
		},
		subscribe: ({ key }, subscriber) => void subscribers.set(key, subscriber),
		hasAppliedEnd: () => false,
		async append(key, entry) {
			const subscriber = subscribers.get(key);
			if (entry.kind === "recorded" || entry.kind === "removed") subscribers.delete(key);
			const applied = subscriber?.apply(entry, 0);
			if (applied) await applied;
		},
		isLeader: () => true,
		markReceived() {},
		resultFetched() {},
		async requestCancel() {},
		isWatched: () => false,
		watch() {},
		isFollowed: () => true,
		async followUser() {},
		async whenCaughtUp() {},
		start: (handlers, live) => handlers.takeOverVacant(live.map(({ key }) => key)),
		async close() {}
	};
}
// src/app/replication.ts
/** Opens the prompt event log: of this process alone, or shared by all processes of this ledger. */
async function openPromptEventLog({ links, instance, useWriteTokens }, log) {
	if (!links) return createLocalEventLog();
	const { SharedEventLog } = await import("./shared-event-log-Xx4L9DK1.js");
	const promptEventLog = new SharedEventLog({
		links,
		instance,
		log
	});
	useWriteTokens(promptEventLog.leadership);
	return promptEventLog;
}
/** Connects the log panel with the other processes of this ledger, if there are any. */
async function connectLogs({ links, instance }, { feed, buffer, log }) {
	if (!links) return;
	const { openSharedLog } = await import("./shared-log-lines-DQfQpYkF.js");
	const handlers = {
		...feed.handlers,
		entries: (user) => buffer.entries(user)
	};
	feed.connect(await openSharedLog({
		links,
		instance,
		handlers,
		log
	}));
}
/**
* Opens the counter of prompts. It continues where an earlier process stopped, since prompts of
* that process may still have to run.
*/
async function openPromptCounter({ links, ledger }) {
	const first = Math.floor(await ledger.prompts.highestNumber() + 1);
	if (!links) {
		let number = first;
		return { next: () => number++ };
	}
	const { openSharedCounter } = await import("./prompt-counter-DX93ZiNJ.js");
	return openSharedCounter(links, first);
}
/** Prepares what a new socket of a user must get: the current state and undelivered frames. */
function createSocketPreparation({ hub, prompts }) {
	return async (user) => {
		await prompts.whenCurrent(user);
		await prompts.whenCurrent(user);
		await hub.channels.preload(user);
	};
}
// src/app/request-entry.ts
/** The route labels of passed-through calls in the metrics, on the fast path and outside it. */
const PASS_THROUGH_ROUTES = {
	v2: "/api/v2/*",
	router: "/v1/models/*"
};
/**
* Passes small calls to the remote service without the framework, which costs as much as the call
* itself. They are guarded, logged and counted like other calls. The app answers the unusual ones.
*/
function createRequestEntry({ serveWithApp, passThrough, guard, trafficRecorder, ...options }) {
	const { sessionRecorder, trafficLog, tracing, corsOrigin } = options;
	const needsApp = [
		sessionRecorder,
		trafficLog,
		tracing,
		corsOrigin
	].some((observer) => observer !== void 0);
	if (passThrough === void 0 || needsApp) return recordAndServe;
	return (req, res) => {
		if (trafficRecorder.isRecording()) return recordAndServe(req, res);
		const fastCall = passThrough.fastCall({
			req,
			res
		});
		if (fastCall === void 0 || guard(req)) serveWithApp(req, res);
		else answerFast(fastCall, req, res);
	};
	function recordAndServe(req, res) {
		if (trafficRecorder.isRecording()) trafficRecorder.beginCall(req, res);
		serveWithApp(req, res);
	}
	async function answerFast(fastCall, req, res) {
		const startedAt = performance.now();
		const id = requestId(req.headers["x-request-id"]?.toString());
		const client = options.addresses.clientOf(req);
		const own = [
			"X-Request-Id",
			id,
			"X-Content-Type-Options",
			"nosniff"
		];
		const caller = await fastCall.send(own).catch(() => void 0);
		if (caller === void 0) return serveWithApp(req, res);
		const { method = "", url = "" } = req;
		const status = res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST;
		const { user } = caller;
		logRequest(options.requestLog, {
			id,
			user,
			client,
			method,
			url,
			status,
			startedAt,
			v2: []
		});
		options.metrics.note(req, res, {
			route: PASS_THROUGH_ROUTES[fastCall.api],
			startedAt
		});
	}
}
/**
* The status in the log for a client that disconnected before its answer, as other servers use it.
*/
const CLIENT_CLOSED_REQUEST = 499;
// src/http/content-encoding.ts
/** The content codings of compressed texts, best first. */
const ENCODINGS = ["br", "gzip"];
const BROTLI = { params: { [constants$2.BROTLI_PARAM_QUALITY]: 5 } };
/** The compressors. Both work on threads of their own. */
const COMPRESS = {
	br: (bytes) => promisify(brotliCompress)(bytes, BROTLI),
	gzip: promisify(gzip)
};
/** Clients send the same header with every call. */
const cache = new LRUCache({ max: 200 });
/**
* Returns the codings that a client accepts, best first. Without the header, none, whatever the
* standard allows.
*/
function encodingsFor(ctx) {
	const { "accept-encoding": header = "" } = ctx.headers;
	const text = header.toString();
	const cached = cache.get(text);
	if (cached) return cached;
	const accepted = ENCODINGS.filter((name) => text !== "" && ctx.acceptsEncodings(name) === name);
	cache.set(text, accepted);
	return accepted;
}
// src/pages/home-page.ts
/** `bundle-page.js` writes it. */
const PAGE_FOLDER = packageUrl("dist/page/");
/** Names of the files that the page loads. */
function fileNames() {
	return readdirSync(PAGE_FOLDER).filter((name) => /\.(js|css|svg)$/.test(name));
}
/** Reads the page and all its files; they are small. */
function readPage() {
	return {
		html: readPageFile("index.html"),
		files: new Map(fileNames().map((name) => [name, readPageFile(name)]))
	};
}
/** The path of the page; its files are below. */
/** v1's front end is below its second prefix, too: clients with such a base address probe it for a 200. */
const START_PATHS = /* @__PURE__ */ new Set(["/", "/api/"]);
const PAGE_PATH = "/holdover";
/** Where earlier versions had the usage report: the page shows that part of it there. */
const REPORT_PATH$1 = `${PAGE_PATH}/report`;
/** Every path of Holdover's own page but `/`. */
function pagePaths() {
	const names = [
		"report",
		"report.json",
		...fileNames()
	];
	return /* @__PURE__ */ new Set([PAGE_PATH, ...names.map((name) => `${PAGE_PATH}/${name}`)]);
}
function readPageFile(name) {
	return {
		contentType: contentType(extname(name)) || "application/octet-stream",
		text: readFileSync(new URL(name, PAGE_FOLDER), "utf8"),
		compressed: /* @__PURE__ */ new Map()
	};
}
/** No foreign and no inline resources: the page shows names and errors that others chose. */
const CONTENT_SECURITY_POLICY = [
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self' blob:",
	"media-src 'self' blob:",
	"connect-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'"
].join("; ");
/**
* Holdover's own page, served before authentication. It is at `/` and `/api/`, which v1 clients probe for a
* 200, unless a mounted front end has these; and always at `/holdover`.
*/
function homePage({ addresses, ...facts }) {
	let page;
	const read = () => page ??= readPage();
	const own = [PAGE_PATH, REPORT_PATH$1];
	const pages = new Set(facts.path === PAGE_PATH ? own : [...own, ...START_PATHS]);
	return (ctx, next) => {
		if (ctx.method !== "GET" && ctx.method !== "HEAD") return next();
		if (pages.has(ctx.path)) return sendPage(ctx, fillIn(read().html, {
			...facts,
			...toOrigins(addresses.of(ctx.req), ctx.path)
		}));
		if (!ctx.path.startsWith(`${PAGE_PATH}/`)) return next();
		const file = read().files.get(ctx.path.slice(10));
		if (file) return sendPage(ctx, file);
		sendEmpty(ctx, 404);
	};
}
/** Browsers must revalidate each time: after an update, page and scripts must match. */
async function sendPage(ctx, file) {
	ctx.set("Content-Security-Policy", CONTENT_SECURITY_POLICY);
	ctx.set("Referrer-Policy", "no-referrer");
	ctx.set("Cache-Control", "no-cache");
	ctx.vary("Accept-Encoding");
	ctx.status = 200;
	const [encoding] = file.text.length < MIN_COMPRESSED_CHARS ? [] : encodingsFor(ctx);
	const tag = createHash("sha256").update(file.text).digest("base64url");
	ctx.etag = encoding === void 0 ? tag : `${tag}-${encoding}`;
	if (isCopyCurrent(ctx.req, { etag: ctx.response.get("ETag") })) {
		ctx.status = 304;
		return;
	}
	if (encoding !== void 0) ctx.set("Content-Encoding", encoding);
	ctx.body = encoding === void 0 ? file.text : await compressedBy(encoding, file);
	ctx.set("Content-Type", file.contentType);
}
/** A compressed answer of less is hardly smaller. */
const MIN_COMPRESSED_CHARS = 2048;
function compressedBy(encoding, { text, compressed }) {
	const bytes = compressed.get(encoding) ?? COMPRESS[encoding](Buffer.from(text));
	compressed.set(encoding, bytes);
	return bytes;
}
/**
* With a prefix the page names its files from the root: some proxies treat `/prefix` as `/prefix/`.
*/
function toOrigins(address, path) {
	const origin = address?.base ?? "";
	const nearRoot = path === REPORT_PATH$1 || path === "/api/" ? "../" : "";
	const root = address === void 0 || address.prefix === "" ? nearRoot : `${address.prefix}/`;
	return {
		origin,
		socket: origin.replace(/^http/, "ws"),
		root
	};
}
/** Replaces `{{name}}` in the page by the fact of that name. */
function fillIn(page, facts) {
	const text = page.text.replace(/\{\{(\w+)\}\}/g, (_, name) => escapeHtml(facts[name] ?? ""));
	return {
		...page,
		text
	};
}
function escapeHtml(text) {
	return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
// src/v1/server-info.ts
/** Routes a front end calls at its start: what the server is, can and contains. */
const serverInfoRoutes = routesFor({
	"GET /features": ({ features }, { ctx }) => sendJson(ctx, features),
	"GET /system_stats": ({ version }, { ctx }) => sendJson(ctx, systemStats(version)),
	"GET /extensions": async ({ extensions }, { ctx }) => sendJson(ctx, await extensions?.() ?? []),
	"GET /workflow_templates": async ({ workflowTemplates }, { ctx, caller }) => sendJson(ctx, await workflowTemplates?.(caller) ?? {}),
	/** Hosted front ends ask if the account may be used. */
	"GET /api/user": (_, { ctx, caller }) => sendJson(ctx, {
		id: caller.user,
		status: "active"
	}),
	"GET /embeddings": (_, { ctx }) => sendJson(ctx, []),
	"GET /i18n": sendEmptyObject,
	"GET /global_subgraphs": sendEmptyObject,
	"GET /node_replacements": sendEmptyObject,
	"GET /internal/folder_paths": sendEmptyObject
});
function sendEmptyObject(_, { ctx }) {
	sendJson(ctx, {});
}
/**
* The version of the v1 server that Holdover behaves like. Clients read it as numbers between dots.
*/
const V1_VERSION = "0.3.64";
/**
* The versions of the packages that v1 requires. Clients in typed languages fail on a `null` here.
*/
const V1_PACKAGES = {
	frontEnd: "1.27.10",
	templates: "0.1.95"
};
/**
* Returns `/system_stats`: facts about this process in v1's fields. There is neither Python nor a
* graphics card here, but clients want a text for the first and numbers for the second. The command
* line is left out, since it may hold a token.
*/
function systemStats(version) {
	const total = Math.min(totalmem(), process.constrainedMemory() || Infinity);
	const free = Math.min(freemem(), total);
	return {
		system: {
			os: process.platform === "win32" ? "nt" : "posix",
			ram_total: total,
			ram_free: free,
			comfyui_version: V1_VERSION,
			required_frontend_version: V1_PACKAGES.frontEnd,
			installed_templates_version: null,
			required_templates_version: V1_PACKAGES.templates,
			python_version: `n/a (Holdover ${version}, Node.js ${process.version})`,
			pytorch_version: "n/a",
			embedded_python: false,
			argv: ["holdover"]
		},
		devices: [{
			name: "cpu",
			type: "cpu",
			index: 0,
			vram_total: total,
			vram_free: free,
			torch_vram_total: total,
			torch_vram_free: free
		}]
	};
}
// src/v1/routing/body.ts
/** Reads a body as JSON, whatever its content type: v1 clients send any label. */
async function readJson(ctx, bodyReader, graphMember) {
	const result = await bodyReader.read(ctx, graphMember === void 0 ? {} : { graphMember });
	if (result.ok) return result.value;
	throw bodyError(result, "invalid_json");
}
/** Reads a body as JSON; returns `undefined` for a text that is not JSON. */
async function readJsonOrUndefined(ctx, bodyReader) {
	const result = await bodyReader.read(ctx);
	if (result.ok) return result.value;
	if (result.isSyntax) return void 0;
	throw bodyError(result, "invalid_json");
}
/** Returns the error of a body that was refused. `malformed`: the code of a 400. */
function bodyError(refusal, malformed) {
	const { status, message } = refusal;
	if (status === 413) return bodyErrorText(refusal);
	const code = status === 400 ? malformed : faultOf(status).code;
	return errorOf$1(refusal, plainError(code, message));
}
/** Returns the error of a refused body as plain text. */
function bodyErrorText(refusal) {
	return errorOf$1(refusal, refusal.message);
}
function errorOf$1({ status, isSyntax, retryAfterSeconds }, fault) {
	const retryHeaders = retryAfterHeader(retryAfterSeconds);
	const headers = isSyntax ? retryHeaders : {
		...retryHeaders,
		Connection: "close"
	};
	return new V1Error(status, fault, { headers });
}
/** The maximum number of ids in one call. No client shows a longer queue. */
const MAX_IDS = 1e4;
/**
* Returns the different ids in a list of the body. As in v1, a list or an object in it names no
* prompt.
*/
function readIdList(value, name) {
	if (value === void 0 || value === null) return [];
	if (!Array.isArray(value) || value.length > MAX_IDS) throw invalidRequest(`"${name}" must be a list of at most ${MAX_IDS} ids.`);
	const ids = value.flatMap((id) => isContainer(id) ? [] : String(id));
	return [...new Set(ids.map((id) => requirePrintable(id, name)))];
}
/**
* Returns the ids in a member that v1 iterates over: the characters of a text, the keys of an
* object.
*/
function readNamedIds(value, name) {
	if (typeof value === "string") return readIdList(Array.from(value), name);
	return readIdList(isJsonObject(value) ? Object.keys(value) : value, name);
}
function isContainer(value) {
	return Array.isArray(value) || isJsonObject(value);
}
/** Returns the body as a JSON object; any other value is refused with 400. */
function requireObject(value) {
	if (isJsonObject(value)) return value;
	throw invalidRequest("The body must be a JSON object.");
}
/** The form of an integer that Python's `int()` reads. */
const PYTHON_INTEGER = /^\s*[+-]?\d(_?\d){0,99}\s*$/;
function clamped(value) {
	const most = Number.MAX_SAFE_INTEGER;
	return Math.max(-most, Math.min(most, value));
}
/** Reads an integer of the query. The original answers 500 to any other value. */
function integerParam(query, name) {
	const text = query.get(name);
	if (text === null) return void 0;
	if (PYTHON_INTEGER.test(text)) return clamped(Number(text.replaceAll("_", "")));
	throw invalidRequest(`"${name}" must be an integer.`);
}
const MAX_USERS$1 = 100;
const LEVELS = /* @__PURE__ */ new Set([
	"info",
	"warn",
	"error",
	"fatal"
]);
function createLogBuffer(options) {
	const startEntry = {
		t: new Date(options.now()).toISOString(),
		m: `${options.startLine}\n`
	};
	const entriesByUser = new LRUCache({ max: MAX_USERS$1 });
	function record(level, given, message) {
		const fields = typeof given === "object" && given !== null ? given : {};
		const { user } = fields;
		if (typeof user !== "string") return;
		const text = message ?? String(given);
		if (!isShownToClients(fields)) return;
		const entry = entryFrom(level, fields, text);
		const userEntries = entriesByUser.get(user) ?? [];
		userEntries.push(entry);
		if (userEntries.length > 300) userEntries.shift();
		entriesByUser.set(user, userEntries);
		options.onEntry(user, entry);
	}
	/** Only fields a client may see are stored; the text is made when it is read, which is rare. */
	function entryFrom(level, fields, text) {
		const atMs = options.now();
		const { event, method, path, status, ms, promptId } = fields;
		const shown = {
			event,
			method,
			url: keptUrl(fields.url),
			path,
			status,
			ms,
			promptId
		};
		return () => ({
			t: new Date(atMs).toISOString(),
			m: `${lineText$1(level, shown, text)}\n`
		});
	}
	return {
		/** The same log; every line is also recorded for its user. */
		wrap: (log) => new Proxy(log, { get(target, name, receiver) {
			const member = Reflect.get(target, name, receiver);
			if (typeof name !== "string" || !LEVELS.has(name)) return member;
			return ((fields, message) => {
				record(name, fields, message);
				Reflect.apply(member, target, message === void 0 ? [fields] : [fields, message]);
			});
		} }),
		entries: (user) => [startEntry, ...(entriesByUser.get(user) ?? []).map((entry) => entry())]
	};
}
const MAX_CHARS = 1e3;
/**
* True when a line is of interest to a client. Pollers call many times a second: calls that only read and
* succeed would push out everything else.
*/
function isShownToClients({ event, method, url, status }) {
	if (event !== "request.answered") return true;
	if ((method === "GET" || method === "HEAD" || method === "OPTIONS") && (Number(status) < 400 || status === 404)) return false;
	return !String(url).startsWith("/internal/logs");
}
/** A line of the log in words a client may see. */
function lineText$1(level, fields, message) {
	if (fields.event === "request.answered") return callText(fields);
	if (fields.event === "prompt.finished") return `Prompt executed in ${(Number(fields.ms) / 1e3).toFixed(2)} seconds`;
	if (fields.event === "route.unknown") return withoutControlCharacters(`${String(fields.method)} ${String(fields.path)}: unknown`);
	const promptSuffix = typeof fields.promptId === "string" ? ` (prompt ${fields.promptId})` : "";
	return withoutControlCharacters(`${level === "info" ? "" : `${level.toUpperCase()}: `}${message}${promptSuffix}`);
}
function callText({ method, url, status, ms }) {
	const path = String(url).split("?", 1)[0] ?? "";
	if (/^(\/api)?\/prompt$/.test(path) && status === 200) return "got prompt";
	return withoutControlCharacters(`${String(method)} ${path} -> ${String(status)} (${String(ms)} ms)`);
}
/** A slice is a view that holds the whole address in memory, which may have 16 KiB; this is a copy. */
function keptUrl(url) {
	if (typeof url !== "string" || url.length <= MAX_CHARS) return url;
	return Buffer.from(url.slice(0, MAX_CHARS)).toString();
}
function withoutControlCharacters(text) {
	return text.replaceAll(/\p{Cc}/gu, " ").slice(0, MAX_CHARS);
}
// src/observability/log-subscriptions.ts
/** v1 sends the size of its terminal; this is its size without one. */
const TERMINAL_SIZE = {
	cols: 80,
	rows: 24
};
/** Lines that come close together share a frame. */
const BATCH_DELAY_MS = 100;
const MAX_ENTRIES_PER_FRAME = 300;
const MAX_SUBSCRIPTIONS = 2e3;
function createLogFeed(options) {
	const subscriptions = new LRUCache({ max: MAX_SUBSCRIPTIONS });
	const pending = /* @__PURE__ */ new Map();
	let timer;
	/** `undefined`: this process is alone. */
	let sharedLog;
	function flush() {
		timer = void 0;
		const lines = [...pending];
		pending.clear();
		for (const [user, entries] of lines) if (sendToSubscribers(user, entries) > 0) sharedLog?.publish(user, entries);
	}
	/** Sends entries to the subscribed sockets here; returns the number of subscriptions at all processes. */
	function sendToSubscribers(user, entries) {
		const subscribed = [...subscriptions.values()].filter((one) => one.user === user);
		for (const subscription of subscribed) send(subscription, entries);
		return subscribed.length;
	}
	function add(user, clientId) {
		const key = keyOf(user, clientId);
		if (!subscriptions.has(key)) subscriptions.set(key, {
			user,
			clientId,
			hasSize: false
		});
	}
	function remove(user, clientId) {
		subscriptions.delete(keyOf(user, clientId));
	}
	/** The size is sent when it changes, which is once. */
	function send(subscription, entries) {
		const size = subscription.hasSize ? null : TERMINAL_SIZE;
		subscription.hasSize = true;
		const data = {
			entries,
			size
		};
		options.sendTo(subscription.user, subscription.clientId, {
			type: "logs",
			data
		});
	}
	return {
		/** Resolves when all processes know. */
		async subscribe(user, clientId) {
			add(user, clientId);
			await sharedLog?.subscribe(user, clientId);
		},
		async unsubscribe(user, clientId) {
			remove(user, clientId);
			await sharedLog?.unsubscribe(user, clientId);
		},
		/** The last lines of all other processes, in no order. */
		gather: async (user) => await sharedLog?.gather(user) ?? [],
		/** Connects to the logs of other processes. */
		connect: (other) => void (sharedLog = other),
		handlers: {
			onSubscribe: add,
			onUnsubscribe: remove,
			onEntries: (...lines) => void sendToSubscribers(...lines),
			subscriptions: () => [...subscriptions.values()].map(({ user, clientId }) => [user, clientId])
		},
		push(user, entry) {
			if (subscriptions.size === 0) return;
			const entries = pending.get(user) ?? [];
			entries.push(entry());
			if (entries.length > MAX_ENTRIES_PER_FRAME) entries.shift();
			pending.set(user, entries);
			timer ??= setTimeout(flush, BATCH_DELAY_MS).unref();
		},
		close() {
			clearTimeout(timer);
			sharedLog?.close();
		}
	};
}
function keyOf(user, clientId) {
	return JSON.stringify([user, clientId]);
}
// src/v1/logs.ts
const MAX_CLIENT_ID_CHARS = 128;
/** The log of this server and of the servers beside it, as far as it is about the caller. */
const logRoutes = routesFor({
	/** Sends the log as one JSON string, as v1 does. */
	async "GET /internal/logs"(services, { ctx, caller }) {
		const lines = (await collectEntries(services, caller.user)).map(({ t, m }) => `${t} - ${m}`);
		sendJson(ctx, lines.join(""));
	},
	async "GET /internal/logs/raw"(services, { ctx, caller }) {
		sendJson(ctx, {
			entries: await collectEntries(services, caller.user),
			size: TERMINAL_SIZE
		});
	},
	async "PATCH /internal/logs/subscribe"(services, { ctx, caller }) {
		const body = await readJson(ctx, services.bodies);
		if (!isJsonObject(body) || !("clientId" in body) || !("enabled" in body)) throw new V1Error(400, plainError("missing_key", "clientId and enabled are both needed."));
		const { clientId, enabled } = body;
		if (typeof clientId !== "string" || clientId.length > MAX_CLIENT_ID_CHARS) throw new V1Error(400, plainError("invalid_client_id", "clientId is the id of a socket."));
		requirePrintable(clientId, "clientId");
		if (enabled) await services.logFeed.subscribe(caller.user, clientId);
		else await services.logFeed.unsubscribe(caller.user, clientId);
		sendEmpty(ctx);
	}
});
async function collectEntries({ logBuffer, logFeed }, user) {
	return [...await logFeed.gather(user), ...logBuffer.entries(user)].toSorted((a, b) => a.t < b.t ? -1 : Number(a.t > b.t)).slice(-300);
}
// src/v1/models.ts
/** v1's model folders in its order, and the node input that offers a folder's files by name. */
const MODEL_FOLDERS = {
	checkpoints: ["CheckpointLoaderSimple", "ckpt_name"],
	configs: ["CheckpointLoader", "config_name"],
	loras: ["LoraLoader", "lora_name"],
	vae: ["VAELoader", "vae_name"],
	text_encoders: ["CLIPLoader", "clip_name"],
	diffusion_models: ["UNETLoader", "unet_name"],
	clip_vision: ["CLIPVisionLoader", "clip_name"],
	style_models: ["StyleModelLoader", "style_model_name"],
	embeddings: void 0,
	diffusers: ["DiffusersLoader", "model_path"],
	vae_approx: void 0,
	controlnet: ["ControlNetLoader", "control_net_name"],
	gligen: ["GLIGENLoader", "gligen_name"],
	upscale_models: ["UpscaleModelLoader", "model_name"],
	custom_nodes: void 0,
	hypernetworks: ["HypernetworkLoader", "hypernetwork_name"],
	photomaker: ["PhotoMakerLoader", "photomaker_model_name"],
	classifiers: void 0,
	model_patches: ["ModelPatchLoader", "name"],
	audio_encoders: ["AudioEncoderLoader", "audio_encoder_name"]
};
const FOLDER_NAMES = Object.keys(MODEL_FOLDERS);
const NOT_MODELS = /* @__PURE__ */ new Set(["configs", "custom_nodes"]);
const EXPERIMENT_FOLDERS = FOLDER_NAMES.filter((name) => !NOT_MODELS.has(name));
/** Lists of models, read from the node definitions: the files themselves are at the upstream. */
const modelRoutes = routesFor({
	"GET /models": (_, { ctx }) => sendJson(ctx, FOLDER_NAMES),
	async "GET /models/:folder"(services, { ctx, caller, params }) {
		sendJson(ctx, await modelFilesIn(services, caller, folderOf$1(FOLDER_NAMES, params)));
	},
	"GET /experiment/models": (_, { ctx }) => sendJson(ctx, HOSTED_FOLDERS),
	/** Lists the files without sizes and times, which are known only where the files are. */
	async "GET /experiment/models/:folder"(services, { ctx, caller, params }) {
		const files = await modelFilesIn(services, caller, folderOf$1(EXPERIMENT_FOLDERS, params));
		if (files.length === 0 && rulesFor(ctx).emptyModelFolder === "not-found") throw emptyError(404, "There is no model in this folder.");
		sendJson(ctx, files.map((name) => ({
			name,
			pathIndex: 0
		})));
	}
});
/** The folders in the form of the hosted API. Paths of this machine are not shown. */
const HOSTED_FOLDERS = EXPERIMENT_FOLDERS.map((name) => ({
	name,
	folders: [name]
}));
function folderOf$1(folders, { folder = "" }) {
	if (!folders.includes(folder)) throw emptyError(404, "There is no such folder.");
	return folder;
}
async function modelFilesIn({ definitions }, caller, folder) {
	const [className, input] = MODEL_FOLDERS[folder] ?? [];
	if (className === void 0 || input === void 0) return [];
	const choices = choicesOf((await definitions.info(caller))[className]?.input["required"]?.[input]);
	return folder === "diffusers" ? choices : choices.filter((name) => /\.\w+$/.test(name));
}
/**
* Returns the choices of a combo. An older combo is its list of choices; a newer one says `COMBO`
* and has the choices in its options.
*/
function choicesOf(definition) {
	const [type, options] = Array.isArray(definition) ? definition : [];
	const choices = Array.isArray(type) ? type : isJsonObject(options) ? options["options"] : [];
	return Array.isArray(choices) ? choices.filter((name) => typeof name === "string") : [];
}
// src/http/json-stream.ts
/**
* Up to this size an answer is one text with its length. A longer one is sent as the client accepts
* it.
*/
const MAX_WHOLE_CHARS = 1048576;
const CHUNK_CHARS = 65536;
/**
* Sends JSON text in pieces. Only one piece is in memory: the next is made when the client has
* accepted the previous one.
*/
async function sendJsonPieces(ctx, pieces) {
	let start = "";
	for (;;) {
		const { value, done } = await pieces.next();
		if (done === true) return sendJsonText(ctx, start);
		start += value;
		if (start.length > MAX_WHOLE_CHARS) break;
	}
	const rest = Readable.from(chunks(start, pieces), { objectMode: false });
	rest.once("error", () => ctx.res.destroy());
	ctx.status = 200;
	ctx.set("Content-Type", "application/json; charset=utf-8");
	ctx.body = rest;
	ctx.set("Content-Type", "application/json; charset=utf-8");
}
async function* chunks(start, pieces) {
	const writer = new PythonTextWriter();
	try {
		yield* slices(start, writer);
		start = "";
		for (;;) {
			const { value, done } = await pieces.next();
			if (done === true) return;
			yield* slices(value, writer);
		}
	} finally {
		await pieces.return?.();
	}
}
function* slices(text, writer) {
	for (let from = 0; from < text.length; from += CHUNK_CHARS) yield Buffer.from(writer.write(text.slice(from, from + CHUNK_CHARS)), "latin1");
}
/** Sends text or bytes that are JSON already. */
function sendJsonText(ctx, text) {
	ctx.status = 200;
	ctx.set("Content-Type", "application/json; charset=utf-8");
	ctx.body = typeof text === "string" ? toPythonText(text) : text;
}
// src/definitions/user-object-info.ts
const CACHE_BYTES$1 = 134217728;
const MAX_VARIANT_CHARS = 1048576;
const MAX_CONCURRENT$1 = 2;
const NO_UPLOADS = [];
/** Fills upload-flagged inputs with the user's files; all else is sent as its source wrote it. */
function createUserObjectInfo(options) {
	const uploadsOf = createUploadLists(options.files);
	const withSlot = createSemaphore(MAX_CONCURRENT$1);
	const namesByText = new LRUCache({
		maxSize: MAX_VARIANT_CHARS,
		sizeCalculation: (_name, text) => text.length
	});
	const uploadClasses = /* @__PURE__ */ new WeakMap();
	const bodies = new LRUCache({
		maxSize: CACHE_BYTES$1,
		sizeCalculation: sizeOf$3
	});
	const compressedBodies = new LRUCache({
		maxSize: CACHE_BYTES$1,
		sizeCalculation: sizeOf$3,
		fetchMethod: (key, _stale, { context }) => withSlot(() => COMPRESS[encodingOf(key)](context))
	});
	const variantNames = /* @__PURE__ */ new WeakMap();
	/**
	* The same text has the same name for every user: definitions and the files that can be chosen.
	*/
	const variantNameOf = ({ version }, uploads) => {
		const last = variantNames.get(uploads);
		if (last?.version === version) return last.name;
		const text = JSON.stringify([version, uploads]);
		const name = namesByText.get(text) ?? digestOf$1(text);
		namesByText.set(text, name);
		variantNames.set(uploads, {
			version,
			name
		});
		return name;
	};
	const uploadClassesOf = (definitions) => {
		const known = uploadClasses.get(definitions) ?? findUploadClasses(definitions);
		uploadClasses.set(definitions, known);
		return known;
	};
	const bodyFor = (key, definitions, uploads) => {
		const known = bodies.get(key) ?? joinMembers(definitions, uploadClassesOf(definitions), uploads);
		bodies.set(key, known);
		return known;
	};
	return {
		/** Every class. Users whose files make no difference share the bytes. */
		async everyClass(definitions, user) {
			const uploads = uploadClassesOf(definitions).size > 0 ? await uploadsOf(user) : NO_UPLOADS;
			const key = variantNameOf(definitions, uploads);
			const body = bodyFor(key, definitions, uploads);
			return {
				etag: `"${key}"`,
				body,
				async compressed(encoding) {
					const compressedBody = await compressedBodies.fetch(`${key}-${encoding}`, { context: body });
					return {
						etag: `"${key}-${encoding}"`,
						body: compressedBody ?? await COMPRESS[encoding](body)
					};
				}
			};
		},
		/** One class by its name, or `{}`: v1 answers 200 for an unknown class. */
		async oneClass(definitions, user, name) {
			const member = definitions.members.get(name);
			if (!member) return tagged(Buffer.from("{}"));
			if (!uploadClassesOf(definitions).has(name)) return tagged(inBraces([member]));
			return tagged(inBraces([withUploads(definitions, name, await uploadsOf(user))]));
		}
	};
}
function sizeOf$3({ length }) {
	return length + 1;
}
function encodingOf(key) {
	return key.endsWith("-br") ? "br" : "gzip";
}
function tagged(body) {
	return {
		body,
		etag: `"${digestOf$1(body)}"`
	};
}
function digestOf$1(content) {
	return createHash("sha256").update(content).digest("base64url").slice(0, 27);
}
/** The classes with a file chooser; most are recognised by their text alone. */
function findUploadClasses({ members, info }) {
	const names = [...members].flatMap(([name, member]) => {
		const known = member.includes("_upload\"") ? info[name] : void 0;
		return known && takesUploads(known) ? [name] : [];
	});
	return new Set(names);
}
function joinMembers(definitions, uploadClasses, uploads) {
	return inBraces(Array.from(definitions.members, ([name, member]) => uploadClasses.has(name) ? withUploads(definitions, name, uploads) : member));
}
function withUploads({ info, members }, name, uploads) {
	const known = info[name];
	if (!known) return members.get(name) ?? Buffer.alloc(0);
	return memberText(name, withUploadChoices(known, uploads));
}
function inBraces(members) {
	const comma = Buffer.from(", ");
	const parts = members.flatMap((member, index) => index === 0 ? [member] : [comma, member]);
	return Buffer.concat([
		Buffer.from("{"),
		...parts,
		Buffer.from("}")
	]);
}
/** The kinds of file an upload button offers. */
const MEDIA_TYPES_BY_FLAG = {
	image_upload: ["image"],
	audio_upload: ["audio", "video"],
	video_upload: ["video"]
};
const OFFERED_MEDIA_TYPES = new Set(Object.values(MEDIA_TYPES_BY_FLAG).flat());
/**
* Files directly in the input folder; those in subfolders are valid but not listed. A ledger that
* remembers a list hands out the same one until it changes, and so does this.
*/
function createUploadLists(files) {
	const cache = /* @__PURE__ */ new WeakMap();
	return async (user) => {
		const rows = await files.list(user, "input");
		const uploads = cache.get(rows) ?? offeredNames(rows);
		cache.set(rows, uploads);
		return uploads;
	};
}
function offeredNames(rows) {
	return rows.filter(({ subfolder }) => subfolder === "").map(({ filename }) => filename).filter((name) => OFFERED_MEDIA_TYPES.has(mediaTypeOf(name))).toSorted();
}
/** True when a class lets its user choose among uploaded files. */
function takesUploads({ input }) {
	return Object.values(input).some((group) => Object.values(group).some((spec) => mediaTypesOf(spec) !== void 0));
}
/** The class with the files of one user, instead of those its source listed. */
function withUploadChoices(info, files) {
	const groups = Object.entries(info.input).map(([name, group]) => {
		const specs = Object.entries(group).map(([key, spec]) => [key, withChoices(spec, files)]);
		return [name, Object.fromEntries(specs)];
	});
	return {
		...info,
		input: Object.fromEntries(groups)
	};
}
/** A legacy combo is a list instead of a type; a newer one has the list under `options`. */
function withChoices(spec, files) {
	const mediaTypes = mediaTypesOf(spec);
	if (mediaTypes === void 0 || !isList(spec)) return spec;
	const names = files.filter((name) => mediaTypes.includes(mediaTypeOf(name)));
	const [type, options] = spec;
	if (isList(type)) return [names, ...spec.slice(1)];
	if (!isJsonObject(options) || !isList(options["options"])) return spec;
	return [type ?? null, {
		...options,
		options: names
	}];
}
/** A combo over another folder than the input folder fetches its own list. */
function mediaTypesOf(spec) {
	const options = isList(spec) ? spec[1] : void 0;
	if (!isJsonObject(options) || (options["image_folder"] ?? "input") !== "input") return void 0;
	const flag = Object.keys(MEDIA_TYPES_BY_FLAG).find((name) => options[name] === true);
	return flag === void 0 ? void 0 : MEDIA_TYPES_BY_FLAG[flag];
}
function mediaTypeOf(filename) {
	return contentTypeOf(filename)?.split("/", 1)[0] ?? "";
}
function isList(value) {
	return Array.isArray(value);
}
// src/v1/object-info.ts
/** The routes of the node classes: all of them, or one by its name. */
function objectInfoRoutes({ definitions: source, files }) {
	return routesOf({
		source,
		userObjectInfo: createUserObjectInfo({ files })
	});
}
const routesOf = routesFor({
	/** Sends every class, or 304 when the client's copy is current. */
	async "GET /object_info"({ source, userObjectInfo }, request) {
		const { ctx, caller } = request;
		const known = await fetchDefinitions(source, request);
		const definitions = shownDefinitions(known, ctx);
		const variant = await userObjectInfo.everyClass(definitions, caller.user);
		const { etag } = variant;
		const [encoding] = encodingsFor(ctx);
		ctx.set({
			...headersOf$1(known),
			Vary: known.forPrograms ? VARIES_BY : "Accept-Encoding"
		});
		if (matchesEtag(ctx.get("If-None-Match"), etag)) {
			ctx.set("ETag", encoding === void 0 ? etag : etag.replace(/"$/, `-${encoding}"`));
			return sendEmpty(ctx, 304);
		}
		const served = encoding === void 0 ? variant : await variant.compressed(encoding);
		ctx.set("ETag", served.etag);
		if (encoding !== void 0) ctx.set("Content-Encoding", encoding);
		ctx.set("Content-Type", "application/json; charset=utf-8");
		ctx.body = served.body;
	},
	async "GET /object_info/:name"({ source, userObjectInfo }, request) {
		const { ctx, caller, params } = request;
		const known = await fetchDefinitions(source, request);
		ctx.set(headersOf$1(known));
		const shown = known.forPrograms ?? known.definitions;
		const { name = "" } = params;
		const served = await userObjectInfo.oneClass(shown, caller.user, name);
		ctx.set("ETag", served.etag);
		if (matchesEtag(ctx.get("If-None-Match"), served.etag)) return sendEmpty(ctx, 304);
		sendJsonText(ctx, served.body);
	}
});
/**
* Returns the definitions to show. Front ends, and a Holdover in front of this one, offer every
* class that is listed, so they get those that run.
*/
function shownDefinitions({ definitions, forPrograms }, { req }) {
	return isPageCall(req) || isBrowser(req) || isOwnCall(req) ? definitions : forPrograms ?? definitions;
}
const VARIES_BY = "Accept-Encoding, User-Agent, Sec-Fetch-Site, Sec-Fetch-Dest, Comfy-User";
/**
* Reads the definitions. `Cache-Control: no-cache`, which a front end sends on reload, asks the
* source once more.
*/
async function fetchDefinitions(source, { ctx, caller, query }) {
	const known = await (demandsFresh(ctx.get("Cache-Control")) || query.get("refresh") === "1" ? source.refreshed(caller) : source.current(caller));
	if (!known.ok) throw unavailableError(known.retryAfterSeconds);
	return known;
}
function demandsFresh(cacheControl = "") {
	return /\bno-(cache|store)\b/i.test(cacheControl);
}
function headersOf$1({ isStale, isEmbeddedFallback }) {
	return {
		...isEmbeddedFallback && { "X-Holdover-Object-Info": "embedded" },
		...isStale && {
			"X-Holdover-Stale": "1",
			Warning: "110 holdover \"Response is Stale\""
		}
	};
}
function unavailableError(retryAfterSeconds) {
	const body = plainError("object_info_unavailable", "The source of node definitions cannot be asked at the moment.");
	return new V1Error(503, body, {
		headers: { "Retry-After": String(retryAfterSeconds) },
		blames: "job service"
	});
}
/** True when the ETag matches. The encoding of the text does not matter. */
function matchesEtag(ifNoneMatch, etag) {
	const known = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, "").replace(/-(br|gzip)"$/, "\""));
	return known.includes(etag) || known.includes("*");
}
// src/v1/userdata/settings.ts
/** Limits of one user's settings; front ends have a few hundred, of a few characters each. */
const SETTINGS_LIMIT = {
	count: 1e4,
	chars: 16777216
};
/** A user's settings: one flat object of JSON values, merged shallowly. */
const settingRoutes = routesFor({
	async "GET /settings"({ settings }, { ctx, caller }) {
		await sendAll(ctx, await settings.all(caller.user));
	},
	/** The original answers the bare value, `null` when there is none. */
	async "GET /settings/:id"({ settings }, { ctx, caller, params }) {
		const settingsOfUser = await settings.all(caller.user);
		const { id = "" } = params;
		const text = Object.hasOwn(settingsOfUser, id) ? settingsOfUser[id] : void 0;
		if (text !== void 0) return await sendOne(ctx, text);
		if (rulesFor(ctx).settings === "wrapped") throw emptyError(404, "There is no such setting.");
		await sendText(ctx, "null");
	},
	async "POST /settings"(services, { ctx, caller }) {
		const given = await readJson(ctx, services.bodies);
		if (!isJsonObject(given)) throw new V1Error(400, plainError("invalid_settings", "Settings are a JSON object."));
		if (Object.keys(given).length > SETTINGS_LIMIT.count) throw settingsFull();
		const texts = Object.entries(given).map(([id, value]) => [requirePrintable(id, "id"), stringifyJson(value)]);
		const merged = await saveSettings(services, caller.user, Object.fromEntries(texts));
		if (rulesFor(ctx).settings === "wrapped") await sendAll(ctx, merged);
		else sendEmpty(ctx);
	},
	async "POST /settings/:id"(services, { ctx, caller, params }) {
		const value = await readJson(ctx, services.bodies);
		const { id = "" } = params;
		const text = stringifyJson(value);
		await saveSettings(services, caller.user, Object.fromEntries([[id, text]]));
		if (rulesFor(ctx).settings === "wrapped") await sendOne(ctx, text);
		else sendEmpty(ctx);
	}
});
function sendAll(ctx, settingsOfUser) {
	return sendText(ctx, `{${Object.entries(settingsOfUser).map(([id, text]) => `${JSON.stringify(id)}:${text}`).join(",")}}`);
}
/** A value may have megabytes: to space all of it at once would delay the other calls. */
function sendText(ctx, jsonText) {
	return sendJsonPieces(ctx, [jsonText].values());
}
function sendOne(ctx, text) {
	return sendText(ctx, rulesFor(ctx).settings === "wrapped" ? `{"value":${text}}` : text);
}
/**
* Saves settings and returns all of them. They are read and sent at once, and often: large values
* belong in the user data.
*/
async function saveSettings({ settings }, user, changes) {
	const merged = {
		...await settings.all(user),
		...changes
	};
	const sizes = Object.entries(merged).map(([id, text]) => id.length + text.length);
	const chars = sizes.reduce((sum, size) => sum + size, 0);
	if (sizes.length > SETTINGS_LIMIT.count || chars > SETTINGS_LIMIT.chars) throw settingsFull();
	await settings.merge(user, changes);
	return merged;
}
function settingsFull() {
	return new V1Error(507, plainError("settings_full", "There is no room for more settings."));
}
// src/http/static-file.ts
/**
* Matches what a decoded path segment must not have: separators, control characters, a leading dot.
*/
const UNSERVABLE = /[/\\]|^\./;
const ABSENT_CODES = /* @__PURE__ */ new Set([
	"ENOENT",
	"ENOTDIR",
	"ELOOP",
	"ENAMETOOLONG",
	"EACCES"
]);
/**
* Finds the file that a request path names, segment by segment. `undefined` when there is none,
* when it is hidden, or when a link leads out of the root.
*/
async function findBelow(root, urlPath) {
	const segments = urlPath.split("/").slice(1).map((segment) => decodedPart(segment) ?? segment);
	if (!segments.every((part) => part !== "" && !UNSERVABLE.test(part) && !hasControlCharacter(part))) return void 0;
	try {
		const realRoot = await realpath(root);
		const path = await realpath(join(realRoot, ...segments));
		if (!path.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) return void 0;
		const stats = await stat(path);
		return stats.isFile() ? fileOf(realRoot, path, stats) : void 0;
	} catch (error) {
		if (ABSENT_CODES.has(error.code ?? "")) return void 0;
		throw error;
	}
}
/** Describes a file that is known to be below its root. */
function fileOf(root, path, stats) {
	const modifiedHex = Math.trunc(stats.mtimeMs * 1e3).toString(16);
	return {
		root,
		path,
		sizeBytes: stats.size,
		modifiedAtMs: stats.mtimeMs,
		etag: `"${modifiedHex}-${stats.size.toString(16)}-${stats.ino.toString(16)}"`
	};
}
/** Streams a file, or the requested range of it, with its validators. The caller sets the type. */
function sendFile(ctx, file) {
	ctx.status = 200;
	ctx.res.statusMessage = "";
	ctx.set("ETag", file.etag);
	const urlPath = relative(file.root, file.path).split(sep).map(encodeURIComponent).join("/");
	const transfer = send(requestFor(file, ctx.req), `/${urlPath}`, {
		root: file.root,
		dotfiles: "allow",
		index: false,
		etag: false,
		cacheControl: false
	});
	return new Promise((resolve) => {
		transfer.on("error", (error) => {
			resolve(sendRefusal(ctx, error.status ?? 404, error.headers ?? {}));
		});
		transfer.on("directory", () => resolve(sendRefusal(ctx, 404, {})));
		ctx.res.once("close", resolve);
		ctx.res.once("finish", resolve);
		ctx.respond = false;
		transfer.pipe(ctx.res);
	});
}
/**
* Returns the request as `send` has to read it. Without `Cache-Control`: `fetch` adds `no-cache` to
* conditional calls, and `send` would then ignore their conditions. With a range that it can read:
* it sends the whole file for several ranges, and for unreadable ones.
*/
function requestFor({ sizeBytes }, request) {
	const { "cache-control": _, range, ...others } = request.headers;
	const headers = range ? {
		...others,
		range: toPlainRange(sizeBytes, range)
	} : others;
	return Object.create(request, { headers: { value: headers } });
}
/**
* Answers when the file was removed meanwhile, or when the ranges or conditions of the request do
* not fit it.
*/
function sendRefusal(ctx, status, headers) {
	if (ctx.res.headersSent) return void ctx.res.destroy();
	ctx.respond = true;
	for (const name of [
		"Content-Encoding",
		"Content-Length",
		"ETag",
		"Last-Modified"
	]) ctx.remove(name);
	ctx.set(headers);
	sendEmpty(ctx, status);
}
// src/v1/userdata/userdata.ts
/**
* Workflows and other files that a front end stores for each user. The name is one encoded segment
* of the path.
*/
const userDataRoutes = routesFor({
	async "GET /userdata"({ userData }, { ctx, caller, query }) {
		const dir = query.get("dir");
		if (dir === null || dir === "") throw new V1Error(400, "Directory not provided");
		if (withinRoot(dir) === void 0) throw new V1Error(403, "Invalid directory");
		const path = await folderOf(userData, caller.user, dir);
		if (path === "a file") return sendJson(ctx, []);
		if (path === void 0) throw new V1Error(404, "Directory not found");
		const depth = isTrue(query, "recurse") ? "all" : "this folder";
		const entries = await userData.list(caller.user, path.inside, { depth });
		sendJson(ctx, entries.filter(isVisible).map(entryForm(query)));
	},
	async "GET /v2/userdata"({ userData }, { ctx, caller, query }) {
		const requestedPath = query.get("path") ?? "";
		if (withinRoot(requestedPath) === void 0) throw new V1Error(400, "Invalid path requested");
		const path = await folderOf(userData, caller.user, requestedPath);
		if (path === void 0 && requestedPath === "") return sendJson(ctx, []);
		if (path === "a file") throw new V1Error(400, "Requested path is not a directory");
		if (path === void 0) throw new V1Error(404, "Requested path not found");
		const entries = await userData.list(caller.user, path.inside, { depth: "all" });
		const folders = entries.filter(({ isFolder }) => isFolder).toSorted(byName);
		const files = entries.filter(({ isFolder }) => !isFolder).toSorted(byName);
		sendJson(ctx, [...folders, ...files].map((entry) => treeRowOf(path.inside, entry)));
	},
	async "GET /userdata/:file"({ userData }, { ctx, caller, params }) {
		const path = pathOf(params["file"]);
		const status = await userData.look(caller.user, path);
		if (status.kind !== "file") throw emptyError(404, FILE_NOT_FOUND$1);
		ctx.set(headersOf(path));
		setCacheHeaders(ctx);
		if (userData.content) return sendObject(ctx, status, await userData.content(caller.user, path));
		await sendFile(ctx, fileOf(userData.folderFor(caller.user), status.path, status.stats));
	},
	async "POST /userdata/:file"(services, request) {
		const { ctx, caller, params, query } = request;
		const path = pathOf(params["file"]);
		const how = { overwrite: query.get("overwrite") !== "false" };
		if ((await services.userData.look(caller.user, path)).kind === "file" && !how.overwrite) throw unchangedError("exists");
		const file = await receiveBody(services, request);
		try {
			sendFileInfo(ctx, query, {
				path,
				status: await services.userData.put(caller.user, path, file, how)
			});
		} finally {
			await rm(file.path, { force: true });
		}
	},
	async "DELETE /userdata/:file"({ userData }, { ctx, caller, params }) {
		if (await userData.remove(caller.user, pathOf(params["file"]))) throw emptyError(404, FILE_NOT_FOUND$1);
		sendEmpty(ctx, 204);
	},
	async "POST /userdata/:file/move/:dest"({ userData }, { ctx, caller, params, query }) {
		const from = pathOf(params["file"]);
		const path = pathOf(params["dest"]);
		const how = { overwrite: query.get("overwrite") !== "false" };
		sendFileInfo(ctx, query, {
			path,
			status: await userData.move(caller.user, from, path, how)
		});
	}
});
/** Sends the whole file with a validator: front ends read such a file with one call. */
function sendObject(ctx, { path, stats }, stream) {
	if (stream === void 0) throw emptyError(404, FILE_NOT_FOUND$1);
	ctx.status = 200;
	const { etag, modifiedAtMs } = fileOf("", path, stats);
	ctx.set("ETag", etag);
	ctx.set("Last-Modified", new Date(modifiedAtMs).toUTCString());
	if (isCopyCurrent(ctx.req, {
		etag,
		modifiedAtMs
	})) {
		stream.destroy();
		ctx.status = 304;
		return;
	}
	ctx.set("Content-Length", String(stats.size));
	ctx.body = stream;
}
/** Answers with the path, or with the facts of the file when the client asked for them. */
function sendFileInfo(ctx, query, { path, status }) {
	if (typeof status === "string") throw unchangedError(status);
	const wantsInfo = query.get("full_info")?.toLowerCase() === "true";
	sendJson(ctx, wantsInfo && status.kind === "file" ? fileInfoOf(path, status.stats) : path);
}
/**
* Returns the decoded path. A path outside the folder is an empty 403, as on the v1 server; an
* unsafe name is a 400 with a message.
*/
function pathOf(encodedName = "") {
	const safePath = safePathBelow(encodedName);
	if (safePath.ok && safePath.path !== "") return safePath.path;
	if (!safePath.ok && safePath.reason === "outside") throw emptyError(403, "This path leads out of the folder of the user.");
	throw new V1Error(400, "This is no name for a file.");
}
const FILE_NOT_FOUND$1 = "There is no such file.";
const UNCHANGED_ERRORS = {
	exists: [409, "File already exists"],
	blocked: [400, "Something that is no file is in the way."],
	full: [507, "There is no room left for files of this user."]
};
function unchangedError(why) {
	return why === "absent" ? emptyError(404, FILE_NOT_FOUND$1) : new V1Error(...UNCHANGED_ERRORS[why]);
}
async function receiveBody({ spoolDir: dir, maxUploadBytes: maxBytes, limitUploads }, { ctx: { req }, caller }) {
	const receive = async () => {
		const body = unpackedBody(req);
		const spooled = await spoolStream(body, {
			dir,
			maxBytes
		});
		if (!spooled.ok) stopUnpacking(body, req);
		return spooled;
	};
	const received = refusedByHeaders(req, maxBytes) ?? await limitUploads(caller.user, receive);
	if (received.ok) return received.value;
	throw bodyErrorText(received);
}
/**
* Returns the headers of a file. A file that a browser could run is an attachment. Style sheets are
* sent as such, since pages load them.
*/
function headersOf(path) {
	const filename = path.slice(path.lastIndexOf("/") + 1);
	if (filename.endsWith(".css")) return { "Content-Type": "text/css; charset=utf-8" };
	const { "Content-Disposition": disposition = "", ...headers } = fileHeaders({
		filename,
		contentType: "application/octet-stream"
	}, "");
	if (disposition.startsWith("attachment")) return {
		...headers,
		"Content-Disposition": disposition
	};
	return PICTURE.test(path) ? {
		...headers,
		"Cache-Control": "private, no-cache"
	} : headers;
}
/** Returns the fields that v1 gives for a file. Times are in seconds, as in Python. */
function fileInfoOf(path, stats) {
	return {
		path,
		size: stats.size,
		modified: stats.mtimeMs / 1e3,
		created: stats.ctimeMs / 1e3
	};
}
/** Returns the path of an existing folder. A client may have put a slash at its end. */
async function folderOf(userData, user, requestedPath) {
	const path = withinRoot(requestedPath) === "" ? "" : safePathBelow(requestedPath);
	const inside = typeof path === "string" ? path : path.ok ? path.path : void 0;
	if (inside === void 0) return void 0;
	const { kind } = await userData.look(user, inside);
	if (kind === "file") return "a file";
	return kind === "folder" ? { inside } : void 0;
}
/** True for an entry that v1 lists: a file that is not hidden and not in a hidden folder. */
function isVisible({ path, isFolder }) {
	return !isFolder && !path.split("/").some((part) => part.startsWith("."));
}
/** Returns the form of the entries. `full_info` wins over `split`, as on the v1 server. */
function entryForm(query) {
	if (isTrue(query, "full_info")) return ({ path, stats }) => fileInfoOf(path, stats);
	if (isTrue(query, "split")) return ({ path }) => [path, ...path.split("/")];
	return ({ path }) => path;
}
/**
* Returns a row of the tree. Paths start at the root of the whole tree, wherever the listing
* begins.
*/
function treeRowOf(listedFolder, { path, name, isFolder, stats }) {
	const fullPath = listedFolder === "" ? path : `${listedFolder}/${path}`;
	if (isFolder) return {
		name,
		path: fullPath,
		type: "directory"
	};
	const modified = stats.mtimeMs / 1e3;
	return {
		name,
		path: fullPath,
		type: "file",
		size: stats.size,
		modified
	};
}
function byName(a, b) {
	const [left, right] = [a.name.toLowerCase(), b.name.toLowerCase()];
	return left < right ? -1 : Number(left > right);
}
function isTrue(query, name) {
	return query.get(name)?.toLowerCase() === "true";
}
// src/v1/userdata/users.ts
/** The user list of v1. It is fixed, since each key is a user and no accounts are kept. */
const userRoutes = routesFor({
	"GET /users": (_, { ctx }) => sendJson(ctx, {
		storage: "server",
		migrated: true
	}),
	/** Returns the id of a new account. The original looks at accounts in its multi-user mode only. */
	async "POST /users"({ bodies }, { ctx }) {
		const { username } = requireObject(await readJson(ctx, bodies));
		const name = typeof username === "string" ? requirePrintable(username, "username").trim() : "";
		if (name === "") throw new V1Error(400, plainError("no_username", "A \"username\" is missing."));
		sendJson(ctx, `${name.replaceAll(/[^a-zA-Z0-9\-_]+/g, "-")}_${randomUUID()}`);
	}
});
// src/v1/catalog.ts
/** Routes about the server itself and what it stores for users, other than jobs and their files. */
function catalogRoutes(services) {
	return [
		...objectInfoRoutes(services),
		...serverInfoRoutes(services),
		...modelRoutes(services),
		...logRoutes(services),
		...userRoutes(services),
		...settingRoutes(services),
		...userDataRoutes(services)
	];
}
// src/auth/signed-view.ts
/** The path of the signed download, below either prefix. */
const SIGNED_VIEW_PATH = "/signed/view";
const LIFETIME_MS = 6e5;
const RENDERING_PARAMETERS = ["preview", "channel"];
/** Makes and checks links that carry their own authorization instead of a credential. */
function createViewSigner(options) {
	const { secret, lifetimeMs = LIFETIME_MS, now } = options;
	const signature = createLinkSignature(secret, "signed view");
	return {
		/** Returns the query of a link that gives access to this file until it expires. */
		sign(grant) {
			const claims = claimsOf(grant, Math.ceil((now() + lifetimeMs) / 1e3));
			claims.set("signature", signature.sign(claims.toString()));
			return claims.toString();
		},
		/** Returns the grant of the link; `undefined` when it was altered or has expired. */
		verify(query) {
			const grant = grantOf(query);
			const expires = Number(query.get("expires"));
			const claims = claimsOf(grant, expires).toString();
			return signature.isGenuine(claims, query.get("signature") ?? "") && now() < expires * 1e3 ? grant : void 0;
		}
	};
}
/** Returns the claims. The file name comes first, since some clients derive a name from the URL. */
function claimsOf({ filename, subfolder, type, user, rendering }, expires) {
	const renderingPairs = RENDERING_PARAMETERS.flatMap((key) => {
		const value = rendering[key];
		return value === void 0 ? [] : [[key, value]];
	});
	return new URLSearchParams([
		["filename", filename],
		["subfolder", subfolder],
		["type", type],
		...renderingPairs,
		["user", user],
		["expires", String(expires)]
	]);
}
function grantOf(query) {
	const text = (key) => query.get(key) ?? "";
	const rendering = RENDERING_PARAMETERS.flatMap((key) => query.has(key) ? [[key, text(key)]] : []);
	return {
		user: text("user"),
		type: text("type"),
		subfolder: text("subfolder"),
		filename: text("filename"),
		rendering: Object.fromEntries(rendering)
	};
}
// src/dialects/file-error.ts
/**
* v1 clients read 429 as "subscription not active". A route that v2 lacks is a gateway failure for
* them.
*/
const V1_STATUS_BY_STATUS = {
	422: 400,
	429: 503,
	501: 502
};
/**
* Translates a v2 refusal about a file: a missing file becomes an empty 404, v2's 422 a 400, a
* requested pause a 503. Other refusals keep their status and message.
*/
function toV1FileError(error) {
	const { status, code, retryAfterSeconds } = error;
	if (isGone(error)) return emptyError(404, "The file is gone.");
	const v1Status = isEngineFailure(error) || status >= 600 ? 502 : errorCodeOf(code)?.v1FileStatus ?? V1_STATUS_BY_STATUS[status] ?? status;
	const message = isEngineFailure(error) ? ENGINE_FAILED : messageOf$1(error);
	return new V1Error(v1Status, plainError(code, message), {
		headers: retryAfterHeader(retryAfterSeconds),
		blames: "job service"
	});
}
/**
* True for a failure of the engine. It is answered with 502, since a 500 would mean that Holdover
* failed.
*/
function isEngineFailure({ status, code }) {
	return status === 500 && code === "upstream_error";
}
const ENGINE_FAILED = "The job service could not do this with the file: it, or the engine behind it, failed or is down. Please try again.";
// src/files/store-file.ts
/** The number of names that are looked up before other calls get their turn. */
const NAMES_PER_TURN = 100;
/** Stores a file under exactly its name, and replaces any earlier file of that name. */
async function storeAs(services, newFile) {
	const asset = await storeBytes(services.jobs, newFile);
	await services.files.put(rowOf(services, newFile, asset));
	return newFile.filename;
}
/**
* Stores a file beside the existing ones and returns its name. Like v1 it tries `cat (1).png`, `cat
* (2).png` … until a name is free or has the same bytes.
*/
async function storeUnderFreeName(services, newFile) {
	let asset;
	const pause = yieldEvery(NAMES_PER_TURN);
	for (let number = 0;;) {
		await pause();
		const candidate = {
			...newFile,
			filename: numberedName(newFile.filename, number)
		};
		const existing = await services.files.get(newFile.caller.user, candidate);
		if (existing === void 0) {
			asset ??= await storeBytes(services.jobs, candidate);
			if (await services.files.claim(rowOf(services, candidate, asset))) return candidate.filename;
			if (await services.files.get(newFile.caller.user, candidate) === void 0) number++;
		} else if (newFile.reuse === "same bytes" && existing.hash === newFile.file.hash) {
			await reuseExisting(services, {
				existing,
				candidate,
				asset
			});
			return candidate.filename;
		} else number++;
	}
}
/** Returns the name that {@link storeUnderFreeName} would choose now. Stores nothing. */
async function findFreeName({ files }, newFile) {
	const pause = yieldEvery(NAMES_PER_TURN);
	for (let number = 0;; number++) {
		await pause();
		const filename = numberedName(newFile.filename, number);
		if (await files.get(newFile.caller.user, {
			...newFile,
			filename
		}) === void 0) return filename;
	}
}
/**
* Uses a name that has the same bytes already. Nothing is written, unless the asset behind it is
* gone.
*/
async function reuseExisting(services, { existing, candidate, asset }) {
	const current = await services.jobs.asset(candidate.caller, existing.assetId);
	if (current.ok) {
		asset !== void 0 && asset.id !== existing.assetId && await services.jobs.deleteAsset(candidate.caller, asset.id);
		return;
	}
	if (!isGone(current.error)) throw toV1FileError(current.error);
	await services.files.put(rowOf(services, candidate, asset ?? await storeBytes(services.jobs, candidate)));
}
/**
* Uploads a file to the upstream. Bytes that the user has there already are not sent again, unless
* most of them were sent before their hash was known.
*/
async function storeBytes(jobs, newFile) {
	const { caller, file, started } = newFile;
	const filePath = uploadPathOf(newFile);
	const known = started === void 0 && await findKnownBytes(jobs, {
		caller,
		file,
		filePath
	});
	if (known) return known;
	const upload = {
		file,
		filePath,
		contentType: contentTypeFor(newFile.filename),
		expectedHash: file.hash
	};
	const created = await jobs.createAsset(caller, {
		...upload,
		...started && { started }
	});
	if (!created.ok) throw toV1FileError(created.error);
	return created.value;
}
async function findKnownBytes(jobs, { caller, file: { hash }, filePath }) {
	const known = await jobs.hasBlob(caller, hash);
	if (!known.ok || !known.value) return void 0;
	const linked = await jobs.assetFromHash(caller, {
		hash,
		filePath
	});
	return linked.ok ? linked.value : void 0;
}
function rowOf({ now }, newFile, asset) {
	const { caller, type, subfolder, filename, file } = newFile;
	return {
		user: caller.user,
		type,
		subfolder,
		filename,
		assetId: asset.id,
		hash: file.hash,
		sizeBytes: file.sizeBytes,
		contentType: contentTypeFor(filename),
		modifiedAtMs: now()
	};
}
/** Returns the content type of a file, by its name alone. */
function contentTypeFor(filename) {
	return contentTypeOf(filename) ?? "application/octet-stream";
}
/** Adds a number before the last extension, as v1 does: `a.tar (1).gz`. */
function numberedName(filename, number) {
	if (number === 0) return filename;
	const { name, ext } = posix.parse(filename);
	return `${name} (${number})${ext}`;
}
// src/v1/files/upload-form.ts
/** A text field sent as a file part is read up to this size. */
const MAX_TEXT_BYTES = 65536;
const TRUE_VALUES = /* @__PURE__ */ new Set(["true", "1"]);
/** The Windows folder of a file, which some clients put before its name. */
const WINDOWS_FOLDER = /^[a-z]:\\.*\\/i;
/**
* Slashes that some clients leave at the start when they cut a path before its last slash. The
* original's form reader drops them.
*/
const LEADING_SLASHES = /^[\\/]+/;
/** Receives the form, passes it to `work`, and removes its files afterwards. */
async function withForm(limits, request, { work, sentAs = () => void 0 }) {
	if (!request.ctx.is("multipart/form-data")) throw emptyError(400, "The body must be multipart/form-data.");
	await withReceivedForm(limits, request, {
		sentAs,
		async work(received, startedOf) {
			if (!received.ok) throw bodyError(received, "invalid_upload");
			try {
				await work(received.value, startedOf);
			} finally {
				await Promise.all(received.value.files.map(({ file }) => rm(file.path, { force: true })));
			}
		}
	});
}
/**
* Reads the request. v1's own refusals have empty bodies; where v1 fails with a 500, the refusal
* here has a message.
*/
async function readUploadRequest(files, user, { form, subfolder: folderRule }) {
	const image = form.files.find(({ field }) => field === "image");
	if (image === void 0 && form.fields.has("image")) throw uploadError("image must be a file.");
	if (image === void 0) throw emptyError(400, "\"image\" is missing.");
	const filenameGiven = requirePrintable(image.filename, "filename").replace(WINDOWS_FOLDER, "").replace(LEADING_SLASHES, "");
	if (filenameGiven === "") throw emptyError(400, "\"image\" has no file name.");
	const type = await nameField(form, "type", "input");
	if (!isFileType(type)) throw uploadError("type must be input, temp or output.");
	const requested = {
		subfolder: await nameField(form, "subfolder", ""),
		folder: folderPart(filenameGiven)
	};
	const filename = safeName(filenameGiven.slice(requested.folder.length));
	const path = [requested.subfolder, requested.folder].filter((filePart) => filePart !== "").join("/");
	const ignoresFolders = folderRule === "ignored";
	const subfolder = ignoresFolders ? "" : safeFolder(path);
	if (subfolder === void 0) throw emptyError(400, "\"subfolder\" is not a possible folder.");
	if (filenameGiven === "..") throw emptyError(400, "\"image\" is named like a folder outside.");
	if (filename === void 0) throw uploadError("This is not a possible file name.");
	if (!ignoresFolders && requested.folder !== "" && subfolder !== "" && !await folderExists(files, {
		user,
		type,
		subfolder
	})) throw uploadError("There is no such folder.");
	const overwrite = TRUE_VALUES.has(await textField(form, "overwrite") ?? "") && !(ignoresFolders && path !== "");
	const shown = ignoresFolders ? {
		...requested,
		folder: ""
	} : requested;
	return {
		file: image.file,
		type,
		subfolder,
		filename,
		overwrite,
		shown
	};
}
/** Returns the error for an upload that the original fails on. */
function uploadError(message) {
	return new V1Error(400, plainError("invalid_upload", message));
}
/** Returns the text of a field. Some clients send theirs as a file part. */
async function textField({ fields, files }, field) {
	const [value] = fields.get(field) ?? [];
	if (value !== void 0) return value;
	const filePart = files.find((candidate) => candidate.field === field);
	if (filePart === void 0 || filePart.file.sizeBytes > MAX_TEXT_BYTES) return void 0;
	return readFile(filePart.file.path, "utf8");
}
async function nameField(form, field, absent) {
	return requirePrintable(await textField(form, field) ?? absent, field);
}
/** Returns the directory part of a file name, including its slash. */
function folderPart(filename) {
	return filename.slice(0, filename.lastIndexOf("/") + 1);
}
/**
* True when the folder exists. v1 creates the folder that `subfolder` names, but not one that is
* part of the file name.
*/
async function folderExists(files, { user, type, subfolder }) {
	return (await files.list(user, type)).some((row) => `${row.subfolder}/`.startsWith(`${subfolder}/`));
}
// src/files/asset-content.ts
/** A larger picture is not read into memory to be decoded. */
const MAX_PICTURE_BYTES = 268435456;
/** Opens the bytes of an asset. A link that this process can read is read here. */
async function openContent(jobs, { caller, assetId }, range) {
	const content = await jobs.content(caller, assetId, range);
	if (!content.ok || content.value.kind === "bytes") return content;
	return content.value.open?.(range) ?? content;
}
/** Returns all bytes of a picture that fits into memory. Reading ends with `signal`. */
async function readImageBytes(jobs, { signal, ...wanted }) {
	if (signal?.aborted === true) return refuse(502, "bad_upstream_response", BROKEN_OFF);
	const content = await openContent(jobs, wanted);
	if (!content.ok) return content;
	if (content.value.kind === "redirect") return refuse(502, "bad_upstream_response", "The file cannot be read from here.");
	if (signal) addAbortSignal(signal, content.value.stream);
	return collect(content.value);
}
async function collect({ stream, totalBytes }) {
	const isTooLarge = Number.isFinite(totalBytes) && totalBytes > MAX_PICTURE_BYTES;
	try {
		const bytes = await readAtMost(isTooLarge ? 0 : MAX_PICTURE_BYTES, stream);
		return bytes ? ok(bytes) : refuse(400, "file_too_large", TOO_LARGE);
	} catch {
		return refuse(502, "bad_upstream_response", BROKEN_OFF);
	}
}
const BROKEN_OFF = "The file broke off while it was read.";
const TOO_LARGE = "The file is too large to be shown as a picture.";
// src/v1/files/render.ts
const MAX_PIXELS = 67108864;
const MAX_SECONDS = 5;
const DEFAULT_QUALITY = 90;
/**
* Reads `preview` and `channel` as v1 does. Unknown formats are WEBP; the last part of `preview` is
* the quality if it is a number; a channel with an `a` in its name needs a format with alpha.
* `undefined`: the file is sent unchanged. `null`: no encoder has this quality.
*/
function parseRendering(query, { alphaChannel }) {
	const channel = query.get("channel") ?? "";
	const preview = query.get("preview");
	if (preview !== null) return readPreview(preview, channel);
	if (channel === "rgb") return { as: "rgb" };
	return channel === "a" || alphaChannel === "a-or-alpha" && channel === "alpha" ? { as: "alpha" } : void 0;
}
function readPreview(preview, channel) {
	const parts = preview.split(";");
	const last = parts.at(-1) ?? "";
	const quality = /^\d+$/.test(last) ? Number(last) : DEFAULT_QUALITY;
	if (quality > 100) return null;
	const format = parts[0] === "jpeg" && !channel.includes("a") ? "jpeg" : "webp";
	return {
		as: "preview",
		format,
		quality: Math.max(quality, 1),
		opaque: format === "jpeg" || channel === "rgb"
	};
}
/** Renders the picture. The size never changes, and only the first frame is used. */
async function render(bytes, rendering) {
	return decode$1(bytes, async () => {
		const image = await drawRendering(bytes, rendering);
		const format = rendering.as === "preview" ? rendering.format : "png";
		return {
			ok: true,
			bytes: await image.toBuffer(),
			contentType: `image/${format}`
		};
	});
}
/** Runs a decoder on untrusted bytes. A failure is returned as a reason, not thrown. */
async function decode$1(bytes, work) {
	if (pictureFormatOf(bytes) === void 0) return {
		ok: false,
		reason: "This is not a picture that can be shown."
	};
	try {
		return await work();
	} catch (error) {
		return {
			ok: false,
			reason: reasonOf(error instanceof Error ? error.message : "")
		};
	}
}
/** Opens untrusted bytes within the limits. Colours stay as stored: profiles are not applied. */
async function openPicture(bytes) {
	if (pictureFormatOf(bytes) === "bmp") return openDecoded(await decodeBmp(bytes));
	const image = await openFile(bytes);
	const { space } = await image.metadata();
	if (space === "cmyk") return openDecoded(await decodeInks(image));
	return image.toColourspace("srgb");
}
async function openFile(bytes) {
	const { default: sharp } = await import("sharp");
	return withTimeLimit(sharp(bytes, {
		limitInputPixels: MAX_PIXELS,
		failOn: "error",
		ignoreIcc: true
	}));
}
async function openDecoded(picture) {
	const { width, height, channels, bytes } = picture;
	const pixels = await fromPixels({
		data: Buffer.from(bytes),
		width,
		height,
		channels
	});
	return picture.hasAlpha ? pixels : pixels.removeAlpha();
}
/** Returns the picture as red, green, blue and alpha. */
async function rgbaOf(bytes) {
	return pixelsOf((await openPicture(bytes)).ensureAlpha());
}
/** Returns the width, height and bytes of a pipeline's pixels. */
async function pixelsOf(pipeline) {
	const { data, info } = await pipeline.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
	return {
		data,
		width: info.width,
		height: info.height,
		channels: info.channels
	};
}
/** Returns a pipeline over pixels in memory. */
async function fromPixels({ data, ...raw }) {
	const { default: sharp } = await import("sharp");
	return withTimeLimit(sharp(data, { raw }));
}
async function drawRendering(bytes, rendering) {
	if (rendering.as === "alpha") {
		const rgba = await rgbaOf(bytes);
		return (await fromPixels(await hasAlphaBand(bytes) ? rgba : madeOpaque(rgba))).linear([
			0,
			0,
			0,
			1
		], [
			0,
			0,
			0,
			0
		]).png();
	}
	const picture = await openPicture(bytes);
	if (rendering.as !== "preview") return picture.removeAlpha().png();
	const { format, quality, opaque } = rendering;
	return (opaque ? picture.removeAlpha() : picture).toFormat(format, { quality });
}
const PNG_WITH_ALPHA = 6;
/** True for red, green, blue and alpha. v1 shows no alpha of a palette, or of grey with alpha. */
async function hasAlphaBand(bytes) {
	const { format, hasAlpha, channels } = await (await openPicture(bytes)).metadata();
	if (format === "png") return bytes[25] === PNG_WITH_ALPHA;
	return hasAlpha && channels === 4 && format !== "gif";
}
function madeOpaque({ data, ...size }) {
	const shown = Buffer.from(data);
	for (let i = 3; i < shown.length; i += 4) shown[i] = 255;
	return {
		...size,
		data: shown
	};
}
function withTimeLimit(pipeline) {
	return pipeline.timeout({ seconds: MAX_SECONDS });
}
function reasonOf(message) {
	if (/pixel limit/i.test(message)) return "The picture has more pixels than are decoded here.";
	if (/timeout/i.test(message)) return "The picture took too long to decode.";
	return "The picture could not be decoded.";
}
// src/v1/files/upload.ts
/** `POST /upload/image`: takes any file, despite the name. */
async function uploadImage(services, request) {
	const { ctx, caller } = request;
	await withForm(services, request, {
		sentAs: ({ field, filename }) => field === "image" ? contentTypeFor(filename) : void 0,
		async work(form, startedOf) {
			const { subfolder } = rulesFor(ctx);
			const upload = await readUploadRequest(services.files, caller.user, {
				form,
				subfolder
			});
			const started = startedOf(upload.file);
			const file = {
				...upload,
				caller,
				started,
				reuse: "same bytes"
			};
			sendStored(ctx, upload, await storeUpload(services, upload, file));
		}
	});
}
/** `POST /upload/mask`: stores the original picture with the alpha of the mask. */
async function uploadMask(services, request) {
	const { ctx, caller } = request;
	const work = async (form) => {
		const { subfolder } = rulesFor(ctx);
		const upload = await readUploadRequest(services.files, caller.user, {
			form,
			subfolder
		});
		const text = await textField(form, "original_ref") ?? await textField(form, "originalRef");
		const ref = text === void 0 ? void 0 : readOriginalRef(text);
		if (ref === void 0) throw uploadError("original_ref must be JSON that names a file.");
		const original = await findOriginal(services.files, caller, {
			...ref,
			folderRule: subfolder
		});
		const signal = disconnectSignal(ctx.res);
		sendStored(ctx, upload, await storeMask(services, {
			caller,
			upload,
			original,
			signal
		}));
	};
	await withForm(services, request, { work });
}
/**
* Stores the result. v1 answers with a name even when the original picture does not exist; then no
* file has that name.
*/
async function storeMask(services, { caller, upload, original, signal }) {
	if (original === void 0) return upload.overwrite ? upload.filename : findFreeName(services, {
		...upload,
		caller
	});
	const file = await spoolBytes(services, await services.decodeSlots(() => composeFile(services, {
		caller,
		row: original,
		signal
	}, upload.file)));
	try {
		return await storeUpload(services, upload, {
			...upload,
			file,
			caller,
			reuse: "never"
		});
	} finally {
		await rm(file.path, { force: true });
	}
}
async function spoolBytes({ spoolDir }, bytes) {
	const spooledFile = await spoolStream(Readable.from([bytes]), {
		dir: spoolDir,
		maxBytes: bytes.length
	});
	if (!spooledFile.ok) throw new V1Error(spooledFile.status, plainError("insufficient_storage", spooledFile.message));
	return spooledFile.value;
}
async function composeFile(services, { caller, row, signal }, mask) {
	const bytes = await readImageBytes(services.jobs, {
		caller,
		assetId: row.assetId,
		signal
	});
	if (!bytes.ok) throw toV1FileError(bytes.error);
	const picture = await composeMask(bytes.value, await readFile(mask.path));
	if (!picture.ok) throw uploadError(picture.reason);
	return picture.bytes;
}
async function findOriginal(files, { user }, ref) {
	for (const text of [
		ref.filename,
		ref.subfolder,
		ref.type
	]) requirePrintable(text, "original_ref");
	const { name, type = ref.type } = parseAnnotation(ref.filename);
	if (!isFileType(type) || name.startsWith("/") || name.includes("..")) return void 0;
	const path = splitPath(name);
	const subfolder = withinRoot(posix.join(ref.subfolder, path.folder));
	const named = {
		type,
		subfolder: subfolder ?? "",
		filename: path.name
	};
	const row = subfolder === void 0 ? void 0 : await files.get(user, named);
	return row === void 0 && ref.folderRule === "ignored" ? files.newestNamed(user, named) : row;
}
function storeUpload(services, { overwrite }, file) {
	return overwrite ? storeAs(services, file) : storeUnderFreeName(services, file);
}
function sendStored(ctx, { shown, type }, filename) {
	sendJson(ctx, {
		name: shown.folder + filename,
		subfolder: shown.subfolder,
		type
	});
}
/** v1's compression level for these files. */
const COMPRESSION_LEVEL = 4;
const TEXT_CHUNKS = /* @__PURE__ */ new Set([
	"tEXt",
	"zTXt",
	"iTXt"
]);
/**
* Reads `original_ref`. An absent folder means the root, an absent type means `output`.
* @internal
*/
function readOriginalRef(text) {
	const ref = parseJsonOrUndefined(text);
	if (!isJsonObject(ref)) return void 0;
	const { filename, subfolder = "", type = "output" } = ref;
	if (typeof filename !== "string" || typeof subfolder !== "string") return void 0;
	return {
		filename,
		subfolder,
		type: typeof type === "string" ? type : ""
	};
}
/**
* Returns the original with its alpha replaced by that of the mask; a mask without alpha makes it
* opaque. The result is a PNG that keeps the original's text chunks. Nothing is resized.
* @internal
*/
async function composeMask(original, mask) {
	return decode$1(original, () => decode$1(mask, () => compose(original, mask)));
}
async function compose(original, mask) {
	const alphaChannel = await alphaOf(mask);
	const baseImage = await pixelsOf((await openPicture(original)).removeAlpha());
	if (baseImage.width !== alphaChannel.width || baseImage.height !== alphaChannel.height) {
		const [of, to] = [alphaChannel, baseImage].map(({ width, height }) => `${width}x${height}`);
		return {
			ok: false,
			reason: `The mask is ${of}, its original ${to}; they must be of one size.`
		};
	}
	const { data, ...raw } = alphaChannel;
	return {
		ok: true,
		bytes: withTextChunksOf(original, await (await fromPixels(baseImage)).joinChannel(data, { raw }).png({ compressionLevel: COMPRESSION_LEVEL }).toBuffer()),
		contentType: "image/png"
	};
}
async function alphaOf(mask) {
	return pixelsOf((await fromPixels(await rgbaOf(mask))).extractChannel(3));
}
/** Copies the text chunks behind the header, where v1 writes them. */
function withTextChunksOf(original, composed) {
	if (!isPng(original)) return composed;
	const texts = readPngChunks(original).slice(0, -1).filter(({ type }) => TEXT_CHUNKS.has(type));
	const chunks = readPngChunks(composed);
	return writePng([
		...chunks.slice(0, 1),
		...texts,
		...chunks.slice(1)
	]);
}
function parseJsonOrUndefined(text) {
	try {
		return parseJson(text);
	} catch {
		return;
	}
}
// src/v1/files/download.ts
/** A range whose answer tells the size of the file and carries one byte. */
const FIRST_BYTE = {
	start: 0,
	end: 0
};
/** Sends the file unchanged: whole, one range of it, or a 304 when the client has it already. */
async function serveFile(jobs, download) {
	const { ctx, row } = download;
	if (!meetsPreconditions(ctx, row)) return sendEmpty(ctx, 412);
	const validators = {
		etag: etagOf(row),
		modifiedAtMs: row.modifiedAtMs
	};
	if (isCopyCurrent(ctx.req, validators)) return setFileHeaders(ctx, row, 304);
	const range = await rangeOf(jobs, download);
	const content = range === "unsatisfiable" ? range : await openPart(jobs, download, range);
	if (content === "unsatisfiable") return refuseRange(jobs, download);
	if (content.kind === "redirect") return sendLocation(ctx, content.location);
	const rangeSent = content.range;
	setFileHeaders(ctx, row, rangeSent === void 0 ? 200 : 206);
	if (rangeSent) ctx.set("Content-Range", `bytes ${rangeSent.start}-${rangeSent.end}/${content.totalBytes}`);
	sendStream(ctx, content, row);
}
/** Sends a rendered picture. Like v1's, it has no validators and no ranges. */
async function serveRendered(jobs, { ctx, caller, row }, rendering) {
	const signal = disconnectSignal(ctx.res);
	const bytes = await readImageBytes(jobs, {
		caller,
		assetId: row.assetId,
		signal
	});
	if (!bytes.ok) throw toV1FileError(bytes.error);
	const image = await render(bytes.value, rendering);
	if (!image.ok) throw new V1Error(400, plainError("invalid_picture", image.reason));
	ctx.status = 200;
	ctx.set("Content-Type", image.contentType);
	ctx.set("Content-Disposition", fileHeaders(row, "image")["Content-Disposition"] ?? "");
	ctx.body = image.bytes;
}
/**
* Returns the upstream's link to a file; `undefined` if there is none. Throws when the file is
* gone.
*/
async function upstreamLinkOf(jobs, { caller, row }) {
	const content = await jobs.content(caller, row.assetId, FIRST_BYTE);
	if (!content.ok && content.error.status === 416) return void 0;
	if (!content.ok) throw toV1FileError(content.error);
	if (content.value.kind === "redirect") return content.value.location;
	content.value.stream.destroy();
}
async function openPart(jobs, { caller, row }, range) {
	const content = await openContent(jobs, {
		caller,
		assetId: row.assetId
	}, range);
	if (content.ok) return content.value;
	if (range && content.error.status === 416) return "unsatisfiable";
	throw toV1FileError(content.error);
}
/** Redirects the caller to the bytes. Such a link carries its own authorization. */
function sendLocation(ctx, location) {
	ctx.set("Location", location);
	ctx.set("Cache-Control", "no-store");
	sendEmpty(ctx, 302);
}
/**
* Makes the ETag from the bytes, so that a file saved again is still known; v1's is made of time
* and size. Ids may be long and differ at their ends only.
*/
function etagOf({ hash, assetId }) {
	return `"${(hash?.replace("blake3:", "") ?? createHash("sha256").update(assetId).digest("hex")).slice(0, 32)}"`;
}
function modifiedAt({ modifiedAtMs }) {
	return new Date(modifiedAtMs).toUTCString();
}
function setFileHeaders(ctx, row, status) {
	ctx.status = status;
	ctx.set(fileHeaders(row, ctx.get("Sec-Fetch-Dest").toLowerCase()));
	ctx.set("ETag", etagOf(row));
	ctx.set("Last-Modified", modifiedAt(row));
	if (status !== 304) ctx.set("Accept-Ranges", "bytes");
}
/**
* Checks the conditions of a request as v1 does: the date counts only without `If-Match`, and an
* unreadable date does not count.
*/
function meetsPreconditions(ctx, row) {
	const wanted = ctx.get("If-Match");
	if (wanted !== "") return wanted === "*" || wanted.split(",").some((tag) => tag.trim() === etagOf(row));
	const unmodifiedSinceMs = Date.parse(ctx.get("If-Unmodified-Since"));
	return !(Date.parse(modifiedAt(row)) > unmodifiedSinceMs);
}
/** Stands for an unknown size. 0 does not: one upstream reports 0 for every file. */
const UNKNOWN_SIZE = Number.MAX_SAFE_INTEGER;
async function rangeOf(jobs, download) {
	const { ctx, row } = download;
	const condition = ctx.get("If-Range");
	if (condition !== "" && condition !== etagOf(row) && condition !== modifiedAt(row)) return void 0;
	if (ctx.get("Range") === "") return void 0;
	const header = readOneRange(ctx.get("Range"));
	if (header === void 0) return "unsatisfiable";
	const size = header.startsWith("bytes=-") ? await sizeOf$2(jobs, download) : row.sizeBytes || UNKNOWN_SIZE;
	if (size === Infinity) return void 0;
	const ranges = parseRanges(size, header);
	const [range] = typeof ranges === "number" ? [] : ranges;
	if (range === void 0) return "unsatisfiable";
	return {
		start: range.start,
		end: range.end < UNKNOWN_SIZE - 1 ? range.end : Infinity
	};
}
async function sizeOf$2(jobs, download) {
	if (download.row.sizeBytes > 0) return download.row.sizeBytes;
	const content = await openPart(jobs, download, FIRST_BYTE);
	if (content === "unsatisfiable") return 0;
	if (content.kind === "redirect") return Infinity;
	content.stream.destroy();
	return content.totalBytes;
}
async function refuseRange(jobs, download) {
	const { ctx, row } = download;
	const size = await sizeOf$2(jobs, download);
	const { "Content-Type": type = "", "Content-Disposition": disposition = "" } = fileHeaders(row, "");
	sendEmpty(ctx, 416);
	ctx.set({
		"Content-Type": type,
		"Content-Disposition": disposition
	});
	if (size < Infinity) ctx.set("Content-Range", `bytes */${size}`);
}
function sendStream(ctx, content, { sizeBytes }) {
	const { stream, totalBytes, range } = content;
	if (ctx.method === "HEAD") stream.destroy();
	else if (totalBytes === Infinity) ctx.body = failIfShorter(stream, sizeBytes);
	else {
		stream.reuseBuffersFor?.(ctx.res);
		ctx.body = stream;
	}
	const length = range === void 0 ? totalBytes : range.end - range.start + 1;
	if (length < Infinity) ctx.length = length;
}
/** Passes the bytes through. Fails when the stream ends before `bytes` bytes. */
function failIfShorter(stream, bytes) {
	let missingBytes = bytes;
	const counting = new Transform({
		transform(chunk, _encoding, done) {
			missingBytes -= chunk.length;
			done(null, chunk);
		},
		flush: (done) => done(missingBytes > 0 ? /* @__PURE__ */ new Error(`${missingBytes} bytes of a file are missing`) : null)
	});
	pipeline$1(stream, counting, () => {});
	return counting;
}
// src/v1/files/view.ts
const BLAKE3 = /^blake3:[0-9a-f]{64}$/;
/** Matches `file:///x` and `C:/x`, which are locations and no names. */
const URL_OR_DRIVE = /^[a-z][\w+.-]*:[\\/]/i;
/** `GET /view` */
async function view(services, request) {
	const { ctx, caller, query } = request;
	const rules = rulesFor(ctx);
	const row = await findFile(services.files, request);
	const rendering = readRendering(query, rules);
	const download = {
		ctx,
		caller,
		row
	};
	const address = services.addresses.of(ctx.req);
	if (!address || !shouldRedirect(services.view, ctx, query)) return serveView(services, download, rendering);
	ctx.vary("Sec-Fetch-Site, Sec-Fetch-Dest, Comfy-User");
	const location = rendering ? void 0 : await locationElsewhere(services, download);
	if (location !== void 0) return sendLocation(ctx, location);
	const prefix = ctx.state.apiPrefixed === true ? "/api" : "";
	const link = services.signer.sign({
		...row,
		rendering: renderingFor(query, rules)
	});
	sendLocation(ctx, `${address.base}${prefix}${SIGNED_VIEW_PATH}?${link}`);
}
async function locationElsewhere({ jobs, linkToStored }, download) {
	const { ctx, caller, row } = download;
	const fetchDest = ctx.get("Sec-Fetch-Dest").toLowerCase();
	return await linkToStored?.(caller, {
		row,
		fetchDest
	}) ?? await upstreamLinkOf(jobs, download);
}
/** The rules of signed links, which are the same in both dialects. */
const RULES_OF_LINKS = { alphaChannel: "a" };
/** `GET /signed/view`: serves a link made by `/api/view` to any holder until it expires. */
async function serveSignedView(services, ctx) {
	const query = new URLSearchParams(ctx.querystring);
	const grant = services.signer.verify(query);
	if (grant === void 0) throw new V1Error(403, plainError("link_expired", "This link has expired or was altered."));
	const row = await services.files.get(grant.user, grant);
	if (row === void 0) throw emptyError(404, FILE_NOT_FOUND);
	const caller = services.callerOf?.(grant.user) ?? { user: grant.user };
	try {
		await serveView(services, {
			ctx,
			caller,
			row
		}, readRendering(query, RULES_OF_LINKS));
	} catch (error) {
		throw caller.credential === void 0 ? expiredLinkError(error) : error;
	}
}
/**
* Returns the error of a link without a key. Keys are never stored: after a restart there is none
* for the upstream until the owner calls.
*/
function expiredLinkError(error) {
	if (!(error instanceof V1Error) || error.status !== 401 && error.status !== 403) return error;
	return new V1Error(403, plainError("link_expired", "This link is no longer valid: its owner has to ask for a new one."));
}
/**
* Finds the file with v1's checks in v1's order. 400: no name, an impossible name or a bad type.
* 403: a folder outside. A directory in the name is dropped. 404: no such file. A name that no file
* can have is 400 as well.
*/
async function findFile(files, { ctx, caller: { user }, query }) {
	const { subfolder: folderRule, viewWithoutName } = rulesFor(ctx);
	const ignoresFolders = folderRule === "ignored";
	const filenameGiven = query.get("filename");
	if (filenameGiven === null) throw emptyError(viewWithoutName === "not-found" ? 404 : 400, "\"filename\" is missing.");
	const { name, type = query.get("type") ?? "output" } = parseAnnotation(filenameGiven);
	if (name === "" || name.startsWith("/") || name.includes("..") || URL_OR_DRIVE.test(name)) throw emptyError(400, "\"filename\" is not a possible file name.");
	if (BLAKE3.test(name)) return findByHash(files, user, name);
	if (!isFileType(type)) throw emptyError(400, "\"type\" must be input, temp or output.");
	const resolvedFolder = withinRoot(query.get("subfolder") ?? "");
	if (resolvedFolder === void 0 && !ignoresFolders) throw emptyError(403, "\"subfolder\" is outside.");
	const subfolder = resolvedFolder ?? "";
	const filename = splitPath(name).name;
	const row = await files.get(user, {
		type,
		subfolder,
		filename
	});
	if (row !== void 0) return row;
	const foundAnywhere = ignoresFolders ? await files.newestNamed(user, {
		type,
		filename
	}) : void 0;
	if (foundAnywhere !== void 0) return foundAnywhere;
	if (isPossibleName(filename) && isWellEncoded(ctx.querystring)) throw emptyError(404, FILE_NOT_FOUND);
	throw emptyError(400, "\"filename\" is not a possible file name.");
}
function isPossibleName(filename) {
	return filename === "" || safeName(filename) !== void 0;
}
/**
* True when the query is encoded well. Clients that forget to encode still find `100%.png`; the `%`
* is blamed only for a name that is not found.
*/
function isWellEncoded(querystring) {
	return !/%(?![0-9a-f]{2})/i.test(querystring) && !hasControlCharacter(querystring, "encoded again");
}
async function findByHash(files, user, hash) {
	for (const type of [
		"output",
		"input",
		"temp"
	]) {
		const row = (await files.list(user, type)).find((candidate) => candidate.hash === hash);
		if (row !== void 0) return row;
	}
	throw emptyError(404, FILE_NOT_FOUND);
}
const FILE_NOT_FOUND = "There is no such file.";
const QUALITY_TOO_HIGH = "The quality in preview must be 100 or less.";
function readRendering(query, rules) {
	const rendering = parseRendering(query, rules);
	if (rendering === null) throw new V1Error(400, plainError("invalid_preview", QUALITY_TOO_HIGH));
	return rendering;
}
/** True when the caller is redirected: `--view` decides, else the dialect. */
function shouldRedirect(mode, ctx, query) {
	if (mode === "stream") return false;
	if (mode === "redirect") return true;
	const rule = viewRuleFor(ctx);
	if (rule === "redirect") return !query.has("channel");
	return rule === "redirect-except-browsers" && !isPageCall(ctx.req);
}
/** Returns the rendering that a link shows, in the words of `RULES_OF_LINKS`. */
function renderingFor(query, { alphaChannel }) {
	const rendering = Object.fromEntries(query);
	return rendering["channel"] === "alpha" && alphaChannel === "a-or-alpha" ? {
		...rendering,
		channel: "a"
	} : rendering;
}
async function serveView(services, download, rendering) {
	if (rendering === void 0) return serveFile(services.jobs, download);
	await services.decodeSlots(() => serveRendered(services.jobs, download, rendering));
}
// src/v1/file-routes.ts
/** Uploads, downloads and listings of the old API. */
const fileRoutes = routesFor({
	"POST /upload/image": uploadImage,
	"POST /upload/mask": uploadMask,
	"GET /view": view,
	/**
	* Answers for headers of model files. There are no models here, so each call gets v1's error.
	*/
	"GET /view_metadata/:folder"() {
		throw emptyError(404, "There is no such model file.");
	},
	/** Newest first, top level only. */
	async "GET /internal/files/:type"(services, { ctx, caller, params }) {
		const { type = "" } = params;
		if (!isFileType(type)) throw new V1Error(400, faultOf(400, { error: WRONG_TYPE }, WRONG_TYPE));
		const rows = await services.files.list(caller.user, type);
		sendJson(ctx, rows.filter((row) => row.subfolder === "").map((row) => row.filename));
	}
});
/**
* Serves signed links. They need no credential and ignore one, so this runs before authentication.
*/
function signedViewMiddleware(services) {
	return (ctx, next) => {
		const isRead = ctx.method === "GET" || ctx.method === "HEAD";
		const isSignedView = ctx.path === "/signed/view" || ctx.path === `/api/signed/view`;
		if (!isRead || !isSignedView) return next();
		ctx.set("Referrer-Policy", "no-referrer");
		return serveSignedView(services, ctx);
	};
}
const WRONG_TYPE = "Invalid directory type";
// src/v1/health.ts
/** A probe wants its answer within this time; a part that hangs is unavailable. */
const CHECK_TIMEOUT_MS = 2e3;
/**
* `/healthz`: the process answers. `/readyz`: jobs can be run. Neither needs a credential. Both
* answer 503 when the process will stop soon, so that a load balancer sends new calls elsewhere.
*/
function healthRoutes({ jobs, parts, isStopping }) {
	return (ctx, next) => {
		if (ctx.method !== "GET" && ctx.method !== "HEAD") return next();
		if (ctx.path !== "/healthz" && ctx.path !== "/readyz") return next();
		if (isStopping()) return sendJson(ctx, { status: "stopping" }, 503);
		return ctx.path === "/healthz" ? sendJson(ctx, { status: "ok" }) : sendReadiness(ctx);
	};
	async function sendReadiness(ctx) {
		const [health, ...reports] = await Promise.all([jobs.health(), ...Object.entries(parts).map(async ([name, part]) => [name, await reportOn(part)])]);
		const upstream = health.ok ? {
			status: "ok",
			kind: health.value.upstream
		} : {
			status: "failed",
			reason: health.error.code
		};
		const shown = {
			...Object.fromEntries(reports),
			upstream
		};
		const failed = reports.find(([, { status }]) => status === "failed")?.[0];
		const reason = health.ok ? failed && `${failed}_unavailable` : health.error.code;
		if (!health.ok || reason !== void 0) return sendJson(ctx, {
			status: "not ready",
			reason: reason ?? "unknown",
			parts: shown
		}, 503);
		sendJson(ctx, {
			status: "ready",
			upstream: health.value.upstream,
			parts: shown
		});
	}
}
async function reportOn({ kind, check, timeoutMs }) {
	let problem;
	const checked = Promise.resolve().then(() => check()).then((found) => void (problem = found));
	try {
		if (!await completesWithin(timeoutMs ?? CHECK_TIMEOUT_MS, checked)) return {
			status: "failed",
			kind,
			reason: "no_answer"
		};
	} catch {
		return {
			status: "failed",
			kind,
			reason: "unusable"
		};
	}
	return problem ? {
		kind,
		...problem
	} : {
		status: "ok",
		kind
	};
}
// src/translate/exception-types.ts
/**
* The signs by which a failed job's v2 error gets its name in v1. The first row that matches wins.
*/
const EXCEPTION_SIGNS = {
	InsufficientFundsError: {
		code: /insufficient_(credits|funds)|payment_required/i,
		text: /payment required|add credits|insufficient (credits|funds|balance)/i,
		isFinal: true
	},
	InactiveSubscriptionError: {
		code: /inactive_subscription|subscription_/i,
		text: /subscription.*(inactive|not active|required)|(inactive|not active).*subscription/is,
		isFinal: true
	},
	OOMError: {
		code: /\boom\b|out_of_memory/i,
		text: /out of memory|OutOfMemoryError|allocation on device|exit(ed)?( with)?( code)? 137/i,
		isFinal: false
	},
	ImageDownloadError: {
		code: /image_download|input_download/i,
		text: new RegExp(`^(LoadImage\\w*|\\w*FromURL)\\b.*(download|fetch|HTTP [45]\\d\\d|cannot identify image|UnidentifiedImage)`, "is"),
		isFinal: false
	},
	ModelDownloadError: {
		code: /model_download|missing_model|model_not_found/i,
		text: /(model|checkpoint|lora|\bvae\b|safetensors).*(not found|download|no such file)|Loader\w*\b.*FileNotFoundError/is,
		isFinal: true
	},
	ValidationError: {
		code: /invalid_workflow|invalid_input|missing_asset|workflow_format_ui|validation/i,
		text: /required input is missing|value not in list|prompt outputs failed validation/i,
		isFinal: true
	}
};
const ROWS = Object.entries(EXCEPTION_SIGNS);
/** PyTorch's class, which the local server shows when a node runs out of memory. */
const OUT_OF_MEMORY = "torch.OutOfMemoryError";
/** Pillow's sentence about a file that is not a picture, and its exception class. */
const NO_PICTURE = {
	text: /cannot identify image file/,
	own: "PIL.UnidentifiedImageError"
};
/** Codes of refusals by policy: a repetition changes nothing. */
const POLICY = /policy|moderation|forbidden|unauthorized|not_supported/i;
/** A Python or JavaScript exception class as the last line of a traceback starts with it. */
const CLASS_LINE = /^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Warning|Interrupt|Exit|Failure|Timeout))(?::|$)/;
/** Returns both names for a v2 job error. */
function exceptionTypes(error) {
	const documented = byCode(error.code) ?? byText(error);
	const own = error.x_exception_type || fromTraceback(error.traceback) || nativeOf(error, documented) || "RuntimeError";
	return {
		own,
		documented: documented ?? documentedIn(own) ?? "ValidationError"
	};
}
/** True when the code alone shows that a retry is useless. */
function isFinal(code) {
	const name = byCode(code);
	return name === void 0 ? POLICY.test(code) : EXCEPTION_SIGNS[name].isFinal;
}
/** v1's traceback: a list of texts that end with a newline. */
function tracebackLines(traceback) {
	if (!traceback) return [];
	return traceback.replace(/\n$/, "").split("\n").map((line) => `${line}\n`);
}
/** The class derived from the text, when the service names none. */
function nativeOf({ message }, documented) {
	if (NO_PICTURE.text.test(message)) return NO_PICTURE.own;
	return documented === "OOMError" ? OUT_OF_MEMORY : documented;
}
function byCode(code) {
	return ROWS.find(([, signs]) => signs.code.test(code))?.[0];
}
function documentedIn(word) {
	return ROWS.find(([name]) => name === word)?.[0];
}
/**
* Longer texts are cut before the search, whose time grows with the square of the length. Messages
* repeat what a client sent.
*/
const MAX_SEARCHED_CHARS$1 = 2e3;
function byText(error) {
	const { class_type: classType, message, traceback, x_exception_type: own } = error;
	const text = [
		classType,
		message,
		lastLine(traceback),
		own
	].map((part) => (part ?? "").slice(0, MAX_SEARCHED_CHARS$1)).join(" ");
	return ROWS.find(([, signs]) => signs.text.test(text))?.[0];
}
function fromTraceback(traceback) {
	return CLASS_LINE.exec(lastLine(traceback))?.[1];
}
function lastLine(traceback) {
	return traceback?.trimEnd().split("\n").at(-1)?.trim() ?? "";
}
// src/translate/outputs.ts
/**
* v1's list for each family of content types. It has priority over v2's `type`, which calls a saved
* video an image.
*/
const LIST_OF_FAMILY = /* @__PURE__ */ new Map([
	["image", "images"],
	["video", "images"],
	["audio", "audio"],
	["model", "3d"]
]);
/** Returns the output of a node in v1's form; `undefined` while a file in it has no v1 name yet. */
function v1OutputOf(ui, files) {
	const entries = [];
	for (const [key, items] of Object.entries(ui)) {
		const shown = items.map((item) => v1ItemOf(item, files));
		if (shown.includes(void 0)) return void 0;
		entries.push([key, shown]);
	}
	return Object.fromEntries(entries);
}
/** The classes whose pictures are animated. v1 states that beside the list; v2 does not. */
const SAVES_ANIMATED = /* @__PURE__ */ new Set(["SaveAnimatedWEBP", "SaveAnimatedPNG"]);
/**
* Returns the files of a node of this class in v1's groups, when v2 does not send the node's
* output.
*/
function v1FilesOf(outputs, files, className) {
	const lists = /* @__PURE__ */ new Map();
	for (const output of outputs) {
		const file = files.get(output.id);
		if (!file) continue;
		const [key, item] = listItemOf(output, file);
		addTo(lists, key, item);
	}
	if ((SAVES_ANIMATED.has(className) || outputs.some(isVideo)) && lists.has("images")) lists.set("animated", [true]);
	return Object.fromEntries(lists);
}
/**
* Returns the output of a node as the hosted service documents it: with videos in a list of their
* own. An animated file is a video unless its name is that of a picture.
*/
function withVideoList(output) {
	const { images = [], animated, video = [], ...more } = output;
	const moves = animated?.[0] === true;
	const isVideoFile = (item) => {
		const kind = kindOfFile(item);
		return kind === "video" || moves && kind !== void 0 && kind !== "image";
	};
	const videos = images.filter(isVideoFile);
	if (videos.length === 0) return output;
	const pictures = images.filter((item) => !isVideoFile(item));
	return {
		...pictures.length > 0 && { images: pictures },
		...more,
		video: [...video, ...videos]
	};
}
/**
* Returns all outputs of a job so far, by node: from the node's own output, else from its files.
*/
function v1OutputsOf(job, files, graph) {
	const shown = /* @__PURE__ */ new Map();
	for (const [nodeId, outputs] of byOwner(job.outputs, graph)) {
		const output = v1FilesOf(outputs, files, classOf(graph, nodeId));
		if (Object.keys(output).length > 0) shown.set(nodeId, output);
	}
	for (const [nodeId, ui] of Object.entries(job.x_ui ?? {})) {
		const output = v1OutputOf(ui, files);
		if (output) shown.set(nodeId, output);
	}
	return shown;
}
/** Returns the listed outputs of each node, with the nodes in the order of their first output. */
function byOwner(outputs, graph) {
	const owners = /* @__PURE__ */ new Map();
	for (const output of outputs) {
		if (!isListed(output)) continue;
		addTo(owners, ownerOf(output, graph), output);
	}
	return owners;
}
function isVideo({ content_type: contentType, type }) {
	return contentType.startsWith("video/") || type === "video";
}
/** Returns the kind that the name of a file tells; `undefined` for an item that is no file. */
function kindOfFile(item) {
	if (!isJsonObject(item) || typeof item.filename !== "string") return void 0;
	return outputTypeOf$2(lookup(item.filename) || "");
}
/**
* True when an output is in v1's lists. Images that are sent over the socket only are in no list.
*/
function isListed(output) {
	return output.x_websocket !== true;
}
/**
* Returns the node that an output belongs to. An output without a node belongs to the only node
* that is possible.
*/
function ownerOf(output, graph) {
	if (displayNode(graph, output.node_id) !== void 0) return output.node_id;
	return soleSink(graph) ?? output.node_id;
}
function v1ItemOf(item, files) {
	if (!isJsonObject(item) || typeof item.x_asset !== "string") return item;
	const file = files.get(item.x_asset);
	if (!file) return void 0;
	const { x_asset: _, ...more } = item;
	return {
		...refOf(file),
		...more
	};
}
function listItemOf(output, file) {
	const family = output.content_type.split("/")[0] ?? "";
	if (family === "text" && file.text !== void 0) return ["text", file.text];
	if (output.type === "latent") return ["latents", refOf(file)];
	return [LIST_OF_FAMILY.get(family) ?? LIST_OF_FAMILY.get(output.type) ?? "files", refOf(file)];
}
function refOf({ filename, subfolder, type }) {
	return {
		filename,
		subfolder,
		type
	};
}
// src/translate/stored-history-entry.ts
/**
* Entries are stored with the node's own class where v1 has `exception_type`, and with the
* documented name as their last member. No client is shown that member.
*/
const MEMBER_NAME = "documented_exception_type";
const DOCUMENTED_MEMBER = new RegExp(`,"${MEMBER_NAME}":"(\\w+)"\\}$`);
/**
* Returns the end of the stored entry of a prompt: the last member if the prompt failed, and the
* closing brace.
*/
function endOfStoredEntry(error) {
	return error === null ? "}" : `,"${MEMBER_NAME}":"${exceptionTypes(error).documented}"}`;
}
/** Returns the text of a stored history entry as it is shown to a client. */
function shownEntry(stored, form) {
	const documentedMember = DOCUMENTED_MEMBER.exec(stored.slice(-100));
	const own = documentedMember ? `${stored.slice(0, -documentedMember[0].length)}}` : stored;
	const isFailure = documentedMember !== null || own.includes("\"execution_error\"");
	const mayHaveVideos = own.includes(MOVES);
	if (form === "own" || !(isFailure || mayHaveVideos)) return own;
	return documentedEntry(own, documentedMember?.[1]);
}
/** A text that every output with a video contains. */
const MOVES = "\"animated\":[true]";
function documentedEntry(text, documented) {
	const entry = parseJson(text);
	if (!isJsonObject(entry)) return text;
	const { outputs, status } = entry;
	return stringifyJson({
		...entry,
		...isJsonObject(outputs) && { outputs: withVideoLists(outputs) },
		...isJsonObject(status) && { status: withDocumentedWord(status, documented) }
	});
}
function withVideoLists(outputs) {
	const lists = Object.entries(outputs);
	return Object.fromEntries(lists.map(([nodeId, output]) => [nodeId, withVideoList(output)]));
}
function withDocumentedWord(status, documented) {
	const { messages } = status;
	if (!Array.isArray(messages)) return status;
	const shown = messages.map((message) => inDocumentedWord(message, documented));
	return {
		...status,
		messages: shown
	};
}
function inDocumentedWord(message, documented) {
	if (!Array.isArray(message) || message[0] !== "execution_error") return message;
	const [type, data] = message;
	if (!isJsonObject(data)) return message;
	return [type, {
		...data,
		exception_type: documented ?? documentedOf(data)
	}];
}
/** Returns the documented name. Entries of earlier versions have one name only. */
function documentedOf(data) {
	const { exception_type: own, exception_message: message, node_type: classType } = data;
	return exceptionTypes({
		code: "",
		message: textOf$3(message),
		class_type: textOf$3(classType),
		x_exception_type: textOf$3(own)
	}).documented;
}
function textOf$3(value) {
	return typeof value === "string" ? value : "";
}
// src/translate/status.ts
/**
* The word of `/api/job/{id}/status` for each v2 status, in v2's order, and for each outcome, when
* nothing more is known.
*/
const PLAIN_WORD = {
	queued: "queued_waiting",
	running: "preparing",
	succeeded: "success",
	canceling: "cancel_requested",
	canceled: "cancelled",
	failed: "error",
	expired: "lost",
	lost: "lost"
};
/** The `/api/jobs` status of each `StatusWord`, in their order. */
const LISTED = {
	success: "completed",
	error: "failed",
	non_retryable_error: "failed",
	lost: "failed",
	cancelled: "cancelled",
	submitted: "pending",
	queued_waiting: "pending",
	preparing: "in_progress",
	executing: "in_progress",
	cancel_requested: "cancelled"
};
/** Returns the status word of a prompt without a history entry. */
function liveWord({ status, hasEvidence, cancelRequested }) {
	if (status === void 0) return cancelRequested ? "cancel_requested" : "submitted";
	if ((status === "queued" || status === "running") && cancelRequested) return "cancel_requested";
	return status === "running" && hasEvidence ? "executing" : PLAIN_WORD[status];
}
/**
* Returns the last status word of a prompt. A failure that a repetition would not change has a word
* of its own.
*/
function endWord(outcome, errorCode) {
	if (outcome === "failed" && errorCode !== void 0 && isFinal(errorCode)) return "non_retryable_error";
	return PLAIN_WORD[outcome];
}
/**
* Returns `status_str` of the history entry. v1 has only two words for it; its messages show an
* interruption.
*/
function historyStatus(outcome) {
	return outcome === "succeeded" ? "success" : "error";
}
/** Returns `status` in `/api/jobs` and `/api/jobs/{id}`. */
function listedStatus(word) {
	return LISTED[word];
}
// src/translate/history.ts
/**
* Returns v1's history entry of a prompt that has ended.
* @internal
*/
function historyEntry(state, submitted) {
	const outputs = [...state.sentOutputs].filter((entry) => entry[1] !== null);
	const outcome = state.outcome ?? "lost";
	return {
		prompt: queueItem(submitted),
		outputs: Object.fromEntries(outputs),
		status: {
			status_str: historyStatus(outcome),
			completed: outcome === "succeeded",
			messages: state.messages
		},
		meta: Object.fromEntries(outputs.map(([nodeId]) => [nodeId, metaOf(nodeId, submitted.graph)]))
	};
}
/** Writes the history entry as the text that is stored, in steps. */
function* historySteps(state, submitted, { graphJson, extraDataJson }) {
	const { outputs, status, meta } = historyEntry(state, submitted);
	const { number, promptId, targets } = submitted;
	return `{${[
		`"prompt":[${[
			stringifyJson(number),
			stringifyJson(promptId),
			graphJson,
			extraDataJson
		].join(",")},${stringifyJson(targets)}]`,
		`"outputs":${yield* stringifySteps(outputs)}`,
		`"status":${stringifyJson(status)}`,
		`"meta":${yield* stringifySteps(meta)}`
	].join(",")}${endOfStoredEntry(state.error)}`;
}
/** Makes v1's 5-tuple. */
function queueItem({ number, promptId, graph, extraData, targets }) {
	return [
		number,
		promptId,
		graph,
		extraData,
		targets
	];
}
/** Returns an item of `GET /api/history_v2`: its `prompt` is an object without the graph. */
function historyV2Item(row, entry) {
	const [priority, promptId, , extraData] = entry.prompt;
	const { outputs, status, meta } = entry;
	return {
		prompt_id: promptId,
		create_time: row.createdAtMs,
		...workflowIdOf(extraData),
		prompt: {
			priority,
			prompt_id: promptId,
			extra_data: extraData
		},
		outputs,
		status,
		meta
	};
}
/** Returns the value under the id in `GET /api/history_v2/{id}`. */
function historyV2Detail(entry) {
	const [priority, promptId, graph, extraData, targets] = entry.prompt;
	const { outputs, status, meta } = entry;
	return {
		prompt: {
			priority,
			prompt_id: promptId,
			prompt: graph,
			extra_data: extraData,
			outputs_to_execute: targets
		},
		outputs,
		status,
		meta
	};
}
/** Returns `{workflow_id}` if the front end sent its graph along. */
function workflowIdOf(extraData) {
	const id = at(at(at(extraData, "extra_pnginfo"), "workflow"), "id");
	return typeof id === "string" ? { workflow_id: id } : {};
}
function at(value, key) {
	return typeof value === "object" && value !== null && Object.hasOwn(value, key) ? value[key] : void 0;
}
function metaOf(nodeId, graph) {
	const display = displayNode(graph, nodeId) ?? nodeId;
	return {
		node_id: nodeId,
		display_node: display,
		parent_node: display === nodeId ? null : display,
		real_node_id: display
	};
}
// src/v1/job-view.ts
/** Returns a live prompt as `/api/jobs` shows it. */
function liveView(prompt) {
	const { createdAtMs, startedAtMs } = prompt;
	return {
		submitted: prompt,
		word: liveWord(prompt),
		createdAtMs,
		startedAtMs,
		endedAtMs: null,
		entry: null
	};
}
/**
* Returns an ended prompt with its texts parsed, and its results in the form that its client knows.
*/
function endedView(row, form) {
	const view = endedItemView(row, form);
	const graph = parseJson(row.graphJson);
	const targets = parseJson(row.targetsJson);
	return {
		...view,
		submitted: {
			...view.submitted,
			graph,
			targets
		}
	};
}
/** Returns the part of an ended prompt that a list shows. */
function endedItemView(row, form) {
	const { number, promptId, createdAtMs, startedAtMs, endedAtMs } = row;
	return {
		submitted: {
			number,
			promptId,
			extraData: parseJson(row.extraDataJson)
		},
		word: wordOf$1(row),
		createdAtMs,
		startedAtMs,
		endedAtMs,
		entry: parseEntry(row, form)
	};
}
/** Returns the last status word, for `/api/job/{id}/status`. */
function wordOf$1(row) {
	return row.statusWord ?? "lost";
}
/** Parses the entry of a done row. It needs no checks, since Holdover wrote it. */
function parseEntry(row, form = "own") {
	return parseJson(shownEntry(row.entryJson ?? "null", form));
}
/** Finds a done prompt by its v1 id or its v2 id. */
async function findEndedPrompt({ prompts }, user, id) {
	const row = await prompts.find(user, id) ?? await prompts.findByJob(user, id);
	return row?.state === "done" ? row : void 0;
}
// src/v1/history.ts
/** `/history` and the hosted API's `/api/history_v2`. */
const historyRoutes = routesFor({
	async "GET /history"({ ledger, markFetched }, request) {
		const { ctx, caller, query } = request;
		const page = {
			maxItems: integerParam(query, "max_items"),
			offset: integerParam(query, "offset")
		};
		const shown = paginate(await ledger.prompts.outlines(caller.user), page);
		markFetched(request, "listed", idsOf$1(shown));
		await sendJsonPieces(ctx, historyChunks(ledger, shown, rulesFor(ctx).results));
	},
	/**
	* Answers `{}` for an unknown id, and for a prompt that has not ended: a client that polls takes
	* the key for the end.
	*/
	async "GET /history/:id"(services, request) {
		const { ctx, params } = request;
		const { id = "" } = params;
		const stored = (await fetchEnded(services, request))?.entryJson ?? null;
		const text = stored === null ? null : shownEntry(stored, rulesFor(ctx).results);
		await sendJsonPieces(ctx, (text === null ? ["{}"] : [
			`{${JSON.stringify(id)}:`,
			text,
			"}"
		]).values());
	},
	async "POST /history"({ ledger, bodies }, { ctx, caller }) {
		const body = requireObject(await readJson(ctx, bodies));
		if (isTruthyInPython(body.clear)) await ledger.prompts.clearHistory(caller.user);
		const ids = readNamedIds(body.delete, "delete");
		if (ids.length > 0) {
			const knownIds = (await Promise.all(ids.map((id) => findEndedPrompt(ledger, caller.user, id)))).flatMap((row) => row ? [row.promptId] : []);
			await ledger.prompts.deleteHistory(caller.user, [.../* @__PURE__ */ new Set([...ids, ...knownIds])]);
		}
		sendEmpty(ctx);
	},
	/** Lists the entries, newest first. */
	async "GET /api/history_v2"({ ledger, markFetched }, request) {
		const { ctx, caller, query } = request;
		const all = (await ledger.prompts.outlines(caller.user)).toReversed();
		const offset = Math.max(0, integerParam(query, "offset") ?? 0);
		const count = integerParam(query, "max_items") ?? all.length;
		const shown = all.slice(offset, offset + Math.max(0, count));
		markFetched(request, "listed", idsOf$1(shown));
		await sendJsonPieces(ctx, historyV2Chunks(ledger, shown, rulesFor(ctx).results));
	},
	async "GET /api/history_v2/:id"(services, request) {
		const { ctx, params } = request;
		const { id = "" } = params;
		const row = await fetchEnded(services, request);
		if (!row) throw new V1Error(404, plainError("not_found", `No finished prompt has the id ${id}.`));
		sendJson(ctx, { [id]: historyV2Detail(parseEntry(row, rulesFor(ctx).results)) });
	}
});
function idsOf$1(outlines) {
	return outlines.map(({ promptId }) => promptId);
}
function historyV2Chunks(ledger, shown, form) {
	return between("{\"history\":[", shownBatches(ledger, shown, (outline, entryJson) => stringifyJson(historyV2Item(outline, parseEntry({ entryJson }, form)))), "]}");
}
/** The ended prompt that a client asks for by its id. */
async function fetchEnded({ ledger, markFetched }, request) {
	const row = await findEndedPrompt(ledger, request.caller.user, request.params["id"] ?? "");
	if (row) markFetched(request, "by id", [row.promptId]);
	return row;
}
/**
* The entries that are read at a time: as many as fit in this many bytes, or a single larger one.
*/
const BATCH_BYTES = 262144;
/** The size assumed for an entry that an older version wrote to Redis. */
const UNKNOWN_BYTES = BATCH_BYTES;
/**
* Returns the entries that a client asks for, oldest first.
* @internal
*/
function paginate(all, { maxItems, offset }) {
	if (maxItems === void 0) return all.slice(Math.max(0, offset ?? 0));
	if (maxItems <= 0) return [];
	if (offset === void 0 || offset < 0) return all.slice(-maxItems);
	return all.slice(offset, offset + maxItems);
}
/**
* Yields `GET /history` in pieces. An id that was used again shows its newest run in the place of
* its first.
* @internal
*/
function historyChunks(ledger, page, form = "own") {
	return between("{", shownBatches(ledger, [...new Map(page.map((outline) => [outline.promptId, outline])).values()], ({ promptId }, text) => `${JSON.stringify(promptId)}:${shownEntry(text, form)}`), "}");
}
async function* between(open, batches, close) {
	let before = open;
	for await (const batch of batches) {
		yield before + batch;
		before = ",";
	}
	yield before === open ? open + close : close;
}
/** Reads the entries in batches. Entries that were deleted meanwhile are left out. */
async function* shownBatches({ prompts }, outlines, show) {
	for (const batch of batchesOf(outlines)) {
		const texts = await prompts.entries(batch.map(({ key }) => key));
		const shown = batch.flatMap((outline, index) => {
			const text = texts[index] ?? null;
			return text === null ? [] : show(outline, text);
		});
		if (shown.length > 0) yield shown.join(",");
	}
}
function* batchesOf(outlines) {
	let batch = [];
	let batchBytes = 0;
	for (const outline of outlines) {
		const sizeBytes = outline.storedBytes || UNKNOWN_BYTES;
		if (batch.length > 0 && batchBytes + sizeBytes > BATCH_BYTES) {
			yield batch;
			[batch, batchBytes] = [[], 0];
		}
		batch.push(outline);
		batchBytes += sizeBytes;
	}
	if (batch.length > 0) yield batch;
}
// src/translate/job-views.ts
/** Lists in a node's output that hold facts about files, not files. */
const NOT_MEDIA = /* @__PURE__ */ new Set(["animated"]);
/** Returns an item of `GET /api/jobs`. Unknown members are left out. */
function jobItem(view) {
	const { submitted } = view;
	const status = listedStatus(view.word);
	const error = endMessage(view.entry, "execution_error");
	return defined({
		id: submitted.promptId,
		status,
		priority: submitted.number,
		create_time: view.createdAtMs,
		execution_start_time: view.startedAtMs,
		execution_end_time: view.endedAtMs,
		...outputsSummary(view.entry),
		...workflowIdOf(submitted.extraData),
		execution_error: status === "failed" ? error ?? null : null
	});
}
/**
* Returns `GET /api/jobs/{id}`: the item, its outputs, and the workflow from which it can be loaded
* again.
*/
function jobDetail(view) {
	const { graph, extraData } = view.submitted;
	return {
		...jobItem(view),
		update_time: view.endedAtMs ?? view.startedAtMs ?? view.createdAtMs,
		outputs: view.entry?.outputs ?? {},
		...view.entry && { execution_status: view.entry.status },
		workflow: {
			prompt: graph,
			extra_data: extraData
		}
	};
}
/**
* Returns `GET /api/job/{id}/status`. `error_message` is the error record as JSON text, as the
* hosted API sends it.
*/
function jobStatus(view) {
	const error = endMessage(view.entry, "execution_error");
	const updatedAt = isoTime(view.endedAtMs ?? view.startedAtMs ?? view.createdAtMs);
	return {
		id: view.submitted.promptId,
		status: view.word,
		created_at: isoTime(view.createdAtMs),
		updated_at: updatedAt,
		last_state_update: updatedAt,
		assigned_inference: null,
		error_message: error === void 0 ? null : stringifyJson(error)
	};
}
function outputsSummary(entry) {
	const files = entry ? shownFiles(entry.outputs) : [];
	const preview = files.find(({ type }) => type === "output") ?? files[0];
	return {
		outputs_count: files.length,
		...entry && { previewable_outputs_count: files.length },
		...preview && { preview_output: preview }
	};
}
function shownFiles(outputs) {
	return Object.entries(outputs).flatMap(([nodeId, lists]) => Object.entries(lists).filter(([mediaType]) => !NOT_MEDIA.has(mediaType)).flatMap(([mediaType, items]) => items.filter(isFile$1).map((file) => ({
		...file,
		nodeId,
		mediaType
	}))));
}
/** The kinds of media by which `GET /api/jobs?output_type=` filters. */
const MEDIA_KINDS = [
	"image",
	"video",
	"audio",
	"3d"
];
/**
* Returns the kinds of a job's outputs, by the names of the files, else by the names of their
* lists.
*/
function outputTypesOf({ entry }) {
	const files = entry ? shownFiles(entry.outputs) : [];
	return new Set(files.map(({ filename, mediaType }) => outputTypeOf$1(filename, mediaType)));
}
function outputTypeOf$1(filename, mediaType) {
	const [kind] = (lookup(filename) || mediaType).split("/", 1);
	if (kind === "model") return "3d";
	return kind === "images" ? "image" : kind ?? mediaType;
}
function isFile$1(item) {
	return isJsonObject(item) && typeof item.filename === "string";
}
function endMessage(entry, type) {
	return (entry?.status.messages.find(([name]) => name === type))?.[1];
}
function defined(members) {
	const kept = Object.entries(members).filter(([, value]) => value !== null && value !== void 0);
	return Object.fromEntries(kept);
}
function isoTime(atMs) {
	return new Date(atMs).toISOString();
}
// src/v1/job-list.ts
const LISTED_STATUSES = [
	"pending",
	"in_progress",
	"completed",
	"failed",
	"cancelled"
];
/** The sort keys. Local servers sort by one pair of words, hosted ones by the other; both work. */
const SORT_KEYS = {
	created_at: (entry) => entry.createdAtMs,
	create_time: (entry) => entry.createdAtMs,
	execution_duration: durationMsOf,
	execution_time: durationMsOf
};
/** The limit that front ends use themselves. Their schema needs a number. */
const DEFAULT_LIMIT$1 = 200;
/** `GET /api/jobs`: what front ends poll instead of queue and history. */
async function listJobs(services, request) {
	const { ctx, caller, query } = request;
	const wantedStatuses = statusesOf(query.get("status"));
	const limit = integerParam(query, "limit") ?? DEFAULT_LIMIT$1;
	if (limit <= 0) throw badRequest("\"limit\" must be a positive integer.");
	const offset = Math.max(0, integerParam(query, "offset") ?? 0);
	const workflowId = query.get("workflow_id");
	const outputType = outputTypeOf(query.get("output_type"));
	const sorted = sorterFrom(query)((await listedJobsOf(services, caller.user, rulesFor(ctx).results)).filter((entry) => wantedStatuses.includes(listedStatus(entry.word))));
	const inWorkflow = workflowId === null ? sorted : await filterShown(sorted, ({ item }) => item.workflow_id === workflowId);
	const found = outputType === null ? inWorkflow : await filterShown(inWorkflow, ({ outputTypes }) => outputTypes.has(outputType));
	const shown = found.slice(offset, offset + limit);
	const jobs = await jobItemsOf(shown);
	services.markFetched(request, "listed", endedIds(jobs));
	sendJson(ctx, {
		jobs,
		pagination: {
			offset,
			limit,
			total: found.length,
			has_more: offset + shown.length < found.length
		}
	});
}
/** Reads one entry after the other: entries may be large, while items are small. */
async function jobItemsOf(entries) {
	const items = [];
	for (const entry of entries) {
		const shown = await entry.shown();
		if (shown) items.push(shown.item);
	}
	return items;
}
function endedIds(items) {
	return items.flatMap(({ id, execution_end_time: end }) => typeof id === "string" && end !== void 0 ? [id] : []);
}
/**
* Lists the jobs, oldest first. A prompt that ends meanwhile is in at least one of the two lists.
*/
async function listedJobsOf({ ledger, livePrompts }, user, form) {
	const listed = livePrompts.list(user);
	const ended = await ledger.prompts.outlines(user);
	const endedKeys = new Set(ended.map(({ key }) => key));
	const live = listed.filter(({ key }) => !endedKeys.has(key));
	return [...ended.map((outline) => endedJob$1(ledger, outline, form)), ...live.map(liveJob)];
}
async function filterShown(entries, isWanted) {
	const found = [];
	for (const entry of entries) {
		const shown = await entry.shown();
		if (shown && isWanted(shown)) found.push(entry);
	}
	return found;
}
function liveJob(prompt) {
	const view = liveView(prompt);
	return {
		...view,
		shown: async () => shownJob(view)
	};
}
function shownJob(view) {
	return {
		item: jobItem(view),
		outputTypes: outputTypesOf(view)
	};
}
/** A larger item, which has the texts of an error in it, is made anew for each list. */
const MAX_KEPT_WEIGHT = 200;
/** Caches the items of ended prompts: an item never changes, and its texts may be large. */
const shownJobs = {
	own: /* @__PURE__ */ new WeakMap(),
	documented: /* @__PURE__ */ new WeakMap()
};
function endedJob$1({ prompts }, outline, form) {
	const { createdAtMs, startedAtMs, endedAtMs } = outline;
	const known = shownJobs[form];
	const read = async () => {
		await pause(outline.storedBytes);
		const row = await prompts.get(outline.key);
		const shown = row && shownJob(endedItemView(row, form));
		if (shown && jsonWeight(shown.item, MAX_KEPT_WEIGHT) <= MAX_KEPT_WEIGHT) known.set(outline, shown);
		return shown;
	};
	const shown = async () => known.get(outline) ?? await read();
	return {
		word: wordOf$1(outline),
		createdAtMs,
		startedAtMs,
		endedAtMs,
		shown
	};
}
/** The number of bytes that are parsed before other calls get their turn. */
const pause = yieldEvery(262144);
function statusesOf(text) {
	if (text === null || text === "") return LISTED_STATUSES;
	const names = text.split(",").map((name) => name.trim());
	const unknown = names.filter((name) => !LISTED_STATUSES.some((known) => known === name));
	if (unknown.length > 0) throw badRequest(`Unknown status: ${unknown.join(", ")}`);
	return LISTED_STATUSES.filter((known) => names.includes(known));
}
function outputTypeOf(text) {
	if (text === null || text === "") return null;
	const known = MEDIA_KINDS.find((type) => type === text);
	if (known === void 0) throw badRequest(`Unknown output_type: ${text}`);
	return known;
}
function sorterFrom(query) {
	const name = query.get("sort_by") ?? "created_at";
	const order = query.get("sort_order") ?? "desc";
	const key = Object.hasOwn(SORT_KEYS, name) ? SORT_KEYS[name] : void 0;
	if (!key) throw badRequest(`Unknown sort_by: ${name}`);
	if (order === "asc") return (entries) => entries.toSorted((a, b) => key(a) - key(b));
	if (order !== "desc") throw badRequest(`Unknown sort_order: ${order}`);
	return (entries) => entries.toReversed().toSorted((a, b) => key(b) - key(a));
}
function durationMsOf(view) {
	return view.startedAtMs === null || view.endedAtMs === null ? 0 : view.endedAtMs - view.startedAtMs;
}
function badRequest(message) {
	return new V1Error(400, faultOf(400, { error: message }, message));
}
// src/v1/jobs.ts
/** `/api/jobs…` of newer front ends and `/api/job/{id}/status` of the hosted API. */
const jobRoutes = routesFor({
	"GET /api/jobs": listJobs,
	async "GET /api/jobs/:id"(services, request) {
		const { ctx } = request;
		const view = await fetchView(services, request);
		if (!view) throw jobNotFound();
		sendJson(ctx, jobDetail(view));
	},
	/** Deletes a job that has ended, as `POST /history` does. */
	async "DELETE /api/jobs/:id"({ livePrompts, ledger }, { ctx, caller: { user }, params: { id = "" } }) {
		const ended = await findEndedPrompt(ledger, user, id);
		if (ended) {
			await ledger.prompts.deleteHistory(user, [ended.promptId]);
			return sendEmpty(ctx, 204);
		}
		if (!livePrompts.find(user, id)) throw jobNotFound();
		throw new V1Error(409, plainError("job_not_ended", "The job has not ended: cancel it first."));
	},
	async "POST /api/jobs/cancel"(services, { ctx, caller }) {
		const body = requireObject(await readJson(ctx, services.bodies));
		const namesKnown = rulesFor(ctx).jobCancel === "known-ids";
		const ids = namesKnown ? readSomeIds(body.job_ids) : readIdList(body.job_ids, "job_ids");
		if (namesKnown) await requireKnown(services, caller.user, ids);
		const found = ids.flatMap((id) => services.livePrompts.find(caller.user, id) ?? []);
		const prompts = [...new Set(found)];
		const cancelledIds = prompts.map(({ promptId }) => promptId);
		ctx.state.promptIds = cancelledIds;
		await services.cancel(prompts, caller);
		sendJson(ctx, { cancelled: namesKnown ? cancelledIds : prompts.length > 0 });
	},
	/**
	* Cancels one job. For an unknown id the answer is `cancelled: false`; the hosted service answers
	* that the id is unknown.
	*/
	async "POST /api/jobs/:id/cancel"(services, { ctx, caller, params }) {
		const { id = "" } = params;
		const prompt = services.livePrompts.find(caller.user, id);
		if (!prompt && rulesFor(ctx).jobCancel === "known-ids") await requireKnown(services, caller.user, [id]);
		if (prompt) await services.cancel([prompt], caller);
		sendJson(ctx, { cancelled: prompt !== void 0 });
	},
	async "GET /api/job/:id/status"(services, request) {
		const { ctx } = request;
		const view = await fetchView(services, request);
		if (!view) throw new V1Error(404, plainError("not_found", JOB_NOT_FOUND));
		sendJson(ctx, jobStatus(view));
	}
});
const JOB_NOT_FOUND = "Job not found";
function jobNotFound() {
	return new V1Error(404, faultOf(404, { error: JOB_NOT_FOUND }, JOB_NOT_FOUND));
}
/** The most jobs that the hosted service cancels in one call. */
const MAX_HOSTED_IDS = 100;
function readSomeIds(value) {
	const ids = Array.isArray(value) ? readIdList(value, "job_ids") : [];
	if (ids.length > 0 && ids.length <= MAX_HOSTED_IDS) return ids;
	throw invalidRequest(`"job_ids" must be a list of 1 to ${MAX_HOSTED_IDS} ids.`);
}
/** Refuses the call when one of the ids names no job. Then nothing is cancelled. */
async function requireKnown({ livePrompts, ledger }, user, ids) {
	for (const id of ids) if ((livePrompts.find(user, id) ?? await findEndedPrompt(ledger, user, id)) === void 0) throw jobNotFound();
}
async function fetchView(services, request) {
	const view = await findView(services, request);
	if (view?.entry) services.markFetched(request, "by id", [view.submitted.promptId]);
	return view;
}
async function findView(services, { ctx, caller: { user }, params: { id = "" } }) {
	const livePrompt = services.livePrompts.find(user, id);
	if (livePrompt && !livePrompt.isEnding) return liveView(livePrompt);
	const ended = await findEndedPrompt(services.ledger, user, id);
	if (ended) return endedView(ended, rulesFor(ctx).results);
	return livePrompt && liveView(livePrompt);
}
// src/prompts/prompts-in-queue.ts
/**
* Returns the live prompts of the user that `/history` does not show yet, in the order they run.
* The original moves a prompt from its queue to its history in one step. Here its history is
* visible some milliseconds before the prompt leaves the live prompts.
*/
async function promptsInQueue({ livePrompts, ledger }, user) {
	const ending = livePrompts.list(user).filter(({ isEnding }) => isEnding);
	if (ending.length === 0) return livePrompts.list(user);
	const entries = await ledger.prompts.entries(ending.map(({ key }) => key));
	const recorded = new Set(ending.filter((_, index) => (entries[index] ?? null) !== null));
	return livePrompts.list(user).filter((prompt) => !recorded.has(prompt));
}
// src/v1/prompt.ts
/**
* How long the first frame waits after the answer. Several clients lose a job for good when its
* frames overtake this answer, or come before they have read it: they register their handlers after
* that. The original's first frame comes 2 ms later (median of 65 recordings).
*/
const FRAMES_AFTER_ANSWER_MS = 2;
/** `POST /prompt` submits a workflow; `GET /prompt` returns the number of prompts left. */
const promptRoutes = routesFor({
	async "POST /prompt"(services, { ctx, caller }) {
		const body = await readJson(ctx, services.bodies, "prompt");
		const count = usesCounter(body) ? await services.counter.next() : 0;
		const { subfolder } = rulesFor(ctx);
		const submission = {
			subfolder,
			...readSubmission(body, count)
		};
		ctx.state.clientId = submission.clientId ?? "";
		if (submission.promptId !== void 0) services.onSubmission?.(caller, submission.promptId);
		const accepted = await services.acceptor.accept(caller, submission);
		ctx.state.promptIds = [accepted.promptId];
		releaseAfter(ctx.res, accepted, services.clock);
		sendJson(ctx, toAnswer(accepted));
	},
	async "GET /prompt"(services, { ctx, caller }) {
		const { length } = await promptsInQueue(services, caller.user);
		sendJson(ctx, { exec_info: { queue_remaining: length } });
	}
});
/**
* Releases the frames after the answer. The prompt of a client that disconnects runs all the same.
*/
function releaseAfter(response, { releaseFrames }, clock) {
	if (response.destroyed) return releaseFrames();
	const releaseLater = () => {
		response.off("close", releaseFrames);
		clock.callAfter(FRAMES_AFTER_ANSWER_MS, releaseFrames);
	};
	response.once("close", releaseFrames);
	response.once("finish", releaseLater);
}
function toAnswer({ promptId, number, nodeErrors }) {
	return {
		prompt_id: promptId,
		number,
		node_errors: nodeErrors
	};
}
// src/prompts/pending-reason.ts
/**
* Every reason why a prompt has not started. A prompt has one reason at a time:
*
* 1. Without a job, `LivePrompt.waitReason` holds the reason. Each row names the file that detects
*    it. That file sets it with `LivePrompts.setWaitReason`, or appends an entry from which
*    `follow/apply-entry.ts` sets it.
* 2. With a job (`job_queued`), the queue of the upstream has the reason (`JobQueueReason`).
*    `app/readiness.ts` asks for it on demand.
*
* `pendingReasonOf` chooses between them. These states look like pending, and are not:
*
* - A call that waits for memory, or in a brownout, is not answered yet: it has no prompt.
* - `GET /queue` shows a local client one running prompt, and further ones that run as pending
*   (`v1/queue.ts`).
* - The start of a job is shown after the end of the user's earlier prompts, at most a second later
*   (`follow/job-consumer.ts`).
* - A prompt whose server died has the reason from before, until another server takes it over
*   (`resume.ts`).
* @internal
*/
const PENDING_REASONS = {
	/** The first reason of each prompt. `upstreams/remote/submit.ts` sends the prompt in its turn. */
	submitting: { text: "Its submission is on its way to the upstream, or waits for its turn there." },
	/** Set by `resume.ts` after a restart. */
	no_key: { text: "The key of its user is not stored. It waits for the next call of the user." },
	/**
	* Set by `follow/apply-entry.ts`. Only the server that sends the prompt knows which of the next
	* four reasons applies.
	*/
	in_outbox: {
		text: "It waits in the outbox.",
		isInOutbox: true,
		notification: "waits"
	},
	/** Set by `submit/outbox.ts`, as are the next three. */
	earlier_prompts: {
		text: "It waits in the outbox behind earlier prompts of its user.",
		isInOutbox: true
	},
	no_room: {
		text: "It waits in the outbox: the upstream has no room for it.",
		isInOutbox: true
	},
	unreachable: {
		text: "It waits in the outbox: the upstream cannot be reached.",
		isInOutbox: true,
		readyzPart: "upstream"
	},
	refused_for_now: {
		text: "It waits in the outbox: the upstream does not accept the key now, or a program on the way answers instead of it.",
		isInOutbox: true
	},
	/** Set by `submit/replace-lost-job.ts`. */
	job_lost: {
		text: "It waits in the outbox: the upstream lost its job before the start.",
		isInOutbox: true,
		notification: "sentAgain"
	},
	/** Set by `submit/recover.ts`, by the table in `submit/recovery-rules.ts`. */
	searching: {
		text: "The answer to its submission was lost. Holdover looks for its job.",
		notification: "outcomeUnknown"
	},
	/** Set by `LivePrompts.setJobId`. */
	job_queued: {
		text: "Its job is in the queue of the upstream.",
		notification: "queued"
	},
	/**
	* The rest: no other reason applies. Embedded: `upstreams/embedded/memory-job-queue.ts` starts a
	* job when fewer than `--concurrency` run, in the order of `upstreams/jobs/fair-order.ts`. Over
	* Redis: `upstreams/distributed-state/queue-scripts.ts` does.
	*/
	workers_busy: { text: "The workers run other jobs, or are about to take it. Users take turns." },
	/** Found by `upstreams/distributed-state/queue-condition.ts`, as are the next two. */
	no_worker: {
		text: "No server and no worker takes jobs.",
		readyzPart: "queue"
	},
	paused: {
		text: "The queue was paused with a tool for BullMQ.",
		readyzPart: "queue"
	},
	stalled: {
		text: "No job runs, although there are workers and jobs wait.",
		readyzPart: "queue"
	},
	/** Found by `app/readiness.ts`. */
	queue_unreachable: {
		text: "The queue does not answer.",
		readyzPart: "queue"
	},
	/**
	* The job is at a service: `upstreams/remote-events/follow-job.ts` sees its start in a stream or
	* by polling.
	*/
	not_started: { text: "The service has not started its job, as far as Holdover can see." },
	upstream_unhealthy: {
		text: "The upstream does not answer as it should.",
		readyzPart: "upstream"
	}
};
/** True when the prompt can be deleted from the queue: as far as known, no part of it runs. */
function isNotStarted({ status }) {
	return status === void 0 || status === "queued";
}
/** True when the prompt is in the outbox of this process or of another one. */
function isInOutbox({ waitReason }) {
	return pendingRow(waitReason).isInOutbox === true;
}
/** The row of a reason. */
function pendingRow(reason) {
	return PENDING_REASONS[reason];
}
/**
* Returns why the prompt is pending; `null`: it is not. `queueReason` is called only where it
* decides.
*/
async function pendingReasonOf(prompt, queueReason) {
	if (!isNotStarted(prompt) || prompt.cancelRequested) return null;
	if (prompt.lacksCredential) return "no_key";
	return prompt.waitReason === "job_queued" ? queueReason() : prompt.waitReason;
}
// src/prompts/submit/ids.ts
/** The range of the counter: the 12 bits of a UUID behind its version. */
const COUNTER_LIMIT = 4096;
/** The positions of the counter's digits in the text of a UUID. */
const COUNTER = {
	from: 15,
	to: 18
};
/**
* Makes ids for prompts: UUIDs of version 4 like the original's, since some clients check that.
* Clients also name files and jobs by the first eight digits of an id; those are random. Three
* later digits count the ids that one process made in a millisecond, so that prompts with equal
* numbers have an order.
*/
function createPromptKeys() {
	let lastMs = 0;
	let count = 0;
	return (nowMs) => {
		count = nowMs === lastMs ? (count + 1) % COUNTER_LIMIT : 0;
		lastMs = nowMs;
		const id = randomUUID();
		const counter = count.toString(16).padStart(3, "0");
		return id.slice(0, COUNTER.from) + counter + id.slice(COUNTER.to);
	};
}
/** Compares ids that were made in the same millisecond: the id that was made first is lower. */
function compareIds(a, b) {
	const [one, other] = [a, b].map((id) => id.slice(COUNTER.from, COUNTER.to) + id);
	if (one === other) return 0;
	return (one ?? "") < (other ?? "") ? -1 : 1;
}
/** True when v1 clients can put the id into a URL path unchanged. */
function isPathSafeId(id) {
	return /^[\w.~-]{1,300}$/.test(id);
}
// src/prompts/queue-order.ts
/** Orders prompts by age, oldest first. All processes must order two prompts in the same way. */
function byCreation(a, b) {
	return a.createdAtMs - b.createdAtMs || compareIds(a.key, b.key);
}
/** Orders prompts as they run: the lower number first, equal numbers by age. */
function byQueueOrder(a, b) {
	return a.number === b.number ? byCreation(a, b) : a.number - b.number;
}
// src/prompts/live-prompts.ts
/**
* A prompt between its accepted `POST` and its history entry. A class, because of its accessors: in
* an object literal they give each object a hidden class of its own. The members are assigned one
* by one, since spreading takes a hundred times as long.
*/
var LivePrompt = class {
	key;
	promptId;
	number;
	clientId;
	createdAtMs;
	lazy;
	targets;
	/** True when the process that accepted the prompt has ended. */
	isResumed = false;
	isV2Job;
	/** The credential of the caller, if there is one, is in memory only. */
	caller;
	channel;
	/** `null`: no v2 job is known, and `status` is `undefined`. */
	jobId = null;
	/** A terminal status means that the job has ended and its history is being written. */
	status = void 0;
	/** True when the job has reported a node, a step, a preview or an output. */
	hasEvidence = false;
	/** The nodes of the job that have started; `null` before the first event. */
	nodeRuns = null;
	cancelRequested = false;
	/** True when a process has answered the client: frames of the prompt may reach sockets. */
	isReleased = false;
	/**
	* Why the prompt has not started; without meaning after the start. Only `LivePrompts` sets it.
	*/
	waitReason = "submitting";
	/**
	* True while the prompt waits for a call of its user, which brings the key. Only `LivePrompts`
	* sets it.
	*/
	lacksCredential = false;
	startedAtMs = null;
	/** True when the end is known: the history is being written, or was written just now. */
	isEnding = false;
	constructor(newPrompt, connection) {
		this.key = newPrompt.key;
		this.promptId = newPrompt.promptId;
		this.number = newPrompt.number;
		this.clientId = newPrompt.clientId;
		this.createdAtMs = newPrompt.createdAtMs;
		this.lazy = {
			graph: createLazyJson(newPrompt.graph, newPrompt.graphJson),
			extraData: createLazyJson(newPrompt.extraData, newPrompt.extraDataJson)
		};
		this.targets = newPrompt.targets;
		this.isV2Job = newPrompt.isV2Job ?? false;
		this.caller = connection.caller;
		this.channel = connection.channel;
	}
	get graph() {
		return readValue(this.lazy.graph);
	}
	set graph(value) {
		setValue(this.lazy.graph, value);
	}
	get extraData() {
		return readValue(this.lazy.extraData);
	}
};
/** The number of a user's prompts whose graphs stay in memory. */
const LOADED_PROMPTS = 16;
/** All prompts that have not ended, by user: what `/queue` shows and `queue_remaining` counts. */
function createLivePrompts({ onPending } = {}) {
	const users = /* @__PURE__ */ new Map();
	const sizes = /* @__PURE__ */ new Map();
	let bytes = 0;
	const all = (user) => users.get(user)?.prompts ?? [];
	/** Returns the prompts of a user in the order they run. */
	const list = (user) => [...all(user)].toSorted(byQueueOrder);
	const setWaitReason = (prompt, reason) => {
		if (prompt.waitReason === reason) return;
		prompt.waitReason = reason;
		const userPrompts = users.get(prompt.caller.user);
		if (userPrompts?.prompts.has(prompt)) updateOutbox(userPrompts, prompt);
		onPending?.(prompt, reason);
	};
	return {
		add(prompt) {
			const { user } = prompt.caller;
			const userPrompts = users.get(user) ?? emptyUserPrompts();
			users.set(user, userPrompts);
			if (!userPrompts.prompts.has(prompt)) {
				sizes.set(prompt, sizeOf$1(prompt));
				bytes += sizeOf$1(prompt);
				onPending?.(prompt, prompt.waitReason);
			}
			userPrompts.prompts.add(prompt);
			updateOutbox(userPrompts, prompt);
			addToIndex(userPrompts, prompt, prompt.promptId);
		},
		/** Sets the v2 job of a prompt. `find` then finds the prompt by the id of the job, too. */
		setJobId(prompt, jobId) {
			prompt.jobId = jobId;
			setWaitReason(prompt, "job_queued");
			const userPrompts = users.get(prompt.caller.user);
			if (userPrompts?.prompts.has(prompt)) addToIndex(userPrompts, prompt, jobId);
		},
		/**
		* Removes the job from a prompt: the job is gone, and the prompt is going to get another one.
		*/
		clearJobId(prompt) {
			const { jobId, promptId } = prompt;
			prompt.jobId = null;
			prompt.status = void 0;
			setWaitReason(prompt, "job_lost");
			const userPrompts = users.get(prompt.caller.user);
			if (userPrompts && jobId !== null && jobId !== promptId) removeFromIndex(userPrompts, prompt, jobId);
		},
		remove(prompt) {
			const userPrompts = users.get(prompt.caller.user);
			if (!userPrompts?.prompts.delete(prompt)) return;
			bytes -= sizes.get(prompt) ?? 0;
			sizes.delete(prompt);
			userPrompts.inOutbox.delete(prompt);
			for (const id of idsOf(prompt)) removeFromIndex(userPrompts, prompt, id);
			if (userPrompts.prompts.size === 0) users.delete(prompt.caller.user);
		},
		has: (prompt) => users.get(prompt.caller.user)?.prompts.has(prompt) ?? false,
		/** Sets the reason why the prompt waits from now on. */
		setWaitReason,
		/** Takes the prompt out of the outbox: its submission is being sent. */
		removeFromOutbox(prompt) {
			if (isInOutbox(prompt)) setWaitReason(prompt, "submitting");
		},
		/** Marks that the prompt waits for a call of its user, which brings the key. */
		awaitCredential(prompt) {
			prompt.lacksCredential = true;
			onPending?.(prompt, "no_key");
		},
		/** Marks that a process which has the key leads the prompt. */
		foundCredential(prompt) {
			prompt.lacksCredential = false;
		},
		list,
		/** True when another job of this user is ahead in the queue and still queued. */
		hasEarlierQueued(prompt) {
			for (const other of all(prompt.caller.user)) if (other.status === "queued" && byQueueOrder(other, prompt) < 0) return true;
			return false;
		},
		count: (user) => users.get(user)?.prompts.size ?? 0,
		/** Bytes of the graphs and extra data of all live prompts. */
		bytes: () => bytes,
		/** Unloads the graph of a prompt that is far back in the queue. */
		unloadIfFar({ caller, status, lazy }) {
			const count = users.get(caller.user)?.prompts.size ?? 0;
			if (status !== "queued" || count <= LOADED_PROMPTS) return;
			unload(lazy.graph);
			unload(lazy.extraData);
		},
		/** Counts the prompts of all users in each of these states. */
		countByState(isCounted = () => true) {
			const counts = {
				waiting: 0,
				queued: 0,
				running: 0,
				ending: 0
			};
			for (const { prompts } of users.values()) for (const prompt of prompts) if (isCounted(prompt)) counts[stateOf(prompt)]++;
			return counts;
		},
		find(user, id) {
			const matches = users.get(user)?.byId.get(id) ?? [];
			return matches.length < 2 ? matches[0] : matches.toSorted(byCreation).at(-1);
		},
		/** Returns the prompts of this user that are in the outbox. */
		inOutbox: (user) => users.get(user)?.inOutbox ?? NO_PROMPTS,
		/**
		* Returns the prompts that an interrupt stops. A prompt that has just ended is left out, though
		* `/queue` shows it until its history is written.
		*/
		interruptible: (user) => shownAsRunning(list(user).filter(({ isEnding }) => !isEnding))
	};
}
const NO_PROMPTS = /* @__PURE__ */ new Set();
/** Returns the prompts that `/queue` calls running: those that run, else the oldest with a job. */
function shownAsRunning(prompts) {
	const withJob = prompts.filter((prompt) => prompt.status !== void 0 && !hasEnded(prompt));
	const active = withJob.filter((prompt) => prompt.status !== "queued");
	if (active.length > 0) return active;
	return withJob.toSorted(byCreation).slice(0, 1);
}
/** Returns the bytes of the JSON; 0 when it has not been written. */
function sizeOf$1({ lazy }) {
	return (lazy.graph.json?.length ?? 0) + (lazy.extraData.json?.length ?? 0);
}
function emptyUserPrompts() {
	return {
		prompts: /* @__PURE__ */ new Set(),
		inOutbox: /* @__PURE__ */ new Set(),
		byId: /* @__PURE__ */ new Map()
	};
}
function updateOutbox({ inOutbox }, prompt) {
	if (isInOutbox(prompt)) inOutbox.add(prompt);
	else inOutbox.delete(prompt);
}
function idsOf({ promptId, jobId }) {
	return jobId === null || jobId === promptId ? [promptId] : [promptId, jobId];
}
function addToIndex({ byId }, prompt, id) {
	const matches = byId.get(id) ?? [];
	if (!matches.includes(prompt)) byId.set(id, [...matches, prompt]);
}
function removeFromIndex({ byId }, prompt, id) {
	const left = (byId.get(id) ?? []).filter((other) => other !== prompt);
	if (left.length > 0) byId.set(id, left);
	else byId.delete(id);
}
/** True when nothing of the prompt is left to run or to stop. */
function hasEnded({ status }) {
	return status !== void 0 && IS_TERMINAL[status];
}
function stateOf(prompt) {
	if (prompt.status === void 0) return "waiting";
	if (hasEnded(prompt)) return "ending";
	return prompt.status === "queued" ? "queued" : "running";
}
// src/v1/queue.ts
/** `/queue`, `/interrupt` and `/free`: v1's routes for showing and stopping jobs. */
const queueRoutes = routesFor({
	async "GET /queue"(services, { ctx, caller }) {
		const rules = rulesFor(ctx);
		const { running, pending } = queueOf(await promptsInQueue(services, caller.user), rules);
		await sendJsonPieces(ctx, queuePieces([running.map(weakRef), pending.map(weakRef)], tupleForm(rules.queueItem)));
	},
	/**
	* Deletes prompts. The hosted service cancels pending and running jobs (spec 3). The original
	* cancels only pending ones: its clients read the queue again and interrupt the prompts that still
	* run.
	*/
	async "POST /queue"(services, { ctx, caller }) {
		const body = requireObject(await readJson(ctx, services.bodies));
		const rules = rulesFor(ctx);
		const inQueue = await promptsInQueue(services, caller.user);
		const { pending } = queueOf(inQueue, rules);
		const isPending = (prompt) => isNotStarted(prompt) || pending.includes(prompt);
		const cancelsAll = rules.queueDelete === "pending-and-running";
		const namedIds = /* @__PURE__ */ new Set([...readNamedIds(body.delete, "delete"), ...readNamedIds(body.cancel, "cancel")]);
		const selected = inQueue.filter((prompt) => isNamed(namedIds, prompt) ? cancelsAll || isPending(prompt) : isTruthyInPython(body.clear) && isPending(prompt));
		ctx.state.promptIds = selected.map(({ promptId }) => promptId);
		await services.cancel(selected, caller);
		if (rules.queueAnswer === "empty") return sendEmpty(ctx);
		const deleted = selected.map(({ promptId }) => promptId);
		sendJson(ctx, {
			deleted,
			cleared: isTruthyInPython(body.clear)
		});
	},
	/**
	* Interrupts a named prompt if it runs, or waits here for its job. Without a name it interrupts the
	* running ones. The answer is always 200, also when idle.
	*/
	async "POST /interrupt"(services, { ctx, caller }) {
		const body = requireObject(await readJsonOrUndefined(ctx, services.bodies) ?? {});
		const running = services.livePrompts.interruptible(caller.user);
		const interruptible = services.livePrompts.list(caller.user).filter((prompt) => prompt.jobId === null || running.includes(prompt));
		if (typeof body.prompt_id === "string") requirePrintable(body.prompt_id, "prompt_id");
		const namedIds = /* @__PURE__ */ new Set([body.prompt_id]);
		const selected = isTruthyInPython(body.prompt_id) ? interruptible.filter((prompt) => isNamed(namedIds, prompt)) : running;
		ctx.state.promptIds = selected.map(({ promptId }) => promptId);
		await services.cancel(selected, caller);
		sendEmpty(ctx);
	},
	/**
	* Frees memory: `free_memory` makes the next prompt compute all nodes anew. There are no models to
	* unload.
	*/
	async "POST /free"(services, { ctx, caller }) {
		const body = requireObject(await readJson(ctx, services.bodies));
		if (isTruthyInPython(body.free_memory)) services.forgetResults?.(caller.user);
		sendEmpty(ctx);
	}
});
/**
* Returns both lists. Local clients may assert that at most one prompt runs, so further running
* prompts are the first ones of those that wait.
*/
function queueOf(prompts, { queueRunning }) {
	const runningPrompts = shownAsRunning(prompts);
	const running = queueRunning === "one" ? runningPrompts.toSorted(byStart).slice(0, 1) : runningPrompts;
	const waiting = prompts.filter((prompt) => !runningPrompts.includes(prompt) && !hasEnded(prompt));
	return {
		running,
		pending: [...runningPrompts.filter((one) => !running.includes(one)), ...waiting]
	};
}
function byStart(a, b) {
	return (a.startedAtMs ?? Infinity) - (b.startedAtMs ?? Infinity) || byCreation(a, b);
}
function weakRef(prompt) {
	return new WeakRef(prompt);
}
function* queuePieces([running, pending], tuple) {
	yield "{\"queue_running\":[";
	yield* itemPieces(running, tuple);
	yield "],\"queue_pending\":[";
	yield* itemPieces(pending, tuple);
	yield "]}";
}
function tupleForm(item) {
	return item === "as-submitted" ? submittedTuple : scheduledTuple;
}
function submittedTuple({ number, promptId, lazy, targets }) {
	return {
		before: [number, promptId],
		after: [toJsonText(lazy.extraData), JSON.stringify(targets)]
	};
}
/**
* Makes the tuple of the hosted service: the place in its list, and the time instead of
* `extra_data`.
*/
function scheduledTuple({ promptId, targets, createdAtMs }, position) {
	return {
		before: [position, promptId],
		after: [targets, { create_time: createdAtMs }].map((x) => JSON.stringify(x))
	};
}
/** Yields v1's 5-tuples, joined from texts: clients poll thousands of them. */
function* itemPieces(prompts, tuple) {
	let position = 0;
	for (const weak of prompts) {
		const prompt = weak.deref();
		if (prompt === void 0) continue;
		position++;
		const { before, after } = tuple(prompt, position);
		yield `${position === 1 ? "" : ","}${JSON.stringify(before).slice(0, -1)},`;
		yield toJsonText(prompt.lazy.graph);
		yield `,${after.join(",")}]`;
	}
}
function isNamed(ids, { promptId, jobId }) {
	return ids.has(promptId) || jobId !== null && ids.has(jobId);
}
// src/http/public-address.ts
/** Reads a `Host` header as the root address of a server. `undefined`: it is not a host. */
function readHost(text, scheme = "http") {
	const root = `${scheme}://${text}`;
	return !/[@/\\?#\s]/.test(text) && URL.canParse(root) ? new URL(root) : void 0;
}
/** `publicUrl` has priority over every header. */
function createPublicAddresses({ publicUrl, trustedProxies = [] } = {}) {
	const forwardedOf = createForwardedReader(trustedProxies);
	const fixed = publicUrl && addressOf$1({
		...publicUrl,
		isStated: true
	});
	return {
		/** `undefined`: the call names no host. */
		of(call) {
			if (fixed) return fixed;
			const forwarded = forwardedOf(call);
			const scheme = forwarded?.scheme ?? ("encrypted" in call.socket ? "https" : "http");
			const origin = readHost(forwarded?.host ?? call.headers.host ?? "", scheme)?.origin;
			if (origin === void 0) return void 0;
			const isStated = [
				forwarded?.scheme,
				forwarded?.host,
				forwarded?.prefix
			].some((fact) => fact !== void 0);
			return addressOf$1({
				origin,
				prefix: forwarded?.prefix ?? "",
				isStated
			});
		},
		prefixOf: (call) => fixed?.prefix ?? forwardedOf(call)?.prefix ?? "",
		/** The host by which trusted proxies were called; not checked. `undefined`: they state none. */
		forwardedHostOf: (call) => forwardedOf(call)?.host,
		/** The client's address, if trusted proxies state it. */
		clientOf: (call) => forwardedOf(call)?.client
	};
}
function addressOf$1({ origin, prefix, isStated }) {
	return {
		origin,
		prefix,
		base: origin + prefix,
		isStated
	};
}
/**
* Reads the facts that trusted proxies state about a call. `undefined`: the peer is not trusted, so
* none of its headers counts. `trusted` are addresses, CIDR blocks, or `loopback`, `linklocal`,
* `uniquelocal`.
*/
function createForwardedReader(trusted) {
	if (trusted.length === 0) return () => void 0;
	const isTrusted = proxyAddr.compile([...trusted]);
	const trusts = (address) => address !== void 0 && isTrusted(address, 0);
	return ({ headers, socket }) => {
		if (!trusts(socket.remoteAddress)) return void 0;
		return X_FORWARDED.some((name) => headers[name] !== void 0) ? readXForwarded(headers, trusts) : readForwarded(headers, trusts);
	};
}
const X_FORWARDED = [
	"x-forwarded-for",
	"x-forwarded-host",
	"x-forwarded-proto",
	"x-forwarded-prefix"
];
/**
* Reads the `X-Forwarded` headers. Each proxy appends its value; values before the first trusted
* one come from the client.
*/
function readXForwarded(headers, trusts) {
	const addresses = listOf(headers["x-forwarded-for"]);
	const proxies = countProxies(addresses, trusts);
	const statedValue = (name) => {
		const values = listOf(headers[name]);
		return values[Math.max(0, values.length - proxies)];
	};
	const prefixes = listOf(headers["x-forwarded-prefix"]).slice(-proxies);
	return {
		scheme: schemeOf(statedValue("x-forwarded-proto")),
		host: statedValue("x-forwarded-host"),
		prefix: prefixOf(prefixes.map((prefix) => prefix.replace(/\/$/, "")).join("")),
		client: clientOf$1(addresses.at(-proxies))
	};
}
/** Reads RFC 7239: one element for each proxy; that of the nearest proxy is last. */
function readForwarded({ forwarded = "" }, trusts) {
	const elements = elementsOf(forwarded);
	const addresses = elements.map((element) => addressIn(element["for"] ?? ""));
	const trustedElements = elements.slice(-countProxies(addresses, trusts));
	const statedValue = (name) => trustedElements.find((element) => element[name] !== void 0)?.[name];
	return {
		scheme: schemeOf(statedValue("proto")),
		host: statedValue("host"),
		prefix: void 0,
		client: clientOf$1(addressIn(trustedElements[0]?.["for"] ?? ""))
	};
}
/** Counts the trusted peer, and before it every proxy whose address is trusted. */
function countProxies(addresses, trusts) {
	const client = addresses.findLastIndex((address) => !trusts(address));
	return Math.max(1, client === -1 ? addresses.length : addresses.length - client);
}
/** Returns the elements. An unreadable header counts as an absent one. */
function elementsOf(header) {
	try {
		return header === "" ? [] : parseForwarded(header);
	} catch {
		return [];
	}
}
function listOf(header) {
	return (Array.isArray(header) ? header.join(",") : header ?? "").split(",").map((value) => value.trim()).filter((value) => value !== "");
}
/** Returns the address without its port: `192.0.2.1:4711`, `"[2001:db8::1]:4711"`. */
function addressIn(node) {
	return /^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? node.replace(/^([\d.]+):\d+$/, "$1");
}
function clientOf$1(text) {
	const address = addressIn(text ?? "");
	return isIP(address) === 0 ? void 0 : address;
}
/** The schemes that proxies name. Some name that of a WebSocket. */
const SCHEMES = /* @__PURE__ */ new Map([
	["http", "http"],
	["ws", "http"],
	["https", "https"],
	["wss", "https"]
]);
function schemeOf(text = "") {
	return SCHEMES.get(text.toLowerCase());
}
const PREFIX$1 = /^(\/[\w.~!$&'()*+;=:@%-]+)+$/;
const MAX_PREFIX_CHARS = 256;
function prefixOf(text) {
	return PREFIX$1.test(text) && text.length <= MAX_PREFIX_CHARS && !/\/\.{1,2}(\/|$)/.test(text) ? text : void 0;
}
// src/auth/operator.ts
/**
* Headers that proxies add: a call with one of them did not come directly. Two `X-` headers are
* left out, since clients that call directly send them.
*/
const FORWARDING_HEADERS = /^(x-(?!(api-key|requested-with)$).+|forwarded.*|via|(.+-)?client-ip|cdn-loop|(akamai|cdn|cf|cloudfront|fastly|fly|incap|ngrok|proxy|tailscale|true)-.+)$/;
const NOT_OPERATOR = {
	proxied: "The server is set up to stand behind a proxy, where every call comes from loopback: only --local-token proves an operator.",
	remote: "The call does not come from the machine of the server, and no --local-token is set.",
	forwarded: "A proxy forwarded the call, and no --local-token is set.",
	host: "The call names a host that is not the loopback address.",
	origin: "A page of another origin makes the call, and no --local-token is set."
};
/**
* Checks if a caller is the operator, who sees all users. With `--local-token` every authenticated
* caller has shown the token. Without it, the operator calls directly over loopback. A proxy that
* adds no header is recognized by its HTTP/1.0 or its `Connection: close`, and a page that has
* rebound its name to loopback by its `Host`. With `--enable-cors-header` a page of another origin
* may call, but it is not the operator.
*/
function createOperatorCheck({ localToken, proxy }) {
	const isBehindProxy = proxy.trustedProxies.length > 0 || proxy.publicUrl !== void 0 || proxy.allowedHosts.length > 0;
	return (request) => {
		if (localToken !== void 0) return {
			isOperator: true,
			by: "token"
		};
		const reason = isBehindProxy ? NOT_OPERATOR.proxied : refusalOf$1(request);
		return reason === void 0 ? {
			isOperator: true,
			by: "loopback"
		} : {
			isOperator: false,
			reason
		};
	};
}
function refusalOf$1({ headers, socket, httpVersion }) {
	if (!isLoopbackAddress(socket.remoteAddress)) return NOT_OPERATOR.remote;
	if (Object.keys(headers).some((name) => FORWARDING_HEADERS.test(name)) || httpVersion === "1.0" || headers.connection === "close") return NOT_OPERATOR.forwarded;
	const hostname = readHost(headers.host ?? "")?.hostname ?? "";
	if (!LOOPBACK_HOST.test(hostname)) return NOT_OPERATOR.host;
	return isOwnPage(headers) ? void 0 : NOT_OPERATOR.origin;
}
/**
* True for a page of this server. A browser sends an origin with each call of a page; `null` may be
* any page in a sandbox.
*/
function isOwnPage({ origin, host }) {
	return origin === void 0 || origin === `http://${host}`;
}
const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
function isLoopbackAddress(address = "") {
	return /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === "::1";
}
// src/migration/workflow-text.ts
/** Returns the text of a workflow, with a placeholder in place of each file reference. */
function workflowText(workflow, sourceOf) {
	const inputs = [];
	const unusedPlaceholder = placeholderAllocator(workflow);
	const rewrittenNodes = Object.entries(workflow).map(([node, entry]) => {
		const rewrittenInputs = Object.entries(entry.inputs ?? {}).map(([input, value]) => {
			const info = assetReferenceIn(value);
			if (!info) return [input, value];
			const from = sourceOf(info);
			const placeholder = unusedPlaceholder(from);
			inputs.push({
				node,
				input,
				placeholder,
				from
			});
			return [input, placeholder];
		});
		return [node, {
			...entry,
			inputs: Object.fromEntries(rewrittenInputs)
		}];
	});
	const graph = Object.fromEntries(rewrittenNodes);
	return {
		text: prettyJson(graph),
		inputs,
		hasExactNumbers: hasExactNumbers(graph)
	};
}
/**
* Returns a function that makes placeholders such as `@inputs/cat.png`, with more `@` when the workflow contains that
* text. Reads the workflow only once, because it may be long and have thousands of references.
*/
function placeholderAllocator(workflow) {
	const used = /* @__PURE__ */ new Set();
	for (const { inputs } of Object.values(workflow)) collectMarked(inputs ?? {}, used);
	const known = /* @__PURE__ */ new Map();
	return (from) => {
		const name = placeholderName(from);
		let placeholder = known.get(name) ?? `@${name}`;
		while (used.has(placeholder)) placeholder = `@${placeholder}`;
		known.set(name, placeholder);
		return placeholder;
	};
}
/** Collects the texts and names that could be mistaken for a placeholder. */
function collectMarked(value, found) {
	if (typeof value === "string") {
		if (value.startsWith("@")) found.add(value);
	} else if (Array.isArray(value)) for (const item of value) collectMarked(item, found);
	else if (isJsonObject(value)) for (const [name, item] of Object.entries(value)) {
		if (name.startsWith("@")) found.add(name);
		collectMarked(item, found);
	}
}
function placeholderName(from) {
	if (from.kind === "file") return from.file.path;
	const { job, node, index } = from.place;
	return `${job}/${node.replaceAll(/[^\w-]/g, "_")}/${index}`;
}
function assetReferenceIn(value) {
	if (!isJsonObject(value) || value["__type"] !== "core/ASSET") return void 0;
	const { info } = value;
	if (!isJsonObject(info) || typeof info["id"] !== "string") return void 0;
	const filePath = info["file_path"];
	return {
		id: info["id"],
		filePath: typeof filePath === "string" ? filePath : void 0
	};
}
function hasExactNumbers(value) {
	if (value instanceof LosslessNumber) return true;
	if (typeof value !== "object" || value === null) return false;
	return Object.values(value).some((item) => hasExactNumbers(item));
}
// src/migration/plan-session.ts
/** The member of `extra_data` that the official v2 clients can send. */
const PARTNER_KEY = "api_key_comfy_org";
/** Returns the v2 steps that do the same as a recorded v1 session. */
function planFrom(session) {
	const planner = createPlanner(session);
	for (const event of session.events) planner[event.kind](event);
	return planner.finish();
}
function createPlanner(session) {
	const steps = [];
	const files = /* @__PURE__ */ new Map();
	/** For each job id, the variable of the job in the code. */
	const jobs = /* @__PURE__ */ new Map();
	const awaitedJobs = /* @__PURE__ */ new Set();
	const savedOutputs = /* @__PURE__ */ new Set();
	/** For the asset id of an upload, the id of the output with the same bytes. */
	const reuploads = /* @__PURE__ */ new Map();
	const uploadedHashes = /* @__PURE__ */ new Set();
	const notes = /* @__PURE__ */ new Set();
	const inputNameOf = createLocalNames();
	const outputNameOf = createLocalNames();
	const outputsOf = (jobId) => session.jobs.get(jobId)?.outputs ?? [];
	/** Plans an upload, unless an earlier output has the same bytes: then later jobs use that output. */
	function upload(event) {
		const { assetId, hash } = event;
		const output = hash === void 0 || uploadedHashes.has(hash) ? void 0 : outputWith(hash);
		if (hash !== void 0) uploadedHashes.add(hash);
		if (output === void 0) return void addFile(event);
		reuploads.set(assetId, output);
	}
	function outputWith(hash) {
		return [...jobs.keys()].flatMap((jobId) => outputsOf(jobId)).find((output) => output.hash === hash)?.id;
	}
	function addFile(upload) {
		const known = files.get(upload.assetId);
		if (known) return known;
		const { assetId, path: filePath, contentType } = upload;
		const file = {
			assetId,
			variable: `asset_${files.size + 1}`,
			path: inputNameOf(inputPathOf(filePath)),
			filePath,
			contentType
		};
		files.set(assetId, file);
		steps.push({
			kind: "upload",
			file
		});
		return file;
	}
	/** Plans to wait for a job, once, if its end was recorded. */
	function wait(jobId) {
		const job = jobs.get(jobId);
		const ended = session.jobs.get(jobId)?.status;
		if (job === void 0 || ended === void 0 || awaitedJobs.has(job)) return;
		awaitedJobs.add(job);
		steps.push({
			kind: "wait",
			job,
			ended
		});
		if (!session.usedSocket) return;
		for (const { id, name, isStreamed } of outputsOf(jobId)) if (isStreamed) save(id, name);
	}
	function outputRefOf(assetId) {
		for (const [jobId, job] of jobs) {
			const output = outputsOf(jobId).find(({ id }) => id === assetId);
			if (!output) continue;
			const ofNode = outputsOf(jobId).filter(({ nodeId }) => nodeId === output.nodeId);
			return {
				jobId,
				job,
				node: output.nodeId,
				index: ofNode.indexOf(output)
			};
		}
	}
	function sourceOf(info) {
		const place = outputRefOf(reuploads.get(info.id) ?? info.id);
		if (place) wait(place.jobId);
		if (place) return {
			kind: "output",
			place
		};
		const path = info.filePath?.replace(/^input\//, "") ?? info.id;
		return {
			kind: "file",
			file: addFile({
				assetId: info.id,
				path,
				contentType: UNKNOWN_TYPE
			})
		};
	}
	function submit({ jobId, workflow: graph, ...more }) {
		const number = jobs.size + 1;
		const workflow = {
			path: `workflow-${number}.json`,
			...workflowText(graph, sourceOf)
		};
		const job = `job_${number}`;
		jobs.set(jobId, job);
		const needsPartnerKey = more.secrets.includes(PARTNER_KEY);
		steps.push({
			kind: "submit",
			job,
			workflow,
			needsPartnerKey
		});
		for (const name of more.secrets) if (name !== PARTNER_KEY) notes.add(secretLeftOut(name));
		if (more.hasExtraPngInfo) notes.add(PNG_INFO_NOTE);
		if (more.isPartial) notes.add(PARTIAL_NOTE);
		if (more.namesFolder) notes.add(FOLDER_NAME_NOTE);
	}
	function save(assetId, filename) {
		const place = outputRefOf(assetId);
		const key = `${assetId} ${filename}`;
		if (!place || savedOutputs.has(key)) return;
		wait(place.jobId);
		if (savedOutputs.has(key)) return;
		savedOutputs.add(key);
		steps.push({
			kind: "download",
			place,
			path: outputNameOf(filename)
		});
	}
	function download({ assetId, filename, rendering }) {
		if (rendering !== void 0) notes.add(`${commentSafe(filename)}, ${commentSafe(rendering)}: ${NOT_RENDERED}`);
		if (!outputRefOf(assetId)) notes.add(`${commentSafe(filename)}: ${NO_JOB_MADE_IT}`);
		save(assetId, filename);
	}
	function refused({ code, message, workflow: graph }) {
		notes.add(`A workflow was refused (${commentSafe(code)}): ${commentSafe(message)}`);
		if (graph === void 0) return;
		const number = steps.filter(({ kind }) => kind === "refused").length + 1;
		const workflow = {
			path: `refused-${number}.json`,
			...workflowText(graph, sourceOf)
		};
		steps.push({
			kind: "refused",
			name: `refused_${number}`,
			workflow
		});
	}
	function cancel(event) {
		const job = jobs.get(event.jobId);
		if (job === void 0) return;
		pauseBefore(event, job);
		steps.push({
			kind: "cancel",
			job
		});
	}
	/** Plans a pause before a cancel, so that the job runs as long in v2 as it did in v1. */
	function pauseBefore(event, job) {
		const known = session.jobs.get(event.jobId);
		const queuedMs = known?.queuedMs ?? null;
		if (known !== void 0 && known.status !== "canceled") return wait(event.jobId);
		if (queuedMs !== null) steps.push({
			kind: "until-running",
			job
		});
		const ranMs = queuedMs === null ? Infinity : Math.max(0, event.sinceSubmitMs - queuedMs);
		const seconds = Math.round(Math.min(event.pausedMs, ranMs) / 100) / 10;
		if (seconds > 0) steps.push({
			kind: "pause",
			seconds
		});
	}
	function finish() {
		for (const jobId of jobs.keys()) wait(jobId);
		const { usedSocket } = session;
		return {
			steps,
			files: [...files.values()],
			usedSocket,
			notes: [...notes]
		};
	}
	return {
		upload,
		submit,
		refused,
		download,
		cancel,
		finish
	};
}
const UNKNOWN_TYPE = "application/octet-stream";
const PNG_INFO_NOTE = "extra_data.extra_pnginfo: v2 has no field for it; saved files carry the workflow they were made by, and nothing else.";
const PARTIAL_NOTE = "partial_execution_targets: v2 gets the nodes that these need; saved files carry those alone, v1 wrote all of them.";
const FOLDER_NAME_NOTE = "an input \"… [input]\": v2 gets the file itself; saved files carry its name without the folder, v1 wrote it as it was sent.";
const NOT_RENDERED = "v1 drew the picture anew; v2 gives the file as it is.";
const NO_JOB_MADE_IT = "no job of this session made this file; it is not downloaded.";
function secretLeftOut(secret) {
	return `extra_data.${commentSafe(secret)}: the SDKs have no way to send it; it is left out.`;
}
/** Makes a text of a client safe for a comment: it stays on one line. */
function commentSafe(text) {
	return JSON.stringify(text).slice(1, -1).slice(0, 200).replaceAll(/[^\x20-\x7e\p{L}\p{N}]/gu, "?");
}
/**
* Returns a function that gives each file beside the code a unique name: `cat.png`, `cat-2.png` …
* @internal
*/
function createLocalNames() {
	const taken = /* @__PURE__ */ new Set();
	return (requested) => {
		const safe = safePath(requested);
		const { dir, name, ext } = posix.parse(safe);
		let path = safe;
		for (let number = 2; taken.has(path.toLowerCase()); number++) path = posix.join(dir, `${name}-${number}${ext}`);
		taken.add(path.toLowerCase());
		return path;
	};
}
/**
* Returns the path of an uploaded file, relative to the code.
* @internal
*/
function inputPathOf(filePath) {
	return posix.join("inputs", safePath(filePath));
}
/** Makes a path of a client safe: it stays inside its folder, and has no special characters of a shell or sed. */
function safePath(path) {
	return path.split(/[\\/]/).map((part) => part.replaceAll(/[^\p{L}\p{N}_.-]/gu, "_")).map((part) => part.replace(/^[.-]+/, "_")).filter((part) => part !== "").join("/") || "file";
}
// src/migration/session-plan.ts
/** Returns the lines of all steps. */
function stepLines({ steps, usedSocket }, { workflows }, writers) {
	return steps.flatMap((step) => {
		const write = writers[step.kind];
		return write(step, {
			usedSocket,
			workflows
		});
	});
}
// src/migration/curl-code.ts
/** Returns a session as a bash script, which uses curl and jq. */
function curlCode(plan, options) {
	return `${head$2(plan, options)}\n${stepLines(plan, options, WRITERS$3).join("\n")}`;
}
/**
* Returns the functions of the script. They pass secrets through pipes, because all users can see the arguments of a
* process.
*/
function head$2({ notes }, { baseUrl }) {
	return `#!/usr/bin/env bash
# A v1 session as v2 calls. Usage: bash session.sh [FOLDER FOR THE DOWNLOADS]
# COMFY_BASE_URL: where v2 is. COMFY_API_KEY: the key for it, if it wants one.
${notes.map((note) => `# Note: ${note}\n`).join("")}set -euo pipefail
mkdir -p "\${1:-.}"
out=$(cd "\${1:-.}" && pwd)
cd "$(dirname "\${BASH_SOURCE[0]}")"
base="\${COMFY_BASE_URL:-${shellInside(baseUrl)}}/api/v2"

api() {
  curl --silent --show-error --fail-with-body \\
    --config <(if [ -n "\${COMFY_API_KEY:-}" ]; then printf 'header = "Authorization: Bearer %s"\\n' "$COMFY_API_KEY"; fi) "$@"
}

json() { # a call that answers JSON; a refusal is shown
  local answer
  answer=$(api "$@") || { printf '%s\\n' "$answer" >&2; return 1; }
  printf '%s\\n' "$answer"
}

upload() { # FILE NAME TYPE: prints the asset's id
  json --form-string "content_type=$3" --form-string "file_path=$2" -F "file=@$1;type=$3" "$base/assets" | jq -er .id
}

reference() { # ASSET: prints what a workflow names it by, fit for sed
  json "$base/assets/$1" |
    jq -c '{__type: "core/ASSET", info: ({id, hash, file_path} | with_entries(select(.value != null)))}' |
    sed 's/[\\\\&|]/\\\\&/g'
}

submit() { # workflow on standard input; prints the job's id
  { printf '{"workflow":'; cat; printf '%s}' "\${extra_data:-}"; } |
    json -H 'Content-Type: application/json' --data-binary @- "$base/jobs" | jq -er .id
}

wait_for() { # JOB: prints the state it ends in
  local status
  while true; do
    status=$(json "$base/jobs/$1" | jq -r .status)
    case $status in succeeded | failed | canceled | expired) break ;; esac
    sleep 0.5
  done
  echo "$status"
}

until_running() { # JOB: goes on as soon as it no longer waits in the queue
  while [ "$(json "$base/jobs/$1" | jq -r .status)" = queued ]; do sleep 0.2; done
}

output() { # JOB NODE INDEX: prints the asset's id
  json "$base/jobs/$1" | jq -er --arg node "$2" --argjson index "$3" '[.outputs[] | select(.node_id == $node)][$index].id'
}
`;
}
const WRITERS$3 = {
	upload({ file: { variable, path, filePath, contentType } }) {
		return [`${variable}=$(upload ${[
			path,
			filePath,
			contentType
		].map(shell).join(" ")})\n`];
	},
	submit({ job, workflow, needsPartnerKey }, { workflows }) {
		const { lookups, submission, text } = submissionCode(workflow, workflows);
		return [`${lookups}${needsPartnerKey ? `extra_data=$(printf ',"extra_data":{"api_key_comfy_org":"%s"}' "\${COMFY_PARTNER_API_KEY:?is not set}")\n` : ""}${job}=$(${submission}${text})\n${needsPartnerKey ? "extra_data=\n" : ""}echo "${job}: $${job}"\n`];
	},
	refused({ name, workflow }, { workflows }) {
		const { lookups, submission, text } = submissionCode(workflow, workflows);
		return [`${lookups}if ${name}=$(${submission} 2>&1${text}); then
  echo "${name} is accepted now: $${name}"
else
  echo "${name}: $${name}"
fi
`];
	},
	"until-running": ({ job }) => [`until_running "$${job}"\n`],
	pause: ({ seconds }) => [`sleep ${seconds}\n`],
	cancel: ({ job }) => [`api -X POST "$base/jobs/$${job}/cancel" > /dev/null\n`],
	wait: ({ job, ended }) => [ended === "succeeded" ? `test "$(wait_for "$${job}")" = succeeded\n` : `echo "${job}: $(wait_for "$${job}")"\n`],
	download: ({ place, path }) => [`api --location -o "$out"/${shell(path)} "$base/assets/$(${outputCode$2(place)})/content"\n`]
};
/** Returns the pipe that submits a workflow, and the lines before and after it. */
function submissionCode(workflow, workflows) {
	const read = workflows === "inside" ? "" : ` < ${shell(workflow.path)}`;
	const heredoc = workflows === "inside" ? ` << 'WORKFLOW'` : "";
	const text = workflows === "inside" ? `\n${workflow.text}WORKFLOW\n` : "";
	const substitutions = workflow.inputs.map(({ placeholder }, at) => ` -e "s|\\"${sedText(placeholder)}\\"|$ref_${at}|"`);
	const filter = substitutions.length === 0 ? `cat${read}` : `sed${substitutions.join("")}${read}`;
	return {
		lookups: workflow.inputs.map(lookupCode).join(""),
		submission: `${filter}${heredoc} | submit`,
		text
	};
}
function lookupCode({ from }, at) {
	return `ref_${at}=$(reference ${from.kind === "file" ? `"$${from.file.variable}"` : `"$(${outputCode$2(from.place)})"`})\n`;
}
function outputCode$2({ job, node, index }) {
	return `output "$${job}" ${shell(node)} ${index}`;
}
function shell(text) {
	return `'${text.replaceAll("'", `'\\''`)}'`;
}
function shellInside(text) {
	return text.replaceAll(/[\\"$`}]/g, (char) => encodeURIComponent(char));
}
/**
* Escapes a placeholder for sed. It has letters, digits and `@/._-` only (`safePath` in plan-session.ts), so only the
* dot is special.
*/
function sedText(placeholder) {
	return placeholder.replaceAll(".", "[.]");
}
// src/migration/python-code.ts
const INDENT = "    ";
/**
* Returns a session as a program for `comfy-sdk`. Integers of Python have any length, so workflows need no special
* code.
*/
function pythonCode(plan, options) {
	const steps = stepLines(plan, options, WRITERS$2);
	const body = steps.length === 0 ? ["pass"] : steps;
	return `${head$1(plan, options)}${body.map((line) => `${INDENT}${line}\n`).join("")}`;
}
function head$1({ notes, steps }, { baseUrl, workflows }) {
	const inside = steps.flatMap((step) => "workflow" in step && workflows === "inside" ? [workflowConstant(step.workflow)] : []);
	const waits = steps.some(({ kind }) => kind === "pause" || kind === "until-running");
	const refuses = steps.some(({ kind }) => kind === "refused");
	return `"""A v1 session as v2 calls. Usage: python3 session.py [FOLDER FOR THE DOWNLOADS]

Needs comfy-sdk (PyPI). COMFY_BASE_URL: where v2 is. COMFY_API_KEY: the key for it, if it wants one.
"""
${notes.map((note) => `# Note: ${note}\n`).join("")}
import os
import sys
${waits ? "import time\n" : ""}from pathlib import Path

from comfy_sdk import Comfy${refuses ? ", ComfyError" : ""}

HERE = Path(__file__).resolve().parent
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
OUT.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("COMFY_BASE_URL", ${text$1(baseUrl)})
${inside.join("")}
with Comfy() as client:
`;
}
const WRITERS$2 = {
	upload: ({ file }) => [`${file.variable} = ${assetCode$1(file)}`, `${file.variable}.commit()`],
	submit({ job, workflow, needsPartnerKey }, { workflows }) {
		const key = needsPartnerKey ? ", api_key=os.environ[\"COMFY_PARTNER_API_KEY\"]" : "";
		return [
			...workflowLines$1(workflow, workflows),
			`${job} = client.submit(workflow${key})`,
			`print("${job}:", ${job}.id)`
		];
	},
	refused: ({ name, workflow }, { workflows }) => [
		...workflowLines$1(workflow, workflows),
		"try:",
		`${INDENT}print("${name} is accepted now:", client.submit(workflow).id)`,
		"except ComfyError as refusal:",
		`${INDENT}print("${name}:", refusal.code, refusal)`
	],
	"until-running": ({ job }) => [`while ${job}.refresh().status == "queued":`, `${INDENT}time.sleep(0.2)`],
	pause: ({ seconds }) => [`time.sleep(${seconds})`],
	cancel: ({ job }) => [`${job}.cancel()`],
	wait: ({ job, ended }, { usedSocket }) => [...usedSocket ? [`for event in ${job}.events():`, `${INDENT}print("${job}:", type(event).__name__)`] : [], ended === "succeeded" ? `${job}.result()` : `print("${job}:", ${job}.wait().status)`],
	download: ({ place, path }) => [`${outputCode$1(place)}.to_file(OUT / ${text$1(path)})`]
};
/** Returns the code that reads a file. The SDK sends only its base name, so another `file_path` is given explicitly. */
function assetCode$1({ path, filePath, contentType }) {
	if (posix.basename(path) === filePath) return `client.assets.from_file(HERE / ${text$1(path)})`;
	const more = `filename=${text$1(filePath)}, content_type=${text$1(contentType)}`;
	return `client.assets.from_bytes((HERE / ${text$1(path)}).read_bytes(), ${more})`;
}
function workflowLines$1(workflow, workflows) {
	return [`workflow = client.workflows.${workflows === "inside" ? `from_str(${nameOf(workflow)})` : `from_file(HERE / ${text$1(workflow.path)})`}`, ...workflow.inputs.map(({ node, input, from }) => {
		const value = from.kind === "file" ? from.file.variable : `client.assets.get(${outputCode$1(from.place)}.id)`;
		return `workflow.set_input(${text$1(node)}, ${text$1(input)}, ${value})`;
	})];
}
function outputCode$1({ job, node, index }) {
	return `${job}.get_outputs(${text$1(node)})[${index}]`;
}
/** Returns a workflow as a raw text in triple quotes. JSON never contains three quotes in a row. */
function workflowConstant(workflow) {
	return `\n${nameOf(workflow)} = r"""${workflow.text}"""\n`;
}
function nameOf({ path }) {
	return path.replace(/\.json$/, "").replaceAll("-", "_").toUpperCase();
}
function text$1(value) {
	return JSON.stringify(value);
}
// src/migration/typescript-code.ts
/** Returns a session as a program for `@comfyorg/sdk`. */
function typescriptCode(plan, options) {
	const steps = stepLines(plan, options, WRITERS$1);
	return `${head(plan, options)}\n${steps.map((line) => `${line}\n`).join("")}`;
}
function head({ notes, steps }, { baseUrl }) {
	const workflows = steps.flatMap((step) => "workflow" in step ? [step.workflow] : []);
	const waits = steps.some(({ kind }) => kind === "pause" || kind === "until-running");
	const refuses = steps.some(({ kind }) => kind === "refused");
	const exact = workflows.some(({ hasExactNumbers }) => hasExactNumbers);
	return `// A v1 session as v2 calls. Usage: node session.mts [FOLDER FOR THE DOWNLOADS]
// Needs @comfyorg/sdk (npm) and Node 22.18 or newer.
// COMFY_BASE_URL: where v2 is. COMFY_API_KEY: the key for it, if it wants one.
${notes.map((note) => `// Note: ${note}\n`).join("")}
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
${waits ? "import { setTimeout as sleep } from 'node:timers/promises';\n" : ""}import { Comfy${refuses ? ", ComfyError" : ""} } from '@comfyorg/sdk';

process.env.COMFY_BASE_URL ||= ${text(baseUrl)};
const out = process.argv[2] ?? '.';
await mkdir(out, { recursive: true });
const here = (path: string) => join(import.meta.dirname, path);
const client = new Comfy(process.env.COMFY_API_KEY ? { apiKey: process.env.COMFY_API_KEY } : {});
${exact ? EXACT : ""}`;
}
/**
* The SDK copies the graph, which would lose a raw number. It keeps an object with `toJSON`, which makes the raw
* number later.
*/
const EXACT = `
/** Numbers a double cannot hold go out digit by digit as they are in the workflow. */
function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  return { toJSON: () => (JSON as any).rawJSON(source) };
}
`;
const WRITERS$1 = {
	upload: ({ file }) => [`const ${file.variable} = ${assetCode(file)};`, `await ${file.variable}.commit();`],
	submit({ job, workflow, needsPartnerKey }, { workflows }) {
		const name = `workflow${job.replace("job", "")}`;
		const key = needsPartnerKey ? ", { apiKey: process.env.COMFY_PARTNER_API_KEY }" : "";
		return [
			...workflowLines(name, workflow, workflows),
			`const ${job} = await client.submit(${name}${key});`,
			`console.log('${job}:', ${job}.id);`
		];
	},
	refused: ({ name, workflow }, { workflows }) => [
		...workflowLines(name, workflow, workflows),
		`await client.submit(${name}).then(`,
		`  (job) => console.log('${name} is accepted now:', job.id),`,
		`  (refusal) => {`,
		`    if (!(refusal instanceof ComfyError)) throw refusal;`,
		`    console.log('${name}:', refusal.code, refusal.message);`,
		`  },`,
		`);`
	],
	"until-running": ({ job }) => [`while ((await ${job}.refresh()).status === 'queued') await sleep(200);`],
	pause: ({ seconds }) => [`await sleep(${seconds * 1e3});`],
	cancel: ({ job }) => [`await ${job}.cancel();`],
	wait: ({ job, ended }, { usedSocket }) => [...usedSocket ? [`for await (const event of ${job}.events()) console.log('${job}:', event.kind);`] : [], ...ended === "succeeded" ? [`await ${job}.result();`] : [`await ${job}.wait();`, `console.log('${job}:', ${job}.status);`]],
	download: ({ place, path }) => [`await ${outputCode(place)}.toFile(join(out, ${text(path)}));`]
};
/** Returns the code that reads a file. The SDK sends only its base name, so another `file_path` is given explicitly. */
function assetCode({ path, filePath, contentType }) {
	if (posix.basename(path) === filePath) return `client.assets.fromFile(here(${text(path)}))`;
	const more = `{ filename: ${text(filePath)}, contentType: ${text(contentType)} }`;
	return `client.assets.fromBytes(await readFile(here(${text(path)})), ${more})`;
}
function workflowLines(name, workflow, workflows) {
	return [`const ${name} = ${workflowCode(workflow, workflows)};`, ...workflow.inputs.map(({ node, input, from }) => {
		const value = from.kind === "file" ? from.file.variable : `await client.assets.get(${outputCode(from.place)}.id)`;
		return `${name}.setInput(${text(node)}, ${text(input)}, ${value});`;
	})];
}
function workflowCode(workflow, workflows) {
	const { path, hasExactNumbers } = workflow;
	const json = workflows === "inside" ? text(workflow.text) : `await readFile(here(${text(path)}), 'utf8')`;
	if (hasExactNumbers) return `client.workflows.fromJson(JSON.parse(${json}, exactly))`;
	return workflows === "inside" ? `client.workflows.fromString(${json})` : `await client.workflows.fromFile(here(${text(path)}))`;
}
function outputCode({ job, node, index }) {
	return `${job}.getOutputs(${text(node)})[${index}]!`;
}
function text(value) {
	return JSON.stringify(value);
}
// src/migration/session-code.ts
/** The languages in which a session can be written. */
const LANGUAGES = [
	"curl",
	"python",
	"typescript"
];
/** The name of the code file of each language. Node runs `.mts` as a module in any folder. */
const CODE_FILES = {
	curl: "session.sh",
	python: "session.py",
	typescript: "session.mts"
};
const WRITERS = {
	curl: curlCode,
	python: pythonCode,
	typescript: typescriptCode
};
/** Returns a program that does the same in v2 as the session did in v1. */
function codeOf(language, plan, options) {
	return WRITERS[language](plan, options);
}
// src/migration/session.ts
/** Returns the facts about a job that a session needs. */
function endedJob({ status, outputs, created_at, started_at }) {
	return {
		status,
		queuedMs: started_at === null ? null : Date.parse(started_at) - Date.parse(created_at),
		outputs: outputs.map((output) => ({
			id: output.id,
			nodeId: output.node_id,
			name: output.name,
			hash: output.hash,
			isStreamed: output.x_websocket === true
		}))
	};
}
// src/observability/secret-redactor.ts
/** A shorter text is no key, and may be a part of any word. */
const MIN_SECRET_CHARS$1 = 6;
const MAX_SECRETS = 1e3;
const REMOVED$1 = "[removed]";
/** `ownSecrets` are never forgotten; of the others the latest are known. */
function createSecretRedactor(ownSecrets = []) {
	const ownSpellings = ownSecrets.flatMap((secret) => spellingsOf(secret) ?? []);
	const spellings = new LRUCache({ max: MAX_SECRETS });
	const known = () => [ownSpellings, ...spellings.values()].flat();
	return {
		add(secret) {
			if (secret === void 0 || spellings.get(secret)) return;
			const found = spellingsOf(secret);
			if (found) spellings.set(secret, found);
		},
		/** The text without any known secret, as it is, URL-encoded or in JSON. */
		redact: (text) => withoutAny(text, known()),
		/**
		* The JSON text of a value without any known secret in its texts; members of these names stay. A caller may
		* present a key that is a part of JSON, or one of Holdover's own words.
		*/
		redactedJson(value, kept) {
			const text = JSON.stringify(value);
			const found = known().filter((spelling) => text.includes(inJson(spelling)));
			if (found.length === 0) return text;
			return JSON.stringify(value, (name, member) => typeof member !== "string" || kept?.has(name) ? member : withoutAny(member, found));
		}
	};
}
function withoutAny(text, spellings) {
	return spellings.reduce((shown, spelling) => shown.replaceAll(spelling, REMOVED$1), text);
}
function inJson(text) {
	return JSON.stringify(text).slice(1, -1);
}
/** As it is, URL-encoded and in JSON; `undefined` for none. */
function spellingsOf(secret) {
	if (secret === void 0 || secret.length < MIN_SECRET_CHARS$1) return void 0;
	return [.../* @__PURE__ */ new Set([
		secret,
		urlEncoded(secret),
		inJson(secret)
	])];
}
/** A text from JSON may have half a character, which cannot be encoded: it is sent as U+FFFD. */
function urlEncoded(text) {
	return encodeURIComponent(Buffer.from(text).toString());
}
// src/migration/without-secrets.ts
/** Shorter texts are not removed: they are no keys, and may be parts of words. */
const MIN_SECRET_CHARS = 6;
const REDACTED = "KEY-LEFT-OUT";
/**
* Returns the session with all keys removed from texts of the client, also from the inputs of graphs. Keeps the
* structure of graphs: the ids, classes and links of nodes, the names of inputs and the ids of files.
*/
function withoutSecrets(session, secrets) {
	const clean = createCleaner(secrets);
	const jobs = [...session.jobs].map(([id, job]) => {
		const outputs = job.outputs.map((output) => ({
			...output,
			name: clean(output.name)
		}));
		return [id, {
			...job,
			outputs
		}];
	});
	return {
		...session,
		calls: session.calls.map((call) => ({
			...call,
			target: clean(call.target)
		})),
		events: session.events.map((event) => cleanEvent(event, clean)),
		jobs: new Map(jobs)
	};
}
function createCleaner(secrets) {
	const secretTexts = secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS).flatMap((secret) => [secret, urlEncoded(secret)]);
	return (text) => secretTexts.reduce((cleanedText, secret) => cleanedText.replaceAll(secret, REDACTED), text);
}
function cleanEvent(event, clean) {
	switch (event.kind) {
		case "upload": return {
			...event,
			path: clean(event.path),
			contentType: clean(event.contentType)
		};
		case "submit": return {
			...event,
			workflow: cleanGraph(event.workflow, clean)
		};
		case "refused": return {
			...event,
			code: clean(event.code),
			message: clean(event.message),
			workflow: event.workflow && cleanGraph(event.workflow, clean)
		};
		case "download": {
			const rendering = event.rendering === void 0 ? void 0 : clean(event.rendering);
			return {
				...event,
				filename: clean(event.filename),
				rendering
			};
		}
		case "cancel": return event;
	}
}
function cleanGraph(graph, clean) {
	function cleaned(value) {
		if (typeof value === "string") return clean(value);
		if (Array.isArray(value)) return isLink(value) ? value : value.map(cleaned);
		if (!isJsonObject(value)) return value;
		return value["__type"] === "core/ASSET" ? cleanReference(value, clean) : cleanObject(value);
	}
	const cleanObject = (value) => Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cleaned(item)]));
	const isLink = ([source]) => typeof source === "string" && Object.hasOwn(graph, source);
	const nodes = Object.entries(graph).map(([id, node]) => {
		const { class_type } = node;
		return [id, {
			...cleanObject(node),
			class_type
		}];
	});
	return Object.fromEntries(nodes);
}
function cleanReference(reference, clean) {
	const { info } = reference;
	if (!isJsonObject(info) || typeof info["file_path"] !== "string") return reference;
	return {
		...reference,
		info: {
			...info,
			file_path: clean(info["file_path"])
		}
	};
}
// src/prompts/submit/plan.ts
/** The metadata label of a job at the upstream, by which the job is found after a crash. */
const KEY_LABEL = "holdover_key";
function createPlan(key, submission, details) {
	const { outputs, placed, caller, traceparent } = details;
	const { graph, number, extraData, partialTargets } = submission;
	return {
		outputs,
		placed,
		promptKey: key,
		idempotencyKey: key,
		graph,
		number,
		isWhole: partialTargets === void 0,
		extraData: withoutSecrets$1(extraData),
		secrets: partnerCredentialsOf(extraData),
		ownSecrets: findOwnSecrets(partnerCredentialsOf(extraData), caller),
		lacksSecrets: false,
		traceparent
	};
}
function findOwnSecrets(secrets, { credential }) {
	return Object.values(secrets).every((secret) => secret === credential) ? Object.keys(secrets) : [];
}
/**
* Returns a plan of the same prompt with fewer outputs. Its first key is free again, since the
* refusal was certain.
*/
function withOutputs(plan, outputs) {
	return {
		...plan,
		outputs,
		isWhole: false,
		idempotencyKey: changedKey(plan, String(outputs.length))
	};
}
/**
* Returns a plan of the same prompt with a new key, after the service lost its job or made none.
* The old key may be used up.
*/
function withNewKey(plan) {
	return {
		...plan,
		idempotencyKey: `${plan.promptKey}.again${newKeyCount(plan) + 1}`
	};
}
/** Returns how many keys of the prompt were used up without a job that ran. */
function newKeyCount({ promptKey, idempotencyKey }) {
	return Number(/^\.again(\d+)/.exec(idempotencyKey.slice(promptKey.length))?.[1] ?? 0);
}
/** Returns a changed key for the same submission, after a certain refusal. */
function changedKey({ promptKey, idempotencyKey }, change) {
	const newKeys = newKeyCount({
		promptKey,
		idempotencyKey
	});
	return newKeys === 0 ? `${promptKey}.${change}` : `${promptKey}.again${newKeys}_${change}`;
}
/** Returns the workflow that is sent to v2. */
function workflowOf({ graph, placed, isWhole, outputs }) {
	const workflow = insertAssetReferences(graph, placed);
	return isWhole ? workflow : pruneTo(workflow, outputs);
}
const STORED_SEND_STATE = {
	not_sent: "here",
	maybe_sent: "away"
};
/** Returns the part of the plan that the ledger has to store before the plan is sent. */
function toStoredPlan(plan, sendState) {
	const { idempotencyKey: key, placed, isWhole, outputs, secrets, traceparent } = plan;
	const ownKeys = plan.ownSecrets;
	const hasSecrets = plan.lacksSecrets || Object.keys(secrets).length > 0;
	const trace = traceparent === void 0 ? void 0 : { traceparent };
	const stored = {
		where: STORED_SEND_STATE[sendState],
		key,
		placed,
		isWhole,
		hasSecrets,
		ownKeys,
		...trace
	};
	return {
		intentJson: JSON.stringify(stored),
		targetsJson: JSON.stringify(outputs)
	};
}
/** Reads a stored plan. Older versions wrote fewer members. */
function parseStoredPlan(intentJson) {
	return JSON.parse(intentJson);
}
/** True when an earlier process may have sent the plan, with an unknown outcome. */
function mayHaveBeenSent({ intentJson }) {
	return parseStoredPlan(intentJson).where !== "here";
}
/**
* True when the prompt was submitted through v1. Jobs submitted through v2 have an owner of their
* own.
*/
function isSubmittedThroughV1({ intentJson }) {
	return parseStoredPlan(intentJson).key !== void 0;
}
/** Returns the trace context of the `POST`, whichever process received it. */
function traceparentIn({ intentJson }) {
	return parseStoredPlan(intentJson).traceparent;
}
/** True when the plan can be sent only with the credential of its caller among its secrets. */
function needsOwnSecrets({ jobId, intentJson }) {
	return jobId === null && (parseStoredPlan(intentJson).ownKeys ?? []).length > 0;
}
/**
* Restores the plan of an earlier process. Adds the credential of the caller if the plan needs it
* and it is known.
*/
function restorePlan(row, { credential }) {
	const stored = parseStoredPlan(row.intentJson);
	const { ownKeys: ownSecrets = [] } = stored;
	const restoredSecrets = credential === void 0 ? [] : ownSecrets.map((name) => [name, credential]);
	return {
		promptKey: row.key,
		idempotencyKey: stored.key ?? row.key,
		graph: parseJson(row.graphJson),
		placed: stored.placed ?? [],
		outputs: parseJson(row.targetsJson),
		isWhole: stored.isWhole ?? true,
		number: row.number,
		extraData: parseJson(row.extraDataJson),
		secrets: Object.fromEntries(restoredSecrets),
		ownSecrets,
		lacksSecrets: stored.hasSecrets === true && restoredSecrets.length === 0,
		traceparent: stored.traceparent
	};
}
// src/prompts/submitted-workflow.ts
/** Returns the workflow that v2 got for a prompt, with references to files. */
function submittedWorkflow(row) {
	const plan = restorePlan(row, { user: row.user });
	return isSubmittedThroughV1(row) ? workflowOf(plan) : plan.graph;
}
/** Returns the files that the workflow of a prompt refers to, under their v1 names. */
function submittedFiles(row) {
	return restorePlan(row, { user: row.user }).placed;
}
// src/console/job-code.ts
/** Returns the language that the query names. Throws a 400 when there is none. */
function readLanguage(query) {
	const found = LANGUAGES.find((language) => language === query.get("language"));
	if (found) return found;
	throw invalidRequest("\"language\" is curl, python or typescript.");
}
/**
* Returns the v2 code that uploads the inputs of these prompts, runs them and downloads their
* outputs.
*/
async function writeCode(services, request) {
	const { caller, language, baseUrl } = request;
	const plan = planFrom(withoutSecrets(await sessionOf(services, request), [caller.credential ?? ""]));
	return {
		language,
		file: CODE_FILES[language],
		code: codeOf(language, plan, {
			baseUrl,
			workflows: "inside"
		}),
		files: plan.files.map(({ path }) => path)
	};
}
/** Returns the session of a client that submitted these prompts and fetched all their outputs. */
async function sessionOf({ jobs }, { caller, rows }) {
	const events = [];
	const ended = /* @__PURE__ */ new Map();
	for (const row of rows) {
		const jobId = row.jobId ?? row.key;
		events.push(...await uploadsOf(jobs, caller, row), submitEvent(row, jobId));
		const job = row.jobId === null ? void 0 : await jobs.get(caller, row.jobId);
		if (!job?.ok) continue;
		ended.set(jobId, endedJob(job.value));
		events.push(...downloadsOf(job.value));
	}
	return {
		calls: [],
		events,
		jobs: ended,
		usedSocket: false
	};
}
async function uploadsOf(jobs, caller, row) {
	const events = [];
	for (const { assetId, type, subfolder, filename, hash } of submittedFiles(row)) {
		if (type !== "input") continue;
		const asset = await jobs.asset(caller, assetId);
		const contentType = asset.ok ? asset.value.content_type : "application/octet-stream";
		const path = subfolder === "" ? filename : `${subfolder}/${filename}`;
		events.push({
			kind: "upload",
			assetId,
			path,
			contentType,
			hash: hash ?? void 0
		});
	}
	return events;
}
function submitEvent(row, jobId) {
	const extraData = parseJson(row.extraDataJson);
	return {
		kind: "submit",
		jobId,
		workflow: submittedWorkflow(row),
		secrets: [],
		hasExtraPngInfo: isJsonObject(extraData) && isJsonObject(extraData["extra_pnginfo"]),
		isPartial: false,
		namesFolder: false
	};
}
function downloadsOf({ outputs }) {
	return outputs.filter(({ x_temp: isTemporary }) => isTemporary !== true).map(({ id, name }) => ({
		kind: "download",
		assetId: id,
		filename: name,
		rendering: void 0
	}));
}
// src/prompts/node-times.ts
/** The page shows no picture of node times for a larger graph. */
const MAX_NODES = 1e3;
/** Returns the stored form of the times. `undefined`: no times were reported, or too many. */
function nodeTimesJson(state) {
	const { runs, startedAtMs: origin, endedAtMs: end } = state;
	if (origin === null || end === null || runs.size === 0 || runs.size > MAX_NODES) return void 0;
	const times = [...runs].flatMap(([nodeId, { startedAtMs, endedAtMs }]) => startedAtMs === null ? [] : [[nodeId, [startedAtMs - origin, (endedAtMs ?? end) - origin]]]);
	return times.length === 0 ? void 0 : JSON.stringify(Object.fromEntries(times));
}
/** Reads what `nodeTimesJson` wrote. */
function readNodeTimes(text) {
	const times = parseJson(text ?? "{}");
	return isJsonObject(times) ? times : {};
}
// src/console/job-nodes.ts
function isGraph(graph) {
	return isJsonObject(graph);
}
/** Returns the nodes of a graph with their states, times, values and links. */
function jobNodesOf(graph, { otherwise, states, ranMs }) {
	return Object.entries(graph).map(([id, node]) => ({
		id,
		class_type: String(node.class_type),
		title: titleOf(node),
		state: states.get(id) ?? otherwise,
		ran_ms: ranMs.get(id) ?? null,
		values: valuesOf(node, graph),
		links: linksOf(node, graph)
	}));
}
/** Returns the nodes of a live prompt, from the events of its job. */
function liveRuns({ nodeRuns }, nowMs) {
	const runs = [...nodeRuns ?? []];
	return {
		otherwise: "waiting",
		states: new Map(runs.map(([id, { state }]) => [id, state === "finished" ? "done" : "running"])),
		ranMs: new Map(runs.flatMap(([id, { startedAtMs, endedAtMs }]) => startedAtMs === null ? [] : [[id, Math.max(0, (endedAtMs ?? nowMs) - startedAtMs)]]))
	};
}
/**
* Returns the nodes of an ended prompt, from its history entry and the times that are stored with
* it.
*/
function endedRuns({ nodeTimesJson }, entry) {
	const times = Object.entries(readNodeTimes(nodeTimesJson));
	return {
		otherwise: entry?.status.completed === true ? "done" : "waiting",
		states: entry === null ? /* @__PURE__ */ new Map() : endedStates(entry),
		ranMs: new Map(times.map(([id, [startMs, endMs]]) => [id, Math.max(0, endMs - startMs)]))
	};
}
function endedStates(entry) {
	const states = /* @__PURE__ */ new Map();
	for (const nodeId of Object.keys(entry.outputs)) states.set(nodeId, "done");
	for (const [type, data] of entry.status.messages) {
		const facts = data;
		if (type === "execution_cached") setAll(facts["nodes"], "cached");
		if (type === "execution_error" || type === "execution_interrupted") {
			setAll(facts["executed"], "done");
			setAll([facts["node_id"] ?? ""], type === "execution_error" ? "failed" : "stopped");
		}
	}
	return states;
	function setAll(ids, state) {
		if (!Array.isArray(ids)) return;
		for (const id of ids) if (typeof id === "string" && !(state === "done" && states.has(id))) states.set(id, state);
	}
}
function titleOf(node) {
	const meta = node["_meta"];
	const title = isJsonObject(meta) ? meta["title"] : void 0;
	return typeof title === "string" && title !== "" ? title : String(node.class_type);
}
function linksOf({ inputs }, graph) {
	return Object.entries(inputs ?? {}).flatMap(([input, value]) => isLink(value, graph) ? [{
		input,
		from: value[0],
		slot: Number(value[1])
	}] : []);
}
/** Longer texts of an input are cut. */
const MAX_VALUE_CHARS = 300;
function valuesOf({ inputs }, graph) {
	return Object.entries(inputs ?? {}).flatMap(([input, value]) => {
		if (value === void 0 || isLink(value, graph)) return [];
		return [{
			input,
			text: shortened(typeof value === "string" ? value : stringifyJson(value))
		}];
	});
}
function isLink(value, graph) {
	if (!Array.isArray(value) || value.length !== 2) return false;
	return typeof value[0] === "string" && Object.hasOwn(graph, value[0]);
}
function shortened(text) {
	return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}
// src/console/node-count.ts
/** Returns `1 node`, `2 nodes` and so on. */
function nodeCount(count) {
	return count === 1 ? "1 node" : `${count} nodes`;
}
// src/console/job-summary.ts
const MAX_CACHED = 5e3;
const RELEASE_AFTER_IDLE_MS = 3e5;
/** The maximum size of an entry that is parsed for a list. */
const MAX_PARSED_BYTES = 1048576;
/** Makes summaries of ended prompts, and caches them while lists are requested. */
function createSummaries(prompts) {
	const cache = new LRUCache(atMost(MAX_CACHED));
	let release;
	function releaseLater() {
		clearTimeout(release);
		release = setTimeout(() => cache.clear(), RELEASE_AFTER_IDLE_MS).unref();
	}
	async function read(outline) {
		const row = await prompts.get(outline.key);
		return row && factsOf(row, outline.storedBytes);
	}
	return { 
	/** Returns the summary of an ended prompt; `undefined` when it was deleted meanwhile. */
async ended(outline) {
		releaseLater();
		const facts = cache.get(outline.key) ?? await read(outline);
		if (facts === void 0) return void 0;
		cache.set(outline.key, facts);
		return endedSummary(outline, facts);
	} };
}
function endedSummary(row, facts) {
	return {
		key: row.key,
		id: row.promptId,
		...facts,
		status: endedStatus(row),
		created_at_ms: row.createdAtMs,
		started_at_ms: row.startedAtMs,
		ended_at_ms: row.endedAtMs,
		position: null
	};
}
/** Returns the summary of an ended prompt whose row has been read. */
function summaryOfRow(row) {
	return endedSummary(row, factsOf(row, 0));
}
/** Returns the status that lists show for an ended prompt. */
function endedStatus({ statusWord }) {
	return listedStatus(statusWord ?? "lost");
}
function factsOf(row, storedBytes) {
	const known = {
		job_id: row.jobId,
		client_id: row.clientId,
		api: isSubmittedThroughV1(row) ? "v1" : "v2"
	};
	const entry = storedBytes <= MAX_PARSED_BYTES ? entryOf(row) : null;
	if (entry === null) {
		const unread = {
			node_count: null,
			outputs_count: 0,
			preview: null,
			error: null
		};
		return {
			...known,
			...unread,
			name: row.promptId
		};
	}
	const [, , graph, extraData] = entry.prompt;
	return {
		...known,
		...graphFacts(graph, extraData, row.promptId),
		...outputFacts(row, entry)
	};
}
/** Returns the history entry of a prompt; `null` when the row has none. */
function entryOf(row) {
	return parseJson(shownEntry(row.entryJson ?? "null", "own"));
}
function outputFacts(row, entry) {
	const { outputs_count: count, preview_output: preview, execution_error: error } = jobItem({
		submitted: {
			number: row.number,
			promptId: row.promptId,
			extraData: {}
		},
		word: row.statusWord ?? "lost",
		createdAtMs: row.createdAtMs,
		startedAtMs: row.startedAtMs,
		endedAtMs: row.endedAtMs,
		entry
	});
	const message = isJsonObject(error) ? error["exception_message"] : null;
	return {
		outputs_count: Number(count ?? 0),
		preview: isJsonObject(preview) ? fileRefOf(preview) : null,
		error: typeof message === "string" ? message.trim() : null
	};
}
function fileRefOf({ filename, subfolder, type }) {
	return {
		filename: String(filename),
		subfolder: typeof subfolder === "string" ? subfolder : "",
		type
	};
}
/** Returns the summary of a live prompt. `position`: its place among those that wait. */
function liveSummary(prompt, position) {
	const { key, promptId, jobId, clientId, createdAtMs, startedAtMs } = prompt;
	return {
		key,
		id: promptId,
		job_id: jobId,
		client_id: clientId,
		api: prompt.isV2Job ? "v2" : "v1",
		...liveGraphFacts(prompt),
		status: listedStatus(liveWord(prompt)),
		created_at_ms: createdAtMs,
		started_at_ms: startedAtMs,
		ended_at_ms: null,
		outputs_count: 0,
		preview: null,
		error: null,
		position
	};
}
/**
* Returns the facts about the graph of a live prompt. Thousands of prompts may wait with unloaded graphs, so a large
* unloaded graph is not parsed, and the prompt is shown without its name.
*/
function liveGraphFacts({ lazy, promptId }) {
	const { graph, extraData } = lazy;
	const isLarge = (graph.json?.length ?? 0) + (extraData.json?.length ?? 0) > MAX_PARSED_BYTES;
	if (graph.value === void 0 && isLarge) return {
		name: promptId,
		node_count: null
	};
	return graphFacts(graph.value ?? parseJson(graph.json ?? "null"), extraData.value ?? parseJson(extraData.json ?? "null"), promptId);
}
function graphFacts(graph, extraData, promptId) {
	const isGraph = isJsonObject(graph);
	const nodes = isGraph ? Object.values(graph) : [];
	const count = isGraph ? nodes.length : null;
	return {
		name: workflowName(extraData) ?? graphName(nodes) ?? promptId,
		node_count: count
	};
}
/**
* Returns the name that a front end gave the workflow. Front ends and their extensions use several
* members.
*/
function workflowName(extraData) {
	const workflow = member(member(extraData, "extra_pnginfo"), "workflow");
	const extra = member(workflow, "extra");
	return [
		member(workflow, "name"),
		member(workflow, "title"),
		member(extra, "workflow_name"),
		member(extra, "name"),
		member(member(extra, "info"), "name"),
		member(extraData, "workflow_name")
	].find((name) => typeof name === "string" && name.trim() !== "");
}
/** Returns the prefix of the output files and the number of nodes. */
function graphName(nodes) {
	if (nodes.length === 0) return void 0;
	const prefix = nodes.map((node) => node.inputs?.["filename_prefix"]).find((text) => typeof text === "string" && text !== "");
	const last = nodes.at(-1)?.class_type ?? "";
	return `${prefix ?? last} · ${nodeCount(nodes.length)}`;
}
function member(value, name) {
	return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : void 0;
}
// src/console/job-detail.ts
/** Finds a prompt of this user by its id, or by the id of its job. */
async function findPrompt({ prompts, livePrompts }, user, id) {
	const live = livePrompts.find(user, id);
	const row = live ? await prompts.get(live.key) : await prompts.find(user, id) ?? await prompts.findByJob(user, id);
	return row && {
		row,
		live: row.state === "done" ? void 0 : live
	};
}
/** Returns everything about one prompt. */
function jobAnswer({ row, live }, { nowMs, pendingReason }) {
	const entry = live ? null : entryOf(row);
	const graph = parseJson(row.graphJson);
	const extraData = parseJson(row.extraDataJson);
	const messages = entry?.status.messages ?? [];
	return {
		job: live ? liveSummary(live, null) : summaryOfRow(row),
		pending: pendingReason && pendingAnswer(pendingReason),
		nodes: isGraph(graph) ? jobNodesOf(graph, live ? liveRuns(live, nowMs) : endedRuns(row, entry)) : [],
		inputs: submittedFiles(row).map((file) => ({
			node: file.nodeId,
			input: file.input,
			filename: file.filename,
			subfolder: file.subfolder,
			type: file.type
		})),
		outputs: filesOf(entry),
		texts: textsOf(entry),
		messages: messages.map(messageOf),
		error: errorOf(messages),
		graph_json: prettyJson(graph),
		workflow_json: uiWorkflowOf(extraData)
	};
}
function pendingAnswer(reason) {
	const { text, readyzPart } = pendingRow(reason);
	return {
		reason,
		text,
		readyz_part: readyzPart ?? null
	};
}
function filesOf(entry) {
	return outputItems(entry).flatMap(({ node, list, item }) => {
		if (!isJsonObject(item) || typeof item["filename"] !== "string") return [];
		const { filename, subfolder, type } = item;
		return [{
			node,
			list,
			filename,
			subfolder: typeof subfolder === "string" ? subfolder : "",
			type
		}];
	});
}
function textsOf(entry) {
	return outputItems(entry).flatMap(({ node, item }) => typeof item === "string" ? [{
		node,
		text: item
	}] : []);
}
function outputItems(entry) {
	return Object.entries(entry?.outputs ?? {}).flatMap(([node, lists]) => Object.entries(lists).flatMap(([list, items]) => Array.isArray(items) ? items.map((item) => ({
		node,
		list,
		item
	})) : []));
}
const NOT_IN_TEXT = /* @__PURE__ */ new Set([
	"prompt_id",
	"timestamp",
	"traceback",
	"current_inputs",
	"current_outputs"
]);
function messageOf([type, data]) {
	const facts = data;
	const { timestamp } = facts;
	const text = Object.entries(facts).filter(([name]) => !NOT_IN_TEXT.has(name)).map(([name, value]) => `${name}: ${stringifyJson(value)}`).join(", ");
	return {
		type,
		at_ms: typeof timestamp === "number" ? timestamp : null,
		text
	};
}
function errorOf(messages) {
	const found = messages.find(([type]) => type === "execution_error");
	if (found === void 0) return null;
	const { node_id, node_type, exception_type, exception_message, traceback } = found[1];
	const text = (value) => typeof value === "string" ? value : "";
	return {
		node: text(node_id),
		node_type: text(node_type),
		type: text(exception_type),
		message: text(exception_message),
		traceback: Array.isArray(traceback) ? traceback.map((line) => text(line)).join("") : ""
	};
}
function uiWorkflowOf(extraData) {
	const pngInfo = isJsonObject(extraData) ? extraData["extra_pnginfo"] : void 0;
	const workflow = isJsonObject(pngInfo) ? pngInfo["workflow"] : void 0;
	return isJsonObject(workflow) ? prettyJson(workflow) : null;
}
// src/console/job-list.ts
/**
* The maximum number of ended prompts that one call reads. If a filter matches few of them, the
* answer has fewer prompts and a cursor.
*/
const MAX_READ = 400;
const ROWS_PER_TURN = 20;
/**
* Lists the prompts of a user: the running ones, then the waiting ones in their order, then the
* ended ones, the latest first.
*/
function createJobList({ prompts, livePrompts }) {
	const summaries = createSummaries(prompts);
	return async (user, query) => {
		const listed = livePrompts.list(user);
		const ended = (await prompts.outlines(user)).toReversed();
		const endedKeys = new Set(ended.map(({ key }) => key));
		const live = inDisplayOrder(listed.filter(({ key }) => !endedKeys.has(key)));
		const counts = countByStatus(live, ended);
		const found = [];
		const start = positionAfter(query.cursor, live, ended);
		for (let at = start.live; at < live.length; at++) {
			const { prompt, position } = live[at];
			if (found.length >= query.limit) return answer(found, `live ${at}`, counts);
			if (!hasStatus(query, listedStatus(liveWord(prompt)))) continue;
			const summary = liveSummary(prompt, position);
			if (isWanted(query, summary)) found.push(summary);
		}
		let read = 0;
		const pause = yieldEvery(ROWS_PER_TURN);
		for (let at = start.ended; at < ended.length; at++) {
			const outline = ended[at];
			if (!hasStatus(query, endedStatus(outline))) continue;
			if (found.length >= query.limit || read++ >= MAX_READ) return answer(found, cursorBefore(ended, at), counts);
			const summary = await summaries.ended(outline);
			if (summary && isWanted(query, summary)) found.push(summary);
			await pause();
		}
		return answer(found, null, counts);
	};
}
function inDisplayOrder(prompts) {
	const running = prompts.filter((prompt) => !isNotStarted(prompt));
	const waiting = prompts.filter(isNotStarted);
	return [...running.map((prompt) => ({
		prompt,
		position: null
	})), ...waiting.map((prompt, index) => ({
		prompt,
		position: index + 1
	}))];
}
function answer(jobs, next_cursor, counts) {
	return {
		jobs,
		next_cursor,
		counts
	};
}
/**
* Makes a cursor that names the last ended prompt that was read, and its end, since the prompt may
* be deleted meanwhile.
*/
function cursorBefore(ended, at) {
	const last = ended[at - 1];
	return last === void 0 ? "ended" : `ended ${last.endedAtMs ?? 0} ${last.key}`;
}
/**
* Returns where a page begins. Prompts end while pages are read: a page may repeat one, and readers
* compare `key`.
*/
function positionAfter(cursor, live, ended) {
	const [kind, value = "", key] = (cursor ?? "").split(" ");
	if (kind === "live") return {
		live: Math.max(0, Number(value) || 0),
		ended: 0
	};
	if (kind !== "ended") return {
		live: 0,
		ended: 0
	};
	const known = ended.findIndex((outline) => outline.key === key);
	if (known >= 0) return {
		live: live.length,
		ended: known + 1
	};
	const endedAtMs = Number(value);
	const older = ended.findIndex((outline) => (outline.endedAtMs ?? 0) < endedAtMs);
	const next = value === "" ? 0 : older;
	return {
		live: live.length,
		ended: next < 0 ? ended.length : next
	};
}
function countByStatus(live, ended) {
	const counts = {
		pending: 0,
		in_progress: 0,
		completed: 0,
		failed: 0,
		cancelled: 0
	};
	for (const { prompt } of live) counts[listedStatus(liveWord(prompt))]++;
	for (const outline of ended) counts[endedStatus(outline)]++;
	return counts;
}
function hasStatus({ statuses }, status) {
	return statuses.length === 0 || statuses.includes(status);
}
function isWanted({ clientId, api, text }, job) {
	if (clientId !== void 0 && (job.client_id ?? "") !== clientId) return false;
	if (api !== void 0 && job.api !== api) return false;
	if (text === "") return true;
	const wanted = text.toLowerCase();
	return [
		job.name,
		job.id,
		job.job_id,
		job.client_id,
		job.error
	].some((value) => value?.toLowerCase().includes(wanted));
}
// src/console/console-routes.ts
const PREFIX = "/holdover/api/";
/** The report about a caller's own clients, for programs. */
const REPORT_PATH = "/holdover/report.json";
const CONSOLE_PATHS = [
	"session",
	"job-list",
	"job",
	"job/code",
	"clients",
	"clients/code",
	"server",
	"traffic",
	"traffic/entry",
	"traffic/picture",
	"traffic/har",
	"traffic/close",
	"traffic/clear"
].map((path) => PREFIX + path);
/**
* The API of Holdover's own page, `/holdover/api/*`. It changes nothing: the page cancels and
* submits through v1.
*/
function consoleRoutes(services, handlers) {
	const table = new Map(Object.entries(handlers));
	return (ctx, next) => {
		const method = ctx.method === "HEAD" ? "GET" : ctx.method;
		if (ctx.path === REPORT_PATH && method === "GET") return answer(ctx, "GET clients");
		if (!ctx.path.startsWith(PREFIX)) return next();
		return answer(ctx, `${method} ${ctx.path.slice(14)}`);
	};
	async function answer(ctx, name) {
		ctx.set("Cache-Control", "no-store");
		const handler = table.get(name);
		if (handler === void 0) throw new V1Error(404, plainError("not_found", "No such route."));
		const caller = await services.authenticate(ctx.req);
		if (caller === void 0) {
			const body = plainError("unauthorized", "A valid key is needed.");
			throw new V1Error(401, body, { headers: { "WWW-Authenticate": "Bearer" } });
		}
		const body = await handler({
			ctx,
			caller,
			access: services.checkOperator(ctx.req, caller),
			query: new URLSearchParams(ctx.querystring)
		});
		if (body !== void 0) sendJson(ctx, body);
	}
}
/** Refuses callers that are not the operator. */
function requireOperator(access) {
	if (access.isOperator) return;
	throw new V1Error(403, plainError("operator_only", `Only for the operator. ${access.reason}`));
}
/** The routes for every caller: short facts about the server, and the caller's own jobs. */
function jobHandlers(services) {
	const { prompts, livePrompts, addresses, facts, whenCurrent } = services;
	const list = createJobList({
		prompts,
		livePrompts
	});
	async function find({ caller, query }) {
		await whenCurrent(caller.user);
		const found = await findPrompt({
			prompts,
			livePrompts
		}, caller.user, query.get("id") ?? "");
		if (found) return found;
		throw new V1Error(404, plainError("not_found", "You have no job of this id."));
	}
	return {
		"GET session": ({ ctx, access }) => ({
			...facts,
			is_operator: access.isOperator,
			operator_reason: access.isOperator ? null : access.reason,
			address: addresses.of(ctx.req)?.base ?? ""
		}),
		async "GET job-list"({ caller, query }) {
			await whenCurrent(caller.user);
			return list(caller.user, readListQuery(query));
		},
		async "GET job"(request) {
			const found = await find(request);
			const pendingReason = found.live === void 0 ? null : await pendingReasonOf(found.live, services.jobQueueReason);
			return jobAnswer(found, {
				nowMs: services.now(),
				pendingReason
			});
		},
		async "GET job/code"(request) {
			const language = readLanguage(request.query);
			const { row } = await find(request);
			const baseUrl = addresses.of(request.ctx.req)?.base ?? "";
			return writeCode(services, {
				caller: request.caller,
				rows: [row],
				language,
				baseUrl
			});
		}
	};
}
const STATUSES = [
	"pending",
	"in_progress",
	"completed",
	"failed",
	"cancelled"
];
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;
function readListQuery(query) {
	const limit = Number(query.get("limit") ?? DEFAULT_LIMIT);
	if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) throw invalidRequest(`"limit" is a number from 1 to ${MAX_LIMIT}.`);
	const names = (query.get("status") ?? "").split(",").filter((name) => name !== "");
	const statuses = STATUSES.filter((status) => names.includes(status));
	if (statuses.length < names.length) throw invalidRequest(`"status" is of ${STATUSES.join(", ")}.`);
	const api = query.get("api") ?? void 0;
	if (api !== void 0 && api !== "v1" && api !== "v2") throw invalidRequest("\"api\" is v1 or v2.");
	return {
		limit,
		statuses,
		api,
		cursor: query.get("cursor") ?? void 0,
		clientId: query.get("client_id") ?? void 0,
		text: query.get("text")?.trim() ?? ""
	};
}
// src/console/traffic/recorded-call.ts
/** Returns true for the page's own calls, except those of its sample, which calls as a client does. */
function isOfPage({ headers, url = "" }) {
	if (headers["holdover-page"] === "sample") return false;
	const isWatcher = headers.upgrade !== void 0 && /[?&]watch=1(&|$)/.test(url);
	if (headers["holdover-page"] !== void 0 || isWatcher || isOfPlayer(url)) return true;
	return /^\/holdover(\/|\?|$)/.test(url);
}
/** Returns the API of a call. `other`: the model router, the page and the probes. */
function apiOf(url) {
	const { path } = readTarget(url);
	if (isV2Path(path)) return "v2";
	return isRouterPath(path) || /^\/((healthz|readyz|metrics)(\/|$)|$)/.test(path) ? "other" : "v1";
}
/** Returns the type of a picture that may be shown. */
function shownPictureType(contentType) {
	const [type = ""] = contentType.split(";", 1);
	return SHOWN_PICTURES.has(type) ? { picture: type } : {};
}
/** The formats that are safe to show. A picture that is a document could run scripts. */
const SHOWN_PICTURES = /* @__PURE__ */ new Set([
	"image/png",
	"image/jpeg",
	"image/webp",
	"image/gif"
]);
// src/console/traffic/difference-rules.ts
/** Limits rules to calls and frames of one kind. */
function onlyWhere(fits, rules) {
	const limited = Object.entries(rules).map(([row, { call, frame }]) => [row, {
		...call && { call: (facts) => fits(facts) && call(facts) },
		...frame && { frame: (facts) => fits(facts) && frame(facts) }
	}]);
	return Object.fromEntries(limited);
}
const isPrompt = ({ method, path }) => method === "POST" && path === "/prompt";
const isUpload = ({ path }) => path.startsWith("/upload/");
const isHistory = ({ path }) => /^\/history(_v2)?(\/|$)/.test(path);
const isUserdata = ({ path }) => /^\/(userdata|settings|v2\/userdata)(\/|$)/.test(path);
const isObjectInfo = ({ path }) => path.startsWith("/object_info");
const isJobs = ({ path }) => /^\/jobs?(\/|$)/.test(path);
const isUnavailable = ({ status }) => status === 502 || status === 503 || status === 504;
const isAccepted = (facts) => isPrompt(facts) && facts.status === 200;
const isRefused = (facts) => isPrompt(facts) && facts.status === 400;
const hasOrder = ({ body }) => /"(front|number)"/.test(body());
const isPreview = ({ type }) => type.startsWith("preview");
const isStep = ({ type }) => type === "progress" || type === "progress_state";
/** From this many begun nodes on, some `progress_state` messages are not sent. */
const MANY_NODES = 100;
/** The texts of longer frames are cut. */
const LONG_FRAME_BYTES = 9e5;
/** The rows of docs/differences.md that a call or a frame shows, and the calls and frames that show each. */
const DIFFERENCE_RULES = {
	"no-client-id": { call: (facts) => isAccepted(facts) && !facts.body().includes("\"client_id\"") },
	"shared-ids": { call: ({ path }) => path === "/ws" },
	"late-sockets": { call: ({ path }) => path === "/ws" },
	"after-the-answer": { call: isAccepted },
	"cancelled-before-start": { frame: ({ type }) => type === "execution_interrupted" },
	watchers: { call: ({ path, query }) => path === "/ws" && /(^|&)watch=1(&|$)/.test(query) },
	"sampler-previews": { frame: isPreview },
	keepalive: { call: ({ path }) => path === "/ws" },
	"no-deflate": { call: ({ path, headers }) => path === "/ws" && headers["sec-websocket-extensions"] !== void 0 },
	"large-graphs": { frame: ({ type, text }) => type === "progress_state" && Number.parseInt(text, 10) >= MANY_NODES },
	"long-frames": { frame: ({ bytes }) => bytes >= LONG_FRAME_BYTES },
	"socket-limits": { call: ({ path, status }) => path === "/ws" && status >= 400 },
	"v2-jobs": { call: ({ path, method }) => path === "/queue" && method === "GET" },
	users: { call: ({ path }) => path === "/users" },
	"equal-numbers": { call: (facts) => isAccepted(facts) && facts.body().includes("\"number\"") },
	"parallel-prompts": { call: ({ path, method }) => path === "/queue" && method === "GET" },
	"interrupt-inside": { call: ({ path }) => path === "/interrupt" },
	free: { call: ({ path }) => path === "/free" },
	"preview-names": { call: ({ path, query }) => path === "/view" && /(^|&)type=temp(&|$)/.test(query) },
	"identical-node-meta": { call: ({ path }) => /^\/history(_v2)?\/./.test(path) },
	"current-inputs": { frame: ({ type }) => type === "execution_error" },
	wording: {
		call: isRefused,
		frame: ({ type }) => type === "execution_error"
	},
	"host-paths": {
		call: ({ path }) => /^\/(experiment\/models|internal\/folder_paths)/.test(path),
		frame: ({ type }) => type === "execution_error"
	},
	"unknown-class": { call: (facts) => isObjectInfo(facts) || isRefused(facts) },
	"text-limits": { frame: ({ type, text }) => type === "execution_error" && /Timeout/.test(text) },
	"picture-formats": { call: ({ path, query }) => path === "/view" && query.includes("preview=") },
	pixels: { call: ({ path, status }) => path === "/view" && status === 200 },
	restart: { call: (facts) => isHistory(facts) && facts.method === "GET" },
	"history-size": { call: isHistory },
	"bad-input": { call: (facts) => facts.status === 400 && facts.method === "POST" && !isUpload(facts) },
	"upload-fields": { call: (facts) => isUpload(facts) && facts.status === 200 },
	"mask-format": { call: ({ path }) => path === "/upload/mask" },
	"bad-upload": { call: (facts) => facts.status === 400 && isUpload(facts) },
	"bad-view": { call: ({ status, path }) => status === 400 && path === "/view" },
	"unsafe-names": { call: (facts) => facts.status === 400 && (isUpload(facts) || isUserdata(facts)) },
	"duplicate-prompt-id": { call: (facts) => isRefused(facts) && /"prompt_id"/.test(facts.body()) },
	"extra-data-null": { call: (facts) => isPrompt(facts) && /"extra_data"\s*:\s*null/.test(facts.body()) },
	nan: { call: ({ status, body }) => status === 400 && /[:,[\s]-?(NaN|Infinity)[,}\]\s]/.test(body()) },
	"control-characters": { call: ({ status, path, query }) => status === 400 && /%(0|1|7f)/i.test(path + query) },
	"id-limits": { call: (facts) => isPrompt(facts) && /"prompt_id"/.test(facts.body()) },
	secrets: { call: (facts) => isPrompt(facts) && /"(api_key|auth_token)_[a-z]+_org"/.test(facts.body()) },
	encodings: { call: ({ status }) => status === 415 },
	"body-limits": { call: ({ status }) => status === 413 },
	"queue-limits": { call: (facts) => isPrompt(facts) && facts.status === 503 },
	origin: { call: ({ status, headers }) => status === 403 && headers.origin !== void 0 },
	cors: { call: ({ headers }) => headers.origin !== void 0 },
	"active-types": { call: ({ path, query }) => (path === "/view" || path.startsWith("/userdata/")) && /\.(html?|m?js|css|xml|svg|pdf|mht(ml)?)(&|$)/i.test(`${path}&${query}`) },
	"signed-view": { call: ({ path, status }) => path === "/view" && status === 302 },
	"service-trouble": { call: isUnavailable },
	"newer-routes": { call: (facts) => isJobs(facts) || /^\/(history_v2|user|global_subgraphs|node_replacements)(\/|$)/.test(facts.path) },
	"start-page": { call: ({ path }) => path === "/" },
	userdata: { call: isUserdata },
	"plain-folders": { call: ({ path }) => path.startsWith("/internal/files") },
	"system-stats": { call: ({ path }) => path === "/system_stats" },
	brownout: { call: ({ status }) => status === 503 },
	"definition-texts": { call: isObjectInfo },
	"display-name": { call: isObjectInfo },
	compression: { call: (facts) => isObjectInfo(facts) && facts.headers["accept-encoding"] !== void 0 },
	"static-files": { call: ({ path }) => path.startsWith("/assets/") || path === "/user.css" },
	"starter-templates": { call: ({ path }) => /^\/(templates|workflow_templates)(\/|$)/.test(path) },
	"starter-graph": { call: ({ path }) => path.startsWith("/extensions") },
	logs: { call: ({ path }) => path.startsWith("/internal/logs") },
	models: { call: ({ path }) => /^\/(models|embeddings|experiment\/models)(\/|$)/.test(path) },
	...onlyWhere(({ isRemote }) => isRemote, {
		"sparse-progress": { frame: isStep },
		"sparse-previews": { frame: isPreview },
		"overlapping-runs": { frame: ({ type }) => type === "execution_start" },
		"remote-order": { call: (facts) => isAccepted(facts) && hasOrder(facts) },
		"unknown-cache": { frame: ({ type }) => type === "execution_cached" },
		"remote-names": { frame: ({ type }) => type === "executed" },
		"remote-errors": { frame: ({ type }) => type === "execution_error" },
		"partial-node-errors": { call: (facts) => isPrompt(facts) && facts.status <= 400 },
		"embedded-names": { call: ({ path, status }) => path === "/view" && status === 200 },
		"png-workflow": { call: (facts) => isAccepted(facts) && facts.body().includes("\"extra_pnginfo\"") },
		"remote-auth-token": { call: (facts) => isPrompt(facts) && facts.body().includes("\"auth_token_comfy_org\"") },
		"others-files": { call: isRefused }
	}),
	...onlyWhere(({ isHosted = false }) => isHosted, {
		"hosted-routes": { call: ({ path, status }) => status === 404 && /^\/(assets|tags|files\/mask-layers|experiment)/.test(path) },
		"hosted-more-routes": { call: ({ path }) => /^\/(history|settings|models|users|extensions|free)(\/|$)/.test(path) },
		"hosted-other-paths": { call: ({ path }) => /^\/(interrupt|logs)$/.test(path) },
		"hosted-errors": { call: ({ status }) => status >= 400 },
		"hosted-statuses": { call: ({ status }) => status >= 400 },
		"hosted-public": { call: ({ path, status }) => status === 401 && /^\/(templates|models|features|system_stats)/.test(path) }
	}),
	"hosted-subscription": { call: ({ status }) => status === 402 || status === 429 },
	...onlyWhere(({ isHosted = false }) => isHosted, {
		"hosted-foreign": { call: (facts) => facts.status === 404 && isJobs(facts) },
		"hosted-order": { call: (facts) => isAccepted(facts) && hasOrder(facts) },
		"hosted-queue": { call: ({ path, method }) => path === "/queue" && method === "POST" },
		"hosted-names": { call: isUpload },
		"hosted-upload-limits": { call: (facts) => isUpload(facts) && facts.status >= 400 },
		"hosted-view": { call: ({ path }) => path === "/view" },
		"hosted-jobs": { call: ({ path }) => path === "/jobs" },
		"hosted-status-words": { call: ({ path }) => /^\/job\/[^/]+\/status$/.test(path) },
		"hosted-exceptions": { call: ({ path }) => /^\/(jobs|history_v2)\/./.test(path) },
		"hosted-userdata": { call: isUserdata },
		"hosted-ids": { call: (facts) => isPrompt(facts) && /"prompt_id"/.test(facts.body()) }
	})
};
// src/console/differences.ts
/** Returns the rows of docs/differences.md that are visible in a v1 call. */
function differencesOf({ target = "", status = 0, method = "" }, facts) {
	const [address = "", query = ""] = target.split("?", 2);
	if (address !== "/" && apiOf(address) !== "v1") return [];
	const isHosted = address.startsWith("/api/") && facts.headers["x-api-key"] !== void 0;
	const path = address.replace(/^\/api(?=\/)/, "");
	let text;
	const body = () => text ??= facts.body();
	const call = {
		...facts,
		body,
		method,
		path,
		query,
		status,
		isHosted
	};
	return namesWhere((rule) => rule.call?.(call) === true);
}
/** Returns the rows that are visible in a frame that was sent to a v1 client. */
function frameDifferences({ type = "", text = "", bytes = 0 }, { isRemote }) {
	return namesWhere((rule) => rule.frame?.({
		type,
		text,
		bytes,
		isRemote
	}) === true);
}
const NAMED_RULES = Object.entries(DIFFERENCE_RULES);
function namesWhere(applies) {
	return NAMED_RULES.filter(([, rule]) => applies(rule)).map(([name]) => name);
}
let rows;
/** Returns the rows with these names, in the words of docs/differences.md. */
function differenceRows(names) {
	rows ??= readRows();
	return names.flatMap((name) => rows?.get(name) ?? []);
}
function readRows() {
	const found = readFileSync(packageUrl("docs/differences.md"), "utf8").matchAll(/^\| `([\w-]+)` \| (.*?) ?\| (.*?) \| (.*?) \|$/gm);
	return new Map([...found].map(([, row = "", original = "", holdover = "", why = ""]) => [row, {
		row,
		original,
		holdover,
		why
	}]));
}
// src/console/traffic/captured-body.ts
/** The number of bytes of a body that are recorded. */
const MAX_BODY_BYTES = 131072;
function emptyBody() {
	return {
		pieces: [],
		capturedBytes: 0,
		totalBytes: 0
	};
}
/** Returns a body that was received as a whole. */
function bodyOf(bytes) {
	const body = emptyBody();
	addPiece(body, bytes);
	return body;
}
/** Returns true when only the beginning of a body was recorded. */
function isCut({ capturedBytes, totalBytes }) {
	return capturedBytes < totalBytes;
}
/** Returns the recorded bytes of a body. */
function bytesOf({ pieces }) {
	return Buffer.concat(pieces);
}
/** Returns the beginning of a body as text. */
function textIn(body) {
	return body === void 0 ? "" : bytesOf(body).toString("utf8");
}
function addPiece(body, piece) {
	body.totalBytes += piece.length;
	const room = MAX_BODY_BYTES - body.capturedBytes;
	if (room <= 0) return;
	const kept = piece.length <= room ? piece : Buffer.from(piece.subarray(0, room));
	body.pieces.push(kept);
	body.capturedBytes += kept.length;
}
function toBuffer$1(chunk, encoding) {
	if (Buffer.isBuffer(chunk)) return chunk;
	if (chunk instanceof Uint8Array) return Buffer.from(chunk);
	if (typeof chunk !== "string") return void 0;
	return Buffer.from(chunk, typeof encoding === "string" ? encoding : "utf8");
}
/**
* Records the body of a request when the parser delivers it. The body is not read here, so nothing
* else changes.
*/
function captureRequest(request) {
	const body = emptyBody();
	const push = request.push.bind(request);
	request.push = (chunk, encoding) => {
		const piece = toBuffer$1(chunk, encoding);
		if (piece) addPiece(body, piece);
		return push(chunk, encoding);
	};
	return body;
}
/** Records the body of an answer when it is written. */
function captureResponse(response) {
	const body = emptyBody();
	for (const name of ["write", "end"]) {
		const original = response[name].bind(response);
		const recording = (...args) => {
			const piece = toBuffer$1(args[0], args[1]);
			if (piece) addPiece(body, piece);
			return original(...args);
		};
		Object.assign(response, { [name]: recording });
	}
	return body;
}
// src/console/traffic/shown-text.ts
/** The text that replaces a credential. */
const REMOVED = "[removed]";
/** Removes texts that look like credentials, and every key that a caller has sent. */
function createShowText(secrets) {
	return (text) => secrets.redact(withoutCredentialsIn(text).replaceAll(MEMBER_IN_TEXT, `$1$3${REMOVED}`).replaceAll(ASSIGNMENT_IN_TEXT, `$1${REMOVED}`));
}
/**
* Returns a text for one line of the list. Its end is cut only after credentials were removed,
* since half of a key is not recognized.
*/
function lineText(showText, text) {
	return showText(text.slice(0, MAX_SEARCHED_CHARS)).slice(0, MAX_TEXT_CHARS$3);
}
const MAX_TEXT_CHARS$3 = 160;
const MAX_SEARCHED_CHARS = 16384;
const SECRETS = String.raw`(?:api|auth|access|private|secret|signing)[-_.]?keys?|(?:api|auth|access|refresh|session|bearer|id)[-_.]?tokens?|token|secrets?|passw(?:or)?ds?|passphrases?|credentials?|cookies?2?|jwts?|authorization|signature`;
const SECRET_ENDS = String.raw`(?:[-_.](?:id|value|[a-z]+[-_.]org))?`;
const SECRET_NAME = new RegExp(String.raw`^(?:.*(?:${SECRETS})${SECRET_ENDS}|pwd|session[-_]?id)$`, "i");
/**
* Matches members of JSON that cannot be parsed, such as the beginning of a long body. Any client
* may choose the text, so this takes linear time.
*/
const MEMBER_IN_TEXT = new RegExp(String.raw`((?<!\\)(\\*["'])[\w.-]{0,64}(?:${SECRETS})${SECRET_ENDS}\2\s*:\s*(?:\[\s*)?)(\2)(?:(?!(?<!\\)\2)[^\n])+`, "gi");
/** Matches `token=…`, as in a form or a command line. */
const ASSIGNMENT_IN_TEXT = new RegExp(String.raw`(\b[\w.-]{0,64}(?:${SECRETS})${SECRET_ENDS}=)(?!\[)[^\s"'\\&;,<>]+`, "gi");
const SECRET_HEADER = /(^|-)(auth|session|sid|sig|key|assertion|protocol)$/i;
/** A header with a random value for each handshake, which is no secret. */
const HANDSHAKE_HEADER = "sec-websocket-key";
/**
* Returns true when a member of JSON, or a part of a form, with this name holds a credential. The inspector
* removes more than the log.
*/
function isSecretName(name) {
	return isCredentialMember(name) || SECRET_NAME.test(name.trim());
}
/** Returns the headers without credentials, one pair for each value. */
function shownHeaders(headers) {
	return Object.entries(headers).flatMap(([name, value]) => {
		return (Array.isArray(value) ? value : [value]).map((one) => [name, shownHeader(name, String(one ?? ""))]);
	});
}
function shownHeader(name, value) {
	return name !== HANDSHAKE_HEADER && (isSecretName(name) || SECRET_HEADER.test(name)) ? REMOVED : withoutCredentialsIn(value);
}
// src/console/traffic/shown-json.ts
/** The maximum depth of JSON that is a text inside JSON. */
const MAX_LEVELS = 6;
/**
* Returns JSON without the members that name a credential, at any depth, also in texts that are
* JSON themselves. Without such a member the text stays unchanged. Returns `undefined` when the text is not JSON.
*/
function jsonWithoutCredentials(text, level = 0) {
	let value;
	try {
		value = parseJson(text);
	} catch {
		return;
	}
	const found = { isAny: false };
	const shown = shownValue(value, found, level);
	return !found.isAny && !/\\u00/i.test(text) ? text : stringifyJson(shown);
}
function shownValue(value, found, level) {
	if (typeof value === "string") return shownString(value, found, level);
	if (Array.isArray(value)) return value.map((item) => shownValue(item, found, level));
	if (!isJsonObject(value)) return value;
	const members = Object.entries(value).map(([name, member]) => {
		if (!isSecretName(name) || isHarmless(member)) return [name, shownValue(member, found, level)];
		found.isAny = true;
		return [name, REMOVED];
	});
	return Object.fromEntries(members);
}
function shownString(text, found, level) {
	if (level >= MAX_LEVELS || !/^\s*[[{"]/.test(text)) return text;
	const shown = jsonWithoutCredentials(text, level + 1);
	if (shown === void 0 || shown === text) return text;
	found.isAny = true;
	return shown;
}
/** Returns true for a value that says there is no credential. */
function isHarmless(value) {
	return value === null || value === "" || typeof value === "boolean";
}
// src/console/traffic/multipart-text.ts
/**
* Returns a form as readable text: each part with its headers, and its text without credentials or
* its number of bytes.
*/
function multipartText(body, contentType, showText) {
	const boundary = /boundary="?([^";]+)"?/i.exec(contentType)?.[1];
	if (boundary === void 0) return `(${body.totalBytes} bytes)`;
	const parts = bytesOf(body).toString("latin1").split(`--${boundary}`).slice(1);
	return parts.filter((part) => !part.startsWith("--")).map((part, at) => partText(part, {
		showText,
		isCut: isCut(body) && at === parts.length - 1
	})).join("\n\n");
}
const MAX_TEXT_CHARS$2 = 2e3;
function partText(part, options) {
	const end = part.indexOf("\r\n\r\n");
	if (end < 0) return "(cut off)";
	const head = utf8(part.slice(0, end)).trim();
	const body = part.slice(end + 4).replace(/\r\n$/, "");
	return `${options.showText(head)}\n\n${bodyText(head, body, options)}`;
}
function bodyText(head, body, { showText, isCut }) {
	if (/filename\*?=/i.test(head)) return isCut ? "(a file, cut off)" : `(${body.length} bytes)`;
	if (isCut) return "(cut off)";
	if (isSecretName(decoded(/\bname\*?="?([^";\r\n]*)/i.exec(head)?.[1] ?? ""))) return REMOVED;
	const text = utf8(body);
	return showText(jsonWithoutCredentials(text) ?? text).slice(0, MAX_TEXT_CHARS$2);
}
/** Decodes a name such as `name*=utf-8''api%5Fkey`. */
function decoded(name) {
	try {
		return decodeURIComponent(name.replace(/^[\w-]*'[\w-]*'/, ""));
	} catch {
		return name;
	}
}
function utf8(latin1) {
	return Buffer.from(latin1, "latin1").toString("utf8");
}
// src/console/traffic/shown-body.ts
/**
* Returns a body of an entry without credentials, as the inspector shows it; `null` when there is no body.
*/
function shownBody(recorded, side, showText) {
	const [body, contentType = ""] = side === "request" ? [recorded.request, recorded.requestType] : [recorded.response, recorded.responseType];
	const { entry, responseHeaders = [], contentStart = 0 } = recorded;
	const { target = "" } = entry;
	if (body === void 0 || body.totalBytes === 0) return null;
	const [, encoding] = side === "response" && responseHeaders.find(isEncoding) || [];
	const facts = {
		content_type: contentType,
		bytes: body.totalBytes,
		is_cut: isCut(body)
	};
	if (namesSecret(target)) return {
		...facts,
		text: REMOVED,
		note: null
	};
	if (contentType.startsWith("multipart/")) return {
		...facts,
		text: multipartText(body, contentType, showText),
		note: null
	};
	if (!isText(contentType)) return {
		...facts,
		text: null,
		note: null
	};
	const bytes = encoding === void 0 ? bytesOf(body) : unpacked(body, encoding);
	if (bytes === void 0) return {
		...facts,
		text: null,
		note: `compressed with ${encoding}`
	};
	const text = withoutTail(bytes.toString("utf8", contentStart), body);
	return {
		...facts,
		text: shownText(text, contentType, showText),
		note: null
	};
}
function isEncoding([name]) {
	return name === "content-encoding";
}
function shownText(text, contentType, showText) {
	if (contentType.includes("urlencoded") || contentType === "" && FORM.test(text)) return showText(withoutCredentials(`?${text}`).slice(1));
	return showText(jsonWithoutCredentials(text) ?? text);
}
/** Matches a form such as `a=1&b=2`. */
const FORM = /^[\w%.+-]+=/;
const MAX_TAIL_CHARS = 8192;
/** Removes the end of a text that was cut: it may be half of a key, which is not recognized. */
function withoutTail(text, body) {
	if (!isCut(body)) return text;
	const lastEnd = Math.max(text.lastIndexOf("\""), text.lastIndexOf("\n"), text.lastIndexOf("&"));
	return text.slice(0, Math.max(lastEnd, text.length - MAX_TAIL_CHARS));
}
/** Returns true for a setting such as `/settings/Comfy.ApiKey`, whose body is the value alone. */
function namesSecret(target) {
	const [path = ""] = target.split("?", 1);
	try {
		return isSecretName(decodeURIComponent(path.split("/").at(-1) ?? ""));
	} catch {
		return true;
	}
}
function unpacked(body, encoding) {
	if (isCut(body)) return void 0;
	const limits = { maxOutputLength: 64 * MAX_BODY_BYTES };
	try {
		const bytes = bytesOf(body);
		return (encoding === "br" ? brotliDecompressSync(bytes, limits) : gunzipSync(bytes, limits)).subarray(0, 8 * MAX_BODY_BYTES);
	} catch {
		return;
	}
}
/** Returns true for text. A body without a type counts as text, since v1 clients send JSON without one. */
function isText(contentType) {
	return contentType === "" || /json|^text\/|xml|urlencoded|event-stream/.test(contentType);
}
// src/console/traffic/har.ts
/**
* Writes the recorded traffic as an HTTP archive (HAR 1.2), one call at a time. The frames of a
* socket are in `_webSocketMessages`, as Chromium writes them. The v2 calls follow the v1 calls
* that they were made for. The events of a stream are the body of its call.
*/
function* harPieces(entries, { version, ...options }) {
	const recording = recordingOf(entries);
	yield `{"log":{"version":"1.2","creator":${JSON.stringify({
		name: "Holdover",
		version
	})},"pages":[],"entries":[`;
	let separator = "\n";
	for (const call of recording.calls) {
		yield separator + options.toJson(harEntry(call, recording, options));
		separator = ",\n";
	}
	yield "\n]}}";
}
function recordingOf(entries) {
	const calls = entries.filter(({ entry: { kind } }) => kind === "call" || kind === "v2_call");
	const sockets = calls.filter(({ entry }) => entry.status === 101);
	const events = grouped(entries.filter(({ entry }) => entry.kind === "v2_event"), ({ entry }) => entry.cause_id);
	const bySocket = grouped(entries.filter(({ entry }) => entry.kind === "frame"), (frame) => socketOf(frame, sockets));
	const unopened = grouped(bySocket.get(void 0) ?? [], socketName);
	const earlier = [...unopened.values()].flatMap(([first]) => first ?? []).map(openedBefore);
	return {
		calls: [...earlier, ...calls].toSorted((a, b) => a.entry.at_ms - b.entry.at_ms),
		framesOf: (call) => bySocket.get(call) ?? (earlier.includes(call) ? unopened.get(socketName(call)) ?? [] : []),
		eventsOf: ({ entry }) => events.get(entry.id) ?? []
	};
}
function grouped(entries, keyOf) {
	const groups = /* @__PURE__ */ new Map();
	for (const entry of entries) addTo(groups, keyOf(entry), entry);
	return groups;
}
/** Returns the last call that opened a socket of this id before the frame. */
function socketOf({ user, entry }, sockets) {
	return sockets.findLast((socket) => socket.user === user && socket.entry.client_id === entry.sid && socket.entry.id < entry.id);
}
function socketName({ user, entry }) {
	return `${user} ${entry.sid}`;
}
/** Returns a call for a socket that was opened before the recording began, or without an id. */
function openedBefore({ user, entry }) {
	const { at_ms: atMs, sid = "" } = entry;
	return {
		user,
		entry: {
			id: 0,
			revision: 0,
			kind: "call",
			at_ms: atMs,
			ms: 0,
			cause_id: null,
			prompt_id: null,
			job_id: null,
			method: "GET",
			status: 101,
			sid,
			target: `/ws?clientId=${encodeURIComponent(sid)}`
		}
	};
}
function harEntry(recorded, recording, options) {
	const { entry, requestHeaders = [], responseHeaders = [] } = recorded;
	const { method = "", status = 0, ms } = entry;
	const url = addressOf(recorded, options);
	const request = shownBody(recorded, "request", options.showText);
	const frames = status === 101 ? recording.framesOf(recorded) : void 0;
	return {
		startedDateTime: new Date(entry.at_ms).toISOString(),
		time: ms ?? 0,
		request: {
			method,
			url: url.href,
			httpVersion: "HTTP/1.1",
			cookies: [],
			headers: pairs(requestHeaders),
			queryString: pairs([...url.searchParams]),
			headersSize: -1,
			bodySize: entry.request_bytes ?? 0,
			...request && { postData: {
				mimeType: request.content_type,
				text: request.text ?? ""
			} }
		},
		response: {
			status,
			statusText: STATUS_CODES[status] ?? "",
			httpVersion: "HTTP/1.1",
			cookies: [],
			headers: pairs(responseHeaders),
			content: contentOf(recorded, recording, options.showText),
			redirectURL: responseHeaders.find(([name]) => name === "location")?.[1] ?? "",
			headersSize: -1,
			bodySize: entry.response_bytes ?? 0
		},
		cache: {},
		timings: {
			send: 0,
			wait: ms ?? 0,
			receive: 0
		},
		_resourceType: frames === void 0 ? "fetch" : "websocket",
		...frames && { _webSocketMessages: frames.map((frame) => webSocketMessage(frame, options.showText)) },
		...commentOf(recorded)
	};
}
/**
* Returns the address of a call. For a v2 call the address of its job is known, for other calls the
* pattern.
*/
function addressOf({ entry }, { base, upstreamBase }) {
	const { kind, target = "", job_id: jobId } = entry;
	const path = kind === "v2_call" && target.startsWith("/api/v2/jobs/") && jobId !== null ? target.replace("{id}", jobId) : target;
	const origin = (kind === "v2_call" ? upstreamBase : base).replace(/\/$/, "");
	return new URL(path.startsWith("/") ? origin + path : `${origin}/`);
}
function commentOf({ entry }) {
	if (entry.kind === "v2_call") return { comment: "v2 call that Holdover made" };
	const rows = entry.differences ?? [];
	return rows.length === 0 ? {} : { comment: `differs from the original: ${rows.join(", ")}` };
}
function pairs(list) {
	return list.map(([name, value]) => ({
		name,
		value
	}));
}
function contentOf(recorded, { eventsOf }, showText) {
	const { responseType, entry } = recorded;
	const events = eventsOf(recorded);
	if (events.length > 0) {
		const text = events.map((event) => eventText$1(event, showText)).join("");
		return {
			size: Buffer.byteLength(text),
			mimeType: "text/event-stream",
			text
		};
	}
	const size = entry.response_bytes ?? 0;
	const mimeType = responseType ?? "";
	const shown = shownBody(recorded, "response", showText);
	if (typeof shown?.text === "string") return {
		size,
		mimeType,
		text: shown.text,
		...cutOf(shown)
	};
	const picture = entry.picture === void 0 ? void 0 : pictureIn(recorded, showText);
	if (picture === void 0) return {
		size,
		mimeType
	};
	return {
		size,
		mimeType,
		text: picture.toString("base64"),
		encoding: "base64"
	};
}
function cutOf({ is_cut: isCutOff }) {
	return isCutOff ? { comment: "Only the beginning of the body was recorded." } : {};
}
/** Returns an event as a stream sends it. */
function eventText$1(event, showText) {
	const { entry, responseType } = event;
	const data = shownBody(event, "response", showText)?.text ?? JSON.stringify({
		content_type: responseType,
		bytes: entry.bytes
	});
	return `event: ${entry.type}\ndata: ${data}\n\n`;
}
/** Returns one frame as Chromium exports it. Binary frames are complete, as Base64. */
function webSocketMessage(frame, showText) {
	const { entry, requestType, responseType } = frame;
	const base = {
		type: entry.direction === "in" ? "send" : "receive",
		time: entry.at_ms / 1e3
	};
	const shown = shownBody(frame, entry.direction === "in" ? "request" : "response", showText);
	if ((requestType ?? responseType) === "application/json") return {
		...base,
		opcode: 1,
		data: shown?.text ?? ""
	};
	return {
		...base,
		opcode: 2,
		data: binaryData(frame.request ?? frame.response, shown, showText)
	};
}
/**
* Returns the data of a binary frame. One with a key in it is left out, since its length would not
* be right.
*/
function binaryData(body, shown, showText) {
	if (body === void 0 || isCut(body)) return "";
	const bytes = bytesOf(body);
	const text = shown?.text ?? null;
	return (text === null || bytes.includes(text)) && hasNoKey(bytes, showText) ? bytes.toString("base64") : "";
}
/**
* Returns the picture in an entry; `undefined` when only its beginning was recorded, or its bytes contain a key.
*/
function pictureIn(recorded, showText) {
	const { contentStart = 0 } = recorded;
	const body = recorded.response ?? recorded.request;
	if (recorded.entry.picture === void 0 || body === void 0 || isCut(body)) return void 0;
	const bytes = bytesOf(body);
	return hasNoKey(bytes, showText) ? bytes.subarray(contentStart) : void 0;
}
/** Returns true when no text in a picture has a key. Pictures carry the graph that made them. */
function hasNoKey(bytes, showText) {
	const text = bytes.toString("latin1");
	return showText(text) === text;
}
// src/console/traffic-routes.ts
/** The members of entries that contain no text of a client or a service. */
const OWN_WORDS = /* @__PURE__ */ new Set([
	"api",
	"direction",
	"kind",
	"picture",
	"server"
]);
/** The routes of the inspector. Callers see their own traffic; `scope=all` is for the operator. */
function trafficHandlers(services) {
	const { store, secrets, countServers, baseOf } = services;
	const showText = createShowText(secrets);
	/** Sends an answer through the last filter: no secret that is known by now is sent. */
	function send({ ctx }, body) {
		ctx.status = 200;
		ctx.set("Content-Type", "application/json; charset=utf-8");
		ctx.body = secrets.redactedJson(body, OWN_WORDS);
	}
	function find(request) {
		requireServer(request, store.server);
		const found = store.find(Number(request.query.get("id")), scopeOf(request));
		if (found) return found;
		throw new V1Error(404, plainError("not_found", "This entry is gone."));
	}
	return {
		async "GET traffic"(request) {
			const scope = scopeOf(request);
			store.hold({
				...scope,
				reader: readerOf(request)
			});
			const servers = await countServers();
			return send(request, {
				...store.changedAfter(afterOf(request, store.server), scope),
				servers
			});
		},
		async "POST traffic/close"(request) {
			store.release({
				...scopeOf(request),
				reader: readerOf(request)
			});
			return send(request, {});
		},
		async "POST traffic/clear"(request) {
			requireOperator(request.access);
			store.clear();
			return send(request, {});
		},
		"GET traffic/entry": async (request) => send(request, detailOf(find(request), {
			...scopeOf(request),
			showText
		})),
		async "GET traffic/picture"(request) {
			const picture = pictureIn(find(request), showText);
			if (picture === void 0) throw new V1Error(404, plainError("not_found", "There is no picture."));
			request.ctx.status = 200;
			request.ctx.set("Content-Type", "application/octet-stream");
			request.ctx.body = picture;
		},
		async "GET traffic/har"(request) {
			requireServer(request, store.server);
			const entries = store.list(scopeOf(request));
			const { ctx } = request;
			ctx.status = 200;
			ctx.set("Content-Type", "application/json; charset=utf-8");
			ctx.set("Content-Disposition", "attachment; filename=\"holdover.har\"");
			ctx.body = Readable.from(harText(entries, {
				...services,
				base: baseOf(request),
				showText
			}));
		}
	};
}
/** Writes the archive. Other calls are served between two entries. */
async function* harText(entries, { secrets, facts, base, showText }) {
	const upstreamBase = facts.upstream_kind === "remote" ? facts.upstream : base;
	const toJson = (entry) => secrets.redactedJson(entry);
	const options = {
		base,
		upstreamBase,
		showText,
		toJson,
		version: facts.version
	};
	for (const piece of harPieces(entries, options)) {
		yield piece;
		await setImmediate$1();
	}
}
function scopeOf({ caller, access, query }) {
	const isAll = query.get("scope") === "all";
	if (isAll) requireOperator(access);
	return {
		user: caller.user,
		isAll
	};
}
function readerOf({ query }) {
	return (query.get("reader") ?? "").slice(0, 64);
}
/**
* Refuses a call for another server: behind a load balancer it may reach a server that has other
* entries with the same ids.
*/
function requireServer({ query }, server) {
	if ((query.get("server") ?? server) === server) return;
	throw new V1Error(404, plainError("other_server", "Another server has this entry: ask again."));
}
/** Reads `after`, which names a revision of each server that was asked: `a1b2.17,c3d4.5`. */
function afterOf({ query }, server) {
	const known = (query.get("after") ?? "").split(",").find((one) => one.startsWith(`${server}.`));
	return Number(known?.slice(server.length + 1) ?? 0) || 0;
}
function detailOf(recorded, { user, showText }) {
	const { entry, requestHeaders = [], responseHeaders = [] } = recorded;
	return {
		entry: {
			...entry,
			is_other_user: recorded.user !== user
		},
		request_headers: requestHeaders,
		response_headers: responseHeaders,
		request: shownBody(recorded, "request", showText),
		response: shownBody(recorded, "response", showText),
		differences: differenceRows(entry.differences ?? [])
	};
}
// src/console/clients-routes.ts
/** The maximum number of workflows in the code of a client. */
const MAX_WORKFLOWS = 5;
/** The routes for leaving v1: the clients that still call it, and the v2 code for what each did. */
function clientsHandlers(services) {
	return {
		async "GET clients"({ caller, access, query }) {
			const isAll = query.get("scope") === "all";
			if (isAll) requireOperator(access);
			await services.usageCounter.flush();
			const rows = await services.calls.list();
			return { clients: reportOf(isAll ? rows : rows.filter(({ user }) => user === caller.user)) };
		},
		async "GET clients/code"({ ctx, caller, query }) {
			const language = readLanguage(query);
			const rows = await promptsOf(services.prompts, caller.user, new Set(query.getAll("client_id")));
			if (rows.length === 0) throw new V1Error(404, plainError("not_found", "History has no prompt of this client."));
			return writeCode(services, {
				caller,
				rows,
				language,
				baseUrl: services.addresses.of(ctx.req)?.base ?? ""
			});
		}
	};
}
/**
* Returns the latest prompts of a client, one for each workflow, in the order of their submission.
*/
async function promptsOf(prompts, user, clientIds) {
	const found = /* @__PURE__ */ new Map();
	const newest = (await prompts.outlines(user)).slice(-400).toReversed();
	for (const { key } of newest) {
		if (found.size === MAX_WORKFLOWS) break;
		const row = await prompts.get(key);
		if (row === void 0 || !clientIds.has(row.clientId ?? "")) continue;
		const shape = [...row.graphJson.matchAll(/"class_type":"([^"]*)"/g)].map(([, name]) => name).join();
		if (!found.has(shape)) found.set(shape, row);
	}
	return [...found.values()].toReversed();
}
// src/console/figures.ts
/** The time when this process began, in milliseconds since 1970. */
const STARTED_AT_MS = Date.now() - process.uptime() * 1e3;
const SAMPLE_INTERVAL_MS = 1e4;
/** The interval for measuring the disk. It is longer, because summing the sizes of all files takes time. */
const DISK_EVERY_MS = 6e4;
/** Measures the server every ten seconds, and keeps the samples of an hour. */
function createFigures(sources) {
	const { livePrompts, prompts, hub, upstream } = sources.services;
	const samples = [];
	let last;
	let disk = {
		atMs: -Infinity,
		bytes: 0
	};
	const timer = setInterval(() => void measure().catch(ignoreError$2), SAMPLE_INTERVAL_MS);
	timer.unref();
	async function measure() {
		const totals = await sources.totals();
		const atMs = sources.now();
		if (atMs - disk.atMs >= DISK_EVERY_MS) disk = {
			atMs,
			bytes: await sources.diskBytes()
		};
		const states = livePrompts.countByState();
		const rates = last === void 0 ? NO_RATES : ratesBetween(last, {
			atMs,
			totals
		});
		last = {
			atMs,
			totals
		};
		const sample = {
			at_ms: atMs,
			queued: (states["waiting"] ?? 0) + (states["queued"] ?? 0),
			running: (states["running"] ?? 0) + (states["ending"] ?? 0),
			outbox: prompts.outboxDepth(),
			sockets: hub.count(),
			upstream_streams: upstream.openStreams(),
			memory_bytes: process.memoryUsage.rss(),
			disk_bytes: disk.bytes,
			...rates
		};
		samples.push(sample);
		if (samples.length > 360) samples.shift();
		await sources.onSample(sample);
	}
	return {
		measure,
		samples: () => samples,
		close: () => clearInterval(timer)
	};
}
/** Ignores an error: while the ledger or the shared Redis is unavailable, the figures have a gap. */
function ignoreError$2() {}
const NO_RATES = {
	ended_per_minute: null,
	requests_per_second: null,
	latency_p50_ms: null,
	latency_p95_ms: null
};
function ratesBetween(from, to) {
	const seconds = Math.max(.001, (to.atMs - from.atMs) / 1e3);
	const buckets = [...to.totals.requests].map(([bound, total]) => [bound, total - (from.totals.requests.get(bound) ?? 0)]).toSorted(([a], [b]) => a - b);
	const requests = buckets.at(-1)?.[1] ?? 0;
	return {
		ended_per_minute: (to.totals.ended - from.totals.ended) / seconds * 60,
		requests_per_second: requests / seconds,
		latency_p50_ms: quantileMs(buckets, .5),
		latency_p95_ms: quantileMs(buckets, .95)
	};
}
/**
* Returns the time within which this share of the requests was answered, from cumulative buckets.
* Between two bounds, requests count as evenly distributed. Returns `null` when there were no requests.
* @internal
*/
function quantileMs(buckets, share) {
	const wanted = (buckets.at(-1)?.[1] ?? 0) * share;
	if (wanted === 0) return null;
	let [lowerBound, lowerTotal] = [0, 0];
	for (const [bound, total] of buckets) {
		if (total >= wanted) {
			if (bound === Infinity) return lowerBound * 1e3;
			const part = (wanted - lowerTotal) / Math.max(1, total - lowerTotal);
			return (lowerBound + (bound - lowerBound) * part) * 1e3;
		}
		[lowerBound, lowerTotal] = [bound, total];
	}
	return null;
}
// src/console/server-limits.ts
/** Returns everything that is limited, and how much of it is used. */
async function limitsOf({ config, figures, diskBytes }) {
	const last = figures.samples().at(-1);
	const { upstream } = config;
	const ofUpstream = upstream.kind === "embedded" ? [counted("Waiting jobs", "--queue-limit", [last?.queued, config.queueLimit])] : [counted("Outbox (per user)", "--outbox-limit", [last?.outbox, config.outboxLimit]), counted("Event streams", "--upstream-streams", [last?.upstream_streams, upstream.streams])];
	const used = await diskBytes();
	return [
		...ofUpstream,
		counted("WebSockets", "--max-sockets", [last?.sockets, config.maxSockets]),
		inBytes("Stored files", "--disk-budget", [used, config.diskBudgetBytes]),
		...await diskOf(config.dataDir),
		inBytes("Memory", "", [last?.memory_bytes ?? 0, memoryLimit()])
	];
}
function counted(name, flag, [used = 0, limit]) {
	return {
		name,
		flag,
		used,
		limit,
		unit: "count"
	};
}
function inBytes(name, flag, [used = 0, limit]) {
	return {
		name,
		flag,
		used,
		limit,
		unit: "bytes"
	};
}
/** Returns the usage of the disk with the data folder, as far as this process may fill it. */
async function diskOf(dataDir) {
	try {
		const { blocks, bfree, bavail, bsize } = await statfs(dataDir);
		const used = (blocks - bfree) * bsize;
		return [inBytes("Disk", "", [used, used + bavail * bsize])];
	} catch {
		return [];
	}
}
/** Returns the memory limit. A container may have less than the machine. */
function memoryLimit() {
	const constrained = process.constrainedMemory();
	return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
// src/console/server-warnings.ts
/** Returns the warnings that require action by an operator, the most urgent first. */
function warningsOf(sources) {
	return [
		...healthWarnings(sources),
		...sources.limits.flatMap(limitWarning),
		...outboxWarnings(sources),
		...upstreamWarnings(sources.discovered),
		...brownoutWarnings(sources)
	];
}
function healthWarnings({ isHealthy, upstream, workers, config }) {
	if (!isHealthy) return [{
		code: "upstream_unhealthy",
		text: `The upstream (${upstream}) does not answer as it should: accepted prompts wait.`,
		action: "Start it again, or check its address and key."
	}];
	if (workers !== 0 || config.concurrency > 0) return [];
	return [{
		code: "no_worker",
		text: "No process runs jobs: accepted prompts wait.",
		action: "Start a worker, or give --concurrency more than 0."
	}];
}
/** A limit that is used to this share leads to a warning. */
const WARNING_SHARE = .85;
function limitWarning({ name, flag, used, limit }) {
	if (used < limit * WARNING_SHARE || flag === "--upstream-streams" || limit === 0) return [];
	return [{
		code: "limit_near",
		text: `${name}: ${Math.round(used / limit * 100)} % of the limit are used.`,
		action: flag === "" ? "Make room on the machine." : `Raise ${flag}, or make room.`
	}];
}
function outboxWarnings({ outbox }) {
	if (outbox === 0) return [];
	return [{
		code: "outbox",
		text: `${outbox} accepted prompts wait until the upstream has room.`,
		action: "They are sent by themselves; look at the health of the upstream when the number grows."
	}];
}
function upstreamWarnings(discovered) {
	if (discovered === void 0) return [];
	const warnings = [];
	if (discovered.listing === "no") warnings.push({
		code: "no_job_list",
		text: "The upstream has no list of jobs: a prompt whose submission was not answered cannot be found again.",
		action: "Use a newer version of the service, if there is one."
	});
	if (discovered.changesIds) warnings.push({
		code: "no_state_dir",
		text: "The upstream was restarted and gave its outputs other ids: it forgets uploads and labels too.",
		action: "Start comfy-api-proxy with --state-dir."
	});
	if (discovered.ignoresCancel) warnings.push({
		code: "cancel_ignored",
		text: "The upstream answers a cancel with success and cancels nothing.",
		action: "Use ComfyUI 0.26 or newer."
	});
	return warnings;
}
function brownoutWarnings({ config, nowMs }) {
	return config.deprecationSettings.brownouts.filter(({ toMs }) => toMs === void 0 || toMs > nowMs).map(({ fromMs, toMs }) => {
		const isOn = fromMs === void 0 || fromMs <= nowMs;
		const from = fromMs === void 0 ? "" : ` from ${new Date(fromMs).toISOString()}`;
		const to = toMs === void 0 ? "" : ` until ${new Date(toMs).toISOString()}`;
		return {
			code: "brownout",
			text: isOn ? `A brownout of v1 is on${to}.` : `A brownout of v1 is planned${from}${to}.`,
			action: "Clients that it affects are shown under Leaving v1."
		};
	});
}
// src/console/server-routes.ts
/** The routes for the operator: health, figures, limits and warnings. */
function serverHandlers(services) {
	return { async "GET server"({ access, caller }) {
		requireOperator(access);
		const { figures, facts, jobs, config } = services;
		if (figures.samples().length === 0) await figures.measure();
		const health = await jobs.health();
		if (health.ok) await discoverJobList(services, caller);
		const limits = await limitsOf({
			config,
			figures,
			diskBytes: () => services.assets.totalBytes()
		});
		const workers = facts.upstream_kind === "embedded" ? await services.countWorkers() : null;
		return {
			...facts,
			server: services.server,
			host: hostname(),
			node: process.version,
			health: {
				is_good: health.ok,
				reason: health.ok ? null : `${health.error.code}: ${health.error.message}`
			},
			started_at_ms: STARTED_AT_MS,
			servers: await services.countServers(),
			others: services.otherServers(),
			workers: workers ?? null,
			sample_interval_ms: SAMPLE_INTERVAL_MS,
			samples: figures.samples(),
			limits,
			warnings: warningsOf({
				config,
				limits,
				nowMs: services.now(),
				upstream: facts.upstream,
				isHealthy: health.ok,
				outbox: figures.samples().at(-1)?.outbox ?? 0,
				workers: workers ?? null,
				discovered: services.discovered?.()
			})
		};
	} };
}
/**
* Finds out if the service has a job list. A list is needed only after an accident, and the
* operator should know before.
*/
async function discoverJobList({ discovered, jobs }, caller) {
	if (discovered?.().listing === "unknown") await jobs.list(caller, { limit: 1 });
}
// src/app/process-counts.ts
const ALONE = {
	countServers: async () => 1,
	countWorkers: async () => void 0
};
/** How long a count stays valid: the page asks several times a second. */
const VALID_MS = 5e3;
/** Counts processes by their connections to Redis. Without Redis, a server is alone. */
function createProcessCounts(connections, { now }) {
	if (connections === void 0) return ALONE;
	const links = connections;
	async function countServers() {
		const { countSubscribers } = await import("./redis-CtygY6In.js").then((n) => n.o);
		const { logChannel } = await import("./shared-log-lines-DQfQpYkF.js");
		return Math.max(1, await countSubscribers(links, logChannel(links.channels)));
	}
	const workers = lazily(async () => {
		const { createWorkerCount } = await import("./queue-condition-_o3NYfGn.js");
		return createWorkerCount(links);
	});
	const countWorkers = async () => (await workers.get())();
	return {
		countServers: cachedBriefly(() => countServers().catch(() => 1), now),
		countWorkers: cachedBriefly(() => countWorkers().catch(() => void 0), now)
	};
}
/**
* Returns a function that asks at most once in five seconds, and gives the last answer in between.
*/
function cachedBriefly(ask, now) {
	let known;
	return () => {
		if (known === void 0 || now() - known.atMs > VALID_MS) known = {
			atMs: now(),
			value: ask()
		};
		return known.value;
	};
}
// src/app/console.ts
/** The API of Holdover's own page. */
function openConsole(services, jobQueueReason) {
	const { config, auth, ledger, prompts, upstream } = services;
	const consoleServices = {
		authenticate: auth.authenticate,
		checkOperator: createOperatorCheck(config),
		addresses: auth.addresses,
		prompts: ledger.prompts,
		livePrompts: prompts.live,
		jobs: upstream.runner.jobs,
		jobQueueReason,
		now: services.now,
		whenCurrent: (user) => prompts.life.whenCurrent(user),
		facts: {
			version: packageVersion(),
			upstream: upstreamName(config.upstream),
			upstream_kind: config.upstream.kind,
			needs_token: config.localToken !== void 0
		}
	};
	const { trafficRecorder, secrets } = services;
	const processes = createProcessCounts(services.store.links, services);
	return consoleRoutes(consoleServices, {
		...jobHandlers(consoleServices),
		...trafficHandlers({
			...consoleServices,
			store: trafficRecorder.store,
			secrets,
			countServers: processes.countServers,
			baseOf: ({ ctx }) => auth.addresses.of(ctx.req)?.base ?? "http://localhost"
		}),
		...serverHandlers({
			...consoleServices,
			config,
			figures: services.figures,
			jobs: upstream.runner.jobs,
			assets: ledger.assets,
			discovered: upstream.runner.discovered,
			server: trafficRecorder.store.server,
			otherServers: services.sharedFigures.others,
			...processes
		}),
		...clientsHandlers({
			...consoleServices,
			calls: ledger.calls,
			usageCounter: services.usageCounter
		})
	});
}
// src/app/readiness.ts
/** A key that no prompt has. Reading it shows that the ledger can be read. */
const NO_PROMPT = "readyz";
/**
* The time limit for checking a bucket. It is longer than for other parts, because the client of a bucket retries for
* some seconds.
*/
const BUCKET_TIMEOUT_MS = 3e3;
/** The parts of this server that `/readyz` reports, beside the upstream. */
function neededParts({ config, ledger, store }) {
	const { links, files } = store;
	const isEmbedded = config.upstream.kind === "embedded";
	return {
		ledger: {
			kind: config.ledger.kind,
			check: async () => void await ledger.prompts.get(NO_PROMPT)
		},
		...isEmbedded && { queue: links ? {
			kind: "redis",
			check: sharedQueueCheck(links)
		} : {
			kind: "process",
			check: async () => void 0
		} },
		files: files.bucket ? {
			kind: "bucket",
			check: () => checkBucket(store, files.bucket),
			timeoutMs: BUCKET_TIMEOUT_MS
		} : {
			kind: "folder",
			check: () => checkFolder(store)
		}
	};
}
/**
* Returns why the jobs in the queue of the upstream wait: the reason of `/readyz`, else busy
* workers or a service that has not started them.
*/
function createJobQueueReason({ queue }, { upstream, now }) {
	const { jobs } = upstream.runner;
	const ofService = async () => (await jobs.health()).ok ? "not_started" : "upstream_unhealthy";
	const ofQueue = async () => (await queue?.check())?.reason ?? "workers_busy";
	const ask = () => queue ? ofQueue().catch(() => "queue_unreachable") : ofService().catch(() => "upstream_unhealthy");
	return cachedBriefly(ask, now);
}
/** Checks the shared queue. A queue without workers still takes jobs. */
function sharedQueueCheck(links) {
	const condition = import("./queue-condition-_o3NYfGn.js").then(({ createQueueCondition }) => createQueueCondition(links, monotonicClock));
	return async () => {
		const reason = await (await condition)();
		return reason && {
			status: "degraded",
			reason
		};
	};
}
/**
* Checks the bucket and the folder: files pass through the folder before they are in the bucket.
*/
async function checkBucket(store, bucket) {
	const [problem, folderId] = await Promise.all([checkFolder(store), bucket?.identity.readId("folder.id")]);
	if (folderId !== store.dir.bucketId) return {
		status: "failed",
		reason: "lost"
	};
	return problem;
}
/**
* Checks the folder. A full disk is reported as degraded: other servers may have the same disk, and
* all of them can still read.
*/
async function checkFolder({ checkDataDir, dir }) {
	try {
		checkDataDir();
	} catch {
		return {
			status: "failed",
			reason: "lost"
		};
	}
	const path = join(dir.spool, `readyz-${randomUUID()}`);
	try {
		await writeFile(path, "readyz");
	} catch (error) {
		if (isStorageFull(error)) return {
			status: "degraded",
			reason: "full"
		};
		return {
			status: "failed",
			reason: "not_writable"
		};
	} finally {
		await rm(path, { force: true });
	}
}
// src/nodes/model/described.ts
/** Describes a class by its name and title, its place, the types of its outputs, and its inputs. */
function described([name, displayName], place, outputs, required) {
	return {
		...typeof place === "string" ? {
			category: place,
			pythonModule: "nodes"
		} : place,
		name,
		displayName: displayName ?? name,
		required,
		outputs: outputs.map((type) => ({ type }))
	};
}
// src/nodes/model/latents.ts
/** The nodes between the loaders and the samplers of a graph. */
const LATENTS = [
	described(["CLIPTextEncode", "CLIP Text Encode (Prompt)"], "conditioning", ["CONDITIONING"], {
		text: ["STRING", {
			multiline: true,
			dynamicPrompts: true
		}],
		clip: ["CLIP", {}]
	}),
	described(["CLIPSetLastLayer", "CLIP Set Last Layer"], "conditioning", ["CLIP"], {
		clip: ["CLIP"],
		stop_at_clip_layer: ["INT", {
			default: -1,
			min: -24,
			max: -1,
			step: 1
		}]
	}),
	described(["EmptyLatentImage", "Empty Latent Image"], "latent", ["LATENT"], {
		width: ["INT", {
			default: 512,
			min: 16,
			max: 16384,
			step: 8
		}],
		height: ["INT", {
			default: 512,
			min: 16,
			max: 16384,
			step: 8
		}],
		batch_size: ["INT", {
			default: 1,
			min: 1,
			max: 4096
		}]
	}),
	described(["EmptySD3LatentImage"], {
		category: "latent/sd3",
		pythonModule: "comfy_extras.nodes_sd3",
		style: "v3"
	}, ["LATENT"], {
		width: ["INT", {
			default: 1024,
			min: 16,
			max: 16384,
			step: 16
		}],
		height: ["INT", {
			default: 1024,
			min: 16,
			max: 16384,
			step: 16
		}],
		batch_size: ["INT", {
			default: 1,
			min: 1,
			max: 4096
		}]
	}),
	described(["VAEDecode", "VAE Decode"], "latent", ["IMAGE"], {
		samples: ["LATENT", {}],
		vae: ["VAE", {}]
	}),
	described(["VAEEncode", "VAE Encode"], "latent", ["LATENT"], {
		pixels: ["IMAGE"],
		vae: ["VAE"]
	}),
	described(["VAEEncodeForInpaint", "VAE Encode (for Inpainting)"], "latent/inpaint", ["LATENT"], {
		pixels: ["IMAGE"],
		vae: ["VAE"],
		mask: ["MASK"],
		grow_mask_by: ["INT", {
			default: 6,
			min: 0,
			max: 64,
			step: 1
		}]
	}),
	described(["LatentUpscale", "Upscale Latent"], "latent", ["LATENT"], {
		samples: ["LATENT"],
		upscale_method: [[
			"nearest-exact",
			"bilinear",
			"area",
			"bicubic",
			"bislerp"
		]],
		width: ["INT", {
			default: 512,
			min: 0,
			max: 16384,
			step: 8
		}],
		height: ["INT", {
			default: 512,
			min: 0,
			max: 16384,
			step: 8
		}],
		crop: [["disabled", "center"]]
	}),
	described(["ImageUpscaleWithModel", "Upscale Image (using Model)"], {
		category: "image/upscaling",
		pythonModule: "comfy_extras.nodes_upscale_model",
		style: "v3"
	}, ["IMAGE"], {
		upscale_model: ["UPSCALE_MODEL", {}],
		image: ["IMAGE", {}]
	}),
	{
		...described(["ControlNetApplyAdvanced", "Apply ControlNet"], "conditioning/controlnet", ["CONDITIONING"], {
			positive: ["CONDITIONING"],
			negative: ["CONDITIONING"],
			control_net: ["CONTROL_NET"],
			image: ["IMAGE"],
			strength: ["FLOAT", {
				default: 1,
				min: 0,
				max: 10,
				step: .01
			}],
			start_percent: ["FLOAT", {
				default: 0,
				min: 0,
				max: 1,
				step: .001
			}],
			end_percent: ["FLOAT", {
				default: 1,
				min: 0,
				max: 1,
				step: .001
			}]
		}),
		optional: { vae: ["VAE"] },
		outputs: [{
			type: "CONDITIONING",
			name: "positive"
		}, {
			type: "CONDITIONING",
			name: "negative"
		}]
	},
	described(["FluxGuidance"], {
		category: "advanced/conditioning/flux",
		pythonModule: "comfy_extras.nodes_flux",
		style: "v3"
	}, ["CONDITIONING"], {
		conditioning: ["CONDITIONING", {}],
		guidance: ["FLOAT", {
			default: 3.5,
			min: 0,
			max: 100,
			step: .1
		}]
	})
];
// src/nodes/model/loaders.ts
/** The loaders, as a server without a model describes them. */
const LOADERS = [
	described(["CheckpointLoaderSimple", "Load Checkpoint"], "loaders", [
		"MODEL",
		"CLIP",
		"VAE"
	], { ckpt_name: [[], {}] }),
	described(["UNETLoader", "Load Diffusion Model"], "advanced/loaders", ["MODEL"], {
		unet_name: [[]],
		weight_dtype: [[
			"default",
			"fp8_e4m3fn",
			"fp8_e4m3fn_fast",
			"fp8_e5m2"
		]]
	}),
	described(["VAELoader", "Load VAE"], "loaders", ["VAE"], { vae_name: [["pixel_space"]] }),
	{
		...described(["CLIPLoader", "Load CLIP"], "advanced/loaders", ["CLIP"], {
			clip_name: [[]],
			type: [[
				"stable_diffusion",
				"stable_cascade",
				"sd3",
				"stable_audio",
				"mochi",
				"ltxv",
				"pixart",
				"cosmos",
				"lumina2",
				"wan",
				"hidream",
				"chroma",
				"ace",
				"omnigen2",
				"qwen_image",
				"hunyuan_image"
			]]
		}),
		optional: { device: [["default", "cpu"], { advanced: true }] }
	},
	{
		...described(["DualCLIPLoader"], "advanced/loaders", ["CLIP"], {
			clip_name1: [[]],
			clip_name2: [[]],
			type: [[
				"sdxl",
				"sd3",
				"flux",
				"hunyuan_video",
				"hidream",
				"hunyuan_image"
			]]
		}),
		optional: { device: [["default", "cpu"], { advanced: true }] }
	},
	described(["LoraLoader", "Load LoRA"], "loaders", ["MODEL", "CLIP"], {
		model: ["MODEL", {}],
		clip: ["CLIP", {}],
		lora_name: [[], {}],
		strength_model: ["FLOAT", {
			default: 1,
			min: -100,
			max: 100,
			step: .01
		}],
		strength_clip: ["FLOAT", {
			default: 1,
			min: -100,
			max: 100,
			step: .01
		}]
	}),
	described(["LoraLoaderModelOnly"], "loaders", ["MODEL"], {
		model: ["MODEL"],
		lora_name: [[]],
		strength_model: ["FLOAT", {
			default: 1,
			min: -100,
			max: 100,
			step: .01
		}]
	}),
	described(["ControlNetLoader", "Load ControlNet Model"], "loaders", ["CONTROL_NET"], { control_net_name: [[]] }),
	described(["CLIPVisionLoader", "Load CLIP Vision"], "loaders", ["CLIP_VISION"], { clip_name: [[]] }),
	described(["StyleModelLoader", "Load Style Model"], "loaders", ["STYLE_MODEL"], { style_model_name: [[]] }),
	described(["UpscaleModelLoader", "Load Upscale Model"], {
		category: "loaders",
		pythonModule: "comfy_extras.nodes_upscale_model",
		style: "v3"
	}, ["UPSCALE_MODEL"], { model_name: ["COMBO", {
		multiselect: false,
		options: []
	}] })
];
// src/nodes/model/sampling.ts
const SAMPLERS = [
	"euler",
	"euler_cfg_pp",
	"euler_ancestral",
	"euler_ancestral_cfg_pp",
	"heun",
	"heunpp2",
	"dpm_2",
	"dpm_2_ancestral",
	"lms",
	"dpm_fast",
	"dpm_adaptive",
	"dpmpp_2s_ancestral",
	"dpmpp_2s_ancestral_cfg_pp",
	"dpmpp_sde",
	"dpmpp_sde_gpu",
	"dpmpp_2m",
	"dpmpp_2m_cfg_pp",
	"dpmpp_2m_sde",
	"dpmpp_2m_sde_gpu",
	"dpmpp_2m_sde_heun",
	"dpmpp_2m_sde_heun_gpu",
	"dpmpp_3m_sde",
	"dpmpp_3m_sde_gpu",
	"ddpm",
	"lcm",
	"ipndm",
	"ipndm_v",
	"deis",
	"res_multistep",
	"res_multistep_cfg_pp",
	"res_multistep_ancestral",
	"res_multistep_ancestral_cfg_pp",
	"gradient_estimation",
	"gradient_estimation_cfg_pp",
	"er_sde",
	"seeds_2",
	"seeds_3",
	"sa_solver",
	"sa_solver_pece",
	"ddim",
	"uni_pc",
	"uni_pc_bh2"
];
const SCHEDULERS = [
	"simple",
	"sgm_uniform",
	"karras",
	"exponential",
	"ddim_uniform",
	"beta",
	"normal",
	"linear_quadratic",
	"kl_optimal"
];
const MAX_SEED = new LosslessNumber("18446744073709551615");
/** Samplers and schedulers. */
const SAMPLING = [
	described(["KSampler"], "sampling", ["LATENT"], {
		model: ["MODEL", {}],
		seed: ["INT", {
			default: 0,
			min: 0,
			max: MAX_SEED,
			control_after_generate: true
		}],
		steps: ["INT", {
			default: 20,
			min: 1,
			max: 1e4
		}],
		cfg: ["FLOAT", {
			default: 8,
			min: 0,
			max: 100,
			step: .1,
			round: .01
		}],
		sampler_name: [SAMPLERS, {}],
		scheduler: [SCHEDULERS, {}],
		positive: ["CONDITIONING", {}],
		negative: ["CONDITIONING", {}],
		latent_image: ["LATENT", {}],
		denoise: ["FLOAT", {
			default: 1,
			min: 0,
			max: 1,
			step: .01
		}]
	}),
	described(["KSamplerAdvanced", "KSampler (Advanced)"], "sampling", ["LATENT"], {
		model: ["MODEL"],
		add_noise: [["enable", "disable"]],
		noise_seed: ["INT", {
			default: 0,
			min: 0,
			max: MAX_SEED,
			control_after_generate: true
		}],
		steps: ["INT", {
			default: 20,
			min: 1,
			max: 1e4
		}],
		cfg: ["FLOAT", {
			default: 8,
			min: 0,
			max: 100,
			step: .1,
			round: .01
		}],
		sampler_name: [SAMPLERS],
		scheduler: [SCHEDULERS],
		positive: ["CONDITIONING"],
		negative: ["CONDITIONING"],
		latent_image: ["LATENT"],
		start_at_step: ["INT", {
			default: 0,
			min: 0,
			max: 1e4
		}],
		end_at_step: ["INT", {
			default: 1e4,
			min: 0,
			max: 1e4
		}],
		return_with_leftover_noise: [["disable", "enable"]]
	}),
	described(["KSamplerSelect"], {
		category: "sampling/custom_sampling/samplers",
		pythonModule: "comfy_extras.nodes_custom_sampler"
	}, ["SAMPLER"], { sampler_name: [SAMPLERS] }),
	described(["BasicScheduler"], {
		category: "sampling/custom_sampling/schedulers",
		pythonModule: "comfy_extras.nodes_custom_sampler"
	}, ["SIGMAS"], {
		model: ["MODEL"],
		scheduler: [SCHEDULERS],
		steps: ["INT", {
			default: 20,
			min: 1,
			max: 1e4
		}],
		denoise: ["FLOAT", {
			default: 1,
			min: 0,
			max: 1,
			step: .01
		}]
	})
];
// src/nodes/model-nodes.ts
/**
* The classes of text-to-image graphs, as a v1 server without a model describes them. Programs read
* the names of samplers and models from these. A graph with one of them is refused, as such a
* server refuses it.
*/
const MODEL_NODES = [
	...LOADERS,
	...SAMPLING,
	...LATENTS
];
// src/observability/call-log.ts
/** Lists the v2 calls each v1 call became, for the log and for migration. */
function createCallLog() {
	const callsByCaller = /* @__PURE__ */ new WeakMap();
	return {
		/**
		* From now until `end`, v2 calls in the name of this very object are added to the list: each
		* request has a caller of its own. (A store that follows what is awaited would do without, and
		* on Node 20 makes every promise of the process dearer.)
		*/
		begin: (caller, calls) => void callsByCaller.set(caller, calls),
		end: (caller) => void callsByCaller.delete(caller),
		/** The same port; every call is listed, and `onCall` gets its outcome. */
		wrap: (jobs, onCall) => interceptCalls(jobs, (method, call, args) => {
			const operation = V2_CALLS[method];
			if (isCaller(args[0])) callsByCaller.get(args[0])?.push(operation);
			return onCall ? withOutcome(call, operation, onCall)(...args) : call(...args);
		})
	};
}
/** All operations but `health` have the caller as their first argument. */
function isCaller(value) {
	return typeof value === "object" && value !== null;
}
function withOutcome(call, operation, onCall) {
	return async (...args) => {
		const startedAt = performance.now();
		const report = (outcome) => onCall({
			operation,
			outcome,
			ms: performance.now() - startedAt
		});
		try {
			const answer = await call(...args);
			report(outcomeOf(answer));
			return answer;
		} catch (error) {
			report("broken");
			throw error;
		}
	};
}
function outcomeOf(answer) {
	if (answer.ok) return "ok";
	return answer.error.status >= 500 ? "5xx" : "4xx";
}
// src/upstreams/jobs/fair-order.ts
/**
* Returns the waiting jobs in the order in which they will run. Users take turns: the user with the
* fewest running jobs is first, among equals the one who has waited longest. A single user may use
* all workers. No running job is stopped for another user, but that user gets the next free worker.
*/
function fairOrder(users) {
	const order = [];
	let waiting = users.toSorted((one, other) => one.since - other.since);
	for (let round = 0; waiting.length > 0; round++) {
		for (const { jobs, running } of waiting) {
			const job = jobs[round - running];
			if (job !== void 0) order.push(job);
		}
		waiting = waiting.filter(({ jobs, running }) => running + jobs.length > round + 1);
	}
	return order;
}
/**
* Creates an empty queue in which users take turns. `onMove` is called after every change with all
* jobs that still wait.
*/
function createFairQueue(onMove) {
	const users = /* @__PURE__ */ new Map();
	let changes = 0;
	let highest = -1;
	/** The order of the waiting jobs, until the next change. */
	let order;
	const waiting = () => order ??= fairOrder([...users.values()]);
	const move = () => {
		order = void 0;
		onMove(waiting());
	};
	const userOf = (name) => {
		const user = users.get(name) ?? {
			jobs: [],
			running: 0,
			since: 0
		};
		users.set(name, user);
		return user;
	};
	const removeIdle = (name) => {
		const user = users.get(name);
		if (user?.jobs.length === 0 && user.running === 0) users.delete(name);
	};
	return {
		add(job) {
			const user = userOf(job.user);
			const { jobs } = user;
			if (jobs.length === 0) user.since = ++changes;
			const before = jobs.findLastIndex((other) => other.order <= job.order);
			jobs.splice(before + 1, 0, job);
			highest = Math.max(highest, job.order);
			move();
		},
		/** Counts a job that runs without waiting. Call `ended` when it no longer runs. */
		addRunning(job) {
			userOf(job.user).running++;
			highest = Math.max(highest, job.order);
			order = void 0;
		},
		/** Takes the next job, if one waits. Call `ended` or `returned` when it no longer runs. */
		take() {
			const [job] = waiting();
			if (!job) return void 0;
			const user = userOf(job.user);
			user.jobs.shift();
			user.running++;
			move();
			return job;
		},
		ended(job) {
			const user = userOf(job.user);
			user.running--;
			user.since = ++changes;
			order = void 0;
			removeIdle(job.user);
		},
		/** Makes a taken job wait again. Its user is next. */
		returned(job) {
			const user = userOf(job.user);
			user.running--;
			user.since = 0;
			const before = user.jobs.findIndex((other) => other.order >= job.order);
			user.jobs.splice(before < 0 ? user.jobs.length : before, 0, job);
			move();
		},
		remove(id) {
			for (const [name, { jobs }] of users) {
				const index = jobs.findIndex((job) => job.id === id);
				if (index < 0) continue;
				jobs.splice(index, 1);
				removeIdle(name);
				move();
				return true;
			}
			return false;
		},
		/** Returns the waiting jobs in the order in which they will run. */
		waiting,
		count: () => waiting().length,
		countOf: (user) => users.get(user)?.jobs.length ?? 0,
		/** Returns an order after all jobs that were queued so far. */
		nextOrder: () => Math.floor(highest) + 1
	};
}
// src/upstreams/embedded/memory-job-queue.ts
/** The queue of a single process. Its calls take effect before they return. */
var MemoryJobQueue = class {
	#queue;
	/** Ids of the jobs that wait or run. */
	#queued = /* @__PURE__ */ new Set();
	#stops = /* @__PURE__ */ new Map();
	#schedules = [];
	/** The jobs that begin as soon as they are added, on the worker that has a slot for them. */
	#reserved = /* @__PURE__ */ new Map();
	#reserveSlot = () => false;
	/** `onOrder` is called after every change with all waiting jobs, in order. */
	constructor(onOrder = () => {}) {
		this.#queue = createFairQueue(onOrder);
	}
	async add(jobs) {
		for (const job of jobs) {
			if (this.#queued.has(job.id)) continue;
			this.#queued.add(job.id);
			const begin = this.#reserved.get(job.id);
			if (begin) begin(job);
			else this.#queue.add(job);
		}
		this.#schedule();
	}
	slots = {
		reserve: (id) => this.#queue.count() === 0 && this.#reserveSlot(id),
		release: (id) => {
			this.#reserved.delete(id);
			this.#schedule();
		}
	};
	async remove(id) {
		if (!this.#queue.remove(id)) return false;
		this.#queued.delete(id);
		return true;
	}
	async cancel(id) {
		this.#stops.get(id)?.request("canceled");
		return this.#queued.has(id);
	}
	async positions(ids) {
		const places = new Map(this.#queue.waiting().map((job, place) => [job.id, place]));
		return ids.map((id) => places.get(id) ?? null);
	}
	async waiting() {
		return this.#queue.count();
	}
	async waitingOf(user) {
		return this.#queue.countOf(user);
	}
	async nextOrder() {
		return this.#queue.nextOrder();
	}
	worker(options) {
		const running = /* @__PURE__ */ new Map();
		let isOpen = false;
		const hasSlot = () => isOpen && running.size + this.#reserved.size < options.concurrency;
		const start = (job) => {
			const run = this.#run(job, options).finally(() => {
				running.delete(job.id);
				this.#schedule();
			});
			running.set(job.id, run);
		};
		const startReserved = (job) => {
			this.#reserved.delete(job.id);
			this.#queue.addRunning(job);
			start(job);
			if (!isOpen) this.#stops.get(job.id)?.request("shutdown");
		};
		const startWaitingJobs = () => {
			while (hasSlot()) {
				const job = this.#queue.take();
				if (!job) return;
				start(job);
			}
		};
		this.#reserveSlot = (id) => {
			if (!hasSlot()) return false;
			this.#reserved.set(id, startReserved);
			return true;
		};
		this.#schedules.push(startWaitingJobs);
		return {
			start: () => {
				isOpen = true;
				this.#schedule();
			},
			close: async () => {
				isOpen = false;
				for (const id of running.keys()) this.#stops.get(id)?.request("shutdown");
				await Promise.all(running.values());
			}
		};
	}
	async close() {}
	/** Starts jobs in a later turn, so that the client that submitted a job can subscribe before. */
	#schedule() {
		if (this.#queue.count() === 0) return;
		setImmediate(() => {
			for (const startWaitingJobs of this.#schedules) startWaitingJobs();
		});
	}
	async #run(job, { run, giveUp }) {
		const stop = new StopRequest();
		this.#stops.set(job.id, stop);
		const outcome = await run(job.id, stop).catch(async (error) => {
			await giveUp(job.id, error);
			return "over";
		});
		this.#stops.delete(job.id);
		if (outcome === "interrupted") return this.#queue.returned(job);
		this.#queued.delete(job.id);
		this.#queue.ended(job);
	}
};
// src/upstreams/embedded/memory-runs.ts
/** The wait before a write is repeated. Until it succeeds the job is not over. */
const RETRY_WRITE_MS = 1e3;
/**
* The unfinished jobs of a single process: in its memory, and in the ledger for the next process.
*/
function createMemoryRuns(options) {
	const { ledger, withLock, live, closing, clock, log } = options;
	/** The jobs that the next process runs again, since their end could not be stored here. */
	const unstored = /* @__PURE__ */ new Set();
	/** Writes the changes of one job one after the other, and none after its end. */
	const save = (id, change, durability) => withLock(jobLock(id), async () => {
		if (live.has(id)) await ledger.jobs.update(id, change(), durability);
	});
	async function writeUntilStored(id, write) {
		for (;;) try {
			return await write();
		} catch (error) {
			log.error({
				event: "job.end_store_failed",
				err: error
			}, "the end of a job could not be stored: trying again");
			if (closing.aborted) {
				unstored.add(id);
				throw error;
			}
			await clock.sleep(RETRY_WRITE_MS, closing).catch(() => {});
		}
	}
	return {
		isShared: false,
		find: (id) => live.get(id),
		statesOf: async (rows) => rows.map((row) => live.get(row.id) ?? jobStateOf(row)),
		ownEvents({ user }, id, signal) {
			const job = live.get(id);
			return job?.user === user ? job.feed.subscribe(signal) : void 0;
		},
		add(job) {
			live.set(job.id, job);
			job.feed.hold();
			return () => void setImmediate(() => job.feed.release());
		},
		recover: (end) => recoverJobs(options, end),
		async claim(id, stop) {
			const job = live.get(id);
			if (!job) return { kind: "over" };
			Object.assign(job, {
				status: "running",
				position: null,
				startedAtMs: clock.now()
			});
			const drain = async () => await job.feed.whenReleased();
			return {
				kind: "run",
				run: new JobRun({
					job,
					stop,
					drain,
					log
				})
			};
		},
		seize: async (id) => unstored.has(id) ? void 0 : live.get(id),
		recordCancel: (id) => save(id, () => ({ status: "canceling" })),
		async begin(job) {
			job.attempts++;
			job.hasBegun = true;
			await save(job.id, () => toPatch(job), "soon");
		},
		isCurrent: async () => true,
		end: (job, ended) => withLock(jobLock(job.id), async () => {
			const patch = await toEndPatch(ended);
			await writeUntilStored(job.id, () => ledger.jobs.update(job.id, patch, "soon", job.filesOnDisk));
			reached("after-job-end");
			Object.assign(job, ended, { position: null });
			live.delete(job.id);
			const data = {
				status: job.status,
				queue_position: null,
				job: showJob(job, clock.now())
			};
			job.feed.emit({
				event: "status",
				data
			});
			job.feed.end();
			return "ok";
		}),
		async requeue({ job }) {
			Object.assign(job, {
				status: "queued",
				startedAtMs: null,
				progress: null,
				cachedNodes: null
			});
			Object.assign(job, {
				outputs: [],
				ui: {}
			});
			if (job.hasBegun) job.attempts--;
			job.hasBegun = false;
			await save(job.id, () => toPatch(job));
			job.feed.end();
		},
		discarded: async () => {}
	};
}
/**
* Restores the jobs. Queued jobs keep their order. A running job starts again without its earlier
* outputs. A job with a recorded cancel is cancelled.
*/
async function recoverJobs({ ledger, assets, live }, end) {
	for (const row of await ledger.jobs.unfinished()) {
		const job = jobFromRow(row);
		const wasRunning = row.status === "running";
		if (row.status === "canceling") await end({
			...job,
			...jobStateOf(row)
		}, { status: "canceled" });
		else if (wasRunning && job.attempts >= 3) await end({
			...job,
			...jobStateOf(row)
		}, workerLost(job.attempts));
		else {
			for (const asset of await ledger.assets.ofJob(row.id)) await assets.removeAsset(asset);
			if (wasRunning) await ledger.jobs.update(row.id, toPatch(job));
			live.set(job.id, job);
		}
	}
	return [...live.values()];
}
// src/upstreams/embedded/embedded-engine.ts
/**
* Opens the engine of a single process over its ledger and files, and queues the unfinished jobs of
* an earlier process.
*/
async function createEmbeddedEngine(deps) {
	const { ledger, limits, log, clock = systemClock } = deps;
	const { retentionMs, assetBudgetBytes, sweepIntervalMs: everyMs } = limits;
	const live = /* @__PURE__ */ new Map();
	const closing = new AbortController();
	const isLive = (jobId) => live.has(jobId);
	const isInUse = (assetId) => {
		for (const job of live.values()) if (usesAsset(job, assetId)) return true;
		return false;
	};
	const names = createOutputNames();
	const jobFiles = createJobFiles({
		...deps,
		clock,
		names,
		isInUse,
		retentionMs
	});
	const retention = {
		...jobFiles,
		ledger,
		clock,
		isLive,
		isInUse,
		assetBudgetBytes
	};
	const failure = SWEEP_FAILURE;
	const sweep = () => sweepWithUnrecorded(retention);
	const periodicSweep = new PeriodicTask(sweep, {
		log,
		clock,
		everyMs,
		failure
	});
	const engine = await createEngine({
		...deps,
		clock,
		jobFiles,
		spoolDir: deps.spoolDir ?? await makeEmptySpool(deps.dataDir),
		queue: new MemoryJobQueue(emitPositions),
		runs: createMemoryRuns({
			...jobFiles,
			ledger,
			live,
			closing: closing.signal,
			clock,
			log
		}),
		cleanUp: {
			start: () => periodicSweep.start(() => checkImports(retention, log)),
			close: () => periodicSweep.close()
		}
	});
	return {
		...engine,
		async close() {
			closing.abort();
			await engine.close();
			for (const job of live.values()) job.feed.end();
		}
	};
}
function emitPositions(waiting) {
	waiting.forEach((job, position) => {
		if (job.position === position) return;
		job.position = position;
		job.feed.emit({
			event: "status",
			data: {
				status: "queued",
				queue_position: position
			}
		});
	});
}
async function checkImports(retention, log) {
	const bytes = await importedBytes(retention);
	if (bytes >= retention.assetBudgetBytes) log.warn({
		event: "disk_budget.used_by_imports",
		bytes
	}, IMPORTS_FILL_BUDGET);
}
const IMPORTS_FILL_BUDGET = "imported files alone use up --disk-budget: new results are removed as soon as their jobs are over";
/** Empties the spool folder: the files in it belonged to a process that has ended. */
async function makeEmptySpool(dataDir) {
	const spoolDir = path.join(dataDir, "spool");
	await rm(spoolDir, {
		recursive: true,
		force: true
	});
	await mkdir(spoolDir, { recursive: true });
	return spoolDir;
}
function usesAsset(job, assetId) {
	return job.reads.has(assetId) || job.outputs.some((output) => output.id === assetId);
}
// src/shared-folders/folder.ts
const READ_FLAGS = constants$1.O_RDONLY | (constants$1.O_NOFOLLOW ?? 0);
const WRITE_FLAGS = constants$1.O_WRONLY | constants$1.O_CREAT | constants$1.O_TRUNC | (constants$1.O_NOFOLLOW ?? 0);
/** Opens a folder. Creates it if it does not exist. */
async function openFolder(path) {
	await mkdir(path, { recursive: true });
	const root = await realpath(path);
	const pathOf = ({ subfolder, filename }) => join(root, subfolder, filename);
	return {
		/** Identifies the folder by its real path. */
		id: createHash("sha256").update(root).digest("hex").slice(0, 16),
		root,
		/** Returns the name relative to the folder. v1 also accepts names with an absolute path. */
		nameOf: (name) => nameBelow([root, resolve(path)], name),
		/** Returns true when the folder can be read. Its disk may be unmounted for a while. */
		isAvailable: async () => (await lstatOrUndefined(root))?.isDirectory() === true,
		/** Returns the stats of a file; `undefined` when it does not exist. Never follows links. */
		async look(name) {
			if (!isSafe(name)) return void 0;
			const place = await statPath(root, join(name.subfolder, name.filename));
			return place.kind === "file" ? place.stats : void 0;
		},
		/** Returns true when a file, link or folder has this name. */
		exists: async (name) => await lstatOrUndefined(pathOf(name)) !== void 0,
		open: (name) => open(pathOf(name), READ_FLAGS),
		list: () => listFilesBelow(root),
		/** Returns the names directly in a subfolder. */
		async listNames(subfolder) {
			if (safeFolder(subfolder) === void 0) return [];
			const place = await statPath(root, subfolder);
			return place.kind === "folder" ? await readdir(place.path) : [];
		},
		/** Writes a file completely or not at all. Returns `taken` when the name exists and must be kept. */
		place: (name, content) => place({
			root,
			target: pathOf(name),
			name
		}, content)
	};
}
/** Returns the name relative to a root, or unchanged when it is outside of all roots; then no file has it. */
function nameBelow(roots, name) {
	if (!isAbsolute(name.subfolder)) return name;
	const subfolder = roots.map((root) => relative(root, name.subfolder)).find((path) => !isAbsolute(path) && path.split(/[\\/]/)[0] !== "..");
	return subfolder === void 0 ? name : {
		...name,
		subfolder
	};
}
/** Returns true when a file has the modification time and the size of a row. A row of size 0 matches any size. */
function matchesRow(row, stats) {
	return (row.sizeBytes === stats.size || row.sizeBytes === 0) && row.modifiedAtMs === Math.round(stats.mtimeMs);
}
function isSafe({ subfolder, filename }) {
	return safeName(filename) !== void 0 && safeFolder(subfolder) !== void 0;
}
async function place({ root, target, name }, content) {
	try {
		await requireSubfolder(root, name);
		const partialPath = join(root, name.subfolder, `.holdover-${digestOf(name, content.tag)}.part`);
		try {
			await write(partialPath, content);
			if (content.existing === "replace") await rename(partialPath, target);
			else if (await linkOrRenameNew(partialPath, target) === "taken") return "taken";
			return "placed";
		} finally {
			await rm(partialPath, { force: true }).catch(ignore);
		}
	} finally {
		content.source.destroy();
	}
}
/**
* Creates the subfolder if it does not exist. Throws when a part of its path is a link, which may lead out of the
* folder.
*/
async function requireSubfolder(root, { subfolder, filename }) {
	const { kind } = isSafe({
		subfolder,
		filename
	}) ? await statPath(root, subfolder) : BLOCKED;
	if (kind === "absent") await mkdir(join(root, subfolder), { recursive: true });
	else if (kind !== "folder") throw new Error(`${subfolder} is not a plain folder`);
}
const BLOCKED = { kind: "blocked" };
async function write(path, { source, sizeBytes, modifiedAtMs }) {
	const handle = await open(path, WRITE_FLAGS, 438);
	try {
		await writeFile(handle, source);
		const { size } = await handle.stat();
		if (sizeBytes !== void 0 && size !== sizeBytes) throw new Error("the file is incomplete");
		const modified = modifiedAtMs / 1e3;
		await handle.utimes(modified, modified);
		await handle.sync();
	} finally {
		await handle.close();
	}
}
function digestOf({ subfolder, filename }, tag) {
	return createHash("sha256").update(`${tag}/${subfolder}/${filename}`).digest("hex").slice(0, 16);
}
function ignore() {}
/** The listing ends after this many files, because a very large folder would block all callers. */
const MAX_ENTRIES$1 = 1e5;
/**
* Returns the plain files with safe names in this folder and below. Leaves out links, and files that cannot be read.
*/
async function listFilesBelow(root) {
	const found = [];
	const folders = [""];
	for (const subfolder of folders) {
		const safeEntries = (await readdir(join(root, subfolder), { withFileTypes: true }).catch(() => [])).filter(({ name }) => safeName(name) !== void 0);
		const subfolders = safeEntries.filter((entry) => entry.isDirectory()).map(({ name }) => join(subfolder, name));
		for (const path of subfolders) if (safeFolder(path) !== void 0) folders.push(path);
		const files = safeEntries.filter((entry) => entry.isFile()).map(({ name }) => name);
		const listed = await Promise.all(files.map((name) => fileAt(root, subfolder, name)));
		for (const file of listed) if (file) found.push(file);
		if (found.length > MAX_ENTRIES$1) break;
	}
	return found;
}
/** Returns a file of a listing; `undefined` when it was removed meanwhile. */
async function fileAt(root, subfolder, filename) {
	const stats = await lstat(join(root, subfolder, filename)).catch(() => void 0);
	return stats?.isFile() ? {
		subfolder,
		filename,
		stats
	} : void 0;
}
// src/shared-folders/pending-file.ts
/** The key of a name among the pending files. */
function pathKeyOf({ subfolder, filename }) {
	return subfolder === "" ? filename : `${subfolder}/${filename}`;
}
/** Writes a pending file, or skips it by its rule. Throws when it must be tried again. */
async function writePendingFile(services, { row, rule }, signal) {
	const { folder } = services;
	for (const filename of freeNames(row.filename)) {
		const name = {
			subfolder: row.subfolder,
			filename
		};
		const existing = await folder.look(name);
		if (existing && matchesRow(row, existing)) return;
		if (existing && rule === "newer" && Math.round(existing.mtimeMs) > row.modifiedAtMs) return;
		if (!(rule !== "newer" && await folder.exists(name)) && await copyContent(services, {
			row,
			rule
		}, {
			name,
			signal
		}) !== "taken") return;
		if (rule === "theirs") return;
		const fields = {
			event: "shared_folder.name_taken",
			file: pathKeyOf(name)
		};
		services.log.warn(fields, "another program took the name of an output");
	}
}
async function copyContent({ folder, jobs, log, user }, { row, rule }, { name, signal }) {
	const content = await orAborted(signal, openContent(jobs, {
		caller: { user },
		assetId: row.assetId
	}));
	if (!content.ok) {
		if (!isGone(content.error)) throw new Error(content.error.message);
		const fields = {
			event: "shared_folder.file_gone",
			file: pathKeyOf(name)
		};
		log.warn(fields, "a file was gone before it could be written to its folder");
		return "gone";
	}
	if (content.value.kind === "redirect") throw new Error("it cannot be read from here");
	const { stream: source, totalBytes } = content.value;
	return await folder.place(name, {
		source: addAbortSignal(signal, source),
		tag: row.assetId,
		sizeBytes: Number.isFinite(totalBytes) ? totalBytes : void 0,
		modifiedAtMs: row.modifiedAtMs,
		existing: rule === "newer" ? "replace" : "keep"
	});
}
/** Waits for an answer. Rejects when the server stops, because the answer may never arrive. */
async function orAborted(signal, answer) {
	let stop = () => {};
	const stopped = new Promise((_, reject) => {
		stop = () => reject(/* @__PURE__ */ new Error("the server stops"));
		signal.addEventListener("abort", stop, { once: true });
	});
	try {
		return await Promise.race([answer, stopped]);
	} finally {
		signal.removeEventListener("abort", stop);
	}
}
// src/shared-folders/writer.ts
/** The maximum time that a client waits until its file is in the folder. v1 writes the file before it answers. */
const MAX_WAIT_MS$4 = 3e4;
const RETRY_MS$2 = {
	first: 5e3,
	last: 3e5
};
/**
* Opens a writer. Its pending files are rows of a user that cannot exist, so that the ledger with the files also has
* them.
*/
async function openFolderWriter(deps) {
	const { folder, files, log } = deps;
	const folderOwner = folderUser(folder);
	const stopController = new AbortController();
	const pending = await loadPending(files, folderOwner);
	const inKeyOrder = createKeyedMutex();
	const writes = /* @__PURE__ */ new Set();
	let retryMs = RETRY_MS$2.first;
	let timer;
	/** Makes one write at a time for each name. A second one writes the file that is pending when it begins. */
	function writeInOrder(key) {
		const write = inKeyOrder(key, () => tryWrite(key));
		writes.add(write);
		return write.finally(() => writes.delete(write));
	}
	async function tryWrite(key) {
		const pendingFile = pending.get(key);
		if (pendingFile === void 0 || stopController.signal.aborted) return;
		try {
			await writePendingFile(deps, pendingFile, stopController.signal);
			await removePending(pendingFile);
		} catch (error) {
			if (stopController.signal.aborted) return;
			if (pending.get(key) === pendingFile && pending.delete(key)) pending.set(key, pendingFile);
			const { code, message } = error;
			const file = {
				folder: pendingFile.row.type,
				file: key
			};
			log.warn({
				event: "shared_folder.write_failed",
				...file,
				reason: code ?? message,
				pending: pending.size
			}, "a file could not be written to its folder, trying again later");
			retryLater();
		}
	}
	function retryLater() {
		timer ??= setTimeout(() => {
			timer = void 0;
			retryMs = Math.min(retryMs * 2, RETRY_MS$2.last);
			writeAll();
		}, retryMs).unref();
	}
	async function writeAll() {
		for (const key of pending.keys()) {
			await writeInOrder(key);
			if (timer !== void 0) return;
		}
		retryMs = RETRY_MS$2.first;
	}
	const pendingRow = ({ row, rule }) => ({
		...row,
		user: folderOwner,
		contentType: rule
	});
	function savePending(pendingFile) {
		pending.set(pathKeyOf(pendingFile.row), pendingFile);
		return files.put(pendingRow(pendingFile));
	}
	/** Returns false when another process has a pending file of this name: one would overwrite the other. */
	function claimPending(pendingFile) {
		pending.set(pathKeyOf(pendingFile.row), pendingFile);
		return files.claim(pendingRow(pendingFile));
	}
	/** Removes a file from the pending ones, unless a newer file of this name is pending here or at another process. */
	async function removePending(pendingFile) {
		const { row } = pendingFile;
		const savedRow = await files.get(folderOwner, row);
		if (pending.get(pathKeyOf(row)) !== pendingFile) return;
		pending.delete(pathKeyOf(row));
		if (savedRow?.assetId === row.assetId && savedRow.modifiedAtMs === row.modifiedAtMs) await files.remove(folderOwner, row);
	}
	async function recordBoth(pendingFile, record) {
		const saving = pendingFile.rule === "newer" ? savePending(pendingFile).then(() => true) : claimPending(pendingFile);
		const [isOurs, isRecorded] = await Promise.all([saving, record(saving)]);
		reached("folder-owed");
		if (isRecorded && !isOurs) await savePending(pendingFile);
		else if (!isRecorded && isOurs) await removePending(pendingFile);
		else if (!isRecorded && pending.get(pathKeyOf(pendingFile.row)) === pendingFile) pending.delete(pathKeyOf(pendingFile.row));
		return isRecorded;
	}
	return {
		/** Returns true while a process has to write the file. After `false` it is in the folder, or was removed. */
		isPending: async (row) => pending.has(pathKeyOf(row)) || await files.get(folderOwner, row) !== void 0,
		/** Returns the keys of the pending files of all processes. */
		pendingKeys: async () => /* @__PURE__ */ new Set([...pending.keys(), ...(await loadPending(files, folderOwner)).keys()]),
		/**
		* Records the name of a file with `record`, and writes the file. Returns false when `record` refused the name.
		* Except with the rule `newer`, `record` may wait until it is known that no other process has a pending file of
		* this name.
		*/
		async writeAfter(row, rule, record) {
			const key = pathKeyOf(row);
			if (pending.has(key) && rule !== "newer") return false;
			const pendingFile = {
				row,
				rule
			};
			const earlier = pending.get(key);
			try {
				if (!await recordBoth(pendingFile, record)) return false;
				await completesWithin(MAX_WAIT_MS$4, writeInOrder(key));
				return true;
			} catch (error) {
				if (pending.get(key) === pendingFile) {
					if (earlier) pending.set(key, earlier);
					else pending.delete(key);
				}
				throw error;
			}
		},
		/** Makes files pending whose names are already recorded. */
		addPending: async (rows, rule) => void await Promise.all(rows.map((row) => savePending({
			row,
			rule
		}))),
		/** Starts writing the pending files of earlier processes. */
		start: () => void writeAll(),
		/** Stops all writes. Files that are not written stay pending. */
		async close() {
			stopController.abort();
			clearTimeout(timer);
			await Promise.all(writes);
		}
	};
}
/** Returns the user of the rows for a folder's pending files and notes. */
function folderUser({ id }) {
	return `folder ${id}`;
}
async function loadPending(files, folderOwner) {
	const rows = [...await files.list(folderOwner, "input"), ...await files.list(folderOwner, "output")];
	return new Map(rows.map((row) => [pathKeyOf(row), {
		row,
		rule: row.contentType
	}]));
}
// src/shared-folders/inputs.ts
/**
* Creates the inputs of a folder. The folder decides which files exist; the ledger caches their assets. A file is read
* and stored when it is first requested by name, and again when it has changed.
*/
function createInputs(options) {
	const { folder, writer, files, user } = options;
	const reading = /* @__PURE__ */ new Map();
	/** Reads a file. Concurrent requests for one name get the same asset. */
	function readOnce(name) {
		const key = `${name.subfolder}/${name.filename}`;
		const task = reading.get(key) ?? readFile$1(options, name).finally(() => void reading.delete(key));
		reading.set(key, task);
		return task;
	}
	async function get(requested) {
		const name = folder.nameOf(requested);
		const row = await files.get(user, inputName(name));
		const stats = await folder.look(name);
		if (row === void 0) return stats && await readOnce(name);
		if (stats && matchesRow(row, stats)) return row;
		if (await writer.isPending(row) && isOlderOrAbsent(row, stats)) return row;
		const found = await folder.look(name);
		if (found) return matchesRow(row, found) ? row : await readOnce(name);
		return await folder.isAvailable() ? void 0 : row;
	}
	/** Records a name. Call it only when no other process has a pending file of this name. */
	async function recordName(row) {
		if (await folder.exists(row)) return false;
		if (await files.get(user, row) === void 0) return files.claim(row);
		return files.put(row).then(() => true);
	}
	async function list() {
		const rows = await files.list(user, "input");
		if (!await folder.isAvailable()) return rows;
		const pendingKeys = await writer.pendingKeys();
		const rowsByKey = new Map(rows.map((row) => [pathKeyOf(row), row]));
		const presentRows = (await folder.list()).map((entry) => {
			const key = pathKeyOf(entry);
			const row = rowsByKey.get(key);
			rowsByKey.delete(key);
			return row && (matchesRow(row, entry.stats) || pendingKeys.has(key)) && !isNewer(row, entry.stats) ? row : unreadRow(user, entry, entry.stats);
		});
		const pendingRows = [...rowsByKey.values()].filter((row) => pendingKeys.has(pathKeyOf(row)));
		return [...presentRows, ...pendingRows].toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs);
	}
	return {
		store: {
			get: (_, name) => get(name),
			list,
			newestNamed: async (_, { filename }) => (await list()).find((row) => row.filename === filename),
			async put(row) {
				const stats = await folder.look(row);
				if (stats && matchesRow(row, stats)) return files.put(row);
				await writer.writeAfter(row, "newer", () => files.put(row).then(() => true));
			},
			async claim(row) {
				if (await folder.exists(row)) return false;
				return writer.writeAfter(row, "theirs", async (isOurs) => await isOurs && recordName(row));
			}
		},
		async reupload(name) {
			if (await folder.look(name) === void 0) return void 0;
			return (await readOnce(name)).assetId;
		}
	};
}
/** Adds the uploads from before the folder was configured to it, once for each folder. */
async function shareExisting({ folder, writer, files, user }) {
	const owner = folderUser(folder);
	if (await files.get(owner, SHARED_NOTE)) return;
	const absentRows = [];
	for (const row of await files.list(user, "input")) if (await folder.look(row) === void 0) absentRows.push(row);
	const note = {
		...SHARED_NOTE,
		user: owner,
		assetId: "",
		hash: null,
		contentType: ""
	};
	await Promise.all([writer.addPending(absentRows, "theirs"), files.put({
		...note,
		sizeBytes: 0,
		modifiedAtMs: 0
	})]);
}
/** The record that earlier uploads were added to a folder. No file can have this name. */
const SHARED_NOTE = {
	type: "temp",
	subfolder: "",
	filename: "/shared"
};
function inputName({ subfolder, filename }) {
	return {
		type: "input",
		subfolder,
		filename
	};
}
/** Returns true when the file in the folder is not newer than the row, or absent. */
function isOlderOrAbsent(row, stats) {
	return stats === void 0 || !isNewer(row, stats);
}
function isNewer(row, stats) {
	return Math.round(stats.mtimeMs) > row.modifiedAtMs;
}
/** Returns the row of a file that was not read yet. It has no asset and no hash. */
function unreadRow(user, { subfolder, filename }, stats) {
	return {
		...inputName({
			subfolder,
			filename
		}),
		user,
		assetId: "",
		hash: null,
		sizeBytes: stats.size,
		contentType: contentTypeFor(filename),
		modifiedAtMs: Math.round(stats.mtimeMs)
	};
}
async function readFile$1({ folder, files, jobs, user, spoolDir }, name) {
	const { stats, file } = await spoolInput(folder, name, spoolDir);
	try {
		const asset = await storeBytes(jobs, {
			...inputName(name),
			caller: { user },
			file
		});
		const row = {
			...unreadRow(user, name, stats),
			assetId: asset.id,
			hash: file.hash
		};
		await files.put({
			...row,
			sizeBytes: file.sizeBytes
		});
		return row;
	} finally {
		await rm(file.path, { force: true });
	}
}
/**
* Copies a file into the spool folder. If the file changes meanwhile, its size or time changes, and the next request
* reads it again.
*/
async function spoolInput(folder, name, dir) {
	const handle = await folder.open(name);
	const stats = await handle.stat();
	const source = handle.createReadStream();
	try {
		const spoolResult = await spoolStream(source, {
			dir,
			maxBytes: Infinity
		});
		if (!spoolResult.ok) throw new V1Error(spoolResult.status, spoolResult.message);
		return {
			stats,
			file: spoolResult.value
		};
	} finally {
		source.destroy();
	}
}
// src/shared-folders/open.ts
/** Opens the folders of `--input-directory` and `--output-directory`, if they are set. */
async function openFolderDisks(user, directories) {
	const openIfNamed = (path) => path === void 0 ? void 0 : openFolder(path);
	const output = await openIfNamed(directories.outputDirectory);
	return {
		user,
		input: await openIfNamed(directories.inputDirectory),
		output,
		/**
		* Returns the highest number that v1's file counter would find in the folder; 0 for other users and temporary
		* files.
		*/
		highestNumber: async (asker, counterQuestion) => output && asker === user && !counterQuestion.temp ? highestNumberIn(output, counterQuestion) : 0
	};
}
/** Opens the shared folders over a ledger. Nothing is written to them before `start`. */
async function openSharedFolders(deps) {
	const { disks, ledger } = deps;
	const { files } = ledger;
	const outputs = disks.output && await openOutputs({
		...deps,
		folder: disks.output
	});
	const inputs = disks.input && await openInputs({
		...deps,
		folder: disks.input
	});
	const stores = {
		input: inputs?.store,
		output: outputs?.store
	};
	const writers = [outputs?.writer, inputs?.writer].filter((writer) => writer !== void 0);
	return {
		/** The ledger. For this user, its files are those of the folders. */
		ledger: {
			...ledger,
			files: withFolderStores(files, disks.user, stores)
		},
		reupload: async (user, name) => user === disks.user && name.type === "input" ? inputs?.reupload(name) : void 0,
		/** Starts writing pending files to the folders. */
		start: () => writers.forEach((writer) => writer.start()),
		close: async () => void await Promise.all(writers.map((writer) => writer.close()))
	};
}
async function openInputs({ disks, ledger, ...deps }) {
	const common = {
		...deps,
		user: disks.user,
		files: ledger.files
	};
	const writer = await openFolderWriter(common);
	await shareExisting({
		...common,
		writer
	});
	return {
		writer,
		...createInputs({
			...common,
			writer
		})
	};
}
async function openOutputs({ disks, ledger, ...deps }) {
	const writer = await openFolderWriter({
		...deps,
		user: disks.user,
		files: ledger.files
	});
	return {
		writer,
		store: outputStore(ledger.files, writer, deps.folder)
	};
}
/** Returns the store of outputs: it writes to the ledger and the folder, and reads from the ledger. */
function outputStore(files, writer, folder) {
	return {
		/** Overwrites an existing file, as the v1 server does. */
		put: async (row) => void await writer.writeAfter(row, "newer", () => files.put(row).then(() => true)),
		claim: async (row) => !await folder.exists(row) && writer.writeAfter(row, "keep-both", () => files.claim(row))
	};
}
function withFolderStores(files, user, stores) {
	const storeFor = (owner, type) => {
		const store = owner === user ? stores[type] : void 0;
		return store ? {
			...files,
			...store
		} : files;
	};
	return {
		...files,
		put: (row, durability) => storeFor(row.user, row.type).put(row, durability),
		claim: (row, durability) => storeFor(row.user, row.type).claim(row, durability),
		get: (owner, name) => storeFor(owner, name.type).get(owner, name),
		newestNamed: (owner, name) => storeFor(owner, name.type).newestNamed(owner, name),
		list: (owner, type) => storeFor(owner, type).list(owner, type)
	};
}
async function highestNumberIn(folder, { subfolder, prefix }) {
	const start = `${prefix}_`;
	return (await folder.listNames(subfolder)).filter((name) => name.startsWith(start)).map((name) => counterIn(name.slice(start.length))).reduce((most, number) => Math.max(most, number), 0);
}
// src/app/upstream.ts
/** Opens the configured upstream and the shared folders. No job runs before `start`. */
async function openUpstream(options) {
	const { config, dir, keylessUser } = options;
	const { upstream } = config;
	const sharedFolders = await openFolderDisks(keylessUser, config.folders);
	const highestUsedElsewhere = sharedFolders.highestNumber;
	const runner = upstream.kind === "embedded" ? await openEmbedded({
		...options,
		highestUsedElsewhere
	}) : await openRemote(options, upstream);
	const { jobs } = runner;
	const folders = await openSharedFolders({
		...options,
		disks: sharedFolders,
		jobs,
		spoolDir: dir.spool
	});
	return {
		...runner,
		folders,
		reupload: async (caller, file) => await folders.reupload(caller.user, file) ?? await runner.reupload?.(caller, file),
		start() {
			runner.start();
			folders.start();
		}
	};
}
async function openEmbedded({ config, log, library, ledger, links, dir, blobs, highestUsedElsewhere, tracing }) {
	const limits = {
		...DEFAULT_LIMITS$1,
		...engineLimits(config)
	};
	const places = {
		dataDir: dir.root,
		spoolDir: dir.spool
	};
	const spans = tracing?.runs;
	const clock = systemClock;
	const base = {
		ledger,
		blobs,
		...places,
		log,
		clock,
		limits,
		highestUsedElsewhere,
		spans
	};
	const engine = links ? await openDistributedEngine({
		...library,
		...base,
		links,
		takeover: config.workerLimits
	}) : await createEmbeddedEngine({
		...library,
		...base
	});
	return {
		jobs: tracing?.record(engine) ?? engine,
		acceptsCaller: async () => true,
		needsCredential: () => false,
		mayRerunJobs: links !== void 0,
		openStreams: () => 0,
		forgetResults: (user) => engine.forgetResults(user),
		start: () => engine.start(),
		close: () => engine.close()
	};
}
/** Loaded on demand: a process with its own queue does not need it. */
async function openDistributedEngine(options) {
	const { createDistributedEngine } = await import("./distributed-engine-DB-xugGO.js");
	return createDistributedEngine(options);
}
async function openRemote(options, upstream) {
	const { createRemoteJobs } = await import("./remote-jobs-C8OirWir.js");
	const { createUploadCopies } = await import("./upload-copies-C4rY8Ug-.js");
	const { restoreEmbeddedNames } = await import("./embedded-names-7wVk4bbP.js");
	const { log, dir, isWatched, keylessUser } = options;
	const { url, key, assetMode, labels, streams, redirectHosts } = upstream;
	const remote = createRemoteJobs({
		baseUrl: url,
		credential: key === void 0 ? { mode: "pass-through" } : {
			mode: "fixed",
			key
		},
		uploadPathSecret: dir.secret,
		log,
		assetMode,
		labels,
		redirectHosts,
		isWatched,
		traceHeaders: options.tracing?.headers,
		limits: {
			submitBudgetMs: 0,
			maxStreams: streams,
			...upstream.limits
		}
	});
	const uploadCopies = createUploadCopies({
		jobs: restoreEmbeddedNames({
			jobs: remote,
			prompts: options.ledger.prompts
		}),
		ledger: options.ledger,
		blobs: options.blobs,
		spoolDir: dir.spool,
		budgetBytes: options.config.diskBudgetBytes,
		log,
		now: Date.now
	});
	return {
		jobs: uploadCopies.jobs,
		reupload: (caller, file) => uploadCopies.reupload(caller, file),
		uploadFolderOf: remote.uploadFolderOf,
		noteSubmitted: (caller, answer) => remote.noteSubmitted(caller, answer),
		startUpload: (caller, upload) => remote.startUpload(caller, upload),
		acceptsCaller: (caller) => remote.acceptsCaller(caller),
		openStreams: () => remote.capabilities().openStreams,
		discovered: () => remote.capabilities(),
		needsCredential: (user) => key === void 0 && user !== keylessUser,
		start: () => {},
		async close() {
			await uploadCopies.copiesStored();
			await remote.close();
		}
	};
}
function engineLimits(config) {
	return {
		concurrency: config.concurrency,
		maxQueued: config.queueLimit,
		jobTimeMs: config.jobTimeoutMs,
		jobMemoryBytes: config.jobMemoryBytes,
		retentionMs: config.retentionMs,
		assetBudgetBytes: config.diskBudgetBytes
	};
}
// src/app/upstream-services.ts
/** Opens the upstream that runs the jobs. */
async function openUpstreamServices(parts) {
	const { config, nodeLibrary, sessionRecorder, log, store, trafficLog, tracing, isWatched } = parts;
	const runner = await openUpstream({
		config,
		log,
		library: nodeLibrary,
		ledger: store.ledger,
		links: store.links,
		dir: store.dir,
		blobs: store.files.blobs,
		keylessUser: LOCAL_USER,
		isWatched,
		tracing
	});
	const definitions = await openDefinitions({
		source: config.objectInfo,
		upstream: config.upstream,
		embedded: objectInfo([...nodeLibrary.nodes.values()]),
		described: objectInfo(MODEL_NODES),
		cacheDir: store.dir.objectInfo,
		log
	});
	const callLog = createCallLog();
	const recorded = sessionRecorder?.wrap(runner.jobs) ?? runner.jobs;
	const counted = callLog.wrap(recorded, parts.onCall);
	const logged = trafficLog?.wrap(counted) ?? counted;
	const jobs = parts.trafficRecorder.wrap(logged);
	const isRemote = config.upstream.kind === "remote";
	/** `jobs` is the port for v1 calls. Each call on it is counted, logged, recorded and traced. */
	return {
		runner,
		jobs: tracing?.wrap(jobs, isRemote) ?? jobs,
		callLog,
		definitions
	};
}
// src/auth/keyring.ts
const MAX_USERS = 1e4;
/** The keys of users as they sent them last: in memory only, lost with the process. */
function createKeyring() {
	const keys = new LRUCache(atMost(MAX_USERS));
	const listeners = [];
	return {
		remember: (caller) => {
			if (caller.credential !== void 0) keys.set(caller.user, caller.credential);
			for (const listener of listeners) listener(caller);
		},
		/** Returns the user with the key of the last call, if there was one. */
		callerOf: (user) => {
			const credential = keys.get(user);
			return credential === void 0 ? { user } : {
				user,
				credential
			};
		},
		/** Calls the listener for every authenticated caller. */
		onCaller: (listener) => void listeners.push(listener)
	};
}
// src/http/prefix.ts
/** Serves calls below the public prefix too, since some proxies do not remove it. */
function createPrefixRemover({ addresses, isOwnPath }) {
	/**
	* Removes the prefix from the target of a request. The prefix alone is a page without its slash.
	*/
	function remove(request) {
		const { url = "" } = request;
		const prefix = addresses.prefixOf(request);
		if (prefix === "" || !url.startsWith(prefix)) return "none";
		const path = url.split("?", 1)[0] ?? "";
		if (isOwnPath(path, prefix)) return "none";
		if (path === prefix) return "slash_missing";
		if (url[prefix.length] !== "/") return "none";
		request.url = url.slice(prefix.length);
		return "removed";
	}
	return {
		remove,
		/** Does this for all requests of a listener. A missing slash is answered with a redirect. */
		before: (listener) => (request, response) => {
			const isRead = request.method === "GET" || request.method === "HEAD";
			if (remove(request) !== "slash_missing" || !isRead) return listener(request, response);
			const [prefix = "", query] = (request.url ?? "").split("?", 2);
			const Location = query === void 0 ? `${prefix}/` : `${prefix}/?${query}`;
			response.writeHead(302, {
				Location,
				"Cache-Control": "no-store"
			}).end();
		}
	};
}
// src/auth/guard.ts
/** Each rule with its status, and its message to the caller. */
const RULES = {
	too_many_headers: [431, "There are too many headers."],
	invalid_host: [400, "The Host header is missing, repeated, or no host."],
	foreign_target: [400, "The address asked for is not the one in the Host header."],
	control_character: [400, "There is a control character in the path or in a parameter."],
	foreign_host: [403, "Host check: this server answers to localhost and 127.0.0.1, and to the hosts it is told of. Call it by one of these, or start it with --listen, or behind a proxy with --allowed-hosts HOST."],
	foreign_origin: [403, "Origin check: the page that calls is not of this server. Start it with --enable-cors-header ORIGIN to allow another one, or with --public-url URL when a proxy hides the address that pages are opened by."],
	opaque_origin: [403, "Origin check: the page that calls hides its origin (Origin: null), so it may only read."],
	cross_site_request: [403, "Origin check: the browser says that another site makes this call (Sec-Fetch-Site: cross-site)."]
};
/**
* Returns the refusal of a rule.
* @internal
*/
function refusalOf(rule) {
	const [status, message] = RULES[rule];
	return {
		status,
		rule,
		message
	};
}
/** A host without a port may be on either port: the scheme outside is not known here. */
const DEFAULT_PORTS = /* @__PURE__ */ new Set(["80", "443"]);
const LOOPBACK_NAMES = /* @__PURE__ */ new Set(["localhost", "[::1]"]);
/**
* Programs reach loopback by this address, and scripts name it. Browsers send no fetch metadata to
* it, so calls of a foreign page by this name could not be told from those of our own pages.
*/
const ANY_ADDRESS = "0.0.0.0";
/**
* The paths to which people follow links: pages, and signed links, which carry their own
* authorization.
*/
const LINK_TARGETS = /* @__PURE__ */ new Set([
	"/",
	"/holdover",
	SIGNED_VIEW_PATH,
	`/api${SIGNED_VIEW_PATH}`
]);
const WITHOUT_HOST = new URL("http://localhost");
/**
* v1 compares the hosts of `Origin` and `Host`, and accepts an origin without a scheme. Browsers
* never send one; some libraries do (an empty one, or `127.0.0.1:8188`). A page in a local file
* sends `file://` or `null`; it may be a download.
*/
const WITHOUT_SCHEME = /^[^/]*$/;
/** Node silently ignores further headers, so an `Origin` among them would not be seen. */
const MAX_HEADERS = 100;
/**
* Checks the host (DNS rebinding), the origin as v1 does (cross-site requests), and fetch metadata.
* Scripts send neither `Origin` nor `Sec-Fetch-Site` and pass.
*
* A local page is a peer on loopback, as a local proxy is, and a page that has rebound its name may
* send any header. So the host of the connection is checked, and the one that a trusted proxy
* states.
*/
function createGuard(options) {
	const { loopbackOnly, corsOrigin, allowedHosts = [], addresses } = options;
	const readSingleHost = createHostReader();
	const publicUrl = options.publicOrigin === void 0 ? void 0 : new URL(options.publicOrigin);
	const checksHosts = loopbackOnly || allowedHosts.length > 0;
	const isAcceptedHost = (host, request) => isLoopbackName(host.hostname) || host.hostname === ANY_ADDRESS && !isBrowser(request) || host.hostname === publicUrl?.hostname || allowedHosts.some((allowed) => isAllowed(allowed, host));
	return (request) => {
		if (request.rawHeaders.length / 2 > MAX_HEADERS) return refusalOf("too_many_headers");
		const host = readSingleHost(request);
		const forwardedHost = addresses?.forwardedHostOf(request);
		const calledHost = forwardedHost === void 0 ? host : readHost(forwardedHost);
		if (host === void 0 || calledHost === void 0) return refusalOf("invalid_host");
		if (!request.url?.startsWith("/") && request.url !== "*") {
			if (!targetsHost(request.url ?? "", host)) return refusalOf("foreign_target");
		}
		if (targetHasControlCharacter(request.url ?? "")) return refusalOf("control_character");
		if (checksHosts && ![host, calledHost].every((name) => isAcceptedHost(name, request))) return refusalOf("foreign_host");
		const isOwn = (origin) => isSameHost(origin, calledHost) || origin.origin === publicUrl?.origin;
		if (corsOrigin !== void 0) return corsRefusal(request, isOwn, corsOrigin);
		return originRefusal(request, isOwn) ?? fetchMetadataRefusal(request);
	};
}
/**
* Refuses other origins in CORS mode. v1 names an origin in this mode and serves all of them; here
* only that origin and the server's own pages are served.
*/
function corsRefusal(request, isOwn, corsOrigin) {
	const { origin } = request.headers;
	if (corsOrigin === "*" || origin === void 0) return void 0;
	const callerOrigin = URL.canParse(origin) ? new URL(origin) : void 0;
	const isConfiguredOrigin = callerOrigin?.origin === new URL(corsOrigin).origin;
	if (callerOrigin && (isConfiguredOrigin || isOwn(callerOrigin))) return void 0;
	return refusalOf("foreign_origin");
}
function originRefusal(request, isOwn) {
	const { origin } = request.headers;
	if (origin === void 0) return void 0;
	if (origin === "null") return (request.method === "GET" || request.method === "HEAD") && request.headers.upgrade === void 0 ? void 0 : refusalOf("opaque_origin");
	if (WITHOUT_SCHEME.test(origin)) return void 0;
	const parsed = URL.canParse(origin) ? new URL(origin) : void 0;
	return parsed !== void 0 && isOwn(parsed) ? void 0 : refusalOf("foreign_origin");
}
/** Compares names, and ports when both have one, as v1 does. `localhost` and `127.0.0.1` differ. */
function isSameHost(origin, host) {
	const isSamePort = origin.port === "" || host.port === "" || origin.port === host.port;
	return origin.hostname === host.hostname && isSamePort;
}
/**
* Refuses a call that another site made the browser send. To follow a link to a page is allowed.
*/
function fetchMetadataRefusal({ method, url, headers }) {
	if (String(headers["sec-fetch-site"]).toLowerCase() !== "cross-site") return void 0;
	return (method === "GET" || method === "HEAD") && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document" && isLinkTarget(url ?? "") ? void 0 : refusalOf("cross_site_request");
}
function isLinkTarget(url) {
	const { path } = readTarget(url);
	return LINK_TARGETS.has(path) || isSignedContent(url);
}
function createHostReader() {
	let last;
	return ({ headers, rawHeaders, httpVersion }) => {
		const { host } = headers;
		if (host === void 0 && httpVersion === "1.0") return WITHOUT_HOST;
		if (host === void 0 || !hasSingleHost(rawHeaders)) return void 0;
		if (last?.text !== host) last = {
			text: host,
			url: readHost(host)
		};
		return last.url;
	};
}
/** True when there is one `Host`: of several, Node shows the first. */
function hasSingleHost(rawHeaders) {
	let count = 0;
	for (let i = 0; i < rawHeaders.length; i += 2) {
		const name = rawHeaders[i] ?? "";
		if (name.length === 4 && name.toLowerCase() === "host") count++;
	}
	return count === 1;
}
function targetsHost(target, host) {
	return URL.canParse(target) && new URL(target).origin === host.origin;
}
function isAllowed({ hostname, port, hasSubdomains }, host) {
	const name = host.hostname.replace(/\.$/, "");
	const isAtPort = host.port === "" ? DEFAULT_PORTS.has(port ?? "") : port === host.port;
	if (port !== void 0 && !isAtPort) return false;
	return name === hostname || hasSubdomains && name.endsWith(`.${hostname}`);
}
function isLoopbackName(hostname) {
	const name = hostname.replace(/\.$/, "");
	return LOOPBACK_NAMES.has(name) || /^127\.\d+\.\d+\.\d+$/.test(name);
}
// src/app/auth.ts
/** Identifies callers, finds the public address of each call, and refuses calls by their host and origin. */
function createAuth({ config, identify, secrets, runner }) {
	const { listen, corsOrigin, proxy } = config;
	const keyring = createKeyring();
	const addresses = createPublicAddresses(proxy);
	const ownPaths = /* @__PURE__ */ new Set([...pagePaths(), ...CONSOLE_PATHS]);
	const identifyCaller = (request) => {
		const caller = identify(request);
		secrets.add(caller?.credential);
		return caller;
	};
	return {
		addresses,
		guard: createGuard({
			loopbackOnly: isLoopback(listen),
			corsOrigin,
			allowedHosts: proxy.allowedHosts,
			publicOrigin: proxy.publicUrl?.origin,
			addresses
		}),
		prefix: createPrefixRemover({
			addresses,
			isOwnPath: (path, prefix) => ownPaths.has(path) || OWN_SEGMENTS.has(prefix.slice(1))
		}),
		identify: identifyCaller,
		authenticate: createAuthenticate({
			identify: identifyCaller,
			acceptsCaller: runner.acceptsCaller,
			onCaller: (caller) => keyring.remember(caller)
		}),
		keyring,
		dialects: createDialects(config.dialect)
	};
}
// src/console/shared-figures.ts
/** A server without a measurement for this long has stopped, or cannot reach Redis. */
const SILENT_MS = 35e3;
const MAX_SERVERS = 50;
/**
* Shares figures between all servers over one Redis. Each stores its latest measurement, reads
* those of the others and keeps an hour of them: behind a load balancer with sticky sessions, a
* page reaches one server only. Without Redis there are no other servers.
*/
function createSharedFigures({ links, ...own }) {
	const key = `${links?.prefix ?? ""}figures`;
	let known = /* @__PURE__ */ new Map();
	let lastMs = 0;
	async function exchange(sample) {
		if (links === void 0 || links.commands.status !== "ready") return;
		const stored = {
			server: own.server,
			host: hostname(),
			version: own.version,
			started_at_ms: STARTED_AT_MS,
			sample
		};
		const all = (await links.commands.multi().hset(key, own.server, JSON.stringify(stored)).pexpire(key, SILENT_MS).hgetall(key).exec())?.at(-1)?.[1] ?? {};
		lastMs = sample.at_ms;
		const silent = remember(all, lastMs);
		if (silent.length > 0) await links.commands.hdel(key, ...silent);
	}
	/** Keeps the new samples. Returns the servers that are silent, by the clock of this process. */
	function remember(all, nowMs) {
		const found = Object.values(all).map((text) => JSON.parse(text)).filter(({ server }) => server !== own.server).slice(0, MAX_SERVERS);
		known = new Map(found.map((one) => [one.server, withSample(known.get(one.server), one, nowMs)]));
		return [...known].filter(([, { readAtMs }]) => isSilent(readAtMs, nowMs)).map(([id]) => id);
	}
	return {
		/** Stores a measurement of this server, and reads those of the others. */
		exchange,
		others: () => [...known.values()].filter(({ readAtMs }) => !isSilent(readAtMs, lastMs)).map(({ figures }) => figures)
	};
}
function isSilent(readAtMs, nowMs) {
	return nowMs - readAtMs > SILENT_MS;
}
function withSample(before, { sample, ...server }, nowMs) {
	const samples = before?.figures.samples ?? [];
	const isSeen = samples.at(-1)?.at_ms === sample.at_ms;
	if (before !== void 0 && isSeen) return before;
	return {
		figures: {
			...server,
			samples: [...samples.slice(-359), sample]
		},
		readAtMs: nowMs
	};
}
// src/observability/traffic-links.ts
/** `max` would allocate room for all of them at once. */
const MOST = {
	maxSize: 1e4,
	sizeCalculation: () => 1
};
/** Remembers which prompt a job, a caller or a socket is about, also of prompts that have ended. */
function createTrafficLinks(promptIdOf) {
	const promptsByCaller = /* @__PURE__ */ new WeakMap();
	const promptsByJob = new LRUCache(MOST);
	const promptsBySocket = new LRUCache(MOST);
	return {
		promptOf(caller, id) {
			const { user } = caller;
			return id && (promptIdOf(user, id) ?? promptsByJob.get(`${user} ${id}`)) || promptsByCaller.get(caller);
		},
		linkJob: (user, jobId, promptId) => void promptsByJob.set(`${user} ${jobId}`, promptId),
		/** Calls in the name of this very object are about this prompt. */
		linkCaller: (caller, promptId) => void promptsByCaller.set(caller, promptId),
		/** Binary frames may carry no id: then they are of the prompt of the frame before. */
		promptOfFrame({ user, sid, payload }, promptId) {
			const socket = `${user} ${sid}`;
			const found = promptId ?? (typeof payload === "string" ? void 0 : promptsBySocket.get(socket));
			if (found !== void 0) promptsBySocket.set(socket, found);
			return found;
		}
	};
}
// src/observability/v2-descriptions.ts
const ofJob = ([jobId]) => ({ jobId });
const ofAsset = ([assetId]) => ({ assetId });
const noFields = () => ({});
/** No graph, no file and no secret is described: only ids, names and sizes. */
const ARGUMENTS = {
	submit: ([request]) => {
		const { workflow, metadata, extraData, order } = request;
		const { [Object.keys(metadata ?? {})[0] ?? ""]: key } = metadata ?? {};
		const sent = Object.values(extraData);
		return {
			nodes: Object.keys(workflow).length,
			order,
			key,
			label: key,
			secrets: sent
		};
	},
	recover: ([lost]) => {
		const { metadata, sentAtMs } = lost;
		return {
			key: Object.values(metadata ?? {})[0],
			sentAtMs
		};
	},
	get: ofJob,
	workflow: ofJob,
	events: ofJob,
	cancel: ofJob,
	list: ([query]) => ({ query }),
	createAsset: ([upload]) => {
		const { filePath, contentType, file } = upload;
		return {
			filePath,
			contentType,
			sizeBytes: file.sizeBytes,
			hash: file.hash
		};
	},
	assetFromHash: ([request]) => {
		const { hash, filePath } = request;
		return {
			hash,
			filePath
		};
	},
	hasBlob: ([hash]) => ({ hash }),
	asset: ofAsset,
	deleteAsset: ofAsset,
	content: ([assetId, range]) => ({
		assetId,
		range
	}),
	health: noFields
};
/** The arguments of a v2 call after its caller, as fields of a log line. */
function describeArguments(method, args) {
	return ARGUMENTS[method](args);
}
/** The answer of a v2 call, as fields of a log line. */
function describeAnswer(method, answer) {
	if (!answer.ok) {
		const { status, code, message } = answer.error;
		return {
			outcome: "refused",
			status,
			code,
			reason: message
		};
	}
	return {
		outcome: "ok",
		...VALUES[method](answer.value)
	};
}
const aJob = (value) => {
	const { id, status } = value;
	return {
		jobId: id,
		jobStatus: status
	};
};
const anAsset = (value) => ({ assetId: value.id });
const VALUES = {
	submit: aJob,
	recover: noFields,
	get: aJob,
	workflow: noFields,
	events: noFields,
	cancel: aJob,
	list: noFields,
	createAsset: anAsset,
	assetFromHash: anAsset,
	hasBlob: (value) => ({ isThere: value }),
	asset: anAsset,
	deleteAsset: noFields,
	content: (value) => ({ content: value.kind }),
	health: noFields
};
const MAX_TEXT_CHARS$1 = 500;
/** An event of a job, as fields of a log line; of pictures only type and size. */
function describeEvent({ event: kind, data }) {
	if (kind === "preview") {
		const { bytes, ...fields } = data;
		return {
			kind,
			...fields,
			bytes: bytes.length
		};
	}
	if (kind === "status") {
		const { job, ...fields } = data;
		return {
			kind,
			...fields,
			error: job?.error ?? void 0,
			outputs: job?.outputs.length
		};
	}
	if (kind === "x_text") return {
		kind,
		...data,
		text: data.text.slice(0, MAX_TEXT_CHARS$1)
	};
	if (kind === "output") return {
		kind,
		outputId: data.id,
		node_id: data.node_id,
		name: data.name
	};
	if (kind === "x_node") return {
		kind,
		node_id: data.node_id,
		phase: data.phase
	};
	return {
		kind,
		...data
	};
}
// src/console/traffic/v2-calls.ts
const JSON_TYPE = "application/json";
/**
* A larger value is not recorded, since to write it would delay other calls: this is 2 MB of text,
* or 32,000 values.
*/
const MAX_WEIGHT = 32e3;
/** Returns the body that a v2 call has in HTTP, without secrets. */
function requestBody(method, args) {
	const body = REQUEST_BODIES[method]?.(args);
	return body === void 0 ? {} : {
		request: jsonBody(body),
		requestType: JSON_TYPE
	};
}
const REQUEST_BODIES = {
	submit([request]) {
		const { workflow, metadata, extraData, idempotencyKey } = request;
		const secretNames = Object.keys(extraData);
		return {
			workflow: isLarge(workflow) ? `(${Object.keys(workflow).length} nodes, not recorded)` : workflow,
			...secretNames.length > 0 && { extra_data: Object.fromEntries(secretNames.map((name) => [name, "[removed]"])) },
			...metadata && { metadata },
			...idempotencyKey !== void 0 && { "Idempotency-Key": idempotencyKey }
		};
	},
	createAsset([upload]) {
		const { filePath, contentType, file } = upload;
		return {
			file: `(${file.sizeBytes} bytes)`,
			file_path: filePath,
			content_type: contentType,
			hash: file.hash
		};
	},
	assetFromHash: ([request]) => {
		const { hash, filePath } = request;
		return {
			hash,
			...filePath !== void 0 && { file_path: filePath }
		};
	},
	list: ([query]) => query
};
/** Returns the body of an answer; none for a stream or a file. */
function answerBody(method, answer) {
	if (!answer.ok) {
		const { code, message, details } = answer.error;
		return {
			response: jsonBody({ error: {
				code,
				message,
				details
			} }),
			responseType: JSON_TYPE
		};
	}
	if (method === "events" || method === "content" || method === "deleteAsset") return {};
	return {
		response: jsonBody(answer.value),
		responseType: JSON_TYPE
	};
}
/** Returns the status that the answer has in HTTP. */
function statusOfAnswer(method, answer) {
	if (!answer.ok) return answer.error.status;
	if (method === "hasBlob") return answer.value === true ? 200 : 404;
	if (method === "deleteAsset") return 204;
	return method === "submit" || method === "createAsset" || method === "assetFromHash" ? 201 : 200;
}
function jsonBody(value) {
	return bodyOf(Buffer.from(stringifyJson(isLarge(value) ? "(large, not recorded)" : value)));
}
function isLarge(value) {
	return jsonWeight(value, MAX_WEIGHT) > MAX_WEIGHT;
}
/** Returns the entry of an event; for a preview, with its picture. */
function eventEntry(event) {
	if (event.event === "preview") {
		const { bytes, content_type: type, node_id: node } = event.data;
		return {
			type: "preview",
			text: `node ${node}`,
			bytes: bytes.length,
			...shownPictureType(type),
			body: bodyOf(Buffer.from(bytes)),
			bodyType: type
		};
	}
	const body = jsonBody(event.data);
	return {
		type: event.event,
		text: eventText(event),
		bytes: body.totalBytes,
		body,
		bodyType: JSON_TYPE
	};
}
function eventText(event) {
	switch (event.event) {
		case "status": return event.data.status;
		case "progress": {
			const { value, current_node: node, step, steps } = event.data;
			const at = steps === null || steps === void 0 ? "" : ` · ${step} of ${steps}`;
			return `${Math.round(value * 100)} %${node === null || node === void 0 ? "" : ` · node ${node}`}${at}`;
		}
		case "output": return `node ${event.data.node_id} · ${event.data.name}`;
		case "x_node": return `node ${event.data.node_id} ${event.data.phase}`;
		case "x_text": return `node ${event.data.node_id} · ${event.data.text}`;
	}
}
// src/console/traffic/record-port-calls.ts
const MAX_PROMPTS = 5e3;
/** Records v2 calls and their events, and the entry that caused each of them. */
var PortCallRecorder = class {
	#options;
	links;
	#callOfCaller = /* @__PURE__ */ new WeakMap();
	/** The callers of Holdover's own page, which are not recorded. */
	#ownCallers = /* @__PURE__ */ new WeakSet();
	/** For each prompt: the call that submitted it, and the latest v2 call or event about it. */
	#submissions = new LRUCache(atMost(MAX_PROMPTS));
	#lastV2 = new LRUCache(atMost(MAX_PROMPTS));
	constructor(options) {
		this.#options = options;
		this.links = createTrafficLinks(options.promptIdOf);
	}
	/** Returns the same port, whose calls and events are recorded. */
	wrap(jobs) {
		const { store } = this.#options;
		return interceptCalls(jobs, (...called) => {
			const [, call, args] = called;
			return store.isRecording() ? this.#record(...called) : call(...args);
		});
	}
	ignoreCaller(caller) {
		this.#ownCallers.add(caller);
	}
	/** v2 calls with this same caller object belong to the call. */
	linkCaller(caller, recorded) {
		this.#callOfCaller.set(caller, recorded);
	}
	/** Notes that calls with this same caller object are about this prompt. */
	linkSubmission(caller, promptId) {
		const recorded = this.#callOfCaller.get(caller);
		if (recorded === void 0) return;
		this.#options.store.update(recorded, { prompt_id: promptId });
		this.#linkPrompt(caller, promptId, recorded);
	}
	/** Returns the latest v2 call or event about a prompt. */
	lastV2Of(user, promptId) {
		return this.#lastV2.get(`${user} ${promptId}`) ?? null;
	}
	async #record(method, call, args) {
		const { store } = this.#options;
		const caller = method === "health" ? void 0 : args[0];
		if (!caller || this.#ownCallers.has(caller) || !store.isWanted(caller.user)) return call(...args);
		const recorded = this.#begin(method, caller, args);
		try {
			const answer = await call(...args);
			this.#end(recorded, method, {
				caller,
				answer
			});
			return method === "events" ? observeEvents(answer, { onEvent: (event) => this.#recordEvent(recorded, event) }) : answer;
		} catch (error) {
			store.update(recorded, {
				ms: this.#options.now() - recorded.entry.at_ms,
				status: 0
			});
			throw error;
		}
	}
	#begin(method, caller, args) {
		const { store, secrets } = this.#options;
		const { user } = caller;
		const { key, secrets: sent = [], jobId } = describeArguments(method, args.slice(1));
		for (const secret of [caller.credential, ...sent]) secrets.add(secret);
		const [verb = "", target = ""] = V2_CALLS[method].split(" ");
		const cause = this.#callOfCaller.get(caller);
		const promptId = this.links.promptOf(caller, jobId ?? key) ?? cause?.entry.prompt_id ?? null;
		return store.add({
			user,
			...requestBody(method, args.slice(1)),
			entry: {
				kind: "v2_call",
				prompt_id: promptId,
				job_id: jobId ?? null,
				cause_id: cause?.entry.id ?? this.#submissions.get(`${user} ${promptId}`) ?? null,
				method: verb,
				target
			}
		});
	}
	#end(recorded, method, { caller, answer }) {
		const { store, now } = this.#options;
		Object.assign(recorded, answerBody(method, answer));
		const { at_ms: startedAtMs, job_id: knownJob, prompt_id: knownPrompt } = recorded.entry;
		const jobId = method === "submit" && answer.ok ? answer.value.id : knownJob;
		const promptId = knownPrompt ?? this.links.promptOf(caller, jobId ?? void 0) ?? null;
		if (promptId !== null && jobId !== null) this.links.linkJob(caller.user, jobId, promptId);
		store.update(recorded, {
			ms: now() - startedAtMs,
			status: statusOfAnswer(method, answer),
			job_id: jobId,
			prompt_id: promptId,
			response_bytes: recorded.response?.totalBytes ?? 0
		});
		const cause = this.#callOfCaller.get(caller);
		if (method === "submit" && promptId !== null && cause) this.#linkPrompt(caller, promptId, cause);
		if (method === "get") this.#rememberLastV2(caller.user, promptId, recorded);
	}
	/** Records an event. `stream`: the call that requested the events. */
	#recordEvent(stream, event) {
		const { store, showText } = this.#options;
		const { user = "", entry } = stream;
		if (!store.isWanted(user)) return;
		const { body, bodyType, text, ...described } = eventEntry(event);
		const jobId = entry.job_id ?? void 0;
		const promptId = entry.prompt_id ?? this.links.promptOf({ user }, jobId) ?? null;
		const added = store.add({
			user,
			response: body,
			responseType: bodyType,
			entry: {
				kind: "v2_event",
				prompt_id: promptId,
				job_id: entry.job_id,
				cause_id: entry.id,
				text: lineText(showText, text),
				...described
			}
		});
		this.#rememberLastV2(user, promptId, added);
	}
	#linkPrompt(caller, promptId, { entry }) {
		this.links.linkCaller(caller, promptId);
		this.#submissions.set(`${caller.user} ${promptId}`, entry.id);
	}
	#rememberLastV2(user, promptId, { entry }) {
		if (promptId !== null) this.#lastV2.set(`${user} ${promptId}`, entry.id);
	}
};
// src/observability/described-frame.ts
/** Binary frames of v1, by the number that they begin with. */
const PREVIEW = 1;
const TEXT = 3;
const PREVIEW_WITH_METADATA = 4;
const FORMATS = {
	1: "image/jpeg",
	2: "image/png"
};
/** The number of the type, and that of the format or the length that follows it. */
const HEADER_BYTES = 8;
/** Reads a frame of v1, of either direction; one that is no frame of v1 has no type. */
function describeFrame(payload) {
	if (typeof payload !== "string") return describeBinary(payload);
	const message = objectIn(payload);
	const data = isJsonObject(message?.["data"]) ? message["data"] : {};
	return {
		...NOTHING,
		type: textOf$2(message?.["type"]),
		promptId: textOf$2(data["prompt_id"]),
		nodeId: textOf$2(data["node"]),
		bytes: Buffer.byteLength(payload),
		data
	};
}
const NOTHING = {
	isBinary: false,
	promptId: void 0,
	nodeId: void 0,
	data: {},
	textStart: void 0,
	picture: void 0
};
function describeBinary(payload) {
	const { length: bytes } = payload;
	const kind = bytes >= 4 ? payload.readUInt32BE(0) : void 0;
	const type = kind === void 0 ? void 0 : `binary ${kind}`;
	const base = {
		...NOTHING,
		isBinary: true,
		type,
		bytes
	};
	if (bytes < HEADER_BYTES) return base;
	const number = payload.readUInt32BE(4);
	if (kind === PREVIEW) return {
		...base,
		picture: {
			format: FORMATS[number],
			start: HEADER_BYTES
		}
	};
	const head = payload.toString("utf8", HEADER_BYTES, HEADER_BYTES + number);
	const start = HEADER_BYTES + number;
	if (kind === TEXT) return {
		...base,
		nodeId: head,
		textStart: start
	};
	if (kind !== PREVIEW_WITH_METADATA) return base;
	const metadata = objectIn(head);
	return {
		...base,
		promptId: textOf$2(metadata?.["prompt_id"]),
		nodeId: textOf$2(metadata?.["node_id"]),
		picture: {
			format: textOf$2(metadata?.["image_type"]),
			start
		}
	};
}
function objectIn(text) {
	try {
		const value = parseJson(text);
		return isJsonObject(value) ? value : void 0;
	} catch {
		return;
	}
}
function textOf$2(value) {
	return typeof value === "string" ? value : void 0;
}
// src/console/traffic/frames.ts
/** Returns a frame as readable text and, if it has a picture, the place of the picture. */
function frameEntry({ payload, totalBytes }) {
	const described = describeFrame(payload);
	const { picture, textStart, promptId } = described;
	const bytes = totalBytes ?? described.bytes;
	const wire = Buffer.from(payload);
	const body = {
		...bodyOf(wire),
		totalBytes: bytes
	};
	if (picture !== void 0) return {
		...pictureEntry(described, picture),
		body
	};
	if (textStart !== void 0) return {
		type: "text",
		text: wire.toString("utf8", textStart),
		bytes,
		promptId,
		body,
		bodyType: "text/plain",
		contentStart: textStart
	};
	return {
		type: described.type ?? (described.isBinary ? "binary" : "text"),
		text: frameText(described.data),
		bytes,
		promptId,
		body,
		bodyType: described.isBinary ? "application/octet-stream" : "application/json",
		contentStart: 0
	};
}
function pictureEntry({ bytes, promptId, nodeId, type }, { format, start }) {
	return {
		type: type === "binary 1" ? "preview" : "preview with metadata",
		text: nodeId === void 0 ? "" : `node ${nodeId}`,
		bytes,
		...shownPictureType(format ?? ""),
		promptId,
		bodyType: format ?? "application/octet-stream",
		contentStart: start
	};
}
function frameText(data) {
	const { node, value, max, status, nodes, exception_message: message } = data;
	if (isJsonObject(status)) {
		const info = status["exec_info"];
		return `queue_remaining ${wordOf(isJsonObject(info) ? info["queue_remaining"] : void 0)}`;
	}
	return [
		node === void 0 ? "" : `node ${wordOf(node)}`,
		max === void 0 ? "" : `${wordOf(value)} of ${wordOf(max)}`,
		isJsonObject(nodes) ? nodeCount(Object.keys(nodes).length) : "",
		Array.isArray(nodes) ? `nodes ${nodes.map(wordOf).join(", ")}` : "",
		typeof message === "string" ? message : ""
	].filter((part) => part !== "").join(" · ");
}
/**
* Returns a value as text. Clients send any JSON, even objects whose `toString` is not a function.
*/
function wordOf(value) {
	return typeof value === "string" ? value : stringifyJson(value ?? null);
}
// src/console/traffic-store.ts
/**
* Drops the bodies of a removed entry: a reader that writes a long list slowly must not keep their
* memory.
*/
function dropBodies(recorded) {
	delete recorded.request;
	delete recorded.response;
}
const MAX_ENTRIES = 4e3;
const MAX_BYTES$1 = 33554432;
/** The assumed size of an entry without its bodies. */
const ENTRY_BYTES = 1200;
/** A reader that does not ask again within this time has left. */
const LEASE_MS = 9e4;
const ALL_USERS = "*";
/** The maximum number of readers of a user. Further ones share one lease. */
const MAX_READERS = 20;
/**
* Keeps entries in memory while a reader exists. When there are too many, the oldest are removed.
*/
var TrafficStore = class {
	/** The id of this process among the servers. */
	server = randomBytes(6).toString("hex");
	#now;
	#entries = /* @__PURE__ */ new Map();
	#sizes = /* @__PURE__ */ new WeakMap();
	/** For each user, the time at which each reader's lease ends. */
	#leases = /* @__PURE__ */ new Map();
	#lastId = 0;
	#revision = 0;
	#bytes = 0;
	#dropped = 0;
	#timer;
	constructor({ now }) {
		this.#now = now;
	}
	/** True while a reader exists. Called for every call and frame. */
	isRecording = () => this.#timer !== void 0;
	/** Returns true when a reader may see traffic of this user. */
	isWanted(user) {
		return this.#leases.has(ALL_USERS) || user !== void 0 && this.#leases.has(user);
	}
	/** Starts recording for this reader, or renews its lease. */
	hold({ user, isAll, reader = "" }) {
		const name = isAll ? ALL_USERS : user;
		const readers = this.#leases.get(name) ?? /* @__PURE__ */ new Map();
		this.#leases.set(name, readers);
		const isKnown = readers.has(reader) || readers.size < MAX_READERS;
		readers.set(isKnown ? reader : "", this.#now() + LEASE_MS);
		this.#timer ??= this.#startTimer();
	}
	/** Ends the lease of a reader that has left. */
	release({ user, isAll, reader = "" }) {
		this.#leases.get(isAll ? ALL_USERS : user)?.delete(reader);
		this.#expireLeases();
	}
	add(recorded) {
		const entry = {
			id: ++this.#lastId,
			revision: ++this.#revision,
			at_ms: this.#now(),
			ms: null,
			prompt_id: null,
			job_id: null,
			cause_id: null,
			...recorded.entry
		};
		const stored = {
			...recorded,
			entry
		};
		this.#entries.set(entry.id, stored);
		this.#measure(stored);
		return stored;
	}
	/** Changes an entry. A removed entry stays removed. */
	update(recorded, change) {
		recorded.entry = {
			...recorded.entry,
			...change,
			revision: ++this.#revision
		};
		if (this.#entries.has(recorded.entry.id)) this.#measure(recorded);
	}
	remove(recorded) {
		if (!this.#entries.delete(recorded.entry.id)) return;
		this.#bytes -= this.#sizes.get(recorded) ?? 0;
		dropBodies(recorded);
	}
	clear() {
		this.#entries.forEach(dropBodies);
		this.#entries.clear();
		this.#bytes = 0;
		this.#dropped = 0;
	}
	find(id, { user, isAll }) {
		const found = this.#entries.get(id);
		return found && (isAll || found.user === user) ? found : void 0;
	}
	/** Returns all entries that the reader may see, oldest first. */
	list({ user, isAll }) {
		return [...this.#entries.values()].filter((recorded) => isAll || recorded.user === user);
	}
	/**
	* Returns the entries that changed after this revision, oldest first. If there are many, returns only the newest.
	*/
	changedAfter(after, scope) {
		const changed = this.list(scope).filter(({ entry }) => entry.revision > after);
		const [oldest] = this.#entries.keys();
		return {
			server: this.server,
			revision: this.#revision,
			entries: changed.slice(-1e3).map((recorded) => ({
				...recorded.entry,
				is_other_user: recorded.user !== scope.user
			})),
			dropped: this.#dropped,
			memory_bytes: this.#bytes,
			oldest_id: oldest ?? this.#lastId + 1
		};
	}
	close() {
		clearTimeout(this.#timer);
		this.#timer = void 0;
		this.clear();
	}
	#measure(recorded) {
		const size = sizeOf(recorded);
		this.#bytes += size - (this.#sizes.get(recorded) ?? 0);
		this.#sizes.set(recorded, size);
		for (const oldest of this.#entries.values()) {
			if (this.#entries.size <= MAX_ENTRIES && this.#bytes <= MAX_BYTES$1) return;
			this.remove(oldest);
			this.#dropped++;
		}
	}
	#startTimer() {
		return setTimeout(() => this.#expireLeases(), LEASE_MS / 2).unref();
	}
	#expireLeases() {
		for (const [user, readers] of this.#leases) {
			for (const [reader, untilMs] of readers) if (untilMs <= this.#now()) readers.delete(reader);
			if (readers.size === 0) this.#leases.delete(user);
		}
		clearTimeout(this.#timer);
		this.#timer = void 0;
		if (this.#leases.size > 0) this.#timer = this.#startTimer();
		else this.clear();
	}
};
function sizeOf({ request, response, entry }) {
	const texts = (entry.text?.length ?? 0) + (entry.target?.length ?? 0);
	return ENTRY_BYTES + texts + (request?.capturedBytes ?? 0) + (response?.capturedBytes ?? 0);
}
// src/console/traffic-recorder.ts
/**
* Records the calls and frames of v1 clients, and the v2 calls and events behind them, while a
* reader exists.
*/
var TrafficRecorder = class {
	store;
	isRecording;
	/** Observes frames. Sockets of Holdover's own page are not recorded. */
	frames;
	#now;
	#isRemote;
	#showText;
	#portCalls;
	#callOfRequest = /* @__PURE__ */ new WeakMap();
	constructor({ now, secrets, promptIdOf, isRemote }) {
		const store = new TrafficStore({ now });
		const showText = createShowText(secrets);
		this.store = store;
		this.isRecording = store.isRecording;
		this.frames = {
			isOn: store.isRecording,
			record: (frame) => frame.watches !== true && this.#recordFrame(frame)
		};
		this.#now = now;
		this.#isRemote = isRemote;
		this.#showText = showText;
		this.#portCalls = new PortCallRecorder({
			store,
			now,
			secrets,
			showText,
			promptIdOf
		});
	}
	/** Returns the same port, whose calls and events are recorded. */
	wrap(jobs) {
		return this.#portCalls.wrap(jobs);
	}
	/** Records a call that has arrived. Its user is not known yet. */
	beginCall(request, response) {
		if (isOfPage(request)) return;
		const { method = "", url = "" } = request;
		const recorded = this.store.add({
			user: void 0,
			requestHeaders: shownHeaders(request.headers),
			request: captureRequest(request),
			response: captureResponse(response),
			requestType: request.headers["content-type"] ?? "",
			entry: {
				kind: "call",
				method,
				target: withoutCredentials(url),
				api: apiOf(url),
				...clientOf(request)
			}
		});
		this.#callOfRequest.set(request, recorded);
		response.once("close", () => this.#endCall(recorded, request, response));
	}
	/** Sets the caller of a call. v2 calls with this same caller object belong to the call. */
	identify(request, caller) {
		if (!this.isRecording()) return;
		const recorded = this.#callOfRequest.get(request);
		if (recorded === void 0) {
			if (isOfPage(request)) this.#portCalls.ignoreCaller(caller);
			return;
		}
		recorded.user = caller.user;
		if (!this.store.isWanted(caller.user)) return this.store.remove(recorded);
		this.#portCalls.linkCaller(caller, recorded);
	}
	/** Notes that calls with this same caller object are about this prompt. */
	submission(caller, promptId) {
		this.#portCalls.linkSubmission(caller, promptId);
	}
	/** Records the end of a call. Its prompts and its user are known now. */
	answered(call, request) {
		const recorded = this.#callOfRequest.get(request);
		if (recorded === void 0) return;
		recorded.user ??= call.user;
		const [promptId] = call.promptIds;
		if (promptId !== void 0) this.store.update(recorded, { prompt_id: promptId });
	}
	/** Records a socket that was opened, or refused with this status. */
	upgraded(status, request, user) {
		if (!this.isRecording() || isOfPage(request) || !this.store.isWanted(user)) return;
		const call = {
			method: "GET",
			target: withoutCredentials(request.url ?? ""),
			status
		};
		const facts = {
			headers: request.headers,
			isRemote: this.#isRemote,
			body: () => ""
		};
		this.store.add({
			user,
			requestHeaders: shownHeaders(request.headers),
			entry: {
				kind: "call",
				ms: 0,
				method: call.method,
				target: call.target,
				api: "v1",
				status,
				differences: differencesOf(call, facts),
				...clientOf(request)
			}
		});
	}
	close() {
		this.store.close();
	}
	#endCall(recorded, request, response) {
		const { store } = this;
		if (!store.isWanted(recorded.user)) return store.remove(recorded);
		recorded.responseHeaders = shownHeaders(response.getHeaders());
		recorded.responseType = String(response.getHeader("content-type") ?? "");
		const { at_ms: startedAtMs } = recorded.entry;
		const status = response.headersSent ? response.statusCode : 499;
		const body = () => textIn(recorded.request);
		store.update(recorded, {
			ms: this.#now() - startedAtMs,
			status,
			request_bytes: recorded.request?.totalBytes ?? 0,
			response_bytes: recorded.response?.totalBytes ?? 0,
			...shownPictureType(recorded.responseType),
			differences: differencesOf({
				...recorded.entry,
				status
			}, {
				headers: request.headers,
				isRemote: this.#isRemote,
				body
			})
		});
	}
	#recordFrame(frame) {
		const { user, sid, direction } = frame;
		if (!this.store.isWanted(user)) return;
		const { promptId, body, bodyType, contentStart, text, ...described } = frameEntry(frame);
		const prompt = this.#portCalls.links.promptOfFrame(frame, promptId);
		const line = {
			...described,
			type: this.#short(described.type),
			text: this.#short(text)
		};
		const isSent = direction === "out";
		this.store.add({
			user,
			contentStart,
			...isSent ? {
				response: body,
				responseType: bodyType
			} : {
				request: body,
				requestType: bodyType
			},
			entry: {
				kind: "frame",
				prompt_id: prompt === void 0 ? null : this.#short(prompt),
				cause_id: isSent ? this.#portCalls.lastV2Of(user, prompt) : null,
				direction,
				sid,
				...line,
				...isSent && { differences: frameDifferences(line, { isRemote: this.#isRemote }) }
			}
		});
	}
	#short(text) {
		return lineText(this.#showText, text);
	}
};
/** Returns the calling program, and the client id in the address. */
function clientOf(request) {
	const query = (request.url ?? "").split("?", 2)[1] ?? "";
	return {
		agent: agentOf(request),
		client_id: clientIdIn(query)
	};
}
// src/http/json/body-bytes.ts
/** Smaller chunks are copied together, since a chunk of one byte takes a hundred in memory. */
const SMALL_BYTES$1 = 16384;
const BLOCK_BYTES = 65536;
/**
* The bytes of a body in the order of their arrival. They are given out once, from the first to the
* last.
*/
var BodyBytes = class {
	#chunks = [];
	#blockBytes;
	#block;
	#blockUsed = 0;
	/** Offset of the first chunk that is still held. */
	#offset = 0;
	#first = 0;
	/** `announced`: the maximum number of bytes, or an estimate when none was stated. */
	constructor(announced) {
		this.#blockBytes = Math.max(1, Math.min(announced, BLOCK_BYTES));
	}
	add(chunk) {
		if (chunk.length >= SMALL_BYTES$1) {
			this.#closeBlock();
			this.#chunks.push(chunk);
			return;
		}
		let rest = chunk;
		while (rest.length > 0) {
			this.#block ??= Buffer.allocUnsafeSlow(this.#blockBytes);
			const copied = rest.copy(this.#block, this.#blockUsed);
			this.#blockUsed += copied;
			rest = rest.subarray(copied);
			if (this.#blockUsed === this.#blockBytes) this.#closeBlock();
		}
	}
	/** Returns the bytes from `start` to `end`. Earlier bytes are released. */
	take(start, end) {
		this.#closeBlock();
		this.#dropBefore(start);
		const parts = [];
		let at = this.#offset;
		for (let i = this.#first; i < this.#chunks.length && at < end; i++) {
			const chunk = this.#chunks[i] ?? EMPTY;
			parts.push(chunk.subarray(Math.max(0, start - at), end - at));
			at += chunk.length;
		}
		return parts.length === 1 ? parts[0] ?? EMPTY : Buffer.concat(parts);
	}
	clear() {
		this.#chunks = [];
		this.#block = void 0;
	}
	#dropBefore(start) {
		for (; this.#first < this.#chunks.length; this.#first++) {
			const length = this.#chunks[this.#first]?.length ?? 0;
			if (this.#offset + length > start) return;
			this.#offset += length;
			this.#chunks[this.#first] = EMPTY;
		}
	}
	#closeBlock() {
		if (this.#block) this.#chunks.push(this.#block.subarray(0, this.#blockUsed));
		this.#block = void 0;
		this.#blockUsed = 0;
	}
};
const EMPTY = Buffer.alloc(0);
// src/http/json/body-memory.ts
/** The memory for each byte of a body while it is read, checked, written as text and stored. */
const MEMORY_PER_BODY_BYTE = 4;
/** The bytes in memory for each byte of a prompt that waits or runs. */
const MEMORY_PER_QUEUED_BYTE = 2;
/**
* The part of V8's limit for the heap that holds young objects only; bodies are not among them. V8
* reports only the sum. Its part is 48 MiB up to Node 22.
*/
const YOUNG_OBJECTS_BYTES = 201326592;
const YOUNG_OBJECTS_BYTES_BEFORE_24 = 50331648;
/** The memory that the process needs without any body. */
const BASE_MEMORY_BYTES = 100663296;
/** Bodies up to this size have a reserve of their own. */
const SMALL_BYTES = 65536;
const WAIT_MS$2 = 5e3;
/** How often the memory is checked again: prompts that end release theirs without a signal. */
const RECHECK_MS$1 = 100;
/**
* Returns the memory that a process may use for bodies: most of its heap, or of its container's
* memory.
*/
function bodyMemoryBytes() {
	const constrained = process.constrainedMemory() || Infinity;
	const machine = Math.min(constrained, totalmem());
	const [nodeMajor] = process.versions.node.split(".");
	const young = Number(nodeMajor) < 24 ? YOUNG_OBJECTS_BYTES_BEFORE_24 : YOUNG_OBJECTS_BYTES;
	const heap = Math.min(getHeapStatistics().heap_size_limit - young, machine * .75);
	return Math.max(33554432, (heap - BASE_MEMORY_BYTES) * .75);
}
/** Serves callers in the order of their arrival. A single body is always accepted. */
function createBodyMemory(options) {
	const { limitBytes, queuedBytes = () => 0, waitMs = WAIT_MS$2 } = options;
	const waiting = [];
	let reserved = 0;
	let timer;
	function hasRoom(bytes) {
		const room = bytes <= SMALL_BYTES * MEMORY_PER_BODY_BYTE ? 1.125 : 1;
		const queued = queuedBytes() * MEMORY_PER_QUEUED_BYTE;
		return reserved + queued + bytes <= limitBytes * room;
	}
	function reserveNow(bytes) {
		reserved += bytes;
		let isReserved = true;
		return { release() {
			if (!isReserved) return;
			isReserved = false;
			reserved -= bytes;
			admitWaiting();
		} };
	}
	function admitWaiting() {
		for (let [first] = waiting; first && hasRoom(first.bytes); [first] = waiting) {
			waiting.shift();
			first.resolveWith(reserveNow(first.bytes));
		}
		clearInterval(timer);
		if (waiting.length > 0) timer = setInterval(admitWaiting, RECHECK_MS$1).unref();
	}
	function wait(bytes) {
		return new Promise((resolve) => {
			const entry = {
				bytes,
				resolveWith(reservation) {
					clearTimeout(timeout);
					resolve(reservation);
				}
			};
			const timeout = setTimeout(() => {
				waiting.splice(waiting.indexOf(entry), 1);
				admitWaiting();
				resolve(void 0);
			}, waitMs);
			waiting.push(entry);
			admitWaiting();
		});
	}
	return {
		/** The size of the largest body that is ever accepted. */
		largestBody: Math.floor(limitBytes / MEMORY_PER_BODY_BYTE),
		/** The bytes that are reserved now. */
		reservedBytes: () => reserved,
		/**
		* Waits for memory, for a limited time. `undefined` when there is none. The reservation of a
		* body without a length grows as it arrives.
		*/
		async reserve(bodyBytes) {
			const bytes = bodyBytes * MEMORY_PER_BODY_BYTE;
			const isSmall = bodyBytes <= SMALL_BYTES;
			if (hasRoom(bytes) && (isSmall || waiting.length === 0)) return reserveNow(bytes);
			return await wait(bytes);
		}
	};
}
const PART_SIZES = {
	bytes: 262144,
	values: 4e3,
	longBytes: 262144
};
function tooManyNodes({ maxNodes }) {
	return `Maximum number of nodes ${maxNodes} exceeded.`;
}
/** The kind of a byte outside of strings. */
const Kind = {
	Other: 0,
	Blank: 1,
	Quote: 2,
	Open: 3,
	Close: 4,
	Comma: 5,
	Colon: 6
};
/** The kind of each byte. */
const KINDS = kindsOf();
function kindsOf() {
	const kinds = /* @__PURE__ */ new Uint8Array(256);
	for (const blank of [
		32,
		9,
		10,
		13
	]) kinds[blank] = Kind.Blank;
	kinds[34] = Kind.Quote;
	kinds[123] = kinds[91] = Kind.Open;
	kinds[125] = kinds[93] = Kind.Close;
	kinds[44] = Kind.Comma;
	kinds[58] = Kind.Colon;
	return kinds;
}
// src/http/json/builder.ts
/** Thrown when the body is not UTF-8. */
var NotUtf8 = class extends Error {
	name = "NotText";
};
/** A long string is read in pieces of this size. */
const PIECE_BYTES = 2097152;
const BACKSLASH = 92;
const BYTE_ORDER_MARK$1 = 65279;
/**
* Builds a scanned text part by part and lets other work run between two parts. Numbers keep their
* digits. Throws SyntaxError, or NotUtf8.
*/
async function buildJson(scan, takeBytes) {
	const { cuts, bytes } = scan;
	if (cuts.length === 0) return parsePart(textOf$1(takeBytes(0, bytes)), scan);
	const joiner = new PartJoiner();
	let start = 0;
	for (const cut of cuts) {
		const part = takeBytes(start, cut.end);
		const text = textOf$1(part) + (cut.isLong ? "\"\"" : "");
		joiner.add(text, cut, part.subarray.bind(part), start);
		await yieldToEventLoop();
		if (cut.isLong) joiner.replaceLast(await longText(takeBytes(cut.end, cut.next)));
		start = cut.next;
	}
	joiner.addLast(textOf$1(takeBytes(start, bytes)), scan);
	return joiner.root;
}
/** Joins the parts of a text. The innermost open container gets the content of the next part. */
var PartJoiner = class {
	root = null;
	#openContainers = [];
	#open = [];
	#lastMember;
	/**
	* A placeholder name for the member that continues in the next part. A client cannot have chosen
	* it.
	*/
	#continuation = randomUUID();
	add(text, cut, bytes, offset) {
		const name = ({ nameAt, nameEnd }) => JSON.parse(textOf$1(bytes(nameAt - offset, nameEnd - offset)));
		const { open, stillOpen } = cut;
		this.#merge(parsePart(this.#opening() + text + closingBrackets(open), cut));
		this.#openContainers.length = stillOpen;
		this.#open = open;
		while (this.#openContainers.length < open.length) {
			const holder = this.#openContainers.at(-1);
			const at = open[this.#openContainers.length - 1];
			this.#openContainers.push(holder && at ? lastOf(holder, at, name) : this.root);
		}
		const top = this.#openContainers.at(-1);
		const innermost = open.at(-1);
		const isNamed = innermost !== void 0 && innermost.nameAt >= offset;
		this.#lastMember = {
			holder: top,
			name: isNamed ? name(innermost) : ""
		};
	}
	addLast(text, scan) {
		if (this.#openContainers.length > 0) this.#merge(parsePart(this.#opening() + text, scan));
	}
	/** Sets the string that was left out at the end of the previous part. */
	replaceLast(text) {
		const { holder, name = "" } = this.#lastMember ?? {};
		if (holder === void 0) this.root = text;
		else if (Array.isArray(holder)) holder[holder.length - 1] = text;
		else setMember(holder, name, text);
	}
	#merge(part) {
		if (this.#openContainers.length === 0) this.root = part;
		let value = part;
		const innermost = this.#openContainers.at(-1);
		for (const target of this.#openContainers) {
			const next = Array.isArray(value) ? value[0] : value[this.#continuation];
			if (target !== innermost && !Array.isArray(value)) delete value[this.#continuation];
			moveMembers(target, value, target === innermost ? 0 : 1);
			value = next;
		}
	}
	#opening() {
		const last = this.#open.length - 1;
		return this.#open.map(({ type }, i) => {
			if (type !== 123) return "[";
			return i === last ? "{" : `{"${this.#continuation}":`;
		}).join("");
	}
};
function closingBrackets(open) {
	return open.map(({ type }) => type === 123 ? "}" : "]").toReversed().join("");
}
function lastOf(holder, at, nameOf) {
	return Array.isArray(holder) ? holder.at(-1) : holder[nameOf(at)];
}
/** Moves the members of an object, or the items of a list from `first` on. */
function moveMembers(target, from, first) {
	if (Array.isArray(target)) {
		const list = from;
		for (let i = first; i < list.length; i++) target.push(list[i] ?? null);
		return;
	}
	const members = from;
	for (const name of Object.keys(members)) setMember(target, name, members[name] ?? null);
}
function parsePart(text, { isExact }) {
	if (isExact) return parseJson(text);
	const isMarked = text.charCodeAt(0) === BYTE_ORDER_MARK$1;
	return JSON.parse(isMarked ? text.slice(1) : text);
}
function textOf$1(bytes) {
	if (!isUtf8(bytes)) throw new NotUtf8();
	return bytes.toString("utf8");
}
/** Returns the text of a string with its quotes. */
async function longText(bytes) {
	const pieces = [];
	const pieceEnd = bytes.indexOf(BACKSLASH) < 0 ? plainPieceEnd : escapedPieceEnd;
	for (let start = 1; start < bytes.length - 1;) {
		const end = Math.min(bytes.length - 1, pieceEnd(bytes, start));
		pieces.push(JSON.parse(`"${textOf$1(bytes.subarray(start, end))}"`));
		start = end;
		await yieldToEventLoop();
	}
	return pieces.join("");
}
/** Returns the end of a piece of a string without escapes, which is not inside a character. */
function plainPieceEnd(bytes, start) {
	return characterEnd(bytes, start + PIECE_BYTES);
}
/** Returns the end of a piece, which is not inside a character or an escape. */
function escapedPieceEnd(bytes, start) {
	let end = start;
	while (end < start + PIECE_BYTES) if (bytes[end] !== BACKSLASH) end++;
	else end += bytes[end + 1] === 117 ? 6 : 2;
	return characterEnd(bytes, end);
}
function characterEnd(bytes, at) {
	let end = at;
	while (((bytes[end] ?? 0) & 192) === 128) end++;
	return end;
}
// src/http/json/charset.ts
/** The labels under which JSON is UTF-8. */
const UTF8 = /^(utf-?8|(us-)?ascii)$/i;
/**
* Returns the transcoder for the charset that a content type names. `undefined`: the body is read
* as UTF-8. v1 obeys the charset, and some libraries (Apache HttpClient, Spring) write ISO-8859-1
* by default.
*/
function transcoderFor(contentType) {
	const label = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? "")?.[1];
	if (label === void 0 || UTF8.test(label)) return void 0;
	const decoder = decoderFor(label);
	return decoder && ((chunk) => Buffer.from(decoder.decode(chunk, { stream: true })));
}
function decoderFor(label) {
	try {
		return new TextDecoder(label);
	} catch {
		return;
	}
}
// src/http/json/scanner.ts
/** The bytes of a string that are checked one by one before the native search is used. */
const SCAN_BYTES = 32;
/** Shorter numbers without an exponent always fit a double. */
const MAX_SAFE_NUMBER_CHARS = 16;
const BYTE_ORDER_MARK = [
	239,
	187,
	191
];
/** The last token, as far as it decides which token may follow. */
const Last = {
	Nothing: 0,
	OpenList: 1,
	OpenObject: 2,
	Comma: 3,
	Colon: 4,
	Value: 5,
	Name: 6
};
/** The longest member name: names cannot be read in pieces. */
const MAX_NAME_BYTES = 262144;
/**
* Counts the values of a JSON text while its bytes arrive, checks its structure, and finds the cuts
* that give parts which are valid JSON themselves. The parser checks numbers, words and escapes.
*/
var JsonScanner = class {
	#limits;
	#sizes;
	#graphMember;
	#cuts = [];
	#types = [];
	#nameStarts = [];
	#nameEnds = [];
	#kept = 0;
	#last = Last.Nothing;
	#offset = 0;
	#values = 0;
	#nodes = 0;
	#isGraph = false;
	#cutAt = {
		bytes: 0,
		values: 0
	};
	#isExact = false;
	#isAfterLong = false;
	#fault;
	/** Start of the unfinished string, number or word; -1 when there is none. */
	#stringAt = -1;
	#isEscaped = false;
	#tokenAt = -1;
	#tokenHasExponent = false;
	#tokenIsNumber = false;
	#name = [];
	constructor(limits, graphMember, sizes = PART_SIZES) {
		this.#limits = limits;
		this.#sizes = sizes;
		this.#graphMember = graphMember === void 0 ? void 0 : Buffer.from(graphMember);
	}
	/** Scans the next bytes. After a fault all further bytes are ignored. */
	push(chunk) {
		let i = 0;
		while (i < chunk.length && this.#fault === void 0) if (this.#stringAt >= 0) i = this.#string(chunk, i);
		else if (this.#tokenAt >= 0) i = this.#token(chunk, i);
		else i = this.#structure(chunk, i);
		this.#offset += chunk.length;
		return this.#fault;
	}
	/** Ends the scan: the body is complete. */
	end() {
		if (this.#tokenAt >= 0) this.#endToken(this.#offset);
		if (this.#fault) return this.#fault;
		if (!(this.#last === Last.Value && this.#types.length === 0 && this.#stringAt < 0)) return {
			kind: "syntax",
			message: "Unexpected end of the text"
		};
		return {
			cuts: this.#cuts,
			bytes: this.#offset,
			values: this.#values,
			isExact: this.#isExact
		};
	}
	#structure(chunk, start) {
		let i = start;
		while (i < chunk.length && KINDS[chunk[i] ?? 0] === Kind.Blank) i++;
		if (i === chunk.length) return i;
		const byte = chunk[i] ?? 0;
		const at = this.#offset + i;
		switch (KINDS[byte] ?? Kind.Other) {
			case Kind.Quote:
				this.#beginString(at);
				break;
			case Kind.Open:
				this.#open(byte, at);
				break;
			case Kind.Close:
				this.#close(byte, at);
				break;
			case Kind.Comma:
				this.#comma(at);
				break;
			case Kind.Colon:
				if (this.#last !== Last.Name) this.#unexpected(at);
				this.#last = Last.Colon;
				break;
			default:
				if (this.#last === Last.Nothing && byte === BYTE_ORDER_MARK[at]) return i + 1;
				this.#beginToken(byte, at);
		}
		return i + 1;
	}
	#unexpected(at) {
		this.#fault ??= {
			kind: "syntax",
			message: `Unexpected character at byte ${at}`
		};
	}
	#tooMuch(message) {
		this.#fault ??= {
			kind: "too much",
			message
		};
	}
	/** Begins a value. `false`: no value may begin here. */
	#begin(at) {
		const last = this.#last;
		if (!(last === Last.Nothing || last === Last.OpenList || last === Last.Colon) && !(last === Last.Comma && this.#types.at(-1) === 91)) return this.#unexpected(at);
		if (++this.#values > this.#limits.maxValues) this.#tooMuch(`Maximum number of JSON values ${this.#limits.maxValues} exceeded.`);
	}
	#open(byte, at) {
		this.#begin(at);
		if (byte === 123 && this.#types.length === 1) this.#beginGraph();
		if (this.#types.push(byte) > this.#limits.maxDepth) this.#tooMuch(`Maximum JSON depth ${this.#limits.maxDepth} exceeded.`);
		this.#nameStarts.push(-1);
		this.#nameEnds.push(-1);
		this.#last = byte === 123 ? Last.OpenObject : Last.OpenList;
	}
	#beginGraph() {
		const member = this.#graphMember;
		this.#isGraph = member !== void 0 && member.equals(Buffer.from(this.#name));
		this.#nodes = 0;
	}
	#close(byte, at) {
		const type = this.#types.pop();
		const isObject = type === 123;
		const isEmpty = this.#last === (isObject ? Last.OpenObject : Last.OpenList);
		if (!(type !== void 0 && byte === type + 2) || !(isEmpty || this.#last === Last.Value)) this.#unexpected(at);
		this.#nameStarts.pop();
		this.#nameEnds.pop();
		const depth = this.#types.length;
		if (depth < this.#kept) this.#kept = depth;
		if (depth < 2) this.#isGraph = false;
		this.#last = Last.Value;
		this.#isAfterLong = false;
	}
	#comma(at) {
		if (this.#last !== Last.Value || this.#types.length === 0) this.#unexpected(at);
		this.#last = Last.Comma;
		const { bytes, values } = this.#cutAt;
		if (at - bytes >= this.#sizes.bytes || this.#values - values >= this.#sizes.values || this.#isAfterLong) this.#cut({
			end: at,
			next: at + 1,
			isLong: false
		});
		this.#isAfterLong = false;
	}
	#cut(position) {
		const open = this.#types.map((type, i) => ({
			type,
			nameAt: this.#nameStarts[i] ?? -1,
			nameEnd: this.#nameEnds[i] ?? -1
		}));
		this.#cuts.push({
			...position,
			open,
			stillOpen: this.#kept,
			isExact: this.#isExact
		});
		this.#kept = open.length;
		this.#cutAt = {
			bytes: position.next,
			values: this.#values
		};
		this.#isExact = false;
	}
	#beginString(at) {
		const last = this.#last;
		const isInObject = this.#types.at(-1) === 123;
		if (last === Last.OpenObject || last === Last.Comma && isInObject) {
			this.#nameStarts[this.#nameStarts.length - 1] = at;
			this.#last = Last.Name;
			this.#name = [];
			if (this.#isGraph && this.#types.length === 2 && ++this.#nodes > this.#limits.maxNodes) this.#tooMuch(tooManyNodes(this.#limits));
		} else {
			this.#begin(at);
			this.#last = Last.Value;
		}
		this.#stringAt = at;
		this.#isEscaped = false;
	}
	/** Reads on inside a string, to the end of the string or of the chunk. */
	#string(chunk, start) {
		let i = start;
		const isRootName = this.#last === Last.Name && this.#types.length === 1;
		let isEscaped = this.#isEscaped;
		this.#isEscaped = false;
		for (let near = i + SCAN_BYTES; i < chunk.length; i++) {
			const byte = chunk[i];
			if (isEscaped) isEscaped = false;
			else if (byte === 92) isEscaped = true;
			else if (byte === 34) {
				this.#endString(this.#offset + i + 1);
				return i + 1;
			} else if (i >= near) {
				i = this.#skipToQuote(chunk, i) - 1;
				near = i + SCAN_BYTES;
				continue;
			}
			if (isRootName && this.#name.length <= 16) this.#name.push(byte ?? 0);
		}
		this.#isEscaped ||= isEscaped;
		return i;
	}
	/** Skips from an unescaped character to the next quote, or behind an escaped one. */
	#skipToQuote(chunk, from) {
		const found = chunk.indexOf(34, from);
		const end = found < 0 ? chunk.length : found;
		let slashes = 0;
		while (end - slashes > from && chunk[end - 1 - slashes] === 92) slashes++;
		if (slashes % 2 === 0) return end;
		if (found >= 0) return found + 1;
		this.#isEscaped = true;
		return end;
	}
	#endString(end) {
		const start = this.#stringAt;
		this.#stringAt = -1;
		if (this.#last === Last.Name) this.#nameEnds[this.#nameEnds.length - 1] = end;
		const length = end - start;
		if (this.#last === Last.Name) {
			if (length <= MAX_NAME_BYTES) return;
			this.#tooMuch(`Maximum length ${MAX_NAME_BYTES} of a member name exceeded.`);
		} else if (length > this.#sizes.longBytes) {
			this.#cut({
				end: start,
				next: end,
				isLong: true
			});
			this.#isAfterLong = true;
		}
	}
	#beginToken(byte, at) {
		this.#begin(at);
		this.#last = Last.Value;
		this.#tokenAt = at;
		this.#tokenIsNumber = byte === 45 || byte >= 48 && byte <= 57;
		this.#tokenHasExponent = false;
	}
	#token(chunk, start) {
		let i = start;
		for (; i < chunk.length; i++) {
			const byte = chunk[i] ?? 0;
			if (KINDS[byte] !== Kind.Other) {
				this.#endToken(this.#offset + i);
				return i;
			}
			if (byte === 101 || byte === 69) this.#tokenHasExponent = true;
		}
		return i;
	}
	#endToken(end) {
		const isLong = end - this.#tokenAt >= MAX_SAFE_NUMBER_CHARS;
		if (this.#tokenIsNumber && (this.#tokenHasExponent || isLong)) this.#isExact = true;
		this.#tokenAt = -1;
		this.#isAfterLong = false;
	}
};
// src/http/json-body.ts
/** The deepest nesting of a body. */
const MAX_JSON_DEPTH = 200;
const DEFAULT_LIMITS = {
	maxValues: 5e5,
	maxNodes: 1e4
};
/** The number of bytes that are scanned before other work gets its turn. */
const BYTES_PER_STEP = 1048576;
const RETRY_AFTER_S = 5;
/** The first reservation for a body without an announced length. */
const FIRST_RESERVATION_BYTES = 65536;
/** Fewer values need less memory than their text. */
const MANY_VALUES = 1e4;
/** The memory of a value beside its text, in the unit of bodies. */
const MEMORY_PER_VALUE = 16;
/** @internal */
function createBodyReader(readerOptions) {
	const { memory = createBodyMemory({ limitBytes: bodyMemoryBytes() }) } = readerOptions;
	const limits = {
		...DEFAULT_LIMITS,
		...readerOptions.limits,
		maxDepth: MAX_JSON_DEPTH
	};
	const readerMaxBytes = Math.min(readerOptions.maxBytes, memory.largestBody);
	return {
		/** The bytes that are reserved for bodies in progress. */
		reservedBytes: memory.reservedBytes,
		async read(httpExchange, options = {}) {
			const maxBytes = Math.min(readerMaxBytes, options.maxBytes ?? readerMaxBytes);
			const refusal = refusedByHeaders(httpExchange.req, maxBytes);
			if (refusal) return refusal;
			const reserveMore = reserverFor(httpExchange, memory);
			const scanner = new JsonScanner(limits, options.graphMember);
			const bytes = new BodyBytes(announcedBytes(httpExchange.req));
			const received = await receive(httpExchange.req, {
				scanner,
				bytes,
				reserveMore,
				maxBytes
			});
			if ("ok" in received) return received;
			const { values } = received;
			if (values > MANY_VALUES && !await reserveMore(values * MEMORY_PER_VALUE)) return memoryFull();
			return await build(received, bytes, {
				limits,
				...options
			});
		}
	};
}
/**
* Parses a complete text as JSON within the usual limits. `undefined` when it is not JSON or holds
* too much. Other work runs in between.
*/
async function parseWithinLimits(text) {
	const scanner = new JsonScanner({
		...DEFAULT_LIMITS,
		maxDepth: MAX_JSON_DEPTH
	});
	for (let at = 0; at < text.length; at += BYTES_PER_STEP) {
		if (at > 0) await yieldToEventLoop();
		if (scanner.push(text.subarray(at, at + BYTES_PER_STEP))) return void 0;
	}
	const scan = scanner.end();
	return "kind" in scan ? void 0 : await buildJson(scan, text.subarray.bind(text));
}
/** Reserves the memory of a body until its call is answered. */
function reserverFor({ res }, memory) {
	const reservations = [];
	const release = () => reservations.splice(0).forEach((one) => one.release());
	res.once("close", release);
	return async (bytes) => {
		const reservation = await memory.reserve(bytes);
		if (reservation === void 0) return false;
		reservations.push(reservation);
		if (res.destroyed) release();
		return true;
	};
}
function announcedBytes({ headers }) {
	return Number(headers["content-length"] ?? FIRST_RESERVATION_BYTES);
}
/** Counts the body while its bytes arrive. After bad JSON the rest is read and dropped. */
async function receive(request, { scanner, bytes, reserveMore, maxBytes }) {
	let reservedForBody = announcedBytes(request);
	if (!await reserveMore(reservedForBody)) return memoryFull();
	if (request.destroyed) return refusedBody(400, CUT_OFF);
	let size = 0;
	const transcode = transcoderFor(request.headers["content-type"]);
	const takeChunk = (received) => {
		const chunk = transcode?.(received) ?? received;
		size += chunk.length;
		if (size > maxBytes) return refusedBody(413, tooLargeText(maxBytes));
		const fault = scanner.push(chunk);
		if (fault?.kind === "too much") return refusedBody(413, fault.message);
		if (fault) {
			bytes.clear();
			return;
		}
		bytes.add(chunk);
		if (size <= reservedForBody) return void 0;
		const more = Math.max(reservedForBody, size - reservedForBody);
		reservedForBody += more;
		return reserveMore(more).then((isReserved) => isReserved ? void 0 : memoryFull());
	};
	const body = unpackedBody(request);
	const refusal = await eachChunk(body, takeChunk);
	stopUnpacking(body, request);
	if (refusal) return refusal;
	const scan = scanner.end();
	return "kind" in scan ? refusedScan(scan) : scan;
}
const CUT_OFF = "The body was cut off.";
const NOT_PACKED = "The body cannot be unpacked as its Content-Encoding says.";
/**
* Reads a body chunk by chunk. A `for await` loop that ends early would destroy the socket, and the
* answer with it.
*/
function eachChunk(body, takeChunk) {
	return new Promise((resolve, reject) => {
		const stop = (refusal) => {
			body.off("data", onData).off("end", onEnd).off("error", onError).off("close", onError);
			resolve(refusal);
		};
		const onError = (cause) => stop(refusedBody(400, isUnpackError(cause) ? NOT_PACKED : CUT_OFF));
		const onEnd = () => stop(void 0);
		function onData(chunk) {
			const taken = takeChunk(chunk);
			if (!(taken instanceof Promise)) return taken && stop(taken);
			body.pause();
			taken.then((refusal) => {
				if (refusal) stop(refusal);
				else body.resume();
			}, reject);
		}
		body.on("data", onData).once("end", onEnd).once("error", onError).once("close", onError);
	});
}
async function build(scan, bytes, { limits, graphMember, withText }) {
	const text = withText && bytes.take(0, scan.bytes);
	try {
		const value = await buildJson(scan, text ? text.subarray.bind(text) : bytes.take.bind(bytes));
		const graph = graphMember !== void 0 && isJsonObject(value) ? value[graphMember] : void 0;
		if ((isJsonObject(graph) ? Object.keys(graph).length : 0) > limits.maxNodes) return refusedBody(413, tooManyNodes(limits));
		return {
			ok: true,
			value,
			text: text?.toString("utf8")
		};
	} catch (error) {
		if (error instanceof NotUtf8) return refusedBody(400, "The body is not UTF-8 text.");
		return refusedScan({
			kind: "syntax",
			message: jsonFault(error)
		});
	}
}
function refusedScan({ kind, message }) {
	if (kind === "too much") return refusedBody(413, message);
	return {
		...refusedBody(400, `The body is not JSON: ${message}`),
		isSyntax: true
	};
}
function memoryFull() {
	return {
		...refusedBody(503, "The bodies of other calls take up the memory of the server: try again later."),
		retryAfterSeconds: RETRY_AFTER_S
	};
}
/** Creates the reader of all JSON bodies. One memory budget covers them and the queued prompts. */
function createBodies(config, queued, log) {
	const memory = createBodyMemory({
		limitBytes: bodyMemoryBytes(),
		queuedBytes: queued.bytes
	});
	const { maxUploadBytes, maxJsonValues: maxValues, maxNodes } = config;
	if (memory.largestBody < maxUploadBytes) {
		const { largestBody } = memory;
		log.warn({
			event: "limits.small_memory",
			maxUploadBytes,
			largestBody
		}, SMALL_MEMORY);
	}
	return createBodyReader({
		maxBytes: maxUploadBytes,
		limits: {
			maxValues,
			maxNodes
		},
		memory
	});
}
const SMALL_MEMORY = "this process has too little memory for a JSON body of --max-upload-size: it refuses bodies larger than largestBody";
// src/observability/traffic-log.ts
const MAX_TEXT_CHARS = 2e3;
function createTrafficLog({ log, secrets, promptIdOf }) {
	const links = createTrafficLinks(promptIdOf);
	function write(event, fields, message) {
		log.debug({
			event,
			...JSON.parse(secrets.redactedJson(fields))
		}, message);
	}
	function callFields(method, caller, args) {
		const { user } = caller;
		const { key, secrets: sent = [], ...fields } = describeArguments(method, args);
		for (const secret of [caller.credential, ...sent]) secrets.add(secret);
		const promptId = links.promptOf(caller, fields.jobId ?? key);
		return {
			operation: V2_CALLS[method],
			user,
			promptId,
			...fields
		};
	}
	async function logCall(method, call, args) {
		const caller = method === "health" ? NO_CALLER : args[0];
		const fields = callFields(method, caller, args.slice(1));
		const startedAt = performance.now();
		const answer = await call(...args);
		const ms = Math.round(performance.now() - startedAt);
		const described = describeAnswer(method, answer);
		const { user } = caller;
		const jobId = described.jobId ?? fields.jobId;
		const promptId = fields.promptId ?? links.promptOf(caller, jobId);
		if (promptId !== void 0 && jobId !== void 0) links.linkJob(user, jobId, promptId);
		write("v2.call", {
			...fields,
			...described,
			promptId,
			ms
		}, "v2 call");
		if (method !== "events") return answer;
		return observeEvents(answer, { onEvent(event) {
			write("v2.event", {
				user,
				promptId: links.promptOf({ user }, jobId),
				jobId,
				...describeEvent(event)
			}, "v2 event");
		} });
	}
	return {
		/** An HTTP call of a client that was answered. */
		httpCall({ url, promptIds, ...call }) {
			const { path } = readTarget(url);
			const event = isRouterPath(path) || isV2Path(path) ? "v2.client_call" : "v1.call";
			const [promptId] = promptIds;
			const more = promptIds.length > 1 ? { promptIds } : {};
			write(event, {
				...call,
				url: withoutCredentials(url),
				promptId,
				...more
			}, "call answered");
		},
		/** Calls in the name of this very object are about this prompt. */
		submission: links.linkCaller,
		/** A frame of a v1 socket. */
		frame(frame) {
			const { payload } = frame;
			const described = describeFrame(payload);
			const promptId = links.promptOfFrame(frame, described.promptId);
			const { user, sid, direction } = frame;
			const { type } = described;
			const bytes = frame.totalBytes ?? described.bytes;
			write("v1.frame", {
				direction,
				user,
				sid,
				promptId,
				type,
				text: typeof payload === "string" ? payload.slice(0, MAX_TEXT_CHARS) : void 0,
				bytes
			}, "v1 frame");
		},
		/** The same port; its calls and the events of its streams are logged. */
		wrap: (jobs) => interceptCalls(jobs, logCall)
	};
}
const NO_CALLER = { user: "" };
// src/prompts/durability.ts
/** The durability for each place where an upstream keeps its jobs. */
const PROMPT_DURABILITY = {
	/**
	* The jobs are in the same ledger. The record is written before the job, into the same log, and
	* the job is found by its label. A lost history entry is made again from the ended job.
	*/
	ledger: {
		record: "with its job",
		link: "transient",
		begun: "transient",
		history: "soon"
	},
	/** A service may not answer, and may have forgotten the job later. */
	service: {
		record: "before sending",
		link: "fsync",
		begun: "soon",
		history: "fsync"
	}
};
// src/files/foreign-folders.ts
/**
* Refuses graphs that name the upload folder of another user, in any input of any node. An engine
* does not separate users. These folders do, as long as no other user can name them.
*/
function createFolderCheck({ files, uploadFolderOf }) {
	return async (caller, { graph, resolvedFiles, outputs }) => {
		if (uploadFolderOf === void 0) return;
		const mentions = foldersIn(graph, resolvedFiles);
		if (mentions.length === 0) return;
		const ownedFolders = await foldersOf(caller.user, {
			files,
			uploadFolderOf
		});
		const foreign = mentions.filter(({ folders }) => folders.some((folder) => !ownedFolders.has(folder)));
		if (foreign.length > 0) throw foreignFolderError(foreign, graph, outputs);
	};
}
/**
* Returns the folders that a graph names. The caller's own files are sent by their ids, whatever
* their names.
*/
function foldersIn(graph, resolvedFiles) {
	const keyOf = (nodeId, input) => JSON.stringify([nodeId, input]);
	const found = resolvedFiles.filter(({ assetId }) => assetId !== MISSING_ASSET_ID);
	const resolved = new Set(found.map(({ nodeId, input }) => keyOf(nodeId, input)));
	return Object.entries(graph).flatMap(([nodeId, node]) => Object.entries(node?.inputs ?? {}).flatMap(([input, value]) => {
		if (resolved.has(keyOf(nodeId, input))) return [];
		const folders = [...textsIn(value), input].flatMap(uploadFoldersIn);
		return folders.length > 0 ? [{
			nodeId,
			input,
			folders
		}] : [];
	}));
}
function textsIn(value) {
	if (typeof value === "string") return [value];
	if (typeof value !== "object" || value === null) return [];
	if (Array.isArray(value)) return value.flatMap(textsIn);
	return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}
const TYPES = [
	"input",
	"output",
	"temp"
];
async function foldersOf(user, { files, uploadFolderOf }) {
	const lists = await Promise.all(TYPES.map((type) => files.list(user, type)));
	const folderOf = (row) => row.hash === null ? void 0 : uploadFolderOf?.({
		user,
		filePath: uploadPathOf(row),
		hash: row.hash
	});
	return new Set(lists.flat().flatMap((row) => folderOf(row) ?? []));
}
/** Returns the error that v1 has for a choice that is not in its list. */
function foreignFolderError(foreign, graph, outputs) {
	const errorsByNode = new Map(foreign.map(({ nodeId, input }) => {
		const details = `${input}: there is no such folder`;
		const extra_info = { input_name: input };
		return [nodeId, [{
			...NOT_IN_LIST,
			details,
			extra_info
		}]];
	}));
	const node_errors = nodeErrorsOf(errorsByNode, graph, outputs);
	const body = promptRefusal("prompt_outputs_failed_validation", "Prompt outputs failed validation");
	return new V1Error(400, promptFault({
		...body,
		node_errors
	}));
}
const NOT_IN_LIST = {
	type: "value_not_in_list",
	message: "Value not in list"
};
// src/translate/definition-errors.ts
const UPLOADS = [
	"image_upload",
	"audio_upload",
	"video_upload",
	"file_upload",
	"remote"
];
/**
* Derives from node definitions the errors that v1 reports for the outputs that it left out of an
* accepted prompt: one server runs the good outputs and does not mention the others. Empty when no
* output is good by the definitions, since they are then not those of the engine that accepted the
* prompt.
*/
function partialNodeErrors(graph, info, outputs) {
	const errorsByNode = dependenciesFirst(graph, outputs).map((id) => [id, errorsOf(graph, id, info)]).filter(([, errors]) => errors.length > 0);
	const found = nodeErrorsOf(new Map(errorsByNode), graph, outputs);
	return outputsWithoutErrors(found, outputs).length > 0 ? found : {};
}
function errorsOf(graph, id, info) {
	const className = classOf(graph, id);
	const inputs = nodeOf(graph, id)?.inputs;
	if (!Object.hasOwn(info, className) || !isJsonObject(inputs)) return [];
	const { required = {}, optional = {} } = info[className]?.input ?? {};
	const missing = Object.keys(required).filter((name) => !Object.hasOwn(inputs, name)).map((name) => errorEntry("required_input_missing", "Required input is missing", name, { input_name: name }));
	const wrong = Object.entries({
		...required,
		...optional
	}).flatMap(([name, spec]) => Object.hasOwn(inputs, name) ? valueError(name, spec, inputs[name]) ?? [] : []);
	return [...missing, ...wrong];
}
function valueError(name, spec, value) {
	if (!Array.isArray(spec) || value === void 0 || linkOf(value) !== void 0) return void 0;
	const [type = null, options = {}] = spec;
	const config = isJsonObject(options) ? options : {};
	const about = {
		input_name: name,
		received_value: value
	};
	if (Array.isArray(type)) return listError(type, config, about);
	if (type !== "INT" && type !== "FLOAT") return void 0;
	return limitError(spec, config, about);
}
/** Checks a value against a list of options. Only the engine knows which files exist. */
function listError(type, config, about) {
	const { input_name: name, received_value: value } = about;
	if (UPLOADS.some((flag) => flag in config) || type.includes(value) || isFile(value)) return void 0;
	return notInListError(name, [type, config], value);
}
/** True for a name of a file. Loaders without an upload flag list files, too. */
function isFile(value) {
	return typeof value === "string" && /\.\w{2,12}( \[\w+\])?$/.test(value);
}
function limitError(spec, { min, max }, about) {
	const value = numberOf(about.received_value);
	const [least, most] = [numberOf(min), numberOf(max)];
	if (value === void 0) return void 0;
	const more = {
		...about,
		input_config: spec
	};
	const shown = pythonStr(about.received_value);
	if (least !== void 0 && value < least) {
		const message = `Value ${shown} smaller than min of ${pythonStr(min)}`;
		return errorEntry("value_smaller_than_min", message, about.input_name, more);
	}
	if (most !== void 0 && value > most) {
		const message = `Value ${shown} bigger than max of ${pythonStr(max)}`;
		return errorEntry("value_bigger_than_max", message, about.input_name, more);
	}
}
function numberOf(value) {
	if (typeof value === "number") return value;
	return value instanceof LosslessNumber ? Number(value.toString()) : void 0;
}
// src/prompts/submit/draft.ts
/** The id of the prompt, unless the job gives it another one. */
function initialPromptId({ submission, plan }) {
	return submission.promptId ?? plan.promptKey;
}
/** Returns the record that is on disk before the first byte goes upstream. */
function toPromptRow(draft, state) {
	const { caller, submission, plan, graphJson, extraDataJson, createdAtMs } = draft;
	const known = {
		key: plan.promptKey,
		user: caller.user,
		promptId: initialPromptId(draft),
		jobId: null,
		number: submission.number,
		clientId: submission.clientId,
		createdAtMs,
		graphJson,
		extraDataJson,
		state
	};
	const stored = toStoredPlan(plan, state === "outbox" ? "not_sent" : "maybe_sent");
	return Object.assign({}, NEW_PROMPT, known, stored);
}
/**
* Records the prompt and makes this process its leader. On failure it has neither record nor
* leader.
*/
async function recordPrompt(row, { promptEventLog, ledger }, when) {
	await promptEventLog.claim(row);
	const inserted = insert(row, ledger, when);
	inserted.then(({ stored }) => stored).catch(() => promptEventLog.discard(row.key)).catch(() => {});
	return await inserted;
}
async function insert(row, { prompts }, when) {
	if (when === "with its job") return prompts.insertBeforeLater(row);
	await prompts.insert(row);
	return { stored: Promise.resolve() };
}
// src/prompts/submit/retry-policy.ts
const DEFAULT_RETRY_POLICY = {
	minWaitMs: 1e3,
	maxWaitMs: 6e4,
	defaultWaitMs: 2e3,
	retryMs: {
		first: 1e3,
		last: 3e4
	},
	searchMs: {
		first: 2e3,
		last: 3e4
	},
	searchWindowMs: 6e5,
	absentMs: 2e3,
	inFlightMs: 6e4
};
/** Returns the wait after a capacity refusal, before jitter. */
function retryAfterMs({ minWaitMs, maxWaitMs, defaultWaitMs }, error) {
	const requestedMs = error.retryAfterSeconds === void 0 ? defaultWaitMs : error.retryAfterSeconds * 1e3;
	return Math.min(maxWaitMs, Math.max(minWaitMs, requestedMs));
}
/** Adds up to a fifth, so that prompts that wait do not all retry at the same moment. */
function withJitter(ms) {
	return ms * (1 + Math.random() * .2);
}
/** Returns the wait after so many failures in a row, before jitter: twice as long each time. */
function backoffMs({ retryMs }, failures) {
	return Math.min(retryMs.last, retryMs.first * 2 ** Math.min(failures, 10));
}
// src/translate/late-rejection.ts
/**
* Returns the job error of a prompt that is refused after it was accepted: the refusal can only be
* shown as a failed run, on the first node with an error.
*/
function jobErrorOf(error, { body }, graph) {
	const [nodeId] = Object.keys(body.node_errors);
	const { message, details } = body.error;
	return {
		code: error.code,
		message: [
			message,
			details,
			nodeId === void 0 ? "" : nodeMessages(body.node_errors, nodeId)
		].filter((text, i, all) => text !== "" && all.indexOf(text) === i).join("\n"),
		...nodeId !== void 0 && {
			node_id: nodeId,
			class_type: classOf(graph, nodeId)
		}
	};
}
function nodeMessages(nodeErrors, nodeId) {
	return (nodeErrors[nodeId]?.errors ?? []).map(({ message, details }) => `${message}: ${details}`).join("\n");
}
// src/files/renew-assets.ts
/**
* Renews the files of a submission that was refused with `missing_asset`: those that are gone at
* the upstream, though their bytes still exist, get new records. The refusal was certain, so the
* prompt may be sent again, once and under a new key. `undefined` when that would not help.
*/
async function renewAssets(services, caller, { resolvedFiles, error }) {
	if (error.code !== "missing_asset") return void 0;
	const { areNamed, files } = missingFiles(resolvedFiles, error);
	const renewed = /* @__PURE__ */ new Map();
	for (const file of files) {
		if (renewed.has(file.assetId)) continue;
		if (!areNamed && (await services.jobs.asset(caller, file.assetId)).ok) continue;
		const assetId = await renewFile(services, caller, file);
		if (assetId === void 0) return void 0;
		renewed.set(file.assetId, assetId);
	}
	if (renewed.size === 0) return void 0;
	return resolvedFiles.map((file) => ({
		...file,
		assetId: renewed.get(file.assetId) ?? file.assetId
	}));
}
/** Returns the files that the refusal names; all of them when it names none. */
function missingFiles(resolvedFiles, { details }) {
	const named = isJsonObject(details) ? details["missing_ids"] : void 0;
	if (!Array.isArray(named) || named.length === 0) return {
		areNamed: false,
		files: resolvedFiles
	};
	const ids = new Set(named);
	return {
		areNamed: true,
		files: resolvedFiles.filter(({ assetId }) => ids.has(assetId))
	};
}
/**
* Returns the id of a new record of the file, from bytes that the upstream has or that can be
* uploaded again.
*/
async function renewFile({ jobs, files, reupload }, caller, file) {
	const { assetId, hash } = file;
	const created = hash === null ? void 0 : await jobs.assetFromHash(caller, {
		hash,
		filePath: uploadPathOf(file)
	});
	if (created?.ok && created.value.id !== assetId) return recordId(created.value.id);
	const uploadedId = await reupload?.(caller, file);
	if (uploadedId !== void 0) return uploadedId === assetId ? void 0 : uploadedId;
	const asset = await jobs.asset(caller, assetId);
	return asset.ok && asset.value.id !== assetId ? recordId(asset.value.id) : void 0;
	async function recordId(newId) {
		const row = await files.get(caller.user, file);
		if (row?.assetId === assetId) await files.put({
			...row,
			assetId: newId
		});
		return newId;
	}
}
// src/prompts/submit/send.ts
/** Sends the plans of prompts to the upstream. */
function createSubmissionSender({ jobs, ledger, reupload }) {
	const { files } = ledger;
	async function attempt(caller, plan, graphJson) {
		const result = await jobs.submit(caller, toSubmitRequest(plan, graphJson));
		if (result.ok) return {
			kind: "accepted",
			plan,
			job: result.value,
			nodeErrors: {}
		};
		const { error } = result;
		const kind = classifyError(error);
		if (kind === "unknown") return {
			kind,
			plan,
			error,
			mayResend: error.code !== KEY_REUSED
		};
		if (kind === "refused") return {
			kind,
			plan,
			error,
			refusal: toRefusal(error, plan)
		};
		return {
			kind,
			plan: error.outcome === "not_taken" ? withNewKey(plan) : plan,
			error
		};
	}
	/** Returns another plan that may be accepted; none if the refused plan may have made a job. */
	async function nextPlan(caller, sent) {
		const { plan, error, refusal } = sent;
		if (error.outcome === "refused_late") return void 0;
		const { placed } = plan;
		const renewed = plan.idempotencyKey === renewedKey(plan) ? void 0 : await renewAssets({
			jobs,
			files,
			reupload
		}, caller, {
			resolvedFiles: placed,
			error
		});
		if (renewed) return {
			...plan,
			placed: renewed,
			idempotencyKey: renewedKey(plan)
		};
		const validOutputs = outputsWithoutErrors(refusal.body.node_errors, plan.outputs);
		const isPartial = validOutputs.length > 0 && validOutputs.length < plan.outputs.length;
		return refusal.status === 400 && isPartial ? withOutputs(plan, validOutputs) : void 0;
	}
	/** Records the plan: a process that takes over must know which key may have made a job. */
	async function record(plan) {
		await ledger.prompts.setPlan(plan.promptKey, toStoredPlan(plan, "maybe_sent"));
	}
	/**
	* Sends a recorded plan. v2 takes a graph as a whole or not at all; v1 runs the valid outputs and
	* reports the rest.
	*/
	async function sendRecorded(caller, firstPlan, graphJson) {
		let nodeErrors = {};
		for (let plan = firstPlan;;) {
			const sent = await attempt(caller, plan, graphJson);
			if (sent.kind === "accepted") return {
				...sent,
				nodeErrors
			};
			if (sent.kind !== "refused") return sent;
			const next = await nextPlan(caller, sent);
			if (!(next !== void 0 && next.outputs === plan.outputs)) nodeErrors = {
				...nodeErrors,
				...sent.refusal.body.node_errors
			};
			if (next === void 0) return withNodeErrors(sent, nodeErrors);
			await record(next);
			plan = next;
		}
	}
	return {
		/**
		* Sends a plan that the ledger has unchanged. `graphJson`: the JSON of the plan's graph, if it
		* exists already.
		*/
		sendRecorded,
		/** Records the plan and sends it. */
		async send(caller, plan) {
			await record(plan);
			return sendRecorded(caller, plan);
		},
		/** Sends a plan that may have been sent before. Does not change the plan after a refusal. */
		async sendUnchanged(caller, plan) {
			await record(plan);
			return attempt(caller, plan);
		}
	};
}
function withNodeErrors(sent, nodeErrors) {
	const body = {
		...sent.refusal.body,
		node_errors: nodeErrors
	};
	return {
		...sent,
		refusal: {
			...sent.refusal,
			body
		}
	};
}
/** Returns the error of a prompt whose client cannot be told of the refusal any more. */
function refusalAsJobError({ error, refusal, plan }) {
	return jobErrorOf(error, refusal, plan.graph);
}
/** Returns the answer of `POST /prompt` to a refusal of this plan. */
function toRefusal(error, { graph, outputs, placed }) {
	return toPromptRefusal(error, graph, {
		outputs,
		resolvedFiles: placed
	});
}
const KEY_REUSED = "idempotency_key_reuse";
/** Used at most once: a file that is missing a second time is gone. */
function renewedKey(plan) {
	return changedKey(plan, "healed");
}
function classifyError(error) {
	if (error.outcome === "unknown" || error.code === KEY_REUSED) return "unknown";
	if (error.outcome === "not_sent" || error.outcome === "not_taken") return "unsent";
	return isCapacityRefusal(error) ? "no capacity" : "refused";
}
function toSubmitRequest(plan, graphJson) {
	const workflow = workflowOf(plan);
	return {
		workflow,
		...workflow === plan.graph && graphJson !== void 0 && { workflowJson: graphJson },
		extraData: plan.secrets,
		idempotencyKey: plan.idempotencyKey,
		...plan.idempotencyKey === plan.promptKey && { jobId: plan.promptKey },
		metadata: { [KEY_LABEL]: plan.promptKey },
		order: plan.number,
		provenance: {
			prompt: plan.graph,
			extraPngInfo: extraPngInfo(plan.extraData)
		}
	};
}
// src/prompts/submit/submit-draft.ts
/**
* Submits a checked prompt: makes a v2 job for it, or puts it into the outbox. Records the plan
* before the first byte goes upstream, and the answer before the client gets it.
*/
var DraftSubmitter = class {
	#options;
	constructor(options) {
		this.#options = options;
	}
	async submit(draft) {
		if (this.#options.outbox.hasWaiting(draft.caller.user)) return this.#queueBehindOthers(draft);
		const { record } = this.#options.durability;
		const row = toPromptRow(draft, "submitting");
		const { stored } = await this.#refusingStalled(recordPrompt(row, this.#options, record));
		reached("after-intent");
		const result = await this.#send(draft);
		await this.#whenStored(stored, draft, result);
		reached("after-submit");
		try {
			return await this.#apply(draft, result);
		} catch (error) {
			if (error instanceof LeadershipLost) return await this.#answerForOtherProcess(draft, result);
			if (!(error instanceof V1Error)) this.#options.promptEventLog.stopLeading(draft.plan.promptKey);
			throw error;
		}
	}
	/** Queues the prompt behind those of its user that wait already. */
	async #queueBehindOthers(draft) {
		const reservation = this.#options.outbox.reserve(draft.caller.user);
		if (!reservation) throw toV1Error(toRefusal(OUTBOX_FULL, draft.plan));
		try {
			const row = toPromptRow(draft, "outbox");
			await this.#refusingStalled(recordPrompt(row, this.#options, "before sending"));
			return await this.#putInOutbox(draft, reservation, 0);
		} finally {
			reservation.release();
		}
	}
	/** Rejects with a 503 when another process has taken the prompt over before it was recorded. */
	async #refusingStalled(recorded) {
		try {
			return await recorded;
		} catch (error) {
			throw error instanceof LeadershipLost ? toV1Error(serverStalled()) : error;
		}
	}
	/**
	* Waits for the record. Without a record the job must not run, not even when it was stored after
	* it.
	*/
	async #whenStored(stored, { caller }, result) {
		try {
			await this.#refusingStalled(stored);
		} catch (error) {
			if (result.kind === "accepted") await this.#options.jobs.cancel(caller, result.job.id).catch(() => {});
			throw error;
		}
	}
	/**
	* Sends the plan. A failure inside Holdover leaves the outcome unknown: the request may have been
	* sent.
	*/
	async #send({ caller, plan, graphJson }) {
		try {
			return await this.#options.sender.sendRecorded(caller, plan, graphJson);
		} catch (cause) {
			if (!(cause instanceof LeadershipLost)) {
				const facts = {
					event: "submission.send_failed",
					err: cause,
					user: caller.user
				};
				this.#options.log.error(facts, "sending a submission failed; its outcome is unknown");
			}
			return {
				kind: "unknown",
				plan,
				error: SUBMISSION_FAILED,
				mayResend: true
			};
		}
	}
	async #apply(draft, result) {
		switch (result.kind) {
			case "accepted": return this.#linkJob(draft, result);
			case "no capacity": return this.#queueUntilCapacity(draft, result);
			case "unsent": throw await this.#removeRefused(draft, unreachableUpstream());
			case "refused": throw await this.#removeRefused(draft, result.refusal);
			case "unknown": return this.#startRecovery(draft, result);
		}
	}
	async #linkJob(draft, result) {
		const { promptEventLog, linkJob } = this.#options;
		const { promptKey } = draft.plan;
		if (!promptEventLog.isLeader(promptKey)) throw new LeadershipLost();
		const jobId = isPathSafeId(result.job.id) ? result.job.id : promptKey;
		const prompt = this.#track(draft, draft.submission.promptId ?? jobId);
		await linkJob(prompt, result.plan, result.job);
		reached("after-attach");
		return this.#toAccepted(prompt, await this.#nodeErrorsOf(draft, result));
	}
	/**
	* Finds the node errors. A service that runs the valid outputs of a prompt may not report the
	* invalid ones.
	*/
	async #nodeErrorsOf({ caller, plan }, { nodeErrors }) {
		const { mayAcceptPartially, objectInfo } = this.#options;
		if (!mayAcceptPartially || Object.keys(nodeErrors).length > 0) return nodeErrors;
		return partialNodeErrors(plan.graph, await objectInfo(caller), plan.outputs);
	}
	/** Queues the prompt because the upstream has no capacity. No other prompt of this user waits. */
	async #queueUntilCapacity(draft, { plan, error }) {
		const { outbox, ledger, retryPolicy } = this.#options;
		const reservation = outbox.reserve(draft.caller.user);
		if (!reservation) throw await this.#removeRefused(draft, toRefusal(error, plan));
		try {
			const { promptKey } = plan;
			const isStored = ledger.prompts.setPlan(promptKey, toStoredPlan(plan, "not_sent"));
			await Promise.all([ledger.prompts.setState(promptKey, "outbox"), isStored]);
			const waitMs = retryAfterMs(retryPolicy, error);
			return await this.#putInOutbox({
				...draft,
				plan
			}, reservation, waitMs);
		} finally {
			reservation.release();
		}
	}
	async #putInOutbox(draft, reservation, waitMs) {
		const prompt = this.#track(draft, initialPromptId(draft));
		reservation.release();
		const submission = {
			prompt,
			plan: draft.plan,
			clientKnows: "accepted"
		};
		await this.#options.outbox.add({
			...submission,
			mayHaveBeenSent: false
		}, waitMs);
		reached("after-outbox");
		return this.#toAccepted(prompt, {});
	}
	/** The refusal is final: removes the prompt. */
	async #removeRefused(draft, refusal) {
		const { ledger, promptEventLog } = this.#options;
		const { promptKey } = draft.plan;
		if (await ledger.prompts.remove(promptKey).then(() => true).catch(ifLeadershipLost(false))) await promptEventLog.discard(promptKey);
		else await this.#trackOtherProcessPrompt(draft);
		return toV1Error(refusal);
	}
	async #startRecovery(draft, result) {
		const { ledger, follower, submissionRecovery } = this.#options;
		const { plan, mayResend, error } = result;
		await ledger.prompts.setState(draft.plan.promptKey, "unknown").catch(ifLeadershipLost(void 0));
		const prompt = this.#track(draft, initialPromptId(draft));
		follower.releaseFrames(prompt);
		const isEngineDown = error.engineDown === true;
		submissionRecovery.recover({
			prompt,
			plan,
			clientKnows: "unknown",
			mayResend,
			isEngineDown
		});
		throw toV1Error(submitUnknown(error, prompt.promptId));
	}
	/** Answers when another process has taken the prompt over. That process may have found a job. */
	async #answerForOtherProcess(draft, result) {
		const prompt = await this.#trackOtherProcessPrompt(draft);
		const error = "error" in result ? result.error : SUBMISSION_FAILED;
		if (!prompt) throw toV1Error(submitUnknown(error, initialPromptId(draft)));
		return this.#toAccepted(prompt, "nodeErrors" in result ? result.nodeErrors : {});
	}
	/**
	* Returns the prompt as the other process that leads it has recorded it: sockets get it under
	* that id.
	*/
	async #trackOtherProcessPrompt(draft) {
		const { ledger, follower } = this.#options;
		const { promptKey } = draft.plan;
		const row = await ledger.prompts.get(promptKey);
		follower.untrack(promptKey, row?.promptId);
		return row && this.#track(draft, row.promptId);
	}
	#track(draft, promptId) {
		const { plan, createdAtMs, caller, graphJson, extraDataJson } = draft;
		const { number, clientId } = draft.submission;
		const { promptKey: key, graph, extraData, outputs: targets } = plan;
		const identity = {
			key,
			promptId,
			number,
			clientId,
			createdAtMs
		};
		const content = {
			graph,
			graphJson,
			extraData,
			extraDataJson,
			targets
		};
		return this.#options.follower.trackPrompt(Object.assign(identity, content), caller);
	}
	#toAccepted(prompt, nodeErrors) {
		const { promptId, number } = prompt;
		const releaseFrames = () => this.#options.follower.releaseFrames(prompt);
		return {
			promptId,
			number,
			nodeErrors,
			releaseFrames
		};
	}
};
const SUBMISSION_FAILED = v2Error(500, "internal_error", "The submission broke off.");
const OUTBOX_FULL = v2Error(429, "queue_full", "Too many prompts are waiting for the job service to have room.", { retryAfterSeconds: 10 });
function toV1Error({ status, body, retryAfterSeconds }) {
	const headers = retryAfterHeader(retryAfterSeconds);
	return new V1Error(status, promptFault(body), {
		headers,
		blames: "job service"
	});
}
// src/prompts/accept.ts
/**
* Checks a submission, resolves the files it names, and submits it. A refusal is thrown as
* `V1Error`.
*/
function createAcceptor(options) {
	const { duplicateIds, fileResolver, draftSubmitter, clock } = options;
	const newKey = createPromptKeys();
	async function draftOf(caller, submission) {
		const { graph, subfolder } = submission;
		const outputs = chooseOutputs(submission, await options.objectInfo(caller));
		const placed = await fileResolver.resolve(caller, graph, subfolder);
		await options.refuseForeignFolders(caller, {
			graph,
			resolvedFiles: placed,
			outputs
		});
		const createdAtMs = clock.now();
		const details = {
			outputs,
			placed,
			caller,
			traceparent: options.spans?.traceparentOf(caller)
		};
		const plan = createPlan(newKey(createdAtMs), submission, details);
		return {
			caller,
			submission,
			plan,
			graphJson: await runInSteps(stringifySteps(plan.graph)),
			extraDataJson: await runInSteps(stringifySteps(plan.extraData)),
			createdAtMs
		};
	}
	return { async accept(caller, submission) {
		const existing = await duplicateIds.findResumed(caller, submission);
		if (existing) {
			const { promptId, number } = existing;
			return {
				promptId,
				number,
				nodeErrors: {},
				releaseFrames: () => {}
			};
		}
		duplicateIds.refuseDuplicate(caller, submission);
		const refusal = refuseShape(submission.graph);
		if (refusal) throw toV1Error(refusal);
		return draftSubmitter.submit(await draftOf(caller, submission));
	} };
}
/** Returns the outputs to execute. If the targets name no output, v1 answers with 400. */
function chooseOutputs({ graph, partialTargets }, info) {
	const chosen = chosenOutputs(outputNodes(graph, info), partialTargets);
	if (chosen.length > 0 || partialTargets === void 0) return chosen;
	throw new V1Error(400, plainError("prompt_no_outputs", "Prompt has no outputs"));
}
// src/prompts/cancel.ts
/**
* How long a cancel is awaited before the answer: until another process has removed the prompt from
* its outbox, or until the history of the ended job is written. v1 answers after the removal.
*/
const WAIT_MS$1 = {
	interval: 10,
	max: 2e3
};
/**
* Requests the end of prompts, in whichever process leads them. Their followers report the result.
*/
function createCancel(options) {
	const { ledger, promptEventLog, livePrompts, follower, jobCanceller, deadlineClock } = options;
	async function waitWhile(isPending) {
		const deadlineMs = deadlineClock.now() + WAIT_MS$1.max;
		while (isPending() && deadlineClock.now() < deadlineMs) await deadlineClock.sleep(WAIT_MS$1.interval);
	}
	async function cancelOne(prompt, caller) {
		prompt.cancelRequested = true;
		await ledger.prompts.askCancel(prompt.key, options.clock.now());
		reached("after-cancel-asked");
		await promptEventLog.requestCancel({
			key: prompt.key,
			user: prompt.caller.user
		});
		return promptEventLog.isLeader(prompt.key) ? cancelLed(prompt, caller) : cancelRemote(prompt, caller);
	}
	async function cancelLed(prompt, caller) {
		if (await options.outbox.cancel(prompt)) return;
		if (await options.submissionRecovery.cancel(prompt)) return;
		await jobCanceller.cancelJob(prompt, caller);
	}
	/**
	* A prompt without a job can be ended by its leader only; a job can be cancelled by any process.
	*/
	async function cancelRemote(prompt, caller) {
		await waitWhile(() => isInOutbox(prompt) && livePrompts.has(prompt));
		await jobCanceller.cancelJob(prompt, caller);
	}
	/** Waits for a limited time: a job that goes on running after a cancel does so in v1, too. */
	async function waitUntilRecorded(prompts) {
		const ended = prompts.filter(hasEnded);
		await waitWhile(() => ended.some((prompt) => livePrompts.has(prompt)));
	}
	return {
		cancel: async (prompts, caller) => {
			await Promise.all(prompts.map((prompt) => cancelOne(prompt, caller)));
			await waitUntilRecorded(prompts);
		},
		/**
		* Cancels the prompt if this process leads it: another process has recorded a cancel request.
		*/
		cancelRequested: (key) => {
			const prompt = follower.find(key);
			if (!prompt) return;
			prompt.cancelRequested = true;
			if (!promptEventLog.isLeader(key)) return;
			cancelLed(prompt, prompt.caller).catch((error) => {
				const { promptId, caller } = prompt;
				const facts = {
					event: "cancel.failed",
					err: error,
					user: caller.user,
					promptId
				};
				options.log.error(facts, "could not do a cancel that another process recorded");
				jobCanceller.cancelInBackground(prompt);
			});
		}
	};
}
// src/prompts/follow/cancel-job.ts
const RETRY_MS$1 = {
	first: 500,
	last: 1e4
};
const GIVE_UP_MS = 6e5;
/** Cancels jobs. Repeats a cancel while the upstream cannot be reached. */
function createJobCanceller({ jobs, livePrompts, log, deadlineClock }) {
	const stop = new AbortController();
	/** True when nothing is left to do: the job was cancelled, or cannot be. */
	async function requestCancel(prompt, caller = prompt.caller) {
		if (prompt.jobId === null) return true;
		const result = await jobs.cancel(caller, prompt.jobId);
		if (result.ok) {
			if (IS_TERMINAL[result.value.status]) prompt.status = result.value.status;
			return true;
		}
		const { status, code } = result.error;
		if (isGone(result.error)) prompt.status = "expired";
		const facts = {
			event: "cancel.refused",
			user: caller.user,
			jobId: prompt.jobId,
			code
		};
		log.warn(facts, "the upstream refused a cancel");
		return status < 500 && status !== 429 && status !== 401;
	}
	async function retryUntilDone(prompt) {
		const deadlineMs = deadlineClock.now() + GIVE_UP_MS;
		for (let waitMs = RETRY_MS$1.first;; waitMs = Math.min(waitMs * 2, RETRY_MS$1.last)) {
			await deadlineClock.sleep(waitMs, stop.signal);
			if (!livePrompts.has(prompt) || deadlineClock.now() > deadlineMs) return;
			if (await requestCancel(prompt).catch((error) => noteFailure(error, prompt))) return;
		}
	}
	function noteFailure(error, { caller: { user } }) {
		const facts = {
			event: "cancel.retry_failed",
			err: error,
			user
		};
		log.error(facts, "could not cancel a job; trying again");
		return false;
	}
	function retryInBackground(prompt) {
		retryUntilDone(prompt).catch((error) => {
			if (!stop.signal.aborted) noteFailure(error, prompt);
		});
	}
	return {
		/**
		* Cancels the job as `caller` (default: the user who submitted it). Resolves after the first
		* attempt; further attempts run in the background.
		*/
		async cancelJob(prompt, caller) {
			if (await requestCancel(prompt, caller)) return;
			retryInBackground(prompt);
		},
		/** Cancels a job in the background, for a cancel that no caller waits for. */
		cancelInBackground(prompt) {
			requestCancel(prompt).catch((error) => noteFailure(error, prompt)).then((isDone) => isDone || retryInBackground(prompt));
		},
		close: () => stop.abort()
	};
}
// src/sockets/preview-method.ts
/** The original's words for a prompt's `extra_data.preview_method`. Other words are ignored. */
const PROMPT_METHODS = [
	"default",
	"auto",
	"latent2rgb",
	"taesd",
	"none"
];
function previewMethodIn(value) {
	return PROMPT_METHODS.find((word) => word === value);
}
/**
* True when a socket gets pictures of this kind. The server's `none` wins over the prompt's
* setting. The settings do not affect results and the previews that a node makes itself.
*/
function acceptsPicture(kind, receiver, { server, prompt = "default" }) {
	if (kind !== "sampler") return true;
	if (server === "none" || prompt === "none") return false;
	if (rulesOf(receiver.dialect).samplerPreviews === "always" || receiver.watches) return true;
	return ACCEPTS[prompt === "default" ? server : prompt](receiver);
}
const acceptAlways = () => true;
const negotiated = (receiver) => receiver.wantsMetadata();
const ACCEPTS = {
	default: (receiver) => receiver.isBrowser || negotiated(receiver),
	auto: acceptAlways,
	latent2rgb: acceptAlways,
	taesd: acceptAlways,
	negotiated,
	none: () => false
};
// src/prompts/state/history-pruner.ts
/** History is pruned when it exceeds its limit by one percent, or after this many prompts. */
const MAX_PROMPTS_BETWEEN_PRUNES = 50;
/** Prunes the history of ended prompts, not after each prompt but often enough. */
var HistoryPruner = class {
	#prompts;
	#limits;
	#pruneEvery;
	#storedBytes = 0;
	#ended = 0;
	constructor(prompts, limits) {
		this.#prompts = prompts;
		this.#limits = limits;
		this.#pruneEvery = Math.min(MAX_PROMPTS_BETWEEN_PRUNES, Math.ceil(limits.count / 100));
	}
	noteStored(bytes) {
		this.#storedBytes += bytes;
	}
	/** Called after each prompt that has ended. */
	async noteEnded() {
		this.#ended++;
		if (!(this.#ended % this.#pruneEvery === 0) && this.#storedBytes <= this.#limits.bytes / 100) return;
		this.#storedBytes = 0;
		await this.#prompts.pruneHistory(this.#limits);
	}
};
// src/translate/progress-state.ts
/** The initial state of a prompt. */
function initialProgress({ promptId, graph }) {
	return {
		promptId,
		graph,
		phase: "new",
		isExact: false,
		cachedNodes: null,
		cachedSent: false,
		current: null,
		runs: /* @__PURE__ */ new Map(),
		classTypes: /* @__PURE__ */ new Map(),
		stateSentAtMs: Number.NEGATIVE_INFINITY,
		hasStateChanged: false,
		executed: [],
		files: /* @__PURE__ */ new Map(),
		outputs: /* @__PURE__ */ new Map(),
		outputsOf: /* @__PURE__ */ new Map(),
		unnamedUi: /* @__PURE__ */ new Map(),
		unsentFiles: /* @__PURE__ */ new Map(),
		sentOutputs: /* @__PURE__ */ new Map(),
		pendingPicture: null,
		messages: [],
		outcome: null,
		error: null,
		startedAtMs: null,
		endedAtMs: null
	};
}
/**
* True when some part of the run was reported. This is the difference between v1's `preparing` and
* `executing`.
*/
function hasEvidence(state) {
	return state.runs.size > 0 || state.outputs.size > 0;
}
/** Returns the message as the hosted service sends it: each node has its `class_type` as well. */
function withClassTypes(message, classTypes) {
	const nodes = Object.entries(message.data.nodes).map(([id, node]) => [id, {
		...node,
		class_type: classTypes.get(id) ?? ""
	}]);
	return {
		...message,
		data: {
			...message.data,
			nodes: Object.fromEntries(nodes)
		}
	};
}
// src/protocol/binary-frames.ts
/** Binary WebSocket frame types of v1; all integers are big-endian. */
const FRAME_TYPE = {
	previewImage: 1,
	text: 3,
	previewImageWithMetadata: 4
};
/** v1's image format tag in a type 1 frame. */
const FORMAT_TAG = {
	"image/jpeg": 1,
	"image/png": 2
};
/**
* Detects the format by the bytes. Clients decode by the tag, so the tag must match the bytes, not
* a label.
*/
function sniffPreview(image) {
	if (image[0] === 255 && image[1] === 216 && image[2] === 255) return "image/jpeg";
	if (image[0] === 137 && image[1] === 80 && image[2] === 78 && image[3] === 71) return "image/png";
}
/** Type 1: `u32 1, u32 format, image`; the image starts at byte 8. */
function previewFrame(image, mime) {
	return Buffer.concat([
		u32(FRAME_TYPE.previewImage),
		u32(FORMAT_TAG[mime]),
		image
	]);
}
/** Type 3: `u32 3, u32 id length, node id, text`. */
function textFrame(nodeId, text) {
	const id = Buffer.from(nodeId, "utf8");
	return Buffer.concat([
		u32(FRAME_TYPE.text),
		u32(id.length),
		id,
		Buffer.from(text, "utf8")
	]);
}
/**
* Type 4: `u32 4, u32 JSON length, JSON as Python writes it, image`. Only for sockets that
* negotiated it.
*/
function previewWithMetadataFrame(image, metadata) {
	const json = Buffer.from(pythonJson(metadata), "utf8");
	return Buffer.concat([
		u32(FRAME_TYPE.previewImageWithMetadata),
		u32(json.length),
		json,
		image
	]);
}
function u32(value) {
	const buffer = Buffer.allocUnsafe(4);
	buffer.writeUInt32BE(value);
	return buffer;
}
// src/translate/frame-limits.ts
/**
* The limit of each part of a frame that has no other one: common WebSocket libraries refuse frames
* over 1 MiB.
*/
const PART_CHARS = 65536;
const LIST_CHARS = 131072;
const STATE_CHARS = 524288;
const VALUE_CHARS = 16384;
const OUTPUT_CHARS = 786432;
const SHORTENED_MARK = "… (shortened)";
/** Shortens a text so that it fits into a frame even if every character must be escaped. */
function shortText$1(text) {
	return shorten(text, PART_CHARS);
}
/** Returns the first lines that fit, and a word about the rest. */
function shortLines(lines) {
	const kept = takeWhileFits(lines, PART_CHARS, costOf);
	if (kept.length === lines.length) return lines;
	return [...kept.length === 0 ? [shortText$1(lines[0] ?? "")] : kept, `${SHORTENED_MARK}\n`];
}
/** Returns as many ids as fit into a frame. */
function shortIds(ids) {
	return takeWhileFits(ids, LIST_CHARS, costOf);
}
/** Returns the inputs of a node with long values shortened and, past the limit, left out. */
function shortInputs(inputs) {
	const entries = Object.entries(inputs).map(([name, values]) => [name, values.map(shortValue)]);
	return Object.fromEntries(takeWhileFits(entries, PART_CHARS, costOf));
}
/**
* Returns the output of a node. Its texts are cut only when the whole would exceed a client's frame
* limit.
*/
function frameOutput(output) {
	if (costOf(output, OUTPUT_CHARS) <= OUTPUT_CHARS) return output;
	const entries = Object.entries(output).map(([key, items]) => [key, takeWhileFits(items.map(shortValue), LIST_CHARS, costOf)]);
	return Object.fromEntries(takeWhileFits(entries, OUTPUT_CHARS, costOf));
}
/** Returns the newest entries that fit, in their order. */
function newestThatFit(items, size) {
	return takeWhileFits(items.toReversed(), STATE_CHARS, size).toReversed();
}
function shortValue(value) {
	if (costOf(value, VALUE_CHARS) <= VALUE_CHARS) return value;
	return typeof value === "string" ? shorten(value, VALUE_CHARS) : SHORTENED_MARK;
}
/** Shortens a text. One character takes at most six when it is escaped. */
function shorten(text, maxChars) {
	return costOf(text, maxChars) <= maxChars ? text : `${text.slice(0, Math.floor(maxChars / 6))}${SHORTENED_MARK}`;
}
function takeWhileFits(items, budget, size) {
	let left = budget;
	const end = items.findIndex((item) => {
		left -= size(item, left);
		return left < 0;
	});
	return end < 0 ? items : items.slice(0, end);
}
/** Returns an upper bound of the length as JSON. Stops counting above the budget. */
function costOf(value, budget) {
	if (typeof value === "string") return textCost(value, budget);
	if (typeof value !== "object" || value === null) return 26;
	if (value instanceof LosslessNumber) return value.toString().length + 2;
	const parts = Array.isArray(value) ? value : Object.entries(value).flat();
	let cost = 2;
	for (const part of parts) {
		cost += costOf(part, budget - cost) + 2;
		if (cost > budget) return cost;
	}
	return cost;
}
function textCost(text, budget) {
	let cost = 4;
	for (let i = 0; i < text.length && cost <= budget; i++) {
		const code = text.charCodeAt(i);
		if (code < 32 || code > 126) cost += 6;
		else cost += code === 34 || code === 92 ? 2 : 1;
	}
	return cost;
}
// src/translate/progress/progress-emit.ts
const FIRST_STEP = {
	value: 0,
	max: 1,
	state: "running",
	hasReported: false
};
/** Emits `execution_start`, once. */
function startPrompt(update) {
	const { state, atMs } = update;
	if (state.phase !== "new") return;
	state.phase = "started";
	state.startedAtMs = atMs;
	emitForHistory(update, {
		type: "execution_start",
		data: {
			prompt_id: state.promptId,
			timestamp: atMs
		}
	});
}
/**
* Emits `execution_cached` once, always second, even when it names no node. It waits until the
* upstream has named the cached nodes, or has shown that it will not.
*/
function emitCached(update) {
	startPrompt(update);
	const { state, atMs } = update;
	if (state.cachedSent) return;
	state.cachedSent = true;
	emitForHistory(update, {
		type: "execution_cached",
		data: {
			nodes: shortIds(state.cachedNodes ?? []),
			prompt_id: state.promptId,
			timestamp: atMs
		}
	});
}
/** Starts a node, once as in v1: first its `progress_state`, then `executing`. */
function startNode(update, nodeId) {
	const { state } = update;
	if (displayNode(state.graph, nodeId) === void 0 || state.runs.has(nodeId)) return;
	emitCached(update);
	state.runs.set(nodeId, {
		startedAtMs: update.atMs,
		endedAtMs: null,
		...FIRST_STEP
	});
	emitState(update);
	emitExecuting(update, nodeId);
}
/** Makes this node the running node of v1 clients. */
function emitExecuting(update, nodeId) {
	const { state } = update;
	emitPendingPicture(update);
	state.current = nodeId;
	emit(update, {
		type: "executing",
		data: {
			node: nodeId,
			display_node: displayIdOf(update, nodeId),
			prompt_id: state.promptId
		}
	});
}
/** Emits `progress_state` and `progress` of a running node, with the picture of this step. */
function emitStep(update, nodeId, step) {
	const { state } = update;
	const run = state.runs.get(nodeId);
	if (run?.state !== "running") return;
	const picture = state.pendingPicture?.picture.nodeId === nodeId ? state.pendingPicture.picture : void 0;
	const isRepeated = run.hasReported && run.value === step.value && run.max === step.max;
	if (!state.isExact && run.max === step.max && step.value < run.value || isRepeated && !picture) return;
	state.runs.set(nodeId, {
		...run,
		...step,
		hasReported: true
	});
	if (picture) state.pendingPicture = null;
	const data = {
		...step,
		prompt_id: state.promptId,
		node: nodeId
	};
	state.hasStateChanged = true;
	update.effects.push({
		kind: "step",
		...isStateDue(state, update.atMs) && {
			state: takeState(update),
			classTypes: state.classTypes
		},
		progress: {
			type: "progress",
			data
		},
		...picture && { picture }
	});
}
/** Marks the node as finished: v1 fills its bar, whatever its steps were. */
function markFinished(update, nodeId) {
	const { state, atMs } = update;
	const known = state.runs.get(nodeId);
	if (known?.state === "finished") return;
	if (known) state.executed.push(nodeId);
	const run = known ?? {
		...FIRST_STEP,
		startedAtMs: null
	};
	state.runs.set(nodeId, {
		...run,
		value: run.max,
		state: "finished",
		endedAtMs: atMs
	});
	emitState(update);
}
/**
* Emits `progress_state`, which names every started node. To send it at every change would cost the
* square of the number of nodes. For a large graph it is sent at intervals, and before the end of
* the prompt.
*/
function emitState(update) {
	update.state.hasStateChanged = true;
	emitStateIfDue(update);
}
/** Emits a delayed `progress_state` when it is due. */
function emitStateIfDue(update) {
	if (isStateDue(update.state, update.atMs)) emitPendingState(update);
}
/** Emits a delayed `progress_state` in any case, because the end comes next. */
function emitPendingState(update) {
	const { state, effects } = update;
	if (!state.hasStateChanged) return;
	effects.push({
		kind: "json",
		message: takeState(update),
		classTypes: state.classTypes
	});
}
function takeState({ state, atMs }) {
	state.hasStateChanged = false;
	state.stateSentAtMs = atMs;
	return progressStateMessage(state);
}
/**
* Emits `executed` with all outputs of the node so far; `null` for a cached node without outputs.
*/
function emitExecuted(update, nodeId, output) {
	const { state } = update;
	emitCached(update);
	state.unsentFiles.delete(nodeId);
	state.unnamedUi.delete(nodeId);
	state.sentOutputs.set(nodeId, output);
	emit(update, {
		type: "executed",
		data: {
			node: nodeId,
			display_node: displayIdOf(update, nodeId),
			output: output && frameOutput(output),
			prompt_id: state.promptId
		}
	});
}
/**
* Emits the picture now, or keeps it for its step. Type 1 frames have no node id, so the node of a
* result becomes the running one first.
*/
function emitPicture(update, picture, when) {
	emitPendingPicture(update);
	if (picture.kind === "result" && update.state.current !== picture.nodeId) emitExecuting(update, picture.nodeId);
	if (when === "now") update.effects.push({
		kind: "picture",
		picture
	});
	else update.state.pendingPicture = {
		picture,
		sinceMs: update.atMs
	};
}
/** Returns the picture of an output that only sockets get. */
function resultPicture(update, output) {
	return {
		nodeId: output.node_id,
		displayNodeId: displayIdOf(update, output.node_id),
		kind: "result",
		assetId: output.id,
		contentType: output.content_type
	};
}
/** Emits a picture whose step did not come. */
function emitPendingPicture(update) {
	const { state } = update;
	if (state.pendingPicture) update.effects.push({
		kind: "picture",
		picture: state.pendingPicture.picture
	});
	state.pendingPicture = null;
}
function emit(update, message) {
	update.effects.push({
		kind: "json",
		message
	});
}
/** Emits the message and keeps it, since history shows the payload that the sockets got. */
function emitForHistory(update, message, exception = {}) {
	update.effects.push({
		kind: "json",
		message,
		...exception
	});
	update.state.messages = [...update.state.messages, [message.type, message.data]];
}
/** Emits the output of a node, unless the same output was emitted before. */
function emitIfChanged(update, nodeId, output) {
	const sent = update.state.sentOutputs.get(nodeId);
	if (sent === void 0 || !isSameJson(sent, output)) emitExecuted(update, nodeId, output);
}
/** Returns the id of the node in the graph that the client sent. */
function displayIdOf(update, nodeId) {
	return displayNode(update.state.graph, nodeId) ?? nodeId;
}
/** From this many started nodes on, `progress_state` is sent at intervals, not at every change. */
const LARGE_GRAPH_NODES = 100;
/**
* At most twenty messages a second: with some 190 bytes a node, a prompt stays below 2 MB a second.
*/
const STATE_INTERVAL_MS = {
	min: 50,
	perNode: .1,
	max: 250
};
/** Milliseconds between two `progress_state` messages; 0: no limit. */
function stateIntervalMs(begunNodes) {
	if (begunNodes <= LARGE_GRAPH_NODES) return 0;
	return Math.min(STATE_INTERVAL_MS.max, Math.max(STATE_INTERVAL_MS.min, begunNodes * STATE_INTERVAL_MS.perNode));
}
/**
* True when the next `progress_state` may be sent at this time, also when the clock was set back.
*/
function isStateDue({ runs, stateSentAtMs }, atMs) {
	return atMs < stateSentAtMs || atMs - stateSentAtMs >= stateIntervalMs(runs.size);
}
/** Returns `progress_state`, which lists all started nodes; of a huge graph, only the newest. */
function progressStateMessage(state) {
	const { promptId, runs } = state;
	const shown = newestThatFit([...runs], ([id]) => 4 * id.length + promptId.length + 160);
	const nodes = Object.fromEntries(shown.map(([id, run]) => [id, nodeState(id, run, state)]));
	for (const [id] of shown) if (!state.classTypes.has(id)) state.classTypes.set(id, classOf(state.graph, id));
	return {
		type: "progress_state",
		data: {
			prompt_id: promptId,
			nodes
		}
	};
}
function nodeState(nodeId, { value, max, state }, { promptId, graph }) {
	const display = displayNode(graph, nodeId) ?? nodeId;
	return {
		value,
		max,
		state,
		node_id: nodeId,
		prompt_id: promptId,
		display_node_id: display,
		parent_node_id: display === nodeId ? null : display,
		real_node_id: display
	};
}
// src/translate/progress/progress-outputs.ts
/** Records an output. A node with files that were not sent yet is marked for sending. */
function recordOutput(update, output) {
	const { state, atMs } = update;
	if (state.outputs.has(output.id)) return "known";
	state.outputs.set(output.id, output);
	if (!isListed(output)) return "new";
	const owner = ownerOf(output, state.graph);
	addTo(state.outputsOf, owner, output);
	state.unsentFiles.set(owner, atMs);
	return "new";
}
/**
* Finishes a node that the upstream reports as finished. `ui` absent: the node has no output, and
* none is sent. A node whose files have no names yet is sent as soon as they have.
*/
function finishNode(update, nodeId, ui) {
	const { state } = update;
	if (state.runs.get(nodeId)?.state === "finished") return;
	emitCached(update);
	if (state.pendingPicture?.picture.nodeId === nodeId) emitPendingPicture(update);
	if (ui === null) emitExecuted(update, nodeId, null);
	else if (ui) emitUi(update, nodeId, ui);
	markFinished(update, nodeId);
}
/** Emits the nodes whose files have got their names. */
function emitNamedUi(update) {
	for (const [nodeId, ui] of update.state.unnamedUi) emitUi(update, nodeId, ui);
}
/** For derived progress: emits all files of a node so far. Repeated when more files come. */
function emitFiles(update, nodeId) {
	const { state } = update;
	if (!state.unsentFiles.has(nodeId)) return;
	emitExecuted(update, nodeId, v1FilesOf(state.outputsOf.get(nodeId) ?? [], state.files, classOf(state.graph, nodeId)));
}
/** For derived progress: another node runs, so the previous one is finished. */
function finishCurrent(update) {
	const { current, pendingPicture: held } = update.state;
	if (current === null) return;
	if (held?.picture.nodeId === current) emitPendingPicture(update);
	emitFiles(update, current);
	markFinished(update, current);
}
function emitUi(update, nodeId, ui) {
	const output = v1OutputOf(ui, update.state.files);
	if (output) return emitIfChanged(update, nodeId, output);
	update.state.unnamedUi.set(nodeId, ui);
}
// src/translate/progress/progress-end.ts
/** Emits everything that is missing of an ended job, then its end. */
function finishWithJob(update, { job, files }) {
	const { state } = update;
	for (const [id, file] of files) state.files.set(id, file);
	if (job.x_cached_nodes && !state.cachedNodes) state.cachedNodes = job.x_cached_nodes;
	if (job.status === "canceled" && job.started_at === null && job.outputs.length === 0) return endCanceled(update);
	emitCached(update);
	emitPendingPicture(update);
	emitMissedPictures(update, job.outputs.filter((output) => output.x_websocket === true));
	for (const [nodeId, output] of v1OutputsOf(job, state.files, state.graph)) emitIfChanged(update, nodeId, output);
	if (job.status === "succeeded") return endSucceeded(update);
	if (job.status === "failed") return endWithError(update, "failed", job.error ?? UNEXPLAINED_ERROR);
	if (job.status === "canceled") return endCanceled(update);
	return endLost(update, "its record has expired");
}
/**
* Ends a prompt whose job ended in an unknown way. v1 has a status word for this, and clients need
* an error.
*/
function endLost(update, reason) {
	endWithError(update, "lost", {
		code: "lost",
		message: `job lost: ${reason}`,
		x_exception_type: "ServiceError"
	});
}
/**
* Ends a prompt that was interrupted or deleted from the queue. After a deletion the original sends
* nothing, and waiting clients hang; Holdover sends the interruption and the end, without a start.
*/
function endCanceled(update) {
	const { state, atMs } = update;
	if (state.phase === "started") emitCached(update);
	emitPendingPicture(update);
	emitPendingState(update);
	const nodeId = displayIdOf(update, state.current ?? "");
	emitForHistory(update, {
		type: "execution_interrupted",
		data: {
			prompt_id: state.promptId,
			node_id: nodeId,
			node_type: classOf(state.graph, nodeId),
			executed: shortIds(state.executed),
			timestamp: atMs
		}
	});
	closeProgress(update, "canceled");
}
const UNEXPLAINED_ERROR = {
	code: "job_failed",
	message: "execution failed"
};
function endSucceeded(update) {
	const { state, atMs } = update;
	for (const [nodeId, run] of state.runs) if (run.state === "running") markFinished(update, nodeId);
	emitPendingState(update);
	emitForHistory(update, {
		type: "execution_success",
		data: {
			prompt_id: state.promptId,
			timestamp: atMs
		}
	});
	closeProgress(update, "succeeded");
}
function endWithError(update, outcome, error) {
	emitCached(update);
	emitPendingPicture(update);
	emitPendingState(update);
	update.state.error = error;
	const { own, documented } = exceptionTypes(error);
	emitForHistory(update, errorMessage(update, error, own), { documented });
	closeProgress(update, outcome);
}
function closeProgress(update, outcome) {
	const { state, atMs } = update;
	Object.assign(state, {
		phase: "ended",
		outcome,
		endedAtMs: atMs
	});
	const closing = {
		type: "executing",
		data: {
			node: null,
			prompt_id: state.promptId
		}
	};
	update.effects.push({
		kind: "end",
		outcome,
		closing
	});
}
/**
* Makes the error message, with its keys in v1's order. `current_outputs` names all nodes of the
* prompt, cached or not.
*/
function errorMessage(update, error, exceptionType) {
	const { state, atMs } = update;
	const nodeId = displayIdOf(update, error.node_id ?? state.current ?? "");
	return {
		type: "execution_error",
		data: {
			prompt_id: state.promptId,
			node_id: nodeId,
			node_type: classOf(state.graph, nodeId) || (error.class_type ?? ""),
			executed: shortIds(state.executed),
			exception_message: shortText$1(error.message).replace(/(?<!\n)\n*$/, "\n"),
			exception_type: exceptionType,
			traceback: shortLines(tracebackLines(error.traceback)),
			current_inputs: shortInputs(error.x_current_inputs ?? literalInputs(update, nodeId)),
			current_outputs: shortIds(Object.keys(state.graph)),
			timestamp: atMs
		}
	};
}
/**
* Returns the inputs as they were submitted: only the upstream knows the values of linked inputs.
*/
function literalInputs(update, nodeId) {
	const literal = Object.entries(nodeOf(update.state.graph, nodeId)?.inputs ?? {}).filter(([, value]) => linkOf(value) === void 0);
	return Object.fromEntries(literal.map(([name, value]) => [name, [value]]));
}
/**
* Emits the socket images that the stream has missed, each on its own node. They are results, so
* they come before the end.
*/
function emitMissedPictures(update, outputs) {
	const { state } = update;
	for (const output of outputs.filter(({ id }) => !state.outputs.has(id))) {
		state.outputs.set(output.id, output);
		startNode(update, output.node_id);
		emitPicture(update, resultPicture(update, output), "now");
	}
}
// src/translate/progress.ts
/** How long a picture waits for its step, and how long a node with files waits for more files. */
const MAX_WAIT_MS$3 = {
	heldPicture: 250,
	leftNode: 250,
	currentNode: 750
};
/**
* Translates the events of one job into v1 messages. If the upstream reports each node (`x_node`),
* these reports are used; else nodes are derived from progress and outputs. Duplicates, gaps and
* polls in place of a stream make no difference. After the end no message is emitted.
*/
function reduceProgress(state, input) {
	if (state.phase === "ended") return {
		state,
		effects: []
	};
	const update = {
		state: { ...state },
		effects: [],
		atMs: input.atMs
	};
	apply(update, input);
	return {
		state: update.state,
		effects: update.effects
	};
}
/** When an `idle` input could emit something; `null`: nothing is pending. */
function idleDueMs(state) {
	if (state.phase === "ended") return null;
	const held = state.pendingPicture ? [state.pendingPicture.sinceMs + MAX_WAIT_MS$3.heldPicture] : [];
	const files = state.isExact ? [] : [...state.unsentFiles].map(([id, sinceMs]) => sinceMs + maxWaitMsFor(state, id));
	const nodes = state.hasStateChanged ? [state.stateSentAtMs + stateIntervalMs(state.runs.size)] : [];
	const due = Math.min(...held, ...files, ...nodes);
	return Number.isFinite(due) ? due : null;
}
function apply(update, input) {
	switch (input.kind) {
		case "event": return applyEvent(update, input.event);
		case "output":
			update.state.files.set(input.output.id, input.file);
			return applyOutput(update, input.output);
		case "snapshot": return applySnapshot(update, input);
		case "settled":
			if (!IS_TERMINAL[input.job.status]) return applySnapshot(update, input);
			return finishWithJob(update, input);
		case "lost": return endLost(update, input.reason);
		case "cancelled-before-start": return endCanceled(update);
		case "idle": return applyIdle(update);
	}
}
function applyEvent(update, event) {
	switch (event.event) {
		case "status": return applyStatus(update, event.data.status, event.data.x_cached_nodes);
		case "progress": return applyProgress(update, event.data);
		case "preview": return applyPreview(update, event.data);
		case "x_node": return applyNode(update, event.data);
		case "x_text":
			emitCached(update);
			update.effects.push({
				kind: "text",
				nodeId: displayIdOf(update, event.data.node_id),
				text: event.data.text
			});
	}
}
/** Applies a status. A terminal one emits nothing, since v1's last frames need the job itself. */
function applyStatus(update, status, cachedNodes) {
	if (status === "running") startPrompt(update);
	if (cachedNodes === void 0) return;
	update.state.isExact = true;
	update.state.cachedNodes = cachedNodes;
	if (update.state.phase === "started") emitCached(update);
}
function applyProgress(update, progress) {
	if (isStub(progress)) return;
	startPrompt(update);
	const nodeId = progress.current_node ?? null;
	const max = progress.steps ?? 0;
	const value = progress.step ?? null;
	if (nodeId !== null) moveTo(update, nodeId);
	const target = nodeId ?? update.state.current;
	if (target === null || value === null || max <= 0) return;
	emitStep(update, target, {
		value: Math.min(Math.max(value, 0), max),
		max
	});
}
/**
* True for a placeholder: one self-hosted upstream answers polls with zeros, whatever the job does.
*/
function isStub(progress) {
	const content = progress.current_node ?? progress.step ?? null;
	return progress.value === 0 && progress.nodes_total === 0 && content === null;
}
/**
* For derived progress: the previous node is finished. A finished node does not run again, since
* polls may be stale.
*/
function moveTo(update, nodeId) {
	const { state } = update;
	if (state.runs.has(nodeId) || displayNode(state.graph, nodeId) === void 0) return;
	if (!state.isExact) finishCurrent(update);
	startNode(update, nodeId);
}
function applyNode(update, node) {
	const { state } = update;
	state.isExact = true;
	startPrompt(update);
	if (node.phase === "started") return startNode(update, node.node_id);
	if (displayNode(state.graph, node.node_id) !== void 0) finishNode(update, node.node_id, node.ui);
}
function applyPreview(update, preview) {
	const mime = sniffPreview(preview.bytes);
	if (mime === void 0) return;
	const nodeId = runningNodeFor(update, preview.node_id);
	if (nodeId === void 0) return;
	const kind = preview.x_own ? "own" : "sampler";
	emitPicture(update, {
		nodeId,
		displayNodeId: displayIdOf(update, nodeId),
		kind,
		mime,
		bytes: preview.bytes
	}, preview.x_with_step ? "with-step" : "now");
}
/**
* Returns the running node that gets the picture. Type 1 frames have no node id: they belong to the
* node of the last `executing`.
*/
function runningNodeFor(update, nodeId) {
	const { state } = update;
	const isRunning = (id) => state.runs.get(id)?.state === "running";
	if (displayNode(state.graph, nodeId) === void 0) return state.current !== null && isRunning(state.current) ? state.current : void 0;
	if (!state.isExact && state.current === null) moveTo(update, nodeId);
	return isRunning(nodeId) ? nodeId : void 0;
}
function applyOutput(update, output) {
	if (recordOutput(update, output) === "known") return emitNamedUi(update);
	startPrompt(update);
	emitNamedUi(update);
	if (output.x_websocket !== true) return;
	moveTo(update, output.node_id);
	emitPicture(update, resultPicture(update, output), output.x_with_step ? "with-step" : "now");
}
function applySnapshot(update, { job, files }) {
	for (const [id, file] of files) update.state.files.set(id, file);
	applyStatus(update, job.status, job.x_cached_nodes);
	for (const output of job.outputs) if (output.x_websocket !== true) recordOutput(update, output);
	if (job.outputs.length > 0) startPrompt(update);
	emitNamedUi(update);
	for (const [nodeId, ui] of Object.entries(job.x_ui ?? {})) if (v1OutputOf(ui, update.state.files)) finishNode(update, nodeId, ui);
	if (job.progress) applyProgress(update, job.progress);
}
function applyIdle(update) {
	const { state } = update;
	emitStateIfDue(update);
	if (state.pendingPicture && hasWaited(update, state.pendingPicture.sinceMs, MAX_WAIT_MS$3.heldPicture)) emitPendingPicture(update);
	if (state.isExact) return;
	for (const [nodeId, sinceMs] of state.unsentFiles) if (hasWaited(update, sinceMs, maxWaitMsFor(state, nodeId))) emitFiles(update, nodeId);
}
/** True when the wait is over. A clock that was set back must not repeat it. */
function hasWaited({ atMs }, sinceMs, maxWaitMs) {
	return atMs < sinceMs || atMs - sinceMs >= maxWaitMs;
}
function maxWaitMsFor(state, nodeId) {
	return nodeId === state.current ? MAX_WAIT_MS$3.currentNode : MAX_WAIT_MS$3.leftNode;
}
// src/prompts/state/linked-job.ts
/** Reads from the record the job that another process linked to the prompt. */
function readLinkedJob(livePrompts, prompt, row) {
	if (!row || row.jobId === null) return;
	livePrompts.setJobId(prompt, row.jobId);
	Object.assign(prompt, {
		graph: parseJson(row.graphJson),
		targets: parseJson(row.targetsJson),
		status: "queued"
	});
}
// src/prompts/follow/send-frames.ts
/**
* Last stage of the progress pipeline: sends the effects of a prompt to its channel, except the
* end.
*/
var FrameSender = class {
	#prompt;
	#options;
	constructor(prompt, options) {
		this.#prompt = prompt;
		this.#options = options;
	}
	/**
	* Sends the effect, or keeps it for a late socket. `undefined`: that is done; only a picture that
	* has to be fetched takes time.
	*/
	send(effect, position) {
		const { channel } = this.#prompt;
		const picture = "picture" in effect ? effect.picture : void 0;
		if (picture && "assetId" in picture) return this.#sendFetched(effect, picture, position);
		const frame = toFrame(effect, picture && toPicture(picture, picture.bytes));
		if (frame) channel.send(frame, position);
	}
	#sendFetched(effect, picture, position) {
		const { channel } = this.#prompt;
		const load = async () => toFrame(effect, toPicture(picture, await this.#fetch(picture.assetId)));
		if (!this.#hasReceiver()) {
			channel.sendLater(load, position);
			return;
		}
		return load().then((frame) => frame && channel.send(frame, position));
	}
	/** False when no socket here waits for the result and another process leads the prompt. */
	#hasReceiver() {
		const { key, channel } = this.#prompt;
		return this.#options.promptEventLog.isLeader(key) || channel.hasListener();
	}
	async #fetch(assetId) {
		const { caller } = this.#prompt;
		const bytes = await readImageBytes(this.#options.jobs, {
			caller,
			assetId
		});
		if (bytes.ok) return bytes.value;
		const facts = {
			event: "socket.picture_failed",
			user: caller.user,
			assetId
		};
		this.#options.log.warn(facts, "could not read a picture for the sockets");
	}
};
function toFrame(effect, picture) {
	if (effect.kind === "json" || effect.kind === "text") return effect;
	if (effect.kind === "picture") return picture && {
		kind: "picture",
		picture
	};
	const { state, progress } = effect;
	return {
		kind: "step",
		...state && { state },
		progress,
		...picture && { picture }
	};
}
function toPicture(effect, bytes) {
	if (bytes === void 0 || bytes.length <= 4) return void 0;
	const { nodeId, displayNodeId, kind } = effect;
	const mime = sniffPreview(bytes);
	return mime && {
		nodeId,
		displayNodeId,
		kind,
		mime,
		bytes
	};
}
// src/prompts/follow/apply-entry.ts
/**
* Third stage of the progress pipeline: applies the log entries of one prompt. Reduces inputs to
* frames, and updates what the queue shows.
*/
var EntryApplier = class {
	#prompt;
	#options;
	#frameSender;
	#receivedUpTo = {
		client: 0,
		hosted: 0
	};
	/** The position of the entry that is being applied, if that takes time. */
	#applying;
	#state;
	/** True when the prompt had a job and waits to be sent again. */
	#hadJob = false;
	/** True when the job of the prompt did not begin at once. */
	#isInQueue = false;
	#endEffect;
	constructor(prompt, options) {
		this.#prompt = prompt;
		this.#options = options;
		this.#frameSender = new FrameSender(prompt, options);
	}
	/** Applies the entry at this position of the log. `undefined`: the entry is already applied. */
	apply(entry, position) {
		const applied = this.#applyEntry(entry, position);
		if (applied) return this.#whenApplied(applied, position);
		this.#markReached(position);
	}
	/**
	* Returns the last position whose frames a socket has completely, when it got frames up to
	* `position`: frames of an entry that is still being applied are not complete.
	*/
	completeUpTo(position) {
		return Math.min(position, (this.#applying ?? Infinity) - 1);
	}
	/** Returns the state of the progress. Before the first input the graph is not final yet. */
	state() {
		const { promptId } = this.#prompt;
		return this.#state ?? initialProgress({
			promptId,
			graph: this.#prompt.graph
		});
	}
	/** True when the prompt has ended. Called often, so it must not load a waiting prompt. */
	hasEnded() {
		return this.#state?.phase === "ended";
	}
	/** When an `idle` input is due; `null`: no such input is due. */
	nextDueMs() {
		return this.#state === void 0 ? null : idleDueMs(this.#state);
	}
	async #whenApplied(applied, position) {
		this.#applying = position;
		await applied.finally(() => this.#applying = void 0);
		this.#markReached(position);
	}
	#applyEntry(entry, position) {
		const { livePrompts, hub } = this.#options;
		const prompt = this.#prompt;
		switch (entry.kind) {
			case "input": return this.#applyInput(entry.input, position);
			case "waits":
				if (prompt.jobId !== null) livePrompts.clearJobId(prompt);
				this.#applyWait(this.#hadJob ? "job_lost" : "in_outbox");
				break;
			case "sought":
				this.#applyWait("searching");
				break;
			case "attached": return this.#applyLinked();
			case "released":
				prompt.isReleased = true;
				hub.channels.supersedeOthers(prompt.channel);
				hub.sendStatus(prompt.caller.user);
				break;
			case "taken":
				prompt.isResumed = true;
				livePrompts.foundCredential(prompt);
				break;
			case "recorded":
				this.#sendClosing(position);
				break;
			case "removed":
				livePrompts.remove(prompt);
				this.#options.spans?.left(prompt.key);
				hub.channels.close(prompt.channel);
		}
	}
	#applyWait(reason) {
		this.#options.livePrompts.setWaitReason(this.#prompt, reason);
		this.#notifyOf(reason);
	}
	#notifyOf(reason) {
		const { promptId, caller } = this.#prompt;
		const { notification } = pendingRow(reason);
		if (!notification) return;
		this.#options.hub.notify(caller.user, NOTIFICATION_TEXTS[notification](promptId));
	}
	/** Marks that the job is in the queue. Its user is told once, not at each move of the queue. */
	#setInQueue() {
		if (!this.#isInQueue) this.#notifyOf("job_queued");
		this.#isInQueue = true;
	}
	async #applyLinked() {
		const { livePrompts, ledger } = this.#options;
		this.#hadJob = true;
		livePrompts.removeFromOutbox(this.#prompt);
		if (this.#prompt.jobId !== null) return;
		readLinkedJob(livePrompts, this.#prompt, await ledger.prompts.get(this.#prompt.key));
	}
	#applyInput(input, position) {
		this.#updateStatusFrom(input);
		if (hasPlaceInQueue(input)) this.#setInQueue();
		if (this.#state === void 0 && isStillQueued(input)) return void 0;
		const { state, effects } = reduceProgress(this.state(), input);
		this.#state = state;
		this.#prompt.hasEvidence = hasEvidence(state);
		this.#prompt.nodeRuns = state.runs;
		this.#prompt.startedAtMs = state.startedAtMs;
		if (position > 0 && effects.length > 0 && effects.every(isSentNow)) for (const group of this.#prompt.channel.receiverGroups()) this.#markReceived(group, position);
		return this.#sendAll(effects, position);
	}
	/** Sends effects in their order: those behind a picture that has to be fetched wait for it. */
	#sendAll(effects, position) {
		for (const [at, effect] of effects.entries()) {
			const sent = this.#send(effect, position);
			if (sent) return sent.then(() => this.#sendAll(effects.slice(at + 1), position));
		}
	}
	#send(effect, position) {
		if (effect.kind !== "end") return this.#frameSender.send(effect, position);
		this.#endEffect = effect;
		this.#prompt.isEnding = true;
	}
	/**
	* Marks that the log is applied up to this position. Position 0: no other process has the prompt.
	*/
	#markReached(position) {
		if (position === 0) return;
		for (const group of this.#prompt.channel.receivedBy(position)) this.#markReceived(group, position);
	}
	#markReceived(group, position) {
		if (position <= this.#receivedUpTo[group]) return;
		this.#receivedUpTo[group] = position;
		this.#options.promptEventLog.markReceived(this.#prompt.key, group, position);
	}
	#updateStatusFrom(input) {
		if (input.kind === "event" && input.event.event === "status") this.#updateStatus(input.event.data.status);
		else if (input.kind === "snapshot" && input.job.status === "running") this.#updateStatus("running");
	}
	/** v1 sends the count again when a prompt leaves the queue. */
	#updateStatus(status) {
		const starts = status === "running" && this.#prompt.status === "queued";
		if (!IS_TERMINAL[status]) this.#prompt.status = status;
		if (starts) this.#options.hub.sendStatus(this.#prompt.caller.user);
	}
	/** Sends v1's last frame. Most clients read the history at the same moment. */
	#sendClosing(position) {
		const { livePrompts, hub } = this.#options;
		const { channel, caller } = this.#prompt;
		livePrompts.remove(this.#prompt);
		hub.sendStatus(caller.user);
		if (this.#endEffect) channel.send({
			kind: "json",
			message: this.#endEffect.closing
		}, position);
		hub.channels.close(channel);
		this.#options.spans?.ended(this.#prompt.key, this.state().outcome ?? "lost");
	}
};
/** True when an input says only that the job is still queued. Thousands may wait beside it. */
function isStillQueued(input) {
	const queued = queuedStatusIn(input);
	return queued !== void 0 && queued.x_cached_nodes === void 0;
}
/** True for an event that tells the place of the job among those that wait. */
function hasPlaceInQueue(input) {
	return typeof queuedStatusIn(input)?.queue_position === "number";
}
function queuedStatusIn(input) {
	if (input.kind !== "event" || input.event.event !== "status") return void 0;
	return input.event.data.status === "queued" ? input.event.data : void 0;
}
/**
* True for an effect that is sent at once. The end is not, and a picture that must be fetched is
* not.
*/
function isSentNow(effect) {
	if (effect.kind === "end") return false;
	return !("picture" in effect && effect.picture && "assetId" in effect.picture);
}
// src/prompts/follow/end-order.ts
/** The longest wait for earlier prompts whose jobs cannot be read. */
const MAX_WAIT_MS$2 = 5e3;
/**
* Orders the ends of resumed prompts. Jobs that ended while no process followed them are read in
* any order; their prompts end in the order in which they were added, so that the history of the
* user shows them as they ran.
*/
function createEndOrder() {
	const last = /* @__PURE__ */ new Map();
	return { add(user) {
		const earlier = last.get(user) ?? Promise.resolve();
		const { promise, resolve: pass } = createDeferred();
		const all = Promise.all([earlier, promise]).then(() => {
			if (last.get(user) === all) last.delete(user);
		});
		last.set(user, all);
		return {
			whenEarlierPassed: () => completesWithin(MAX_WAIT_MS$2, earlier),
			pass
		};
	} };
}
// src/prompts/follow/ending-prompts.ts
/** The time limit for an upstream that reports an end but never returns the ended job. */
const MAX_WAIT_MS$1 = 1e3;
/**
* The prompts whose job has ended but whose end is not sent yet: their job is read once more and
* their history is written. The next job may run already. v1 clients get its frames after the end
* of the prompt before, as from a server that runs one prompt after the other.
*/
function createEndingPrompts() {
	const byUser = /* @__PURE__ */ new Map();
	return {
		begin(user, key) {
			const prompts = byUser.get(user) ?? /* @__PURE__ */ new Map();
			byUser.set(user, prompts);
			if (!prompts.has(key)) prompts.set(key, createDeferred());
		},
		finish(user, key) {
			const prompts = byUser.get(user);
			prompts?.get(key)?.resolve();
			prompts?.delete(key);
			if (prompts?.size === 0) byUser.delete(user);
		},
		/** Resolves when no prompt of the user is ending, at the latest after a second. */
		async whenFinished(user) {
			const prompts = byUser.get(user);
			if (!prompts) return;
			await completesWithin(MAX_WAIT_MS$1, Promise.all([...prompts.values()].map(({ promise }) => promise)));
		}
	};
}
// src/prompts/follow/followed-prompt.ts
/** A prompt that this process follows, and the conditions before its events are consumed. */
var FollowedPrompt = class {
	prompt;
	entryApplier;
	/** Opened as soon as the job is known. */
	eventStream;
	/**
	* True when this process has answered the client; `LivePrompt.isReleased`: when any process has.
	*/
	isAnswered = false;
	/** True when no further entries are applied. */
	isClosed = false;
	/** Entries of another process wait for this promise while the client is being answered here. */
	blockedUntil;
	/** The turn of a resumed prompt, whose job may have ended before jobs that are read earlier. */
	turn;
	#released = new Latch();
	#answered = new Latch();
	#stop = new AbortController();
	constructor(prompt, entryApplier) {
		this.prompt = prompt;
		this.entryApplier = entryApplier;
	}
	/** Resolves when frames of the prompt may reach sockets. */
	get released() {
		return this.#released.opened();
	}
	/** Resolves when this process has answered the client of the prompt. */
	get answered() {
		return this.#answered.opened();
	}
	/** Aborted when another process takes the prompt over, and when this one closes. */
	get signal() {
		return this.#stop.signal;
	}
	release() {
		this.#released.open();
	}
	markAnswered() {
		this.isAnswered = true;
		this.#answered.open();
	}
	/** Stops consuming events. The prompt can be followed again after `restart`. */
	stop() {
		this.turn?.pass();
		this.#stop.abort();
	}
	restart() {
		this.#stop = new AbortController();
		this.eventStream = void 0;
	}
};
// src/translate/history-limit.ts
/** Shorter texts stay whole; of longer ones the beginning is kept. */
const WHOLE_CHARS = 1e3;
const START_CHARS = 100;
const LEFT_OUT = "The graph of this prompt is larger than history keeps (--history-graph-limit); it is left out.";
/**
* Returns the prompt as history shows it when graph and extra data take more than `limitBytes` as
* JSON: with long texts shortened and, if that is still too much, without both.
*/
function withinLimit(submitted, { sizeBytes, limitBytes }) {
	if (sizeBytes <= limitBytes) return submitted;
	const graph = shortenTexts(submitted.graph);
	const extraData = shortenTexts(submitted.extraData);
	if (Buffer.byteLength(stringifyJson([graph, extraData])) <= limitBytes) return {
		...submitted,
		graph,
		extraData
	};
	return {
		...submitted,
		graph: {},
		extraData: { holdover_left_out: LEFT_OUT }
	};
}
function shortenTexts(value) {
	return typeof value === "string" ? shortText(value) : mapParts(value, shortenTexts);
}
function shortText(text) {
	if (text.length <= WHOLE_CHARS) return text;
	const start = text.slice(0, START_CHARS).replace(/[\uD800-\uDBFF]$/, "");
	return `${start}… (${text.length - start.length} more characters are left out of the history)`;
}
// src/prompts/state/outcome.ts
/**
* Returns the record of an ended prompt: its history entry, its graph within the limit, its times.
*/
async function toOutcome(prompt, state, limitBytes) {
	const { graph, extraData } = prompt.lazy;
	const texts = {
		graphJson: toJsonText(graph),
		extraDataJson: toJsonText(extraData)
	};
	const shown = withinLimit(prompt, {
		sizeBytes: Buffer.byteLength(texts.graphJson) + Buffer.byteLength(texts.extraDataJson),
		limitBytes
	});
	const shortened = shown === prompt ? void 0 : toTexts(shown);
	const nodeTimes = nodeTimesJson(state);
	return {
		...shortened && { shortened },
		entryJson: await runInSteps(historySteps(state, shown, shortened ?? texts)),
		statusWord: endWord(state.outcome ?? "lost", state.error?.code),
		startedAtMs: state.startedAtMs,
		endedAtMs: state.endedAtMs ?? prompt.createdAtMs,
		...nodeTimes !== void 0 && { nodeTimesJson: nodeTimes }
	};
}
function toTexts({ graph, extraData }) {
	return {
		graphJson: stringifyJson(graph),
		extraDataJson: stringifyJson(extraData)
	};
}
// src/prompts/follow/progress-input-kinds.ts
/**
* True when the event only names a node that is known to have begun: an entry would say nothing
* new.
*/
function isKnown(event, { runs }) {
	if (event.event !== "progress") return false;
	const { current_node: nodeId, step } = event.data;
	return typeof nodeId === "string" && typeof step !== "number" && runs.has(nodeId);
}
/** True when the input says that a job runs. */
function startsJob(input) {
	return statusOf(input) === "running";
}
/** True when the input shows that a node of the job is running, or has run. */
function showsActivity(input) {
	if (input.kind === "event" && input.event.event !== "status") return true;
	return input.kind === "output" || statusOf(input) === "running";
}
/** True when the input is the end of a job, or announces it. */
function endsJob(input) {
	if (input.kind === "event" && input.event.event === "status" && input.event.data.x_ends) return true;
	const status = statusOf(input);
	return status !== void 0 && IS_TERMINAL[status];
}
function statusOf(input) {
	if (input.kind === "event") return input.event.event === "status" ? input.event.data.status : void 0;
	return input.kind === "snapshot" || input.kind === "settled" ? input.job.status : void 0;
}
// src/prompts/follow/missing-job.ts
/** True when the service says that its engine lost a job which was queued there. */
function wasLostWhileQueued({ status, error, started_at: startedAt }) {
	return status === "failed" && error?.code === "worker_lost" && startedAt === null;
}
/** Returns a job that stands for one that was never made, or is gone. */
function placeholderJob({ key, createdAtMs }) {
	const createdAt = new Date(createdAtMs).toISOString();
	return {
		id: key,
		status: "canceled",
		created_at: createdAt,
		started_at: null,
		completed_at: null,
		expires_at: createdAt,
		queue_position: null,
		progress: null,
		outputs: [],
		error: null,
		urls: {
			self: "",
			events: "",
			cancel: ""
		}
	};
}
// src/files/name-output.ts
/**
* Gives a v2 output its v1 file name, unique for its user: the name that it came with or, when
* other bytes have that name, the next number of v1's counter. The same output keeps its name. A
* crash may lose the name; the job then gets it again, since history is written later.
*/
async function nameOutput(files, user, output, nowMs) {
	const known = await files.byAsset(user, output.id);
	if (known) return toFileRef(known);
	const location = locationOf(output.name, output.x_subfolder);
	const type = output.x_temp ? "temp" : "output";
	const existing = await files.get(user, {
		type,
		...location
	});
	if (existing && isSameFile(existing.assetId, output.id)) {
		await files.put({
			...existing,
			assetId: output.id
		}, "transient");
		return toFileRef(existing);
	}
	for (const filename of freeNames(location.filename)) {
		const row = {
			user,
			type,
			subfolder: location.subfolder,
			filename,
			assetId: output.id,
			hash: output.hash,
			sizeBytes: output.size_bytes,
			contentType: output.content_type,
			modifiedAtMs: nowMs
		};
		if (await files.claim(row, "transient")) return toFileRef(row);
	}
	throw new Error("file names never run out");
}
/** True when both ids mean the same engine file: a run took its results from the cache. */
function isSameFile(oneId, otherId) {
	const [one, other] = [engineFileOf(oneId), engineFileOf(otherId)];
	return one !== void 0 && one.name === other?.name && one.subfolder === other.subfolder && one.type === other.type;
}
function toFileRef({ filename, subfolder, type }) {
	return {
		filename,
		subfolder,
		type
	};
}
const MAX_STEM_CHARS = 100;
/**
* Turns the name that an upstream gives an output into one that `/view` finds. A folder in the name
* stays a folder. Parts that no file system or header could hold, or that v1 reads differently, are
* replaced.
*/
function locationOf(name, folder = "") {
	const path = splitPath(name.replaceAll("\\", "/"));
	const subfolder = posix.join(folder, path.folder);
	return {
		subfolder: subfolder === "." ? "" : safeFolder(subfolder) ?? "",
		filename: isSafeOutputName(path.name) ? path.name : sanitized(path.name)
	};
}
/**
* False for two dots in a row, which v1 refuses, and for a folder in brackets at the end, which v1
* reads.
*/
function isSafeOutputName(name) {
	return safeName(name) !== void 0 && !name.includes("..") && parseAnnotation(name).type === void 0;
}
function sanitized(name) {
	const base = name.replaceAll(/[^\p{L}\p{N}._ ()-]/gu, "_");
	const { ext } = posix.parse(base);
	const extension = /^\.\w{1,16}$/.test(ext) ? ext : "";
	return `_${base.slice(0, base.length - extension.length).replaceAll(/\.{2,}/g, "_").replace(/^\.+/, "").replace(/(?<![. ])[. ]+$/, "").slice(0, MAX_STEM_CHARS)}${extension}`;
}
// src/prompts/follow/output-names.ts
/** The number of outputs that are named before the event loop gets its turn. */
const OUTPUTS_PER_TURN = 32;
/** The v1 names of one job's outputs. */
var OutputNames = class {
	#prompt;
	#options;
	/** The outputs that were named here, by id. */
	#named;
	constructor(prompt, options) {
		this.#prompt = prompt;
		this.#options = options;
	}
	/**
	* Returns the name of an output. `undefined`: an earlier run of the job made the output, and its
	* file was removed with that run.
	*/
	async name(output) {
		const file = await this.#nameOutput(output);
		if (await this.#wasRemoved(output)) {
			await this.#options.ledger.files.remove(this.#prompt.caller.user, file);
			return;
		}
		this.#named ??= /* @__PURE__ */ new Map();
		this.#named.set(output.id, {
			output,
			file
		});
		return file;
	}
	/**
	* True when the file is gone. After a restart, the events of all runs of a job are read again.
	*/
	async #wasRemoved({ id }) {
		const { jobs, mayRerunJobs } = this.#options;
		if (!mayRerunJobs) return false;
		const asset = await jobs.asset(this.#prompt.caller, id);
		return !asset.ok && isGone(asset.error);
	}
	#nameOutput(output) {
		const { ledger, clock } = this.#options;
		return nameOutput(ledger.files, this.#prompt.caller.user, output, clock.now());
	}
	/** Names all outputs of the job, by id. */
	async nameAll(job) {
		const named = /* @__PURE__ */ new Map();
		const pause = yieldEvery(OUTPUTS_PER_TURN);
		for (const output of job.outputs) {
			const known = this.#named?.get(output.id)?.file;
			named.set(output.id, known ?? await this.#nameOutput(output));
			await pause();
		}
		return named;
	}
	/**
	* A service that restarts runs the job again from its start. The same file then has another id,
	* and the first one is gone. Only the existing file keeps a name.
	*/
	async removeReplaced(job) {
		if (!this.#named) return;
		const ids = new Set(job.outputs.map(({ id }) => id));
		const files = new Set(job.outputs.map(fileKeyOf));
		for (const { output, file } of this.#named.values()) {
			if (ids.has(output.id) || !files.has(fileKeyOf(output))) continue;
			await this.#options.ledger.files.remove(this.#prompt.caller.user, file);
			this.#named.delete(output.id);
		}
	}
	/**
	* Removes the names of files that an earlier process named and that the upstream no longer has.
	*/
	async removeGone(job) {
		for (const output of job.outputs) await this.#removeIfGone(output);
	}
	async #removeIfGone(output) {
		const { ledger, jobs } = this.#options;
		const { files } = ledger;
		const { caller, createdAtMs } = this.#prompt;
		const location = locationOf(output.name, output.x_subfolder);
		const type = output.x_temp ? "temp" : "output";
		const existing = await files.get(caller.user, {
			...location,
			type
		});
		if (!existing || existing.assetId === output.id) return;
		if (existing.modifiedAtMs < createdAtMs) return;
		const asset = await jobs.asset(caller, existing.assetId);
		if (!asset.ok && isGone(asset.error)) await files.remove(caller.user, existing);
	}
};
/** Returns a key that is the same for the outputs of two runs that are one file. */
function fileKeyOf({ node_id: nodeId, name, x_subfolder: subfolder }) {
	return JSON.stringify([
		nodeId,
		name,
		subfolder
	]);
}
// src/prompts/follow/job-consumer.ts
/** The number of events of one prompt that are consumed before the event loop gets its turn. */
const EVENTS_PER_TURN = 32;
/** How long a start is delayed when it arrives before the start of an earlier job. */
const REORDER_WINDOW_MS = 50;
/** The wait before the history is written again: a full disk may have space later. */
const HISTORY_RETRY_MS = 1e3;
/** The longest wait for a due input, in case the clock was set back. */
const MAX_IDLE_MS = 5e3;
/**
* First stage of the progress pipeline: receives the events of one job, appends them to the log of
* its prompt, and writes the history when the job has ended.
*/
var JobConsumer = class {
	#prompt;
	#entryApplier;
	#options;
	#outputNames;
	#turn;
	#signal;
	#lastQueuedAtMs;
	#hasBegun = false;
	constructor(prompt, entryApplier, options, { turn, signal } = {}) {
		this.#prompt = prompt;
		this.#entryApplier = entryApplier;
		this.#options = options;
		this.#turn = turn;
		this.#signal = signal;
		this.#outputNames = new OutputNames(prompt, options);
	}
	/** Consumes an event stream. */
	async consume(stream) {
		const events = stream[Symbol.asyncIterator]();
		const pause = yieldEvery(EVENTS_PER_TURN);
		let next = events.next();
		for (;;) {
			const event = await this.#nextOrIdle(next);
			if (event === void 0) {
				next.catch(ignoreError$1);
				await this.#receive({
					kind: "idle",
					atMs: this.#options.clock.now()
				});
			} else if (event.done) return;
			else {
				const received = this.#receiveEvent(event.value);
				if (received) await received;
				const step = pause();
				if (step) await step;
				next = events.next();
			}
		}
	}
	/** Reads the job, unless the stream has brought its end. True when the job has ended. */
	async poll(jobId) {
		if (this.#entryApplier.hasEnded()) return true;
		return this.#receiveRead(await this.#options.jobs.get(this.#prompt.caller, jobId));
	}
	async #receiveRead(read) {
		const { clock } = this.#options;
		const job = read.ok ? read.value : void 0;
		const isMissing = read.ok ? read.value.status === "expired" : isGone(read.error);
		if (isMissing && this.#prompt.cancelRequested) return this.#receiveJob({
			...job ?? placeholderJob(this.#prompt),
			status: "canceled"
		});
		if (isMissing || job && wasLostWhileQueued(job)) {
			const missing = {
				job,
				lastQueuedAtMs: this.#lastQueuedAtMs
			};
			const result = await this.#options.replaceLostJob(this.#prompt, missing);
			if (result !== "final") return result === "sent";
		} else if (job) this.#lastQueuedAtMs = clock.now();
		if (read.ok) return this.#receiveJob(read.value);
		if (!isMissing) return false;
		await this.#receive({
			kind: "lost",
			reason: read.error.message,
			atMs: clock.now()
		});
		return true;
	}
	async endWithoutJob(ending) {
		const atMs = this.#options.clock.now();
		if (ending.kind === "lost") return this.#receive({
			...ending,
			atMs
		});
		const error = ending.kind === "failed" ? ending.error : null;
		const job = {
			...placeholderJob(this.#prompt),
			status: ending.kind,
			error
		};
		await this.#receive({
			kind: "settled",
			job,
			files: /* @__PURE__ */ new Map(),
			atMs
		});
	}
	/** Writes the history of a prompt whose end is in its log, then sends v1's last frame. */
	async finish() {
		const { ledger, promptEventLog, endingPrompts, onHistoryWritten, durability, endLog } = this.#options;
		const { key, promptId, caller } = this.#prompt;
		const state = this.#entryApplier.state();
		const outcome = await toOutcome(this.#prompt, state, this.#options.history.graphBytes);
		await this.#retryWrite(() => ledger.prompts.finish(key, outcome, durability.history));
		reached("after-history");
		await this.#retryWrite(() => promptEventLog.append(key, { kind: "recorded" }));
		endingPrompts.finish(caller.user, key);
		onHistoryWritten(outcome);
		const { startedAtMs, endedAtMs } = state;
		const ms = Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? endedAtMs ?? 0));
		endLog.info({
			event: "prompt.finished",
			user: caller.user,
			promptId,
			ms
		}, "prompt ended");
	}
	/** Returns the next event, or `undefined` when an `idle` input is due before. */
	#nextOrIdle(next) {
		const dueMs = this.#entryApplier.nextDueMs();
		if (dueMs === null) return next;
		return nextOrTimeout(next, Math.min(dueMs - this.#options.clock.now(), MAX_IDLE_MS));
	}
	/** Receives one event. `undefined`: the event needs no further work. */
	#receiveEvent(event) {
		const { endingPrompts, clock } = this.#options;
		const atMs = clock.now();
		if (event.event === "status") {
			const { status, job } = event.data;
			if (status === "queued") this.#lastQueuedAtMs = atMs;
			if (job && IS_TERMINAL[status]) return this.#receiveRead(ok(job));
		}
		if (event.event === "output") return this.#receiveOutput(event.data, atMs);
		if (event.event !== "progress" || !isKnown(event, this.#entryApplier.state())) return this.#receive({
			kind: "event",
			event,
			atMs
		});
		endingPrompts.finish(this.#prompt.caller.user, this.#prompt.key);
	}
	async #receiveOutput(output, atMs) {
		const file = await this.#outputNames.name(output);
		if (file === void 0) return;
		reached("after-output-named");
		await this.#receive({
			kind: "output",
			output,
			file,
			atMs
		});
	}
	async #receiveJob(job) {
		await this.#outputNames.removeReplaced(job);
		if (this.#options.mayLoseJobs && this.#prompt.isResumed) await this.#outputNames.removeGone(job);
		const kind = IS_TERMINAL[job.status] ? "settled" : "snapshot";
		const files = await this.#outputNames.nameAll(job);
		await this.#receive({
			kind,
			job,
			files,
			atMs: this.#options.clock.now()
		});
		return this.#entryApplier.hasEnded();
	}
	async #receive(input) {
		const { endingPrompts, promptEventLog } = this.#options;
		const { key, caller } = this.#prompt;
		if (endsJob(input)) {
			endingPrompts.begin(caller.user, key);
			await this.#turn?.whenEarlierPassed();
		} else {
			this.#turn?.pass();
			endingPrompts.finish(caller.user, key);
			if (startsJob(input) && this.#prompt.status === "queued") await this.#waitForTurn();
		}
		if (this.#mustRecordBegin(input)) await this.#recordBegin(input.atMs);
		await promptEventLog.append(key, {
			kind: "input",
			input
		});
		if (this.#entryApplier.hasEnded()) await this.finish();
	}
	/**
	* Waits for the start of earlier jobs: streams that report at the same moment are read in any
	* order.
	*/
	async #waitForTurn() {
		const { livePrompts, endingPrompts, clock } = this.#options;
		if (livePrompts.hasEarlierQueued(this.#prompt)) await clock.sleep(REORDER_WINDOW_MS);
		await endingPrompts.whenFinished(this.#prompt.caller.user);
	}
	#mustRecordBegin(input) {
		return this.#options.mayLoseJobs && !this.#hasBegun && showsActivity(input);
	}
	/** Records that the job has started. No process sends such a job again. */
	async #recordBegin(atMs) {
		const { ledger, durability } = this.#options;
		this.#hasBegun = true;
		await ledger.prompts.begin(this.#prompt.key, atMs, durability.begun);
	}
	/**
	* Repeats a write until it succeeds. `LeadershipLost` rejects: another process leads the prompt.
	*/
	async #retryWrite(write) {
		const { clock, log } = this.#options;
		const { promptId, caller } = this.#prompt;
		for (;;) try {
			return await write();
		} catch (error) {
			if (error instanceof LeadershipLost) throw error;
			const facts = {
				event: "prompt.history_failed",
				err: error,
				user: caller.user,
				promptId
			};
			log.error(facts, "could not record the end of a prompt; retrying");
			await clock.sleep(HISTORY_RETRY_MS, this.#signal);
		}
	}
};
/** Returns the next event, or `undefined` after `ms` milliseconds. Leaves no timer behind. */
function nextOrTimeout(next, ms) {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => resolve(void 0), Math.max(1, ms));
		timer.unref();
		next.then(resolve, reject).finally(() => clearTimeout(timer));
	});
}
function ignoreError$1() {}
// src/prompts/follow/follower.ts
/** The wait between a stream that ended early and the next attempt. */
const RETRY_MS = {
	first: 250,
	last: 5e3
};
/** The longest time from taking a prompt to answering its client. */
const ANSWER_TIMEOUT_MS = 1e4;
/** Turns the events of jobs into v1 frames, until each prompt has its history. */
var Follower = class {
	#options;
	#followed = /* @__PURE__ */ new Map();
	#tasks = new BackgroundTasks();
	#endingPrompts = createEndingPrompts();
	#endOrder = createEndOrder();
	#pruner;
	#consumerOptions;
	#isClosed = false;
	constructor(options) {
		this.#options = options;
		this.#pruner = new HistoryPruner(options.ledger.prompts, options.history);
		this.#consumerOptions = {
			...options,
			endingPrompts: this.#endingPrompts,
			onHistoryWritten: ({ statusWord, entryJson }) => {
				this.#pruner.noteStored(entryJson.length);
				options.onEnded?.(statusWord);
			}
		};
	}
	/**
	* Adds a prompt to the live prompts, unless it is or was there: a prompt that has ended since its
	* record was read would send its frames twice.
	*/
	trackPrompt(newPrompt, caller) {
		const existing = this.#followed.get(newPrompt.key);
		if (existing) return existing.prompt;
		const { livePrompts, promptEventLog, hub } = this.#options;
		const { user } = caller;
		const { key } = newPrompt;
		const channel = this.#openChannel(newPrompt, user);
		const prompt = new LivePrompt(newPrompt, {
			caller,
			channel
		});
		if (promptEventLog.hasAppliedEnd(key)) {
			hub.channels.close(channel);
			return prompt;
		}
		livePrompts.add(prompt);
		const followed = new FollowedPrompt(prompt, new EntryApplier(prompt, this.#options));
		this.#followed.set(key, followed);
		promptEventLog.subscribe({
			key,
			user
		}, this.#subscriberOf(followed));
		if (this.#options.spans && promptEventLog.isLeader(key)) this.#options.spans.began(caller, prompt);
		return prompt;
	}
	find(key) {
		return this.#followed.get(key)?.prompt;
	}
	/** Removes a prompt that another process knows by this other id. */
	untrack(key, promptId) {
		const followed = this.#followed.get(key);
		if (!followed || followed.prompt.promptId === promptId) return;
		this.#untrack(followed);
		this.#options.hub.channels.close(followed.prompt.channel);
	}
	/** Removes the prompts of a user whose entries are not received any more. */
	forgetUser(user) {
		for (const followed of this.#followed.values()) if (followed.prompt.caller.user === user) this.#untrack(followed);
		this.#options.hub.channels.removeOf(user);
	}
	#untrack(followed) {
		followed.isClosed = true;
		followed.markAnswered();
		this.#followed.delete(followed.prompt.key);
		this.#options.livePrompts.remove(followed.prompt);
	}
	/** Sets the job of the prompt and opens its event stream. */
	openEventStream(prompt, { jobId, graph, targets }) {
		const { livePrompts, jobs } = this.#options;
		const status = prompt.jobId === jobId ? prompt.status : "queued";
		livePrompts.setJobId(prompt, jobId);
		Object.assign(prompt, {
			graph,
			targets,
			status
		});
		const followed = this.#followed.get(prompt.key);
		if (!followed) return;
		followed.eventStream = jobs.events(prompt.caller, jobId, followed.signal);
		followed.eventStream.catch(() => {});
	}
	/** Follows a job that is recorded: its events are consumed as soon as the prompt is released. */
	async follow(prompt) {
		const followed = this.#followed.get(prompt.key);
		if (!followed) return;
		if (prompt.isResumed) followed.turn = this.#endOrder.add(prompt.caller.user);
		if (!await this.appendEntry(prompt, "attached")) return followed.turn?.pass();
		this.#options.livePrompts.unloadIfFar(prompt);
		this.#run(followed, (signal) => this.#followToEnd(followed, signal));
	}
	/** Lets the frames of the prompt reach sockets. No frame is sent before. */
	releaseFrames(prompt) {
		const followed = this.#followed.get(prompt.key);
		if (!followed || followed.isAnswered || prompt.isReleased) return;
		followed.markAnswered();
		this.appendEntry(prompt, "released").catch((error) => {
			if (this.#isClosed) return;
			const facts = {
				event: "prompt.release_failed",
				err: error,
				user: prompt.caller.user
			};
			this.#options.log.error(facts, "could not release the frames of a prompt");
		});
	}
	/** Appends an entry to the log of the prompt. `false`: another process leads the prompt. */
	async appendEntry(prompt, kind) {
		return await this.#options.promptEventLog.append(prompt.key, { kind }).then(() => true).catch(ifLeadershipLost(false));
	}
	/** Ends a prompt that has no job; resolves when its history is written. */
	async finishWithoutJob(prompt, ending) {
		const followed = this.#followed.get(prompt.key);
		if (!followed) return;
		await this.#run(followed, async (signal) => {
			await followed.released;
			signal.throwIfAborted();
			await this.#consumerOf(followed).endWithoutJob(ending);
		});
	}
	/** Removes a prompt that no client knows and that made no job. */
	async remove(prompt) {
		const { ledger, promptEventLog } = this.#options;
		if (!await this.appendEntry(prompt, "removed")) return;
		await ledger.prompts.remove(prompt.key).catch(ifLeadershipLost(void 0));
		await promptEventLog.discard(prompt.key);
	}
	/** Writes the history of a prompt whose end is in its log. `false`: its end is not in the log. */
	resumeFinish(prompt) {
		const followed = this.#followed.get(prompt.key);
		if (!followed?.entryApplier.hasEnded()) return false;
		this.#run(followed, () => this.#consumerOf(followed).finish());
		return true;
	}
	/** Stops following; live prompts stay live in the ledger. */
	async close() {
		this.#isClosed = true;
		for (const followed of this.#followed.values()) {
			followed.stop();
			followed.release();
		}
		await this.#tasks.close();
	}
	#openChannel({ key, clientId, promptId, extraData, isV2Job }, user) {
		const { hub, promptEventLog } = this.#options;
		const previewMethod = previewMethodIn(extraData.preview_method);
		const address = {
			user,
			clientId,
			promptId,
			isV2Job: isV2Job ?? false,
			previewMethod
		};
		return hub.channels.open(address, (group, position) => {
			const applier = this.#followed.get(key)?.entryApplier;
			promptEventLog.markReceived(key, group, applier?.completeUpTo(position) ?? position);
		});
	}
	#subscriberOf(followed) {
		const { prompt } = followed;
		const { key, channel } = prompt;
		const isOwnNewPrompt = this.#options.promptEventLog.isLeader(key);
		return {
			apply: (entry, position) => {
				const apply = () => this.#applyEntry(followed, entry, position);
				return followed.blockedUntil ? followed.blockedUntil.then(apply) : apply();
			},
			onLeadershipLost: () => {
				this.#endingPrompts.finish(prompt.caller.user, key);
				this.#options.spans?.left(key);
				if (isOwnNewPrompt && !followed.isAnswered && !prompt.isReleased) followed.blockedUntil = completesWithin(ANSWER_TIMEOUT_MS, followed.answered);
				followed.stop();
				followed.restart();
			},
			onSubscribed: (upTo, since) => channel.skipReceived(upTo, since),
			onReceivedElsewhere: (group, upTo) => channel.discardReceived(group, upTo)
		};
	}
	#applyEntry(followed, entry, position) {
		if (followed.isClosed) return void 0;
		const applied = followed.entryApplier.apply(entry, position);
		if (applied) return applied.then(() => this.#noteApplied(followed, entry));
		this.#noteApplied(followed, entry);
	}
	#noteApplied(followed, { kind }) {
		if (kind === "released") followed.release();
		if (kind !== "recorded" && kind !== "removed") return;
		this.#followed.delete(followed.prompt.key);
		followed.isClosed = true;
	}
	#consumerOf(followed) {
		const { prompt, entryApplier } = followed;
		return new JobConsumer(prompt, entryApplier, this.#consumerOptions, followed);
	}
	#run(followed, action) {
		const { prompt, signal } = followed;
		return this.#tasks.run(async () => {
			await action(signal).finally(() => followed.turn?.pass());
			await this.#pruner.noteEnded();
		}, (error) => {
			if (signal.aborted || error instanceof LeadershipLost) return;
			const facts = {
				event: "prompt.finish_failed",
				err: error
			};
			this.#options.log.error(facts, "could not finish a prompt");
			this.#options.promptEventLog.stopLeading(prompt.key);
		});
	}
	/** Consumes the event stream, or polls the job without one, until the job has ended. */
	async #followToEnd(followed, signal) {
		const { prompt } = followed;
		await followed.released;
		signal.throwIfAborted();
		const { jobId } = prompt;
		if (jobId === null) return;
		const consumer = this.#consumerOf(followed);
		let stream = followed.eventStream;
		for (let waitMs = RETRY_MS.first;; waitMs = Math.min(waitMs * 2, RETRY_MS.last)) {
			stream ??= this.#options.jobs.events(prompt.caller, jobId, signal);
			try {
				const opened = await stream;
				if (opened.ok) await consumer.consume(opened.value);
				signal.throwIfAborted();
				if (await consumer.poll(jobId)) return;
			} catch (error) {
				this.#noteFailure(error, prompt, signal);
			}
			stream = void 0;
			await this.#options.clock.sleep(waitMs, signal);
		}
	}
	#noteFailure(error, { caller, promptId }, signal) {
		signal.throwIfAborted();
		if (error instanceof LeadershipLost) throw error;
		const facts = {
			event: "prompt.follow_failed",
			err: error,
			user: caller.user,
			promptId
		};
		this.#options.log.error(facts, "following a job failed; retrying");
	}
};
// src/prompts/import-external-job.ts
/**
* Shows jobs that were submitted through v2 as v1 prompts: in the queue, on sockets and in history.
*/
function createExternalJobImporter(options) {
	const { ledger, promptEventLog, livePrompts, follower, log, clock } = options;
	const tasks = new BackgroundTasks();
	const inProgress = /* @__PURE__ */ new Set();
	/**
	* True when the job is known: a caller that repeats its idempotency key gets the same job again.
	*/
	async function isKnown({ caller: { user }, jobId }) {
		if (livePrompts.find(user, jobId)) return true;
		return await ledger.prompts.findByJob(user, jobId) !== void 0;
	}
	async function trackJob(externalJob) {
		const { caller, jobId, extraData, graph = {} } = externalJob;
		const key = randomUUID();
		const number = externalJob.order ?? await options.counter.next();
		await promptEventLog.claim({
			key,
			user: caller.user
		});
		const prompt = follower.trackPrompt({
			key,
			promptId: isPathSafeId(jobId) ? jobId : key,
			number,
			clientId: null,
			createdAtMs: clock.now(),
			graph,
			extraData,
			targets: [],
			isV2Job: true
		}, caller);
		follower.openEventStream(prompt, {
			jobId,
			graph,
			targets: []
		});
		externalJob.answered.then(() => follower.releaseFrames(prompt));
		return prompt;
	}
	async function importNewJob(externalJob) {
		if (await isKnown(externalJob)) return;
		const prompt = await trackJob(externalJob);
		try {
			prompt.graph = externalJob.graph ?? await fetchGraph(options, externalJob);
			prompt.targets = outputNodes(prompt.graph, await options.objectInfo(prompt.caller).catch(() => ({})));
			await ledger.prompts.insert(toExternalJobRow(prompt, externalJob.jobId));
		} finally {
			await follower.follow(prompt);
		}
	}
	async function importOnce(externalJob) {
		const name = `${externalJob.caller.user} ${externalJob.jobId}`;
		if (inProgress.has(name)) return;
		inProgress.add(name);
		try {
			await importNewJob(externalJob);
		} finally {
			inProgress.delete(name);
		}
	}
	return {
		/** Resolves when the job is recorded, or is not going to be. Never rejects. */
		importJob(externalJob) {
			const { caller, jobId } = externalJob;
			return tasks.run(() => importOnce(externalJob), (error) => {
				const facts = {
					event: "external_job.import_failed",
					err: error,
					user: caller.user
				};
				log.error({
					...facts,
					jobId
				}, "could not record a v2 job as a v1 prompt");
			});
		},
		/** Records that a cancel of this job was sent to the upstream through v2. */
		async recordCancel(caller, jobId) {
			const { user } = caller;
			await promptEventLog.followUser(user);
			const prompt = livePrompts.find(user, jobId);
			if (!prompt || prompt.cancelRequested) return;
			prompt.cancelRequested = true;
			promptEventLog.requestCancel({
				key: prompt.key,
				user
			});
			await ledger.prompts.askCancel(prompt.key, clock.now()).catch((error) => {
				const facts = {
					event: "cancel.record_failed",
					err: error,
					user,
					jobId
				};
				log.error(facts, "could not record the cancel of a v2 job");
			});
			await options.jobCanceller.cancelJob(prompt, caller);
		},
		/** Waits for imports in progress. */
		close: () => tasks.close()
	};
}
/** Reads the workflow. A job whose workflow cannot be read runs all the same. */
async function fetchGraph({ jobs }, { caller, jobId }) {
	const read = await jobs.workflow(caller, jobId);
	return (read.ok ? graphOf(read.value.workflow) : void 0) ?? {};
}
function toExternalJobRow(prompt, jobId) {
	const { key, promptId, number, clientId, createdAtMs, graph, extraData, targets } = prompt;
	return {
		...NEW_PROMPT,
		key,
		user: prompt.caller.user,
		promptId,
		jobId,
		number,
		clientId,
		createdAtMs,
		graphJson: stringifyJson(graph),
		extraDataJson: stringifyJson(extraData),
		targetsJson: JSON.stringify(targets),
		state: "live",
		intentJson: "{}"
	};
}
// src/prompts/mark-fetched.ts
function createMarkFetched({ hub, promptEventLog }) {
	return ({ ctx, caller: { user } }, source, promptIds) => {
		if (isOwnCall(ctx.req) || ctx.req.method !== "GET") return;
		if (source === "listed" && isBrowser(ctx.req)) return;
		for (const promptId of hub.channels.discardFetched(user, promptIds)) promptEventLog.resultFetched(user, promptId);
	};
}
function createMarkJobFetched({ livePrompts, ledger, markFetched, log }) {
	async function markJobFetched({ caller, jobId, request }) {
		const { user } = caller;
		const prompt = livePrompts.find(user, jobId) ?? await ledger.prompts.findByJob(user, jobId);
		if (prompt) markFetched({
			ctx: { req: request },
			caller
		}, "by id", [prompt.promptId]);
	}
	return (fetched) => {
		markJobFetched(fetched).catch((error) => {
			const facts = {
				event: "socket.fetch_not_noted",
				err: error,
				jobId: fetched.jobId
			};
			log.warn(facts, "could not note a fetched result; a late socket may get it again");
		});
	};
}
// src/prompts/submit/fail-without-job.ts
/**
* Ends a prompt that cannot get a job any more. The prompt is removed if its client got no answer:
* that client saw its call fail.
*/
async function failWithoutJob(follower, { prompt, clientKnows }, error) {
	if (clientKnows === "nothing") return follower.remove(prompt);
	follower.finishWithoutJob(prompt, {
		kind: "failed",
		error
	});
}
// src/prompts/resume-prompt.ts
/** Continues a prompt, which this process now leads, from the step where its process ended. */
async function resumePrompt(options, prompt, caller) {
	const { ledger, livePrompts, follower } = options;
	prompt.caller = caller;
	if (!livePrompts.has(prompt)) return () => completeEnd(options, prompt);
	if (follower.resumeFinish(prompt)) return void 0;
	const row = await ledger.prompts.get(prompt.key);
	if (!row) return () => follower.remove(prompt);
	if (!await follower.appendEntry(prompt, "taken")) return void 0;
	options.spans?.began(caller, prompt, traceparentIn(row));
	follower.releaseFrames(prompt);
	return row.jobId === null ? resumeSubmission(options, prompt, row) : resumeFollowing(options, prompt, row.jobId);
}
/**
* Completes the end. A prompt with a history needs no leader; only a refused prompt has no record.
*/
async function completeEnd({ ledger, follower }, prompt) {
	if ((await ledger.prompts.get(prompt.key))?.state === "done") await follower.appendEntry(prompt, "recorded");
	else await follower.remove(prompt);
}
function resumeFollowing({ follower, jobCanceller }, prompt, jobId) {
	const { graph, targets, cancelRequested } = prompt;
	follower.openEventStream(prompt, {
		jobId,
		graph,
		targets
	});
	return async () => {
		await follower.follow(prompt);
		if (cancelRequested) jobCanceller.cancelInBackground(prompt);
	};
}
function resumeSubmission(options, prompt, row) {
	const { outbox, submissionRecovery, follower } = options;
	const plan = restorePlan(row, prompt.caller);
	const clientKnows = clientKnowsOf(row);
	const isAmbiguous = mayHaveBeenSent(row);
	const { lacksSecrets } = plan;
	if (prompt.cancelRequested && !isAmbiguous) return () => void follower.finishWithoutJob(prompt, { kind: "canceled" });
	if (lacksSecrets && !isAmbiguous) return () => failWithoutJob(follower, {
		prompt,
		clientKnows
	}, SECRETS_GONE);
	const mayResend = !prompt.cancelRequested && !lacksSecrets;
	if (clientKnows !== "unknown" && mayResend) return () => outbox.add({
		prompt,
		plan,
		clientKnows,
		mayHaveBeenSent: isAmbiguous
	});
	return () => submissionRecovery.recover({
		prompt,
		plan,
		clientKnows,
		mayResend
	});
}
/** Returns the answer that the client had when the process died. */
function clientKnowsOf({ state }) {
	if (state === "outbox") return "accepted";
	return state === "unknown" ? "unknown" : "nothing";
}
const SECRETS_GONE = {
	code: "credentials_gone",
	message: "This prompt came with a key of its own. Keys are never stored, and the server was restarted before the job could be submitted. Please submit it again.",
	x_exception_type: "ServiceError"
};
// src/prompts/resume.ts
/**
* Resumes the prompts of processes that have ended. Prompts with a job are followed again. Prompts
* without one are submitted under the same idempotency key, or their job is searched for.
*/
var PromptResumption = class {
	#options;
	/** Keys of prompts without a leader that wait for a call of their user. */
	#awaitingCaller = new ByUser();
	#withoutCredential = new ByUser();
	/** Prompts that can be sent only with the credential of their user among their secrets. */
	#needingOwnSecrets = /* @__PURE__ */ new WeakSet();
	#resuming = /* @__PURE__ */ new Map();
	constructor(options) {
		this.#options = options;
	}
	/** Shows the live prompts of followed users, and takes over those without a leader. */
	async start() {
		const { keyring, ledger, promptEventLog, hub, log } = this.#options;
		keyring.onCaller(({ user }) => this.#resumeUser(user));
		const rows = await ledger.prompts.live();
		for (const row of rows) if (promptEventLog.isFollowed(row.user)) this.#track(row);
		const handlers = {
			takeOverVacant: (keys) => this.#takeOverAllVacant(keys),
			discover: (key) => this.#showRecorded(key),
			trackUser: (user, logs) => this.#trackUser(user, logs),
			liveKeys: (user) => ledger.prompts.liveKeys(user),
			forgetUser: (user) => this.#forgetUser(user),
			endOf: (key) => this.#endOf(key),
			cancelRequested: this.#options.onCancelRequested,
			resultFetched: (user, id) => void hub.channels.discardFetched(user, [id])
		};
		await promptEventLog.start(handlers, rows);
		if (rows.length === 0) return;
		const waiting = [...this.#awaitingCaller.users()].length;
		log.info({
			event: "prompt.resumed",
			prompts: rows.length,
			waiting
		}, "resumed live prompts");
	}
	/** Resolves when the prompts that waited for a call of this user are resumed. */
	async whenResumed(user) {
		await this.#resuming.get(user);
	}
	/** Shows a prompt of another process that has not ended. */
	async discover(key) {
		const row = await this.#unknownRow(key);
		if (row && row.state !== "done") this.#track(row);
	}
	/**
	* Shows a recorded prompt, also one that has ended since its entries were received: sockets here
	* get its frames all the same.
	*/
	async #showRecorded(key) {
		const row = await this.#unknownRow(key);
		if (row) this.#track(row);
	}
	async #unknownRow(key) {
		const { follower, ledger } = this.#options;
		return follower.find(key) ? void 0 : ledger.prompts.get(key);
	}
	/** Shows the prompts of a user, oldest first: a prompt supersedes those before it. */
	async #trackUser(user, { endedKeys, withEntries }) {
		const { ledger } = this.#options;
		const ended = await Promise.all(endedKeys.map((key) => ledger.prompts.get(key)));
		const live = await ledger.prompts.live(user);
		const rows = [...ended, ...live].flatMap((row) => row ?? []);
		const shown = new Set(await withEntries(rows.map(({ key }) => key)));
		for (const row of rows) if (shown.has(row.key)) this.#track(row);
	}
	#forgetUser(user) {
		this.#withoutCredential.take(user);
		this.#options.follower.forgetUser(user);
	}
	#track(row) {
		const { follower, keyring, livePrompts } = this.#options;
		const prompt = follower.trackPrompt(toNewLivePrompt(row), keyring.callerOf(row.user));
		prompt.cancelRequested ||= row.cancelAskedAtMs !== null;
		readLinkedJob(livePrompts, prompt, row);
		if (needsOwnSecrets(row)) this.#needingOwnSecrets.add(prompt);
		if (!this.#canProceed(prompt)) this.#withoutCredential.add(row.user, prompt);
		return prompt;
	}
	#canProceed(prompt) {
		const { user } = prompt.caller;
		const needsSecrets = prompt.jobId === null && this.#needingOwnSecrets.has(prompt);
		return this.#hasNeededCredential({
			user,
			needsSecrets
		});
	}
	#canResume(row) {
		const needsSecrets = row.jobId === null && needsOwnSecrets(row);
		return this.#hasNeededCredential({
			user: row.user,
			needsSecrets
		});
	}
	#hasNeededCredential({ user, needsSecrets }) {
		const { keyring, needsCredential } = this.#options;
		if (!needsSecrets && !needsCredential(user)) return true;
		return keyring.callerOf(user).credential !== void 0;
	}
	/** Takes over prompts. `keys`: all prompts without a leader. */
	async #takeOverAllVacant(keys) {
		this.#awaitingCaller.retain(new Set(keys));
		const awaiting = new Set(this.#awaitingCaller.all());
		await this.#takeOverVacant(keys.filter((key) => !awaiting.has(key)));
	}
	async #takeOverVacant(keys) {
		const steps = [];
		for (const key of keys) {
			const step = await this.#orStopLeading(key, () => this.#takeOver(key));
			if (step) steps.push(step);
		}
		await Promise.all(steps.toSorted((one, other) => byQueueOrder(one.prompt, other.prompt)).map(({ prompt, run }) => this.#orStopLeading(prompt.key, async () => run())));
	}
	async #orStopLeading(key, act) {
		try {
			return await act();
		} catch (error) {
			if (error instanceof LeadershipLost) return void 0;
			const facts = {
				event: "prompt.takeover_failed",
				err: error
			};
			this.#options.log.error(facts, "could not take over a prompt");
			this.#options.promptEventLog.stopLeading(key);
			return;
		}
	}
	/** Takes over a prompt without a leader. Returns the step that follows. */
	async #takeOver(key) {
		const { follower, ledger, livePrompts, promptEventLog, keyring } = this.#options;
		const known = follower.find(key);
		const row = known ? void 0 : await ledger.prompts.get(key);
		if (!known && (!row || row.state === "done")) return this.#discardLeftover(key, row);
		if (known) known.isResumed = true;
		const user = known?.caller.user ?? row?.user ?? "";
		if (!(known ? this.#canProceed(known) : row && this.#canResume(row))) {
			this.#awaitingCaller.add(user, key);
			if (known) livePrompts.awaitCredential(known);
			return;
		}
		await promptEventLog.followUser(user);
		const prompt = follower.find(key) ?? (row && this.#track(row));
		if (!prompt || !await promptEventLog.takeOver({
			key,
			user
		})) return void 0;
		prompt.isResumed = true;
		const run = await resumePrompt(this.#options, prompt, keyring.callerOf(user));
		return run && {
			prompt,
			run
		};
	}
	/**
	* Removes the log of a prompt whose process died before the ledger had it, or after its history
	* was written.
	*/
	async #discardLeftover(key, row) {
		const { promptEventLog } = this.#options;
		if (!await promptEventLog.takeOver({
			key,
			user: row?.user ?? ""
		})) return void 0;
		if (row) await promptEventLog.append(key, { kind: "recorded" });
		else await promptEventLog.discard(key);
	}
	#resumeUser(user) {
		const { keyring, log } = this.#options;
		for (const prompt of this.#withoutCredential.take(user)) prompt.caller = keyring.callerOf(user);
		const keys = [...this.#awaitingCaller.take(user)];
		if (keys.length === 0) return;
		const task = this.#takeOverVacant(keys).catch((error) => log.error({
			event: "prompt.resume_failed",
			err: error,
			user
		}, "could not resume prompts")).finally(() => this.#resuming.delete(user));
		this.#resuming.set(user, task);
	}
	async #endOf(key) {
		const row = await this.#options.ledger.prompts.get(key);
		if (!row) return "removed";
		return row.state === "done" ? "recorded" : "none";
	}
};
function toNewLivePrompt(row) {
	const { key, promptId, number, clientId, createdAtMs } = row;
	return {
		key,
		promptId,
		number,
		clientId,
		createdAtMs,
		graph: parseJson(row.graphJson),
		graphJson: row.graphJson,
		extraData: parseJson(row.extraDataJson),
		extraDataJson: row.extraDataJson,
		targets: parseJson(row.targetsJson),
		isV2Job: !isSubmittedThroughV1(row)
	};
}
// src/prompts/submit/duplicate-ids.ts
/** How long a takeover is awaited: the lease, the interval of checks, and a margin. */
const TAKEOVER_WAIT_MS = {
	interval: 50,
	max: 8e3
};
/** Finds live prompts that have the same id as a submission. */
function createDuplicateIds(options) {
	const { ledger, promptEventLog, livePrompts, follower, deadlineClock } = options;
	async function discoverPrompt(key) {
		if (!follower.find(key)) await options.discover(key);
		return follower.find(key);
	}
	/**
	* Waits until a process has resumed the prompt, or its own process has answered. Returns a
	* resumed prompt.
	*/
	async function waitForTakeover(prompt) {
		const deadlineMs = deadlineClock.now() + TAKEOVER_WAIT_MS.max;
		while (!prompt.isResumed && deadlineClock.now() < deadlineMs) {
			if (prompt.isReleased || !livePrompts.has(prompt)) return void 0;
			await deadlineClock.sleep(TAKEOVER_WAIT_MS.interval);
			if (prompt.isResumed || await ledger.prompts.get(prompt.key)) continue;
			follower.untrack(prompt.key, void 0);
		}
		return prompt.isResumed ? prompt : void 0;
	}
	return {
		/**
		* Finds the prompt of a client that lost its answer when the process died and sends its id
		* again.
		*/
		async findResumed({ user }, { promptId, graph }) {
			if (promptId === void 0) return void 0;
			const isSame = (graphJson) => graphJson === stringifyJson(graph);
			const local = livePrompts.find(user, promptId);
			if (local?.isResumed === true && local.promptId === promptId && isSame(toJsonText(local.lazy.graph))) return local;
			const row = await ledger.prompts.find(user, promptId);
			if (!isLiveRow(row) || promptEventLog.isLeader(row.key) || !isSame(row.graphJson)) return void 0;
			const duplicate = await discoverPrompt(row.key);
			return duplicate && waitForTakeover(duplicate);
		},
		/**
		* Refuses a live id that is sent again with the same number: the original's worker fails on
		* that. With another number the original accepts it.
		*/
		refuseDuplicate({ user }, { promptId, number }) {
			const duplicate = promptId === void 0 ? void 0 : livePrompts.find(user, promptId);
			if (duplicate?.promptId !== promptId || duplicate?.number !== number) return;
			const message = `A prompt with the id ${promptId} and this number is already queued.`;
			throw new V1Error(400, plainError("duplicate_prompt_id", message));
		}
	};
}
function isLiveRow(row) {
	return row !== void 0 && row.state !== "done";
}
// src/prompts/submit/late-jobs.ts
/** Cancels jobs that are found after their prompts were ended. */
function createLateJobs(options) {
	const { jobs, submissionRetry, retryPolicy, log, deadlineClock } = options;
	const tasks = new BackgroundTasks();
	/** Repeats the call with growing waits until it returns true or the search window ends. */
	async function repeat(attempt) {
		const deadlineMs = deadlineClock.now() + retryPolicy.searchWindowMs;
		const { first, last } = retryPolicy.searchMs;
		for (let waitMs = first; deadlineClock.now() <= deadlineMs; waitMs = Math.min(last, waitMs * 1.5)) {
			try {
				if (await attempt()) return;
			} catch (error) {
				const facts = {
					event: "submission.late_job_retry",
					err: error
				};
				log.debug(facts, "handling a late job failed; retrying");
			}
			await deadlineClock.sleep(withJitter(waitMs), tasks.signal);
		}
	}
	async function cancelJob({ caller, promptId }, { id }) {
		await repeat(async () => {
			const cancelled = await jobs.cancel(caller, id);
			if (!cancelled.ok && !isGone(cancelled.error)) return false;
			const facts = {
				event: "submission.late_job_cancelled",
				user: caller.user,
				promptId,
				jobId: id
			};
			log.info(facts, "cancelled a job that was found after its prompt had ended");
			return true;
		});
	}
	async function findAndCancel(prompt, plan) {
		let lateJob;
		await repeat(async () => {
			const searchResult = await submissionRetry.findJob(prompt, plan);
			if (typeof searchResult === "object" && searchResult.metadata?.["holdover_key"] === plan.promptKey) lateJob = searchResult;
			return searchResult === "none" || lateJob !== void 0;
		});
		if (lateJob) await cancelJob(prompt, lateJob);
	}
	return {
		/**
		* Searches for the job of an ended prompt for a limited time, then cancels it. `found`: the
		* job, if it is known already.
		*/
		cancelWhenFound(prompt, plan, found) {
			tasks.run(() => found ? cancelJob(prompt, found) : findAndCancel(prompt, plan), (error) => {
				log.error({
					event: "submission.late_job_failed",
					err: error
				}, "gave up a late job");
			});
		},
		close: () => tasks.close()
	};
}
// src/prompts/submit/link-job.ts
/** Links a prompt to its v2 job and records that. */
function createLinkJob({ ledger, durability, follower, jobCanceller }) {
	return async (prompt, plan, job) => {
		const coerced = job.x_workflow ?? {};
		const graph = await runInSteps(applyCoercionsSteps(plan.graph, coerced, plan.placed));
		follower.openEventStream(prompt, {
			jobId: job.id,
			graph,
			targets: plan.outputs
		});
		const graphJson = graph !== plan.graph ? await runInSteps(stringifySteps(graph)) : void 0;
		if (graphJson !== void 0) rememberJson(prompt.lazy.graph, graph, graphJson);
		const link = {
			promptId: prompt.promptId,
			jobId: job.id,
			...graphJson !== void 0 && { graphJson },
			targetsJson: JSON.stringify(plan.outputs)
		};
		await ledger.prompts.linkJob(prompt.key, link, durability.link);
		await follower.follow(prompt);
		if (prompt.cancelRequested) await jobCanceller.cancelJob(prompt);
	};
}
// src/prompts/submit/outbox-queue.ts
/** The waiting submissions of one user, in the order they run. */
var OutboxQueue = class {
	#submissions = [];
	/** The submission that is being sent upstream, or whose result is being recorded. */
	sending;
	/** The number of attempts in a row that did not reach the upstream. */
	failures = 0;
	get first() {
		return this.#submissions[0];
	}
	get length() {
		return this.#submissions.length;
	}
	add(submission) {
		this.#submissions = [...this.#submissions, submission].toSorted((a, b) => byQueueOrder(a.prompt, b.prompt));
	}
	remove(submission) {
		this.#submissions = this.#submissions.filter((other) => other !== submission);
	}
	find(prompt) {
		return this.#submissions.find((submission) => submission.prompt === prompt);
	}
	/** True when the prompt runs before the user's prompts that wait in other processes. */
	isAheadOf(others, prompt) {
		const own = new Set(this.#submissions.map((submission) => submission.prompt));
		return [...others].every((other) => own.has(other) || byQueueOrder(prompt, other) < 0);
	}
};
// src/prompts/submit/outbox.ts
/** The wait before checking again for submissions of other processes that come first. */
const RECHECK_MS = 100;
/**
* Holds accepted prompts without a job. Each user has a queue. The outbox submits its prompts one
* after the other, as the upstream admits them.
*/
var Outbox = class {
	#options;
	#queues = /* @__PURE__ */ new Map();
	#tasks = new BackgroundTasks();
	/** The slots that are held for submissions which are not in the outbox yet. */
	#reservations = new ByUser();
	constructor(options) {
		this.#options = options;
	}
	/** True when prompts of this user wait already: later ones must wait, too. */
	hasWaiting(user) {
		return this.#count(user) > 0;
	}
	/** Returns the number of waiting submissions of all users. */
	depth() {
		return [...this.#queues.values()].reduce((sum, { length }) => sum + length, 0);
	}
	/** Reserves a slot for a submission of this user; `undefined`: the outbox is full. */
	reserve(user) {
		if (this.#count(user) + this.#reservations.of(user).size >= this.#options.outboxLimit) return void 0;
		const reservation = { release: () => this.#reservations.delete(user, reservation) };
		this.#reservations.add(user, reservation);
		return reservation;
	}
	/** Sends the submission in its turn. Resolves when all processes know that the prompt waits. */
	async add(submission, waitMs = 0) {
		const { prompt } = submission;
		const { user } = prompt.caller;
		const queue = this.#queues.get(user) ?? new OutboxQueue();
		queue.add(submission);
		const appended = this.#options.follower.appendEntry(prompt, "waits");
		if (!this.#queues.has(user)) this.#start(user, queue, waitMs);
		await appended;
		if (prompt.waitReason !== "in_outbox") return;
		if (queue.first !== submission) this.#setReason(prompt, "earlier_prompts");
		else if (waitMs > 0) this.#setReason(prompt, "no_room");
	}
	/** Ends a prompt that waits here. False: it does not wait here, or may be on its way upstream. */
	async cancel(prompt) {
		const queue = this.#queues.get(prompt.caller.user);
		const submission = queue?.find(prompt);
		if (!queue || !submission || queue.sending === submission) return false;
		await this.#endCancelled(submission, queue);
		return true;
	}
	async close() {
		await this.#tasks.close();
	}
	#start(user, queue, waitMs) {
		const { log, retryPolicy } = this.#options;
		this.#queues.set(user, queue);
		const sendAll = () => this.#sendAll(user, queue, waitMs);
		this.#tasks.run(sendAll, (error) => {
			const facts = {
				event: "outbox.stopped",
				err: error,
				user
			};
			log.error(facts, "the outbox of a user stopped; trying again");
			this.#start(user, queue, retryPolicy.retryMs.last);
		});
	}
	async #sendAll(user, queue, firstWaitMs) {
		for (let waitMs = firstWaitMs;;) {
			if (waitMs > 0) await this.#options.deadlineClock.sleep(withJitter(waitMs), this.#tasks.signal);
			this.#tasks.signal.throwIfAborted();
			if (queue.first === void 0) break;
			waitMs = await this.#takeTurn(queue.first, queue);
		}
		this.#queues.delete(user);
	}
	/** Sends the submission if no other one comes first. Returns the wait until the next turn. */
	async #takeTurn(submission, queue) {
		const { promptEventLog, livePrompts } = this.#options;
		const { prompt } = submission;
		if (!promptEventLog.isLeader(prompt.key)) this.#remove(queue, submission);
		else if (prompt.cancelRequested) this.#endCancelled(submission, queue);
		else if (queue.isAheadOf(livePrompts.inOutbox(prompt.caller.user), prompt)) return this.#sendFirst(submission, queue);
		else {
			this.#setReason(prompt, "earlier_prompts");
			return RECHECK_MS;
		}
		return 0;
	}
	async #sendFirst(submission, queue) {
		const { prompt } = submission;
		queue.sending = submission;
		try {
			const next = await this.#sendAndRecord(submission, queue);
			if (next === "done") this.#remove(queue, submission);
			else if (prompt.cancelRequested) this.#endCancelled(submission, queue);
			else {
				this.#setReason(prompt, next.reason);
				return next.waitMs;
			}
			return 0;
		} finally {
			queue.sending = void 0;
		}
	}
	/** Sets the reason why the prompt is still in the outbox. */
	#setReason(prompt, reason) {
		if (isInOutbox(prompt)) this.#options.livePrompts.setWaitReason(prompt, reason);
	}
	/**
	* Ends a prompt whose client asked for that. A job of an earlier attempt is cancelled when it is
	* found.
	*/
	async #endCancelled(submission, queue) {
		const { follower, submissionRecovery } = this.#options;
		const { prompt, mayHaveBeenSent } = submission;
		this.#remove(queue, submission);
		if (!mayHaveBeenSent) return follower.finishWithoutJob(prompt, { kind: "canceled" });
		submissionRecovery.recover({
			...submission,
			mayResend: false
		});
		await submissionRecovery.cancel(prompt);
	}
	/**
	* Sends the submission. `undefined`: Holdover itself failed, or another process now leads the
	* prompt. In both cases there may be a job.
	*/
	async #send(submission) {
		const { prompt, mayHaveBeenSent } = submission;
		try {
			const result = await (mayHaveBeenSent ? this.#findOrSend(submission) : this.#sendNew(submission));
			if ("plan" in result) submission.plan = result.plan;
			return result;
		} catch (error) {
			if (error instanceof LeadershipLost) return void 0;
			const { promptId, caller } = prompt;
			const facts = {
				event: "submission.send_failed",
				err: error,
				user: caller.user,
				promptId
			};
			this.#options.log.error(facts, "sending a submission failed; its outcome is unknown");
			return;
		}
	}
	async #sendNew({ prompt, plan }) {
		const { ledger, sender } = this.#options;
		const result = await sender.send(prompt.caller, plan);
		if (madeNoJob(result)) await ledger.prompts.setPlan(plan.promptKey, toStoredPlan(result.plan, "not_sent"));
		return result;
	}
	async #findOrSend({ prompt, plan }) {
		const { submissionRetry } = this.#options;
		const found = await submissionRetry.findJob(prompt, plan);
		if (typeof found === "object") return {
			kind: "accepted",
			plan,
			job: found,
			nodeErrors: {}
		};
		return submissionRetry.send(prompt, plan, found);
	}
	async #sendAndRecord(submission, queue) {
		const result = await this.#send(submission);
		queue.failures = result?.kind === "unsent" ? queue.failures + 1 : 0;
		try {
			return await this.#applySendResult(submission, result, queue.failures);
		} catch (cause) {
			if (!(cause instanceof LeadershipLost)) this.#recoverUnrecorded(submission, cause);
			return "done";
		}
	}
	async #applySendResult(submission, result, failures) {
		const { follower, linkJob, lateJobs, retryPolicy } = this.#options;
		const refusedForNow = {
			waitMs: retryPolicy.retryMs.last,
			reason: "refused_for_now"
		};
		switch (result?.kind) {
			case "accepted":
				await linkJob(submission.prompt, result.plan, result.job);
				return "done";
			case "no capacity": return {
				waitMs: retryAfterMs(retryPolicy, result.error),
				reason: "no_room"
			};
			case "unsent": return {
				waitMs: backoffMs(retryPolicy, failures),
				reason: "unreachable"
			};
			case "later": return refusedForNow;
			case "refused":
				if (isTemporary(result)) return refusedForNow;
				await failWithoutJob(follower, submission, refusalAsJobError(result));
				if (submission.mayHaveBeenSent) lateJobs.cancelWhenFound(submission.prompt, result.plan);
				return "done";
			case "unknown":
			case void 0:
				this.#recover(submission, result);
				return "done";
		}
	}
	#recover({ prompt, plan, clientKnows }, result) {
		this.#options.submissionRecovery.recover({
			prompt,
			plan: result?.plan ?? plan,
			clientKnows,
			mayResend: result?.mayResend ?? true,
			isEngineDown: result?.error.engineDown === true
		});
	}
	/** The result could not be recorded: recovery searches for the job, and the queue goes on. */
	#recoverUnrecorded(submission, cause) {
		const { promptId } = submission.prompt;
		const facts = {
			event: "submission.record_failed",
			err: cause,
			promptId
		};
		this.#options.log.error(facts, "could not record the result of a submission");
		this.#recover(submission, void 0);
	}
	#remove(queue, submission) {
		const { promptEventLog, livePrompts } = this.#options;
		queue.remove(submission);
		if (promptEventLog.isLeader(submission.prompt.key)) livePrompts.removeFromOutbox(submission.prompt);
	}
	/** Counts the user's submissions here and those known from other processes. */
	#count(user) {
		const inOtherProcessesToo = this.#options.livePrompts.inOutbox(user).size;
		return Math.max(this.#queues.get(user)?.length ?? 0, inOtherProcessesToo);
	}
};
/** True when this attempt certainly made no job, and a later one may. */
function madeNoJob(result) {
	return result.kind === "no capacity" || result.kind === "unsent" || isTemporary(result);
}
/**
* True for a refusal that may pass: a refused key may be accepted tomorrow, and a page in place of
* JSON comes from a proxy. An accepted prompt is not dropped for either.
*/
function isTemporary(result) {
	if (result?.kind !== "refused") return false;
	return result.error.status === 401 || result.error.code === "bad_upstream_response";
}
// src/prompts/submit/recovery-rules.ts
/** How long a result must stay the same before it is acted on. */
const WAIT_MS = {
	now: () => 0,
	soon: (pace) => pace.absentMs,
	"in flight": (pace) => pace.inFlightMs,
	window: (pace) => pace.searchWindowMs,
	never: () => Infinity
};
/**
* For a client that got an error: the plan is not sent again, and a job that the service lacks is
* given up.
*/
const RULES_AFTER_ERROR_ANSWER = {
	none: ["now", "not taken"],
	"not listed": ["soon", "not taken"],
	"not seen": ["window", "not known"],
	"engine down": ["soon", "not known"],
	"no answer": ["window", "not known"]
};
const SENT_UNTIL_THERE_IS_A_JOB = {
	none: ["now", "send"],
	"not listed": ["now", "send"],
	"not seen": ["now", "send"],
	"engine down": ["now", "send"],
	"no answer": ["now", "send"]
};
/**
* While the key may be free: it is sent again, also for a client that got no answer. That client
* may repeat its prompt under the same id, and then gets this prompt.
*/
const RULES_WHILE_SENDING = {
	accepted: SENT_UNTIL_THERE_IS_A_JOB,
	unknown: RULES_AFTER_ERROR_ANSWER,
	nothing: SENT_UNTIL_THERE_IS_A_JOB
};
/**
* When the key must not be sent again. An accepted prompt gets a new key when the old one made no
* job. If its client got no answer, the prompt is removed.
*/
const RULES_WHILE_SEARCHING = {
	accepted: {
		none: ["now", "send with new key"],
		"not listed": ["in flight", "send with new key"],
		"not seen": ["window", "not known"],
		"engine down": ["never", "send"],
		"no answer": ["window", "not known"]
	},
	unknown: RULES_AFTER_ERROR_ANSWER,
	nothing: {
		none: ["now", "remove"],
		"not listed": ["soon", "not taken"],
		"not seen": ["window", "not known"],
		"engine down": ["window", "not known"],
		"no answer": ["window", "not known"]
	}
};
/** Returns the next action; `wait`: search again later. */
function nextRecoveryAction(pace, facts) {
	const [waitTime, action] = (facts.mayResend ? RULES_WHILE_SENDING : RULES_WHILE_SEARCHING)[facts.clientKnows][facts.lastResult];
	return (waitTime === "window" ? facts.searchedForMs : facts.unchangedForMs) >= WAIT_MS[waitTime](pace) ? action : "wait";
}
// src/prompts/submit/recover.ts
/** A prompt that used up more new keys without a job gets no further one. */
const MAX_NEW_KEYS = 3;
/** Searches for the jobs of ambiguous submissions until they are found or given up. */
var SubmissionRecovery = class {
	#options;
	#tasks = new BackgroundTasks();
	#recoveries = /* @__PURE__ */ new Map();
	/** The actions. Each returns true when the outcome of the prompt is certain. */
	#actions = {
		wait: async () => false,
		send: (recovery, lastResult) => this.#send(recovery, lastResult),
		"send with new key": (recovery) => this.#sendWithNewKey(recovery),
		remove: (recovery) => this.#remove(recovery),
		"not taken": (recovery) => this.#giveUp(recovery, NEVER_TAKEN),
		"not known": (recovery) => this.#giveUp(recovery, OUTCOME_UNKNOWN)
	};
	constructor(options) {
		this.#options = options;
	}
	recover(ambiguous) {
		const { prompt } = ambiguous;
		const recovery = createRecovery(ambiguous, this.#options.deadlineClock.now());
		this.#recoveries.set(prompt, recovery);
		this.#tasks.run(() => this.#recover(recovery), (error) => {
			if (error instanceof LeadershipLost) return;
			const facts = {
				event: "submission.recovery_stopped",
				err: error
			};
			this.#options.log.error(facts, "stopped searching for the job of a submission");
			this.#options.promptEventLog.stopLeading(prompt.key);
		});
	}
	async #recover(recovery) {
		const { prompt } = recovery;
		try {
			await this.#searchUntilCertain(recovery);
		} finally {
			if (this.#recoveries.get(prompt) === recovery) this.#recoveries.delete(prompt);
		}
	}
	/**
	* Ends a prompt whose job is searched for. False: no search is running, or the job was just
	* found.
	*/
	async cancel(prompt) {
		const recovery = this.#recoveries.get(prompt);
		if (recovery?.state !== "searching") return false;
		await this.#cancel(recovery);
		return true;
	}
	async close() {
		await this.#tasks.close();
	}
	async #searchUntilCertain(recovery) {
		const { promptEventLog, retryPolicy, deadlineClock } = this.#options;
		const { prompt, wake } = recovery;
		const { first, last } = retryPolicy.searchMs;
		const signal = AbortSignal.any([this.#tasks.signal, wake.signal]);
		for (let waitMs = first;; waitMs = Math.min(last, waitMs * 1.5)) {
			this.#tasks.signal.throwIfAborted();
			if (recovery.state === "ended" || !promptEventLog.isLeader(prompt.key)) return;
			if (prompt.cancelRequested && recovery.state === "searching") return this.#cancel(recovery);
			if (await this.#searchAndLogErrors(recovery)) return;
			await deadlineClock.sleep(withJitter(waitMs), signal).catch((error) => {
				if (!wake.signal.aborted) throw error;
			});
		}
	}
	/** Searches, and logs an error instead of ending: a ledger that is down may be back later. */
	async #searchAndLogErrors(recovery) {
		try {
			return await this.#isToSearch(recovery) && await this.#searchOnce(recovery);
		} catch (error) {
			if (this.#tasks.signal.aborted || error instanceof LeadershipLost) throw error;
			const { promptId } = recovery.prompt;
			const facts = {
				event: "submission.recovery_failed",
				err: error,
				promptId
			};
			this.#options.log.error(facts, "searching for the job of a submission failed; retrying");
			return false;
		}
	}
	/**
	* Records that the job is searched for, before the first search. False: another process leads the
	* prompt, or the prompt has ended.
	*/
	async #isToSearch(recovery) {
		recovery.isRecorded ||= await this.#options.follower.appendEntry(recovery.prompt, "sought");
		return recovery.isRecorded && recovery.state !== "ended";
	}
	/** Searches once and acts on the result; true when the outcome of the prompt is certain. */
	async #searchOnce(recovery) {
		const found = await this.#options.submissionRetry.findJob(recovery.prompt, recovery.plan);
		if (typeof found === "object") {
			await this.#link(recovery, recovery.plan, found);
			return true;
		}
		if (recovery.state === "ended") return true;
		const result = found === "engine down" && !recovery.isEngineDown ? "no answer" : found;
		return this.#actions[this.#nextAction(recovery, result)](recovery, result);
	}
	#nextAction(recovery, result) {
		const { retryPolicy, deadlineClock } = this.#options;
		const nowMs = deadlineClock.now();
		if (recovery.lastResult?.result !== result) recovery.lastResult = {
			result,
			sinceMs: nowMs
		};
		return nextRecoveryAction(retryPolicy, {
			clientKnows: recovery.clientKnows,
			mayResend: recovery.mayResend,
			lastResult: result,
			unchangedForMs: nowMs - recovery.lastResult.sinceMs,
			searchedForMs: nowMs - recovery.searchedSinceMs
		});
	}
	async #link(recovery, plan, job) {
		const { lateJobs, linkJob } = this.#options;
		if (recovery.state === "ended") return lateJobs.cancelWhenFound(recovery.prompt, plan, job);
		recovery.state = "linking";
		await linkJob(recovery.prompt, plan, job);
	}
	/** Sends the plan again. True: the prompt has its job, or was refused. */
	async #send(recovery, lastResult) {
		const { submissionRetry, follower, deadlineClock } = this.#options;
		const { prompt } = recovery;
		const sent = await submissionRetry.send(prompt, recovery.plan, lastResult);
		if (sent.kind === "accepted") await this.#link(recovery, sent.plan, sent.job);
		if (sent.kind === "refused" && recovery.state === "searching") {
			recovery.state = "ended";
			await failWithoutJob(follower, recovery, refusalAsJobError(sent));
			this.#cancelLateJob(recovery);
		}
		recovery.isEngineDown = sent.kind === "unknown" && sent.error.engineDown === true;
		if (sent.kind === "unknown" && !sent.mayResend) {
			recovery.mayResend = false;
			recovery.searchedSinceMs = deadlineClock.now();
		}
		if ("plan" in sent) recovery.plan = sent.plan;
		return sent.kind === "accepted" || sent.kind === "refused";
	}
	/** Sends the prompt under a new key, since the old key certainly made no job. */
	async #sendWithNewKey(recovery) {
		if (recovery.plan.lacksSecrets || recovery.newKeys++ >= MAX_NEW_KEYS) return this.#giveUp(recovery, NEVER_TAKEN);
		const plan = withNewKey(recovery.plan);
		Object.assign(recovery, {
			plan,
			mayResend: true,
			lastResult: void 0
		});
		return this.#send(recovery, "none");
	}
	async #remove(recovery) {
		recovery.state = "ended";
		await this.#options.follower.remove(recovery.prompt);
		this.#cancelLateJob(recovery);
		return true;
	}
	async #giveUp(recovery, reason) {
		const { follower, log } = this.#options;
		const { caller, promptId } = recovery.prompt;
		recovery.state = "ended";
		const facts = {
			event: "submission.abandoned",
			user: caller.user,
			promptId,
			reason
		};
		log.warn(facts, "gave up a submission");
		await follower.finishWithoutJob(recovery.prompt, {
			kind: "lost",
			reason
		});
		this.#cancelLateJob(recovery);
		return true;
	}
	#cancelLateJob({ prompt, plan, lastResult }) {
		if (lastResult?.result !== "none") this.#options.lateJobs.cancelWhenFound(prompt, plan);
	}
	async #cancel(recovery) {
		const { lateJobs, follower } = this.#options;
		recovery.state = "ended";
		recovery.wake.abort();
		lateJobs.cancelWhenFound(recovery.prompt, recovery.plan);
		await follower.finishWithoutJob(recovery.prompt, { kind: "canceled" });
	}
};
function createRecovery(ambiguous, nowMs) {
	return {
		isEngineDown: false,
		...ambiguous,
		searchedSinceMs: nowMs,
		lastResult: void 0,
		newKeys: 0,
		isRecorded: false,
		state: "searching",
		wake: new AbortController()
	};
}
const NEVER_TAKEN = "the job service never took it";
const OUTCOME_UNKNOWN = "whether the job service took it could not be found out";
// src/prompts/submit/replace-lost-job.ts
/**
* A service that drops a prompt on arrival this often does so on purpose: no engine dies that
* often.
*/
const MAX_DROPS = 3;
/** Services keep ended jobs for a day or more, so a job that is gone sooner never ended. */
const MIN_RETENTION_MS = 72e6;
function createReplaceLostJob(options) {
	const { ledger, jobs, log, clock } = options;
	const dropCounts = /* @__PURE__ */ new WeakMap();
	/**
	* Counts how often in a row the jobs of a prompt were lost before they were reported as queued.
	*/
	function countDropped(prompt, { lastQueuedAtMs }) {
		const count = lastQueuedAtMs === void 0 ? (dropCounts.get(prompt) ?? 0) + 1 : 0;
		dropCounts.set(prompt, count);
		return count;
	}
	function mayHaveBegun(prompt, { job, lastQueuedAtMs }) {
		const { status, hasEvidence, startedAtMs } = prompt;
		if (status !== "queued" || hasEvidence || startedAtMs !== null) return true;
		if (job && (job.started_at !== null || job.outputs.length > 0)) return true;
		return clock.now() - (lastQueuedAtMs ?? prompt.createdAtMs) > MIN_RETENTION_MS;
	}
	/** Cancels the old job, so that it cannot run beside the new one. True when it is gone. */
	async function isJobGone(prompt, jobId) {
		const cancelled = await jobs.cancel(prompt.caller, jobId);
		if (!cancelled.ok) return isGone(cancelled.error);
		const { status } = cancelled.value;
		return IS_TERMINAL[status] && status !== "succeeded";
	}
	return async (prompt, missing) => {
		if (!options.mayLoseJobs || prompt.cancelRequested || mayHaveBegun(prompt, missing)) return "final";
		const row = await ledger.prompts.get(prompt.key);
		if (!row || row.jobId === null || row.startedAtMs !== null || !isSubmittedThroughV1(row)) return "final";
		const lastPlan = restorePlan(row, prompt.caller);
		if (lastPlan.lacksSecrets) return "final";
		if (!await isJobGone(prompt, row.jobId)) return "not yet";
		if (countDropped(prompt, missing) > MAX_DROPS) return "final";
		const plan = withNewKey(lastPlan);
		await ledger.prompts.unlinkJob(prompt.key, toStoredPlan(plan, "not_sent"));
		reached("after-detach");
		const { promptId } = prompt;
		const facts = {
			event: "prompt.resent",
			user: row.user,
			promptId,
			jobId: row.jobId
		};
		log.warn(facts, "the job service lost a queued prompt; sending it again");
		options.livePrompts.clearJobId(prompt);
		const waitMs = backoffMs(options.retryPolicy, newKeyCount(plan) - 1);
		const submission = {
			prompt,
			plan,
			clientKnows: "accepted",
			mayHaveBeenSent: false
		};
		await options.outbox.add(submission, waitMs);
		return "sent";
	};
}
// src/prompts/submit/retry.ts
/** Services keep an idempotency key for a day. After that, the same key could make a second job. */
const KEY_LIFETIME_MS = 72e6;
/** Statuses of services without a job list. */
const NO_JOB_LIST_STATUSES = /* @__PURE__ */ new Set([
	404,
	405,
	501
]);
/** Handles submissions that may already have made a job. */
function createSubmissionRetry(options) {
	const { jobs, ledger, sender, log, clock } = options;
	return {
		/** Searches once for the job of the prompt. */
		async findJob(prompt, plan) {
			const found = await jobs.recover(prompt.caller, {
				workflow: workflowOf(plan),
				metadata: { [KEY_LABEL]: plan.promptKey },
				extraData: plan.secrets,
				sentAtMs: prompt.createdAtMs,
				isClaimed: (jobId) => ledger.prompts.hasJob(jobId)
			});
			if (!found.ok && found.error.engineDown) return "engine down";
			if (!found.ok) return NO_JOB_LIST_STATUSES.has(found.error.status) ? "not seen" : "no answer";
			if (found.value.job) return found.value.job;
			const facts = {
				event: "submission.job_not_found",
				promptId: prompt.promptId
			};
			log.debug(facts, "the search found no job of this prompt");
			if (found.value.isCertain) return "none";
			return found.value.isListed ? "not listed" : "not seen";
		},
		/** Sends the plan again under the same idempotency key, after a search that found no job. */
		async send(prompt, plan, searchResult) {
			if (prompt.cancelRequested || clock.now() - prompt.createdAtMs > KEY_LIFETIME_MS) return {
				kind: "unknown",
				plan,
				error: NOT_SENT,
				mayResend: false
			};
			if (searchResult === "none") return sender.send(prompt.caller, plan);
			const sent = await sender.sendUnchanged(prompt.caller, plan);
			if (sent.kind !== "refused") return sent;
			const wasSearched = searchResult === "not seen" || searchResult === "not listed";
			return isAboutContent(sent.error) && wasSearched ? sent : {
				kind: "later",
				error: sent.error
			};
		}
	};
}
const NOT_SENT = v2Error(500, "submit_outcome_unknown", "It is not known yet whether the job service took it.");
// src/prompts/prompts.ts
/**
* The life of prompts from their `POST` to their history. Each part takes the members that it names
* from the context and from earlier parts.
*/
function createPrompts(options) {
	const retryPolicy = {
		...DEFAULT_RETRY_POLICY,
		...options.retryPolicy
	};
	const context = {
		...options,
		retryPolicy
	};
	const following = createFollowing(context, (...missing) => submitting.replaceLostJob(...missing));
	const submitting = createSubmitting(following);
	const { follower, jobCanceller, outbox, submissionRecovery, lateJobs } = submitting;
	const { cancel, cancelRequested } = createCancel(submitting);
	const resumption = new PromptResumption({
		...submitting,
		onCancelRequested: cancelRequested
	});
	const externalJobs = createExternalJobImporter(following);
	const markFetched = createMarkFetched(context);
	return {
		externalJobs,
		acceptor: createAcceptService(submitting, resumption),
		cancel,
		markFetched,
		markJobFetched: createMarkJobFetched({
			...context,
			markFetched
		}),
		/** The number of accepted prompts that wait until the upstream has capacity. */
		outboxDepth: () => outbox.depth(),
		/** Resumes the prompts of an earlier process. Call it once, before the first request. */
		resume: () => resumption.start(),
		/** Resolves when the live prompts show everything that any process did before for this user. */
		async whenCurrent(user) {
			await context.promptEventLog.whenCaughtUp(user);
			await resumption.whenResumed(user);
		},
		async close() {
			await externalJobs.close();
			jobCanceller.close();
			await Promise.all([
				outbox,
				submissionRecovery,
				lateJobs,
				follower
			].map((part) => part.close()));
			await context.promptEventLog.close();
		}
	};
}
/** Creates the parts that lead from the job of a prompt to its history. */
function createFollowing(context, replaceLostJob) {
	const follower = new Follower({
		...context,
		replaceLostJob
	});
	const jobCanceller = createJobCanceller(context);
	const linkJob = createLinkJob({
		...context,
		follower,
		jobCanceller
	});
	return {
		...context,
		follower,
		jobCanceller,
		linkJob
	};
}
/** Creates the parts that lead from the `POST` of a prompt to its job. */
function createSubmitting(following) {
	const sender = createSubmissionSender(following);
	const submissionRetry = createSubmissionRetry({
		...following,
		sender
	});
	const lateJobs = createLateJobs({
		...following,
		submissionRetry
	});
	const sending = {
		...following,
		sender,
		submissionRetry,
		lateJobs
	};
	const submissionRecovery = new SubmissionRecovery(sending);
	const outbox = new Outbox({
		...sending,
		submissionRecovery
	});
	const replaceLostJob = createReplaceLostJob({
		...following,
		outbox
	});
	return {
		...sending,
		submissionRecovery,
		outbox,
		replaceLostJob
	};
}
function createAcceptService(submitting, resumption) {
	const { uploadFolderOf } = submitting;
	const { files } = submitting.ledger;
	const discover = (key) => resumption.discover(key);
	return createAcceptor({
		...submitting,
		duplicateIds: createDuplicateIds({
			...submitting,
			discover
		}),
		fileResolver: createFileResolver({
			...submitting,
			files
		}),
		refuseForeignFolders: createFolderCheck({
			files,
			uploadFolderOf
		}),
		draftSubmitter: new DraftSubmitter(submitting)
	});
}
// src/sockets/wire-frame.ts
const OPCODE = {
	text: 1,
	binary: 2
};
/** Up to this size, a copy costs less than a second write for every socket. */
const MAX_COPIED_BYTES = 65536;
/** Payloads from these lengths on need 16 or 64 bits for the length in the header. */
const LENGTH_16_BIT = 126;
const LENGTH_64_BIT = 2 ** 16;
/** Encodes a message as a server must send it (RFC 6455, 5.2): one frame, without a mask. */
function toWireFrame(message, kind) {
	const length = Buffer.byteLength(message);
	const headerBytes = length < LENGTH_16_BIT ? 2 : length < LENGTH_64_BIT ? 4 : 10;
	const isCopied = length <= MAX_COPIED_BYTES;
	const first = Buffer.allocUnsafe(headerBytes + (isCopied ? length : 0));
	writeHeader(first, OPCODE[kind], length);
	if (!isCopied) return {
		pieces: [first, toBuffer(message)],
		length
	};
	if (typeof message === "string") first.write(message, headerBytes);
	else first.set(message, headerBytes);
	return {
		pieces: [first],
		length
	};
}
function toBuffer(message) {
	return typeof message === "string" ? Buffer.from(message) : message;
}
const FIN = 128;
function writeHeader(frame, opcode, length) {
	frame[0] = FIN | opcode;
	if (length < LENGTH_16_BIT) frame[1] = length;
	else if (length < LENGTH_64_BIT) {
		frame[1] = 126;
		frame[2] = length >> 8;
		frame[3] = length & 255;
	} else {
		frame[1] = 127;
		frame.writeBigUInt64BE(BigInt(length), 2);
	}
}
/** Returns the payload of a frame: a text unchanged, else its bytes. */
function payloadOf(frame) {
	if (typeof frame === "string") return frame;
	const [first, second] = frame.pieces;
	const payload = second ?? first.subarray(first.length - frame.length);
	return ((first[0] ?? 0) & 15) === OPCODE.text ? payload.toString() : payload;
}
// src/sockets/outgoing-frames.ts
/** While more bytes than this are pending for a socket, only the latest preview is kept. */
const PREVIEW_PENDING_BYTES = 262144;
/** Up to this many pending bytes no preview is delayed, so writes need no callback. */
const UNTRACKED_BYTES = PREVIEW_PENDING_BYTES / 2;
/** Frames below this size are written without tracking their delay. */
const UNTRACKED_CHARS = 16384;
/**
* JSON and results are never dropped. A socket is closed when it accepts nothing for this long
* while this much is pending, or when more than `maxBytes` are pending. The second limit is higher,
* since a late socket gets a whole run at once.
*/
const STALLED = {
	bytes: 1048576,
	forMs: 3e4,
	maxBytes: 67108864
};
function uncork(socket) {
	socket.uncork();
}
/**
* The frames that are being sent to one socket: writes them, and delays those that a slow socket
* can miss.
*/
var OutgoingFrames = class {
	#ws;
	#socket;
	#options;
	#firstFrames;
	#pendingStates = /* @__PURE__ */ new Map();
	#pendingPreview;
	#flushedAtMs;
	#lastTextAtMs;
	constructor({ ws, socket, firstFrameDelayMs }, options) {
		this.#ws = ws;
		this.#socket = socket;
		this.#options = options;
		this.#flushedAtMs = options.now();
		this.#lastTextAtMs = options.now();
		this.#firstFrames = firstFrameDelayMs === void 0 ? void 0 : createFirstFrames((frame, done) => this.#writeNow(frame, done), firstFrameDelayMs);
	}
	get lastTextAtMs() {
		return this.#lastTextAtMs;
	}
	/** True while the first frames are delayed. */
	isHolding() {
		return this.#firstFrames?.isHolding() ?? false;
	}
	/** The bytes that the socket has not accepted yet, including a delayed preview. */
	pendingBytes() {
		return this.#unsentBytes() + (this.#pendingPreview?.frame.length ?? 0);
	}
	/** Sends a text, or a frame that is encoded for several sockets. */
	sendText(text) {
		this.#lastTextAtMs = this.#options.now();
		this.#send(text, this.#lastTextAtMs);
	}
	/** Sends a frame that must not be dropped: JSON, or a result. */
	sendBinary(frame) {
		this.#send(frame, this.#options.now());
	}
	#send(frame, nowMs) {
		const unsentBytes = this.#unsentBytes();
		if (unsentBytes === 0) {
			this.#flushedAtMs = nowMs;
			if (frame.length < UNTRACKED_CHARS) return this.#write(frame);
		}
		if (unsentBytes > STALLED.bytes && nowMs - this.#flushedAtMs > STALLED.forMs || unsentBytes > STALLED.maxBytes) return this.#ws.terminate();
		this.#write(frame, () => {
			this.#flushedAtMs = this.#options.now();
			this.#sendPending();
		});
	}
	/** Sends a preview when few bytes are pending; else the next one replaces it. */
	sendPreview(promptId, frame) {
		const unsentBytes = this.#unsentBytes();
		if (unsentBytes + frame.length <= UNTRACKED_BYTES) return this.#write(frame);
		if (unsentBytes <= PREVIEW_PENDING_BYTES) return this.#write(frame, () => this.#sendPending());
		this.#dropPendingPreview();
		this.#pendingPreview = {
			promptId,
			frame
		};
	}
	/** Sends the `progress_state` of a prompt when few bytes are pending. It is encoded only then. */
	sendState(promptId, frame) {
		if (this.#unsentBytes() > PREVIEW_PENDING_BYTES) this.#pendingStates.set(promptId, frame);
		else this.sendText(frame());
	}
	/** Sends a delayed `progress_state` in any case, because the prompt has ended. */
	flushState(promptId) {
		const frame = this.#pendingStates.get(promptId);
		this.#pendingStates.delete(promptId);
		if (frame) this.sendText(frame());
	}
	/** Drops a delayed preview: its node has ended. */
	discardPreview(promptId) {
		if (this.#pendingPreview?.promptId === promptId) this.#dropPendingPreview();
	}
	/** Writes delayed first frames now, because the socket is about to be closed. */
	flush() {
		this.#firstFrames?.flush();
	}
	/** Drops all frames: the socket is gone. */
	discard() {
		this.#firstFrames?.discard();
	}
	#sendPending() {
		for (const [promptId, frame] of this.#pendingStates) {
			if (this.#unsentBytes() > PREVIEW_PENDING_BYTES) return;
			this.#pendingStates.delete(promptId);
			this.sendText(frame());
		}
		if (!this.#pendingPreview || this.#unsentBytes() > PREVIEW_PENDING_BYTES) return;
		const { frame } = this.#pendingPreview;
		this.#pendingPreview = void 0;
		this.#write(frame, () => this.#sendPending());
	}
	#dropPendingPreview() {
		if (this.#pendingPreview) this.#options.onDrop?.();
		this.#pendingPreview = void 0;
	}
	#unsentBytes() {
		return this.#ws.bufferedAmount + (this.#firstFrames?.bytes() ?? 0);
	}
	#write(frame, done) {
		if (!this.#firstFrames?.hold(frame, done)) this.#writeNow(frame, done);
	}
	/**
	* Writes the encoded frame directly. `ws` would frame each message anew for each socket, which is
	* a fifth of the cost of a broadcast.
	*/
	#writeNow(frame, done) {
		const { observer } = this.#options;
		if (observer?.isOn()) observer.record(payloadOf(frame));
		this.#corkForThisTurn();
		if (typeof frame === "string") return this.#ws.send(frame, done);
		if (this.#ws.readyState !== WebSocket.OPEN) return;
		const [first, second] = frame.pieces;
		if (second === void 0) return void this.#socket.write(first, done);
		this.#socket.write(first);
		this.#socket.write(second, done);
	}
	/** Collects the frames of one turn of the event loop into one system call. */
	#corkForThisTurn() {
		if (this.#socket.writableCorked > 0) return;
		this.#socket.cork();
		process.nextTick(uncork, this.#socket);
	}
};
/**
* Delays the frames of a new socket until its 101 response has been read: some clients drop bytes
* that arrive together with the 101. The first frame is sent alone, the rest in another turn of the
* event loop.
* @internal
*/
function createFirstFrames(write, holdMs) {
	let held = [];
	let bytes = 0;
	let rest;
	const timer = setTimeout(sendFirst, holdMs).unref();
	function sendFirst() {
		const first = held?.shift();
		if (first) {
			bytes -= first[0].length;
			write(...first);
		}
		rest = setImmediate(flush);
	}
	/** Writes all frames now, because the socket is about to be closed. */
	function flush() {
		const frames = held ?? [];
		discard();
		for (const frame of frames) write(...frame);
	}
	/** Drops all frames: the socket is gone. */
	function discard() {
		clearTimeout(timer);
		clearImmediate(rest);
		held = void 0;
		bytes = 0;
	}
	return {
		/**
		* Keeps the frame for later. `false`: frames are not delayed any more, so the caller writes it.
		*/
		hold(frame, done) {
			if (held === void 0) return false;
			held.push([frame, done]);
			bytes += frame.length;
			return true;
		},
		isHolding: () => held !== void 0,
		/** The bytes of the delayed frames, which count as unsent bytes of the socket. */
		bytes: () => bytes,
		flush,
		discard
	};
}
// src/sockets/connection.ts
/** A client that sends more than 100 messages a second over five seconds is closed. */
const FLOOD = {
	messages: 500,
	windowMs: 5e3
};
/**
* The longest message that is read, and the part of a longer one that is logged or recorded.
* Negotiations are short, and reading a JSON text of 4 MiB may take a second.
*/
const MAX_READ_BYTES = 16384;
/** Time for the closing handshake. */
const CLOSE_TIMEOUT_MS = 2e3;
/** A connected socket: what it has negotiated, and the frames that are being sent to it. */
var SocketConnection = class extends OutgoingFrames {
	user;
	sid;
	/**
	* The dialect of the socket. It decides the form of frames, whatever the dialect of the prompt.
	*/
	dialect;
	/** The user agent of the program that opened it. */
	agent;
	/** True when it watches all prompts of its user. No frame counts as received by such a socket. */
	watches;
	/**
	* True when a browser opened it. Some programs take every picture for a result; browsers do not.
	*/
	isBrowser;
	#ws;
	#options;
	#flood;
	#negotiation = "open";
	#pingsWithoutAnswer = 0;
	#lastPingAtMs;
	constructor(upgraded, options) {
		const { user, sid, dialect, agent = "", watches = false, isBrowser = false } = options;
		const { now, onDrop, frameObserver } = options;
		super(upgraded, {
			now,
			onDrop,
			observer: frameObserver && {
				isOn: frameObserver.isOn,
				record: (payload) => frameObserver.record({
					direction: "out",
					user,
					sid,
					payload,
					watches
				})
			}
		});
		this.user = user;
		this.sid = sid;
		this.dialect = dialect;
		this.agent = agent;
		this.watches = watches;
		this.isBrowser = isBrowser;
		this.#ws = upgraded.ws;
		this.#options = options;
		this.#flood = {
			since: now(),
			count: 0
		};
		this.#lastPingAtMs = now();
		this.#listen();
	}
	isOpen() {
		return this.#ws.readyState === WebSocket.OPEN;
	}
	/**
	* True when the client has negotiated `supports_preview_metadata`: it gets previews as type 4.
	*/
	wantsMetadata() {
		return this.#negotiation === "with metadata";
	}
	/** The time of the last ping, or of the connection. */
	get lastPingAtMs() {
		return this.#lastPingAtMs;
	}
	/**
	* Pings the client, which keeps proxies from closing the connection. Closes a socket that left
	* the last ping unanswered, unless its client may be silent.
	*/
	ping() {
		if (this.isHolding()) return;
		this.#lastPingAtMs = this.#options.now();
		if (this.#pingsWithoutAnswer > 0 && !this.#options.mayBeSilent) return this.#ws.terminate();
		this.#pingsWithoutAnswer += 1;
		this.#ws.ping();
	}
	/**
	* True when a client that need not answer left a whole interval of pings unanswered. Such a
	* client may be gone, or may not wait for a prompt.
	*/
	isSilent() {
		return this.#pingsWithoutAnswer > 1;
	}
	close(code) {
		this.flush();
		this.#ws.close(code);
		setTimeout(() => this.#ws.terminate(), CLOSE_TIMEOUT_MS).unref();
	}
	/** Sends the close frame and does not wait for an answer. */
	closeAtOnce(code) {
		this.flush();
		this.#ws.close(code);
		this.#ws.terminate();
	}
	#listen() {
		this.#ws.on("message", (data, isBinary) => {
			this.#pingsWithoutAnswer = 0;
			if (isFlooding(this.#flood, this.#options.now())) return this.close(1008);
			if (isBinary) return;
			this.#observe(data);
			this.#negotiate(data);
		});
		this.#ws.on("pong", () => this.#pingsWithoutAnswer = 0);
		this.#ws.on("error", ignoreError);
		this.#ws.on("close", () => {
			this.discard();
			this.#options.onClose();
		});
	}
	#observe(data) {
		const { user, sid, watches } = this;
		const { frameObserver } = this.#options;
		if (!frameObserver?.isOn()) return;
		const isLong = data.length > MAX_READ_BYTES;
		frameObserver.record({
			direction: "in",
			user,
			sid,
			payload: String(isLong ? data.subarray(0, MAX_READ_BYTES) : data),
			...isLong && { totalBytes: data.length },
			watches
		});
	}
	/**
	* Reads a negotiation. In v1 the first object that can be decoded decides; other frames do not
	* count.
	*/
	#negotiate(data) {
		const message = this.#negotiation === "open" && data.length <= MAX_READ_BYTES ? decode(data) : void 0;
		if (message === void 0) return;
		this.#negotiation = "without metadata";
		if (message.type !== "feature_flags") return;
		if ((isJsonObject(message.data) ? message.data : {}).supports_preview_metadata === true) this.#negotiation = "with metadata";
		this.sendText(encodeMessage({
			type: "feature_flags",
			data: this.#options.serverFlags
		}));
	}
};
/** `type` goes first on the wire: one client recognises frames by their first bytes. */
function encodeMessage(message) {
	return toPythonText(stringifyJson({
		type: message.type,
		data: message.data
	}));
}
function decode(data) {
	try {
		const value = parseJson(String(data));
		return isJsonObject(value) ? value : void 0;
	} catch {
		return;
	}
}
function isFlooding(flood, nowMs) {
	if (nowMs - flood.since > FLOOD.windowMs) {
		flood.since = nowMs;
		flood.count = 0;
	}
	return ++flood.count > FLOOD.messages;
}
function ignoreError() {}
// src/sockets/frame-scope.ts
/** The scope of a socket for a prompt of its user. `clientId: null`: the prompt named none. */
function frameScopeFor({ sid, dialect, watches }, clientId) {
	if (watches) return "everything";
	const { promptWithClientId, promptWithoutClientId } = rulesOf(dialect);
	if (clientId === null) return promptWithoutClientId;
	return promptWithClientId === "all-sockets" || sid === clientId ? "everything" : "texts";
}
/**
* True when the frame is in the scope. The original sends no frame of a prompt that was deleted
* from the queue before its `execution_start`, so its interruption goes to no other socket.
*/
function isInScope(scope, frame, phase) {
	if (scope === "everything" || frame.kind === "text") return true;
	return scope === "broadcasts" && isBroadcast(frame, phase);
}
function isBroadcast(frame, phase) {
	if (frame.kind !== "json") return true;
	const { type } = frame.message;
	return type === "progress_state" || type === "execution_interrupted" && phase === "started";
}
// src/sockets/delivery.ts
const NO_GROUPS = /* @__PURE__ */ new Set();
/**
* Which sockets have received the frames of one prompt, in this process and in others. Positions
* are those of the prompt's event log.
*/
var Delivery = class {
	#clientId;
	#received = {
		client: 0,
		hosted: 0
	};
	#receivedBefore = {
		client: 0,
		hosted: 0
	};
	/** The ids of the sockets here that got at least one frame of the prompt. */
	#reachedIds;
	#last = {
		position: 0,
		groups: NO_GROUPS
	};
	/** `clientId`: the client id that the prompt named. */
	constructor(clientId) {
		this.#clientId = clientId;
	}
	/** True when sockets of the group had the frame before this process followed the prompt. */
	hadBefore(group, position) {
		return position > 0 && position <= this.#receivedBefore[group ?? "hosted"];
	}
	/** Records that sockets of the groups had everything up to these positions before. */
	noteHadBefore(upTo) {
		this.#receivedBefore = { ...upTo };
	}
	noteReached(sid) {
		this.#reachedIds ??= /* @__PURE__ */ new Set();
		this.#reachedIds.add(sid);
	}
	hasReached(sid) {
		return this.#reachedIds?.has(sid) ?? false;
	}
	/** Records the groups here that the frame at this position was sent to. */
	noteSent(position, groups) {
		this.#last = {
			position,
			groups
		};
	}
	/** Returns the groups that got the last frame, if that frame is at this position. */
	groupsAt(position) {
		return position > 0 && this.#last.position === position ? [...this.#last.groups] : [];
	}
	/** Records that sockets of other processes have received everything up to this position. */
	noteReceived(group, upTo) {
		this.#received[group] = Math.max(this.#received[group], upTo);
	}
	/** True when a socket may connect that lacks the frame at this position. */
	mayBeLacking(position, groups) {
		if (this.#clientId === null) return this.isUndelivered(position, groups);
		return !groups.has("client") && isAfter(position, this.#received.client);
	}
	/** True when no socket anywhere has the frame at this position. */
	isUndelivered(position, groups) {
		const { client, hosted } = this.#received;
		return groups.size === 0 && isAfter(position, Math.max(client, hosted));
	}
	/** True when, as far as this process knows, no socket got a frame of the prompt. */
	isUnreached() {
		const { client, hosted } = this.#received;
		return this.#reachedIds === void 0 && client === 0 && hosted === 0;
	}
};
/** Position 0 means that positions do not matter: no other process has the prompt. */
function isAfter(position, upTo) {
	return position === 0 || position > upTo;
}
// src/sockets/frame.ts
/** Encodes a frame of this prompt. */
function encodeFrame(frame, promptId) {
	switch (frame.kind) {
		case "json": return encodeJson(frame);
		case "text": return {
			kind: "text",
			bytes: once$1(() => binary(textFrame(frame.nodeId, frame.text)))
		};
		case "picture": return {
			kind: "picture",
			picture: encodePicture(frame.picture, promptId)
		};
		case "step": {
			const { state, classTypes, progress, picture } = frame;
			return {
				kind: "step",
				state: state && encodeState(state, classTypes),
				progress: once$1(() => textOf(progress)),
				picture: picture && encodePicture(picture, promptId)
			};
		}
	}
}
function encodeState(message, classTypes = /* @__PURE__ */ new Map()) {
	return {
		own: once$1(() => textOf(message)),
		documented: once$1(() => textOf(withClassTypes(message, classTypes)))
	};
}
function encodeJson(frame) {
	const { message, classTypes } = frame;
	const { type } = message;
	if (type === "progress_state") return {
		kind: "json",
		type,
		...encodeState(message, classTypes)
	};
	const own = once$1(() => textOf(message));
	return {
		kind: "json",
		type,
		own,
		documented: once$1(() => {
			const shown = documentedForm(frame);
			return shown === message ? own() : textOf(shown);
		})
	};
}
/** The message as the hosted service documents it; the same one where that has no other form. */
function documentedForm({ message, documented }) {
	if (message.type === "execution_error" && documented !== void 0) return {
		...message,
		data: {
			...message.data,
			exception_type: documented
		}
	};
	if (message.type !== "executed" || message.data.output === null) return message;
	const output = withVideoList(message.data.output);
	return output === message.data.output ? message : {
		...message,
		data: {
			...message.data,
			output
		}
	};
}
function encodePicture(picture, promptId) {
	const { bytes, mime, kind } = picture;
	return {
		kind,
		plain: once$1(() => binary(previewFrame(bytes, mime))),
		withMetadata: once$1(() => binary(metadataFrame(picture, promptId)))
	};
}
/** Encodes a picture with its metadata. Keys are in v1's order. */
function metadataFrame({ nodeId, displayNodeId, mime, bytes }, promptId) {
	return previewWithMetadataFrame(bytes, {
		node_id: nodeId,
		prompt_id: promptId,
		display_node_id: displayNodeId,
		parent_node_id: null,
		real_node_id: nodeId,
		image_type: mime
	});
}
/** Returns the node that runs from this frame on. `undefined`: the frame does not say. */
function activeNodeIn(frame) {
	return frame.kind === "json" && frame.message.type === "executing" ? frame.message.data.node : void 0;
}
function textOf(message) {
	return toWireFrame(encodeMessage(message), "text");
}
function binary(bytes) {
	return toWireFrame(bytes, "binary");
}
function once$1(make) {
	let made;
	return () => (made ??= { value: make() }).value;
}
// src/sockets/frame-cost.ts
/** Kinds of frames that may be dropped when too many are kept, in the order they are dropped. */
const DROP_ORDER = [
	"step",
	"text",
	"picture",
	"executed"
];
/** The assumed bytes of one frame besides its content. */
const FRAME_BYTES = 200;
/** The kind under which a frame may be dropped; `undefined`: it is never dropped. */
function dropKindOf(frame) {
	if ("picture" in frame && frame.picture) return "picture";
	if (frame.kind !== "json") return frame.kind;
	return frame.message.type === "executed" ? "executed" : void 0;
}
/** The `progress_state` of a frame, if it has one. */
function progressStateIn(frame) {
	if (frame.kind === "step") return frame.state;
	return frame.kind === "json" && frame.message.type === "progress_state" ? frame.message : void 0;
}
/** Removes a preview, which is worthless when late. `undefined`: nothing else is in the frame. */
function withoutPreview(frame) {
	if (!("picture" in frame && frame.picture !== void 0 && frame.picture.kind !== "result")) return frame;
	if (frame.kind !== "step") return void 0;
	const { picture: _, ...step } = frame;
	return step;
}
/** Bytes that a kept frame counts for. */
function frameBytes(frame) {
	switch (frame.kind) {
		case "json": return FRAME_BYTES + encodeMessage(frame.message).length;
		case "text": return FRAME_BYTES + frame.text.length;
		case "picture": return FRAME_BYTES + frame.picture.bytes.length;
		case "step": {
			const { state, picture } = frame;
			return 400 + (state ? encodeMessage(state).length : 0) + (picture?.bytes.length ?? 0);
		}
	}
}
// src/sockets/undelivered-frames.ts
/** Maximum bytes of undelivered frames of one prompt. */
const MAX_REPLAY_BYTES$1 = 67108864;
/** From this size on, only the latest `progress_state` is kept, since each one names all nodes. */
const ALL_STATES_BYTES = 262144;
/** From this count on, only the latest of consecutive steps is kept. */
const REPLAY_FRAMES = 2e3;
/** The frames of one prompt that a socket may still have to receive, in order. */
var UndeliveredFrames = class {
	#onDrop;
	#maxBytes;
	#items = [];
	#states = [];
	/** Created when the first frame is kept: thousands of prompts have no frames yet. */
	#droppable;
	#size = 0;
	#bytes = 0;
	#hasDropped = false;
	/**
	* `onDrop` is called when a frame other than a step or state is dropped. After that it is not
	* called until the list is empty.
	*/
	constructor(onDrop = () => {}, maxBytes = MAX_REPLAY_BYTES$1) {
		this.#onDrop = onDrop;
		this.#maxBytes = maxBytes;
	}
	get size() {
		return this.#size;
	}
	get bytes() {
		return this.#bytes;
	}
	/**
	* Adds a frame. `position`: its place in the prompt's event log. `sent`: a socket with another id
	* got it.
	*/
	add(frame, position, state = "unsent") {
		const content = withoutPreview(frame);
		if (!content) return;
		const item = {
			position,
			frame: content,
			bytes: 0,
			isSent: state === "sent"
		};
		const merged = this.#size >= REPLAY_FRAMES ? this.#mergeStep(this.#items.at(-1), content) : content;
		this.#items.push(item);
		this.#size++;
		this.#fill(item, merged);
	}
	/** Adds a frame that is loaded only when a socket is about to connect. */
	addLazy(loader, position) {
		this.#items.push({
			frame: void 0,
			position,
			loader,
			bytes: 0,
			isSent: false
		});
		this.#size++;
	}
	/** True when frames that were added with a loader are not loaded. */
	hasUnloaded() {
		return this.#unloaded().length > 0;
	}
	/** Loads the frames that were added with a loader, including those that are added meanwhile. */
	async loadAll() {
		for (let some = this.#unloaded(); some.length > 0; some = this.#unloaded()) for (const item of some) await this.#load(item);
	}
	/**
	* Removes frames up to this position: a socket of another process has them. Returns the last
	* frame that named the running node.
	*/
	discardUpTo(upTo) {
		if ((this.#items[0]?.position ?? Infinity) > upTo) return void 0;
		const discarded = this.#items.filter(({ position }) => position <= upTo);
		const lastFrame = discarded.findLast(({ frame }) => frame && activeNodeIn(frame) !== void 0)?.frame;
		for (const item of discarded) this.#drop(item);
		this.#items = this.#items.filter(({ position }) => position > upTo);
		return lastFrame;
	}
	/** Removes and returns all frames, with the position of the last frame. */
	takeAll() {
		const items = this.#items.filter(hasContent);
		this.#items = [];
		this.#states = [];
		this.#droppable = void 0;
		this.#size = 0;
		this.#bytes = 0;
		this.#hasDropped = false;
		return toBatch(items);
	}
	/** Returns the frames no socket got. They stay for the sockets of the prompt's client id. */
	takeUnsent() {
		const unsent = this.#items.filter((item) => hasContent(item) && !item.isSent);
		for (const item of unsent) item.isSent = true;
		return toBatch(unsent);
	}
	/** Marks frames up to this position as sent to some socket. */
	markSentUpTo(upTo) {
		for (const item of this.#items) if (item.position <= upTo) item.isSent = true;
	}
	/** Drops all frames but starts, running nodes and ends. */
	dropDetails() {
		for (const item of this.#items) {
			const isDetail = item.frame && (dropKindOf(item.frame) || progressStateIn(item.frame));
			if (item.loader || isDetail) this.#drop(item);
		}
	}
	#unloaded() {
		return this.#items.filter(({ loader }) => loader);
	}
	async #load(item) {
		const frame = await item.loader?.();
		if (item.loader === void 0) return;
		item.loader = void 0;
		const content = frame && withoutPreview(frame);
		if (content) this.#fill(item, content);
		else this.#size--;
	}
	#drop(item) {
		if (!hasContent(item)) return;
		this.#bytes -= item.bytes;
		item.bytes = 0;
		item.frame = void 0;
		item.loader = void 0;
		this.#size--;
		if (this.#items.length > 2 * this.#size + REPLAY_FRAMES) this.#items = this.#items.filter(hasContent);
	}
	#fill(item, frame) {
		this.#setFrame(item, frame);
		const kind = dropKindOf(frame);
		if (kind) (this.#droppable ??= emptyQueues())[kind].push(item);
		if (progressStateIn(frame)) this.#noteState(item);
		this.#makeSpace();
	}
	#setFrame(item, frame) {
		this.#bytes -= item.bytes;
		item.frame = frame;
		item.bytes = frameBytes(frame);
		this.#bytes += item.bytes;
	}
	#noteState(item) {
		if (this.#bytes > ALL_STATES_BYTES) for (const older of this.#states.splice(0)) this.#dropState(older);
		this.#states.push(item);
	}
	#dropState(item) {
		const { frame } = item;
		if (frame?.kind !== "step") return this.#drop(item);
		const { state: _, ...step } = frame;
		this.#setFrame(item, step);
	}
	/**
	* Replaces the previous frame when both are steps. A new step without a `progress_state` gets
	* that of the previous step.
	*/
	#mergeStep(last, frame) {
		const before = last?.frame;
		if (frame.kind !== "step" || before?.kind !== "step" || !last || before.picture) return frame;
		this.#drop(last);
		return frame.state || !before.state ? frame : {
			...frame,
			state: before.state
		};
	}
	/** Frees more than is needed, so that it does not run again for every frame. */
	#makeSpace() {
		if (this.#bytes <= this.#maxBytes) return;
		const targetBytes = .9 * this.#maxBytes;
		for (const kind of DROP_ORDER) this.#dropUntil(targetBytes, kind);
	}
	#dropUntil(targetBytes, kind) {
		const queues = this.#droppable ??= emptyQueues();
		const queue = queues[kind];
		const limit = kind === "step" ? queue.length - 1 : queue.length;
		let from = 0;
		for (; this.#bytes > targetBytes && from < limit; from++) {
			const item = queue[from];
			if (kind !== "step" && item?.frame) this.#noteDropped();
			if (item) this.#drop(item);
		}
		if (from > 0) queues[kind] = queue.slice(from);
	}
	#noteDropped() {
		if (!this.#hasDropped) this.#onDrop();
		this.#hasDropped = true;
	}
};
function toBatch(items) {
	return {
		frames: items.flatMap(({ frame }) => frame ?? []),
		position: items.at(-1)?.position ?? 0
	};
}
function emptyQueues() {
	return {
		step: [],
		text: [],
		picture: [],
		executed: []
	};
}
function hasContent({ frame, loader }) {
	return frame !== void 0 || loader !== void 0;
}
// src/sockets/write-frame.ts
const END_MESSAGES = /* @__PURE__ */ new Set([
	"execution_success",
	"execution_error",
	"execution_interrupted"
]);
/** Writes a frame to a connection, in the form the connection negotiated. */
function writeFrame(connection, frame, scope, context) {
	switch (frame.kind) {
		case "json": return writeMessage(connection, frame, context);
		case "text": return connection.sendBinary(frame.bytes());
		case "picture": return writePicture(connection, frame.picture, scope, context);
		case "step": return writeStep(connection, frame, scope, context);
	}
}
/** Writes a message. A delayed `progress_state` is sent before the end of its prompt. */
function writeMessage(connection, frame, { promptId }) {
	const { results, nodeStates } = rulesOf(connection.dialect);
	if (frame.type === "progress_state") return connection.sendState(promptId, frame[nodeStates]);
	const text = frame[results];
	if (END_MESSAGES.has(frame.type)) connection.flushState(promptId);
	connection.sendText(text());
}
/**
* Writes a step. v1 sends a type 4 picture before its `progress`, and a type 1 picture after it.
*/
function writeStep(connection, { state, progress, picture }, scope, context) {
	const isFirst = sendsMetadata(connection, scope);
	const form = rulesOf(connection.dialect).nodeStates;
	if (state) connection.sendState(context.promptId, state[form]);
	if (picture && isFirst) writePicture(connection, picture, scope, context);
	connection.sendText(progress());
	if (picture && !isFirst) writePicture(connection, picture, scope, context);
}
function writePicture(connection, picture, scope, { promptId, previewMethods }) {
	if (!acceptsPicture(picture.kind, connection, previewMethods)) return;
	const frame = sendsMetadata(connection, scope) ? picture.withMetadata() : picture.plain();
	if (picture.kind === "result" && !connection.watches) connection.sendBinary(frame);
	else connection.sendPreview(promptId, frame);
}
/**
* The original server sends type 1 pictures of a prompt without `client_id`, whatever the socket
* negotiated.
*/
function sendsMetadata(connection, scope) {
	return scope === "everything" && connection.wantsMetadata();
}
// src/sockets/channel.ts
/** Sends the frames of one prompt to its sockets, and keeps those that a socket may still need. */
var Channel = class {
	address;
	#options;
	#context;
	#undelivered;
	#delivery;
	/** The running node with its latest step and preview, for sockets that start to watch. */
	#currentFrames;
	#hasStarted = false;
	#isSuperseded = false;
	#isFetched = false;
	/**
	* The sockets that connected after the result was fetched: they get no more frames of the prompt.
	*/
	#afterFetch;
	#activeNode = null;
	#nodeBeforeUndelivered = null;
	constructor(address, options) {
		const { promptId, clientId, previewMethod } = address;
		this.address = address;
		this.#options = options;
		this.#context = {
			promptId,
			previewMethods: {
				server: options.previewMethod,
				prompt: previewMethod
			}
		};
		this.#undelivered = new UndeliveredFrames(options.onDrop);
		this.#delivery = new Delivery(clientId);
	}
	/** Sends a frame. `position`: where the frame is in the prompt's event log. */
	send(frame, position) {
		this.#rememberNodeBefore();
		this.#rememberCurrent(frame);
		this.#hasStarted ||= frame.kind === "json" && frame.message.type === "execution_start";
		const groups = this.#broadcast(frame, position);
		this.#delivery.noteSent(position, groups);
		if (!this.#isNeeded(position, groups)) return;
		const before = this.#undelivered.bytes;
		const isUndelivered = this.#delivery.isUndelivered(position, groups);
		this.#undelivered.add(frame, position, isUndelivered ? "unsent" : "sent");
		this.#options.onAdd?.(this.#undelivered.bytes - before);
	}
	/**
	* Keeps a frame that no socket here waits for. The frame is loaded when a socket is about to
	* connect.
	*/
	sendLater(loader, position) {
		this.#rememberNodeBefore();
		if (this.#isNeeded(position, NO_GROUPS)) this.#undelivered.addLazy(loader, position);
	}
	/** True when a socket of this process gets more than text frames. */
	hasListener() {
		return [...this.#options.connections()].some((connection) => connection.isOpen() && this.#scopeOf(connection) !== "texts");
	}
	/** The groups that have a socket in this process. */
	receiverGroups() {
		const groups = [...this.#options.connections()].flatMap((connection) => this.#groupOf(connection) ?? []);
		return [...new Set(groups)];
	}
	/** True when frames that a socket will get are not loaded. */
	hasUnloaded() {
		return this.#undelivered.hasUnloaded();
	}
	/** Loads the frames that a socket will get which is about to connect. */
	preload() {
		return this.#undelivered.loadAll();
	}
	/** Sends a socket that has connected the frames it missed, or the running node. */
	replayTo(connection) {
		if (connection.watches) for (const frame of this.#currentFrames?.values() ?? []) this.#write(connection, frame);
		const group = this.#groupOf(connection);
		if (this.#isFetched && group !== void 0) {
			this.#afterFetch ??= /* @__PURE__ */ new WeakSet();
			this.#afterFetch.add(connection);
			return;
		}
		const batch = group && this.#takeUndelivered(connection, group);
		if (group === void 0 || batch === void 0) return;
		const { frames, position } = batch;
		const node = frames.length === 0 ? this.#activeNode : this.#nodeBeforeUndelivered;
		if (node !== null && group === "client") connection.sendText(encodeMessage({
			type: "executing",
			data: { node }
		}));
		for (const frame of frames) this.#write(connection, frame);
		if (frames.length > 0) this.#delivery.noteReached(connection.sid);
		if (position > 0) this.#options.onCaughtUp?.(group, position);
	}
	hasUnreceived() {
		return this.#undelivered.size > 0;
	}
	/** The bytes that are kept for sockets that may connect. */
	unreceivedBytes() {
		return this.#undelivered.bytes;
	}
	/** Keeps only starts, running nodes and ends, because the memory limit is reached. */
	dropDetails() {
		this.#undelivered.dropDetails();
	}
	/** Marks that the user has submitted another prompt after this one. */
	supersede() {
		this.#isSuperseded = true;
		if (this.address.clientId === null && this.#delivery.isUnreached()) this.#undelivered.takeAll();
	}
	/** Marks that a client has fetched the result: late sockets get no frames of the prompt. */
	markFetched() {
		this.#isFetched = true;
		this.#undelivered.takeAll();
	}
	/** Returns the groups that got the last frame, if that frame is at this position of the log. */
	receivedBy(position) {
		return this.#delivery.groupsAt(position);
	}
	/** Skips frames that sockets of other processes got before this process followed the prompt. */
	skipReceived(upTo, subscribedSince) {
		if (subscribedSince === "later") this.#delivery.noteHadBefore(upTo);
		this.discardReceived("client", upTo.client);
		this.discardReceived("hosted", upTo.hosted);
	}
	/**
	* Drops frames that sockets of other processes got. Sockets that are connected here get them all
	* the same.
	*/
	discardReceived(group, upTo) {
		this.#delivery.noteReceived(group, upTo);
		if (group === "hosted" && this.address.clientId !== null) return this.#undelivered.markSentUpTo(upTo);
		const discarded = this.#undelivered.discardUpTo(upTo);
		if (!discarded) return;
		this.#nodeBeforeUndelivered = activeNodeIn(discarded) ?? this.#nodeBeforeUndelivered;
	}
	/** Sends the frame to the sockets here. Returns the groups that got it. */
	#broadcast(frame, position) {
		const encoded = encodeFrame(frame, this.#context.promptId);
		const groups = /* @__PURE__ */ new Set();
		const phase = this.#hasStarted ? "started" : "before start";
		for (const connection of this.#options.connections()) {
			if (!connection.isOpen() || this.#afterFetch?.has(connection)) continue;
			const scope = this.#scopeOf(connection);
			const group = this.#groupOf(connection, scope);
			if (this.#delivery.hadBefore(group, position)) continue;
			if (!isInScope(scope, frame, phase)) continue;
			writeFrame(connection, encoded, scope, this.#context);
			if (!group) continue;
			this.#delivery.noteReached(connection.sid);
			groups.add(group);
		}
		return groups;
	}
	/** True when a socket may connect that needs the frame at this position. */
	#isNeeded(position, groups) {
		const { clientId, isV2Job } = this.address;
		if (this.#isFetched || isV2Job) return false;
		return !(clientId === null && this.#isSuperseded && this.#delivery.isUnreached()) && this.#delivery.mayBeLacking(position, groups);
	}
	/**
	* Returns the frames for a socket that connects, by the rule of its dialect. `undefined`: the
	* socket gets no frame of this prompt.
	*/
	#takeUndelivered(connection, group) {
		const isLastPrompt = this.#delivery.isUnreached() && !this.#isSuperseded;
		const isReturning = this.#delivery.hasReached(connection.sid);
		if (group !== "client" && !isReturning && !isLastPrompt) return void 0;
		return group === "client" || this.address.clientId === null ? this.#undelivered.takeAll() : this.#undelivered.takeUnsent();
	}
	#write(connection, frame) {
		writeFrame(connection, encodeFrame(frame, this.#context.promptId), this.#scopeOf(connection), this.#context);
	}
	#scopeOf(connection) {
		return frameScopeFor(connection, this.address.clientId);
	}
	#groupOf(connection, scope = this.#scopeOf(connection)) {
		if (scope !== "everything" || connection.watches || !connection.isOpen()) return void 0;
		if (connection.isSilent()) return void 0;
		return connection.sid === this.address.clientId ? "client" : "hosted";
	}
	#rememberNodeBefore() {
		if (this.#undelivered.size === 0) this.#nodeBeforeUndelivered = this.#activeNode;
	}
	#setCurrent(frame) {
		this.#currentFrames ??= /* @__PURE__ */ new Map();
		this.#currentFrames.set(frame.kind, frame);
	}
	#rememberCurrent(frame) {
		const node = activeNodeIn(frame);
		if (node !== void 0) {
			this.#activeNode = node;
			for (const connection of this.#options.connections()) connection.discardPreview(this.#context.promptId);
		}
		if (frame.kind === "text") return;
		if (frame.kind !== "json") {
			if (frame.picture?.kind !== "result") this.#setCurrent(frame);
		} else if (node !== void 0) {
			this.#currentFrames?.clear();
			if (node !== null) this.#setCurrent(frame);
		}
	}
};
// src/sockets/open-channels.ts
/** How long frames are kept for a socket that should have received them. */
const REPLAY_MS = 12e4;
/** Maximum bytes of undelivered frames of all prompts together. */
const MAX_REPLAY_BYTES = 268435456;
/** The total is recounted after this many added bytes. */
const RECOUNT_EVERY_BYTES = 4194304;
/**
* The channels of all live prompts, and of ended prompts with frames that a socket may still need.
*/
var OpenChannels = class {
	#options;
	#channels = new ByUser();
	#closing = /* @__PURE__ */ new Map();
	#uncountedBytes = 0;
	constructor(options) {
		this.#options = options;
	}
	/** Opens the channel of a new prompt. */
	open(address, onCaughtUp) {
		const channel = new Channel(address, {
			connections: () => this.#options.connectionsOf(address.user),
			previewMethod: this.#options.previewMethod,
			onCaughtUp,
			onAdd: (bytes) => this.#enforceLimit(bytes),
			onDrop: () => this.#logDropped(address)
		});
		this.#channels.add(address.user, channel);
		return channel;
	}
	/**
	* Closes the channel of an ended prompt. Frames that a socket may still need are kept for a
	* while.
	*/
	close(channel) {
		if (!channel.hasUnreceived()) return this.#remove(channel);
		const timer = setTimeout(() => this.#remove(channel), REPLAY_MS);
		timer.unref();
		this.#closing.set(channel, timer);
	}
	/**
	* Removes the prompts of a user that are no longer shown here. No socket of the user is
	* connected.
	*/
	removeOf(user) {
		for (const channel of this.#channels.of(user)) this.#remove(channel);
	}
	/**
	* Loads the frames that a socket of this user will get, including those that arrive meanwhile.
	*/
	async preload(user) {
		const unloaded = () => [...this.#channels.of(user)].filter((channel) => channel.hasUnloaded());
		for (let some = unloaded(); some.length > 0; some = unloaded()) await Promise.all(some.map((channel) => channel.preload()));
	}
	/** Sends a new connection the frames that it missed of each prompt of its user. */
	replayTo(connection) {
		for (const channel of this.#channels.of(connection.user)) {
			channel.replayTo(connection);
			this.#removeIfDone(channel);
		}
	}
	/**
	* Marks that the user's other prompts are no longer the newest: the `POST` of this prompt was
	* answered.
	*/
	supersedeOthers(channel) {
		if (channel.address.isV2Job) return;
		for (const other of this.#channels.of(channel.address.user)) {
			if (other === channel) return;
			other.supersede();
			this.#removeIfDone(other);
		}
	}
	/**
	* Drops the frames of prompts whose results a client has: late sockets get none of them. Returns
	* the ids of the prompts of which other processes may keep frames.
	*/
	discardFetched(user, promptIds) {
		const fetched = new Set(promptIds);
		const channels = [...this.#channels.of(user)].filter(({ address }) => fetched.has(address.promptId));
		for (const channel of channels) {
			channel.markFetched();
			this.#removeIfDone(channel);
		}
		return channels.map(({ address }) => address.promptId);
	}
	/** Bytes of undelivered frames of all prompts. */
	unreceivedBytes() {
		let bytes = 0;
		for (const channel of this.#channels.all()) bytes += channel.unreceivedBytes();
		return bytes;
	}
	stopTimers() {
		for (const timer of this.#closing.values()) clearTimeout(timer);
	}
	/** Drops frames until the limit holds: those of ended prompts first, the oldest prompt first. */
	#enforceLimit(addedBytes) {
		const { maxReplayBytes = MAX_REPLAY_BYTES } = this.#options;
		this.#uncountedBytes += addedBytes;
		if (this.#uncountedBytes < Math.min(RECOUNT_EVERY_BYTES, maxReplayBytes / 10)) return;
		this.#uncountedBytes = 0;
		let excessBytes = this.unreceivedBytes() - maxReplayBytes;
		if (excessBytes <= 0) return;
		for (const channel of /* @__PURE__ */ new Set([...this.#closing.keys(), ...this.#channels.all()])) {
			if (excessBytes <= 0) return;
			const before = channel.unreceivedBytes();
			channel.dropDetails();
			const freedBytes = before - channel.unreceivedBytes();
			if (freedBytes > 0) this.#logDropped(channel.address);
			excessBytes -= freedBytes;
		}
	}
	#logDropped({ user, promptId }) {
		const facts = {
			event: "socket.undelivered_dropped",
			user,
			promptId
		};
		this.#options.log?.warn(facts, UNDELIVERED_DROPPED);
	}
	#removeIfDone(channel) {
		if (this.#closing.has(channel) && !channel.hasUnreceived()) this.#remove(channel);
	}
	#remove(channel) {
		clearTimeout(this.#closing.get(channel));
		this.#closing.delete(channel);
		this.#channels.delete(channel.address.user, channel);
	}
};
const UNDELIVERED_DROPPED = "dropped frames that no socket received, because they are too many; the results are in the history";
// src/sockets/hub.ts
/**
* One client gives up after ten seconds without a text frame. A socket of a user with live prompts
* that got no text frame for this long gets a status message at the next check: at most 8 s after
* the last frame on a busy machine, as row `keepalive` of `differences.md` says.
*/
const STATUS_KEEP_ALIVE_MS = 7e3;
/**
* The interval of pings, and the time to answer one. Simple clients take a ping for a message, so a
* short session must get none. Row `keepalive` names this time, too.
*/
const PING_INTERVAL_MS = 3e4;
/** How often keep-alives and pings are checked. */
const CHECK_MS = 500;
const NORMAL_CLOSURE = 1e3;
/** All WebSockets of all users, and the channels of their prompts. */
var Hub = class {
	channels;
	#options;
	#now;
	#connections = new ByUser();
	#timers;
	#droppedFrames = 0;
	#isClosed = false;
	constructor(options) {
		this.#options = options;
		this.#now = options.now ?? monotonicNow;
		this.channels = new OpenChannels({
			connectionsOf: (user) => this.#connections.of(user),
			previewMethod: options.previewMethod,
			maxReplayBytes: options.maxReplayBytes,
			log: options.log
		});
		this.#timers = [setInterval(() => this.#keepAlive(), CHECK_MS).unref(), setInterval(() => this.#pingThoseDue(), CHECK_MS).unref()];
	}
	/** Takes over an upgraded socket. An absent or empty `clientId` gets a new id. */
	addConnection(upgraded, { user, clientId, notice, ...traits }) {
		const sid = clientId || randomBytes(16).toString("hex");
		const connection = new SocketConnection(upgraded, {
			user,
			sid,
			...traits,
			serverFlags: this.#options.serverFlags,
			frameObserver: this.#options.frameObserver,
			now: this.#now,
			onClose: () => this.#removeConnection(user, connection),
			onDrop: () => this.#droppedFrames++
		});
		connection.sendText(this.#statusText(user, sid));
		if (notice !== void 0) sendNotification(connection, notice);
		this.channels.replayTo(connection);
		if (!this.#connections.has(user)) this.#options.onPresenceChange?.(user, true);
		this.#connections.add(user, connection);
	}
	/**
	* Closes a socket to make room for a new one: the oldest of this client id, else the oldest that
	* answers no pings. That one is of this user or, where the server is full, of any user. False
	* when there is none.
	*
	* Some clients open a socket for each prompt and never close it; the original sends all frames to
	* the newest.
	*/
	makeRoom({ user, clientId, where }) {
		const own = [...this.#connections.of(user)].filter((connection) => connection.isOpen());
		const replaced = own.find(({ sid }) => sid === clientId) ?? own.find((connection) => connection.isSilent()) ?? (where === "server" ? this.#oldestSilent() : void 0);
		replaced?.closeAtOnce(NORMAL_CLOSURE);
		return replaced !== void 0;
	}
	/** Sends all sockets of this user the number of prompts that are left. */
	sendStatus(user) {
		if (!this.#connections.has(user)) return;
		const text = toWireFrame(this.#statusText(user), "text");
		for (const connection of this.#connections.of(user)) if (connection.isOpen()) connection.sendText(text);
	}
	/** Sends a message to the sockets of this id, if there are any. */
	sendTo(user, clientId, message) {
		for (const connection of this.#connections.of(user)) {
			if (connection.sid !== clientId || !connection.isOpen()) continue;
			connection.sendText(encodeMessage(message));
		}
	}
	/** Sends a `notification` to the sockets of this user whose dialect has that message. */
	notify(user, text) {
		for (const connection of this.#connections.of(user)) sendNotification(connection, text);
	}
	/** Sends each socket the text for its client. */
	notifyClients = (textFor) => {
		for (const connection of this.#connections.all()) {
			const text = textFor(connection);
			if (text !== void 0) sendNotification(connection, text);
		}
	};
	/** True when the server is stopping. */
	isClosed() {
		return this.#isClosed;
	}
	/** The number of sockets, of one user or of all. */
	count(user) {
		return user === void 0 ? this.#connections.size : this.#connections.of(user).size;
	}
	/** Bytes that sockets have not accepted yet. */
	pendingBytes() {
		let bytes = 0;
		for (const connection of this.#connections.all()) bytes += connection.pendingBytes();
		return bytes;
	}
	/** Previews dropped since the start, because a socket was too slow. */
	droppedFrames() {
		return this.#droppedFrames;
	}
	/** True when a socket gets more than text frames of a prompt with this client id. */
	hasListener(user, clientId) {
		for (const connection of this.#connections.of(user)) if (frameScopeFor(connection, clientId) !== "texts") return true;
		return false;
	}
	/**
	* Closes all sockets. `isClosed` is true from then on, and upgrades are refused: a new socket
	* would count as having received frames that its client may never see.
	*/
	close() {
		this.#isClosed = true;
		for (const timer of this.#timers) clearInterval(timer);
		this.channels.stopTimers();
		for (const connection of this.#connections.all()) connection.close(1001);
	}
	#keepAlive() {
		for (const user of this.#connections.users()) {
			if (this.#options.remaining(user) === 0) continue;
			for (const connection of this.#connections.of(user)) {
				const isQuiet = this.#now() - connection.lastTextAtMs >= STATUS_KEEP_ALIVE_MS;
				if (connection.isOpen() && isQuiet) connection.sendText(this.#statusText(user));
			}
		}
	}
	#oldestSilent() {
		for (const connection of this.#connections.all()) if (connection.isOpen() && connection.isSilent()) return connection;
	}
	/**
	* Pings each socket an interval after its last ping or its connection: a short session of a
	* simple client gets no ping.
	*/
	#pingThoseDue() {
		const dueSinceMs = this.#now() - PING_INTERVAL_MS + CHECK_MS;
		for (const connection of this.#connections.all()) if (connection.lastPingAtMs < dueSinceMs) connection.ping();
	}
	#removeConnection(user, connection) {
		this.#connections.delete(user, connection);
		if (!this.#connections.has(user)) this.#options.onPresenceChange?.(user, false);
	}
	#statusText(user, sid) {
		const status = { exec_info: { queue_remaining: this.#options.remaining(user) } };
		return encodeMessage({
			type: "status",
			data: sid === void 0 ? { status } : {
				status,
				sid
			}
		});
	}
};
function sendNotification(connection, value) {
	if (!(rulesOf(connection.dialect).notifications === "sent") || connection.watches || !connection.isOpen()) return;
	connection.sendText(encodeMessage({
		type: "notification",
		data: { value }
	}));
}
// src/app/example-input.ts
const EXAMPLE = packageUrl("fixtures/inputs/example.png");
const NAME = {
	type: "input",
	subfolder: "",
	filename: "example.png"
};
/**
* The modification time of the example. It is older than every upload, because lists of files begin with the newest.
*/
const MODIFIED_AT_MS = Date.UTC(2026, 0, 1);
/**
* Adds `example.png` to the inputs of each user, as long as the embedded engine runs the jobs. The
* input folder of the original server has that file from the start, and front ends name it in every
* new `LoadImage`. A plain input folder is left as its owner made it.
*/
function withExampleInput({ config, runner, spoolDir }) {
	const { ledger } = runner.folders;
	if (config.upstream.kind !== "embedded") return ledger;
	const hasSharedInput = (user) => config.folders.inputDirectory !== void 0 && user === "local";
	return {
		...ledger,
		files: addExample(ledger.files, {
			jobs: runner.jobs,
			spoolDir,
			hasSharedInput
		})
	};
}
/** Lists the example, and stores it for a user when it is first requested by name. */
function addExample(files, services) {
	const storing = /* @__PURE__ */ new Map();
	const lists = /* @__PURE__ */ new WeakMap();
	/** Stores the example for a user. Concurrent requests get the same asset. */
	function store(user) {
		const task = storing.get(user) ?? storeExample(files, user, services).finally(() => storing.delete(user));
		storing.set(user, task);
		return task;
	}
	return {
		...files,
		async get(user, name) {
			return await files.get(user, name) ?? (isExample(name) && !services.hasSharedInput(user) ? store(user) : void 0);
		},
		async list(user, type) {
			const rows = await files.list(user, type);
			if (type !== "input" || services.hasSharedInput(user)) return rows;
			const all = lists.get(rows) ?? (rows.some(isExample) ? rows : [...rows, exampleRow(user)]);
			lists.set(rows, all);
			return all;
		}
	};
}
function isExample({ type, subfolder, filename }) {
	return filename === NAME.filename && subfolder === NAME.subfolder && type === NAME.type;
}
function exampleRow(user) {
	return {
		...NAME,
		user,
		assetId: "",
		hash: null,
		sizeBytes: statSync(EXAMPLE).size,
		contentType: contentTypeFor(NAME.filename),
		modifiedAtMs: MODIFIED_AT_MS
	};
}
/** Stores the example. An upload of the same name that comes in between has priority. */
async function storeExample(files, user, { jobs, spoolDir }) {
	const caller = { user };
	const file = await spoolBytes$1(readFileSync(EXAMPLE), { dir: spoolDir });
	try {
		const asset = await storeBytes(jobs, {
			...NAME,
			caller,
			file
		});
		const row = {
			...exampleRow(user),
			assetId: asset.id,
			hash: file.hash
		};
		if (!await files.claim(row)) await jobs.deleteAsset(caller, asset.id);
	} finally {
		await rm(file.path, { force: true });
	}
	return files.get(user, NAME);
}
// src/http/upload-limit.ts
const MAX_PER_USER = 8;
/** Shorter than the limit of an idle body, since a waiting body is not read. */
const MAX_WAIT_MS = 2e4;
const TIMED_OUT = /* @__PURE__ */ new Error("waited too long");
/** The refusal of an upload whose body has not been read. */
const BUSY = {
	...refusedBody(503, "Too many uploads of this user are on their way."),
	retryAfterSeconds: 5
};
function createUploadLimit({ maxPerUser = MAX_PER_USER, maxWaitMs = MAX_WAIT_MS } = {}) {
	const slotsByUser = /* @__PURE__ */ new Map();
	/** Receives an upload as soon as the user has a free slot. Refuses it after a limited wait. */
	return async (user, receive) => {
		const slots = slotsByUser.get(user) ?? withTimeout(new Semaphore(maxPerUser), maxWaitMs, TIMED_OUT);
		slotsByUser.set(user, slots);
		try {
			return await slots.runExclusive(receive);
		} catch (error) {
			if (error === TIMED_OUT) return BUSY;
			throw error;
		} finally {
			if (slots.getValue() === maxPerUser) slotsByUser.delete(user);
		}
	};
}
// src/app/stored-links.ts
/** Makes links to the objects of a bucket, for callers that `--view redirect` sends there. */
function createStoredLinks(ledger, blobs, now) {
	const { linkTo } = blobs;
	if (linkTo === void 0) return void 0;
	return async ({ user }, { row, fetchDest }) => {
		const headers = headersElsewhere(row, fetchDest);
		const asset = await ledger.assets.get(row.assetId);
		const isThere = asset?.user === user && (asset.expiresAtMs ?? Infinity) > now();
		return headers && isThere ? await linkTo(asset.hash, headers) : void 0;
	};
}
// src/app/file-services.ts
const MAX_DECODERS = 2;
/** Opens the place of user data: the data directory, or the bucket with the other files. */
function openUserData({ userdataQuotaBytes: quotaBytes }, { dir, files }) {
	if (files.bucket) return createBucketUserData({
		objects: files.bucket.objects,
		quotaBytes
	});
	return createUserDataStore({
		root: dir.userData,
		quotaBytes
	});
}
/** The files of users: uploads, outputs, and files that front ends store. */
function openFileServices(config, { store, ledger, auth, upstream, now }) {
	const { dir } = store;
	const { maxUploadBytes } = config;
	const decodeSlots = createSemaphore(MAX_DECODERS);
	const linkToStored = config.view === "redirect" && config.upstream.kind === "embedded" && createStoredLinks(ledger, store.files.blobs, now);
	const signer = createViewSigner({
		secret: dir.secret,
		now
	});
	const limitUploads = createUploadLimit();
	return {
		names: ledger.files,
		userData: openUserData(config, store),
		spoolDir: dir.spool,
		maxUploadBytes,
		limitUploads,
		/** The services of the v1 routes for uploads and downloads. */
		routes: {
			jobs: upstream.jobs,
			startUpload: upstream.runner.startUpload ?? store.files.bucket?.startUpload,
			files: ledger.files,
			view: config.view,
			signer,
			...linkToStored && { linkToStored },
			decodeSlots,
			limitUploads,
			durability: config.upstream.kind === "remote" || store.files.bucket ? "transient" : "fsync",
			callerOf: auth.keyring.callerOf,
			addresses: auth.addresses,
			spoolDir: dir.spool,
			maxUploadBytes,
			now
		}
	};
}
// src/app/logs.ts
const START_LINE = `Holdover ${packageVersion()} started`;
/** Opens the logs of a process. Lines of the operator log also go into the log panel of v1 clients. */
function openLogs(operatorLog, options) {
	const feed = createLogFeed({ sendTo: options.sendTo });
	const buffer = createLogBuffer({
		now: options.now,
		startLine: START_LINE,
		onEntry: feed.push
	});
	return {
		log: buffer.wrap(operatorLog),
		/** Writes the line of each request. */
		requestLog: buffer.wrap(withoutRedaction(operatorLog)),
		buffer,
		feed
	};
}
// src/app/services.ts
/** Opens the ledger, the upstream and all services that use them. No call is served yet. */
async function openServices(config, { log: operatorLog, nodeLibrary, sessionRecorder }) {
	const now = Date.now;
	const logs = openLogs(operatorLog, {
		now,
		sendTo: (...lines) => sockets.sendTo(...lines)
	});
	const { log } = logs;
	const store = await openStore(config, log);
	const live = createLivePrompts({ onPending: logPending(log) });
	const eventLog = await openPromptEventLog(store, log);
	const tracing = await openTracing(config.tracing, {
		version: packageVersion(),
		log
	});
	const upstreamKey = config.upstream.kind === "remote" ? config.upstream.key : void 0;
	const secrets = createSecretRedactor([config.localToken, upstreamKey]);
	const promptIdOf = createPromptIdLookup(live);
	const trafficLog = log.isLevelEnabled("debug") ? createTrafficLog({
		log,
		secrets,
		promptIdOf
	}) : void 0;
	const trafficRecorder = new TrafficRecorder({
		now: monotonicNow,
		secrets,
		promptIdOf,
		isRemote: config.upstream.kind === "remote"
	});
	const sockets = createSockets(config, {
		live,
		eventLog,
		log,
		trafficLog,
		trafficRecorder
	});
	await connectLogs(store, logs);
	const identify = createIdentify({
		secret: store.dir.secret,
		localToken: config.localToken
	});
	const metrics = createMetrics({
		version: packageVersion(),
		upstreamKind: config.upstream.kind,
		identify
	});
	const upstream = await openUpstreamServices({
		config,
		nodeLibrary,
		sessionRecorder,
		log,
		store,
		trafficLog,
		tracing,
		trafficRecorder,
		onCall: (...call) => metrics.onUpstreamCall(...call),
		isWatched(user, jobId) {
			const prompt = live.find(user, jobId);
			if (prompt === void 0) return false;
			return sockets.hasListener(user, prompt.clientId) || eventLog.isWatched(user);
		}
	});
	const { runner } = upstream;
	const auth = createAuth({
		config,
		identify: tracing?.requests.withContext(identify) ?? identify,
		secrets,
		runner
	});
	const usageCounter = await openUsageCounter({
		calls: store.ledger.calls,
		log,
		now
	});
	const ledger = withExampleInput({
		config,
		runner: upstream.runner,
		spoolDir: store.dir.spool
	});
	const prompts = {
		live,
		eventLog,
		counter: await openPromptCounter({
			links: store.links,
			ledger
		})
	};
	const sharedFigures = createSharedFigures({
		links: store.links,
		server: trafficRecorder.store.server,
		version: packageVersion()
	});
	const life = openPrompts({
		config,
		logs,
		metrics,
		auth,
		ledger,
		upstream,
		sockets,
		spans: tracing?.prompts,
		...prompts
	});
	const metered = {
		livePrompts: { countByState: () => live.countByState(({ key }) => eventLog.isLeader(key)) },
		prompts: life,
		hub: sockets,
		upstream: runner
	};
	metrics.watch(metered);
	const figures = createFigures({
		now,
		totals: () => metrics.totals(),
		services: metered,
		diskBytes: () => ledger.assets.totalBytes(),
		onSample: sharedFigures.exchange
	});
	return {
		config,
		now,
		logs,
		metrics,
		store,
		bodies: createBodies(config, live, log),
		deprecation: createDeprecation({
			...config.deprecationSettings,
			now,
			countCall: sessionRecorder ? ignoreUsage : usageCounter.count
		}),
		usageCounter,
		sessionRecorder,
		/** `undefined` when the log level needs no traffic lines. */
		trafficLog,
		/** `undefined` when tracing is off. */
		tracing,
		trafficRecorder,
		figures,
		sharedFigures,
		secrets,
		auth,
		ledger,
		upstream,
		sockets,
		files: openFileServices(config, {
			store,
			ledger,
			auth,
			upstream,
			now
		}),
		prompts: {
			...prompts,
			life
		}
	};
}
/**
* Returns a function that logs a line each time a prompt begins to wait for another reason; `undefined` when the log
* level does not need it.
*/
function logPending(log) {
	if (!log.isLevelEnabled("debug")) return void 0;
	return ({ caller, promptId }, reason) => {
		const facts = {
			event: "prompt.pending",
			user: caller.user,
			promptId,
			reason
		};
		log.debug(facts, pendingRow(reason).text);
	};
}
/** The feature flags of the server, in `/features` and on every WebSocket. */
function featuresOf({ maxUploadBytes }) {
	return {
		supports_preview_metadata: true,
		max_upload_size: maxUploadBytes
	};
}
function createSockets(config, parts) {
	const { live, eventLog, log, trafficLog, trafficRecorder } = parts;
	const { frames: recorded } = trafficRecorder;
	return new Hub({
		remaining: live.count,
		serverFlags: featuresOf(config),
		previewMethod: config.previewMethod,
		onPresenceChange: (user, isThere) => eventLog.watch(user, isThere),
		log,
		frameObserver: trafficLog ? loggedFrames(trafficLog, recorded) : recorded
	});
}
function loggedFrames(trafficLog, recorded) {
	return {
		isOn: () => true,
		record(frame) {
			trafficLog.frame(frame);
			if (recorded.isOn()) recorded.record(frame);
		}
	};
}
/** Finds the id that clients know of a live prompt, by the id of its job or by its key. */
function createPromptIdLookup(live) {
	return (user, id) => (live.find(user, id) ?? live.list(user).find(({ key }) => key === id))?.promptId;
}
function openPrompts(parts) {
	const { config, logs, metrics, auth, ledger, upstream, sockets, live, eventLog, counter } = parts;
	const { runner, jobs, definitions } = upstream;
	const isRemote = config.upstream.kind === "remote";
	return createPrompts({
		jobs,
		ledger,
		promptEventLog: eventLog,
		livePrompts: live,
		hub: sockets,
		spans: parts.spans,
		log: logs.log,
		endLog: logs.requestLog,
		history: config.history,
		durability: PROMPT_DURABILITY[isRemote ? "service" : "ledger"],
		mayLoseJobs: isRemote,
		mayRerunJobs: runner.mayRerunJobs ?? false,
		mayAcceptPartially: isRemote,
		mayFindOthersFiles: isRemote,
		onEnded: metrics.onPromptEnded,
		objectInfo: definitions.info,
		uploadFolderOf: runner.uploadFolderOf,
		reupload: runner.reupload,
		keyring: auth.keyring,
		needsCredential: runner.needsCredential,
		counter,
		outboxLimit: config.outboxLimit,
		retryPolicy: config.upstream.kind === "remote" ? config.upstream.limits["outbox"] ?? {} : {},
		clock: systemClock,
		deadlineClock: monotonicClock
	});
}
// src/app/routes.ts
/** Every route of v1. */
function v1Routes(services, { frontend }) {
	const { bodies, ledger, files, prompts, upstream, logs, config } = services;
	const { live, life, counter } = prompts;
	const { cancel, markFetched, acceptor } = life;
	return [
		...whenReady(life.whenCurrent, [
			...promptRoutes({
				acceptor,
				livePrompts: live,
				ledger,
				counter,
				bodies,
				clock: monotonicClock,
				onSubmission(caller, promptId) {
					services.trafficLog?.submission(caller, promptId);
					services.trafficRecorder.submission(caller, promptId);
				}
			}),
			...queueRoutes({
				livePrompts: live,
				ledger,
				cancel,
				bodies,
				forgetResults: upstream.runner.forgetResults
			}),
			...jobRoutes({
				cancel,
				ledger,
				livePrompts: live,
				bodies,
				markFetched
			})
		]),
		...whenReady((user) => prompts.eventLog.followUser(user), historyRoutes({
			ledger,
			bodies,
			markFetched
		})),
		...fileRoutes(files.routes),
		...plainSocketRoutes(),
		...catalogRoutes({
			definitions: upstream.definitions,
			files: files.names,
			settings: ledger.settings,
			bodies,
			userData: files.userData,
			spoolDir: files.spoolDir,
			maxUploadBytes: files.maxUploadBytes,
			limitUploads: files.limitUploads,
			features: featuresOf(config),
			version: packageVersion(),
			extensions: frontend?.extensions,
			workflowTemplates: frontend?.workflowTemplates,
			logBuffer: logs.buffer,
			logFeed: logs.feed
		})
	];
}
/** Signed links, and the recorder of a traced session. Both come before authentication. */
function earlyMiddleware({ sessionRecorder, files }) {
	const signedView = signedViewMiddleware(files.routes);
	return [...sessionRecorder ? [sessionRecorder.serve] : [], withRouteLabel("/view", signedView)];
}
/** Routes that authenticate their callers themselves, or serve all of them. */
function publicMiddleware(services, { frontend, models, passThrough, isStopping }) {
	const { upstream, metrics, config, auth } = services;
	const startPage = homePage({
		version: packageVersion(),
		upstream: upstreamName(config.upstream),
		path: frontend ? "/holdover" : "/",
		addresses: auth.addresses
	});
	const parts = neededParts(services);
	return [
		withRouteLabel("/(healthz|readyz)", healthRoutes({
			jobs: upstream.runner.jobs,
			parts,
			isStopping
		})),
		metrics.serve,
		withRouteLabel("/holdover/api/*", openConsole(services, createJobQueueReason(parts, services))),
		withRouteLabel("/holdover", startPage),
		...mountEmbeddedV2(services).map((v2) => withRouteLabel("/api/v2/*", v2)),
		...passThrough ? [withRouteLabel(PASS_THROUGH_ROUTES.v2, passThrough.v2), withRouteLabel(PASS_THROUGH_ROUTES.router, passThrough.router)] : [],
		...models ? [withRouteLabel("/v1/models/*", models.middleware)] : []
	];
}
// src/http/compression.ts
/**
* The extensions of compressed files beside the original. Such a file is preferred to compressing
* here.
*/
const SUFFIXES = {
	br: ".br",
	gzip: ".gz"
};
const CACHE_BYTES = 67108864;
const MIN_BYTES = 1024;
/** Larger files are sent uncompressed: compressing them would fill memory. */
const MAX_BYTES = 16777216;
const MAX_CONCURRENT = 2;
/**
* Archives and checkouts round times. A compressed file that is older than this belongs to an
* earlier build.
*/
const MTIME_SLACK_MS = 2e3;
function createCompressor() {
	const withSlot = createSemaphore(MAX_CONCURRENT);
	const cache = new LRUCache({
		maxSize: CACHE_BYTES,
		sizeCalculation: ({ length }) => length + 1,
		fetchMethod: (_key, _stale, { context: { file, encoding } }) => withSlot(async () => COMPRESS[encoding](await readFile(file.path)))
	});
	async function compress(file, encoding) {
		const key = `${encoding} ${file.etag} ${file.path}`;
		const bytes = await cache.fetch(key, { context: {
			file,
			encoding
		} });
		if (bytes === void 0 || bytes.length >= file.sizeBytes) return void 0;
		return {
			encoding,
			bytes,
			etag: file.etag.replace(/"$/, `-${encoding}"`)
		};
	}
	return async (ctx, file) => {
		if (ctx.get("Range") !== "") return void 0;
		const accepted = encodingsFor(ctx);
		for (const encoding of accepted) {
			const sibling = await siblingOf(file, SUFFIXES[encoding]);
			if (sibling) return {
				encoding,
				file: sibling
			};
		}
		const [best] = accepted;
		const isWorthCompressing = file.sizeBytes >= MIN_BYTES && file.sizeBytes <= MAX_BYTES;
		return best && isWorthCompressing ? compress(file, best) : void 0;
	};
}
async function siblingOf(file, suffix) {
	const address = (file.path.slice(file.root.length) + suffix).split(/[\\/]/).map(encodeURIComponent).join("/");
	const sibling = await findBelow(file.root, address.startsWith("/") ? address : `/${address}`);
	return sibling && sibling.modifiedAtMs + MTIME_SLACK_MS >= file.modifiedAtMs ? sibling : void 0;
}
// src/pages/templates.ts
const FOLDER = packageUrl("fixtures/templates/");
/** The class of our own comes from a pack, to a front end. */
const PACK_NAME = "holdover";
/** Nodes that only front ends know. */
const NOTE_CLASSES = /* @__PURE__ */ new Set(["Note", "MarkdownNote"]);
const URL_PREFIX = /^\/(?:api\/)?(?:templates|workflow_templates)(?=\/)/;
/** Reads the workflows once; each is listed only for callers whose upstream can run it. */
function openTemplates({ definitions, hasExample }) {
	const index = JSON.parse(readFileSync(new URL("index.json", FOLDER), "utf8"));
	const requirements = new Map(workflowNames().map((name) => [name, requirementsOf(name)]));
	async function runnableBy(caller) {
		const known = await definitions.current(caller);
		if (!known.ok || known.isEmbeddedFallback) return () => false;
		const { members } = known.definitions;
		return (name) => {
			const { classes = [], needsExample = false } = requirements.get(name) ?? {};
			return classes.every((type) => members.has(type)) && (hasExample || !needsExample);
		};
	}
	return {
		/** `/templates/index.json` for this caller: those whose classes are there to run them. */
		async index(caller) {
			const isRunnable = await runnableBy(caller);
			return index.map((category) => ({
				...category,
				templates: category.templates.filter(({ name }) => isRunnable(name))
			}));
		},
		/** `/workflow_templates` for this caller: the names of each pack's example workflows. */
		async packs(caller) {
			const isRunnable = await runnableBy(caller);
			const names = [...requirements.keys()].filter((name) => name.startsWith(`${PACK_NAME}/`)).filter(isRunnable).map((name) => name.slice(9));
			return names.length === 0 ? {} : { [PACK_NAME]: names };
		},
		/** A workflow or its thumbnail by its address below `/templates` or `/workflow_templates`. */
		async find(path) {
			return !URL_PREFIX.test(path) || TEMPLATE_LIST.test(path) ? void 0 : findBelow(fileURLToPath(FOLDER), path.replace(URL_PREFIX, ""));
		}
	};
}
/** `name` of those the index lists, `holdover/name` of the pack's. */
function workflowNames() {
	return readdirSync(FOLDER, {
		recursive: true,
		encoding: "utf8"
	}).filter((path) => path.endsWith(".json") && path !== "index.json").map((path) => path.replace(/\.json$/, "").replaceAll("\\", "/")).toSorted();
}
function requirementsOf(name) {
	const text = readFileSync(new URL(`${name}.json`, FOLDER), "utf8");
	const { nodes } = JSON.parse(text);
	const classes = nodes.map(({ type }) => type).filter((type) => !NOTE_CLASSES.has(type));
	return {
		classes: [...new Set(classes)],
		needsExample: text.includes("\"example.png\"")
	};
}
/** A list of templates in the language asked for: ours is in English, which front ends fall back on. */
const TEMPLATE_LIST = /^\/templates\/index(\.[\w-]+)?\.json$/;
const TEMPLATE_LOGOS_PATH = "/templates/index_logo.json";
/** Answers lists of templates; whether it did. */
async function serveTemplateList(templates, ctx) {
	if (ctx.path === TEMPLATE_LOGOS_PATH) sendJson(ctx, {});
	else if (TEMPLATE_LIST.test(ctx.path)) sendJson(ctx, await templates.index(ctx.state.caller));
	else return false;
	return true;
}
// src/pages/frontend.ts
/** Types worth making smaller; pictures, fonts and archives are small already. */
const COMPRESSIBLE = /^(text\/|application\/(javascript|json|manifest\+json|xml|wasm)|image\/svg)/;
/** Names bundlers make from the content, with eight characters of a hash before the extension. */
const HASHED_NAME = /-(?=[\w-]*(\d|(?<!-)[A-Z_]))[\w-]{8}(\.\w+){1,2}$/;
/** Scripts of our own that a front end loads, at their addresses below `/extensions`. */
const BUNDLED_EXTENSIONS = ["/extensions/holdover/starter-graph.js"];
const BUNDLED_EXTENSION = /^(?:\/api)?\/extensions\/holdover(?=\/)/;
const BUNDLED_FOLDER = fileURLToPath(packageUrl("page/extensions/"));
const MAX_EXTENSIONS = 1e4;
function createFrontend(root, templates) {
	const compress = createCompressor();
	async function serve(ctx, file) {
		const type = contentType(extname(file.path)) || "application/octet-stream";
		ctx.set("Content-Type", type);
		ctx.set(cacheHeadersOf(ctx.path));
		if (!COMPRESSIBLE.test(type)) return sendFile(ctx, file);
		ctx.vary("Accept-Encoding");
		const compressed = await compress(ctx, file);
		return compressed ? sendCompressed(ctx, compressed) : sendFile(ctx, file);
	}
	return {
		/** Serves its files where no route of the old API answers. */
		async serve(ctx, next) {
			if (ctx.method !== "GET" && ctx.method !== "HEAD") return next();
			const file = await findBelow(root, START_PATHS.has(ctx.path) ? "/index.html" : ctx.path) ?? await findBundled(templates, ctx.path);
			if (file) return serve(ctx, file);
			if (await serveTemplateList(templates, ctx)) return;
			if (ctx.path === "/user.css") return sendEmptyStylesheet(ctx);
			return next();
		},
		/** The list of `/extensions`. */
		extensions: async () => [...await listExtensions(root), ...BUNDLED_EXTENSIONS],
		/** The lists of `/workflow_templates`. */
		workflowTemplates: templates.packs
	};
}
/** Files given along with a front end; its own come first. */
function findBundled(templates, path) {
	if (BUNDLED_EXTENSION.test(path)) return findBelow(BUNDLED_FOLDER, path.replace(BUNDLED_EXTENSION, ""));
	return templates.find(path);
}
function sendCompressed(ctx, compressed) {
	ctx.set("Content-Encoding", compressed.encoding);
	if ("file" in compressed) return sendFile(ctx, compressed.file);
	ctx.status = 200;
	ctx.set("ETag", compressed.etag);
	if (isCopyCurrent(ctx.req, compressed)) {
		ctx.remove("Content-Encoding");
		ctx.status = 304;
		return;
	}
	const type = ctx.response.get("Content-Type");
	ctx.body = compressed.bytes;
	ctx.set("Content-Type", type);
}
/** Pages ask for it whether or not there is one. */
function sendEmptyStylesheet(ctx) {
	sendEmpty(ctx);
	ctx.set("Content-Type", "text/css; charset=utf-8");
}
/** The page itself must never be an old one; what carries a hash in its name never changes. */
function cacheHeadersOf(path) {
	if (START_PATHS.has(path) || path === "/index.html") return {
		"Cache-Control": "no-cache",
		Pragma: "no-cache",
		Expires: "0"
	};
	if (path.startsWith("/assets/") && HASHED_NAME.test(basename(path))) return { "Cache-Control": "public, max-age=31536000, immutable" };
	if (PICTURE.test(path)) return { "Cache-Control": "public, max-age=86400" };
	return { "Cache-Control": "no-cache" };
}
/** Every script below `extensions/`, by its address; links are not followed. */
async function listExtensions(root) {
	const top = join(root, "extensions");
	const found = [];
	const folders = [top];
	for (const folder of folders) for (const entry of await entriesOf(folder)) {
		const path = join(folder, entry.name);
		if (entry.isDirectory()) folders.push(path);
		else if (entry.name.endsWith(".js") && found.length < MAX_EXTENSIONS) found.push(path);
	}
	return found.map((path) => `/extensions/${relative(top, path).split(sep).join("/")}`).toSorted();
}
async function entriesOf(folder) {
	return (await readdir(folder, { withFileTypes: true }).catch(() => [])).filter((entry) => !entry.name.startsWith(".") && (entry.isFile() || entry.isDirectory()));
}
// src/app/server.ts
/** Builds the services and opens the server. */
async function startServer(config, log, { sessionRecorder, ...nodeLibrary } = { nodes: ALL_NODES }) {
	const services = await openServices(config, {
		log,
		nodeLibrary,
		sessionRecorder
	});
	const { ledger, prompts, upstream, deprecation, sockets, store } = services;
	let isStopping = false;
	const mounts = {
		frontend: openFrontend(config, upstream.definitions),
		models: await openEmbeddedRouter(services),
		passThrough: await openPassThrough(services),
		isStopping: () => isStopping
	};
	const server = createServer$2(services, mounts);
	await ledger.prompts.pruneHistory(config.history);
	await prompts.life.resume();
	acceptSockets(server, services);
	const changesUnderWay = countChanges(server);
	const port = await listen(server, config);
	const stopAnnouncing = deprecation.startAnnouncing(sockets.notifyClients);
	logStart(log, services, port);
	await logTracedPrompt(services);
	upstream.runner.start();
	upstream.definitions.start();
	return {
		url: urlOf(config, port),
		port,
		lost: store.lost,
		async close() {
			isStopping = true;
			await setTimeout$1(config.shutdownDelayMs);
			stopAnnouncing();
			await stopListening(server);
			services.logs.feed.close();
			services.trafficRecorder.close();
			services.figures.close();
			sockets.close();
			await untilAnswered(server, changesUnderWay);
			await closeServices(services, mounts);
			server.closeAllConnections();
		}
	};
}
function createServer$2(services, mounts) {
	const { config, auth, metrics, logs, sessionRecorder } = services;
	const entry = createRequestEntry({
		serveWithApp: createKoaApp(services, mounts, v1Routes(services, mounts)),
		passThrough: mounts.passThrough,
		guard: auth.guard,
		corsOrigin: config.corsOrigin,
		sessionRecorder,
		trafficLog: services.trafficLog,
		tracing: services.tracing,
		trafficRecorder: services.trafficRecorder,
		metrics,
		addresses: auth.addresses,
		requestLog: logs.requestLog
	});
	return createHttpServer(auth.prefix.before(entry), {
		tls: config.tls,
		log: logs.requestLog,
		dialectOf: auth.dialects.ofCall
	});
}
function createKoaApp(services, mounts, routes) {
	const { config, auth, metrics, logs, store, deprecation, tracing } = services;
	const { frontend } = mounts;
	return createApp({
		authenticate: auth.authenticate,
		addresses: auth.addresses,
		dialects: auth.dialects,
		guard: auth.guard,
		callLog: recordedCallLog(services),
		deprecation,
		routes,
		beforeAuthentication: earlyMiddleware(services),
		publicMiddleware: publicMiddleware(services, mounts),
		frontend: frontend && withRouteLabel("/*", frontend.serve),
		corsOrigin: config.corsOrigin,
		log: logs.log,
		requestLog: logs.requestLog,
		onAnswered(call, request) {
			services.trafficLog?.httpCall(call);
			services.trafficRecorder.answered(call, request);
		},
		checkDataDir: store.checkDataDir,
		observers: [metrics.count, ...tracing ? [tracing.requests.serve] : []]
	}).callback();
}
/** Returns a call log that also tells the traffic recorder the caller of each call. */
function recordedCallLog({ upstream: { callLog }, trafficRecorder }) {
	const begin = (caller, calls, request) => {
		callLog.begin(caller, calls);
		trafficRecorder.identify(request, caller);
	};
	return {
		begin,
		end: callLog.end
	};
}
function acceptSockets(server, services) {
	const { config, auth, sockets, logs, metrics, deprecation, prompts, sessionRecorder } = services;
	const upgrade = createUpgrade({
		hub: sockets,
		guard: auth.guard,
		dialects: auth.dialects,
		authenticate: auth.authenticate,
		addresses: auth.addresses,
		log: logs.log,
		deprecation,
		whenCurrent: createSocketPreparation({
			hub: sockets,
			prompts: prompts.life
		}),
		maxSockets: config.maxSockets,
		maxSocketsPerUser: config.maxSocketsPerUser,
		onUpgrade(status, request) {
			metrics.onUpgrade(status);
			services.trafficRecorder.upgraded(status, request, auth.identify(request)?.user);
		}
	});
	onWebSocket(server, (request, socket, head) => {
		auth.prefix.remove(request);
		sessionRecorder?.onUpgrade(request);
		upgrade(request, socket, head);
	});
}
function logStart(log, { config, store }, port) {
	const fields = {
		event: "server.listening",
		port,
		version: packageVersion(),
		dataDir: store.dir.root,
		upstream: upstreamName(config.upstream)
	};
	log.info(fields, "listening");
}
/** Logs the known facts about the prompt of `--trace-prompt`, so that a mistyped id is noticed. */
async function logTracedPrompt({ config, ledger, logs }) {
	const { tracePrompt: promptId } = config;
	if (promptId === void 0) return;
	const row = await ledger.prompts.find(LOCAL_USER, promptId);
	const text = row ? `the traced prompt is on record: ${row.state}` : "no prompt of the local user has this id yet; tracing begins with its POST";
	logs.log.info({
		event: "trace.started",
		promptId,
		state: row?.state ?? "unknown"
	}, text);
}
/**
* How long calls in progress may take when the server stops. Streams are cut off then. A call that
* changes something takes longer on a busy machine, and its client could not know if the change was
* made.
*/
const LAST_CALLS_MS = {
	reading: 2e3,
	changing: 8e3
};
const LAST_CALLS_CHECK_MS = 20;
/**
* Waits for the calls in progress. Neither their clients nor a load balancer can send them to
* another server: a prompt must not run twice.
*/
async function untilAnswered(server, changesUnderWay) {
	const beganAtMs = performance.now();
	const openConnections = promisify(server.getConnections.bind(server));
	const limitMs = () => LAST_CALLS_MS[changesUnderWay() > 0 ? "changing" : "reading"];
	while (performance.now() - beganAtMs < limitMs()) {
		server.closeIdleConnections();
		if (await openConnections() === 0) return;
		await setTimeout$1(LAST_CALLS_CHECK_MS);
	}
}
/**
* Closes the services in order: first those that callers use, then those that they need, and the ledger last.
*/
async function closeServices(services, { passThrough, models }) {
	const { upstream, prompts, usageCounter, tracing, store } = services;
	passThrough?.close();
	await upstream.runner.folders.close();
	await prompts.life.close();
	await models?.close();
	await upstream.definitions.close();
	await upstream.runner.close();
	await usageCounter.close();
	await tracing?.close();
	await store.close();
}
/** The front end of `--front-end-root`, with starter workflows for the upstream. */
function openFrontend({ frontEndRoot, upstream }, definitions) {
	if (frontEndRoot === void 0) return void 0;
	return createFrontend(frontEndRoot, openTemplates({
		definitions,
		hasExample: upstream.kind === "embedded"
	}));
}
export { routerHeaders as _, LANGUAGES as a, contentTypeFor as c, createRateLimiter as d, BUCKET_STATUS as f, bucketOfStatus as g, PARTNER_PATHS as h, CODE_FILES as i, LeadershipLost as l, MODEL_SEGMENT as m, withoutSecrets as n, codeOf as o, MODEL_PATHS as p, endedJob as r, planFrom as s, startServer, parseWithinLimits as t, ByUser as u, isV2Path as v, isClientGone as y };
