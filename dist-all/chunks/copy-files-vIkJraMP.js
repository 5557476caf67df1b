import { x as UNFINISHED_COPY } from "./sqlite-ledger-SmMeTYVz.js";
import { l as forEachConcurrently } from "./concurrency-B9CCxp_8.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { n as totalOf } from "./progress-BQg5eG0n.js";
// src/cli/files/copy-files.ts
const MAX_CONCURRENT = 8;
/** Matches the path of a file whose name is the hash of its bytes. */
const NAMED_BY_HASH = /^blobs(?:-leaving)?\/(?:[0-9a-f]{2}\/)?([0-9a-f]{64})(?:\.|$)/;
/**
* Copies all files into an empty place, and verifies them. Returns the number of files. Call it again after an
* interruption. No server starts on the target before `finishCopy`. Throws when the target is not empty or a file is
* damaged.
*/
async function copyFiles(options) {
	const { from, to, id } = options;
	await refuseOthersFiles(to, id);
	const files = await from.list();
	await to.writeSmall(UNFINISHED_COPY, id);
	await verify(options, await copyEach(options, files), files);
	reached("copy-verified");
	return files.length;
}
/** Completes a copy: servers can then start on the target. */
async function finishCopy(to) {
	await to.remove(UNFINISHED_COPY);
}
async function refuseOthersFiles(to, id) {
	const begun = await to.readSmall(UNFINISHED_COPY);
	if (begun === id) return;
	if (begun !== void 0) throw new Error(`${to.name} has the files of another copy that was interrupted`);
	if (await to.isTaken()) throw new Error(`${to.name} belongs to a ledger already: use another PREFIX`);
	const [first] = await to.list();
	if (first !== void 0) throw new Error(`${to.name} is not empty: it has ${first.path}`);
}
/** Returns the hash of each file by its path. */
async function copyEach({ from, to, progress }, files) {
	const wanted = new Set(files.map(({ path }) => path));
	const there = /* @__PURE__ */ new Map();
	for (const { path, sizeBytes } of await to.list()) if (wanted.has(path)) there.set(path, sizeBytes);
	else await to.remove(path);
	const hashes = /* @__PURE__ */ new Map();
	const damaged = [];
	const onFile = progress(totalOf(files));
	await forEachConcurrently(MAX_CONCURRENT, files, async ({ path, sizeBytes, hash: known }) => {
		const named = namedHash(path) ?? known;
		const hash = namedHash(path) !== void 0 && there.get(path) === sizeBytes ? named : await copyOne(from, to, path, named);
		if (hash === void 0) damaged.push(path);
		else hashes.set(path, hash);
		onFile(sizeBytes);
		reached("copy-file");
	});
	if (damaged.length > 0) throw new Error(damagedText(from, damaged));
	return hashes;
}
/** Copies a file and returns its hash; `undefined` when that is not the expected one. */
async function copyOne(from, to, path, named) {
	return await from.withFile(path, async (file) => {
		if (file === void 0) throw new Error(`${path} was removed from ${from.name} meanwhile`);
		const { hash } = file;
		if (named !== void 0 && named !== hash) return void 0;
		await to.put(path, file);
		return hash;
	});
}
async function verify({ to, progress }, hashes, files) {
	const copied = await to.list();
	if (copied.length !== files.length) throw new Error(`${to.name} has ${copied.length} files, and not ${files.length}`);
	const onFile = progress(totalOf(files));
	await forEachConcurrently(MAX_CONCURRENT, files, async ({ path, sizeBytes }) => {
		if (await to.hashOf(path) !== hashes.get(path)) {
			await to.remove(path);
			throw new Error(`${path} in ${to.name} differs from its source: run the command again`);
		}
		onFile(sizeBytes);
	});
}
function namedHash(path) {
	const hex = NAMED_BY_HASH.exec(path)?.[1];
	return hex === void 0 ? void 0 : `blake3:${hex}`;
}
function damagedText({ name }, damaged) {
	return `${name} has ${damaged.length} damaged files, which must be restored or moved away first: ` + damaged.slice(0, 20).join(", ");
}
export { finishCopy as n, copyFiles as t };
