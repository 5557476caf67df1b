import { n as literal, r as translate } from "./library-CGWaePEd.js";
import { RE2JS, RE2JSException } from "re2js";
// src/nodes/text/linear.ts
/** White space as in JavaScript's `\s`; RE2's own is ASCII only. */
const SPACE = "\\t\\n\\x0b\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const SHARED_ESCAPES = {
	a: "\\x07",
	d: "\\p{Nd}",
	D: "\\P{Nd}",
	n: "\\n",
	r: "\\r",
	t: "\\t",
	f: "\\f",
	v: "\\x0b"
};
const ESCAPES = {
	...SHARED_ESCAPES,
	A: "\\A",
	Z: "\\z",
	w: "[\\p{L}\\p{N}_]",
	W: "[^\\p{L}\\p{N}_]",
	s: `[${SPACE}]`,
	S: `[^${SPACE}]`
};
const CLASS_ESCAPES = {
	...SHARED_ESCAPES,
	b: "\\x08",
	w: "\\p{L}\\p{N}_",
	s: SPACE
};
/** Thrown when the pattern, or its meaning for this text, cannot be matched in linear time. */
var NotLinear = class extends Error {};
/**
* Returns RE2 with the pattern: it compares each character of a text at most once for each part of
* the pattern. `undefined` when RE2 cannot match the same: lookaround, backreferences, large
* counts, and on some texts `$` and word borders.
*/
function linearEngine(pattern, { text, wanted }) {
	const compiled = compile(pattern, text);
	if (!compiled) return void 0;
	const { regex, hasLineEnd } = compiled;
	if (wanted === "whether") return { next: () => regex.test(text) ? SOMEWHERE : void 0 };
	const matcher = regex.matcher(text);
	const ownGroups = matcher.groupCount() + 1 - (hasLineEnd ? 1 : 0);
	return { next(from) {
		if (!matcher.find(from)) return void 0;
		const groups = Array.from({ length: ownGroups }, (_, i) => matcher.group(i) ?? void 0);
		const lineEnd = hasLineEnd ? matcher.group(ownGroups) ?? "" : "";
		groups[0] = groups[0]?.slice(0, groups[0].length - lineEnd.length);
		const named = Object.fromEntries(Object.entries(matcher.namedGroups).map(([name, i]) => [name, groups[i]]));
		return {
			index: matcher.start(),
			groups,
			named
		};
	} };
}
const SOMEWHERE = {
	index: 0,
	groups: [""],
	named: {}
};
function compile(pattern, text) {
	const end = textEnd(pattern, text);
	try {
		const source = translate(pattern.source, dialectOf(pattern, text, end));
		if (/\(\?(?:<?[=!])/.test(source)) return void 0;
		const flags = pattern.caseInsensitive ? RE2JS.CASE_INSENSITIVE : 0;
		return {
			regex: RE2JS.compile(source, flags),
			hasLineEnd: end === LINE_END
		};
	} catch (error) {
		if (error instanceof NotLinear || error instanceof RE2JSException) return void 0;
		throw error;
	}
}
function dialectOf({ dotall, multiline }, text, end) {
	return {
		escape(letter) {
			if (letter === "b" || letter === "B") return wordBorder(letter, text);
			return ESCAPES[letter] ?? punctuation(letter);
		},
		classEscape: (letter) => CLASS_ESCAPES[letter] ?? punctuation(letter),
		classChar: (char) => char === "[" ? "\\[" : char,
		anchors: {
			".": dotall ? "(?s:.)" : "[^\\n]",
			"^": multiline ? "(?m:^)" : "\\A",
			get $() {
				return end ?? notLinear();
			}
		},
		namedGroup: "(?P<",
		namedReference: notLinear
	};
}
/**
* Returns a word border. RE2's know ASCII letters only; in a text without others they are Python's.
*/
function wordBorder(letter, text) {
	return /^[\0-\x7f]*$/.test(text) ? `\\${letter}` : notLinear();
}
const LINE_END = "(\\n?\\z)";
/**
* Returns the end anchor. Python's `$` matches at the end and before a last line end. RE2 has no
* such anchor, but an equivalent exists when the text has no other line end, or the pattern no
* other `$` than its end.
*/
function textEnd({ source, multiline }, text) {
	if (multiline) return "(?m:$)";
	const lineEnd = text.indexOf("\n");
	if (lineEnd < 0 || !text.endsWith("\n")) return "\\z";
	if (lineEnd === text.length - 1) return "(?m:$)";
	return /^(?:[^$\\]|\\[^])*\$$/.test(source) ? LINE_END : void 0;
}
/** Returns escaped punctuation. In RE2, escaped letters and digits have other meanings. */
function punctuation(letter) {
	return /[a-zA-Z0-9]/.test(letter) ? notLinear() : literal(letter);
}
function notLinear() {
	throw new NotLinear();
}
export { linearEngine };
