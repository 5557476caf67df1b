import { t as pythonFloat } from "./python-json-CIUrrCh_.js";
import { a as createDeferred } from "./concurrency-B9CCxp_8.js";
import { a as mapParts, l as stringifyJson, n as isJsonObject, t as LosslessNumber } from "./json-0U1hIHCx.js";
// src/protocol/python-text.ts
/**
* Returns a JSON value as Python's `str()` shows it, which is how v1 writes values into its
* messages.
*/
function pythonStr(value) {
	return typeof value === "string" ? value : pythonRepr(value);
}
/** Returns a JSON value as Python's `repr()` shows it: `'text'`, `True`, `None`, `['a', 1]`. */
function pythonRepr(value) {
	if (value === null) return "None";
	if (typeof value === "boolean") return value ? "True" : "False";
	if (typeof value === "string") return quoted(value);
	if (typeof value === "number") return Number.isInteger(value) ? String(value) : pythonFloat(value);
	if (value instanceof LosslessNumber) return value.toString();
	if (Array.isArray(value)) return `[${value.map(pythonRepr).join(", ")}]`;
	return `{${Object.entries(value).map(([key, item]) => `${quoted(key)}: ${pythonRepr(item)}`).join(", ")}}`;
}
/** Returns the name of the Python type that a JSON value becomes. */
function pythonType(value) {
	if (value === null) return "NoneType";
	if (typeof value === "boolean") return "bool";
	if (typeof value === "string") return "str";
	if (typeof value === "number" || value instanceof LosslessNumber) return /^-?\d+$/.test(String(value)) ? "int" : "float";
	return Array.isArray(value) ? "list" : "dict";
}
/**
* True for a value that Python counts as true. Empty texts, lists and objects are false; the text
* "false" is true.
*/
function isTruthyInPython(value) {
	if (value === null || value === void 0 || value === false) return false;
	if (typeof value === "string") return value !== "";
	if (Array.isArray(value)) return value.length > 0;
	if (isJsonObject(value)) return Object.keys(value).length > 0;
	return Number(pythonRepr(value)) !== 0;
}
/** Quotes a text with single quotes, unless it has single quotes and no double ones. */
function quoted(text) {
	const escaped = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("	", "\\t");
	if (text.includes("'") && !text.includes("\"")) return `"${escaped}"`;
	return `'${escaped.replaceAll("'", "\\'")}'`;
}
// src/protocol/node-errors.ts
/** The reason for a node whose class does not exist. */
const UNKNOWN_CLASS = {
	field: "class_type",
	reason: "unknown_class"
};
/** The reason for a node that names no class. */
const MISSING_CLASS = {
	field: "class_type",
	reason: "missing_input"
};
/** v1's error types with their messages, and the v2 reason with the same meaning. */
const TYPES = {
	required_input_missing: {
		reason: "missing_input",
		message: "Required input is missing"
	},
	value_not_in_list: {
		reason: "value_not_in_list",
		message: "Value not in list"
	},
	value_smaller_than_min: {
		reason: "value_smaller_than_min",
		message: "Value smaller than the minimum"
	},
	value_bigger_than_max: {
		reason: "value_bigger_than_max",
		message: "Value bigger than the maximum"
	},
	invalid_input_type: {
		reason: "invalid_value",
		message: "Failed to convert an input value"
	},
	return_type_mismatch: {
		reason: "type_mismatch",
		message: "Return type mismatch between linked nodes"
	},
	bad_linked_input: {
		reason: "bad_linked_input",
		message: "Bad linked input, must be a length-2 list of [node_id, slot_index]"
	},
	exception_during_validation: {
		reason: "exception_during_validation",
		message: "Exception when validating node"
	},
	exception_during_inner_validation: {
		reason: "exception_during_inner_validation",
		message: "Exception when validating inner node"
	}
};
const BY_REASON = new Map([...Object.entries({
	required_input_missing: "required_input_missing",
	invalid_type: "invalid_input_type",
	invalid_input_type: "invalid_input_type",
	return_type_mismatch: "return_type_mismatch"
}), ...Object.keys(TYPES).map((type) => [TYPES[type].reason, type])]);
/** v1 prints a count in place of a longer list of options. */
const MAX_LISTED_OPTIONS = 20;
/** Returns one error as v1 lists it. */
function errorEntry(type, message, details, info) {
	return {
		type,
		message,
		details,
		extra_info: info
	};
}
/** Returns the error of a value that is none of the options. */
function notInListError(name, [options, config], value) {
	const isLong = options.length > MAX_LISTED_OPTIONS;
	const list = isLong ? `(list of length ${options.length})` : pythonRepr(options);
	return errorEntry("value_not_in_list", "Value not in list", `${name}: '${pythonStr(value)}' not in ${list}`, {
		input_name: name,
		input_config: isLong ? null : [options, config],
		received_value: value
	});
}
/**
* Returns the members of a refusal's `details` that are about nodes: `node_errors` in the
* contract's form, and v1's own form beside it.
*/
function nodeErrorDetails(native) {
	const entries = Object.entries(native).map(([id, { errors }]) => [id, errors.map(toContract)]);
	return {
		node_errors: Object.fromEntries(entries),
		x_native: native
	};
}
/** Returns v1's type and message for a v2 reason; `undefined` for a reason in free words. */
function v1ErrorOf(reason) {
	const type = BY_REASON.get(reason);
	return type && {
		type,
		message: TYPES[type].message
	};
}
/** True when the errors of one node are in v1's own form. */
function isNativeNodeError(value) {
	return isJsonObject(value) && Array.isArray(value.errors) && Array.isArray(value.dependent_outputs);
}
function toContract({ type, details, extra_info: info }) {
	const field = typeof info.input_name === "string" ? info.input_name : "";
	if (Object.hasOwn(TYPES, type)) return {
		field,
		reason: TYPES[type].reason
	};
	return {
		field,
		reason: (field !== "" && details.startsWith(`${field} - `) ? details.slice(field.length + 3) : details) || type
	};
}
// src/protocol/v2.ts
/** Job states in the order the v2 contract lists them. */
const JOB_STATUSES = [
	"queued",
	"running",
	"succeeded",
	"canceling",
	"canceled",
	"failed",
	"expired"
];
/** True when the job cannot change any more. */
const IS_TERMINAL = {
	queued: false,
	running: false,
	succeeded: true,
	canceling: false,
	canceled: true,
	failed: true,
	expired: true
};
const OUTPUT_TYPES = [
	"image",
	"video",
	"audio",
	"text",
	"file",
	"latent"
];
/** Returns the type of an output with this media type. */
function outputTypeOf(contentType) {
	const [family] = contentType.split("/", 1);
	return OUTPUT_TYPES.find((type) => type === family) ?? "file";
}
/** Drops the oldest waiting preview when there are too many. No other event is dropped. */
function dropOldestPreview(waiting, isPreview) {
	let seen = 0;
	for (let at = waiting.length - 1; at >= 0; at--) if (isPreview(waiting[at]) && ++seen >= 8) waiting.splice(at, 1);
}
function isPreview({ event }) {
	return event === "preview";
}
/** A reader that is this many events behind gets only the latest progress. */
const MAX_UNREAD_PROGRESS = 1e3;
/** The number of taken events that are cut off together. */
const COMPACT_EVERY = 1024;
/** The assumed size of one event, beside its texts. */
const EVENT_BYTES = 200;
/** More than any reader catches up with. A graph of 10 000 nodes has 20 000 events and more. */
const LIMITS = {
	events: 5e4,
	bytes: 67108864
};
/**
* The events of a job that one reader has not taken, in order: the latest eight previews, all
* progress until a thousand events wait and then only the latest, and all other events.
*/
var UnreadEvents = class {
	#items = [];
	#taken = 0;
	#size = 0;
	#bytes = 0;
	#progressAt = -1;
	#previewsAt = [];
	push(event) {
		if (event.event === "progress") {
			if (this.#size >= MAX_UNREAD_PROGRESS && this.#progressAt >= this.#taken) this.#remove(this.#progressAt);
			this.#progressAt = this.#items.length;
		} else if (isPreview(event)) {
			this.#previewsAt = this.#previewsAt.filter((at) => at >= this.#taken);
			if (this.#previewsAt.length >= 8) this.#remove(this.#previewsAt.shift() ?? -1);
			this.#previewsAt.push(this.#items.length);
		}
		this.#items.push(event);
		this.#size++;
		this.#bytes += bytesOf(event);
	}
	shift() {
		while (this.#taken < this.#items.length) {
			const event = this.#remove(this.#taken++);
			this.#compact();
			if (event) return event;
		}
	}
	clear() {
		this.#items = [];
		this.#taken = 0;
		this.#size = 0;
		this.#bytes = 0;
		this.#progressAt = -1;
		this.#previewsAt = [];
	}
	get size() {
		return this.#size;
	}
	/** True when the reader is too far behind. */
	isOverLimit() {
		return this.#size > LIMITS.events || this.#bytes > LIMITS.bytes;
	}
	#remove(at) {
		const event = this.#items[at];
		if (event === void 0) return void 0;
		this.#items[at] = void 0;
		this.#size--;
		this.#bytes -= bytesOf(event);
		return event;
	}
	#compact() {
		if (this.#size === 0) return this.clear();
		if (this.#taken < COMPACT_EVERY) return;
		this.#items = this.#items.slice(this.#taken);
		this.#progressAt -= this.#taken;
		this.#previewsAt = this.#previewsAt.map((at) => at - this.#taken);
		this.#taken = 0;
	}
};
function bytesOf(event) {
	if (event.event === "preview") return EVENT_BYTES + event.data.bytes.byteLength;
	if (event.event === "x_text") return EVENT_BYTES + event.data.text.length;
	if (event.event === "x_node") return EVENT_BYTES + charsIn(event.data.ui ?? null);
	return EVENT_BYTES;
}
function charsIn(value) {
	if (typeof value === "string") return value.length;
	if (typeof value !== "object" || value === null) return 8;
	let chars = 0;
	for (const item of Object.values(value)) chars += 8 + charsIn(item);
	return chars;
}
// src/upstreams/event-subscriber.ts
const END = {
	value: void 0,
	done: true
};
/** Holds the unread events of a slow subscriber, as many as `UnreadEvents` keeps. */
var EventSubscriber = class {
	#unread = new UnreadEvents();
	#feed;
	#signal;
	/** Resolves the read of a reader that waits for an event. */
	#deliver;
	#isEnded = false;
	constructor(signal, feed) {
		this.#feed = feed;
		this.#signal = signal;
		signal.addEventListener("abort", this);
	}
	push(event) {
		const deliver = this.#deliver;
		this.#deliver = void 0;
		if (deliver) deliver({
			value: event,
			done: false
		});
		else this.#unread.push(event);
	}
	/** True when it is so far behind that it should end with the events it holds. */
	isOverLimit() {
		return this.#unread.isOverLimit();
	}
	end() {
		this.#isEnded = true;
		this.#signal.removeEventListener("abort", this);
		this.#feed?.remove(this);
		this.#deliver?.(END);
		this.#deliver = void 0;
	}
	/** Called when the signal aborts. */
	handleEvent() {
		this.#unread.clear();
		this.end();
	}
	next() {
		const value = this.#unread.shift();
		if (value) return Promise.resolve({
			value,
			done: false
		});
		if (this.#isEnded) return Promise.resolve(END);
		return new Promise((resolve) => this.#deliver = resolve);
	}
	async return() {
		this.handleEvent();
		return END;
	}
	[Symbol.asyncIterator]() {
		return this;
	}
};
// src/upstreams/job-feed.ts
/**
* The events of one job, for any number of subscribers. A subscriber gets the latest status,
* progress and preview first, then every new event. It is a class, since thousands of jobs wait at
* a time.
*/
var JobFeed = class {
	#onEmpty;
	#subscribers = /* @__PURE__ */ new Set();
	#status;
	#progress;
	#preview;
	#held;
	#isEnded = false;
	/** `onEmpty` is called when the last subscriber leaves before the end. */
	constructor(initial, onEmpty = () => {}) {
		this.#status = initial && {
			event: "status",
			data: initial
		};
		this.#onEmpty = onEmpty;
	}
	status() {
		return this.#status?.data;
	}
	progress() {
		return this.#progress?.data;
	}
	emit(event) {
		if (this.#held && !isPlaceInQueue(event)) this.#held.events.push(event);
		else this.#send(event);
	}
	/**
	* Delays the events of the run until `release`, since the first subscriber is about to subscribe.
	*/
	hold() {
		this.#held = {
			events: new UnreadEvents(),
			released: createDeferred()
		};
	}
	release() {
		const { events, released } = this.#held ?? {};
		this.#held = void 0;
		for (let event = events?.shift(); event; event = events?.shift()) this.#send(event);
		if (this.#isEnded) this.end();
		released?.resolve();
	}
	/** Resolves at `release`. `undefined`: no events are delayed. */
	whenReleased() {
		return this.#held?.released.promise;
	}
	/**
	* Subscribes synchronously: until the end, until `signal` aborts, or until the subscriber stops
	* reading. A feed that has ended gives only its last status.
	*/
	subscribe(signal) {
		const subscriber = new EventSubscriber(signal, this);
		const isOver = this.#isEnded && !this.#held;
		const latest = isOver ? [this.#status] : [
			this.#status,
			this.#progress,
			this.#preview
		];
		for (const event of latest) if (event) subscriber.push(event);
		this.#subscribers.add(subscriber);
		if (signal.aborted) subscriber.handleEvent();
		else if (isOver) subscriber.end();
		return subscriber;
	}
	remove(subscriber) {
		if (this.#subscribers.delete(subscriber) && this.#subscribers.size === 0 && !this.#isEnded) this.#onEmpty();
	}
	/** Ends subscribers that are too far behind. They may subscribe again. */
	endSlowSubscribers() {
		for (const subscriber of this.#subscribers) if (subscriber.isOverLimit()) subscriber.end();
	}
	/** Ends the feed. Subscribers end when they have read their remaining events. */
	end() {
		this.#isEnded = true;
		if (this.#held) return;
		for (const subscriber of this.#subscribers) subscriber.end();
	}
	#send(event) {
		if (event.event === "status") this.#status = event;
		if (event.event === "progress") this.#progress = event;
		if (event.event === "preview") this.#preview = withoutStep(event);
		for (const subscriber of this.#subscribers) subscriber.push(event);
	}
};
function isPlaceInQueue(event) {
	return event.event === "status" && event.data.status === "queued";
}
/** Yields the events of a job that is over: its last status. */
async function* endedJobEvents(data) {
	yield {
		event: "status",
		data
	};
}
/** Ends events that are not read yet: a generator releases nothing before its start. */
async function drainEvents(events) {
	for await (const event of events);
}
/**
* Removes the step of a preview that is replayed to a new subscriber: the preview follows its step
* there, and does not precede the next one.
*/
function withoutStep({ data }) {
	const { x_with_step: _, ...rest } = data;
	return {
		event: "preview",
		data: rest
	};
}
// src/protocol/json-steps.ts
/**
* The most that is written in one step. A value weighs one, and so do each 64 characters of a text.
*/
const WEIGHT_AT_ONCE = 4e3;
const CHARS_A_WEIGHT = 64;
/** The characters of a long text that are written in one step. */
const PIECE_CHARS = 262144;
/** Writes the text of `stringifyJson` in steps that yield the amount written. */
function* stringifySteps(value) {
	const pieces = [];
	yield* write(value, pieces);
	return pieces.length === 1 ? pieces[0] ?? "" : pieces.join("");
}
function* write(value, pieces) {
	const weight = jsonWeight(value, WEIGHT_AT_ONCE);
	if (weight <= WEIGHT_AT_ONCE) {
		pieces.push(stringifyJson(value));
		yield weight;
	} else if (typeof value === "string") yield* writeText(value, pieces);
	else if (Array.isArray(value)) yield* writeList(value, pieces);
	else yield* writeObject(value, pieces);
}
function* writeText(text, pieces) {
	pieces.push("\"");
	for (let start = 0; start < text.length;) {
		let end = Math.min(text.length, start + PIECE_CHARS);
		const last = text.charCodeAt(end - 1);
		if (end < text.length && last >= 55296 && last <= 56319) end--;
		pieces.push(JSON.stringify(text.slice(start, end)).slice(1, -1));
		yield (end - start) / CHARS_A_WEIGHT;
		start = end;
	}
	pieces.push("\"");
}
/** Writes a list. Items that weigh little are written together. */
function* writeList(items, pieces) {
	pieces.push("[");
	for (let start = 0; start < items.length;) {
		if (start > 0) pieces.push(",");
		let end = start;
		let weight = 0;
		for (; end < items.length && weight <= WEIGHT_AT_ONCE; end++) weight += jsonWeight(items[end] ?? null, WEIGHT_AT_ONCE);
		if (end > start + 1 && weight > WEIGHT_AT_ONCE) end--;
		if (end === start + 1) yield* write(items[start] ?? null, pieces);
		else {
			pieces.push(stringifyJson(items.slice(start, end)).slice(1, -1));
			yield weight;
		}
		start = end;
	}
	pieces.push("]");
}
function* writeObject(members, pieces) {
	let before = "{";
	for (const name of Object.keys(members)) {
		const member = members[name];
		if (member === void 0) continue;
		pieces.push(`${before}${JSON.stringify(name)}:`);
		before = ",";
		yield* write(member, pieces);
	}
	pieces.push(before === "{" ? "{}" : "}");
}
/** Returns the weight of a value with all its members. Stops counting above `most`. */
function jsonWeight(value, most) {
	if (typeof value === "string") return 1 + value.length / CHARS_A_WEIGHT;
	if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return 1;
	const members = value;
	let weight = 1;
	for (const name in members) {
		weight += name.length / CHARS_A_WEIGHT + jsonWeight(members[name], most - weight);
		if (weight > most) break;
	}
	return weight;
}
// src/upstreams/stop-request.ts
/**
* A request to stop some work, with a reason. The first reason counts. It needs far less memory
* than an `AbortSignal`, which for thousands of waiting jobs takes megabytes.
*/
var StopRequest = class {
	#reason;
	#listeners;
	/** `undefined`: no stop was requested. */
	get reason() {
		return this.#reason;
	}
	request(reason) {
		if (this.#reason !== void 0) return;
		this.#reason = reason;
		const listeners = this.#listeners ?? [];
		this.#listeners = void 0;
		for (const listener of listeners) listener(reason);
	}
	/**
	* Calls `listener` on the request, at once if it was made before. Call the result to unsubscribe.
	*/
	onRequest(listener) {
		if (this.#reason !== void 0) listener(this.#reason);
		else this.#listeners = [...this.#listeners ?? [], listener];
		return () => this.#listeners = this.#listeners?.filter((other) => other !== listener);
	}
};
// src/protocol/asset-refs.ts
/** True for an object in the place of a file: an `AssetRef` with any content in `info`. */
function isAssetRef(value) {
	return isJsonObject(value) && value["__type"] === "core/ASSET";
}
/** Returns a text in the `info` of a reference. */
function assetRefText(ref, name) {
	const info = isAssetRef(ref) ? ref["info"] : void 0;
	const text = isJsonObject(info) ? info[name] : void 0;
	return typeof text === "string" ? text : void 0;
}
/** Adds the references in a value to a list; returns how many values it has searched. */
function findAssetRefs(value, found) {
	if (typeof value !== "object" || value === null) return 1;
	if (isAssetRef(value)) {
		found.push(value);
		return 1;
	}
	let values = 1;
	for (const item of Object.values(value)) values += findAssetRefs(item, found);
	return values;
}
/** Returns the value with its references replaced. */
function mapAssetRefs(value, change) {
	if (isAssetRef(value)) return change(value);
	return mapParts(value, (part) => mapAssetRefs(part, change));
}
export { v1ErrorOf as C, pythonType as D, pythonStr as E, notInListError as S, pythonRepr as T, MISSING_CLASS as _, StopRequest as a, isNativeNodeError as b, JobFeed as c, EventSubscriber as d, dropOldestPreview as f, outputTypeOf as g, OUTPUT_TYPES as h, mapAssetRefs as i, drainEvents as l, JOB_STATUSES as m, findAssetRefs as n, jsonWeight as o, IS_TERMINAL as p, isAssetRef as r, stringifySteps as s, assetRefText as t, endedJobEvents as u, UNKNOWN_CLASS as v, isTruthyInPython as w, nodeErrorDetails as x, errorEntry as y };
