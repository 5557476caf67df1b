import { n as addServerOptions } from "./flags-x94JVf1p.js";
import { f as InvalidSetting, u as silentLogger } from "./ledger-B4DYGOuk.js";
import { o as withoutLogin } from "./parse-values-BhHfAkud.js";
import { r as upstreamOf, t as objectInfoSource } from "./upstream-DU15CGzj.js";
import { t as ALL_NODES } from "./library-CGWaePEd.js";
import { D as V1Error, G as fileKey, K as fileMentions, U as chosenOutputs, a as insertAssetReferences, b as refuseShape, c as readSubmission, h as spoolStream, n as openDefinitions, o as partnerCredentialsOf, q as outputNodes, t as objectInfo } from "./object-info-CQQmKRsU.js";
import { c as pruneTo } from "./graph-_gvMsCf-.js";
import { createRemoteJobs, t as inAssetMode } from "./remote-jobs-C8OirWir.js";
import { i as jsonFault, n as isJsonObject, o as parseJson, s as prettyJson } from "./json-CIUMQIEJ.js";
import { d as uploadPathOf, f as withinRoot, n as contentTypeOf } from "./file-headers-C86A5Ow4.js";
import { t as runCommand } from "./shared-options-ihEXDHvk.js";
import { access, constants, mkdtemp, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, posix, sep } from "node:path";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { Command } from "commander";
// src/cli/convert-files.ts
/** Uploads each file that a workflow names once. Throws before the first upload when a file is missing. */
async function uploadFiles(options, mentions) {
	const found = await Promise.all(mentions.map((mention) => findLocalFile(options.inputDir, mention)));
	const missing = found.flatMap((local) => "why" in local ? [local.why] : []);
	if (missing.length > 0) throw new Error([...new Set(missing)].join("\n  "));
	const uploadedByKey = /* @__PURE__ */ new Map();
	const resolvedFiles = [];
	for (const local of found) {
		if ("why" in local) continue;
		const key = fileKey(local.mention);
		const asset = uploadedByKey.get(key) ?? await uploadFile(options, local);
		uploadedByKey.set(key, asset);
		resolvedFiles.push({
			...local.mention,
			...asset
		});
	}
	return resolvedFiles;
}
/**
* Finds a file inside the input folder only: a workflow of another person must not upload other files of this
* machine.
*/
async function findLocalFile(inputDir, mention) {
	const { nodeId, input, value, type, subfolder, filename } = mention;
	const where = `node ${nodeId}, ${input}: ${JSON.stringify(value)}`;
	if (type !== "input") return { why: `${where} is not an input: copy it there, and name it so` };
	const path = withinRoot(posix.join(subfolder || ".", filename));
	if (path === void 0 || path === "") return { why: `${where} lies outside the input folder` };
	const local = join(inputDir, path);
	if (!(await stat(local).catch(() => void 0))?.isFile()) return { why: `${where} is not in ${inputDir}` };
	const [top, real] = await Promise.all([realpath(inputDir), realpath(local)]);
	return real.startsWith(top.endsWith(sep) ? top : top + sep) ? {
		mention,
		path: local
	} : { why: `${where} leads out of the input folder` };
}
async function uploadFile(options, { mention, path }) {
	const file = await spoolFile(path, options.spoolDir);
	const answer = await options.jobs.createAsset(options.caller, {
		file,
		filePath: uploadPathOf(mention),
		contentType: contentTypeOf(mention.filename) ?? "application/octet-stream",
		expectedHash: file.hash
	});
	if (!answer.ok) {
		const { status, code, message } = answer.error;
		throw new Error(`${path} was not taken: ${message} (${code}, ${status})`);
	}
	options.onUpload(path, answer.value.id);
	return {
		assetId: answer.value.id,
		hash: file.hash
	};
}
/** Copies the file, because the upload removes the spooled file. */
async function spoolFile(path, dir) {
	const spoolResult = await spoolStream(createReadStream(path), {
		dir,
		maxBytes: Infinity
	});
	if (!spoolResult.ok) throw new Error(`${path}: ${spoolResult.message}`);
	return spoolResult.value;
}
// src/cli/convert.ts
/** Flags that the command shares with the server. */
const SERVER_OPTIONS = [
	"upstream",
	"upstreamKey",
	"upstreamAssets",
	"objectInfo"
];
/** The address of a Holdover with default settings. */
const RUNNING_HOLDOVER = "http://127.0.0.1:8188";
const CALLER = { user: "convert" };
/** `holdover convert FILE`: prints the v2 submission of a v1 prompt. Resolves with the exit code. */
function convertCommand(argv) {
	const command = new Command("holdover convert").description("Turns a body of POST /prompt or a workflow in API format into the body of POST /api/v2/jobs. The files it names are uploaded; without --upstream to a Holdover that runs on port 8188.").argument("<FILE>", "the prompt or workflow").option("--input-directory <DIR>", "v1's input folder; else that of FILE").option("--out <FILE>", "where to write the submission; else standard output");
	return runCommand(addServerOptions(command, SERVER_OPTIONS), argv, run, String);
}
async function run(command) {
	const [file = ""] = command.args;
	const settings = command.opts();
	const target = targetOf(settings);
	const prompt = readPrompt(await readFile(file, "utf8").catch((cause) => {
		throw new Error(`${file} cannot be read`, { cause });
	}));
	if (settings.out !== void 0) await requireWritable(settings.out);
	for (const note of prompt.leftOut) print(`left out: ${note}`);
	const workDir = await mkdtemp(join(tmpdir(), "holdover-convert-"));
	try {
		const workflow = await submissionOf(prompt, {
			settings,
			target,
			inputDir: settings.inputDirectory ?? dirname(file),
			workDir
		});
		const submission = prettyJson({ workflow });
		if (settings.out === void 0) process.stdout.write(submission);
		else await writeFile(settings.out, submission);
		return 0;
	} finally {
		await rm(workDir, {
			recursive: true,
			force: true
		});
	}
}
/** Throws when the file cannot be written. Called before the uploads, so that none is made in vain. */
async function requireWritable(out) {
	const known = await stat(out).catch(() => void 0);
	const folder = known ? void 0 : await stat(dirname(out)).catch(() => void 0);
	const isUsable = known ? !known.isDirectory() : folder?.isDirectory();
	const mayWrite = await access(known ? out : dirname(out), constants.W_OK).then(() => true, () => false);
	if (!isUsable || !mayWrite) throw new Error(`${out} cannot be written`);
}
async function submissionOf(prompt, context) {
	const { target, inputDir, workDir } = context;
	const info = await loadDefinitions(context);
	const graph = requestedPart(prompt, info);
	const { key, url: baseUrl, assetMode } = target;
	const jobs = createRemoteJobs({
		baseUrl,
		credential: key === void 0 ? { mode: "pass-through" } : {
			mode: "fixed",
			key
		},
		log: silentLogger()
	});
	try {
		const onUpload = (path, id) => print(`uploaded ${path} as ${id}`);
		const resolvedFiles = await uploadFiles({
			jobs,
			caller: CALLER,
			inputDir,
			spoolDir: workDir,
			onUpload
		}, fileMentions(graph, info));
		const workflow = insertAssetReferences(graph, resolvedFiles);
		return inAssetMode(workflow, assetMode === "string" ? "string" : "object");
	} finally {
		await jobs.close();
	}
}
/**
* Returns the node definitions, which say which inputs are files. Without definitions of the upstream, returns the
* embedded ones.
*/
async function loadDefinitions({ settings, target, workDir }) {
	const embedded = objectInfo([...ALL_NODES.values()]);
	const named = objectInfoSource(settings.objectInfo);
	const source = await openDefinitions({
		source: named,
		upstream: target,
		embedded,
		cacheDir: join(workDir, "object-info"),
		log: silentLogger()
	});
	try {
		const known = await source.current(CALLER);
		if (known.ok) return known.definitions.info;
		if (named.kind === "auto") return embedded;
		throw new Error(`--object-info ${withoutLogin(settings.objectInfo)} has no definitions to read`);
	} finally {
		await source.close();
	}
}
/** Returns the nodes that the targets of a partial prompt need, because v2 runs whole graphs. */
function requestedPart({ graph, partialTargets }, info) {
	if (partialTargets === void 0) return graph;
	const targets = chosenOutputs(outputNodes(graph, info), partialTargets);
	if (targets.length === 0) throw new Error("none of its targets is an output");
	return pruneTo(graph, targets);
}
function targetOf(settings) {
	const upstream = settings.upstream === "embedded" ? RUNNING_HOLDOVER : settings.upstream;
	const unused = {
		upstreamLabels: "auto",
		upstreamStreams: 0,
		upstreamLimits: "{}"
	};
	const flags = {
		...settings,
		...unused,
		upstream,
		routerPrefix: "/v1/models"
	};
	const target = upstreamOf(flags, process.env);
	if (target.kind === "embedded") throw new InvalidSetting("there is no upstream");
	return target;
}
function print(text) {
	process.stderr.write(`${text}\n`);
}
const HOW_TO_EXPORT = "it is a workflow as the editor saves it, and v2 runs the API format: in the editor, Workflow > Export (API), or \"Save (API Format)\" of older ones";
/** Fields that v2 does not have, and what v2 has in their place. */
const NO_V2_FIELD = {
	client_id: "v2 has no sockets: follow the job by its id",
	prompt_id: "v2 gives the job its id",
	number: "v2 has no order of its own",
	front: "v2 has no order of its own"
};
/** Reads a body of `POST /prompt`, or a bare graph in API format. Throws when the text is neither. */
function readPrompt(text) {
	const body = parseObject(text);
	if (isEditorFormat(body)) throw new Error(HOW_TO_EXPORT);
	const isBody = isJsonObject(body.prompt) && !("class_type" in body.prompt);
	const { graph, partialTargets, extraData } = parseSubmission(isBody ? body : { prompt: body });
	if (isEditorFormat(graph)) throw new Error(HOW_TO_EXPORT);
	const shapeError = refuseShape(graph);
	if (shapeError) {
		const { message, details } = shapeError.body.error;
		throw new Error(`it is no workflow in API format: ${message} ${details}`.trim());
	}
	if (Object.keys(graph).length === 0) throw new Error("it has no nodes");
	return {
		graph,
		partialTargets,
		leftOut: isBody ? leftOut(body, extraData) : []
	};
}
function parseObject(text) {
	let value;
	try {
		value = parseJson(text);
	} catch (cause) {
		throw new Error(`it is not JSON: ${jsonFault(cause)}`, { cause });
	}
	if (isJsonObject(value)) return value;
	throw new Error("it is neither a v1 prompt nor a workflow: both are JSON objects");
}
function parseSubmission(body) {
	try {
		return readSubmission(body, 0);
	} catch (cause) {
		if (!(cause instanceof V1Error)) throw cause;
		throw new Error(`v1 would refuse it: ${cause.fault.message}`, { cause });
	}
}
function isEditorFormat(graph) {
	return "nodes" in graph && Array.isArray(graph.nodes);
}
function leftOut(body, extraData) {
	const fields = Object.entries(NO_V2_FIELD).flatMap(([name, why]) => name in body ? [`${name}: ${why}`] : []);
	const keys = Object.keys(partnerCredentialsOf(extraData)).map((name) => `extra_data.${name}: keys are not written; send it along as extra_data.${name}`);
	const info = "extra_pnginfo" in extraData ? ["extra_data.extra_pnginfo: v2 has no field for it"] : [];
	return [
		...fields,
		...keys,
		...info
	];
}
export { convertCommand };
