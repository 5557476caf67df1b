import { t as I } from "../../chunks/index.min-rxNe_V92.js";
import { n as pythonJson, o as byteImageSize } from "../../chunks/python-json-CIUrrCh_.js";
import { Cancelled, NodeFailure, OutOfMemory } from "../../nodes/node.js";
import { a as jobError, c as RUN_FLAG, l as createRunFlags, o as publicMessage, s as toJobError, t as createRunPlan } from "../../chunks/run-plan-DcAnsz4e.js";
import { r as hashOf } from "../../chunks/hash-DYRd5MjV.js";
import { i as undefinedIfAbsent, n as syncPath, t as syncAll } from "../../chunks/durability-qSQjSt39.js";
import { n as createBlobPaths } from "../../chunks/blob-paths-BiKJO-Db.js";
import { t as atMost } from "../../chunks/lru-size-Cu34KpzD.js";
import { l as stringifyJson, n as isJsonObject, o as parseJson, t as LosslessNumber } from "../../chunks/json-0U1hIHCx.js";
import { a as isStorageUnavailable, n as STORAGE_UNAVAILABLE_CODE } from "../../chunks/storage-errors-D5OCISk9.js";
import { t as addTo } from "../../chunks/graph-_gvMsCf-.js";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { createReadStream, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { createHash, randomUUID } from "node:crypto";
import { pipeline } from "node:stream/promises";
// src/upstreams/execution/memory-meter.ts
/** Shorter texts are not counted, since the number of nodes is limited. */
const MIN_COUNTED_CHARS = 1024;
/** Starts an empty meter. */
function createMemoryMeter(limitBytes) {
	const counted = /* @__PURE__ */ new Set();
	const isNewText = createNewTextCheck();
	let heldBytes = 0;
	let reservedBytes = 0;
	return {
		reserve(bytes) {
			if (heldBytes + reservedBytes + bytes > limitBytes) throw outOfMemory(heldBytes + reservedBytes, bytes, limitBytes);
			reservedBytes += bytes;
		},
		/** Ends a call: its reservations are replaced by the buffers and texts that it returned. */
		settle(values) {
			reservedBytes = 0;
			for (const [buffer, bytes] of buffersOf(values)) {
				if (counted.has(buffer)) continue;
				counted.add(buffer);
				heldBytes += bytes;
			}
			for (const text of values) if (typeof text === "string" && isNewText(text)) heldBytes += textBytes(text);
		}
	};
}
/** Returns the bytes that a text counts for. */
function textBytes(text) {
	return text.length * 2;
}
/**
* Returns a check that is true for a text not seen lately. Texts have no identity, so those of one
* length are compared.
*/
function createNewTextCheck() {
	const seen = /* @__PURE__ */ new Map();
	return (text) => {
		if (text.length < MIN_COUNTED_CHARS) return false;
		const alike = seen.get(text.length) ?? [];
		if (alike.includes(text)) return false;
		seen.set(text.length, [...alike, text].slice(-4));
		return true;
	};
}
/** Returns the distinct buffers behind some values, and the bytes of each. */
function buffersOf(values) {
	const buffers = /* @__PURE__ */ new Map();
	for (const value of values) {
		if (!isPixels(value)) continue;
		if ("bytes" in value && value.bytes) buffers.set(value.bytes, byteImageSize(value.bytes));
		else buffers.set(value.data.buffer, value.data.buffer.byteLength);
	}
	return buffers;
}
/** True for pixels. A literal object or array of the workflow is a value, too. */
function isPixels(value) {
	if (typeof value !== "object" || value === null) return false;
	return "bytes" in value && value.bytes instanceof Uint8Array || value.data instanceof Float32Array;
}
function outOfMemory(used, wanted, limit) {
	const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
	return new OutOfMemory(`Allocation of ${mib(wanted)} failed: this job already holds ${mib(used)} of its ${mib(limit)}`);
}
// src/upstreams/execution/node-cache.ts
/** The size that a value without pixels and text counts for. It only has to be above zero. */
const OVERHEAD_BYTES = 1024;
/** Above `maxBytes`, the results of the users who have been idle for longest are dropped. */
function createNodeCache({ maxBytes }) {
	const users = new I({
		maxSize: Math.max(1, maxBytes),
		sizeCalculation: sizeOf
	});
	/**
	* The users whose results a running job uses, and those of them whose results are dropped at its
	* end.
	*/
	const inUse = /* @__PURE__ */ new Set();
	const toDrop = /* @__PURE__ */ new Set();
	return {
		take(user) {
			const records = users.get(user) ?? /* @__PURE__ */ new Map();
			users.delete(user);
			inUse.add(user);
			return records;
		},
		put(user, records) {
			inUse.delete(user);
			if (!toDrop.delete(user)) users.set(user, records);
		},
		/** Drops the results of a user, and those that a running job of the user is about to store. */
		forget(user) {
			users.delete(user);
			if (inUse.has(user)) toDrop.add(user);
		}
	};
}
function sizeOf(records) {
	const all = [...records.values()];
	const values = all.flatMap((record) => record.slots.flat());
	const pixelBytes = sum(buffersOf(values).values());
	const textsBytes = sum(values.map((value) => typeof value === "string" ? textBytes(value) : 0));
	const shownBytes = sum(all.map(({ uiJson }) => textBytes(uiJson ?? "")));
	return pixelBytes + textsBytes + shownBytes + OVERHEAD_BYTES * (1 + values.length);
}
function sum(numbers) {
	let total = 0;
	for (const number of numbers) total += number;
	return total;
}
// src/upstreams/execution/place-output.ts
/**
* Writes blobs in a worker thread. The calls block only this thread, which has no other work, and
* need no turn of an event loop. While the disk works for one job, the next one may run.
*/
function createOutputPlacer(dirs) {
	const { dir, folders, markersDir, pathOf, markerOf } = createBlobPaths(dirs.blobsDir);
	const durableFolders = /* @__PURE__ */ new Set();
	const unsynced = /* @__PURE__ */ new Set();
	const writeMarker = (hash) => inFolder(markersDir, () => writeFileSync(markerOf(hash), ""), { mode: 448 });
	const moveIntoPlace = (spooled, hash) => {
		const target = pathOf(hash);
		const isNew = !existsSync(target);
		if (isNew) writeMarker(hash);
		inFolder(path.dirname(target), () => renameSync(spooled, target));
		if (isNew && !existsSync(markerOf(hash))) writeMarker(hash);
	};
	const write = (hash, bytes) => {
		const spooled = path.join(dirs.spoolDir, randomUUID());
		try {
			writeFileSync(spooled, bytes, { flag: "wx" });
			moveIntoPlace(spooled, hash);
		} catch (error) {
			rmSync(spooled, { force: true });
			throw error;
		}
	};
	return {
		async prepare() {
			const all = folders();
			for (const folder of all) mkdirSync(folder, { recursive: true });
			await syncPath(dir);
			for (const folder of all) durableFolders.add(folder);
		},
		place(bytes) {
			const hash = hashOf(bytes);
			if (statSync(pathOf(hash), { throwIfNoEntry: false })?.size !== bytes.byteLength) write(hash, bytes);
			unsynced.add(hash);
			return hash;
		},
		async sync() {
			const paths = [...unsynced].map(pathOf);
			unsynced.clear();
			const changed = new Set(paths.map((file) => path.dirname(file)));
			const isNew = [...changed].some((folder) => !durableFolders.has(folder));
			await syncAll([
				...paths,
				...changed,
				...isNew ? [dir] : []
			]);
			for (const folder of changed) durableFolders.add(folder);
		}
	};
}
/** Runs `act` in a folder, which is created if it does not exist. */
function inFolder(folder, act, options = {}) {
	try {
		act();
	} catch (error) {
		if (error.code !== "ENOENT") throw error;
		mkdirSync(folder, {
			recursive: true,
			...options
		});
		act();
	}
}
// src/upstreams/execution/job-files.ts
const MAX_DIGESTS = 1e4;
/** Opens files below a folder or, without a folder, through the main thread. */
function openWorkerFiles({ blobsDir, spoolDir }, ask) {
	if (blobsDir !== void 0) return {
		inputs: localFiles,
		outputs: createOutputPlacer({
			blobsDir,
			spoolDir
		})
	};
	return {
		inputs: createAskingReader(ask),
		outputs: createAskingPlacer(ask)
	};
}
const localFiles = {
	read: ({ path }) => readFile(path ?? ""),
	async sha256({ path }) {
		const hash = createHash("sha256");
		await pipeline(createReadStream(path ?? "", { highWaterMark: 2 ** 20 }), hash);
		return hash.digest("hex");
	}
};
/**
* Reads through the main thread. Bytes of one hash always have the same digest, so it is cached.
*/
function createAskingReader(ask) {
	const digests = new I(atMost(MAX_DIGESTS));
	const read = async ({ hash }) => {
		const bytes = await ask({
			kind: "read",
			ask: hash
		});
		if (bytes !== null) return bytes;
		throw Object.assign(/* @__PURE__ */ new Error("the bytes are gone"), { code: "ENOENT" });
	};
	return {
		read,
		async sha256(file) {
			const known = digests.get(file.hash);
			if (known !== void 0) return known;
			const digest = createHash("sha256").update(await read(file)).digest("hex");
			digests.set(file.hash, digest);
			return digest;
		}
	};
}
function createAskingPlacer(ask) {
	return {
		async place(bytes) {
			const hash = hashOf(bytes);
			await ask({
				kind: "store",
				ask: {
					hash,
					bytes: Uint8Array.from(bytes)
				}
			});
			return hash;
		},
		prepare: async () => {},
		sync: async () => {}
	};
}
// src/upstreams/execution/message-batch.ts
/** The longest delay of a message while its thread works and calls `flushOverdue` regularly. */
const MAX_DELAY_MS = 5;
/**
* Sends the posts of one turn of the event loop as one message: small nodes take microseconds, and
* each message costs both threads more. A request, or the end of a job, is sent at once with all
* posts before it.
*/
function createMessageBatch(port, now = () => performance.now()) {
	let messages = [];
	let transfer = [];
	let sinceMs = 0;
	let immediate;
	const flush = () => {
		clearImmediate(immediate);
		const [sent, moved] = [messages, transfer];
		[messages, transfer] = [[], []];
		if (sent.length > 0) port.postMessage(sent, moved);
	};
	return {
		post(message) {
			if (messages.length === 0) {
				sinceMs = now();
				immediate = setImmediate(flush);
			}
			messages.push(message);
			const bytes = bytesOf(message);
			if (bytes) transfer.push(bytes.buffer);
			if (message.type === "question" || message.type === "end") flush();
		},
		/** Sends all waiting posts. Call it before work that takes longer than a message. */
		flush,
		/** Sends the posts that have waited too long. Call it often during long work. */
		flushOverdue() {
			if (messages.length > 0 && now() - sinceMs >= MAX_DELAY_MS) flush();
		}
	};
}
/** Returns bytes whose memory moves to the main thread. */
function bytesOf(message) {
	if (message.type === "preview") return message.data.bytes;
	return message.type === "question" && message.kind === "store" ? message.ask.bytes : void 0;
}
// src/upstreams/execution/call-context.ts
/** Work on more bytes than this takes longer than a message. */
const LONG_WORK_BYTES = 2 ** 20;
/** Creates the operations that node `nodeId` may call while it runs. */
function createCallContext(nodeId, deps) {
	const saved = [];
	let pendingPreview;
	const { messages } = deps;
	const check = () => {
		messages.flushOverdue();
		if (Atomics.load(deps.flags, RUN_FLAG.stop) !== 0) throw new Cancelled("the job is being stopped");
	};
	/** Sends a preview with its step, or alone when the next preview comes first. */
	const sendPendingPreview = (withStep) => {
		if (!pendingPreview) return;
		const data = {
			node_id: nodeId,
			...pendingPreview,
			...withStep
		};
		pendingPreview = void 0;
		messages.post({
			type: "preview",
			data
		});
	};
	return {
		nodeId,
		meter: deps.meter,
		saved,
		promptText: deps.promptText,
		extraPngInfo: deps.extraPngInfo,
		inputTypes: deps.inputTypes,
		check,
		progress(step, steps) {
			check();
			sendPendingPreview({ x_with_step: true });
			messages.post({
				type: "step",
				nodeId,
				step,
				steps
			});
			messages.flush();
		},
		preview(bytes, contentType, kind = "own") {
			check();
			sendPendingPreview({});
			pendingPreview = {
				content_type: contentType,
				bytes: Uint8Array.from(bytes),
				...kind === "own" && { x_own: true }
			};
		},
		flush: () => sendPendingPreview({}),
		text(text) {
			check();
			messages.post({
				type: "text",
				nodeId,
				text
			});
		},
		reserve(bytes) {
			check();
			if (bytes >= LONG_WORK_BYTES) messages.flush();
			deps.meter.reserve(bytes);
		},
		reserveShown(chars) {
			check();
			const granted = Math.min(chars, deps.textBudget.left);
			deps.textBudget.left -= granted;
			return granted;
		},
		async readFile(value) {
			check();
			const file = deps.files.get(value);
			if (!file) throw new Error(`${value} is not a file of this workflow`);
			return await readBlob(deps.inputs, file, value);
		},
		async save(file) {
			let output = null;
			while (output === null) {
				check();
				const written = await place(file, deps.outputs);
				output = await deps.ask({
					kind: "save",
					ask: {
						nodeId,
						file: written
					}
				});
			}
			saved.push(output);
			return { x_asset: output.id };
		},
		async nextCounter(folder, prefix) {
			check();
			return await deps.ask({
				kind: "counter",
				ask: {
					...folder,
					prefix
				}
			});
		}
	};
}
async function readBlob(inputs, file, name) {
	try {
		return await inputs.read(file);
	} catch (cause) {
		if (isStorageUnavailable(cause)) throw new NodeFailure("OSError", `${name} could not be read: ${STORAGE_UNAVAILABLE_CODE}`, { cause });
		throw new NodeFailure("FileNotFoundError", `the bytes of ${name} are gone`, { cause });
	}
}
async function place(file, outputs) {
	const { name, subfolder, contentType, temp, websocket = false, bytes } = file;
	try {
		const hash = await outputs.place(bytes);
		return {
			sizeBytes: bytes.byteLength,
			hash,
			name,
			subfolder,
			contentType,
			temp,
			websocket
		};
	} catch (cause) {
		const code = cause.code ?? "unknown error";
		throw new NodeFailure("OSError", `${name} could not be written: ${code}`, { cause });
	}
}
// node_modules/tinyqueue/index.js
var TinyQueue = class {
	constructor(data = [], compare = (a, b) => a < b ? -1 : a > b ? 1 : 0) {
		this.data = data;
		this.length = this.data.length;
		this.compare = compare;
		if (this.length > 0) for (let i = (this.length >> 1) - 1; i >= 0; i--) this._down(i);
	}
	push(item) {
		this.data.push(item);
		this._up(this.length++);
	}
	pop() {
		if (this.length === 0) return void 0;
		const top = this.data[0];
		const bottom = this.data.pop();
		if (--this.length > 0) {
			this.data[0] = bottom;
			this._down(0);
		}
		return top;
	}
	peek() {
		return this.data[0];
	}
	_up(pos) {
		const { data, compare } = this;
		const item = data[pos];
		while (pos > 0) {
			const parent = pos - 1 >> 1;
			const current = data[parent];
			if (compare(item, current) >= 0) break;
			data[pos] = current;
			pos = parent;
		}
		data[pos] = item;
	}
	_down(pos) {
		const { data, compare } = this;
		const halfLength = this.length >> 1;
		const item = data[pos];
		while (pos < halfLength) {
			let bestChild = (pos << 1) + 1;
			const right = bestChild + 1;
			if (right < this.length && compare(data[right], data[bestChild]) < 0) bestChild = right;
			if (compare(data[bestChild], item) >= 0) break;
			data[pos] = data[bestChild];
			pos = bestChild;
		}
		data[pos] = item;
	}
};
// src/upstreams/execution/node-values.ts
/** The longest text that an error shows of one value. */
const MAX_SHOWN_CHARS = 1e3;
/** The most values that an error shows of one input. */
const MAX_SHOWN_VALUES = 8;
/**
* Converts a literal input to the value that nodes see. An INT beyond a double's range becomes a
* bigint.
*/
function toValue(json, spec) {
	if (!(json instanceof LosslessNumber)) return json;
	const token = json.toString();
	if (spec[0] === "FLOAT" || !/^-?\d+$/.test(token)) return Number(token);
	return BigInt(token);
}
/**
* Describes evaluated inputs for an error report: pixels are named, not printed, and long texts are
* cut.
*/
function describeInputs(inputs) {
	const entries = [...inputs].map(([name, values]) => [name, values.slice(0, MAX_SHOWN_VALUES).map(describe)]);
	return Object.fromEntries(entries);
}
function describe(value) {
	if (typeof value === "bigint") return new LosslessNumber(value.toString());
	if (typeof value === "string") return value.slice(0, MAX_SHOWN_CHARS);
	if (typeof value !== "object" || value === null) return finiteOrText(value);
	if (value.kind === "image") return `IMAGE of shape [${value.batch}, ${value.height}, ${value.width}, ${value.channels}]`;
	if (value.kind === "mask") return `MASK of shape [${value.batch}, ${value.height}, ${value.width}]`;
	return stringifyJson(value).slice(0, MAX_SHOWN_CHARS);
}
function finiteOrText(value) {
	return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
// src/upstreams/execution/execute-plan.ts
/**
* After this many nodes the worker waits for the main thread, which can then do other work. Small
* nodes take only microseconds.
*/
const NODES_BETWEEN_PAUSES = 32;
/** Thrown when a node throws. `node` and `inputs` are the node and its values. */
var NodeCallError = class extends Error {
	name = "NodeCallError";
	node;
	inputs;
	constructor(node, inputs, cause) {
		super(`node ${node.id} failed`, { cause });
		this.node = node;
		this.inputs = inputs;
	}
};
/** Runs the nodes that the targets need and the cache lacks, and posts every step. */
async function execute(execution) {
	const { plan, records, targets } = execution;
	const cached = [...plan.values()].filter((node) => records.has(node.signature));
	const waiting = nodesToRun(execution);
	const skipped = cached.filter((node) => !waiting.has(node.id));
	for (const node of cached) execution.meter.settle(records.get(node.signature)?.slots.flat() ?? []);
	execution.messages.post({
		type: "begin",
		cached: cached.map((node) => node.id),
		total: waiting.size + skipped.length,
		done: skipped.length
	});
	const schedule = createSchedule(waiting, (node) => targets.has(node.id) || node.def.outputNode === true);
	let hasBegun = false;
	let nodesRun = 0;
	for (let node = schedule.next(); node; node = schedule.next()) {
		if (!hasBegun && !records.has(node.signature)) {
			await execution.begin();
			hasBegun = true;
		}
		await runOrReuse(node, execution);
		schedule.done(node.id);
		if (++nodesRun % NODES_BETWEEN_PAUSES === 0) await execution.handled();
	}
}
/**
* Returns the nodes to run. Cached targets are included, so that their old result is shown. The
* inputs of a cached node are not.
*/
function nodesToRun({ plan, records, targets }) {
	const wanted = new Set(targets);
	for (const id of wanted) {
		const node = plan.get(id);
		if (!node || records.has(node.signature)) continue;
		for (const link of node.links.values()) wanted.add(link.from);
	}
	const isNeeded = (node) => wanted.has(node.id) && (targets.has(node.id) || !records.has(node.signature));
	return new Map([...plan].filter(([, node]) => isNeeded(node)));
}
async function runOrReuse(node, execution) {
	const { messages } = execution;
	const known = execution.records.get(node.signature);
	if (known) {
		const reused = known.outputs.map((output) => ({
			...output,
			node_id: node.id
		}));
		messages.post({
			type: "finished",
			nodeId: node.id,
			...uiField(known),
			reused
		});
		return;
	}
	messages.post({
		type: "started",
		nodeId: node.id,
		classType: node.def.name
	});
	const record = await run(node, execution);
	execution.records.set(node.signature, record);
	messages.post({
		type: "finished",
		nodeId: node.id,
		...uiField(record)
	});
}
async function run(node, execution) {
	let inputs = /* @__PURE__ */ new Map();
	try {
		inputs = evaluate(node, execution);
		if (!isBrief(node.def, inputs)) execution.messages.flush();
		const context = execution.contextFor(node);
		const { slots, ui } = await callNode(node.def, inputs, context);
		context.flush();
		return {
			slots,
			outputs: [...context.saved],
			...ui && { uiJson: stringifyJson(ui) }
		};
	} catch (cause) {
		throw new NodeCallError(node, inputs, cause);
	}
}
/** With larger inputs a node runs longer than a message takes. */
const BRIEF_BYTES = 65536;
function isBrief(def, inputs) {
	if (!def.isBriefWhenSmall) return false;
	let bytes = 0;
	for (const size of buffersOf([...inputs.values()].flat()).values()) bytes += size;
	return bytes <= BRIEF_BYTES;
}
function evaluate(node, { plan, records }) {
	const inputs = /* @__PURE__ */ new Map();
	for (const [name, { value, spec }] of node.literals) inputs.set(name, [toValue(value, spec)]);
	for (const [name, link] of node.links) {
		const source = plan.get(link.from);
		/** v1 uses the slot as a Python index: -1 is the last output. */
		const slot = source && records.get(source.signature)?.slots.at(link.slot);
		if (!slot) throw new Error(`input ${name} is linked to output ${link.slot} of node ${link.from}, which has none`);
		inputs.set(name, slot);
	}
	return inputs;
}
function uiField(record) {
	return record.uiJson === void 0 ? {} : { uiJson: record.uiJson };
}
/**
* Runs a node as v1 does: once for each item of the longest input list; shorter lists repeat their
* last item. A node that takes lists runs once. Results of list outputs are joined.
*/
async function callNode(def, inputs, context) {
	const slots = def.outputs.map(() => []);
	const ui = /* @__PURE__ */ new Map();
	for (const arguments_ of argumentSets(def, inputs)) {
		context.check();
		const result = await def.run(arguments_, context);
		context.meter.settle(collectOutputs(def, result.outputs, slots));
		for (const [key, items] of Object.entries(result.ui ?? {})) {
			const shown = ui.get(key) ?? [];
			for (const item of items) shown.push(item);
			ui.set(key, shown);
		}
	}
	return {
		slots,
		...ui.size > 0 && { ui: Object.fromEntries(ui) }
	};
}
function argumentSets(def, inputs) {
	if (def.inputIsList) return [Object.fromEntries(inputs)];
	const calls = Math.max(1, ...[...inputs.values()].map((list) => list.length));
	return Array.from({ length: calls }, (_, call) => {
		const entries = [...inputs].map(([name, list]) => [name, itemFor(name, list, call)]);
		return Object.fromEntries(entries);
	});
}
function itemFor(name, list, call) {
	const item = list[Math.min(call, list.length - 1)];
	if (item === void 0) throw new NodeFailure("IndexError", `the list linked to ${name} is empty`);
	return item;
}
/** Adds the outputs of one call to the slots and returns them. */
function collectOutputs(def, outputs, slots) {
	const all = [];
	for (const [index, slot] of slots.entries()) {
		const value = outputs[index];
		if (value === void 0) throw new Error(`${def.name} gave no value for its output ${index}`);
		const values = def.outputs[index]?.isList === true ? value : [value];
		for (const one of values) {
			slot.push(one);
			all.push(one);
		}
	}
	return all;
}
/**
* Returns the nodes whose inputs are all computed. v1 runs an output node as soon as it can;
* otherwise the order of `nodes`, which is that of the walk, decides.
* @internal
*/
function createSchedule(nodes, isOutput) {
	const dependents = /* @__PURE__ */ new Map();
	const ready = {
		outputs: new TinyQueue([], byRank),
		others: new TinyQueue([], byRank)
	};
	const release = (waiting) => {
		(isOutput(waiting.node) ? ready.outputs : ready.others).push(waiting);
	};
	let rank = 0;
	for (const node of nodes.values()) {
		const needs = /* @__PURE__ */ new Set();
		for (const { from } of node.links.values()) if (nodes.has(from)) needs.add(from);
		const waiting = {
			node,
			rank: rank++,
			blockers: needs.size
		};
		for (const id of needs) addTo(dependents, id, waiting);
		if (needs.size === 0) release(waiting);
	}
	return {
		next: () => (ready.outputs.pop() ?? ready.others.pop())?.node,
		done(id) {
			for (const waiting of dependents.get(id) ?? []) if (--waiting.blockers === 0) release(waiting);
			dependents.delete(id);
		}
	};
}
function byRank(one, other) {
	return one.rank - other.rank;
}
// src/upstreams/execution/run-job.ts
/**
* The limit for shown results: the server keeps them in memory, and sends them to every reader of
* the job.
*/
const MAX_UI_CHARS = 4 * 2 ** 20;
/** Runs one job to its end inside a worker thread. Every outcome is returned as a value. */
async function runJob(request, deps) {
	const previous = deps.cache.take(request.user);
	let records = /* @__PURE__ */ new Map();
	try {
		const plan = createRunPlan({
			graph: parseJson(request.workflowJson),
			targets: request.targets,
			nodes: deps.nodes,
			files: request.files,
			nonce: randomUUID()
		});
		records = await reusableRecords(previous, plan, deps.ask);
		await executePlan(plan, records, request, deps);
		return { kind: "succeeded" };
	} catch (error) {
		return runEndOf(error);
	} finally {
		deps.cache.put(request.user, records);
	}
}
async function executePlan(plan, records, request, deps) {
	const meter = createMemoryMeter(request.memoryLimitBytes);
	const { prompt, extraPngInfo } = provenanceOf(request);
	const context = {
		meter,
		textBudget: { left: Math.max(0, MAX_UI_CHARS - uiCharsIn(records)) },
		files: request.files,
		flags: new Int32Array(request.flags),
		promptText: await promptText(prompt, plan, {
			files: request.files,
			inputs: deps.inputs
		}),
		extraPngInfo: isJsonObject(extraPngInfo) ? extraPngInfo : null,
		...deps
	};
	await execute({
		plan,
		records,
		meter,
		targets: new Set(request.targets),
		messages: deps.messages,
		begin: () => request.hasBegun ? void 0 : deps.ask({
			kind: "begin",
			ask: null
		}),
		handled: () => deps.ask({
			kind: "handled",
			ask: null
		}),
		contextFor: (node) => createCallContext(node.id, {
			inputTypes: inputTypes(node, plan),
			...context
		})
	});
}
function provenanceOf({ provenanceJson, workflowJson }) {
	const provenance = parseJson(provenanceJson ?? "{}");
	const { prompt, extraPngInfo } = isJsonObject(provenance) ? provenance : {};
	return {
		prompt: prompt ?? parseJson(workflowJson),
		extraPngInfo
	};
}
function uiCharsIn(records) {
	let chars = 0;
	for (const { uiJson } of records.values()) chars += uiJson?.length ?? 0;
	return chars;
}
function inputTypes(node, plan) {
	const types = [...node.links].map(([input, { from, slot }]) => [input, plan.get(from)?.def.outputs.at(slot)?.type ?? "*"]);
	return Object.fromEntries(types);
}
/** Returns the reusable results. Results whose files are gone are computed again. */
async function reusableRecords(previous, plan, ask) {
	const signatures = new Set([...plan.values()].map((node) => node.signature));
	const candidates = [...previous].filter(([signature]) => signatures.has(signature));
	const outputs = candidates.flatMap(([, record]) => record.outputs);
	const alive = new Set(outputs.length > 0 ? await ask({
		kind: "alive",
		ask: outputs
	}) : []);
	return new Map(candidates.filter(([, record]) => record.outputs.every((output) => alive.has(output.id))));
}
/**
* Returns the prompt as saved files hold it. v1 adds the sha256 of the bytes to each node that
* reads a file.
*/
async function promptText(prompt, plan, { files, inputs }) {
	if (!isJsonObject(prompt)) return pythonJson(prompt);
	const withDigests = { ...prompt };
	for (const node of plan.values()) {
		const digests = await fileDigests(node, files, inputs);
		const shown = withDigests[node.id];
		if (digests.length > 0 && isJsonObject(shown)) withDigests[node.id] = {
			...shown,
			is_changed: digests
		};
	}
	return pythonJson(withDigests);
}
async function fileDigests(node, files, inputs) {
	const digests = [];
	for (const name of node.def.fileInputs ?? []) {
		const value = node.literals.get(name)?.value;
		const file = typeof value === "string" ? files.get(value) : void 0;
		const digest = file && await undefinedIfAbsent(inputs.sha256(file));
		if (digest !== void 0) digests.push(digest);
	}
	return digests;
}
function runEndOf(error) {
	if (!(error instanceof NodeCallError)) {
		const message = error instanceof Error ? publicMessage(error) : String(error);
		return failed(jobError("node_execution_error", message, { exceptionType: "RuntimeError" }));
	}
	if (error.cause instanceof Cancelled) return { kind: "stopped" };
	const inputs = describeInputs(error.inputs);
	return failed(toJobError(error.cause, {
		id: error.node.id,
		classType: error.node.def.name,
		inputs
	}));
}
function failed(error) {
	return {
		kind: "failed",
		errorJson: stringifyJson(error)
	};
}
// src/upstreams/execution/warm-up.ts
/** V8 compiles a function at its first call, and optimizes it by its types after a few more. */
const RUNS = 3;
const GRAPH = {
	1: {
		class_type: "EmptyImage",
		inputs: {
			width: 8,
			height: 8,
			batch_size: 1,
			color: 0
		}
	},
	2: {
		class_type: "PreviewImage",
		inputs: { images: ["1", 0] }
	}
};
const ANSWERS = {
	begin: null,
	save: {
		id: "",
		job_id: "",
		node_id: "2",
		name: "",
		type: "image",
		content_type: "image/png",
		size_bytes: 0,
		hash: ""
	},
	store: null,
	read: null,
	counter: 1,
	alive: [],
	handled: null
};
/**
* Runs a small prompt without any effect, so that the first job of the thread finds its code loaded
* and compiled. With the nodes of another library it ends at once.
*/
async function warmUp(nodes) {
	const services = {
		nodes,
		cache: createNodeCache({ maxBytes: 1 }),
		outputs: {
			place: () => "",
			prepare: async () => {},
			sync: async () => {}
		},
		inputs: {
			read: async () => /* @__PURE__ */ new Uint8Array(),
			sha256: async () => ""
		},
		ask: (async ({ kind }) => ANSWERS[kind]),
		messages: createMessageBatch({ postMessage() {} })
	};
	for (let run = 0; run < RUNS; run++) await runJob(newRequest(), services);
}
function newRequest() {
	return {
		type: "run",
		user: "",
		workflowJson: JSON.stringify(GRAPH),
		targets: ["2"],
		files: /* @__PURE__ */ new Map(),
		provenanceJson: JSON.stringify({ prompt: GRAPH }),
		memoryLimitBytes: 2 ** 20,
		hasBegun: true,
		flags: createRunFlags()
	};
}
// src/upstreams/execution/worker-entry.ts
/**
* Entry of the worker threads: runs one job at a time, and keeps pixels and the cache between jobs.
*/
const WARM_UP_DELAY_MS = 200;
if (!parentPort) throw new Error("worker-entry must be started as a worker thread");
serve(parentPort, workerData);
async function serve(port, setup) {
	const { ALL_NODES: nodes } = await import(setup.nodesModule);
	const cache = createNodeCache({ maxBytes: setup.cacheBytes });
	const messages = createMessageBatch(port);
	const requests = createRequestSender((message) => messages.post(message));
	const deps = {
		nodes,
		cache,
		...openWorkerFiles(setup, requests.ask),
		ask: requests.ask,
		messages
	};
	const warmUpTimer = setTimeout(() => {
		warmUp(nodes);
		deps.outputs.prepare().catch(() => {});
	}, WARM_UP_DELAY_MS);
	port.on("message", (message) => {
		if (message.type === "reply") return requests.settle(message);
		if (message.type === "forget") return cache.forget(message.user);
		clearTimeout(warmUpTimer);
		runJob(message, deps).then((end) => {
			messages.post({
				type: "end",
				end
			});
			syncOutputs(deps.outputs, new Int32Array(message.flags));
		});
	});
}
/**
* Syncs outputs. Only the next sync of the ledger waits for this. If it fails, the main thread
* syncs them.
*/
async function syncOutputs(outputs, flags) {
	try {
		await outputs.sync();
		Atomics.store(flags, RUN_FLAG.filesOnDisk, 1);
		Atomics.notify(flags, RUN_FLAG.filesOnDisk);
	} catch {}
}
function createRequestSender(post) {
	const unanswered = /* @__PURE__ */ new Map();
	let lastId = 0;
	return {
		ask: (question) => new Promise((resolve, reject) => {
			unanswered.set(++lastId, {
				resolve,
				reject
			});
			post({
				type: "question",
				id: lastId,
				...question
			});
		}),
		settle(reply) {
			const request = unanswered.get(reply.id);
			unanswered.delete(reply.id);
			if ("failure" in reply) request?.reject(Object.assign(new Error(reply.failure), { code: reply.code }));
			else request?.resolve(reply.value);
		}
	};
}
export {};
