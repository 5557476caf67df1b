import { c as MODEL_CALL_COLUMNS, d as PROMPT_COLUMNS, f as REPLAY_COLUMNS, i as CLAIMED_ASSET_COLUMNS, n as ASSET_COLUMNS, o as FILE_COLUMNS, r as CALL_COUNT_COLUMNS, s as JOB_COLUMNS } from "./outline-cache-BLjCgPfz.js";
// src/cli/migrate/records.ts
const OWNER = {
	user: {
		type: "text",
		sql: "user"
	},
	key: {
		type: "text",
		sql: "key"
	}
};
/** For each kind, its columns and the properties that identify a row. Kinds are copied in this order. */
const RECORD_KINDS = {
	settings: {
		columns: {
			user: OWNER.user,
			id: {
				type: "text",
				sql: "id"
			},
			valueJson: {
				type: "text",
				sql: "value_json"
			}
		},
		id: ["user", "id"]
	},
	calls: {
		columns: CALL_COUNT_COLUMNS,
		id: [
			"user",
			"agent",
			"clientId",
			"route"
		]
	},
	modelCalls: {
		columns: MODEL_CALL_COLUMNS,
		id: ["requestId"]
	},
	replays: {
		columns: REPLAY_COLUMNS,
		id: ["scope", "key"]
	},
	assets: {
		columns: ASSET_COLUMNS,
		id: ["id"]
	},
	assetKeys: {
		columns: {
			...OWNER,
			...CLAIMED_ASSET_COLUMNS
		},
		id: ["user", "key"]
	},
	files: {
		columns: FILE_COLUMNS,
		id: [
			"user",
			"type",
			"subfolder",
			"filename"
		]
	},
	jobs: {
		columns: JOB_COLUMNS,
		id: ["id"]
	},
	jobKeys: {
		columns: {
			...OWNER,
			claimedAtMs: {
				type: "number",
				sql: "claimed_at_ms"
			},
			jobId: {
				type: "text",
				sql: "job_id"
			}
		},
		id: ["user", "key"]
	},
	prompts: {
		columns: PROMPT_COLUMNS,
		id: ["key"]
	}
};
/** Returns the properties that identify a row, as one text. */
function recordId(kind, row) {
	const values = row;
	return JSON.stringify(RECORD_KINDS[kind].id.map((name) => values[name]));
}
export { recordId as n, RECORD_KINDS as t };
