import { n as parseConfig } from "./config-D5zm_B4n.js";
import { t as ALL_NODES } from "./library-CGWaePEd.js";
import { a as LANGUAGES, i as CODE_FILES, n as withoutSecrets, o as codeOf, r as endedJob, s as planFrom, startServer } from "./server-CcvvMUVn.js";
import { a as monotonicNow } from "./event-loop-BDDWO5Ig.js";
import { S as interceptCalls, x as V2_CALLS } from "./job-engine-CEUdsca2.js";
import { n as isJsonObject } from "./json-CIUMQIEJ.js";
import { g as withoutCredentials, o as createLogger } from "./ledger-B4DYGOuk.js";
import { t as stopSignal } from "./stop-signal-73okoSDz.js";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { tmpdir } from "node:os";
import { pipeline } from "node:stream/promises";
import { AsyncLocalStorage } from "node:async_hooks";
import { Option } from "commander";
// src/migration/session-recorder.ts
/**
* Records a session: the v1 calls of a client and the v2 calls they became. Give it the port (`wrap`), the v1 calls
* (`serve`) and the sockets (`onUpgrade`).
*/
var SessionRecorder = class {
	#callStorage = new AsyncLocalStorage();
	#calls = [];
	#events = [];
	/** The callers of assets and of jobs, by their ids. */
	#owners = /* @__PURE__ */ new Map();
	#jobs = /* @__PURE__ */ new Map();
	#secrets = /* @__PURE__ */ new Set();
	/** The time at which each job was submitted. */
	#submittedAtMs = /* @__PURE__ */ new Map();
	#lastEventAtMs = monotonicNow();
	/** The refusals, with the v1 call of each. */
	#refusals = /* @__PURE__ */ new Map();
	#usedSocket = false;
	#watchedJobs;
	/** Records every v1 call. */
	serve = async (ctx, next) => {
		const target = withoutCredentials(ctx.url);
		const call = {
			method: ctx.method,
			url: new URL(target, "http://v1"),
			v2: []
		};
		let status = 500;
		try {
			await this.#callStorage.run(call, next);
			status = ctx.status;
		} catch (error) {
			status = statusOf(error);
			throw error;
		} finally {
			this.#calls.push({
				method: call.method,
				target,
				status,
				v2: call.v2
			});
		}
	};
	/** Returns the same port. Its calls are recorded with the v1 call that caused them. */
	wrap(jobs) {
		this.#watchedJobs = jobs;
		return interceptCalls(jobs, async (method, act, [first, ...args]) => {
			const call = this.#callStorage.getStore();
			call?.v2.push(V2_CALLS[method]);
			const caller = first;
			if (caller?.credential !== void 0) this.#secrets.add(caller.credential);
			const answer = await act(caller, ...args);
			this.#recorders[method]?.({
				caller,
				args,
				answer,
				call
			});
			return answer;
		});
	}
	/** Records that a socket was opened. */
	onUpgrade({ url = "" }) {
		if (/^(\/api)?\/ws(\?|$)/.test(url)) this.#usedSocket = true;
	}
	/** Returns the session so far, with the ends of its jobs, which it reads from the port. */
	async session() {
		return {
			calls: this.#calls,
			events: this.#events,
			usedSocket: this.#usedSocket,
			jobs: await this.#endedJobs()
		};
	}
	/** Reads a file of the session with the key of its owner. */
	async content(assetId) {
		const caller = this.#owners.get(assetId);
		return caller && this.#watchedJobs?.content(caller, assetId);
	}
	/** Returns the keys that were used. Remove them from everything that is written. */
	secrets() {
		return [...this.#secrets];
	}
	/** Returns the end of each job, also when the client did not wait for it. Leaves out jobs that no longer exist. */
	async #endedJobs() {
		const ended = /* @__PURE__ */ new Map();
		for (const [jobId, caller] of this.#jobs) {
			const answer = await this.#watchedJobs?.get(caller, jobId);
			if (answer?.ok) ended.set(jobId, endedJob(answer.value));
		}
		return ended;
	}
	/** Records the v2 calls that belong to the session. */
	#recorders = {
		createAsset: (call) => this.#recordUpload(call),
		assetFromHash: (call) => this.#recordUpload(call),
		deleteAsset: (call) => this.#recordDelete(call),
		submit: (call) => this.#recordSubmission(call),
		cancel: (call) => this.#recordCancel(call),
		content: (call) => this.#recordDownload(call)
	};
	#recordUpload({ caller, args, answer }) {
		if (!answer.ok) return;
		const [{ filePath }] = args;
		const asset = answer.value;
		this.#owners.set(asset.id, caller);
		const path = (filePath ?? asset.id).replace(/^input\//, "");
		this.#events = this.#events.filter((event) => !isUpload(event, asset.id));
		this.#addEvent({
			kind: "upload",
			assetId: asset.id,
			path,
			contentType: asset.content_type,
			hash: asset.hash ?? void 0
		});
	}
	#addEvent(event) {
		this.#events.push(event);
		this.#lastEventAtMs = monotonicNow();
	}
	#recordSubmission({ caller, args, answer, call }) {
		const [{ workflow, extraData, provenance }] = args;
		const secrets = Object.entries(extraData).filter(([, value]) => value !== void 0);
		for (const [, secret] of secrets) this.#secrets.add(secret);
		if (!answer.ok) {
			const { code, message, status } = answer.error;
			const refusal = {
				kind: "refused",
				code,
				message,
				...(status === 400 || status === 422) && { workflow }
			};
			this.#refusals.set(refusal, call);
			return this.#addEvent(refusal);
		}
		if (call) this.#events = this.#events.map((event) => this.#withoutWorkflow(event, call));
		const { id: jobId } = answer.value;
		this.#jobs.set(jobId, caller);
		for (const id of referencesIn(workflow)) this.#owners.set(id, this.#owners.get(id) ?? caller);
		const hasExtraPngInfo = (provenance?.extraPngInfo ?? null) !== null;
		const names = secrets.map(([name]) => name);
		const differences = savedFileDifferences(provenance?.prompt, workflow);
		this.#submittedAtMs.set(jobId, monotonicNow());
		this.#addEvent({
			kind: "submit",
			jobId,
			workflow,
			secrets: names,
			hasExtraPngInfo,
			...differences
		});
	}
	#recordDownload({ args, answer, call }) {
		if (!answer.ok || !call?.url.pathname.endsWith("/view")) return;
		const [assetId] = args;
		const query = call.url.searchParams;
		const filename = posix.basename(query.get("filename") ?? "") || assetId;
		const rendering = ["preview", "channel"].filter((name) => query.has(name)).map((name) => `${name}=${query.get(name)}`).join("&") || void 0;
		this.#addEvent({
			kind: "download",
			assetId,
			filename,
			rendering
		});
	}
	#recordDelete({ args, answer }) {
		const [assetId] = args;
		if (answer.ok) this.#events = this.#events.filter((event) => !isUpload(event, assetId));
	}
	#recordCancel({ args, answer }) {
		const [jobId] = args;
		if (!answer.ok) return;
		const nowMs = monotonicNow();
		const sinceSubmitMs = nowMs - (this.#submittedAtMs.get(jobId) ?? nowMs);
		this.#addEvent({
			kind: "cancel",
			jobId,
			pausedMs: nowMs - this.#lastEventAtMs,
			sinceSubmitMs
		});
	}
	/** Removes the workflow from a refusal when the same v1 call submitted a part of it later, which v2 accepted. */
	#withoutWorkflow(event, call) {
		if (event.kind !== "refused" || this.#refusals.get(event) !== call) return event;
		return {
			kind: "refused",
			code: event.code,
			message: event.message
		};
	}
};
/** Returns the differences between the graph that v1 writes into saved files and the one that v2 got. */
function savedFileDifferences(prompt, workflow) {
	const nodes = isJsonObject(prompt) ? prompt : {};
	const written = Object.entries(workflow).flatMap(([id, { inputs }]) => {
		const node = nodes[id];
		const before = isJsonObject(node) && isJsonObject(node["inputs"]) ? node["inputs"] : {};
		return Object.keys(inputs ?? {}).map((name) => isJsonObject(inputs[name]) ? before[name] : null);
	});
	return {
		isPartial: Object.keys(nodes).length > Object.keys(workflow).length,
		namesFolder: written.some((text) => typeof text === "string" && text.endsWith(" [input]"))
	};
}
function isUpload(event, assetId) {
	return event.kind === "upload" && event.assetId === assetId;
}
function* referencesIn(workflow) {
	for (const match of JSON.stringify(workflow).matchAll(/"__type":"core\/ASSET","info":\{"id":"([^"]+)"/g)) yield match[1] ?? "";
}
function statusOf(error) {
	const status = error.status;
	return typeof status === "number" ? status : 500;
}
// src/cli/trace-write.ts
/** Writes the code into a folder, with its workflows and input files. */
async function writeCode(code, { dir, sessionRecorder, calls }) {
	const { plan, baseUrl } = code;
	await mkdir(dir, { recursive: true });
	const writeText = async (name, text) => {
		await writeFile(join(dir, name), text);
		process.stderr.write(`wrote ${join(dir, name)}\n`);
	};
	for (const step of plan.steps) if ("workflow" in step) await writeText(step.workflow.path, step.workflow.text);
	for (const file of plan.files) await downloadInput(file, join(dir, file.path), sessionRecorder);
	await writeText("calls.json", `${JSON.stringify(calls, null, 2)}\n`);
	for (const language of code.languages) await writeText(CODE_FILES[language], codeOf(language, plan, {
		baseUrl,
		workflows: "beside"
	}));
}
/** Prints the code with its workflows inside it. It still needs the files that the script uploaded. */
function printCode({ plan, languages, baseUrl }) {
	for (const language of languages) {
		const title = languages.length > 1 ? `==> ${CODE_FILES[language]} <==\n` : "";
		const code = codeOf(language, plan, {
			baseUrl,
			workflows: "inside"
		});
		process.stdout.write(`${title}${code}\n`);
	}
	if (plan.files.length === 0) return;
	const files = plan.files.map(({ path }) => path).join(", ");
	process.stderr.write(`The code reads ${files}: give --out DIR to write them.\n`);
}
/** Returns a table of the v1 calls of a session and their v2 calls. Equal calls in a row share a line with a count. */
function callTable(calls) {
	const rows = [];
	for (const { method, target, status, v2 } of calls) {
		const text = `  ${`${method} ${target.split("?", 1)[0] ?? target}`.padEnd(24)} ${status} → ${v2.join(", ") || "(answered by Holdover itself)"}`;
		const last = rows.at(-1);
		if (last?.text === text) last.times++;
		else rows.push({
			text,
			times: 1
		});
	}
	return `\nWhat each v1 call became in v2:\n${rows.map(({ text, times }) => times === 1 ? `${text}\n` : `${text} (${times} times)\n`).join("")}`;
}
async function downloadInput({ assetId, path }, target, sessionRecorder) {
	const content = await sessionRecorder.content(assetId);
	let found = content?.ok ? content.value : void 0;
	if (found?.kind === "redirect") {
		const opened = await found.open?.();
		found = opened?.ok ? opened.value : void 0;
	}
	if (found?.kind !== "bytes") {
		process.stderr.write(`The bytes of ${path} are gone: put the file there yourself.\n`);
		return;
	}
	await mkdir(dirname(target), { recursive: true });
	await pipeline(found.stream, createWriteStream(target));
	process.stderr.write(`wrote ${target}\n`);
}
// src/cli/trace.ts
/** Defaults that differ from those of the server. */
const TRACE_DEFAULTS = {
	port: 0,
	logLevel: "warn"
};
/** `holdover trace -- COMMAND`: writes a v1 session as v2 code. Resolves with the exit code. */
async function traceCommand(argv) {
	let commandLine;
	const parsed = parseConfig(argv, process.env, (command) => commandLine = describeCommand(command));
	if (parsed.kind === "exit" || !commandLine) {
		const { code, text } = parsed;
		(code === 0 ? process.stdout : process.stderr).write(text);
		return code;
	}
	const isDefault = (name) => commandLine?.getOptionValueSource(name) === "default";
	const { out, format } = commandLine.opts();
	const options = {
		out,
		format,
		command: commandLine.args
	};
	if (options.command.length === 0 && isDefault("port")) {
		process.stderr.write("error: say which COMMAND to run (after --), or which --port to listen on\n");
		return 2;
	}
	const config = {
		...parsed.config,
		...isDefault("port") && { port: TRACE_DEFAULTS.port },
		...isDefault("logLevel") && { logLevel: TRACE_DEFAULTS.logLevel }
	};
	try {
		return isDefault("dataDir") ? await traceInTempDir(config, options) : await runTrace(config, options);
	} catch (error) {
		process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
		return 1;
	}
}
/** Runs with a temporary data directory, which is removed afterwards. */
async function traceInTempDir(config, options) {
	const dataDir = await mkdtemp(join(tmpdir(), "holdover-trace-"));
	try {
		return await runTrace({
			...config,
			dataDir
		}, options);
	} finally {
		await rm(dataDir, {
			recursive: true,
			force: true
		});
	}
}
function describeCommand(command) {
	return command.name("holdover trace").usage("[options] [-- COMMAND [ARGUMENTS]]").description("Runs a v1 script through a Holdover and writes what it did as v2 code. COMMAND gets the address in COMFYUI_SERVER and SERVER_ADDRESS (host:port), in COMFYUI_URL and HOLDOVER_URL (http://…), and wherever its arguments say {server} or {url}. For a script with the address written into it, give that --port; with --port alone it listens until Ctrl-C.").argument("[command...]", "the script and its arguments, after --").option("--out <DIR>", "folder for the code, the workflows and the files; else standard output").addOption(new Option("--format <FORMAT>", "what to write").choices([...LANGUAGES, "all"]).default("all"));
}
async function runTrace(config, options) {
	const sessionRecorder = new SessionRecorder();
	const log = createLogger({ level: config.logLevel });
	const server = await startServer(config, log, {
		nodes: ALL_NODES,
		sessionRecorder
	});
	process.stderr.write(`holdover trace: listening on ${server.url}\n`);
	try {
		const code = await runScript(options.command, {
			url: server.url,
			output: options.out === void 0 ? "to standard error" : "as it is"
		});
		await writeSession(sessionRecorder, {
			config,
			options
		});
		return code;
	} finally {
		await server.close();
	}
}
async function writeSession(sessionRecorder, { config, options }) {
	const { upstream } = config;
	const ownSecrets = [upstream.kind === "remote" ? upstream.key ?? "" : "", config.localToken ?? ""];
	const session = withoutSecrets(await sessionRecorder.session(), [...sessionRecorder.secrets(), ...ownSecrets]);
	process.stderr.write(callTable(session.calls));
	const code = {
		plan: planFrom(session),
		languages: options.format === "all" ? LANGUAGES : [options.format],
		baseUrl: upstream.kind === "embedded" ? DEFAULT_ADDRESS : addressOf(upstream.url)
	};
	if (options.out === void 0) printCode(code);
	else await writeCode(code, {
		dir: options.out,
		sessionRecorder,
		calls: session.calls
	});
}
/** The address of a Holdover with default settings. */
const DEFAULT_ADDRESS = "http://127.0.0.1:8188";
/** Returns the base URL for the SDKs, which append `/api/v2` themselves. */
function addressOf(url) {
	const { origin, pathname } = new URL(url);
	return origin + pathname.replace(/\/+$/, "").replace(/\/api\/v2$/, "");
}
/** Runs a v1 script against a server. Without a script, waits for Ctrl-C. Returns the exit code. */
async function runScript(command, run) {
	const stopped = stopSignal();
	const [program, ...args] = command.map((part) => withAddress(part, run.url));
	if (program === void 0) return stopped.then(() => 0);
	const stdout = run.output === "as it is" ? "inherit" : 2;
	const child = spawn(program, args, {
		stdio: [
			"inherit",
			stdout,
			"inherit"
		],
		env: {
			...process.env,
			...addresses(run.url)
		}
	});
	stopped.then((signal) => child.kill(signal));
	const [code, signal] = await once(child, "exit").catch((cause) => {
		throw new Error(`${program} cannot be run`, { cause });
	});
	if (signal) process.stderr.write(`holdover trace: ${program} was ended by ${signal}\n`);
	else if (code !== 0) process.stderr.write(`holdover trace: ${program} ended with ${code}\n`);
	return code ?? 1;
}
function addresses(url) {
	const { host } = new URL(url);
	return {
		COMFYUI_SERVER: host,
		SERVER_ADDRESS: host,
		COMFYUI_URL: url,
		HOLDOVER_URL: url
	};
}
function withAddress(text, url) {
	return text.replaceAll("{server}", new URL(url).host).replaceAll("{url}", url);
}
export { traceCommand };
