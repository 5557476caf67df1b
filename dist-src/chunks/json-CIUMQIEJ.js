import { LosslessNumber, isSafeNumber, stringify } from "lossless-json";
// src/protocol/json.ts
let losslessWritten = 0;
/** A number as its source text. */
var LosslessNumber$1 = class extends LosslessNumber {
	/** Called by `JSON.stringify`. Counts the numbers in a text while it is written. */
	toJSON() {
		losslessWritten++;
		return this;
	}
};
/**
* The deepest nesting that is accepted from a client. A deeper text is refused before any
* recursion.
*/
const MAX_DEPTH = 200;
/** Parses JSON text; throws SyntaxError. Ignores a byte order mark, as the v1 server does. */
function parseJson(text) {
	const { replaced, placeholders } = withPlaceholders(text.charCodeAt(0) === 65279 ? text.slice(1) : text);
	const value = JSON.parse(replaced);
	return placeholders.size === 0 ? value : restored(value, placeholders);
}
/**
* Replaces the placeholders with the exact numbers. The value is not shared yet, so it is changed
* in place.
*/
function restored(value, placeholders) {
	if (typeof value === "number") {
		const size = Math.abs(value);
		return size < FIRST_PLACEHOLDER ? value : placeholders.get(size) ?? value;
	}
	if (typeof value !== "object" || value === null) return value;
	if (Array.isArray(value)) {
		const items = value;
		for (let i = 0; i < items.length; i++) items[i] = restored(items[i], placeholders);
		return items;
	}
	const holder = value;
	for (const key of Object.keys(holder)) {
		const member = holder[key];
		if (!(typeof member === "string" || typeof member === "boolean")) holder[key] = restored(member, placeholders);
	}
	return value;
}
/**
* Returns why `parseJson` refused a text, without quotations: parsers quote the text, which may
* hold a secret.
*/
function jsonFault(error) {
	return (error instanceof Error ? error.message : "unreadable").replace(/(, )?(\.{3})?".*$/s, "").slice(0, 200) || "Unexpected text";
}
/** Compact JSON text, every number as it was read. */
function stringifyJson(value) {
	losslessWritten = 0;
	const native = JSON.stringify(value) ?? "null";
	const losslessCount = losslessWritten;
	if (losslessCount === 0) return native;
	let found = 0;
	const text = native.replace(LOSSLESS_AS_OBJECT, (_, digits) => {
		found++;
		return digits;
	});
	return found === losslessCount ? text : stringify(value) ?? "null";
}
const LOSSLESS_AS_OBJECT = /\{"value":"([^"]*)","isLosslessNumber":true\}/g;
/** JSON text for people to read and edit, every number as it was read. */
function prettyJson(value) {
	return `${stringify(value, null, 2) ?? "null"}\n`;
}
/** True when two values have the same text, except for the order of members. */
function isSameJson(one, other) {
	if (one === other) return true;
	if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
	if (isList(one) || isList(other)) {
		if (!isList(one) || !isList(other) || one.length !== other.length) return false;
		return one.every((item, i) => isSameJson(item, other[i]));
	}
	if (one instanceof LosslessNumber$1 || other instanceof LosslessNumber$1) return stringifyJson(one) === stringifyJson(other);
	const names = Object.keys(one);
	if (names.length !== Object.keys(other).length) return false;
	return names.every((name) => Object.hasOwn(other, name) && isSameJson(one[name], other[name]));
}
function isList(value) {
	return Array.isArray(value);
}
/** Sets a member as JSON means it, also for the name `__proto__`. */
function setMember(holder, name, value) {
	if (name !== "__proto__") holder[name] = value;
	else Object.defineProperty(holder, name, {
		value,
		enumerable: true,
		configurable: true,
		writable: true
	});
}
/** Returns a list or an object with its parts changed, and any other value as it is. */
function mapParts(value, change, rename = (name) => name) {
	if (isList(value)) return value.map(change);
	if (!isJsonObject(value)) return value;
	const members = Object.entries(value).map(([name, part]) => [rename(name), change(part)]);
	return Object.fromEntries(members);
}
function isJsonObject(value) {
	return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof LosslessNumber$1);
}
/**
* The first of the numbers that stand for others while a text is parsed. They are whole and exact.
*/
const FIRST_PLACEHOLDER = 2 ** 52;
/** Shorter numbers without an exponent are exact, and lower than all placeholders. */
const LONG_NUMBER = 16;
const QUOTE = 34;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/**
* Puts a placeholder in place of each number that does not fit a double, and of each that equals a
* placeholder. Workflows carry pictures as texts, for which a parser in JavaScript takes seconds.
* Refuses deep nesting; the parser finds other faults.
*/
function withPlaceholders(text) {
	const placeholders = /* @__PURE__ */ new Map();
	const placeholderFor = placeholderAllocator(placeholders);
	let replaced = "";
	let from = 0;
	let depth = 0;
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		if (code === QUOTE) i = endOfString(text, i);
		else if (code === 91 || code === 123) {
			if (++depth > MAX_DEPTH) throw new SyntaxError(`Nested deeper than ${MAX_DEPTH} levels`);
		} else if (code === 93 || code === 125) depth--;
		else if (code === 45 || code >= 48 && code <= 57) {
			const end = endOfNumber(text, i);
			const placeholder = end - i >= LONG_NUMBER || hasExponent(text, i, end) ? placeholderFor(text, i, end) : void 0;
			if (placeholder !== void 0) {
				replaced += text.slice(from, code === 45 ? i + 1 : i) + placeholder;
				from = end;
			}
			i = end - 1;
		}
	}
	return {
		placeholders,
		replaced: from === 0 ? text : replaced + text.slice(from)
	};
}
/**
* Returns a function that gives the placeholder of a number, if it needs one. A text may repeat a
* number very often.
*/
function placeholderAllocator(placeholders) {
	const known = /* @__PURE__ */ new Map();
	let last = "";
	let lastPlaceholder;
	return (text, start, end) => {
		if (end - start === last.length && text.startsWith(last, start)) return lastPlaceholder;
		last = detachedText(text.slice(start, end));
		if (!known.has(last)) {
			const exactNumber = exactNumberOf(last);
			const placeholder = FIRST_PLACEHOLDER + placeholders.size;
			if (exactNumber !== void 0) placeholders.set(placeholder, exactNumber);
			known.set(last, exactNumber === void 0 ? void 0 : String(placeholder));
		}
		lastPlaceholder = known.get(last);
		return lastPlaceholder;
	};
}
/** Returns the exact number of a token, if it must be restored after parsing. */
function exactNumberOf(token) {
	if (!NUMBER.test(token)) throw new SyntaxError("Unexpected character in a number");
	const value = Number(token);
	const size = Math.abs(value);
	if (!isPlainlySafe(token, size) && !isSafeNumber(token)) return new LosslessNumber$1(token);
	return size < FIRST_PLACEHOLDER ? void 0 : value;
}
/** True for a number that a double surely keeps: up to 15 digits, and not among the smallest. */
function isPlainlySafe(token, size) {
	if (size > Number.MAX_SAFE_INTEGER || size < 1e-300) return false;
	const exponent = token.search(/[eE]/);
	return (exponent < 0 ? token.length : exponent) <= 15;
}
function endOfNumber(text, start) {
	let end = start + 1;
	for (; end < text.length; end++) {
		const code = text.charCodeAt(end);
		if (!(code >= 45 && code <= 57 && code !== 47 || code === 43) && !isExponent(code)) break;
	}
	return end;
}
function hasExponent(text, start, end) {
	for (let i = start; i < end; i++) if (isExponent(text.charCodeAt(i))) return true;
	return false;
}
function isExponent(code) {
	return code === 101 || code === 69;
}
/** Returns the position of the quote that ends the string begun at `start`. */
function endOfString(text, start) {
	for (let end = text.indexOf("\"", start + 1);; end = text.indexOf("\"", end + 1)) {
		if (end < 0) return text.length;
		let slashes = 0;
		while (text[end - 1 - slashes] === "\\") slashes++;
		if (slashes % 2 === 0) return end;
	}
}
/** Returns a copy: a slice is a view that keeps the whole text in memory. */
function detachedText(digits) {
	return Buffer.from(digits, "latin1").toString("latin1");
}
export { mapParts as a, setMember as c, jsonFault as i, stringifyJson as l, isJsonObject as n, parseJson as o, isSameJson as r, prettyJson as s, LosslessNumber$1 as t };
