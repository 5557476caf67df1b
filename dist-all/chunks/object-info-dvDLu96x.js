import { t as I } from "./index.min-rxNe_V92.js";
import { i as toPythonText$1 } from "./python-json-CIUrrCh_.js";
import { t as createHasher } from "./hash-DYRd5MjV.js";
import { s as createMutex } from "./concurrency-B9CCxp_8.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { l as stringifyJson, n as isJsonObject, o as parseJson, t as LosslessNumber } from "./json-0U1hIHCx.js";
import { i as dependentOutputs, n as classOf, o as linkOf, s as nodeOf, t as addTo } from "./graph-_gvMsCf-.js";
import { i as ANNOTATED_NAME, n as hasHalfCharacter, t as hasControlCharacter } from "./control-characters-FG2-esMS.js";
import { t as runSteps } from "./steps-8oLc6EcQ.js";
import { v as isCredentialMember } from "./ledger-Bul7BDb8.js";
import { f as uploadPathOf } from "./file-headers-Di12YiA_.js";
import { o as errorCodeOf } from "./job-api-DUOBoLDS.js";
import { C as v1ErrorOf, E as pythonStr, b as isNativeNodeError, v as UNKNOWN_CLASS, w as isTruthyInPython } from "./asset-refs-DdHYYwNI.js";
import { n as yieldEvery } from "./event-loop-BDDWO5Ig.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { mkdir, open, readFile, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { constants as constants$1 } from "node:fs";
import { createHash, randomUUID } from "node:crypto";
import { finished } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { isUtf8 } from "node:buffer";
import { Readable, Writable, finished as finished$1 } from "node:stream";
import { STATUS_CODES } from "node:http";
// src/translate/file-mentions.ts
/** The flags in v1's input options that make an input a file chooser. */
const UPLOAD_FLAGS = [
	"image_upload",
	"audio_upload",
	"video_upload",
	"file_upload"
];
/** The file inputs of classes that no node list describes. */
const KNOWN_INPUTS = {
	LoadImage: ["image"],
	LoadImageMask: ["image"],
	LoadImageOutput: ["image"],
	LoadAudio: ["audio"],
	LoadVideo: ["file"],
	Load3D: ["model_file"],
	Load3DAnimation: ["model_file"],
	VHS_LoadVideo: ["video"],
	VHS_LoadVideoFFmpeg: ["video"],
	VHS_LoadAudioUpload: ["audio"]
};
function annotated(value) {
	return value.length > 4096 ? null : ANNOTATED_NAME.exec(value);
}
/**
* Reads v1's name of a file in an input: `sub/x.png`, with its folder in brackets unless that is
* `input`.
*/
function parseFileName(value) {
	const [, path = value, folder = "input"] = annotated(value) ?? [];
	const slash = path.lastIndexOf("/");
	return {
		filename: path.slice(slash + 1),
		subfolder: slash > 0 ? path.slice(0, slash) : "",
		type: folder
	};
}
/** Returns a key for a file in a map. */
function fileKey({ type, subfolder, filename }) {
	return `${type}/${subfolder}/${filename}`;
}
/**
* Returns the files that a graph names. Only a file chooser names a file: another text that equals
* a file's name stays a text.
*/
function fileMentions(graph, objectInfo) {
	return Object.entries(graph).flatMap(([nodeId, node]) => fileInputs(node, objectInfo).flatMap((input) => {
		const value = node.inputs[input];
		if (!(typeof value === "string" && value.length <= 4096 && value !== "")) return [];
		return [{
			nodeId,
			input,
			value,
			...parseFileName(value)
		}];
	}));
}
/** Returns the mentions whose file was found. The others stay names, which v2 checks. */
function resolvedMentions(mentions, found) {
	return mentions.filter((mention) => found.has(fileKey(mention)));
}
/** Returns the v2 workflow: v1's graph with `core/ASSET` in place of the resolved file names. */
function withAssets(graph, mentions, found) {
	return mapMentioned(graph, mentions, (mention, value) => {
		const asset = found.get(fileKey(mention));
		return asset ? assetRef(asset) : value;
	});
}
/**
* Returns the graph that v1 stores and shows: literals as validation coerced them, but file names
* as the client wrote them. Nodes and members that validation did not see stay unchanged.
*/
function applyCoercions(original, coerced, rewritten) {
	return runSteps(applyCoercionsSteps(original, coerced, rewritten));
}
/** Does the work of `applyCoercions` in steps. */
function* applyCoercionsSteps(original, coerced, rewritten) {
	if (rewritten.length === 0 && hasNoCoercions(coerced, original)) return original;
	const entries = [];
	for (const [id, node] of Object.entries(original)) {
		const known = nodeOf(coerced, id)?.inputs ?? {};
		const inputs = Object.entries(node.inputs ?? {}).map(([name, value]) => [name, Object.hasOwn(known, name) ? known[name] : value]);
		entries.push([id, {
			...node,
			inputs: Object.fromEntries(inputs)
		}]);
		yield 1 + inputs.length;
	}
	return mapMentioned(Object.fromEntries(entries), rewritten, ({ value }) => value);
}
/** True when no literal was coerced and every node has inputs, as v1 shows it. */
function hasNoCoercions(coerced, original) {
	if (coerced !== original && Object.keys(coerced).length > 0) return false;
	return Object.values(original).every(({ inputs }) => isJsonObject(inputs));
}
/** Returns v1's graph from the front end and the other members that it wants in saved files. */
function extraPngInfo(extraData) {
	return extraData.extra_pnginfo ?? null;
}
/** Returns the nodes for which v1 runs a graph. A class without a description is left to v2. */
function outputNodes(graph, objectInfo) {
	return Object.keys(graph).filter((id) => classInfo$2(nodeOf(graph, id), objectInfo)?.output_node === true);
}
/**
* Reads `partial_execution_targets`. Absent or null means no restriction; a list without an output
* leaves nothing to run.
*/
function chosenOutputs(outputs, targets) {
	if (targets === null || targets === void 0) return outputs;
	const chosen = new Set(targets);
	return outputs.filter((id) => chosen.has(id));
}
function fileInputs(node, objectInfo) {
	if (!isJsonObject(node) || !isJsonObject(node.inputs)) return [];
	const info = classInfo$2(node, objectInfo);
	if (!info) return Object.hasOwn(KNOWN_INPUTS, node.class_type) ? KNOWN_INPUTS[node.class_type] ?? [] : [];
	return fileChoosersOf(info);
}
/**
* The file choosers of each class. They are cached, since a class never changes and every node
* needs them.
*/
const fileChoosers = /* @__PURE__ */ new WeakMap();
function fileChoosersOf(info) {
	const known = fileChoosers.get(info);
	if (known) return known;
	const found = Object.values(info.input).flatMap((group) => Object.entries(group)).flatMap(([name, spec]) => isFileChooser(spec) ? [name] : []);
	fileChoosers.set(info, found);
	return found;
}
function classInfo$2(node, objectInfo) {
	const name = node?.class_type;
	return typeof name === "string" && Object.hasOwn(objectInfo, name) ? objectInfo[name] : void 0;
}
function isFileChooser(spec) {
	const options = Array.isArray(spec) ? spec[1] : void 0;
	return isJsonObject(options) && UPLOAD_FLAGS.some((flag) => options[flag] === true);
}
function mapMentioned(graph, mentions, change) {
	if (mentions.length === 0) return graph;
	const changed = /* @__PURE__ */ new Map();
	for (const mention of mentions) {
		const node = changed.get(mention.nodeId) ?? nodeOf(graph, mention.nodeId);
		const value = node?.inputs[mention.input];
		if (!node || value === void 0) continue;
		const inputs = {
			...node.inputs,
			[mention.input]: change(mention, value)
		};
		changed.set(mention.nodeId, {
			...node,
			inputs
		});
	}
	return Object.fromEntries(Object.entries(graph).map(([id, node]) => [id, changed.get(id) ?? node]));
}
function assetRef({ id, hash, filePath }) {
	return {
		__type: "core/ASSET",
		info: {
			id,
			...hash ? { hash } : {},
			...filePath === void 0 ? {} : { file_path: filePath }
		}
	};
}
// src/protocol/engine-file.ts
/**
* Reads the engine's file from an output id. The self-hosted server stores no records of outputs:
* its output id is a payload that names the file, and a signature.
*/
function engineFileOf(assetId) {
	const [payload = "", signature] = assetId.split(".");
	const fields = signature ? readPayload(payload) : void 0;
	if (!isJsonObject(fields)) return void 0;
	const { f: name, s: subfolder, t: type, j: jobId } = fields;
	if (typeof name !== "string" || typeof subfolder !== "string") return void 0;
	if (type !== "output" && type !== "temp") return void 0;
	return {
		name,
		subfolder,
		type,
		...typeof jobId === "string" && { jobId }
	};
}
function readPayload(payload) {
	try {
		const bytes = atob(payload.replaceAll("-", "+").replaceAll("_", "/"));
		const text = new TextDecoder().decode(Uint8Array.from(bytes, (char) => char.charCodeAt(0)));
		return JSON.parse(text);
	} catch {
		return;
	}
}
// src/dialects/errors.ts
/**
* A v1 answer that is not a success. Any handler may throw it; the outermost middleware renders it.
*/
var V1Error = class extends Error {
	name = "V1Error";
	status;
	fault;
	headers;
	blames;
	/** A `fault` is a text where the original's body is that text. */
	constructor(status, fault, options = {}) {
		super(`v1 answer ${status}`, { cause: options.cause });
		this.status = status;
		this.fault = typeof fault === "object" ? fault : faultOf(status, fault);
		this.headers = options.headers ?? {};
		this.blames = options.blames;
	}
};
const CODES = {
	400: "invalid_request",
	401: "unauthorized",
	403: "forbidden",
	404: "not_found",
	405: "method_not_allowed",
	408: "request_timeout",
	409: "conflict",
	413: "payload_too_large",
	415: "unsupported_encoding",
	416: "range_not_satisfiable",
	417: "expectation_failed",
	431: "invalid_request",
	503: "server_busy",
	507: "insufficient_storage"
};
/** Returns an error with the body that the original sends: JSON, a text, or nothing. */
function faultOf(status, localBody, message) {
	const text = typeof localBody === "string" ? localBody : `${STATUS_CODES[status] ?? "Refused"}.`;
	return {
		code: CODES[status] ?? "internal_error",
		message: message ?? text,
		localBody
	};
}
/**
* Returns an error that the original answers with an empty body. Hosted clients get the message.
*/
function emptyError(status, message) {
	return new V1Error(status, faultOf(status, void 0, message));
}
/**
* Returns an error for which the original has no body, or which it does not know. Local clients
* parse it as a refused prompt.
*/
function plainError(code, message) {
	return promptFault(promptRefusal(code, message));
}
/** Returns the 400 of a call whose query or body cannot be used. */
function invalidRequest(message) {
	return new V1Error(400, plainError("invalid_request", message));
}
/** The error of a call without a key that is known. */
const NO_VALID_KEY = plainError("unauthorized", "A valid key is needed: X-API-Key, or Authorization: Bearer.");
/** Returns the error of a call that a rule refuses before it is read. */
function ruleFault(rule, message) {
	return {
		...plainError(rule, message),
		rule
	};
}
/** Returns the error of a refused `POST /prompt`. */
function promptFault(refusal) {
	const { type, message } = refusal.error;
	return {
		code: type,
		message,
		localBody: refusal
	};
}
/** Returns the body of a refused `POST /prompt`. Clients join its texts and show them to people. */
function promptRefusal(type, message, details = "") {
	return {
		error: {
			type,
			message,
			details,
			extra_info: {}
		},
		node_errors: {}
	};
}
function sendJson(ctx, body, status = 200) {
	ctx.status = status;
	ctx.set("Content-Type", "application/json; charset=utf-8");
	ctx.body = v1Json(body);
}
/** Returns JSON as the original writes it. */
function v1Json(body) {
	return toPythonText$1(stringifyJson(body));
}
/** Sends v1's empty answer: `Content-Length: 0` and no type. */
function sendEmpty(ctx, status = 200) {
	ctx.status = status;
	ctx.body = Buffer.alloc(0);
	ctx.remove("Content-Type");
}
/** Returns the text. A control character in it is a 400 that names the `field`. */
function requirePrintable(text, field) {
	if (!hasControlCharacter(text)) return text;
	throw new V1Error(400, plainError("control_character", `"${field}" has a control character.`));
}
/** Returns the header that says when to try again; none if that is not known. */
function retryAfterHeader(seconds) {
	return seconds === void 0 ? {} : { "Retry-After": String(seconds) };
}
// src/translate/node-errors.ts
/**
* Returns v1's `node_errors` of a refusal, from its `details`. They are complete in `x_native`;
* some services pass them through in `node_errors`; else they are the contract's lists of `{field,
* reason}`.
*/
function toNodeErrors({ node_errors: contractErrors, x_native: native }, graph, outputs) {
	if (isJsonObject(native) && Object.values(native).every(isNativeNodeError)) return native;
	if (!isJsonObject(contractErrors) || unknownClass(contractErrors, graph)) return {};
	const all = Object.entries(contractErrors);
	const errorsByNode = /* @__PURE__ */ new Map();
	for (const [id, node] of all) for (const error of isNativeNodeError(node) ? [] : entriesOf(node)) addTo(errorsByNode, id, toEntry(error, inputsOf(graph, id)));
	const own = nodeErrorsOf(errorsByNode, graph, outputs);
	const entries = all.map(([id, node]) => [id, isNativeNodeError(node) ? node : own[id]]);
	return Object.fromEntries(entries.filter(([, node]) => node !== void 0));
}
/** Refuses the whole prompt for an unknown class, as v1 does: v1 does not assign it to one node. */
function unknownClass(value, graph) {
	if (!isJsonObject(value)) return void 0;
	const id = Object.keys(value).find((key) => entriesOf(value[key]).some(({ reason }) => reason === UNKNOWN_CLASS.reason));
	if (id === void 0) return void 0;
	return {
		type: "invalid_prompt",
		message: `Cannot execute because node ${classOf(graph, id)} does not exist.`,
		details: `Node ID '#${id}'`,
		extra_info: {}
	};
}
/**
* Reports assets that v2 cannot find as v1's loaders report missing files, at the inputs that named
* them.
*/
function missingFiles(details, graph, context) {
	const missing = Array.isArray(details.missing_ids) ? new Set(details.missing_ids) : void 0;
	const resolvedFiles = (context.resolvedFiles ?? []).filter(({ assetId }) => !missing || missing.has(assetId));
	const errorsByNode = /* @__PURE__ */ new Map();
	for (const file of resolvedFiles) addTo(errorsByNode, file.nodeId, missingFile(file));
	return nodeErrorsOf(errorsByNode, graph, context.outputs ?? []);
}
/** The v1 error of a node that refuses its inputs itself. */
const OWN_REFUSAL = {
	type: "custom_validation_failed",
	message: "Custom validation failed for node"
};
function missingFile({ input, value }) {
	return {
		...OWN_REFUSAL,
		details: `${input} - Invalid image file: ${value}`,
		extra_info: { input_name: input }
	};
}
/** Returns the errors of the nodes in v1's form. */
function nodeErrorsOf(errorsByNode, graph, outputs) {
	const dependents = runSteps(dependentOutputs(graph, outputs, new Set(errorsByNode.keys())));
	const entries = [...errorsByNode].map(([id, errors]) => {
		return [id, {
			errors,
			dependent_outputs: dependents.get(id) ?? [],
			class_type: classOf(graph, id)
		}];
	});
	return Object.fromEntries(entries);
}
function toEntry({ field, reason }, inputs) {
	const value = Object.hasOwn(inputs, field) ? inputs[field] : void 0;
	const known = v1ErrorOf(reason);
	if (!known) {
		const details = field === "" ? reason : `${field} - ${reason}`;
		const extra_info = field === "" ? {} : { input_name: field };
		return {
			...OWN_REFUSAL,
			details,
			extra_info
		};
	}
	const isReported = value !== void 0 && linkOf(value) === void 0;
	const extra_info = {
		...field !== "" && { input_name: field },
		...isReported && { received_value: value }
	};
	return {
		...known,
		details: field,
		extra_info
	};
}
function inputsOf(graph, id) {
	const inputs = nodeOf(graph, id)?.inputs;
	return isJsonObject(inputs) ? inputs : {};
}
function entriesOf(value) {
	if (!Array.isArray(value)) return [];
	return value.filter(isJsonObject).map(({ field, reason }) => ({
		field: typeof field === "string" ? field : "",
		reason: typeof reason === "string" ? reason : "refused"
	}));
}
// src/translate/prompt-refusal.ts
/** The message of a fault that v2's generic answer does not describe. */
const UPSTREAM_FAILED = "The job service failed. Please try again.";
/**
* Returns the answer of `POST /prompt` when v2 refuses the job. `context` has facts that only the
* caller knows.
*/
function toPromptRefusal(error, graph, context = {}) {
	const { status, type } = v1AnswerOf(error);
	const details = isJsonObject(error.details) ? error.details : {};
	const known = type === "prompt_outputs_failed_validation" ? knownMessage(error, graph) : void 0;
	const node_errors = error.code === "missing_asset" ? missingFiles(details, graph, context) : toNodeErrors(details, graph, context.outputs ?? []);
	const stated = nativeError(details.error) ?? unknownClass(details.node_errors, graph) ?? known;
	const ownError = {
		type,
		message: type === "prompt_outputs_failed_validation" && Object.keys(node_errors).length > 0 ? VALIDATION_FAILED : messageOf(error),
		details: outputNodeErrors(node_errors, context.outputs ?? []),
		extra_info: {}
	};
	return withRetryAfter({
		status,
		body: {
			error: stated ?? ownError,
			node_errors
		}
	}, error);
}
/**
* Messages of the engine about a whole prompt: one server passes on the message but not its type.
*/
const KNOWN_MESSAGES = [
	[/^Prompt has no outputs$/, "prompt_no_outputs"],
	[/^Cannot execute because /, "invalid_prompt"],
	[/^Node '.*' not found/, "missing_node_type"],
	[/^No prompt provided$/, "no_prompt"]
];
function knownMessage(error, graph) {
	const { message } = error;
	const found = KNOWN_MESSAGES.find(([text]) => text.test(message));
	if (!found) return void 0;
	const [, named] = /^Cannot execute because node (.+?) does not exist\b/.exec(message) ?? [];
	const id = Object.keys(graph).find((key) => named !== void 0 && classOf(graph, key) === named);
	const details = id === void 0 ? "" : `Node ID '#${id}'`;
	return {
		type: found[1],
		message,
		details,
		extra_info: {}
	};
}
/** The job service could not be reached, so nothing was submitted: the client may try again. */
function unreachableUpstream() {
	return {
		...refusal("upstream_unavailable", "The job service cannot be reached right now. Nothing was submitted."),
		status: 502
	};
}
/** Another process took the prompt over before this one had recorded it. */
function serverStalled() {
	return {
		...refusal("server_stalled", "This server did not respond for too long. Nothing was submitted, please try again."),
		status: 503
	};
}
/**
* The outcome is unknown. A search for the job runs in the background, and its result is shown
* under `promptId`.
*/
function submitUnknown(error, promptId) {
	const { status, body } = refusal("submit_outcome_unknown", "It is not known whether the job service took this prompt. It is looked for under the prompt id in extra_info; submitting again may run it twice.", error.code);
	const stated = {
		...body.error,
		extra_info: { prompt_id: promptId }
	};
	return {
		status: Math.max(500, status),
		body: {
			...body,
			error: stated
		}
	};
}
/**
* Returns the outputs without errors: v1 runs them and reports the others. A refusal that names no
* node applies to all outputs.
*/
function outputsWithoutErrors(nodeErrors, outputs) {
	const failed = Object.entries(nodeErrors);
	if (failed.length === 0) return [];
	const bad = new Set(failed.flatMap(([id, { dependent_outputs }]) => [id, ...dependent_outputs]));
	return outputs.filter((id) => !bad.has(id));
}
/** Refuses a graph that is not in the API format. The original answers 500 to most of these. */
function refuseShape(graph) {
	if (Array.isArray(graph.nodes) || Array.isArray(graph.links)) return refusal("invalid_prompt", "This is a workflow in the UI format. Export it in API format.");
	const bad = Object.entries(graph).find(([, node]) => !isJsonObject(node) || typeof node.class_type !== "string");
	if (!bad) return void 0;
	const [id, node] = bad;
	return refusal("invalid_prompt", classFault(node), `Node ID '#${id}'`);
}
function classFault(node) {
	const name = isJsonObject(node) ? node.class_type : void 0;
	return name === void 0 ? "Cannot execute because a node is missing the class_type property." : `Cannot execute because node ${pythonStr(name)} does not exist.`;
}
const VALIDATION_FAILED = "Prompt outputs failed validation";
function refusal(type, message, details = "") {
	return {
		status: 400,
		body: {
			error: {
				type,
				message,
				details,
				extra_info: {}
			},
			node_errors: {}
		}
	};
}
function v1AnswerOf(error) {
	if (isAboutSubscription(error)) return {
		status: 429,
		type: "subscription_inactive"
	};
	const { v1Status, v1Type } = errorCodeOf(error.code) ?? {};
	return {
		status: v1Status ?? statusOf(error.status),
		type: v1Type ?? error.code
	};
}
const MAY_BE_ABOUT_SUBSCRIPTION = /* @__PURE__ */ new Set([
	402,
	403,
	429
]);
/**
* True when an error is about a subscription: by its code when that is specific, else by its text.
*/
function isAboutSubscription({ status, code, message }) {
	if (!MAY_BE_ABOUT_SUBSCRIPTION.has(status)) return false;
	if (code === "forbidden") return /subscription/i.test(message);
	return !hasV1Type(code) && /subscription/i.test(`${code} ${message}`);
}
/** True for a code whose meaning in v1 is known. */
function hasV1Type(code) {
	return errorCodeOf(code)?.v1Type !== void 0;
}
/** True when a submission is refused for lack of capacity, which may exist later. */
function isCapacityRefusal({ status, code }) {
	return status === 429 && errorCodeOf(code)?.lacksCapacity === true;
}
/** Returns the status of a refusal whose code v1 does not know. */
function statusOf(status) {
	if (status === 429) return 503;
	if (status === 409 || status < 400) return 500;
	if (status >= 600) return 502;
	return status === 422 || status === 413 ? 400 : status;
}
/** Returns the message of a refusal. It does not describe the inside of the service. */
function messageOf({ code, status, message }) {
	return code === "upstream_error" && status >= 500 ? UPSTREAM_FAILED : message;
}
function nativeError(value) {
	if (!isJsonObject(value) || typeof value.type !== "string") return void 0;
	return {
		type: value.type,
		message: typeof value.message === "string" ? value.message : "",
		details: typeof value.details === "string" ? value.details : "",
		extra_info: isJsonObject(value.extra_info) ? value.extra_info : {}
	};
}
/**
* Joins the errors of the output nodes themselves, as v1 does. A fault in another node leaves the
* text empty.
*/
function outputNodeErrors(nodeErrors, outputs) {
	return outputs.flatMap((id) => Object.hasOwn(nodeErrors, id) ? nodeErrors[id]?.errors ?? [] : []).map(({ message, details }) => `${message}: ${details}`).join("\n");
}
function withRetryAfter(answer, { retryAfterSeconds }) {
	return retryAfterSeconds === void 0 ? answer : {
		...answer,
		retryAfterSeconds
	};
}
// src/lib/spool.ts
const WRITE_NEW = constants$1.O_WRONLY | constants$1.O_CREAT | constants$1.O_EXCL | (constants$1.O_NOFOLLOW ?? 0);
/** One batch is written to disk while the next one fills. */
const WRITE_BATCH = {
	bytes: 524288,
	chunks: 256
};
/** This much is synced while more arrives, so that little is left at the end of a large file. */
const SYNC_BYTES = 33554432;
/** A smaller file has arrived before a reader could have begun. */
const FOLLOWED_FROM_BYTES = 1048576;
/** The bytes that are hashed at a time: a whole file in one chunk must not block the event loop. */
const HASH_SLICE_BYTES = 1048576;
const FULL_DISK_CODES = /* @__PURE__ */ new Set([
	"ENOSPC",
	"EDQUOT",
	"EFBIG"
]);
/**
* Writes a stream to a new file below `dir` and hashes it meanwhile. Memory stays constant, and a
* failure leaves no file. A refused source is left open and paused: its owner drains or closes it.
*/
async function spoolStream(source, options) {
	const { dir, maxBytes, durability = "fsync", follow } = options;
	const path = join(dir, randomUUID());
	const hasher = createHasher();
	const growing = createGrowingFile(path);
	try {
		const file = createSpoolWriter({
			path,
			hasher,
			maxBytes,
			durability,
			growing,
			follow
		});
		await pipeInto(source, file.sink);
		growing.complete();
		return {
			ok: true,
			value: {
				path,
				sizeBytes: file.sizeBytes(),
				hash: hasher.digest()
			}
		};
	} catch (error) {
		growing.fail(error);
		await rm(path, { force: true }).catch(() => {});
		return refusalOf(error, maxBytes);
	} finally {
		hasher.discard();
	}
}
/** Writes bytes from memory to a spooled file. */
async function spoolBytes(bytes, options) {
	const spooled = await spoolStream(Readable.from([bytes], { objectMode: false }), {
		dir: options.dir,
		maxBytes: bytes.length
	});
	if (!spooled.ok) throw new Error(spooled.message);
	return spooled.value;
}
/** Returns the text that the v1 server sends for a body over the limit. */
function tooLargeText(maxBytes) {
	return `Maximum request body size ${maxBytes} exceeded.`;
}
/** Thrown when the sender has disconnected before the end. */
var SourceEndedEarly = class extends Error {
	name = "CutOff";
};
/**
* Works like `pipeline`, but a failing sink leaves its source open: to destroy a request would
* close the connection on which the refusal must be sent.
*/
async function pipeInto(source, sink) {
	finished$1(source, { writable: false }, (cause) => {
		if (cause) sink.destroy(new SourceEndedEarly("the source ended early", { cause }));
	});
	source.pipe(sink);
	await finished(sink);
}
/** Tells readers of a file how far it is written. */
function createGrowingFile(path) {
	let sizeBytes = 0;
	let end = "none";
	let waiting = [];
	function wakeReaders() {
		const woken = waiting;
		waiting = [];
		for (const wake of woken) wake();
	}
	async function sizeBeyond(knownBytes) {
		while (end === "none" && sizeBytes <= knownBytes) await new Promise((resolve) => waiting = [...waiting, resolve]);
		if (end instanceof Error) throw end;
		return sizeBytes;
	}
	return {
		file: {
			path,
			sizeBeyond
		},
		add(bytes) {
			sizeBytes += bytes;
			wakeReaders();
		},
		complete() {
			end = "complete";
			wakeReaders();
		},
		fail(error) {
			end = error;
			wakeReaders();
		}
	};
}
var TooManyBytes = class extends Error {};
/**
* Writes chunks to a file. They are hashed when they arrive, while they are still in the
* processor's cache.
*/
function createSpoolWriter(options) {
	const { path, hasher, maxBytes, durability, growing } = options;
	const mustSync = durability === "fsync";
	let handle;
	let sizeBytes = 0;
	let batch = [];
	let batchBytes = 0;
	let writing = Promise.resolve();
	let syncing = Promise.resolve();
	let isSyncing = false;
	let unsyncedBytes = 0;
	let { follow } = options;
	/** Resolves when memory has room for another batch, not when this one is on disk. */
	async function flush() {
		const [full, fullBytes] = [batch, batchBytes];
		unsyncedBytes += batchBytes;
		[batch, batchBytes] = [[], 0];
		await writing;
		if (full.length === 0 || !handle) return;
		writing = writeAll(handle, full).then(() => growing.add(fullBytes));
		writing.catch(abortWith);
		if (sizeBytes >= FOLLOWED_FROM_BYTES) startFollowing();
		if (mustSync && unsyncedBytes >= SYNC_BYTES && !isSyncing) syncAhead(handle);
	}
	function startFollowing() {
		follow?.(growing.file);
		follow = void 0;
	}
	function syncAhead(opened) {
		unsyncedBytes = 0;
		isSyncing = true;
		syncing = writing.then(() => opened.datasync());
		syncing.then(() => isSyncing = false, abortWith);
	}
	/** Ends at once: a failure must not wait for a sender that is slow with the next batch. */
	function abortWith(error) {
		sink.destroy(error);
	}
	/** Adds to the batch. False when the batch is full. */
	function addChunk(chunk) {
		hasher.update(chunk);
		batchBytes += chunk.length;
		return batch.push(chunk) < WRITE_BATCH.chunks && batchBytes < WRITE_BATCH.bytes;
	}
	async function addSlices(chunk) {
		for (let at = 0; at < chunk.length; at += HASH_SLICE_BYTES) if (!addChunk(chunk.subarray(at, at + HASH_SLICE_BYTES))) await flush();
	}
	async function finish() {
		await flush();
		await Promise.all([writing, syncing]);
		if (mustSync) await handle?.sync();
	}
	const sink = new Writable({
		highWaterMark: WRITE_BATCH.bytes,
		construct: (done) => callDoneAfter(openNew(path).then((opened) => void (handle = opened)), done),
		write(chunk, _encoding, done) {
			sizeBytes += chunk.length;
			if (sizeBytes > maxBytes) return done(new TooManyBytes());
			if (chunk.length > HASH_SLICE_BYTES) callDoneAfter(addSlices(chunk), done);
			else if (addChunk(chunk)) done();
			else callDoneAfter(flush(), done);
		},
		final: (done) => callDoneAfter(finish(), done),
		destroy: (error, done) => callDoneAfter(handle?.close(), (failed) => done(error ?? failed))
	});
	return {
		sink,
		sizeBytes: () => sizeBytes
	};
}
/** Writes all chunks. On a disk that is almost full, one write may accept only a part. */
async function writeAll(handle, chunks) {
	for (let left = chunks; left.length > 0;) {
		const { bytesWritten } = await handle.writev(left);
		left = withoutFirst(left, bytesWritten);
	}
}
function withoutFirst(chunks, bytes) {
	let bytesToDrop = bytes;
	const at = chunks.findIndex((chunk) => (bytesToDrop -= chunk.length) < 0);
	const partlyWritten = chunks[at];
	return partlyWritten ? [partlyWritten.subarray(partlyWritten.length + bytesToDrop), ...chunks.slice(at + 1)] : [];
}
function callDoneAfter(work, done) {
	Promise.resolve(work).then(() => done(null), done);
}
async function openNew(path) {
	await mkdir(dirname(path), {
		recursive: true,
		mode: 448
	});
	return open(path, WRITE_NEW, 384);
}
function refusalOf(error, maxBytes) {
	if (error instanceof TooManyBytes) return {
		ok: false,
		status: 413,
		message: tooLargeText(maxBytes)
	};
	if (error instanceof SourceEndedEarly) return {
		ok: false,
		status: 400,
		message: "The upload was cut off."
	};
	const { code = "", syscall } = error;
	if (syscall === void 0) throw error;
	return {
		ok: false,
		status: 507,
		message: FULL_DISK_CODES.has(code) ? "There is no room left to keep this file." : `The file could not be stored (${code}).`
	};
}
// src/protocol/upload-folders.ts
const FOLDER_PREFIX = "holdover-";
/** Returns the folder of an upload with these digits. */
function uploadFolder(digits) {
	return FOLDER_PREFIX + digits;
}
/** Matches an upload folder in any case, since some file systems ignore case. */
const FOLDER = /(?<![\w-])holdover-[0-9a-f]{16}(?![\w-])/gi;
/** Matches a file pattern that would match such folders. */
const WILDCARD = /(?<![\w-])holdover-[0-9a-f]*[*?[{]/i;
/** Longer texts are not searched: a picture as base64 is longer than any list of paths. */
const MAX_CHARS = 1048576;
const MAX_DECODINGS = 3;
const ESCAPES = /%([0-9a-f]{2})|\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})/gi;
/**
* Returns the upload folders that a text names, in lower case, in any form: a path with slashes or
* backslashes, annotated (`x [input]`) or percent-encoded. `*` stands for a pattern that matches
* such folders.
*/
function uploadFoldersIn(text) {
	if (text.length > MAX_CHARS) return [];
	const found = /* @__PURE__ */ new Set();
	let decodedText = text;
	for (let times = 0; times <= MAX_DECODINGS; times++) {
		for (const [folder] of decodedText.matchAll(FOLDER)) found.add(folder.toLowerCase());
		if (WILDCARD.test(decodedText)) found.add("*");
		const next = decodedOnce(decodedText);
		if (next === decodedText) break;
		decodedText = next;
	}
	return [...found];
}
/** Returns the value without the list entries and members that name such folders. */
function withoutUploadFolders(value) {
	if (Array.isArray(value)) return value.filter((item) => !isFolderReference(item)).map(withoutUploadFolders);
	if (!isJsonObject(value)) return value;
	const kept = Object.entries(value).filter(([name, member]) => !isFolderReference(name) && !isFolderReference(member));
	return Object.fromEntries(kept.map(([name, member]) => [name, withoutUploadFolders(member)]));
}
function isFolderReference(value) {
	return typeof value === "string" && uploadFoldersIn(value).length > 0;
}
function decodedOnce(text) {
	if (!/[%\\]/.test(text)) return text;
	return text.replaceAll(ESCAPES, (_all, ...codes) => String.fromCharCode(Number.parseInt(codes.slice(0, 3).find(Boolean) ?? "20", 16)));
}
// src/definitions/parse-definitions.ts
const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const COMMA = 44;
const OPEN = 123;
const CLOSE = 125;
const OPENERS = /* @__PURE__ */ new Set([OPEN, 91]);
const CLOSERS = /* @__PURE__ */ new Set([CLOSE, 93]);
const MAX_BLOCKING_MS = 5;
/**
* Yields the members of a JSON object one after the other, unparsed, and lets other work run in
* between: a text of 10 MB must not block the event loop. Throws when it is not an object. Faults
* inside a member are left to its parser.
* @internal
*/
async function* membersOf(bytes) {
	let position = skipBlanks(bytes, bytes.subarray(0, 3).equals(BOM) ? 3 : 0);
	if (bytes[position] !== OPEN) throw new SyntaxError("no JSON object");
	position = skipBlanks(bytes, position + 1);
	let sinceMs = performance.now();
	for (let first = true; bytes[position] !== CLOSE; first = false) {
		if (!first) position = skipBlanks(bytes, expectByte(bytes, position, COMMA));
		const member = memberAt(bytes, position);
		yield member;
		position = skipBlanks(bytes, member.end);
		if (performance.now() - sinceMs < MAX_BLOCKING_MS) continue;
		await setImmediate();
		sinceMs = performance.now();
	}
	if (skipBlanks(bytes, position + 1) !== bytes.length) throw new SyntaxError("text after the JSON object");
}
const BOM = Buffer.from([
	239,
	187,
	191
]);
function memberAt(bytes, start) {
	const colon = skipBlanks(bytes, endOfString(bytes, expectByte(bytes, start, QUOTE) - 1));
	return {
		start,
		colon,
		end: endOfValue(bytes, skipBlanks(bytes, expectByte(bytes, colon, COLON)))
	};
}
/** The end of a value: behind its last bracket, or before the next character. */
function endOfValue(bytes, start) {
	let depth = 0;
	for (let position = start; position < bytes.length;) {
		const byte = bytes[position];
		if (depth === 0 && (byte === COMMA || CLOSERS.has(byte))) return position;
		if (byte === QUOTE) position = endOfString(bytes, position);
		else {
			if (OPENERS.has(byte)) depth++;
			else if (CLOSERS.has(byte) && --depth === 0) return position + 1;
			position++;
		}
	}
	throw new SyntaxError("cut short");
}
/** Behind the closing quote of the string begun at `start`. */
function endOfString(bytes, start) {
	for (let position = start + 1; position < bytes.length; position++) if (bytes[position] === BACKSLASH) position++;
	else if (bytes[position] === QUOTE) return position + 1;
	throw new SyntaxError("cut short");
}
function skipBlanks(bytes, start) {
	let position = start;
	while (isBlank(bytes[position])) position++;
	return position;
}
function isBlank(byte) {
	return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}
function expectByte(bytes, position, byte) {
	if (bytes[position] !== byte) throw new SyntaxError("no JSON object");
	return position + 1;
}
/**
* Reads definitions of whatever origin. A class that is no definition is left out, as v1 leaves
* out a node that cannot describe itself; the others keep their text to the digit.
*/
async function readDefinitions(bytes) {
	if (!isUtf8(bytes)) return {
		ok: false,
		reason: "it is not UTF-8"
	};
	const members = /* @__PURE__ */ new Map();
	const hash = createHash("sha256");
	let ignoredClasses = 0;
	let describedClasses = 0;
	try {
		for await (const member of membersOf(bytes)) {
			const { name, raw } = readClass(bytes, member);
			if (name === void 0 || raw === void 0) ignoredClasses++;
			else {
				const text = clientText(bytes.subarray(member.start, member.end), name, raw);
				members.set(name, text);
				hash.update(text).update(",");
				if (isJsonObject(raw["input"]) || Array.isArray(raw["output"])) describedClasses++;
			}
		}
	} catch (error) {
		return {
			ok: false,
			reason: error.message
		};
	}
	if (describedClasses === 0) return {
		ok: false,
		reason: "it describes no node"
	};
	return {
		ok: true,
		ignoredClasses,
		definitions: {
			version: versionOf(hash),
			members,
			info: lazyObjectInfo(members)
		}
	};
}
/**
* A definition as clients are shown it: with a name to display, as a 1.4.13 front end's search throws
* on `null` (row `display-name`), and without the folders in which other users' uploads lie.
*/
function clientText(text, name, raw) {
	const listsFolders = text.includes("holdover-");
	const isNameless = raw["display_name"] === null;
	if (!listsFolders && !isNameless) return text;
	return memberText(name, {
		...raw,
		...listsFolders && raw["input"] !== void 0 && { input: withoutUploadFolders(raw["input"]) },
		...isNameless && { display_name: name }
	});
}
/** A member of `/object_info` that has no text of its source. */
function memberText(name, info) {
	return Buffer.from(toPythonText$1(`${JSON.stringify(name)}:${stringifyJson(info)}`));
}
/** Definitions that are there already. */
function toDefinitions(info) {
	const entries = Object.entries(info).map(([name, one]) => {
		return [name, memberText(name, one)];
	});
	const hash = createHash("sha256");
	for (const [, member] of entries) hash.update(member).update(",");
	return {
		version: versionOf(hash),
		members: new Map(entries),
		info
	};
}
function versionOf(hash) {
	return hash.digest("base64url").slice(0, 27);
}
function readClass(bytes, member) {
	try {
		const name = JSON.parse(bytes.toString("utf8", member.start, member.colon));
		const raw = parseJson(bytes.toString("utf8", member.colon + 1, member.end));
		return {
			name,
			...isJsonObject(raw) && { raw }
		};
	} catch {
		return {};
	}
}
/** A graph names a few of thousands of classes; only those are parsed and held. */
function lazyObjectInfo(members) {
	const info = Object.create(null);
	for (const [name, member] of members) {
		let known;
		Object.defineProperty(info, name, {
			enumerable: true,
			get: () => known ??= classInfo$1(parseJson(`{${member.toString()}}`), name)
		});
	}
	return info;
}
/**
* The members that other code reads have their shape, whatever the text says; the rest is
* unchanged.
*/
function classInfo$1(whole, name) {
	const raw = whole[name];
	const groups = isJsonObject(raw["input"]) ? Object.entries(raw["input"]) : [];
	return {
		...raw,
		input: Object.fromEntries(groups.filter(([, group]) => isJsonObject(group))),
		output_node: raw["output_node"] === true
	};
}
// src/prompts/submission.ts
const MAX_ID_CHARS = 200;
const MAX_CLIENT_ID_CHARS = 128;
/** True when this body takes a number from the counter. */
function usesCounter(body) {
	if (!isJsonObject(body)) return Array.isArray(body) || typeof body === "string";
	return !("number" in body);
}
/** Reads a body. `count`: the number from the counter, if the body takes one. */
function readSubmission(body, count) {
	if (!isJsonObject(body)) throw noPromptError();
	const number = readNumber(body, count);
	if (!("prompt" in body)) throw noPromptError();
	const clientId = readClientId(body.client_id);
	const extraData = readExtraData(body.extra_data);
	return {
		graph: readGraph(body.prompt),
		extraData: clientId === null ? extraData : {
			...extraData,
			client_id: clientId
		},
		clientId: clientId ?? readClientId(extraData.client_id),
		promptId: "prompt_id" in body ? readPromptId(body.prompt_id) : void 0,
		number,
		partialTargets: readTargets(body.partial_execution_targets)
	};
}
/**
* Returns the priority. `number` wins and leaves the counter alone; `front` runs before everything
* queued so far.
*/
function readNumber(body, count) {
	if ("number" in body) return parseNumber(body.number);
	return isTruthyInPython(body.front) && count !== 0 ? -count : count;
}
function parseNumber(value) {
	const text = typeof value === "string" || value instanceof LosslessNumber ? String(value).trim() : value;
	const number = typeof text === "object" ? NaN : Number(text);
	if (text === "" || !Number.isFinite(number)) throw badRequest("invalid_prompt", "\"number\" must be a finite number.");
	return number;
}
/** Reads the id as v1 does: any value becomes a string, `null` becomes `None`. */
function readPromptId(value) {
	const id = toPythonText(value);
	if (id === void 0 || id.length > MAX_ID_CHARS || /[/\\]/.test(id) || isUnprintable(id)) throw badRequest("invalid_prompt_id", `"prompt_id" must be a text of at most ${MAX_ID_CHARS} printable characters without slashes.`);
	return id;
}
/**
* Reads the client id. An empty one is a client id; only an absent one means every socket of the
* user.
*/
function readClientId(value) {
	if (value === void 0 || value === null) return null;
	const id = toPythonText(value);
	if (id === void 0 || id.length > MAX_CLIENT_ID_CHARS || isUnprintable(id)) throw badRequest("invalid_client_id", `"client_id" must be a text of at most ${MAX_CLIENT_ID_CHARS} printable characters.`);
	return id;
}
function isUnprintable(id) {
	return hasControlCharacter(id) || hasHalfCharacter(id);
}
/**
* Reads the extra data. `null` counts as absent, though the original fails on it; a list is
* refused.
*/
function readExtraData(value) {
	if (value === void 0 || value === null) return {};
	if (!isJsonObject(value)) throw badRequest("invalid_prompt", "\"extra_data\" must be an object.");
	return value;
}
function readGraph(value) {
	if (isJsonObject(value)) return value;
	if (value === "" || Array.isArray(value) && value.length === 0) throw badRequest("prompt_no_outputs", "Prompt has no outputs");
	throw badRequest("invalid_prompt", "\"prompt\" must be an object: node id to node, as exported in API format.");
}
/**
* Reads the targets. v1 compares each one with the ids, which are strings: another type names no
* node.
*/
function readTargets(value) {
	if (value === void 0 || value === null) return void 0;
	if (!Array.isArray(value)) throw badRequest("invalid_prompt", "\"partial_execution_targets\" must be a list of node ids.");
	return value.filter((id) => typeof id === "string").map(checkTarget);
}
function checkTarget(id) {
	if (!hasControlCharacter(id)) return id;
	throw badRequest("invalid_prompt", "\"partial_execution_targets\" has a control character.");
}
function toPythonText(value) {
	if (value === null || value === void 0) return "None";
	if (typeof value === "boolean") return value ? "True" : "False";
	if (typeof value === "object" && !(value instanceof LosslessNumber)) return void 0;
	return String(value);
}
function noPromptError() {
	return new V1Error(400, promptFault(promptRefusal("no_prompt", "No prompt provided", "No prompt provided")));
}
function badRequest(type, message) {
	return new V1Error(400, plainError(type, message));
}
// src/translate/partner-credentials.ts
/**
* Returns the caller's credentials for partner nodes, which are forwarded once and never stored.
*/
function partnerCredentialsOf(extraData) {
	const key = extraData.api_key_comfy_org ?? extraData.api_key_service_org;
	const token = extraData.auth_token_comfy_org;
	return {
		...typeof key === "string" && { api_key_comfy_org: key },
		...typeof token === "string" && { auth_token_comfy_org: token }
	};
}
/** Returns `extra_data` as it may be stored and shown in `/queue` and `/history`. */
function withoutSecrets(extraData) {
	if (!Object.keys(extraData).some(isCredentialMember)) return extraData;
	return Object.fromEntries(Object.entries(extraData).filter(([key]) => !isCredentialMember(key)));
}
// src/files/resolve-files.ts
function createFileResolver(options) {
	return { async resolve(caller, graph, subfolder) {
		const mentionsInGraph = fileMentions(graph, await options.objectInfo(caller));
		const mentions = [];
		const found = /* @__PURE__ */ new Map();
		const yieldToEventLoop = yieldEvery(FILES_PER_TURN);
		for (const one of mentionsInGraph) {
			await yieldToEventLoop();
			const row = !hasControlCharacter(one.value) ? await rowOf(options.files, caller, one, subfolder) : void 0;
			const mention = row ? {
				...one,
				subfolder: row.subfolder
			} : one;
			mentions.push(mention);
			if (row) found.set(fileKey(mention), {
				id: row.assetId,
				hash: row.hash
			});
			else if (options.mayFindOthersFiles && isGuessableName(mention)) found.set(fileKey(mention), { id: MISSING_ASSET_ID });
		}
		return resolvedMentions(mentions, found).map((mention) => {
			const { id = "", hash = null } = found.get(fileKey(mention)) ?? {};
			return {
				...mention,
				assetId: id,
				hash
			};
		});
	} };
}
/** Finds the file of a name. The hosted service has no folders: a name is found in any of them. */
async function rowOf(files, { user }, mention, subfolder) {
	const row = await files.get(user, mention);
	if (row !== void 0 || subfolder !== "ignored") return row;
	return await files.newestNamed(user, mention);
}
/** The number of files that are looked up before other work gets its turn. */
const FILES_PER_TURN = 100;
/** An id that no service has, so that the answer is v1's for an unknown file. */
const MISSING_ASSET_ID = "00000000-0000-4000-8000-000000000000";
/**
* True for a name that another user can guess: names of outputs are counted, while uploads of other
* users are in secret folders.
*/
function isGuessableName({ type, value }) {
	return type !== "input" || value.split(/[\\/]/).includes("..");
}
/** Returns the graph for v2, with `core/ASSET` where the client named files of its own. */
function insertAssetReferences(graph, placed) {
	return withAssets(graph, placed, new Map(placed.map((file) => {
		const path = file.type === "input" && file.assetId !== "00000000-0000-4000-8000-000000000000" ? { filePath: uploadPathOf(file) } : {};
		return [fileKey(file), {
			id: file.assetId,
			hash: file.hash,
			...path
		}];
	})));
}
// src/definitions/disk-cache.ts
const MAX_BYTES = 268435456;
/** An entry is one file: a line with the origin of the text, then the text. */
function createDefinitionsCache(options) {
	const { root, log, maxBytes = MAX_BYTES } = options;
	const logFailure = (error) => {
		log.warn({
			event: "definitions.cache_failed",
			err: error
		}, "could not store node definitions on disk");
	};
	const inOrder = createMutex();
	const store = async (path, text) => {
		await writeEntry({
			root,
			path,
			text
		});
		await prune(root, maxBytes);
	};
	return {
		entryFor(source, account) {
			const path = join(root, fileNameFor(source, account));
			return {
				read: () => readEntry(path),
				write: (text) => inOrder(() => store(path, text)).catch(logFailure),
				confirm: (atMs) => utimes(path, new Date(atMs), new Date(atMs)).catch(() => {})
			};
		},
		/** Resolves when nothing is being written any more. */
		idle: () => inOrder(async () => {})
	};
}
function fileNameFor(source, account) {
	return `${createHash("sha256").update(`${source}\0${account}`).digest("hex").slice(0, 32)}.json`;
}
/** A missing and a damaged entry both return `undefined`. */
async function readEntry(path) {
	try {
		const { mtimeMs } = await stat(path);
		const whole = await readFile(path);
		const end = whole.indexOf("\n");
		const head = JSON.parse(whole.toString("utf8", 0, end));
		if (typeof head.from !== "number" || typeof head.validators !== "object") return void 0;
		return {
			...head,
			bytes: whole.subarray(end + 1),
			confirmedAtMs: mtimeMs
		};
	} catch {
		return;
	}
}
async function writeEntry(options) {
	const { bytes, from, validators } = options.text;
	await mkdir(options.root, {
		recursive: true,
		mode: 448
	});
	const temporaryPath = `${options.path}.${randomUUID()}`;
	try {
		const content = [`${JSON.stringify({
			from,
			validators
		})}\n`, bytes];
		await writeFile(temporaryPath, content, {
			mode: 384,
			flush: true
		});
		await rename(temporaryPath, options.path);
	} catch (error) {
		await rm(temporaryPath, { force: true }).catch(() => {});
		throw error;
	}
}
async function prune(root, maxBytes) {
	const names = await readdir(root);
	const files = await Promise.all(names.map(async (name) => ({
		path: join(root, name),
		...await sizeAndTime(join(root, name))
	})));
	let size = 0;
	for (const file of files.toSorted((a, b) => b.mtimeMs - a.mtimeMs)) {
		size += file.size;
		if (size > maxBytes) await rm(file.path, { force: true });
	}
}
async function sizeAndTime(path) {
	return stat(path).catch(() => ({
		size: 0,
		mtimeMs: 0
	}));
}
// src/definitions/fetch-limits.ts
const FETCH_LIMITS = {
	connectTimeoutMs: 5e3,
	/** Making the list takes some servers seconds. */
	headersTimeoutMs: 3e4,
	/** Silence allowed inside the body. */
	bodyIdleTimeoutMs: 3e4,
	/** For the whole answer, however steadily it drips. */
	wholeTimeoutMs: 18e4,
	/** Larger answers are refused; bytes after decompression. */
	maxBytes: 67108864
};
// src/definitions/timing.ts
/** A remote source is asked in the background. */
const REMOTE_TIMING = {
	freshMs: 6e4,
	refreshMs: 5e3,
	absentMs: 6e4,
	maxWaitMs: {
		use: 0,
		show: 0,
		refresh: 1e4,
		stored: 0
	}
};
/** Checking a file is cheap. */
const FILE_TIMING = {
	freshMs: 0,
	refreshMs: 0,
	absentMs: 5e3,
	maxWaitMs: {
		use: 1e3,
		show: 5e3,
		refresh: 5e3,
		stored: 0
	}
};
/** How long requests wait while there are no definitions. */
const EMPTY_MAX_WAIT_MS = {
	use: 3e3,
	show: 6e4,
	refresh: 6e4,
	stored: 0
};
/** A version from before a restart is confirmed first, if that takes no longer than this. */
const UNCONFIRMED_MAX_WAIT_MS = 2e3;
// src/definitions/cached-source.ts
const VERSION_BYTES = 268435456;
function createVersions() {
	const versions = new I({ maxSize: VERSION_BYTES });
	return {
		find: (version) => versions.get(version),
		keep: (definitions, size) => void versions.set(definitions.version, definitions, { size })
	};
}
/** Makes one fetch at a time, and serves the last good version meanwhile and afterwards. */
var CachedSource = class {
	#options;
	#heldVersion;
	#state;
	#pendingFetch;
	#restoring;
	constructor(options) {
		this.#options = options;
	}
	/** Result of the last fetch. */
	last() {
		return this.#state?.kind;
	}
	async view(need) {
		await (this.#restoring ??= this.#restore());
		if (this.#isDue(need)) this.#pendingFetch ??= this.#fetch();
		const waitMs = this.#maxWaitMs(need);
		if (this.#pendingFetch && waitMs > 0) await completesWithin(waitMs, this.#pendingFetch);
		return this.#current(need);
	}
	#definitions() {
		return this.#heldVersion && this.#options.versions.find(this.#heldVersion.version);
	}
	async #restore() {
		const text = await this.#options.cacheEntry?.read();
		if (text) await this.#storeText(text, text.confirmedAtMs);
	}
	async #fetch() {
		try {
			await this.#fetchAndStore();
		} catch (error) {
			const { log, name } = this.#options;
			log.error({
				event: "definitions.read_failed",
				err: error,
				source: name
			}, "could not read node definitions");
			this.#recordOutcome({
				kind: "failed",
				reason: "it cannot be read"
			});
		} finally {
			this.#pendingFetch = void 0;
		}
	}
	async #fetchAndStore() {
		const { cacheEntry, now } = this.#options;
		const fetched = await this.#options.fetch(this.#definitions() ? this.#heldVersion : void 0);
		const outcome = fetched.kind === "text" ? await this.#storeText(fetched, now()) : fetched;
		if (outcome.kind === "text") cacheEntry?.write(outcome);
		if (outcome.kind === "same") cacheEntry?.confirm(now());
		this.#recordOutcome(outcome);
	}
	async #storeText(text, confirmedAtMs) {
		const { versions, log, name } = this.#options;
		const digest = createHash("sha256").update(text.bytes).digest("base64");
		const { from, validators } = text;
		if (this.#heldVersion?.digest === digest && this.#definitions()) {
			this.#heldVersion = {
				...this.#heldVersion,
				from,
				validators
			};
			return { kind: "same" };
		}
		const reading = await readDefinitions(text.bytes);
		if (!reading.ok) return {
			kind: "none",
			reason: reading.reason
		};
		const { definitions, ignoredClasses } = reading;
		versions.keep(definitions, text.bytes.length);
		const { version, members } = definitions;
		this.#heldVersion = {
			from,
			validators,
			version,
			digest,
			confirmedAtMs,
			isConfirmed: false
		};
		const event = "definitions.read";
		const counts = {
			classes: members.size,
			leftOut: ignoredClasses
		};
		log.info({
			event,
			source: name,
			...counts
		}, "read node definitions");
		return {
			kind: "text",
			...text
		};
	}
	#recordOutcome(outcome) {
		const { now, timing, log, name } = this.#options;
		const hasVersion = this.#definitions() !== void 0;
		const next = stateAfter(outcome, {
			atMs: now(),
			timing,
			hasVersion
		});
		if (next.kind === "known" && this.#heldVersion) this.#heldVersion = {
			...this.#heldVersion,
			confirmedAtMs: next.atMs,
			isConfirmed: true
		};
		logChange(this.#state, next, {
			log,
			name
		});
		this.#state = next;
	}
	#isDue(need) {
		const { now, timing } = this.#options;
		const state = this.#state;
		if (need === "stored") return false;
		if (!state) return true;
		const ageMs = now() - state.atMs;
		const waitMs = need === "refresh" && state.kind !== "failed" ? timing.refreshMs : state.waitMs;
		return ageMs < 0 || ageMs >= waitMs || state.kind === "known" && !this.#definitions();
	}
	#maxWaitMs(need) {
		if (!this.#definitions()) return EMPTY_MAX_WAIT_MS[need];
		const isUnconfirmed = this.#heldVersion?.isConfirmed === false;
		return Math.max(need === "show" && isUnconfirmed ? UNCONFIRMED_MAX_WAIT_MS : 0, this.#options.timing.maxWaitMs[need]);
	}
	#current(need) {
		const definitions = this.#definitions();
		const [held, state] = [this.#heldVersion, this.#state];
		const isOld = held !== void 0 && this.#options.now() - held.confirmedAtMs > 864e5;
		if (definitions && held && (need === "use" || !isOld)) return {
			kind: "definitions",
			definitions,
			isStale: state?.kind !== "known"
		};
		if (!state || state.kind === "known") return NOT_YET;
		return {
			kind: state.kind,
			isReachable: state.isReachable,
			retryAfterMs: state.waitMs
		};
	}
};
/** After a failure, or after an answer that a client wants to change. */
const RETRY_MS = 5e3;
const MAX_RETRY_MS = 6e4;
const LOCKED_RETRY_MS = 6e5;
/** The time of the next fetch and the state after an outcome. */
function stateAfter(outcome, { atMs, timing, hasVersion }) {
	switch (outcome.kind) {
		case "text": return {
			kind: "known",
			atMs,
			waitMs: timing.freshMs
		};
		case "same":
			if (hasVersion) return {
				kind: "known",
				atMs,
				waitMs: timing.freshMs
			};
			return {
				kind: "failed",
				reason: "it answers 304 unasked",
				isReachable: true,
				atMs,
				waitMs: RETRY_MS
			};
		case "none": return {
			...outcome,
			isReachable: true,
			atMs,
			waitMs: hasVersion ? RETRY_MS : timing.absentMs
		};
		case "locked": return {
			...outcome,
			isReachable: true,
			atMs,
			waitMs: LOCKED_RETRY_MS
		};
		case "failed": {
			const { reason, retryAfterMs = 0, isReachable = false } = outcome;
			return {
				kind: "failed",
				reason,
				isReachable,
				atMs,
				waitMs: Math.min(MAX_RETRY_MS, Math.max(RETRY_MS, retryAfterMs))
			};
		}
	}
}
/** One line in the log for each change, not one for each attempt. */
function logChange(before, after, { log, name }) {
	if (after.kind === "known") {
		if (before && before.kind !== "known") log.info({
			event: "definitions.available",
			source: name
		}, "node definitions are available again");
		return;
	}
	if (before?.kind === after.kind) return;
	const { kind, reason } = after;
	log[kind === "failed" ? "warn" : "info"]({
		event: "definitions.missing",
		source: name,
		reason
	}, MISSING_MESSAGES[kind]);
}
const MISSING_MESSAGES = {
	none: "the source has no node definitions",
	locked: "the source wants a key for its node definitions",
	failed: "could not fetch node definitions"
};
const NOT_YET = {
	kind: "failed",
	isReachable: false,
	retryAfterMs: RETRY_MS
};
// src/definitions/remote-definitions.ts
const MAX_ACCOUNTS = 1e3;
/**
* Fetches without a key first: public definitions are fetched once for all. Definitions that need a
* caller's key are shown to that caller only.
*/
function createRemoteDefinitions(options) {
	const { urls, keyPolicy, cache, now, log, versions } = options;
	const source = urls.join(" ");
	const createAccountSource = (account, ask) => new CachedSource({
		fetch: ask,
		versions,
		timing: REMOTE_TIMING,
		cacheEntry: cache.entryFor(source, account),
		now,
		log,
		name: new URL(urls[0] ?? "").origin
	});
	const shared = createAccountSource("everybody", async (known) => {
		const outcome = await fetchFirst(options, { known });
		return outcome.kind === "locked" && keyPolicy.kind === "fixed" ? fetchFirst(options, {
			known,
			key: keyPolicy.key
		}) : outcome;
	});
	const accountSources = new I(atMost(MAX_ACCOUNTS));
	const sourceOf = (caller) => {
		if (keyPolicy.kind !== "callers" || caller?.credential === void 0) return void 0;
		const { user, credential: key } = caller;
		const found = accountSources.get(user) ?? createAccountSource(`user ${user}`, (known) => fetchFirst(options, {
			known,
			key
		}));
		accountSources.set(user, found);
		return found;
	};
	return { async view(caller, need) {
		const open = await shared.view(need);
		const account = sourceOf(caller);
		const isLocked = shared.last() === "locked";
		if (!account || open.kind === "definitions" && !isLocked) return open;
		const view = await account.view(isLocked ? need : "stored");
		return view.kind === "definitions" || isLocked && open.kind !== "definitions" ? view : open;
	} };
}
/** The first address that has them, beginning with the one that had them before. */
async function fetchFirst({ fetcher, urls }, { known, key }) {
	let refusal;
	const before = urls.filter((_, index) => index === known?.from);
	for (const url of /* @__PURE__ */ new Set([...before, ...urls])) {
		const from = urls.indexOf(url);
		const validators = from === known?.from ? known.validators : void 0;
		const outcome = rejectPage(await fetcher.fetch({
			url,
			key,
			validators
		}));
		if (outcome.kind === "text") return {
			...outcome,
			from
		};
		if (outcome.kind === "same") return outcome;
		if (outcome.kind === "failed" && !outcome.isReachable) return outcome;
		if (!refusal || PRECEDENCE[outcome.kind] > PRECEDENCE[refusal.kind]) refusal = outcome;
	}
	return refusal ?? {
		kind: "none",
		reason: "nowhere to ask"
	};
}
/** Precedence of the outcomes of several addresses. */
const PRECEDENCE = {
	text: 4,
	same: 3,
	locked: 2,
	failed: 1,
	none: 0
};
/** Servers of a front end answer any address with its page. */
function rejectPage(outcome) {
	if (outcome.kind !== "text" || /^(\ufeff)?\s*\{/.test(outcome.bytes.toString("utf8", 0, 100))) return outcome;
	return {
		kind: "none",
		reason: "it answers with something else than JSON"
	};
}
// src/definitions/open-definitions.ts
/** Opens the configured source of node definitions. */
async function openDefinitions(options) {
	const { source, upstream } = options;
	const embedded = {
		definitions: toDefinitions(options.embedded),
		forPrograms: toDefinitions({
			...options.described,
			...options.embedded
		})
	};
	const isRemote = upstream.kind === "remote";
	if (source.kind === "file") {
		const file = fileDefinitions(options, source.path);
		const start = () => void file.view(void 0, "use");
		return {
			...serveSource(file, embedded, "must exist"),
			start,
			close: async () => {}
		};
	}
	if (source.kind === "url") return openRemote(options, {
		urls: [source.url],
		embedded
	});
	if (source.kind === "auto" && isRemote) return openRemote(options, {
		urls: candidateUrls(upstream.url),
		embedded
	});
	return {
		...serveEmbedded(embedded, isRemote),
		start: () => {},
		close: async () => {}
	};
}
async function openRemote(options, { urls, embedded }) {
	const { source, upstream, cacheDir, log, now = Date.now, limits } = options;
	const { origin } = new URL(urls[0] ?? "");
	const { createFetcher } = await import("./fetcher-79TLSLg_.js");
	const fetcher = createFetcher(origin, {
		...FETCH_LIMITS,
		...limits
	});
	const cache = createDefinitionsCache({
		root: cacheDir,
		log
	});
	const remote = createRemoteDefinitions({
		fetcher,
		urls,
		keyPolicy: keyPolicyFor(origin, upstream),
		versions: createVersions(),
		cache,
		now,
		log
	});
	return {
		...serveSource(remote, embedded, source.kind === "auto" ? "may be missing" : "must exist"),
		start: () => void remote.view(void 0, "use"),
		async close() {
			await fetcher.close();
			await cache.idle();
		}
	};
}
/** Keys are for the upstream's own origin and for no other. */
function keyPolicyFor(origin, upstream) {
	if (upstream.kind === "embedded" || new URL(upstream.url).origin !== origin) return { kind: "nobodys" };
	return upstream.key === void 0 ? { kind: "callers" } : {
		kind: "fixed",
		key: upstream.key
	};
}
/** Below the service's mount prefix first, then at the paths of v1 servers. */
function candidateUrls(upstreamUrl) {
	const { origin, pathname } = new URL(upstreamUrl);
	const mount = pathname.replace(/\/+$/, "").replace(/\/api\/v2$/, "");
	return [.../* @__PURE__ */ new Set([mount, ""])].flatMap((prefix) => ["/api/object_info", "/object_info"].map((path) => origin + prefix + path));
}
function fileDefinitions(options, path) {
	const { log, now = Date.now, limits } = options;
	const source = new CachedSource({
		fetch: (current) => readSourceFile(path, current?.validators, limits?.maxBytes),
		versions: createVersions(),
		timing: FILE_TIMING,
		name: path,
		now,
		log
	});
	return { view: (_caller, need) => source.view(need) };
}
function serveEmbedded(embedded, isEmbeddedFallback) {
	const current = async () => ({
		ok: true,
		...embedded,
		isStale: false,
		isEmbeddedFallback
	});
	return {
		current,
		refreshed: current,
		info: async () => embedded.definitions.info
	};
}
/** Prompts never wait for this; a request for definitions gets an error when there are none. */
function serveSource(source, embedded, whenMissing) {
	const answer = async (caller, need) => {
		const view = await source.view(caller, need);
		if (view.kind === "definitions") return {
			ok: true,
			isEmbeddedFallback: false,
			...view
		};
		if (whenMissing === "may be missing" && view.isReachable) return {
			ok: true,
			...embedded,
			isEmbeddedFallback: true,
			isStale: false
		};
		return {
			ok: false,
			retryAfterSeconds: Math.ceil(view.retryAfterMs / 1e3)
		};
	};
	return {
		current: (caller) => answer(caller, "show"),
		refreshed: (caller) => answer(caller, "refresh"),
		async info(caller) {
			const view = await source.view(caller, "use");
			return (view.kind === "definitions" ? view.definitions : embedded.definitions).info;
		}
	};
}
/**
* Reads the operator's file, unless it is still the one that was read before.
* @internal
*/
async function readSourceFile(path, known, maxBytes = FETCH_LIMITS.maxBytes) {
	try {
		const stats = await stat(path);
		if (!stats.isFile()) return {
			kind: "failed",
			reason: "it is no file"
		};
		const { size, mtimeMs, ino } = stats;
		const etag = `${size}-${mtimeMs}-${ino}`;
		if (etag === known?.etag) return { kind: "same" };
		if (size > maxBytes) return {
			kind: "failed",
			reason: `it is larger than ${maxBytes} bytes`
		};
		return {
			kind: "text",
			bytes: await readFile(path),
			from: 0,
			validators: { etag }
		};
	} catch (error) {
		return {
			kind: "failed",
			reason: error.message
		};
	}
}
// src/nodes/object-info.ts
/** Writes node definitions exactly as v1 does, with its order of keys. */
function objectInfo(defs) {
	return Object.fromEntries(Array.from(defs, (def) => [def.name, classInfo(def)]));
}
function classInfo(def) {
	const groups = inputGroups(def);
	return {
		input: groups,
		input_order: Object.fromEntries(Object.entries(groups).map(([group, inputs]) => [group, Object.keys(inputs)])),
		output: def.outputs.map(({ type }) => type),
		output_is_list: def.outputs.map(({ isList = false }) => isList),
		output_name: def.outputs.map(({ type, name = type }) => name),
		...def.style === "v3" ? { output_tooltips: def.outputs.map(() => null) } : {},
		name: def.name,
		display_name: def.displayName ?? def.name,
		description: def.description ?? "",
		python_module: def.pythonModule,
		category: def.category,
		output_node: def.outputNode ?? false,
		...flags(def)
	};
}
/**
* Returns the groups of inputs. v1 names a group only when the class declares it. Hidden inputs are
* plain in one style, arrays in the other.
*/
function inputGroups(def) {
	return {
		required: def.required,
		...def.optional ? { optional: def.optional } : {},
		...def.hidden ? { hidden: hiddenInputs(def.hidden, def.style) } : {}
	};
}
function hiddenInputs(hidden, style) {
	const shown = (type) => style === "v3" ? [type] : type;
	return Object.fromEntries(Object.entries(hidden).map(([name, type]) => [name, shown(type)]));
}
/** Returns the flags. One style always lists all three, the other only those that are true. */
function flags({ style, deprecated = false, experimental = false }) {
	if (style === "v3") return {
		deprecated,
		experimental,
		api_node: false
	};
	return {
		...deprecated ? { deprecated } : {},
		...experimental ? { experimental } : {}
	};
}
export { invalidRequest as A, engineFileOf as B, toPromptRefusal as C, V1Error as D, NO_VALID_KEY as E, retryAfterHeader as F, fileKey as G, applyCoercionsSteps as H, ruleFault as I, parseFileName as J, fileMentions as K, sendEmpty as L, promptFault as M, promptRefusal as N, emptyError as O, requirePrintable as P, sendJson as R, submitUnknown as S, nodeErrorsOf as T, chosenOutputs as U, applyCoercions as V, extraPngInfo as W, isCapacityRefusal as _, insertAssetReferences as a, refuseShape as b, readSubmission as c, uploadFolder as d, uploadFoldersIn as f, tooLargeText as g, spoolStream as h, createFileResolver as i, plainError as j, faultOf as k, usesCounter as l, spoolBytes as m, openDefinitions as n, partnerCredentialsOf as o, pipeInto as p, outputNodes as q, MISSING_ASSET_ID as r, withoutSecrets as s, objectInfo as t, memberText as u, messageOf as v, unreachableUpstream as w, serverStalled as x, outputsWithoutErrors as y, v1Json as z };
