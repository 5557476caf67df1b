import { randomUUID } from "node:crypto";
import { pino } from "pino";
// src/protocol/request-target.ts
/** Splits a request target, which may be a whole address, without decoding anything. */
function readTarget(url) {
	const target = url.replace(/^https?:\/\/[^/?#]*/i, "");
	const at = target.indexOf("?");
	return at < 0 ? {
		path: target,
		query: ""
	} : {
		path: target.slice(0, at),
		query: target.slice(at)
	};
}
/** Returns a part of an address without its escapes; `undefined` when an escape is malformed. */
function decodedPart(text) {
	try {
		return text === void 0 ? void 0 : decodeURIComponent(text);
	} catch {
		return;
	}
}
// src/protocol/url-credentials.ts
/** The query parameter for v1 clients that cannot send a header. */
const LOGIN_PARAMETER = "token";
/**
* Names of query parameters that give access: logins, and the signatures of links that carry their
* own authorization (Holdover's own, S3, Google, Azure, CloudFront).
*/
const CREDENTIAL = /^(x[-_])?(.*(token|api[-_]?key|access[-_]?key|secret|passw(or)?d|credential|signature)(_id|_comfy_org|_service_org|id)?|key|sig|auth|authorization|policy|key-pair-id|session|sessionid|jwt|pwd|cookie|code)$/i;
const REMOVED = "[removed]";
/**
* The depth to which addresses inside addresses are read. Each level is read twice, as an address
* and as a query.
*/
const MAX_DEPTH = 4;
/**
* Returns the first `token` in the query of a request target. Only this parameter decides who is
* logged in.
*/
function loginIn(url) {
	const { query } = readTarget(url);
	return query === "" ? void 0 : partsOf(query).find(isLogin)?.value;
}
/** True when a request target names a login, even an empty one. */
function hasLogin(url) {
	const { query } = readTarget(url);
	return query !== "" && partsOf(query).some(isLogin);
}
/**
* Returns the query without the login. The rest stays unchanged byte for byte. With `keys`, only a
* `token` that equals one of them is removed.
*/
function withoutLogin$1(query, keys) {
	if (query === "") return "";
	const parts = partsOf(query);
	const kept = parts.filter((part) => !isLogin(part) || keys && !keys.includes(part.value.trim()));
	if (kept.length === parts.length) return query;
	return kept.length === 0 ? "" : `?${kept.map(({ text }) => text).join("&")}`;
}
/**
* Returns a request target or an address without its credentials, as it may be logged and recorded.
*/
function withoutCredentials(url) {
	return redactedUrl(url, 0);
}
/**
* Returns a text without the credentials in its addresses, headers and members, as it may be
* logged.
*/
function withoutCredentialsIn(text) {
	return redactedText(text, 0);
}
/**
* `depth` counts the parameters that the address is inside of: a parameter may be an address with
* parameters.
*/
function redactedUrl(url, depth) {
	const plain = url.includes("@") ? withoutUserinfo(url) : url;
	const { query } = readTarget(plain);
	if (query === "") return plain;
	const parts = partsOf(query);
	const shown = parts.map((part) => redactedPart(part, depth));
	if (shown.every((text, at) => text === parts[at]?.text)) return plain;
	return `${plain.slice(0, plain.length - query.length)}?${shown.join("&")}`;
}
function redactedText(text, depth) {
	if (!SUSPICIOUS.test(text)) return text;
	if (depth > MAX_DEPTH) return REMOVED;
	return text.replaceAll(URL_IN_TEXT, (url) => redactedUrl(url, depth)).replaceAll(QUERY_IN_TEXT, (query) => redactedUrl(query, depth)).replaceAll(SCHEME_IN_TEXT, `$1 ${REMOVED}`).replaceAll(MEMBER_IN_TEXT, `$1${REMOVED}`).replaceAll(HEADER_IN_TEXT, `$1${REMOVED}`);
}
/** True when a header or a member of `extra_data` with this name holds a credential. */
function isCredentialMember(name) {
	return MEMBER.test(name);
}
const WHOLE_NAME = String.raw`(?:proxy-)?authorization|(?:set-)?cookie2?|password|secret`;
const NAME_PART = String.raw`(?:api[-_]?key|(?:auth|access|bearer)[-_]?token)`;
/**
* Clients choose the names in `extra_data`, so the expression searches for the end once, not behind
* each part.
*/
const MEMBER = new RegExp(String.raw`^(?:(?:${WHOLE_NAME}|token)$|(?=[\w-]*$)[\w-]*?${NAME_PART})`, "i");
/** In a text, a name may begin at every word. */
const MEMBERS = String.raw`${WHOLE_NAME}|[\w-]{0,64}${NAME_PART}[\w-]{0,64}`;
/** Hardly any line of a log matches this; the other lines are not searched further. */
const SUSPICIOUS = /:\/\/|\?|bearer|basic |authorization|api[-_]?key|token|cookie|secret|password/i;
const URL_END = String.raw`\s"'<>\\`;
/**
* Any client may choose such a text: each of these expressions takes time in proportion to its
* length.
*/
const URL_IN_TEXT = new RegExp(String.raw`\b[a-z][a-z0-9+.-]{0,30}:\/\/[^${URL_END}]+`, "gi");
const QUERY_IN_TEXT = new RegExp(String.raw`\?(?<=\/[^${URL_END}?]*\?)[^${URL_END}]+`, "g");
const SCHEME_IN_TEXT = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
/** Matches members of JSON, and of JSON inside a JSON string. */
const MEMBER_IN_TEXT = new RegExp(String.raw`((?<!\\)(\\*["'])(?:${MEMBERS})\2\s*:\s*\2)(?:(?!(?<!\\)\2)[^\n])+`, "gi");
const HEADER_IN_TEXT = new RegExp(String.raw`(\b(?:${MEMBERS})\s*[:=]\s*)(?=[^\s"'\\[])[^"'\\\n,;]+`, "gi");
function partsOf(query) {
	return query.slice(1).split("&").map((text) => {
		const [[name, value] = ["", ""]] = new URLSearchParams(`&${text}`);
		return {
			text,
			name,
			value
		};
	});
}
function isLogin({ name }) {
	return name === LOGIN_PARAMETER;
}
function redactedPart({ text, name, value }, depth) {
	const written = text.split("=", 1)[0] ?? "";
	if (value !== "" && CREDENTIAL.test(name.trim())) return `${written}=${REMOVED}`;
	const shown = redactedText(value, depth + 1);
	return shown === value ? text : `${written}=${encodeURIComponent(shown)}`;
}
function withoutUserinfo(url) {
	return url.replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/?#]*@/i, `$1//${REMOVED}@`);
}
// src/config/invalid-setting.ts
/** A setting that cannot be meant; its message is shown to a person. */
var InvalidSetting = class extends Error {};
// src/observability/log.ts
/** Headers and fields that may hold a credential; their values never reach the log. */
const SECRET_PATHS = [
	"headers.authorization",
	"headers[\"proxy-authorization\"]",
	"headers.cookie",
	"headers[\"set-cookie\"]",
	"headers[\"x-api-key\"]",
	"*.api_key_comfy_org",
	"*.auth_token_comfy_org",
	"*.api_key_service_org"
];
/** Structured log to standard error, one JSON object a line, secrets removed. */
function createLogger({ level, tracePrompt }) {
	const isWritten = tracePrompt === void 0 ? () => true : isAboutPrompt(tracePrompt);
	return pino({
		level: tracePrompt === void 0 ? level : "debug",
		base: null,
		redact: {
			paths: SECRET_PATHS,
			censor: "[removed]"
		},
		serializers: { err: serializeError },
		hooks: { streamWrite: redactLine }
	}, batchedDestination(2, isWritten));
}
/**
* Returns the fields of an error for the log. An error of ioredis contains its command with all arguments, which are
* data of users and whole scripts: the command is left out.
* @internal
*/
function serializeError(error) {
	const fields = pino.stdSerializers.err(error);
	if (typeof fields !== "object" || fields === null) return fields;
	const { command: _, ...others } = fields;
	return others;
}
/** Messages of libraries may contain addresses and headers: credentials are removed from every line. */
function redactLine(line) {
	return line.endsWith(REQUEST_ANSWERED_END) ? line : withoutCredentialsIn(line);
}
const REQUEST_ANSWERED = "request answered";
/** These lines, by far the most, have been cleaned already. */
const REQUEST_ANSWERED_END = `"msg":"${REQUEST_ANSWERED}"}\n`;
/**
* Logs process errors as JSON lines: warnings (deprecations of Node,
* say) and the uncaught exception that ends the process.
*/
function logProcessErrors(log) {
	process.removeAllListeners("warning").on("warning", (warning) => {
		log.warn({
			event: "process.warning",
			err: warning
		}, "Node.js warns");
	});
	process.on("uncaughtException", (error) => {
		log.fatal({
			event: "process.uncaught_exception",
			err: error
		}, "uncaught exception");
		process.exit(1);
	});
}
const ERROR_LEVEL = 50;
/** True for a line that names the prompt, for errors, and for lines about the trace itself. */
function isAboutPrompt(promptId) {
	const spelling = JSON.stringify(promptId).slice(1, -1);
	return (line) => {
		return Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? ERROR_LEVEL) >= ERROR_LEVEL || line.includes(spelling) || line.includes("\"event\":\"trace.");
	};
}
/** Lines of one turn of the event loop are written together; an exit takes none along. */
function batchedDestination(fd, isWritten) {
	const out = pino.destination({
		dest: fd,
		sync: true
	});
	let pending = "";
	let scheduled;
	function flushSync() {
		scheduled = void 0;
		const lines = pending;
		pending = "";
		if (lines !== "") out.write(lines);
	}
	process.once("exit", flushSync);
	return {
		flushSync,
		write(line) {
			if (!isWritten(line)) return;
			pending += line;
			scheduled ??= setImmediate(flushSync);
		}
	};
}
/** The same log for lines whose every field is our own and known to be no secret: they cost a fifth. */
function withoutRedaction(log) {
	return log.child({}, { redact: [] });
}
/** A log that goes nowhere, for tests and tools. */
function silentLogger() {
	return pino({ level: "silent" });
}
/** The caller's request id when it is harmless to repeat, else a new one. */
function requestId(requested) {
	return requested !== void 0 && /^[\w.:-]{1,128}$/.test(requested) ? requested : randomUUID();
}
/** The line each request gets; `v2` are the calls that were made for it. */
function logRequest(log, request) {
	const { id, user, client, method, status, v2 } = request;
	const ms = Math.round(performance.now() - request.startedAt);
	const fields = {
		event: "request.answered",
		id,
		user,
		client,
		method,
		url: withoutCredentials(request.url),
		status,
		ms,
		v2
	};
	log.info(fields, REQUEST_ANSWERED);
}
// src/config/redis-hosts.ts
/** `redis://[user:password@]HOST:PORT[,HOST:PORT …][/db]` in parts; several hosts are nodes of a cluster. */
function splitHosts(text) {
	const [, login = "", hosts = "", rest = ""] = /^([a-z]+:\/\/(?:[^/]*@)?)([^/?#]*)(.*)$/is.exec(text) ?? [];
	return {
		login,
		hosts: hosts.split(","),
		rest
	};
}
/** The addresses of the hosts. */
function redisNodes(url) {
	return splitHosts(url).hosts.map((text) => {
		const { hostname, port } = new URL(`http://${text}`);
		return {
			host: hostname.replaceAll(/^\[|\]$/g, ""),
			port: port === "" ? 6379 : Number(port)
		};
	});
}
/** The address without credentials. */
function withoutRedisLogin(url) {
	const { login, hosts, rest } = splitHosts(url);
	return `${login.split("//", 1)[0]}//${hosts.join(",")}${rest}`;
}
// src/config/ledger.ts
/** Accepted URL schemes → the scheme the client library knows. */
const SCHEMES = {
	"redis:": "redis:",
	"rediss:": "rediss:",
	"valkey:": "redis:",
	"valkeys:": "rediss:"
};
/**
* Reads `sqlite` or the address of a Redis, or of several nodes of a cluster; nothing of a login is
* ever repeated.
*/
function ledgerSource(text) {
	if (text === "sqlite") return { kind: "sqlite" };
	const { login, hosts, rest } = splitHosts(text);
	const first = `${login}${hosts[0] ?? ""}${rest}`;
	const url = URL.canParse(first) && hosts.every(isHost) ? new URL(first) : void 0;
	const scheme = SCHEMES[url?.protocol ?? ""];
	if (url === void 0 || scheme === void 0 || url.hostname === "") throw new InvalidSetting(`option '--ledger' must be "sqlite", redis://HOST:PORT or redis://HOST:PORT,HOST:PORT…, not '${withoutLogin(text, url)}'`);
	if (!/^(\/\d*)?$/.test(url.pathname) || url.search !== "" || url.hash !== "") throw new InvalidSetting(`option '--ledger' takes the number of a database and no more after the host, not '${withoutLogin(text, url)}'`);
	if (hosts.length > 1 && url.pathname.length > 1) throw new InvalidSetting("option '--ledger': a Redis Cluster has no numbered databases");
	const href = splitHosts(url.href);
	const others = hosts.slice(1).map((host) => `,${host}`);
	return {
		kind: "redis",
		url: scheme + `${href.login}${href.hosts[0]}${others.join("")}${href.rest}`.slice(url.protocol.length)
	};
}
function isHost(text) {
	return text !== "" && URL.canParse(`http://${text}`);
}
/** The parts of the address that are certainly no secret. */
function withoutLogin(text, url) {
	if (url && url.host !== "") return `${url.protocol}//${url.host}${url.pathname}`;
	return text.replace(/^([a-z]+:\/\/)?.*[:@?].*$/is, "$1…");
}
/** Without a shared queue no other process could run the jobs. */
function requireConcurrency(concurrency, { kind }) {
	if (concurrency > 0 || kind === "redis") return;
	throw new InvalidSetting("option '--concurrency' may be 0 only with '--ledger redis://…' and workers");
}
export { withoutCredentialsIn as _, withoutRedisLogin as a, readTarget as b, logRequest as c, withoutRedaction as d, InvalidSetting as f, withoutCredentials as g, loginIn as h, splitHosts as i, requestId as l, isCredentialMember as m, requireConcurrency as n, createLogger as o, hasLogin as p, redisNodes as r, logProcessErrors as s, ledgerSource as t, silentLogger as u, withoutLogin$1 as v, decodedPart as y };
