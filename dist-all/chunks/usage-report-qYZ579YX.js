// src/migration/v1-routes.ts
const JOBS = "/api/v2/jobs";
const ASSETS = "/api/v2/assets";
const submit = {
	call: "POST /api/v2/jobs",
	link: JOBS,
	fit: "same",
	lacks: "an id of your own, a place in the queue (number, front), a choice of outputs to run"
};
const job = {
	call: "GET /api/v2/jobs/{id}",
	link: `${JOBS}/:id`,
	fit: "same"
};
const record = {
	...job,
	fit: "changes",
	lacks: "a record that stays: jobs expire, and tell of no graph, no text that a node shows, no messages of single nodes"
};
const listing = {
	call: "GET /api/v2/jobs",
	link: JOBS,
	fit: "changes",
	lacks: "graphs and places in line; not every service lists jobs at all"
};
const past = {
	...listing,
	lacks: "a list that stays: jobs expire, they name no graph, and not every service lists them"
};
const cancel = {
	call: "POST /api/v2/jobs/{id}/cancel",
	fit: "same"
};
const cancelMany = {
	...cancel,
	fit: "changes",
	lacks: "stopping what runs, or all at once: each job is cancelled by its id"
};
const upload = {
	call: "POST /api/v2/assets",
	link: ASSETS,
	fit: "same",
	lacks: "file names: workflows name an asset by its id"
};
const none = (lacks) => ({
	call: null,
	fit: "none",
	lacks
});
const definitions = none("node definitions");
const models = none("the names a loader can choose from");
const userData = none("saved workflows, and whatever else a front end keeps");
const settings = none("values kept for each key");
const users = none("accounts: a key is all there is");
const logs = none("lines of the server; GET /api/v2/jobs/{id}/logs has those of a job, where kept");
const frontEnd = none("what a browser front end asks at its start");
const forget = none("forgetting single records: they expire");
/** Every v1 route and its replacement. */
const V1_ROUTES = {
	"POST /prompt": submit,
	"GET /prompt": {
		...listing,
		lacks: "the number of jobs left: it must be counted"
	},
	"GET /queue": listing,
	"POST /queue": cancelMany,
	"POST /interrupt": cancelMany,
	"POST /free": {
		call: null,
		fit: "changes",
		lacks: "unloading models: the service sees to its memory, the call can go"
	},
	"GET /ws": {
		call: "GET /api/v2/jobs/{id}/events",
		fit: "changes",
		lacks: "node-level events (executing, executed, cached); one stream for each job"
	},
	"GET /history": past,
	"GET /history/:id": record,
	"POST /history": forget,
	"GET /api/history_v2": past,
	"GET /api/history_v2/:id": record,
	"GET /api/jobs": past,
	"GET /api/jobs/:id": record,
	"DELETE /api/jobs/:id": forget,
	"GET /api/job/:id/status": job,
	"POST /api/jobs/cancel": cancelMany,
	"POST /api/jobs/:id/cancel": {
		...cancel,
		link: `${JOBS}/:id/cancel`
	},
	"POST /upload/image": upload,
	"POST /upload/mask": {
		...upload,
		fit: "changes",
		lacks: "joining two pictures: the client does it before it sends one"
	},
	"GET /view": {
		call: "GET /api/v2/assets/{id}/content",
		fit: "same",
		lacks: "file names and re-encoded previews: outputs of a job carry their own url"
	},
	"GET /view_metadata/:folder": none("the header of a safetensors file"),
	"GET /internal/files/:type": none("names by folder, newest first"),
	"GET /object_info": definitions,
	"GET /object_info/:name": definitions,
	"GET /models": models,
	"GET /models/:folder": models,
	"GET /embeddings": models,
	"GET /experiment/models": models,
	"GET /experiment/models/:folder": models,
	"GET /system_stats": {
		call: "GET /api/v2/health",
		link: "/api/v2/health",
		fit: "changes",
		lacks: "facts about the machine: health is all it tells"
	},
	"GET /features": frontEnd,
	"GET /extensions": frontEnd,
	"GET /i18n": frontEnd,
	"GET /workflow_templates": frontEnd,
	"GET /global_subgraphs": frontEnd,
	"GET /node_replacements": frontEnd,
	"GET /internal/folder_paths": none("places on the machine"),
	"GET /api/user": users,
	"GET /users": users,
	"POST /users": users,
	"GET /settings": settings,
	"GET /settings/:id": settings,
	"POST /settings": settings,
	"POST /settings/:id": settings,
	"GET /userdata": userData,
	"GET /v2/userdata": userData,
	"GET /userdata/:file": userData,
	"POST /userdata/:file": userData,
	"DELETE /userdata/:file": userData,
	"POST /userdata/:file/move/:dest": userData,
	"GET /internal/logs": logs,
	"GET /internal/logs/raw": logs,
	"PATCH /internal/logs/subscribe": logs
};
/** Returns true when a text names a v1 route. Stored names may be those of an older or newer Holdover. */
function isRouteName(name) {
	return Object.hasOwn(V1_ROUTES, name);
}
/** Returns the path of the v2 call for one v1 call; `undefined` when the v1 address does not determine it. */
function successorLink(name, params) {
	const { link } = V1_ROUTES[name];
	if (link?.includes(":id") && params["id"] === void 0) return void 0;
	return link?.replace(":id", () => encodeURIComponent(params["id"] ?? ""));
}
// src/migration/usage-counter.ts
/** The name under which further clients are counted together. */
const OTHER_CLIENTS = "(others)";
/**
* The time between writes. A `kill -9` loses the counts since the last one: they are statistics, not acknowledged
* data.
*/
const FLUSH_INTERVAL_MS = 3e3;
const DAY_MS = 864e5;
const RETENTION_MS = 90 * DAY_MS;
/** The maximum numbers of clients and of their ids, so that invented names cannot fill the disk. */
const LIMITS = {
	clients: 1e3,
	idsOfClient: 20
};
/** Opens the counter. It writes its counts every three seconds, and removes counts after 90 days. */
async function openUsageCounter({ calls, log, now }) {
	await calls.expire(now() - RETENTION_MS);
	let knownIds = /* @__PURE__ */ new Map();
	await readKnownIds();
	let pending = /* @__PURE__ */ new Map();
	let lastFlush = Promise.resolve();
	let expiresAtMs = now() + DAY_MS;
	async function readKnownIds() {
		const rows = await calls.list();
		knownIds = /* @__PURE__ */ new Map();
		for (const { user, agent, clientId } of rows) idsOf(user, agent).add(clientId);
	}
	function idsOf(user, agent) {
		const key = `${user}\0${agent}`;
		const ids = knownIds.get(key) ?? /* @__PURE__ */ new Set();
		knownIds.set(key, ids);
		return ids;
	}
	function capped({ user, agent, clientId, route }) {
		const ids = knownIds.get(`${user}\0${agent}`);
		if (ids?.has(clientId)) return {
			user,
			agent,
			clientId,
			route
		};
		if (ids === void 0 && knownIds.size >= LIMITS.clients) return {
			user: OTHER_CLIENTS,
			agent: OTHER_CLIENTS,
			clientId: "",
			route
		};
		const isOverLimit = clientId !== "" && (ids?.size ?? 0) >= LIMITS.idsOfClient;
		if (!isOverLimit) idsOf(user, agent).add(clientId);
		return {
			user,
			agent,
			clientId: isOverLimit ? OTHER_CLIENTS : clientId,
			route
		};
	}
	async function write(rows) {
		try {
			if (rows.length > 0) await calls.add(rows);
			if (now() < expiresAtMs) return;
			expiresAtMs = now() + DAY_MS;
			await calls.expire(now() - RETENTION_MS);
			await readKnownIds();
		} catch (error) {
			log.warn({
				event: "usage.counts_lost",
				err: error
			}, "counts of v1 calls are lost");
		}
	}
	/** Writes the counts to the ledger. */
	function flush() {
		const rows = [...pending.values()];
		pending = /* @__PURE__ */ new Map();
		lastFlush = lastFlush.then(() => write(rows));
		return lastFlush;
	}
	const timer = setInterval(() => void flush(), FLUSH_INTERVAL_MS);
	timer.unref();
	return {
		flush,
		/** Counts a call in memory, so that calls do not wait for the ledger. */
		count(call) {
			const { user, agent, clientId, route } = capped(call);
			const key = `${user}\0${agent}\0${clientId}\0${route}`;
			const atMs = now();
			const row = pending.get(key);
			if (row === void 0) {
				const times = {
					count: 1,
					firstAtMs: atMs,
					lastAtMs: atMs
				};
				pending.set(key, {
					user,
					agent,
					clientId,
					route,
					...times
				});
				return;
			}
			row.count++;
			row.lastAtMs = atMs;
		},
		async close() {
			clearInterval(timer);
			await flush();
		}
	};
}
/** Used while a session is traced: its calls prepare a migration, and do not count as use of v1. */
function ignoreUsage() {}
// src/migration/usage-report.ts
const UNKNOWN_ROUTE = {
	call: null,
	fit: "none",
	lacks: "a route this version does not know"
};
/** Returns the clients that called v1, the one with the latest call first. */
function reportOf(rows) {
	return clientsIn(rows).map(clientOf).toSorted((a, b) => b.last_seen.localeCompare(a.last_seen));
}
function clientOf({ user, agent, rows }) {
	const socketAgents = new Set(rows.filter(isSocket).map((row) => row.agent));
	socketAgents.delete(agent);
	const routes = groupBy(rows, ({ route }) => route).map(callOf).toSorted((a, b) => b.calls - a.calls);
	return {
		user,
		agent,
		socket_agents: [...socketAgents],
		client_ids: [...new Set(rows.map(({ clientId }) => clientId))].filter((id) => id !== ""),
		calls: sum(rows),
		first_seen: isoTime(Math.min(...rows.map(({ firstAtMs }) => firstAtMs))),
		last_seen: lastOf(rows),
		...verdictOn(routes),
		routes
	};
}
function callOf(rows) {
	const [{ route }] = rows;
	const { call, fit, lacks = null } = isRouteName(route) ? V1_ROUTES[route] : UNKNOWN_ROUTE;
	return {
		route,
		calls: sum(rows),
		last_seen: lastOf(rows),
		v2: call,
		fit,
		lacks
	};
}
function verdictOn(routes) {
	const withoutSuccessor = routes.filter(({ fit }) => fit === "none");
	const withChanges = routes.filter(({ fit }) => fit === "changes");
	const because = reasonsFor([...withoutSuccessor, ...withChanges]);
	if (withoutSuccessor.length > 0) return {
		verdict: "needs v1",
		because
	};
	return {
		verdict: withChanges.length > 0 ? "ready with changes" : "ready",
		because
	};
}
/** Returns one reason for each feature that v2 lacks, with the calls that need it. */
function reasonsFor(calls) {
	return groupBy(calls, ({ lacks }) => lacks ?? "").map((group) => `${group.map(({ route }) => route).join(", ")}: ${group[0].lacks ?? ""}`);
}
function groupBy(rows, keyOf) {
	const groups = /* @__PURE__ */ new Map();
	for (const row of rows) {
		const group = groups.get(keyOf(row));
		if (group) group.push(row);
		else groups.set(keyOf(row), [row]);
	}
	return [...groups.values()];
}
function sum(rows) {
	return rows.reduce((total, { count }) => total + count, 0);
}
function lastOf(rows) {
	return isoTime(Math.max(...rows.map(({ lastAtMs }) => lastAtMs)));
}
function isoTime(ms) {
	return new Date(ms).toISOString();
}
/**
* Groups calls by user and `User-Agent`. The WebSocket library of a script often sends another `User-Agent` than its
* HTTP library. So an agent that only opened sockets belongs to the program of the same user with the same client id,
* or, if no id matches, to the user's only program.
*/
function clientsIn(rows) {
	const groups = groupBy(rows, ({ user, agent }) => `${user}\0${agent}`).map((calls) => ({
		user: calls[0].user,
		agent: calls[0].agent,
		rows: calls
	}));
	const programs = groups.filter(({ rows: calls }) => !calls.every(isSocket));
	const owned = new Map(programs.map((group) => [group, [...group.rows]]));
	const ownerless = [];
	for (const group of groups.filter((candidate) => !owned.has(candidate))) {
		const ownerOf = ownersIn(programs.filter(({ user }) => user === group.user), group.rows);
		const unowned = group.rows.filter((row) => {
			const owner = ownerOf(row);
			if (owner) owned.get(owner)?.push(row);
			return !owner;
		});
		ownerless.push({
			...group,
			rows: unowned
		});
	}
	return [...programs.map((group) => ({
		...group,
		rows: owned.get(group) ?? []
	})), ...ownerless].filter(({ rows: calls }) => calls.length > 0);
}
function isSocket({ route }) {
	return route === "GET /ws";
}
/** Finds the program that opened a socket, among those of its user. */
function ownersIn(programs, sockets) {
	const byId = /* @__PURE__ */ new Map();
	const byLastCall = programs.toSorted((a, b) => lastCallMsOf(a.rows) - lastCallMsOf(b.rows));
	for (const group of byLastCall) for (const { clientId } of group.rows) if (isDistinct(clientId)) byId.set(clientId, group);
	const owners = new Set(sockets.flatMap(({ clientId }) => byId.get(clientId) ?? []));
	const [only] = owners.size === 1 ? owners : programs.length === 1 ? programs : [];
	return ({ clientId }) => byId.get(clientId) ?? only;
}
function isDistinct(clientId) {
	return clientId !== "" && clientId !== "(others)";
}
function lastCallMsOf(rows) {
	return Math.max(...rows.map(({ lastAtMs }) => lastAtMs));
}
export { successorLink as a, V1_ROUTES as i, ignoreUsage as n, openUsageCounter as r, reportOf as t };
