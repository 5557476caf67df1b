// node_modules/lossless-json/lib/esm/utils.js
/**
* Test whether a string contains an integer number
*/
function isInteger(value) {
	return INTEGER_REGEX.test(value);
}
const INTEGER_REGEX = /^-?[0-9]+$/;
/**
* Test whether a string contains a number
* http://stackoverflow.com/questions/13340717/json-numbers-regular-expression
*/
function isNumber(value) {
	return NUMBER_REGEX.test(value);
}
const NUMBER_REGEX = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/**
* Test whether a string can be safely represented with a number
* without information loss.
*
* When approx is true, floating point numbers that lose a few digits but
* are still approximately equal in value are considered safe too.
* Integer numbers must still be exactly equal.
*/
function isSafeNumber(value, config) {
	if (isInteger(value)) return Number.isSafeInteger(Number.parseInt(value, 10));
	const num = Number.parseFloat(value);
	if (Number.isInteger(num) && !Number.isSafeInteger(num)) return false;
	const parsed = String(num);
	if (value === parsed) return true;
	const valueDigits = extractSignificantDigits(value);
	const parsedDigits = extractSignificantDigits(parsed);
	if (valueDigits === parsedDigits) return true;
	if (config?.approx === true) {
		const requiredDigits = 14;
		if (parsedDigits.length >= requiredDigits && valueDigits.startsWith(parsedDigits.substring(0, requiredDigits))) return true;
	}
	return false;
}
let UnsafeNumberReason = /*#__PURE__*/ function(UnsafeNumberReason) {
	UnsafeNumberReason["underflow"] = "underflow";
	UnsafeNumberReason["overflow"] = "overflow";
	UnsafeNumberReason["truncate_integer"] = "truncate_integer";
	UnsafeNumberReason["truncate_float"] = "truncate_float";
	return UnsafeNumberReason;
}({});
/**
* When the provided value is an unsafe number, describe what the reason is:
* overflow, underflow, truncate_integer, or truncate_float.
* Returns undefined when the value is safe.
*/
function getUnsafeNumberReason(value) {
	if (isSafeNumber(value, { approx: false })) return;
	if (isInteger(value)) return UnsafeNumberReason.truncate_integer;
	const num = Number.parseFloat(value);
	if (!Number.isFinite(num)) return UnsafeNumberReason.overflow;
	if (num === 0) return UnsafeNumberReason.underflow;
	return UnsafeNumberReason.truncate_float;
}
/**
* Get the significant digits of a number.
*
* For example:
*   '2.34' returns '234'
*   '-77' returns '77'
*   '0.003400' returns '34'
*   '120.5e+30' returns '1205'
**/
function extractSignificantDigits(value) {
	const { start, end } = getSignificantDigitRange(value);
	const digits = value.substring(start, end);
	const dot = digits.indexOf(".");
	if (dot === -1) return digits;
	return digits.substring(0, dot) + digits.substring(dot + 1);
}
/**
* Returns the range (start to end) of the significant digits of a value.
* Note that this range _may_ contain the decimal dot.
*
* For example:
*
*     getSignificantDigitRange('0.0325900') // { start: 3, end: 7 }
*     getSignificantDigitRange('2.0300')    // { start: 0, end: 3 }
*     getSignificantDigitRange('0.0')       // { start: 3, end: 3 }
*
*/
function getSignificantDigitRange(value) {
	let start = 0;
	if (value[0] === "-") start++;
	while (value[start] === "0" || value[start] === ".") start++;
	let end = value.lastIndexOf("e");
	if (end === -1) end = value.lastIndexOf("E");
	if (end === -1) end = value.length;
	while ((value[end - 1] === "0" || value[end - 1] === ".") && end > start) end--;
	return {
		start,
		end
	};
}
// node_modules/lossless-json/lib/esm/LosslessNumber.js
const losslessNumberMarker = Symbol.for("lossless-json.LosslessNumber");
/**
* A lossless number. Stores its numeric value as string
*/
var LosslessNumber$1 = class {
	value;
	/**
	* @deprecated Use the isLosslessNumber(value) function instead.
	*
	* Ordinary objects may also have an isLosslessNumber property, so this
	* field cannot reliably identify lossless numbers.
	*/
	isLosslessNumber = true;
	get [losslessNumberMarker]() {
		return true;
	}
	constructor(value) {
		if (!isNumber(value)) throw new Error(`Invalid number (value: "${value}")`);
		this.value = value;
	}
	/**
	* Get the value of the LosslessNumber as number or bigint.
	*
	* - a number is returned for safe numbers and decimal values that only lose some insignificant digits
	* - a bigint is returned for big integer numbers
	* - an Error is thrown for values that will overflow or underflow
	*
	* Note that you can implement your own strategy for conversion by just getting the value as string
	* via .toString(), and using util functions like isInteger, isSafeNumber, getUnsafeNumberReason,
	* and toSafeNumberOrThrow to convert it to a numeric value.
	*/
	valueOf() {
		const unsafeReason = getUnsafeNumberReason(this.value);
		if (unsafeReason === void 0 || unsafeReason === UnsafeNumberReason.truncate_float) return Number.parseFloat(this.value);
		if (isInteger(this.value)) return BigInt(this.value);
		throw new Error(`Cannot safely convert to number: the value '${this.value}' would ${unsafeReason} and become ${Number.parseFloat(this.value)}`);
	}
	/**
	* Get the value of the LosslessNumber as string.
	*/
	toString() {
		return this.value;
	}
};
/**
* Test whether a value is a LosslessNumber
*/
function isLosslessNumber(value) {
	return value !== null && typeof value === "object" && value[losslessNumberMarker] === true;
}
// node_modules/lossless-json/lib/esm/stringify.js
/**
* The LosslessJSON.stringify() method converts a JavaScript value to a JSON string,
* optionally replacing values if a replacer function is specified, or
* optionally including only the specified properties if a replacer array is specified.
*
* @param value
* The value to convert to a JSON string.
*
* @param [replacer]
* A function that alters the behavior of the stringification process,
* or an array of String and Number objects that serve as a whitelist for
* selecting the properties of the value object to be included in the JSON string.
* If this value is null or not provided, all properties of the object are
* included in the resulting JSON string.
*
* @param [space]
* A String or Number object that's used to insert white space into the output
* JSON string for readability purposes. If this is a Number, it indicates the
* number of space characters to use as white space; this number is capped at 10
* if it's larger than that. Values less than 1 indicate that no space should be
* used. If this is a String, the string (or the first 10 characters of the string,
* if it's longer than that) is used as white space. If this parameter is not
* provided (or is null), no white space is used.
*
* @param [numberStringifiers]
* An optional list with additional number stringifiers, for example to serialize
* a BigNumber. The output of the function must be valid stringified JSON.
* When `undefined` is returned, the property will be deleted from the object.
* The difference with using a `replacer` is that the output of a `replacer`
* must be JSON and will be stringified afterwards, whereas the output of the
* `numberStringifiers` is already stringified JSON.
*
* @returns Returns the string representation of the JSON object.
*/
function stringify(value, replacer, space, numberStringifiers) {
	const resolvedSpace = resolveSpace(space);
	return stringifyValue(typeof replacer === "function" ? replacer.call({ "": value }, "", value) : value, "");
	/**
	* Stringify a value
	*/
	function stringifyValue(value, indent) {
		if (Array.isArray(numberStringifiers)) {
			const stringifier = numberStringifiers.find((item) => item.test(value));
			if (stringifier) {
				const str = stringifier.stringify(value);
				if (typeof str !== "string" || !isNumber(str)) throw new Error(`Invalid JSON number: output of a number stringifier must be a string containing a JSON number (output: ${str})`);
				return str;
			}
		}
		if (typeof value === "boolean" || typeof value === "number" || typeof value === "string" || value === null || value instanceof Date || value instanceof Boolean || value instanceof Number || value instanceof String) return JSON.stringify(value);
		if (isLosslessNumber(value)) return value.toString();
		if (typeof value === "bigint") return value.toString();
		if (Array.isArray(value)) return stringifyArray(value, indent);
		if (value && typeof value === "object") return stringifyObject(value, indent);
	}
	/**
	* Stringify an array
	*/
	function stringifyArray(array, indent) {
		if (array.length === 0) return "[]";
		const childIndent = resolvedSpace ? indent + resolvedSpace : void 0;
		let str = resolvedSpace ? "[\n" : "[";
		for (let i = 0; i < array.length; i++) {
			const item = typeof replacer === "function" ? replacer.call(array, String(i), array[i]) : array[i];
			if (resolvedSpace) str += childIndent;
			if (typeof item !== "undefined" && typeof item !== "function") {
				const serialized = stringifyValue(item, childIndent);
				str += serialized === void 0 ? "null" : serialized;
			} else str += "null";
			if (i < array.length - 1) str += resolvedSpace ? ",\n" : ",";
		}
		str += resolvedSpace ? `\n${indent}]` : "]";
		return str;
	}
	/**
	* Stringify an object
	*/
	function stringifyObject(object, indent) {
		if (typeof object.toJSON === "function") return stringifyValue(object.toJSON(), indent);
		const keys = Array.isArray(replacer) ? [...new Set(replacer.map(String))] : Object.keys(object);
		if (keys.length === 0) return "{}";
		const childIndent = resolvedSpace ? indent + resolvedSpace : void 0;
		let first = true;
		let str = resolvedSpace ? "{\n" : "{";
		for (const key of keys) {
			const value = typeof replacer === "function" ? replacer.call(object, key, object[key]) : object[key];
			if (includeProperty(key, value)) {
				const serialized = stringifyValue(value, childIndent);
				if (serialized === void 0) continue;
				if (first) first = false;
				else str += resolvedSpace ? ",\n" : ",";
				const keyStr = JSON.stringify(key);
				str += resolvedSpace ? `${childIndent + keyStr}: ` : `${keyStr}:`;
				str += serialized;
			}
		}
		str += resolvedSpace ? `\n${indent}}` : "}";
		return str;
	}
	/**
	* Test whether to include a property in a stringified object or not.
	*/
	function includeProperty(_key, value) {
		return typeof value !== "undefined" && typeof value !== "function" && typeof value !== "symbol";
	}
}
/**
* The number of spaces or characters a space is capped to, like JSON.stringify does
*/
const MAX_SPACE_LENGTH = 10;
/**
* Resolve a JSON stringify space:
* replace a number with a string containing that number of spaces
*/
function resolveSpace(space) {
	if (typeof space === "number") {
		const count = Math.min(Math.trunc(space), MAX_SPACE_LENGTH);
		return count >= 1 ? " ".repeat(count) : void 0;
	}
	if (typeof space === "string" && space !== "") return space.slice(0, MAX_SPACE_LENGTH);
}
// src/protocol/json.ts
let losslessWritten = 0;
/** A number as its source text. */
var LosslessNumber = class extends LosslessNumber$1 {
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
	if (one instanceof LosslessNumber || other instanceof LosslessNumber) return stringifyJson(one) === stringifyJson(other);
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
	return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof LosslessNumber);
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
	if (!isPlainlySafe(token, size) && !isSafeNumber(token)) return new LosslessNumber(token);
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
export { mapParts as a, setMember as c, jsonFault as i, stringifyJson as l, isJsonObject as n, parseJson as o, isSameJson as r, prettyJson as s, LosslessNumber as t };
