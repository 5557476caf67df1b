import { LRUCache } from "lru-cache";
// src/ledger/columns.ts
/**
* To add a property to a prompt's record, add one row, for example
* `origin: { ...text<string | null>('origin'), added: 'TEXT', first: null }`. Both ledgers store and read
* it, and `holdover migrate` copies it. `added` is the migration of SQLite, which adds the column to older files; Redis
* needs none. Older rows have no value: make the property nullable, or give `added` a default. With `first: null`
* new rows begin without a value; the code that knows the value sets it. With `atEnd: true` the end of the prompt
* sets it (`prompts/state/outcome.ts`), and both ledgers store it then. Also count a text that may be long
* in the size of a history entry (`finish` in `sqlite/prompts.ts`, `addToHistory` in
* `redis/prompts-scripts.ts`), which `--history-size` limits.
*/
const PROMPT_COLUMNS = {
	/** The internal id of the prompt, and its first v2 idempotency key. */
	key: text("key"),
	user: text("user"),
	/** The id that v1 clients know. */
	promptId: text("prompt_id"),
	jobId: text("job_id"),
	number: number("number"),
	clientId: text("client_id"),
	createdAtMs: number("created_at_ms"),
	graphJson: text("graph_json"),
	extraDataJson: text("extra_data_json"),
	/** `outputs_to_execute`, a JSON array of node ids. */
	targetsJson: text("targets_json"),
	state: text("state"),
	/**
	* The stored plan without the graph: the data to submit the prompt again, and if it may have been sent
	* (`prompts/submit/plan.ts`). It never contains secrets.
	*/
	intentJson: text("intent_json"),
	/** When a client asked to cancel it. */
	cancelAskedAtMs: {
		...number("cancel_asked_at_ms"),
		first: null
	},
	/** The v1 history entry, once done. */
	entryJson: {
		...text("entry_json"),
		first: null,
		atEnd: true
	},
	/** The final status of `GET /api/job/{id}/status`, once done. */
	statusWord: {
		...text("status_word"),
		first: null,
		atEnd: true
	},
	startedAtMs: {
		...number("started_at_ms"),
		first: null,
		atEnd: true
	},
	endedAtMs: {
		...number("ended_at_ms"),
		first: null,
		atEnd: true
	},
	/** The times at which its nodes ran, once done: `NodeTimes` as JSON. */
	nodeTimesJson: {
		...text("node_times_json"),
		added: "TEXT",
		first: null,
		atEnd: true
	}
};
const END_NAMES = endNames(PROMPT_COLUMNS);
/** The first values of the properties that a prompt gets later. */
const NEW_PROMPT = firstValues(PROMPT_COLUMNS);
/** The small properties of a done prompt, which lists of prompts contain. */
const OUTLINE_NAMES = [
	"key",
	"promptId",
	"statusWord",
	"createdAtMs",
	"startedAtMs",
	"endedAtMs"
];
const FILE_COLUMNS = {
	user: text("user"),
	type: text("type"),
	subfolder: text("subfolder"),
	filename: text("filename"),
	assetId: text("asset_id"),
	hash: text("hash"),
	sizeBytes: number("size_bytes"),
	contentType: text("content_type"),
	modifiedAtMs: number("modified_at_ms")
};
const JOB_COLUMNS = {
	id: text("id"),
	user: text("user"),
	status: text("status"),
	order: number("turn"),
	createdAtMs: number("created_at_ms"),
	startedAtMs: number("started_at_ms"),
	completedAtMs: number("completed_at_ms"),
	expiresAtMs: number("expires_at_ms"),
	workflowJson: text("workflow_json"),
	provenanceJson: text("provenance_json"),
	metadataJson: text("metadata_json"),
	outputsJson: text("outputs_json"),
	errorJson: text("error_json"),
	extrasJson: text("extras_json")
};
const ASSET_COLUMNS = {
	id: text("id"),
	user: text("user"),
	hash: text("hash"),
	sizeBytes: number("size_bytes"),
	contentType: text("content_type"),
	filePath: text("file_path"),
	tagsJson: text("tags_json"),
	createdAtMs: number("created_at_ms"),
	expiresAtMs: number("expires_at_ms"),
	jobId: text("job_id")
};
const CLAIMED_ASSET_COLUMNS = {
	assetId: text("asset_id"),
	/** Equal when the same request is sent again. */
	fingerprint: text("fingerprint"),
	/** The member `created_new` of the answer: true when the bytes were new. */
	createdNew: flag("created_new"),
	claimedAtMs: number("claimed_at_ms")
};
const REPLAY_COLUMNS = {
	scope: text("scope"),
	key: text("key"),
	/** Equal when the same request is sent again. */
	fingerprint: text("fingerprint"),
	requestId: text("request_id"),
	state: text("state"),
	/** When the key was reserved; after the call, when it was answered. */
	atMs: number("at_ms"),
	status: number("status"),
	contentType: text("content_type"),
	body: bytes("body")
};
const MODEL_CALL_COLUMNS = {
	requestId: text("request_id"),
	workspace: text("workspace"),
	user: text("user"),
	model: text("model"),
	startedAtMs: number("started_at_ms"),
	endedAtMs: number("ended_at_ms"),
	status: number("status"),
	/** `null`: the answer was a result. */
	errorType: text("error_type"),
	chargedCents: number("charged_cents"),
	replayed: flag("replayed")
};
const CALL_COUNT_COLUMNS = {
	user: text("user"),
	agent: text("agent"),
	clientId: text("client_id"),
	/** Method and pattern of the path, for example `GET /history/:id`. */
	route: text("route"),
	count: number("count"),
	firstAtMs: number("first_at_ms"),
	lastAtMs: number("last_at_ms")
};
function text(sql) {
	return {
		type: "text",
		sql
	};
}
function number(sql) {
	return {
		type: "number",
		sql
	};
}
function flag(sql) {
	return {
		type: "flag",
		sql
	};
}
function bytes(sql) {
	return {
		type: "bytes",
		sql
	};
}
function endNames(map) {
	return Object.keys(map).filter((name) => map[name]?.atEnd);
}
function firstValues(map) {
	const later = Object.entries(map).filter(([, { first }]) => first === null);
	return Object.fromEntries(later.map(([name]) => [name, null]));
}
// src/ledger/outline-cache.ts
/** Each cached user may have as many outlines as its history has entries. */
const MAX_CACHED_USERS = 20;
/** Caches the outlines of done prompts. Front ends poll them, and each poll reads only the new ones. */
function createOutlineCache(readAfter) {
	const cached = new LRUCache({ max: MAX_CACHED_USERS });
	return {
		of: async (user) => {
			const before = cached.get(user);
			const reading = readAfter(user, before?.mark);
			const { mark, isWhole, outlines } = reading instanceof Promise ? await reading : reading;
			if (before && !isWhole && outlines.length === 0) return before.inOrder;
			const byKey = !isWhole && before?.byKey || /* @__PURE__ */ new Map();
			for (const outline of outlines) {
				byKey.delete(outline.key);
				byKey.set(outline.key, outline);
			}
			const inOrder = [...byKey.values()];
			cached.set(user, {
				mark,
				byKey,
				inOrder
			});
			return inOrder;
		},
		/** Removes the cached outlines of one user, or of all. Needed when the mark of a ledger does not show removals. */
		invalidate(user) {
			if (user === void 0) cached.clear();
			else cached.delete(user);
		}
	};
}
export { END_NAMES as a, MODEL_CALL_COLUMNS as c, PROMPT_COLUMNS as d, REPLAY_COLUMNS as f, CLAIMED_ASSET_COLUMNS as i, NEW_PROMPT as l, ASSET_COLUMNS as n, FILE_COLUMNS as o, CALL_COUNT_COLUMNS as r, JOB_COLUMNS as s, createOutlineCache as t, OUTLINE_NAMES as u };
