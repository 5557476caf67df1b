import { n as ownUserAgent, r as import_websocket } from "./chunks/own-user-agent-D8fcDKy6.js";
import { t as require_cli_progress } from "./chunks/cli-progress-Dy-6gZtb.js";
import { t as packageUrl } from "./chunks/package-url-DJPOFjBU.js";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
// src/cli/demo/progress.ts
var import_cli_progress = require_cli_progress();
/** Shows one bar for the whole run. Each node counts for one; a node with steps moves the bar at each step. */
function createProgress(workflow) {
	const total = Object.keys(workflow).length;
	const bar = new import_cli_progress.SingleBar({
		format: "  {bar} {percentage}%  {label}",
		noTTYOutput: true,
		notTTYSchedule: 500,
		hideCursor: true
	}, import_cli_progress.Presets.shades_classic);
	let started = 0;
	return ({ type, data }) => {
		if (type === "execution_start") bar.start(total, 0, { label: "started" });
		if (type === "executing" && data.node) bar.update(started++, { label: workflow[data.node]?.class_type });
		else if (type === "progress") {
			const label = `${workflow[data.node ?? ""]?.class_type} ${data.value}/${data.max}`;
			bar.update(started - 1 + (data.value ?? 0) / (data.max ?? 1), { label });
		} else if (type === "execution_success") bar.update(total, { label: "done" });
		else if (type === "executing") bar.stop();
	};
}
// src/cli/demo/errors.ts
/** An error that the user can correct. It is printed without a stack. */
var DemoError = class extends Error {};
const NO_KEY = "The upstream needs a key, or refused this one: put it into HOLDOVER_UPSTREAM_KEY, or into a file for --upstream-key.";
/** Returns the error to show when the upload was refused. */
function uploadError(status, answer) {
	if (status === 401) return new DemoError(NO_KEY);
	if (status >= 500) return new DemoError(`The upstream cannot be used now: ${reasonIn(answer)}`);
	return new DemoError(`The picture was refused with ${status}: ${reasonIn(answer)}`);
}
/** Returns the error to show when the workflow was refused. */
function runError(status, { answer, workflow }) {
	if (status === 401) return new DemoError(NO_KEY);
	const [missingClass] = [...workflow.matchAll(/"class_type": "(\w+)"/g)].map(([, name = ""]) => name).filter((name) => new RegExp(`\\b${name}\\b`).test(reasonIn(answer)));
	if (status === 400 && missingClass !== void 0) return new DemoError(`This upstream cannot run the demo's workflow: it has no node class ${missingClass}. Workflows of other node classes can run.`);
	return new DemoError(`The workflow was refused with ${status}: ${reasonIn(answer)}`);
}
/** Returns the message of a refusal, which v1 sends as JSON or as plain text. */
function reasonIn(answer) {
	try {
		const { error, message } = JSON.parse(answer);
		return (typeof error === "object" ? error.message : error) ?? message ?? answer;
	} catch {
		return answer;
	}
}
// src/cli/demo/server.ts
/**
* Starts a server process on a free port. `requests` has the v1 calls that it answered with their v2 calls, from its
* log.
*/
async function startServer(args) {
	const dataDir = await mkdtemp(join(tmpdir(), "holdover-demo-"));
	const main = fileURLToPath(packageUrl("dist/main.js"));
	const child = spawn(process.execPath, [
		main,
		"--port",
		"0",
		"--data-dir",
		dataDir,
		...args
	], {
		stdio: [
			"ignore",
			"pipe",
			"pipe"
		],
		env: {
			...process.env,
			HOLDOVER_LOG_LEVEL: "info"
		}
	});
	const requests = [];
	createInterface({ input: child.stderr }).on("line", (line) => {
		if (!line.startsWith("{")) return void process.stderr.write(`${line}\n`);
		const entry = JSON.parse(line);
		if (entry.msg === "request answered") requests.push(entry);
	});
	return {
		url: await new Promise((resolve, reject) => {
			child.once("exit", (code) => {
				rmSync(dataDir, {
					recursive: true,
					force: true
				});
				reject(new DemoError(`Holdover did not start (exit code ${code}).`));
			});
			createInterface({ input: child.stdout }).on("line", (line) => {
				const found = /^To see the GUI go to: (\S+)$/.exec(line)?.[1];
				if (found) resolve(found);
			});
		}),
		requests,
		async stop() {
			if (child.exitCode === null && child.signalCode === null) {
				child.kill("SIGTERM");
				await once(child, "exit");
			}
			await rm(dataDir, {
				recursive: true,
				force: true
			});
		}
	};
}
// src/cli/demo.ts
/** The output folder is in the working directory, because the package may be read-only or inside `node_modules`. */
const OUTPUT_FOLDER = pathToFileURL(join(process.cwd(), "demo-output/"));
const IMAGE = packageUrl("fixtures/demo/evening-hills.jpg");
const WORKFLOW = packageUrl("fixtures/workflows/demo.json");
const CLIENT_ID = "holdover-demo";
/** The usage report leaves out calls with this agent. */
const headers = { "User-Agent": ownUserAgent("demo") };
const PREVIEW_IMAGE_OFFSET = 8;
/**
* `npm run demo`: uploads an image and runs one workflow as a v1 client (socket, prompt, previews, result). Prints an
* error that the user can correct as one sentence, and sets exit code 1.
*/
async function demoCommand(args) {
	try {
		await runDemo(args);
	} catch (error) {
		if (!(error instanceof DemoError)) throw error;
		console.error(`\n${error.message}`);
		process.exitCode = 1;
	}
}
async function runDemo(args) {
	await mkdir(OUTPUT_FOLDER, { recursive: true });
	const server = await startServer(args);
	try {
		console.log(`Holdover is running at ${server.url}\n`);
		const name = await upload(server.url);
		console.log(`Uploaded ${name}`);
		const { files, preview } = await runWorkflow(server.url);
		for (const file of files) await download(server.url, file);
		if (preview) {
			await writeFile(new URL("last-preview.jpg", OUTPUT_FOLDER), preview);
			console.log(`Saved ${fileURLToPath(new URL("last-preview.jpg", OUTPUT_FOLDER))}`);
		}
		if (files.length === 0) throw new DemoError("The workflow ran, but saved nothing.");
	} finally {
		await server.stop();
	}
	console.log("\nWhat each v1 call became in v2:");
	for (const { method, url, v2 } of server.requests) {
		const path = url.split("?", 1)[0] ?? url;
		console.log(`  ${`${method} ${path}`.padEnd(22)} → ${v2.join(", ") || "(answered by Holdover itself)"}`);
	}
}
async function upload(url) {
	const form = new FormData();
	form.append("image", new Blob([await readFile(IMAGE)], { type: "image/jpeg" }), "evening-hills.jpg");
	form.append("overwrite", "true");
	const response = await fetch(`${url}/upload/image`, {
		method: "POST",
		body: form,
		headers
	});
	if (!response.ok) throw uploadError(response.status, await response.text());
	return (await response.json()).name;
}
/** Posts the prompt and follows it until v1's last message, `executing` with node null. */
async function runWorkflow(url) {
	const workflow = await readFile(WORKFLOW, "utf8");
	const socket = new import_websocket.default(`${url.replace(/^http/, "ws")}/ws?clientId=${CLIENT_ID}`, { headers });
	const frames = followFrames(socket, JSON.parse(workflow));
	await once(socket, "open");
	const body = `{${`"client_id":"${CLIENT_ID}","extra_data":{"preview_method":"auto"}`},"prompt":${workflow}}`;
	const response = await fetch(`${url}/prompt`, {
		method: "POST",
		body,
		headers
	});
	if (response.status !== 200) throw runError(response.status, {
		answer: await response.text(),
		workflow
	});
	const { prompt_id: promptId } = await response.json();
	console.log(`Prompt ${promptId} accepted\n`);
	await frames.done;
	socket.close();
	const entry = (await (await fetch(`${url}/history/${promptId}`, { headers })).json())[promptId];
	if (entry?.status.status_str !== "success") throw new DemoError(`The run failed: ${frames.reason() ?? JSON.stringify(entry?.status)}`);
	return {
		files: Object.values(entry.outputs).flatMap(({ images = [] }) => images),
		preview: frames.preview()
	};
}
function followFrames(socket, workflow) {
	const progress = createProgress(workflow);
	let preview;
	let reason;
	const done = new Promise((resolve, reject) => {
		socket.on("error", reject);
		socket.on("close", () => reject(new DemoError("Holdover ended before the run had.")));
		socket.on("message", (bytes, isBinary) => {
			if (isBinary) return void (preview = bytes.subarray(PREVIEW_IMAGE_OFFSET));
			const message = JSON.parse(bytes.toString());
			progress(message);
			reason ??= message.data.exception_message;
			if (message.type === "executing" && message.data.node === null) resolve();
		});
	});
	done.catch(() => {});
	return {
		done,
		preview: () => preview,
		reason: () => reason
	};
}
async function download(url, file) {
	const query = new URLSearchParams(file);
	const response = await fetch(`${url}/view?${query.toString()}`, { headers });
	if (!response.ok) throw new DemoError(`GET /view of the result answered ${response.status}.`);
	const targetUrl = new URL(file.filename, OUTPUT_FOLDER);
	await writeFile(targetUrl, Buffer.from(await response.arrayBuffer()));
	console.log(`Saved ${fileURLToPath(targetUrl)}`);
}
// src/demo.ts
demoCommand(process.argv.slice(2));
export {};
