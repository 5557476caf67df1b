import { g as InvalidSetting } from "./ledger-Bul7BDb8.js";
import { a as splitList, i as parseJsonObject, o as withoutLogin, r as parseHost } from "./parse-values-B-GwPNi9.js";
import { readFileSync } from "node:fs";
// src/config/upstream.ts
/** The upstream's name for logs and pages: its origin, without a path or a login. */
function upstreamName(upstream) {
	return upstream.kind === "embedded" ? "embedded" : new URL(upstream.url).origin;
}
/** The key comes from a file or from the environment: arguments of a process are seen by all. */
function upstreamOf(flags, env) {
	const { upstream } = flags;
	const key = upstreamKey(flags.upstreamKey, env);
	const hosts = redirectHosts(flags.upstreamRedirects);
	if (upstream === "embedded") {
		if (key !== void 0) throw new InvalidSetting("option '--upstream-key' needs an --upstream URL");
		if (hosts.length > 0) throw new InvalidSetting("option '--upstream-redirects' needs an --upstream URL");
		return { kind: "embedded" };
	}
	return {
		kind: "remote",
		url: upstreamUrl(upstream),
		key,
		routerPrefix: routerPrefix(flags.routerPrefix),
		assetMode: flags.upstreamAssets,
		labels: flags.upstreamLabels,
		streams: flags.upstreamStreams,
		redirectHosts: hosts,
		limits: parseJsonObject("--upstream-limits", flags.upstreamLimits)
	};
}
function routerPrefix(text) {
	const path = text.replace(/\/+$/, "");
	if (/^(\/[\w~-][\w.~-]*)+$/.test(path)) return path;
	throw new InvalidSetting(`option '--router-prefix' needs a path such as /v1/models, not '${text}'`);
}
function objectInfoSource(text) {
	if (text === "auto" || text === "embedded") return { kind: text };
	if (text === "") throw new InvalidSetting("option '--object-info' needs a file or a URL");
	if (!/^https?:/i.test(text)) return {
		kind: "file",
		path: text
	};
	return {
		kind: "url",
		url: plainUrl(text, "--object-info")
	};
}
function upstreamUrl(text) {
	if (!/^https?:/i.test(text)) throw new InvalidSetting(`option '--upstream' must be "embedded" or a URL, not '${withoutLogin(text)}'`);
	return plainUrl(text, "--upstream");
}
function plainUrl(text, option) {
	const url = URL.canParse(text) ? new URL(text) : void 0;
	if (!url) throw new InvalidSetting(`option '${option}' is no URL: '${withoutLogin(text)}'`);
	if (url.username !== "" || url.password !== "") throw new InvalidSetting(`option '${option}' must not carry a login; keys are given separately`);
	if (url.search !== "" || url.hash !== "") {
		if (option === "--upstream") throw new InvalidSetting(`option '${option}' must be an address without a query`);
	}
	return url.href;
}
function upstreamKey(file, env) {
	if (file === void 0) return parseKey(env["HOLDOVER_UPSTREAM_KEY"], "HOLDOVER_UPSTREAM_KEY");
	let text;
	try {
		text = readFileSync(file, "utf8");
	} catch {
		throw new InvalidSetting("option '--upstream-key' needs a readable file that holds the key; the key itself goes into HOLDOVER_UPSTREAM_KEY");
	}
	const key = parseKey(text, "--upstream-key");
	if (key === void 0) throw new InvalidSetting("the file of '--upstream-key' is empty");
	return key;
}
function parseKey(text, source) {
	const key = text?.trim() ?? "";
	if (key === "") return void 0;
	if (/^[\x21-\x7e]+$/.test(key)) return key;
	throw new InvalidSetting(`the key in ${source} has characters that no key has`);
}
/** Reads hosts, each with a port or without. */
function redirectHosts(texts) {
	return splitList(texts).map(redirectHost);
}
function redirectHost(text) {
	const host = parseHost(text);
	if (host) return host;
	throw new InvalidSetting(`option '--upstream-redirects' takes hosts such as minio.internal or 10.0.0.5:9000, not '${text}'`);
}
export { upstreamName as n, upstreamOf as r, objectInfoSource as t };
