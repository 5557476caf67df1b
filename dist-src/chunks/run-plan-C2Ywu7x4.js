import { NodeFailure, OutOfMemory } from "../nodes/node.js";
import { l as stringifyJson } from "./json-CIUMQIEJ.js";
import { o as linkOf, r as dependenciesFirst } from "./graph-_gvMsCf-.js";
import { createHash } from "node:crypto";
// src/upstreams/jobs/worker-protocol.ts
/**
* `stop`: not zero when the job has to stop. `filesOnDisk`: not zero when its files survive a power
* cut.
*/
const RUN_FLAG = {
	stop: 0,
	filesOnDisk: 1
};
/** Creates the flags of one run, none of them set. */
function createRunFlags() {
	return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
}
// src/upstreams/jobs/job-error.ts
/** The longest stored stack text. With the inputs it stays far below a frame of 1 MiB. */
const MAX_TRACE_CHARS = 8e3;
const MAX_MESSAGE_CHARS = 16e3;
/**
* The longest line that is shortened. A message may have lines that look like stack frames, and the
* time to shorten one grows with the square of its length.
*/
const MAX_FRAME_CHARS = 1e3;
/**
* Turns a node's exception into the v2 error of its job. The last line of the traceback has the
* exception class.
*/
function toJobError(thrown, node) {
	const error = thrown instanceof Error ? thrown : new Error(String(thrown));
	const outOfMemory = isOutOfMemory(error);
	const type = outOfMemory ? "torch.OutOfMemoryError" : exceptionType(error);
	const message = publicMessage(error).slice(0, MAX_MESSAGE_CHARS);
	return {
		code: outOfMemory ? "out_of_memory" : "node_execution_error",
		message,
		node_id: node.id,
		class_type: node.classType,
		traceback: `${stackFrames(error)}${type}: ${message.split("\n")[0]}`,
		x_exception_type: type,
		...node.inputs && { x_current_inputs: node.inputs }
	};
}
/**
* Returns the message for clients. Errors of the operating system contain paths of the host, which
* are left out.
*/
function publicMessage({ message, code }) {
	return code !== void 0 && message.includes("/") ? `the engine could not do this: ${code}` : message;
}
/** Returns the error of a job that ended outside of any node. */
function jobError(code, message, more) {
	return {
		code,
		message,
		node_id: more.nodeId ?? null,
		class_type: more.classType ?? null,
		traceback: `${more.exceptionType}: ${message}`,
		x_exception_type: more.exceptionType
	};
}
/** Returns the error of a job that the engine could not run. */
function internalError() {
	return jobError("internal_error", "the engine failed to run this job", { exceptionType: "RuntimeError" });
}
/** Returns the error of a job whose server or worker has crashed too often. */
function crashedTooOften(attempts) {
	return jobError("worker_lost", `the server died ${attempts} times while running this job`, { exceptionType: "RuntimeError" });
}
function exceptionType(error) {
	return error instanceof NodeFailure ? error.exceptionType : "RuntimeError";
}
/** True when memory is exhausted. V8 reports an impossible buffer as a RangeError. */
function isOutOfMemory(error) {
	if (error instanceof OutOfMemory) return true;
	return error instanceof RangeError && /allocation failed|invalid (typed )?array( buffer)? length/i.test(error.message);
}
/** Returns stack lines without the folders of this installation, which are not for clients. */
function stackFrames(error) {
	return (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line)).map((line) => line.slice(0, MAX_FRAME_CHARS).replaceAll(/(?:file:\/\/)?\/[^\s()]*\/(?=[^/\s()]+:\d+)/g, "")).map((line) => `${line}\n`).join("").slice(0, MAX_TRACE_CHARS);
}
// src/upstreams/execution/run-plan.ts
/**
* Returns the inputs of a node. A node without inputs is valid if its dependent does not declare
* the input that links it.
*/
function inputsOf(node) {
	return node?.inputs ?? {};
}
/**
* Plans a validated graph. `nonce` makes the nodes that always run differ from every earlier run.
*/
function createRunPlan(options) {
	const plan = /* @__PURE__ */ new Map();
	for (const id of dependenciesFirst(options.graph, options.targets)) plan.set(id, planNode(id, {
		plan,
		...options
	}));
	return plan;
}
function planNode(id, context) {
	const node = context.graph[id];
	const def = node && context.nodes.get(node.class_type);
	if (!node || !def) throw new Error(`node ${id} is not in the library`);
	const inputs = inputsOf(node);
	const links = /* @__PURE__ */ new Map();
	const literals = /* @__PURE__ */ new Map();
	for (const [name, spec] of Object.entries({
		...def.required,
		...def.optional
	})) {
		const value = Object.hasOwn(inputs, name) ? inputs[name] : void 0;
		if (value === void 0) continue;
		const link = linkOf(value);
		if (link) links.set(name, link);
		else literals.set(name, {
			value,
			spec
		});
	}
	return {
		id,
		def,
		links,
		literals,
		signature: signatureOf({
			id,
			def,
			inputs
		}, context)
	};
}
/**
* Returns the signature of a node. v1 keys its cache by class, inputs and the keys of the linked
* nodes, not by ids; a class that asks for UNIQUE_ID is the exception.
*/
function signatureOf(node, context) {
	const parts = [node.def.name];
	if (node.def.alwaysRuns) parts.push(context.nonce, node.id);
	if (Object.values(node.def.hidden ?? {}).includes("UNIQUE_ID")) parts.push(node.id);
	for (const name of Object.keys(node.inputs).toSorted()) parts.push([name, inputKey(node.inputs[name] ?? null, context)]);
	return createHash("sha256").update(stringifyJson(parts)).digest("base64");
}
function inputKey(value, { plan, files }) {
	const link = linkOf(value);
	if (link) return [
		"link",
		plan.get(link.from)?.signature ?? null,
		link.slot
	];
	const file = typeof value === "string" ? files.get(value) : void 0;
	return file ? [
		"file",
		value,
		file.hash
	] : ["value", value];
}
export { jobError as a, RUN_FLAG as c, internalError as i, createRunFlags as l, inputsOf as n, publicMessage as o, crashedTooOften as r, toJobError as s, createRunPlan as t };
