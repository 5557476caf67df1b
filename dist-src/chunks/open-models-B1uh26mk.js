import { m as spoolBytes } from "./object-info-CQQmKRsU.js";
import { l as stringifyJson, n as isJsonObject, t as LosslessNumber } from "./json-CIUMQIEJ.js";
import { a as integer, i as inputSchema, n as choice, o as numberOf, r as decimal, s as textOf, t as THREAD_MODELS } from "./thread-models-ynkzDHQs.js";
import { i as isStorageFull, t as STORAGE_FULL } from "./storage-errors-D5OCISk9.js";
import { _ as routerHeaders, d as createRateLimiter, f as BUCKET_STATUS, m as MODEL_SEGMENT, p as MODEL_PATHS, y as isClientGone } from "./server-CcvvMUVn.js";
import { a as isCopyCurrent } from "./file-headers-C86A5Ow4.js";
import { t as hasControlCharacter } from "./control-characters-CRFC75pz.js";
import { u as lazily } from "./concurrency-DwpPd4rK.js";
import { t as packageUrl } from "./package-url-DJPOFjBU.js";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { setTimeout as setTimeout$1 } from "node:timers/promises";
import { extension } from "mime-types";
import { distance } from "fastest-levenshtein";
import { Ajv2020 } from "ajv/dist/2020.js";
// src/models/limits.ts
const MEBIBYTE = 2 ** 20;
const MINUTE_MS = 6e4;
const DAY_MS = 1440 * MINUTE_MS;
/** The times are those of the contract; the amounts suit a laptop. */
const DEFAULT_MODEL_LIMITS = {
	/** The calls of one workspace that may run at the same time. */
	inFlight: 8,
	/** The upper bound for the prices of one workspace's running calls together, in US cents. */
	committedCents: 1e3,
	/** The requests of one credential in a rolling minute, over all routes. */
	requestsPerMinute: 600,
	/** How long a call may take before it is answered `deadline_exceeded`. */
	deadlineMs: 10 * MINUTE_MS,
	/** How long an answer is replayed to the same `Idempotency-Key`. */
	replayMs: DAY_MS,
	/** A larger answer is not stored for replay. */
	replayBytes: 4 * MEBIBYTE,
	/** Above this total no further answer is stored for replay. */
	replayBudgetBytes: 1024 * MEBIBYTE,
	maxInputBytes: 16 * MEBIBYTE,
	/** The inputs of all callers in memory at a time. */
	inputBudgetBytes: 256 * MEBIBYTE,
	/** The worker threads, and the calls that may wait for one. */
	threads: 1,
	maxWaiting: 64,
	/** How long audit records of calls without cost are stored. */
	auditMs: 30 * DAY_MS,
	sweepIntervalMs: 10 * MINUTE_MS
};
// src/models/model-def.ts
/** Returns the id by which a model is addressed. */
function modelId({ provider, model }) {
	return `${provider}/${model}`;
}
/** Returns a model's answer as JSON. */
function answerJson(value) {
	return {
		kind: "answer",
		contentType: "application/json",
		body: Buffer.from(value)
	};
}
// src/models/local/local-models.ts
const ASSET_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The models that run on this machine, under the provider `local`. */
function localModels(options) {
	return [
		...THREAD_MODELS.map((model) => toModelDef(model, options)),
		delay,
		echo$1
	];
}
function toModelDef(def, options) {
	const { files = [], compute: _, ...facts } = def;
	const { model } = facts;
	return {
		...LOCAL,
		...facts,
		async run(call) {
			const read = await readAssets(files, call, options);
			if (!read.ok) return {
				kind: "invalid",
				detail: [read.detail]
			};
			const end = await options.threads.run({
				model,
				input: call.input,
				files: read.files
			}, call.signal);
			if (end === "busy") return BUSY;
			return end.kind === "file" ? await storeFile(model, end, call, options) : end;
		}
	};
}
/** The members that all models of this machine have in common. */
const LOCAL = {
	provider: "local",
	billing: { charges_on_policy_rejection: "no" }
};
const BUSY = {
	kind: "failed",
	bucket: "service_unavailable",
	detail: "Too many calls are waiting for a processor."
};
/** Fetches the files that the input names as assets. Assets of other users count as missing. */
async function readAssets(fields, { input, caller, signal }, { jobs, maxFileBytes }) {
	const files = {};
	for (const field of fields) {
		const id = input[field];
		if (typeof id !== "string" || !ASSET_ID.test(id)) continue;
		const loc = ["body", field];
		const content = await jobs.content(caller, id);
		if (!content.ok || content.value.kind !== "bytes") return {
			ok: false,
			detail: {
				loc,
				msg: "There is no such asset",
				type: "asset_not_found",
				input: id
			}
		};
		const { stream, totalBytes } = content.value;
		if (totalBytes > maxFileBytes) {
			stream.destroy();
			const ctx = { max_size: maxFileBytes };
			return {
				ok: false,
				detail: {
					loc,
					msg: `The file has more than ${maxFileBytes} bytes`,
					type: "file_too_large",
					ctx,
					input: id
				}
			};
		}
		signal.addEventListener("abort", () => stream.destroy(), { once: true });
		files[field] = Buffer.concat(await stream.toArray());
	}
	return {
		ok: true,
		files
	};
}
/** Stores a product as an asset. Returns its id and address. */
async function storeFile(model, { bytes, contentType, facts }, { caller }, { jobs, spoolDir }) {
	const file = await spoolBytes(bytes, { dir: spoolDir });
	const filePath = `models/${model}-${randomUUID()}.${extension(contentType) || "bin"}`;
	const stored = await jobs.createAsset(caller, {
		file,
		contentType,
		filePath
	});
	if (!stored.ok) throw new Error(`the result could not be stored: ${stored.error.message}`);
	const { id, url, hash } = stored.value;
	const name = contentType.split("/", 1)[0] ?? "file";
	const described = {
		content_type: contentType,
		size_bytes: bytes.length,
		...facts
	};
	return answerJson(stringifyJson({ [name]: {
		...described,
		asset_id: id,
		url,
		hash
	} }));
}
/** Failures of other providers, which local models never have. */
const FAILURES = {
	content_policy_violation: ["content_policy_violation", "The input was refused, as it asked for."],
	provider_error: ["provider_error", "The model failed, as it was asked to."],
	provider_timeout: ["provider_timeout", "The model took too long, as it was asked to."]
};
/**
* Waits, then returns its input: a model for tests of time-outs, retries and limits.
* @internal
*/
const delay = {
	...LOCAL,
	model: "delay",
	title: "Wait",
	description: "Waits, then answers with what it was given, or fails as asked. For trying out time-outs, replays and limits; a price given here counts against the spend ceiling.",
	input: inputSchema({
		seconds: decimal({
			min: 0,
			max: 3600,
			default: 1
		}, "how long to wait"),
		echo: { description: "comes back in the answer" },
		outcome: choice(["answer", ...Object.keys(FAILURES)], "how it ends"),
		price_cents: integer({
			min: 0,
			max: 1e6,
			default: 0
		}, "what the call commits to")
	}, ["echo"]),
	output: { "application/json": {
		type: "object",
		required: ["waited_seconds"],
		properties: {
			waited_seconds: { type: "number" },
			echo: {}
		}
	} },
	priceCents: (input) => numberOf(input, "price_cents"),
	async run({ input, body, signal }) {
		const seconds = numberOf(input, "seconds");
		await setTimeout$1(seconds * 1e3, void 0, { signal });
		const failure = FAILURES[textOf(input, "outcome")];
		if (failure) return {
			kind: "failed",
			bucket: failure[0],
			detail: failure[1]
		};
		const { echo } = body;
		return answerJson(stringifyJson({
			waited_seconds: seconds,
			...echo !== void 0 && { echo }
		}));
	}
};
/** Returns its input. It has no schema, like models for which none has been written. */
const echo$1 = {
	...LOCAL,
	model: "echo",
	title: "Echo",
	description: "Answers with what it was given: any JSON object, as no input schema is written.",
	output: { "application/json": { type: "object" } },
	run: async ({ body }) => answerJson(stringifyJson(body))
};
// src/models/reply.ts
/**
* Thrown when a service that the router needs does not answer. It may answer later, without a
* change by the caller.
*/
var Unavailable = class extends Error {
	name = "Unavailable";
};
const JSON_TYPE = "application/json";
/** Returns a JSON answer, which shared caches must not store. */
function replyJson(value, headers = {}) {
	return {
		status: 200,
		contentType: JSON_TYPE,
		body: stringifyJson(value),
		headers: {
			"Cache-Control": "no-store",
			...headers
		}
	};
}
/**
* Returns a refusal or failure. `status` differs from the bucket's own where the contract requires
* it.
*/
function replyError(bucket, detail, { status = BUCKET_STATUS[bucket], headers } = {}) {
	return {
		...replyJson({
			detail,
			error_type: bucket
		}, headers),
		status,
		bucket
	};
}
/** Returns the 422, whose bucket is in the header only. */
function replyInvalid(detail) {
	return {
		...replyJson({ detail }),
		status: 422,
		bucket: "invalid_input"
	};
}
/** Writes an answer, with both names of each header. */
function writeReply(ctx, requestId, reply) {
	const { status, body, bucket } = reply;
	const headers = {
		...reply.headers,
		...routerHeaders(requestId, bucket)
	};
	ctx.status = status;
	if (body === void 0) ctx.body = null;
	else ctx.body = typeof body === "string" ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
	ctx.status = status;
	if (reply.contentType === void 0) ctx.remove("Content-Type");
	else ctx.set("Content-Type", reply.contentType);
	ctx.set(headers);
	exposeHeaders(ctx, Object.keys(headers));
}
/** Lists headers for pages: in CORS mode a page may read only these. */
function exposeHeaders(ctx, names) {
	const listed = ctx.response.get("Access-Control-Expose-Headers");
	if (listed) ctx.set("Access-Control-Expose-Headers", [listed, ...names].join(", "));
}
// src/models/catalog.ts
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;
const MAX_SUGGESTIONS = 3;
/** The maximum share of its characters in which a wrong id may differ from the suggested one. */
const MAX_DISTANCE_SHARE = .6;
/** The models that can run here, in the order of their ids. */
function createCatalog(models, cursors) {
	const byId = new Map(models.map((model) => [modelId(model), model]));
	const ids = [...byId.keys()].toSorted();
	for (const id of ids) assertModelId(byId.get(id));
	return {
		find: (id) => byId.get(id),
		/** Returns one page of the models that the caller may see. */
		page(query, mayUse) {
			const parsedQuery = readQuery(query, cursors);
			if ("bucket" in parsedQuery) return parsedQuery;
			const rest = ids.filter((id) => mayUse(id) && (!parsedQuery.after || id > parsedQuery.after));
			const shown = rest.slice(0, parsedQuery.limit);
			const last = shown.at(-1);
			const more = rest.length > shown.length && last !== void 0;
			return replyJson({
				data: shown.map((id) => modelEntry(byId.get(id))),
				has_more: more,
				...more && { next_cursor: cursors.write(last) },
				limit: parsedQuery.limit
			});
		},
		notFound: (id, mayUse) => replyError("model_not_found", notFoundDetail(id, ids.filter(mayUse)))
	};
}
/** Returns a model as the catalogue lists it. */
function modelEntry(def) {
	const { provider, model, billing } = def;
	return {
		id: modelId(def),
		provider,
		model,
		billing
	};
}
/** Returns true when these segments have the form of a model id. */
function isModelId(provider, model) {
	return provider.length <= 64 && model.length <= 128 && MODEL_SEGMENT.test(provider) && MODEL_SEGMENT.test(model);
}
function assertModelId({ provider, model }) {
	if (!isModelId(provider, model)) throw new Error(`${provider}/${model} cannot be a model id`);
}
/** Reads the query. An unknown cursor is refused, since it must not silently restart a listing. */
function readQuery(query, cursors) {
	const [given, ...others] = query.getAll("cursor");
	const after = given === void 0 ? void 0 : cursors.read(given);
	if (others.length > 0 || given !== void 0 && after === void 0) return replyError("invalid_input", "This cursor is not one of this catalog.");
	const [limit = String(DEFAULT_LIMIT), ...more] = query.getAll("limit");
	if (more.length > 0 || !/^[+-]?\d+$/.test(limit)) return replyError("invalid_input", "limit must be a whole number.");
	const parsedQuery = Number(limit);
	return {
		after,
		limit: parsedQuery <= 0 ? DEFAULT_LIMIT : Math.min(parsedQuery, MAX_LIMIT)
	};
}
function notFoundDetail(id, known) {
	const [provider = "", model = "", ...rest] = id.split("/");
	if (rest.length > 0 || !isModelId(provider, model)) return "This id names no model.";
	const near = known.map((other) => ({
		other,
		steps: distance(id, other)
	})).filter(({ other, steps }) => steps <= Math.max(id.length, other.length) * MAX_DISTANCE_SHARE).toSorted((a, b) => a.steps - b.steps).slice(0, MAX_SUGGESTIONS).map(({ other }) => other);
	return `There is no model ${id}.${near.length > 0 ? ` Did you mean ${near.join(", ")}?` : ""}`;
}
const SIGNATURE_BYTES = 16;
const MAX_CHARS = 512;
/**
* Creates cursors that name a position in the sort order, not an entry, so they outlive changes of
* the catalogue.
*/
function createCursors(secret) {
	const sign = (id) => createHmac("sha256", secret).update(`model cursor\0${id}`).digest().subarray(0, SIGNATURE_BYTES);
	const write = (id) => `${Buffer.from(id).toString("base64url")}.${sign(id).toString("base64url")}`;
	return {
		write,
		/**
		* Returns the id before the next page; `undefined` when this server did not issue the cursor.
		*/
		read(cursor) {
			if (cursor.length > MAX_CHARS) return void 0;
			const id = Buffer.from(cursor.split(".", 1)[0] ?? "", "base64url").toString();
			const expected = Buffer.from(write(id));
			const given = Buffer.from(cursor);
			return given.length === expected.length && timingSafeEqual(given, expected) ? id : void 0;
		}
	};
}
// src/models/schema-document.ts
/** The input schema of a model without one: any JSON object. */
const OPEN_INPUT = {
	type: "object",
	additionalProperties: true
};
const ERROR_SCHEMA = {
	type: "object",
	required: ["detail", "error_type"],
	properties: {
		detail: { type: "string" },
		error_type: { type: "string" }
	}
};
const INVALID_SCHEMA = {
	type: "object",
	required: ["detail"],
	properties: { detail: {
		type: "array",
		items: {
			type: "object",
			required: [
				"loc",
				"msg",
				"type"
			],
			properties: {
				loc: {
					type: "array",
					items: { type: ["string", "integer"] }
				},
				msg: { type: "string" },
				type: { type: "string" },
				ctx: { type: "object" },
				input: {}
			}
		}
	} }
};
/** Writes the document once, since its tag is computed from the bytes that are served. */
function writeDocument(def) {
	const body = Buffer.from(stringifyJson(openApi(def)));
	return {
		etag: `"${createHash("sha256").update(body).digest("hex")}"`,
		body
	};
}
/** Returns the document, or a 304 when the caller has it. */
function replyDocument({ etag, body }, request) {
	const headers = {
		ETag: etag,
		"Cache-Control": "private, must-revalidate"
	};
	if (isCopyCurrent(request, { etag })) return {
		status: 304,
		headers
	};
	return {
		status: 200,
		headers,
		contentType: "application/json",
		body
	};
}
function openApi(def) {
	const refused = (description, name) => ({
		description,
		content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } }
	});
	return {
		openapi: "3.1.0",
		info: {
			title: def.title,
			version: "1",
			description: def.description
		},
		jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
		paths: { [`/v1/models/${modelId(def)}`]: { post: {
			operationId: "run",
			summary: def.title,
			parameters: [{
				name: "Idempotency-Key",
				in: "header",
				schema: {
					type: "string",
					maxLength: 255
				}
			}],
			requestBody: {
				required: true,
				content: { "application/json": { schema: { $ref: "#/components/schemas/Input" } } }
			},
			responses: {
				200: {
					description: "What the model made.",
					content: Object.fromEntries(Object.entries(def.output).map(([type, schema]) => [type, { schema }]))
				},
				422: refused("The input does not fit; nothing ran.", "Invalid"),
				default: refused("Any other error.", "Error")
			}
		} } },
		components: {
			schemas: {
				Input: def.input ?? OPEN_INPUT,
				Error: ERROR_SCHEMA,
				Invalid: INVALID_SCHEMA
			},
			securitySchemes: {
				key: {
					type: "apiKey",
					in: "header",
					name: "X-API-Key"
				},
				bearer: {
					type: "http",
					scheme: "bearer"
				}
			}
		},
		security: [{ key: [] }, { bearer: [] }],
		...def.input === void 0 && { "x-comfy-input-schema-authored": false }
	};
}
// src/models/read-input.ts
/** Reads bodies, within the memory that is reserved for those of all callers. */
function createReadInput(bodies, limits) {
	let heldBytes = 0;
	return async (exchange) => {
		const declared = Number(exchange.req.headers["content-length"] ?? limits.maxInputBytes);
		let bytes = Math.min(declared, limits.maxInputBytes);
		if (heldBytes + bytes > limits.inputBudgetBytes) return refuse$1(replyError("service_unavailable", "Too many inputs are being worked on."));
		heldBytes += bytes;
		const release = () => void (heldBytes -= bytes);
		const input = await read(bodies, exchange, limits.maxInputBytes).finally(release);
		if (!input.ok) return input;
		bytes = Math.min(bytes, Buffer.byteLength(input.text));
		heldBytes += bytes;
		return {
			...input,
			release
		};
	};
}
async function read(bodies, exchange, maxBytes) {
	const read = await bodies.read(exchange, {
		maxBytes,
		withText: true
	});
	if (read.ok) return {
		ok: true,
		text: read.text ?? "",
		body: read.value
	};
	const { status, message, isSyntax, retryAfterSeconds } = read;
	if (status === 503) return refuse$1(replyError("service_unavailable", message, { headers: {
		Connection: "close",
		"Retry-After": String(retryAfterSeconds)
	} }));
	return refuse$1(replyError("invalid_input", message, {
		status,
		headers: isSyntax ? {} : { Connection: "close" }
	}));
}
function refuse$1(refusal) {
	return {
		ok: false,
		refusal
	};
}
// src/models/runner.ts
/**
* Runs validated calls within the credits and the deadlines of their callers, while the client is
* connected.
*/
function createModelRunner(options) {
	const runningCalls = createRunningCalls();
	const stops = /* @__PURE__ */ new Set();
	/**
	* Runs a model until it answers or is stopped. An answer that is ready at that moment still counts.
	*/
	const runUntilEnd = async (pricedCall) => {
		const { ctx, def, modelCaller, input, body } = pricedCall;
		const stop = new AbortController();
		const { signal } = stop;
		const abortFor = (reason) => () => stop.abort(reason);
		const abortDisconnected = abortFor("disconnected");
		stops.add(stop);
		ctx.res.once("close", abortDisconnected);
		if (isClientGone(ctx)) abortDisconnected();
		const timer = setTimeout(abortFor("deadline"), options.deadlineMs);
		try {
			const call = {
				input,
				body,
				caller: modelCaller.caller,
				signal
			};
			const run = async () => await def.run(call);
			return await Promise.race([run().catch((cause) => crashOrStop(signal, cause)), whenStopped(signal)]);
		} finally {
			clearTimeout(timer);
			ctx.res.off("close", abortDisconnected);
			stops.delete(stop);
		}
	};
	return {
		/**
		* Reserves a running call, runs the model on its validated input and records the result. The
		* cost counts as committed until it is recorded.
		*/
		async run(call, record) {
			const pricedCall = {
				...call,
				cents: call.def.priceCents?.(call.input) ?? 0
			};
			const admission = await admit(pricedCall, runningCalls, options);
			if (!admission.ok) return await record({
				reply: admission.refusal,
				cents: 0
			});
			try {
				return await record(resultOf(pricedCall, await runUntilEnd(pricedCall), options));
			} finally {
				admission.release();
			}
		},
		/** Ends the running calls. */
		stop() {
			for (const stop of stops) stop.abort("closing");
		}
	};
}
/** Admits a call, or refuses it. Checks the credits first, because waiting does not add credits. */
async function admit({ modelCaller, cents }, runningCalls, { modelCalls }) {
	const { workspace, creditsCents } = modelCaller;
	if (creditsCents !== void 0 && cents > 0) {
		if (await modelCalls.chargedCents(workspace) + runningCalls.committedCents(workspace) + cents > creditsCents) return {
			ok: false,
			refusal: replyError("insufficient_credits", `This call costs ${cents} cents, more than the workspace has left.`)
		};
	}
	return runningCalls.admit(workspace, cents, modelCaller);
}
function resultOf(pricedCall, end, { log, deadlineMs }) {
	const { cents, def, requestId } = pricedCall;
	switch (end.kind) {
		case "answer": {
			const { contentType, body } = end;
			return {
				reply: {
					status: 200,
					contentType,
					body,
					headers: { "Cache-Control": "no-store" }
				},
				cents
			};
		}
		case "invalid": return {
			reply: replyInvalid(end.detail),
			cents: 0
		};
		case "failed": return {
			reply: replyError(end.bucket, end.detail),
			cents: costOfFailure(pricedCall, end.bucket)
		};
		case "crashed":
			log.error({
				event: "models.model_failed",
				err: end.cause,
				requestId,
				model: modelId(def)
			}, "a model failed");
			return {
				reply: replyError("provider_error", "The model failed."),
				cents: 0
			};
		case "stopped": return {
			reply: stopReply(end.reason, deadlineMs),
			cents: 0
		};
	}
}
function stopReply(reason, deadlineMs) {
	switch (reason) {
		case "deadline": return replyError("deadline_exceeded", `The call took longer than ${deadlineMs / 1e3} seconds and was cancelled.`);
		case "disconnected": return replyError("client_disconnected", "The caller closed the connection.");
		case "closing": return replyError("service_unavailable", "The server is stopping.");
	}
}
/**
* Returns the cost of a failure. A time-out of the provider is billed. Under a key only an answer
* is billed: the key is free again, and is charged at most once.
*/
function costOfFailure({ def, isKeyed, cents }, bucket) {
	if (bucket === "provider_timeout") return isKeyed ? 0 : cents;
	const charges = def.billing.charges_on_policy_rejection === "yes";
	return bucket === "content_policy_violation" && charges ? cents : 0;
}
/** Resolves one event loop iteration later, so that an answer at the same moment has priority. */
function whenStopped(signal) {
	return new Promise((resolve) => {
		const resolveLater = () => void setImmediate(() => resolve(stopEnd(signal)));
		if (signal.aborted) resolveLater();
		else signal.addEventListener("abort", resolveLater, { once: true });
	});
}
function crashOrStop(signal, cause) {
	return signal.aborted ? stopEnd(signal) : {
		kind: "crashed",
		cause
	};
}
function stopEnd(signal) {
	return {
		kind: "stopped",
		reason: signal.reason
	};
}
/** Counts the running calls of each workspace and their committed cost. */
function createRunningCalls() {
	const workspaces = /* @__PURE__ */ new Map();
	return {
		/** Returns the possible cost of a workspace's running calls, in US cents. */
		committedCents: (workspace) => workspaces.get(workspace)?.cents ?? 0,
		admit(workspace, cents, ceilings) {
			const running = workspaces.get(workspace) ?? {
				calls: 0,
				cents: 0
			};
			const refusal = refuse(running, cents, ceilings);
			if (refusal) return {
				ok: false,
				refusal
			};
			running.calls++;
			running.cents += cents;
			workspaces.set(workspace, running);
			return {
				ok: true,
				release() {
					running.calls--;
					running.cents -= cents;
					if (running.calls === 0) workspaces.delete(workspace);
				}
			};
		}
	};
}
function refuse(running, cents, ceilings) {
	if (running.calls >= ceilings.inFlight) return replyError("concurrency_limit_exceeded", `In-flight limit: ${`at most ${ceilings.inFlight} calls of a workspace run at a time`}.`);
	const { committedCents: limit } = ceilings;
	if (running.cents + cents <= limit) return void 0;
	const headers = {
		"X-Committed-Spend-Limit": String(limit),
		"X-Committed-Spend-Current": String(running.cents),
		"X-Committed-Spend-Remaining": String(Math.max(0, limit - running.cents))
	};
	return replyError("concurrency_limit_exceeded", `Committed-spend ceiling: running calls are committed to ${running.cents} of ${limit} cents, and this one costs ${cents}.`, { headers });
}
// src/models/replays.ts
/** The seconds after which a retry may find its original answered. */
const IN_FLIGHT_RETRY_S = 2;
/**
* The statuses below 500 that charge nothing and may change at a retry: the caller adds credits,
* waits, or had disconnected.
*/
const RELEASING_STATUSES = [
	402,
	408,
	425,
	429,
	499
];
/**
* The time for a call outside of its model: its end is recorded, and the clocks of two servers
* differ.
*/
const AROUND_RUN_MS = 3e4;
/**
* Manages the lifetime of an `Idempotency-Key`. A call that no longer runs was ended by a kill, was
* never answered, and holds no key. A call of another server counts as running until its deadline.
*/
function createReplays({ store, now, limits, isShared }) {
	/** The time at which each call that runs here took its key. */
	const running = /* @__PURE__ */ new Map();
	const othersRunMs = isShared ? limits.deadlineMs + AROUND_RUN_MS : 0;
	const mayRun = ({ requestId, atMs }) => running.has(requestId) || now() - atMs < othersRunMs;
	const freeBeforeMs = () => Math.min(now() - limits.replayMs, ...running.values());
	const keyHoldFor = (holder) => ({
		release: () => orUnavailable(store.release(holder)),
		consume: () => orUnavailable(store.consume(holder, now())),
		end: () => void running.delete(holder.requestId),
		async settle(reply) {
			if (isReleasing(reply.status)) return await orUnavailable(store.release(holder));
			const body = Buffer.from(reply.body ?? "");
			const { status, contentType = "" } = reply;
			const kept = body.length + await store.recordedBytes();
			if (body.length > limits.replayBytes || kept > limits.replayBudgetBytes) return await orUnavailable(store.consume(holder, now()));
			await orUnavailable(store.record(holder, {
				atMs: now(),
				status,
				contentType,
				body
			}));
		}
	});
	const reserve = async (row) => {
		const found = await orUnavailable(store.reserve(row, freeBeforeMs()));
		if (found?.state !== "reserved" || mayRun(found)) return found;
		await orUnavailable(store.release(found));
		return await orUnavailable(store.reserve(row, freeBeforeMs()));
	};
	return {
		/** Reserves the key for this call, or returns the reply to a retry. */
		async hold(request) {
			const row = {
				...request,
				atMs: now()
			};
			running.set(request.requestId, row.atMs);
			const found = await reserve(row).catch((error) => {
				running.delete(request.requestId);
				throw error;
			});
			if (found === void 0) return {
				kind: "held",
				hold: keyHoldFor(request)
			};
			running.delete(request.requestId);
			return {
				kind: "reply",
				reply: replyToRetry(found, request.fingerprint)
			};
		},
		sweep: () => store.expire(freeBeforeMs())
	};
}
/** Identifies a request by its model and its bytes. */
function fingerprintOf(parts) {
	const hash = createHash("sha256");
	for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
	return hash.digest("hex");
}
function isReleasing(status) {
	return status >= 500 || RELEASING_STATUSES.includes(status);
}
function replyToRetry(row, fingerprint) {
	if (row.fingerprint !== fingerprint) return conflict("This Idempotency-Key was sent with a different request: use a new one.");
	if (row.state === "reserved") return replyError("concurrency_limit_exceeded", "The call with this Idempotency-Key is still running: send it again later.", {
		status: 409,
		headers: { "Retry-After": String(IN_FLIGHT_RETRY_S) }
	});
	if (row.state === "consumed" || row.status === null || row.body === null) return conflict("The call with this Idempotency-Key is done, but its answer was not kept: use a new key.");
	const headers = {
		"Idempotent-Replayed": "true",
		"Cache-Control": "no-store"
	};
	const { status, body } = row;
	const bucket = status >= 400 ? bucketOf(row) : void 0;
	return {
		status,
		body,
		headers,
		...row.contentType && { contentType: row.contentType },
		...bucket && { bucket }
	};
}
/** Returns the bucket of a recorded error. A 422 contains none. */
function bucketOf({ body }) {
	const { error_type: bucket } = JSON.parse(Buffer.from(body ?? "{}").toString());
	return bucket ?? "invalid_input";
}
function conflict(detail) {
	return replyError("invalid_input", detail, { status: 409 });
}
async function orUnavailable(work) {
	try {
		return await work;
	} catch (cause) {
		throw new Unavailable("the ledger does not answer", { cause });
	}
}
// src/models/validate-input.ts
/**
* The maximum number of fields, and of items in one. No model needs more, and to validate very many would block other
* calls.
*/
const MAX_FIELDS = 256;
/** The maximum number of errors in an answer. It allows for all fields, and as many missing or nested ones. */
const MAX_DETAILS = 2 * MAX_FIELDS;
const MAX_ECHO_CHARS = 1024;
/** The JSON types in words that callers of such models know. */
const TYPE_WORDS = {
	string: ["string_type", "a valid string"],
	integer: ["int_type", "a valid integer"],
	number: ["float_type", "a valid number"],
	boolean: ["bool_type", "a valid boolean"],
	object: ["dict_type", "a valid object"],
	array: ["list_type", "a valid list"]
};
/** The bound that a schema keyword names, and its message. */
const BOUNDS = {
	minimum: [
		"greater_than_equal",
		"ge",
		"Input should be greater than or equal to"
	],
	maximum: [
		"less_than_equal",
		"le",
		"Input should be less than or equal to"
	],
	exclusiveMinimum: [
		"greater_than",
		"gt",
		"Input should be greater than"
	],
	exclusiveMaximum: [
		"less_than",
		"lt",
		"Input should be less than"
	],
	multipleOf: [
		"multiple_of",
		"multiple_of",
		"Input should be a multiple of"
	],
	minLength: [
		"string_too_short",
		"min_length",
		"Fewest characters:"
	],
	maxLength: [
		"string_too_long",
		"max_length",
		"Most characters:"
	],
	pattern: [
		"string_pattern_mismatch",
		"pattern",
		"Input should match"
	],
	minItems: [
		"too_short",
		"min_length",
		"Fewest items:"
	],
	maxItems: [
		"too_long",
		"max_length",
		"Most items:"
	]
};
/**
* Prepares the check of one model's input, which is the check that its schema document describes.
*/
function createValidate(def) {
	const { input } = def;
	if (input === void 0) return acceptObject;
	let check;
	const lists = listsOf(input);
	return (body) => refuseTooMany(body, lists) ?? validate(check ??= compiled(input), withPlainNumbers(body), body);
}
/** Returns the names of the fields that are lists. */
function listsOf({ properties }) {
	return (isJsonObject(properties) ? Object.entries(properties) : []).flatMap(([name, field]) => isJsonObject(field) && field["type"] === "array" ? [name] : []);
}
function compiled(schema) {
	return new Ajv2020({
		allErrors: true,
		useDefaults: true,
		verbose: true
	}).compile(schema);
}
function validate(check, input, body) {
	if (check(input)) return {
		ok: true,
		input
	};
	const byLocation = /* @__PURE__ */ new Map();
	for (const violation of check.errors ?? []) {
		const detail = detailOf(violation, body);
		const location = JSON.stringify(detail.loc);
		if (!byLocation.has(location) && byLocation.size < MAX_DETAILS) byLocation.set(location, detail);
	}
	return {
		ok: false,
		detail: [...byLocation.values()]
	};
}
/** Accepts every object, for a model without a schema. Other values were refused before. */
const acceptObject = (body) => ({
	ok: true,
	input: withPlainNumbers(body)
});
function refuseTooMany(input, lists) {
	if (!isJsonObject(input)) return void 0;
	if (Object.keys(input).length > MAX_FIELDS) return tooLong(["body"], "fields");
	const list = lists.find((name) => Array.isArray(input[name]) && input[name].length > MAX_FIELDS);
	return list === void 0 ? void 0 : tooLong(["body", list], "items");
}
function tooLong(loc, what) {
	return {
		ok: false,
		detail: [{
			loc,
			msg: `Input should have at most ${MAX_FIELDS} ${what}`,
			type: "too_long",
			ctx: { max_length: MAX_FIELDS }
		}]
	};
}
/** Returns a copy with numbers that a computation can use, into which defaults can be written. */
function withPlainNumbers(value) {
	if (value instanceof LosslessNumber) return Number(value.value);
	if (Array.isArray(value)) return value.map(withPlainNumbers);
	if (!isJsonObject(value)) return value;
	return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withPlainNumbers(v)]));
}
function detailOf(violation, body) {
	const at = violation.instancePath.split("/").slice(1).map(segment);
	const { missingProperty, additionalProperty } = violation.params;
	const named = violation.keyword === "required" ? missingProperty : additionalProperty;
	const loc = [
		"body",
		...at,
		...typeof named === "string" ? [named] : []
	];
	return {
		loc,
		...violationText(violation),
		...violation.keyword !== "required" && echo(body, loc.slice(1))
	};
}
/** Returns an unescaped step of a JSON pointer. A number is the index of an array. */
function segment(text) {
	if (/^\d+$/.test(text)) return Number(text);
	return text.replaceAll("~1", "/").replaceAll("~0", "~");
}
function violationText({ keyword, params, schema, message }) {
	const bound = BOUNDS[keyword];
	if (bound) {
		const [type, name, msg] = bound;
		return {
			type,
			msg: `${msg} ${String(schema)}`,
			ctx: { [name]: schema }
		};
	}
	switch (keyword) {
		case "required": return {
			type: "missing",
			msg: "Field required"
		};
		case "additionalProperties": return {
			type: "extra_forbidden",
			msg: "Extra inputs are not permitted"
		};
		case "type": {
			const [type, what] = TYPE_WORDS[params.type] ?? ["type_error", "another type"];
			return {
				type,
				msg: `Input should be ${what}`
			};
		}
		case "enum": {
			const expected = schema.map((value) => JSON.stringify(value)).join(" or ");
			return {
				type: "literal_error",
				msg: `Input should be ${expected}`,
				ctx: { expected }
			};
		}
		default: return {
			type: "value_error",
			msg: `Input ${message ?? "is not accepted"}`
		};
	}
}
/** Repeats short values only, so that a picture is not sent back because its width is wrong. */
function echo(body, path) {
	let value = body;
	for (const step of path) value = value?.[step];
	const text = value instanceof LosslessNumber ? value.value : value;
	if (value === void 0 || typeof text === "object" && text !== null) return {};
	if (typeof text === "string" && text.length > MAX_ECHO_CHARS) return {};
	return { input: value };
}
// src/models/invoker.ts
const MAX_KEY_CHARS = 255;
/**
* Serves calls of models: runs a model once for each key, on validated input. The answer is stored
* before it is sent.
*/
function createModelInvoker(options) {
	const readInput = createReadInput(options.bodies, options.limits);
	const runner = createModelRunner({
		...options,
		...options.limits
	});
	const validators = new Map(options.models.map((m) => [m, createValidate(m)]));
	const calls = /* @__PURE__ */ new Set();
	const checkAndRun = async (call) => {
		const record = (result) => settle({
			...call,
			result
		}, options);
		const checked = validators.get(call.def)(call.body);
		if (!checked.ok) return await record({
			reply: replyInvalid(checked.detail),
			cents: 0
		});
		const isKeyed = call.key !== void 0;
		return await runner.run({
			...call,
			input: checked.input,
			isKeyed
		}, record);
	};
	const serveKeyed = async (call) => {
		const { ctx, key, model, requestId, text, modelCaller } = call;
		const fingerprint = fingerprintOf([
			ctx.method,
			model,
			ctx.querystring,
			text
		]);
		const scope = modelCaller.workspace;
		const holdResult = await options.replays.hold({
			scope,
			key,
			fingerprint,
			requestId
		});
		if (holdResult.kind === "reply") {
			const result = {
				reply: holdResult.reply,
				cents: 0,
				replayed: true
			};
			return await settle({
				...call,
				result
			}, options);
		}
		const { hold } = holdResult;
		try {
			return await checkAndRun({
				...call,
				hold
			});
		} catch (error) {
			await hold.release().catch(() => {});
			throw error;
		} finally {
			hold.end();
		}
	};
	const refuse = async (request, refusal) => {
		const result = {
			reply: isClientGone(request.ctx) ? replyError("client_disconnected", "The caller closed the connection.") : refusal,
			cents: 0
		};
		return await settle({
			startedAtMs: options.now(),
			...request,
			result
		}, options);
	};
	const serve = async (invocation) => {
		const { ctx, def } = invocation;
		const startedCall = {
			...invocation,
			model: modelId(def),
			startedAtMs: options.now()
		};
		const key = keyOf(ctx);
		const fault = key === void 0 ? void 0 : faultOfKey(key);
		if (fault) return await refuse(startedCall, replyError("invalid_input", fault));
		const input = await readInput(ctx);
		if (!input.ok) return await refuse(startedCall, input.refusal);
		try {
			if (def.input === void 0 && !isJsonObject(input.body)) return await refuse(startedCall, replyError("invalid_input", "The body must be a JSON object."));
			const call = {
				...startedCall,
				...input,
				key
			};
			if (key !== void 0) return await serveKeyed({
				...call,
				key
			});
			return await checkAndRun(call);
		} finally {
			input.release();
		}
	};
	const trackCall = async (call) => {
		calls.add(call);
		try {
			return await call;
		} finally {
			calls.delete(call);
		}
	};
	return {
		call: (invocation) => trackCall(serve(invocation)),
		/** Records a call that is refused before its model is known. Returns the refusal. */
		refuse: (request, refusal) => trackCall(refuse(request, refusal)),
		/** Ends the running calls. Their keys are free again. */
		async close() {
			runner.stop();
			await Promise.allSettled(calls);
		}
	};
}
function faultOfKey(key) {
	if (key === "" || key.length > MAX_KEY_CHARS) return `Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters.`;
	return hasControlCharacter(key) ? "Idempotency-Key has a control character." : void 0;
}
function keyOf(ctx) {
	const key = ctx.req.headers["idempotency-key"];
	return Array.isArray(key) ? key.join(", ") : key;
}
/**
* Records the end of a call and returns its answer, which is sent after that. Corrects the record
* when the answer is lost.
*/
async function settle(call, options) {
	const { ctx, model, requestId, modelCaller, startedAtMs, result, hold } = call;
	const record = options.modelCalls.insert({
		requestId,
		workspace: modelCaller.workspace,
		user: modelCaller.caller.user,
		model,
		startedAtMs,
		endedAtMs: options.now(),
		status: result.reply.status,
		errorType: result.reply.bucket ?? null,
		chargedCents: result.cents,
		replayed: result.replayed ?? false
	});
	const failure = (await Promise.allSettled([record, hold?.settle(result.reply)])).find((each) => each.status === "rejected");
	if (failure) throw new Unavailable("the call could not be recorded", { cause: failure.reason });
	watchDelivery(ctx, (sent) => {
		recordUndelivered(call, sent, options).catch((error) => options.log.error({
			event: "models.record_failed",
			err: error,
			requestId
		}, "could not record an undelivered answer"));
	});
	return result.reply;
}
/**
* Calls back when an answer did not arrive completely, and says if part of it was sent. Node emits
* `finish` even for a broken connection, so that event counts only while the connection exists.
*/
function watchDelivery(ends, onUndelivered) {
	const { req, res } = ends;
	let isDelivered = false;
	const reportUndelivered = () => {
		if (!isDelivered) onUndelivered(res.headersSent ? "a part" : "nothing");
	};
	if (isClientGone(ends)) return reportUndelivered();
	res.once("finish", () => void (isDelivered = !req.socket.destroyed));
	res.once("close", reportUndelivered);
}
/**
* Records an undelivered answer. If no byte reached the caller, nothing is charged and the key is
* free; if a part did, the key is used up.
*/
async function recordUndelivered({ requestId, result, hold }, sent, { modelCalls }) {
	const amended = {
		errorType: "client_disconnected",
		chargedCents: sent === "a part" ? result.cents : 0
	};
	await Promise.all([modelCalls.amend(requestId, amended), sent === "a part" ? hold?.consume() : hold?.release()]);
}
// src/models/keys.ts
const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** Reads a keys file. Throws an error that says what to change and never shows a key. */
function readKeys(path) {
	const { prefix, keys } = parse(path);
	const grants = /* @__PURE__ */ new Map();
	for (const [at, { key, ...grant }] of keys.entries()) {
		if (!DIGEST.test(key) && !key.startsWith(prefix)) throw new Error(`--model-keys ${path}: key ${at + 1} does not start with '${prefix}'`);
		grants.set(DIGEST.test(key) ? key : digest(key), grant);
	}
	return {
		/** The prefix of all keys. Any other value is a token of an identity provider. */
		prefix,
		find: (key) => grants.get(digest(key))
	};
}
/** Returns true when a grant covers a model. */
function grantCovers({ models }, id) {
	if (models === void 0) return true;
	return models.some((each) => each === id || each.endsWith("/*") && id.startsWith(each.slice(0, -1)));
}
/**
* Returns the schema. It is loaded only when there is a file to check, since it would slow every
* start.
*/
function fileSchema() {
	const { z } = createRequire(import.meta.url)("zod");
	const count = z.int().min(0);
	const entry = z.strictObject({
		key: z.string().min(1),
		workspace: z.string().min(1).max(128),
		/** False when the router is not enabled for this workspace. */
		enabled: z.boolean().optional(),
		/** Model ids, or `provider/*`; absent for all models. */
		models: z.array(z.string()).optional(),
		in_flight: count.optional(),
		committed_cents: count.optional(),
		requests_per_minute: count.min(1).optional(),
		/**
		* The most that the workspace may be charged in total, in US cents; absent for no limit.
		*/
		credits_cents: count.optional()
	});
	return z.strictObject({
		prefix: z.string().default("comfyui-"),
		keys: z.array(entry)
	});
}
function parse(path) {
	let text;
	try {
		text = readFileSync(path, "utf8");
	} catch (cause) {
		throw new Error(`--model-keys ${path} cannot be read: ${cause.message}`, { cause });
	}
	const parsed = fileSchema().safeParse(readJson(text));
	if (parsed.success) return parsed.data;
	const [issue] = parsed.error.issues;
	const where = issue?.path.join(".") || "the file";
	throw new Error(`--model-keys ${path}: ${where}: ${issue?.message ?? "is not understood"}`);
}
/** Reads JSON. The schema refuses invalid JSON, since a parser error would quote the file. */
function readJson(text) {
	try {
		return JSON.parse(text);
	} catch {
		return;
	}
}
function digest(key) {
	return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}
// src/models/authentication.ts
/**
* Creates the authentication. Without configured keys, any credential is a workspace of its own; a
* call without one is refused.
*/
function createModelAuthentication({ callerOf, keys, limits }) {
	return ({ headers }) => {
		const credential = presentedKey(headers);
		if (credential === void 0) return unauthorizedResult("A key is needed: X-API-Key, or Authorization: Bearer.");
		const caller = callerOf(credential);
		if (caller === void 0) return unauthorizedResult("This key is not known here.");
		if (keys === void 0) return authenticatedResult(caller, { workspace: caller.user }, limits);
		if (!credential.startsWith(keys.prefix)) return unauthorizedResult("This is not a key, and no identity provider is configured here.");
		const grant = keys.find(credential);
		if (grant === void 0) return unauthorizedResult("This key is not known here.");
		if (grant.enabled === false) return {
			ok: false,
			refusal: replyError("not_enabled", "The router is not enabled for you.")
		};
		return authenticatedResult(caller, grant, limits);
	};
}
/** Returns the key of a call. `X-API-Key` has priority; an empty header counts as absent. */
function presentedKey(headers) {
	const key = headers["x-api-key"];
	if (typeof key === "string" && key !== "") return key;
	return /^bearer\s+(\S.*)$/i.exec(headers.authorization ?? "")?.[1]?.trim();
}
function authenticatedResult(caller, grant, limits) {
	return {
		ok: true,
		modelCaller: {
			caller,
			workspace: grant.workspace,
			mayUse: (id) => grantCovers(grant, id),
			inFlight: grant.in_flight ?? limits.inFlight,
			committedCents: grant.committed_cents ?? limits.committedCents,
			requestsPerMinute: grant.requests_per_minute ?? limits.requestsPerMinute,
			creditsCents: grant.credits_cents
		}
	};
}
function unauthorizedResult(detail) {
	return {
		ok: false,
		refusal: replyError("unauthorized", detail, { headers: { "WWW-Authenticate": "Bearer" } })
	};
}
// src/models/router.ts
const MAX_ID_CHARS = 193;
/** Creates the synchronous model router, over the models that run here. */
function createModelRouter(options) {
	const { models, log, now, limits, ledger } = options;
	const catalog = createCatalog(models, createCursors(options.secret));
	const documents = new Map(models.map((def) => [modelId(def), writeDocument(def)]));
	const keys = options.keysFile === void 0 ? void 0 : readKeys(options.keysFile);
	const authenticate = createModelAuthentication({
		callerOf: options.callerOf,
		keys,
		limits
	});
	const rates = createRateLimiter(now);
	const { isLedgerShared: isShared } = options;
	const replays = createReplays({
		store: ledger.replays,
		now,
		limits,
		isShared
	});
	const invoke = createModelInvoker({
		...options,
		modelCalls: ledger.modelCalls,
		replays
	});
	const findModel = (id, { mayUse }) => {
		const def = catalog.find(id);
		if (def === void 0) return catalog.notFound(id, mayUse);
		return mayUse(id) ? def : replyError("forbidden", "Your key does not cover this model.");
	};
	const serveModel = async (request, id, subresource) => {
		const { ctx, modelCaller } = request;
		const def = findModel(id, modelCaller);
		if ("bucket" in def) return ctx.method === "POST" && subresource === "" ? await invoke.refuse({
			...request,
			model: id.slice(0, MAX_ID_CHARS)
		}, def) : def;
		const isRead = ctx.method === "GET" || ctx.method === "HEAD";
		if (subresource === "openapi.json") {
			if (!isRead) return notAllowed("GET, HEAD");
			const document = documents.get(id);
			if (document === void 0) throw new Error(`${id} has no document`);
			return replyDocument(document, ctx.req);
		}
		if (ctx.method === "POST") return await invoke.call({
			...request,
			def
		});
		return isRead ? showModel(def, ctx.path, options.addresses.of(ctx.req)) : notAllowed("GET, HEAD, POST");
	};
	const serve = async (ctx, requestId) => {
		const known = authenticate(ctx.req);
		if (!known.ok) return known.refusal;
		const { modelCaller } = known;
		ctx.state.modelWorkspace = modelCaller.workspace;
		const allowance = rates.take(modelCaller.caller.user, modelCaller.requestsPerMinute);
		if (!allowance.ok) return tooMany(modelCaller, allowance.retryAfterSeconds);
		const [, ...path] = ctx.path.replace(MODEL_PATHS, "").split("/");
		if (path.length === 0) {
			if (ctx.method !== "GET" && ctx.method !== "HEAD") return notAllowed("GET, HEAD");
			return catalog.page(new URLSearchParams(ctx.querystring), modelCaller.mayUse);
		}
		const subresource = path.length === 3 && path[2] === "openapi.json" ? path[2] : "";
		const id = path.slice(0, subresource ? 2 : void 0).join("/");
		return await serveModel({
			ctx,
			modelCaller,
			requestId
		}, id, subresource);
	};
	const sweep = async () => {
		await Promise.all([replays.sweep(), ledger.modelCalls.expire(now() - limits.auditMs)]);
	};
	const sweeping = setInterval(() => {
		sweep().catch((error) => log.error({
			event: "models.sweep_failed",
			err: error
		}, "could not remove old model calls"));
	}, limits.sweepIntervalMs).unref();
	const answer = async (ctx) => {
		const requestId = randomUUID();
		const startedAtMs = now();
		const reply = await serve(ctx, requestId).catch((error) => failureReply(log, requestId, error));
		log.info({
			event: "models.call_answered",
			requestId,
			method: ctx.method,
			path: ctx.path.slice(0, 256),
			workspace: ctx.state.modelWorkspace,
			status: reply.status,
			errorType: reply.bucket,
			ms: now() - startedAtMs
		}, "model call answered");
		writeReply(ctx, requestId, reply);
	};
	return {
		/** Serves the model routes. Other paths continue to the next middleware. */
		middleware: (ctx, next) => MODEL_PATHS.test(ctx.path) ? answer(ctx) : next(),
		async close() {
			clearInterval(sweeping);
			await invoke.close();
		}
	};
}
/**
* Shows a model. The address of its schema must be `https`, so it is left out on a plain
* connection. The contract says: "Absent when no schema has been written for the model."
*/
function showModel(def, path, address) {
	const url = `${address?.base}${path}/openapi.json`;
	const isShown = def.input !== void 0 && url.startsWith("https:");
	return replyJson({
		...modelEntry(def),
		...isShown && { input_schema_url: url }
	});
}
function tooMany({ requestsPerMinute }, retryAfterSeconds) {
	return replyError("rate_limited", `The allowance of ${requestsPerMinute} requests in a rolling window of 60 seconds is spent.`, { headers: { "Retry-After": String(retryAfterSeconds) } });
}
function notAllowed(methods) {
	const more = {
		status: 405,
		headers: { Allow: methods }
	};
	return replyError("invalid_input", `Only ${methods} is possible here.`, more);
}
function failureReply(log, requestId, error) {
	log.error({
		event: "models.call_failed",
		err: error,
		requestId
	}, "could not serve a model call");
	if (isStorageFull(error)) return replyError("service_unavailable", STORAGE_FULL, { status: 507 });
	return error instanceof Unavailable ? replyError("service_unavailable", "The router cannot serve this call now: try again later.") : replyError("internal_error", "The router could not serve this call.");
}
// src/models/local/threads.ts
/** The heap limit of one thread. Pictures are outside the heap. */
const MAX_HEAP_MB = 512;
/** Creates the threads. They start with the first task and are kept. */
function createThreads(options) {
	const { threads, maxWaiting } = options.limits;
	const pool = lazily(() => openPool(threads, options.log));
	let tasks = 0;
	return {
		/** Runs a task. `busy`: too many tasks wait already. An abort ends the thread of the task. */
		async run(task, signal) {
			if (tasks >= threads + maxWaiting) return "busy";
			tasks++;
			try {
				return await (await pool.get()).run(task, {
					signal,
					name: "runTask"
				});
			} finally {
				tasks--;
			}
		},
		async close() {
			await (await pool.known())?.destroy();
		}
	};
}
/**
* Opens a fixed number of threads: in a pool that may shrink, waiting tasks lack a thread after an
* abort.
*/
async function openPool(threads, log) {
	const { Tinypool } = await import("tinypool");
	const pool = new Tinypool({
		filename: packageUrl("dist/models/local/thread-worker.js").href,
		minThreads: threads,
		maxThreads: threads,
		useAtomics: false,
		execArgv: [],
		resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB }
	});
	pool.on("error", (error) => log.error({
		event: "models.thread_failed",
		err: error
	}, "a model thread failed"));
	return pool;
}
// src/models/open-models.ts
/** The model router over the models of this machine. */
function openEmbeddedModels(options) {
	const limits = {
		...DEFAULT_MODEL_LIMITS,
		...options.limits
	};
	const threads = createThreads({
		limits,
		log: options.log
	});
	const models = localModels({
		...options,
		threads,
		maxFileBytes: limits.maxInputBytes
	});
	const router = createModelRouter({
		...options,
		models,
		limits
	});
	return {
		middleware: router.middleware,
		async close() {
			await router.close();
			await threads.close();
		}
	};
}
export { openEmbeddedModels };
