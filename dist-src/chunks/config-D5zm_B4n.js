import { a as splitList, i as parseJsonObject, n as daysInMs, o as withoutLogin, r as parseHost, t as MEBIBYTE } from "./parse-values-BhHfAkud.js";
import { t as OPTIONS } from "./flags-x94JVf1p.js";
import { r as sharedDirectories } from "./shared-folders-Br5CBruh.js";
import { f as InvalidSetting, n as requireConcurrency, t as ledgerSource } from "./ledger-B4DYGOuk.js";
import { r as filesSource } from "./files-IQBw9w4W.js";
import { n as tracingSettings } from "./stop-signal-73okoSDz.js";
import { r as upstreamOf, t as objectInfoSource } from "./upstream-DU15CGzj.js";
import { t as packageVersion } from "./version-eXUY6IRP.js";
import { join, resolve } from "node:path";
import { existsSync, readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import proxyAddr from "proxy-addr";
import { Command, CommanderError } from "commander";
import { createSecureContext } from "node:tls";
// src/config/frontend.ts
/** The folder of a front end; refused at the start when it has no `index.html`. */
function readFrontendRoot(folder) {
	if (folder === void 0) return void 0;
	const root = resolve(folder);
	if (folder !== "" && statsOf(join(root, "index.html"))?.isFile()) return root;
	throw new InvalidSetting(`option '--front-end-root' needs a folder with an index.html, not '${folder}'`);
}
/** Of what cannot be looked at it does not matter why. */
function statsOf(path) {
	try {
		return statSync(path);
	} catch {
		return;
	}
}
// src/config/deprecation.ts
const MAX_DELAY_MS = 6e4;
const KEYS = [
	"from",
	"to",
	"percent",
	"delay-ms",
	"client"
];
/** Reads the flags of v1's end. */
function deprecationSettings(flags) {
	const deprecatedAtMs = parseInstant(flags.deprecationDate, "--deprecation-date");
	const sunsetAtMs = flags.sunset === void 0 ? void 0 : parseInstant(flags.sunset, "--sunset");
	if (sunsetAtMs !== void 0 && sunsetAtMs < deprecatedAtMs) throw new InvalidSetting("option '--sunset' must not be earlier than --deprecation-date");
	return {
		deprecatedAtMs,
		sunsetAtMs,
		brownouts: (flags.brownout ?? []).flatMap((text) => text.split(";")).map(parseBrownout)
	};
}
function parseBrownout(spec) {
	const parts = parseParts(spec);
	const { from, to, percent, client } = parts;
	const fromMs = from === void 0 ? void 0 : parseInstant(from, optionPart("from"));
	const toMs = to === void 0 ? void 0 : parseInstant(to, optionPart("to"));
	if (fromMs !== void 0 && toMs !== void 0 && toMs <= fromMs) throw new InvalidSetting(`${optionPart("to")} must be later than its from`);
	const delayText = parts["delay-ms"];
	return {
		fromMs,
		toMs,
		percent: parseNumber("percent", percent ?? "100", {
			min: .01,
			max: 100
		}),
		delayMs: delayText && parseNumber("delay-ms", delayText, {
			min: 1,
			max: MAX_DELAY_MS
		}) || void 0,
		client
	};
}
function parseParts(spec) {
	const parts = {};
	for (const part of spec.split(",")) {
		const at = part.indexOf("=");
		const [key, value] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
		if (!isKey(key)) throw new InvalidSetting(`option '--brownout': '${part.trim()}' is none of ${KEYS.join("=, ")}=`);
		if (parts[key] !== void 0) throw new InvalidSetting(`${optionPart(key)} is given twice`);
		if (value === "") throw new InvalidSetting(`${optionPart(key)} is empty`);
		parts[key] = value;
	}
	return parts;
}
function isKey(text) {
	return KEYS.includes(text);
}
function optionPart(key) {
	return `option '--brownout': ${key}`;
}
function parseNumber(key, text, { min, max }) {
	const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
	if (value >= min && value <= max) return value;
	throw new InvalidSetting(`${optionPart(key)} must be a number from ${min} to ${max}, not '${text}'`);
}
const INSTANT = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;
/** A day (its beginning, in UTC), or a time with its zone: anything else means something else elsewhere. */
function parseInstant(text, option) {
	const [, year, month, day] = INSTANT.exec(text.trim()) ?? [];
	const ms = Date.parse(text.trim());
	const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate();
	if (year !== void 0 && !Number.isNaN(ms) && isDay === Number(day)) return ms;
	const name = option.startsWith("--") ? `option '${option}'` : option;
	throw new InvalidSetting(`${name} needs a date such as 2026-12-01 or 2026-12-01T10:00Z, not '${text.trim()}'`);
}
// src/config/models.ts
/** Reads the flags of the model router; a file that is not there is refused at once. */
function modelSettings(flags) {
	const { modelKeys: keysFile } = flags;
	if (keysFile !== void 0 && !existsSync(keysFile)) throw new InvalidSetting(`option '--model-keys': there is no file '${keysFile}'`);
	return {
		/** File of the keys that may call it; `undefined`: any key may, each as a workspace of its own. */
		keysFile,
		limits: {
			inFlight: flags.modelCalls,
			committedCents: flags.modelSpend,
			requestsPerMinute: flags.modelRate,
			deadlineMs: flags.modelTimeout * 1e3,
			...parseJsonObject("--model-limits", flags.modelLimits)
		}
	};
}
// src/config/proxy.ts
/**
* First segments of the server's own paths. A prefix of one of these could not be told from them;
* only Holdover's own page is taken care of (`/holdover`).
*/
const OWN_SEGMENTS = new Set("api embeddings experiment extensions features free global_subgraphs healthz history i18n internal interrupt metrics models node_replacements object_info prompt proxy queue readyz settings signed system_stats templates upload userdata users v1 v2 view view_metadata workflow_templates ws".split(" "));
function proxySettings({ publicUrl, trustProxy, allowedHosts }) {
	return {
		publicUrl: publicUrl === void 0 ? void 0 : readPublicUrl(publicUrl),
		trustedProxies: splitList(trustProxy).map(trustedProxy),
		allowedHosts: splitList(allowedHosts).map(allowedHost)
	};
}
function readPublicUrl(text) {
	const url = URL.canParse(text) ? new URL(text) : void 0;
	if (!(url && /^https?:$/.test(url.protocol) && url.username + url.password === "") || /[?#]/.test(text)) throw new InvalidSetting(`option '--public-url' needs an address such as https://example.com/comfy, not '${withoutLogin(text)}'`);
	const prefix = url.pathname.replace(/\/+$/, "");
	if (prefix.includes("//")) throw new InvalidSetting(`option '--public-url' has an empty segment in its path: '${text}'`);
	const [, first = "", ...laterSegments] = prefix.split("/");
	if (laterSegments.length === 0 && OWN_SEGMENTS.has(first)) throw new InvalidSetting(`option '--public-url' cannot end in /${first}: that is a path of Holdover's own. Leave it out, or choose another prefix`);
	return {
		origin: url.origin,
		prefix
	};
}
function trustedProxy(text) {
	try {
		proxyAddr.compile(text);
		return text;
	} catch {
		throw new InvalidSetting(`option '--trust-proxy' takes addresses such as 10.0.0.5 or 10.0.0.0/8, and "loopback", "linklocal" or "uniquelocal", not '${text}'`);
	}
}
function allowedHost(text) {
	const hasSubdomains = text.startsWith(".");
	const host = parseHost(hasSubdomains ? text.slice(1) : text);
	if (host) return {
		...host,
		hasSubdomains
	};
	throw new InvalidSetting(`option '--allowed-hosts' takes hosts such as comfy.example.com, comfy.example.com:8443 or .example.com (with all hosts below it), not '${text}'`);
}
// src/config/tls.ts
/** Both files or none; a pair that cannot work is refused at the start. */
function readTls({ tlsKeyfile, tlsCertfile }) {
	if (tlsKeyfile === void 0 && tlsCertfile === void 0) return void 0;
	if (tlsKeyfile === void 0 || tlsCertfile === void 0) throw new InvalidSetting("options '--tls-keyfile' and '--tls-certfile' need each other");
	const key = read("--tls-keyfile", tlsKeyfile);
	const cert = read("--tls-certfile", tlsCertfile);
	requireUsable("--tls-certfile", tlsCertfile, { cert });
	requireUsable("--tls-keyfile", tlsKeyfile, { key });
	try {
		createSecureContext({
			key,
			cert
		});
	} catch (error) {
		throw new InvalidSetting(`the key in '${tlsKeyfile}' does not belong to the certificate in '${tlsCertfile}' (${reasonOf(error)})`);
	}
	return {
		key,
		cert
	};
}
function read(option, path) {
	try {
		return readFileSync(path);
	} catch (error) {
		throw new InvalidSetting(`option '${option}': '${path}' cannot be read (${reasonOf(error)})`);
	}
}
function requireUsable(option, path, part) {
	try {
		createSecureContext(part);
	} catch (error) {
		throw new InvalidSetting(`option '${option}': '${path}' holds nothing usable (${reasonOf(error)})`);
	}
}
/** OpenSSL's reason without its place in the sources, or the system's code. */
function reasonOf(error) {
	const { reason, code, message } = error;
	return reason ?? code ?? message;
}
// src/config/config.ts
const OTHER_COMMANDS = `
Other commands (each has its own --help):
  holdover backup DIR        back up the data folder, also while the server runs
  holdover restore DIR       put a backup into an empty data folder
  holdover check             check the database and every file, list what no record names
  holdover import DIR        take over the files of a v1 server
  holdover migrate           copy the ledger into another one: SQLite to Redis, or back
  holdover report            show who still calls v1, and what v2 has in its place
  holdover trace -- COMMAND  run a v1 script and write its session down as v2 code
  holdover convert FILE      turn a v1 prompt or workflow into a v2 submission
  holdover worker            run jobs for servers that share a ledger in Redis`;
/** Reads flags and environment; a wrong one becomes one clear line and exit code 2. */
function parseConfig(argv, env, extendCommand = (command) => command.addHelpText("after", OTHER_COMMANDS)) {
	let text = "";
	const command = new Command("holdover").description("Keeps unchanged v1 workflow clients working on the v2 job API.").version(packageVersion()).exitOverride().configureOutput({
		writeOut: (chunk) => text += chunk,
		writeErr: (chunk) => text += chunk
	});
	for (const option of OPTIONS) command.addOption(option);
	extendCommand(command);
	try {
		withEnvironment(env, () => command.parse([...argv], { from: "user" }));
		return {
			kind: "config",
			config: configFrom(command.opts(), env)
		};
	} catch (error) {
		return exitFor(error, text);
	}
}
/** How a command line ends that could not be used; `printed` is what its parser has printed. */
function exitFor(error, printed) {
	if (error instanceof InvalidSetting) return {
		kind: "exit",
		code: 2,
		text: `error: ${error.message}\n`
	};
	if (!(error instanceof CommanderError)) throw error;
	if (error.exitCode === 0) return {
		kind: "exit",
		code: 0,
		text: printed
	};
	return {
		kind: "exit",
		code: 2,
		text: `${error.message.replaceAll("\n", " ")}\n`
	};
}
/** True when an address can only be reached from this machine. */
function isLoopback(address) {
	return address === "localhost" || address === "::1" || /^127\.\d+\.\d+\.\d+$/.test(address);
}
function configFrom(flags, env) {
	const listen = flags.listen === true ? "0.0.0.0" : flags.listen;
	requireListenAddress(listen);
	refuseInsecureBind(listen, flags);
	if (flags.dataDir === "") throw new InvalidSetting("option '--data-dir' needs the name of a folder");
	const ledger = ledgerSource(flags.ledger);
	requireConcurrency(flags.concurrency, ledger);
	const origin = corsOrigin(flags.enableCorsHeader);
	return Object.freeze({
		listen,
		port: flags.port,
		upstream: upstreamOf(flags, env),
		/** Where node definitions come from; `auto`: the upstream's own, else the embedded library's. */
		objectInfo: objectInfoSource(flags.objectInfo),
		/** Prompts of one user that may wait until the upstream has capacity. */
		outboxLimit: flags.outboxLimit,
		dataDir: flags.dataDir,
		ledger,
		files: filesSource(flags, env),
		/** Files that no ledger knows are moved aside instead of being refused. */
		startAnew: flags.startAnew ?? false,
		workerLimits: parseJsonObject("--worker-limits", flags.workerLimits),
		maxUploadBytes: Math.round(flags.maxUploadSize * MEBIBYTE),
		maxJsonValues: flags.maxJsonValues,
		/** Of one graph. */
		maxNodes: flags.maxNodes,
		/** `undefined`: the origin check is on; else the value of `Access-Control-Allow-Origin`. */
		corsOrigin: origin,
		logLevel: flags.logLevel,
		tracePrompt: flags.tracePrompt === "" ? void 0 : flags.tracePrompt,
		localToken: localToken(flags.localToken),
		view: flags.view,
		dialect: flags.dialect,
		previewMethod: flags.previewMethod,
		concurrency: flags.concurrency,
		queueLimit: flags.queueLimit,
		jobTimeoutMs: flags.jobTimeout * 1e3,
		jobMemoryBytes: flags.jobMemory * MEBIBYTE,
		/** Of each user: entries, their bytes, and the bytes of one entry's graph. */
		history: {
			count: flags.historyLimit,
			bytes: Math.round(flags.historySize * MEBIBYTE),
			graphBytes: Math.round(flags.historyGraphLimit * MEBIBYTE)
		},
		diskBudgetBytes: flags.diskBudget * MEBIBYTE,
		retentionMs: daysInMs(flags.retentionDays),
		maxSockets: flags.maxSockets,
		maxSocketsPerUser: flags.maxSocketsPerUser,
		v2RequestsPerMinute: flags.v2Rate,
		shutdownDelayMs: flags.shutdownDelay * 1e3,
		/** Folder of the browser front end served at `/`; `undefined`: Holdover's own page is there. */
		frontEndRoot: readFrontendRoot(flags.frontEndRoot),
		userdataQuotaBytes: flags.userdataQuota * MEBIBYTE,
		folders: sharedDirectories(flags),
		models: modelSettings(flags),
		deprecationSettings: deprecationSettings(flags),
		proxy: proxySettings(flags),
		/** `undefined`: plain HTTP. */
		tls: readTls(flags),
		tracing: tracingSettings(env)
	});
}
/**
* Refuses a token that no caller could present: headers lose blanks around a key, and cannot have
* control characters.
*/
function localToken(text = "") {
	if (text === text.trim() && !/\p{Cc}/u.test(text)) return text || void 0;
	throw new InvalidSetting("option '--local-token' may have no blanks around it, and no control characters");
}
function requireListenAddress(listen) {
	if (listen === "localhost" || isIP(listen) !== 0) return;
	throw new InvalidSetting(`option '--listen' needs an IP address or "localhost", not '${listen}'`);
}
function refuseInsecureBind(listen, flags) {
	if (isLoopback(listen) || flags.localToken || flags.allowInsecureBind) return;
	throw new InvalidSetting(`binding ${listen} lets anyone who reaches this machine run jobs and read files: set --local-token (HOLDOVER_LOCAL_TOKEN), or say --allow-insecure-bind if that is meant`);
}
/** An origin as browsers write it: they compare the answer with it character by character. */
function corsOrigin(text) {
	if (text === void 0) return void 0;
	if (text === true || text === "*") return "*";
	const url = URL.canParse(text) ? new URL(text) : void 0;
	if (url && /^https?:$/.test(url.protocol)) return url.origin;
	throw new InvalidSetting(`option '--enable-cors-header' needs * or an origin such as http://localhost:3000, not '${text}'`);
}
/** For commander a switch is on as soon as its variable exists, whatever that says. */
const SWITCHES = /* @__PURE__ */ new Set(["HOLDOVER_ALLOW_INSECURE_BIND", "HOLDOVER_START_ANEW"]);
const FALSE_TEXT = /^(0|false|no|off)$/i;
/** commander reads `process.env` only; tests and embedders bring their own. */
function withEnvironment(env, run) {
	const savedEnv = process.env;
	process.env = { ...env };
	for (const [name, text = ""] of Object.entries(env)) {
		const isOff = text === "" || SWITCHES.has(name) && FALSE_TEXT.test(text);
		if (name.startsWith("HOLDOVER_") && isOff) delete process.env[name];
	}
	try {
		run();
	} finally {
		process.env = savedEnv;
	}
}
export { parseConfig as n, OWN_SEGMENTS as r, isLoopback as t };
