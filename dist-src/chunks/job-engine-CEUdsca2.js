import { t as packageUrl } from "./package-url-DJPOFjBU.js";
import { t as pythonFloat } from "./python-json-ZZa01XnG.js";
import { a as jobError, c as RUN_FLAG, i as internalError, l as createRunFlags, n as inputsOf, o as publicMessage, r as crashedTooOften } from "./run-plan-C2Ywu7x4.js";
import { o as createKeyedMutex } from "./concurrency-DwpPd4rK.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { c as setMember, l as stringifyJson, n as isJsonObject, o as parseJson, t as LosslessNumber } from "./json-CIUMQIEJ.js";
import { r as isRedisAway } from "./storage-errors-D5OCISk9.js";
import { o as linkOf, r as dependenciesFirst, t as addTo, u as targetsByFailingNode } from "./graph-_gvMsCf-.js";
import { i as ANNOTATED_NAME, t as hasControlCharacter } from "./control-characters-CRFC75pz.js";
import { i as refuse, r as ok } from "./job-api-DUOBoLDS.js";
import { D as pythonType, E as pythonStr, S as notInListError, T as pythonRepr, _ as MISSING_CLASS, a as StopRequest, c as JobFeed, g as outputTypeOf, i as mapAssetRefs, n as findAssetRefs, p as IS_TERMINAL, r as isAssetRef, s as stringifySteps, t as assetRefText, u as endedJobEvents, v as UNKNOWN_CLASS, w as isTruthyInPython, x as nodeErrorDetails, y as errorEntry } from "./asset-refs-D0EjDw6l.js";
import { n as yieldEvery, t as runInSteps } from "./event-loop-BDDWO5Ig.js";
import { a as showOutput, i as jobLinks, n as removeBlobIfUnused, r as isoTime, t as Assets } from "./assets-BymgX2wL.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { i as isImported, n as IMPORTED } from "./store-DmnZ7I1J.js";
import path, { posix } from "node:path";
import { Worker } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { randomUUID } from "node:crypto";
import { setImmediate as setImmediate$1 } from "node:timers/promises";
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { AsyncLocalStorage } from "node:async_hooks";
// src/observability/metrics.ts
/** Routes whose answers last as long as a client listens. */
const LONG_ROUTES = /* @__PURE__ */ new Set(["/ws", "/api/v2/*"]);
function bucketsOf(values) {
	const buckets = /* @__PURE__ */ new Map();
	for (const { value, metricName, labels } of values) {
		const { le, route } = labels;
		if (metricName?.endsWith("_bucket") !== true || LONG_ROUTES.has(String(route))) continue;
		const bound = le === "+Inf" ? Infinity : Number(le);
		buckets.set(bound, (buckets.get(bound) ?? 0) + value);
	}
	return buckets;
}
const DURATION_BUCKETS = [
	.001,
	.0025,
	.005,
	.01,
	.025,
	.05,
	.1,
	.25,
	.5,
	1,
	2.5,
	10,
	60
];
const METHODS = /* @__PURE__ */ new Set([
	"GET",
	"HEAD",
	"POST",
	"PUT",
	"PATCH",
	"DELETE",
	"OPTIONS"
]);
/** The interval at which the event loop's delay is measured, which wakes the process. */
const EVENT_LOOP_RESOLUTION_MS = 20;
function createMetrics({ version, upstreamKind, identify }) {
	const registry = new Registry();
	collectDefaultMetrics({
		register: registry,
		eventLoopMonitoringPrecision: EVENT_LOOP_RESOLUTION_MS
	});
	const { build, requests, durations, calls, callDurations, ended } = createInstruments(registry);
	build.set({
		version,
		upstream: upstreamKind
	}, 1);
	/** Counts one that no middleware sees, once its answer is out or cut off. */
	function note({ method = "" }, response, { route, startedAt }) {
		const methodLabel = METHODS.has(method) ? method : "other";
		requests.inc({
			method: methodLabel,
			route,
			outcome: outcomeOf(response)
		});
		durations.observe({ route }, (performance.now() - startedAt) / 1e3);
	}
	async function sendMetrics(ctx) {
		ctx.state.answeredBy = "/metrics";
		ctx.body = await registry.metrics();
		ctx.set("Content-Type", registry.contentType);
		ctx.set("Cache-Control", "no-store");
	}
	return {
		note,
		/** Counts requests by the route that answered them. */
		count(ctx, next) {
			const startedAt = performance.now();
			const { req, res } = ctx;
			res.once("close", () => note(req, res, {
				route: routeOf(ctx),
				startedAt
			}));
			return next();
		},
		/** `GET /metrics` for authenticated callers; others fall through and get 401. */
		serve(ctx, next) {
			const isRead = ctx.method === "GET" || ctx.method === "HEAD";
			if (ctx.path !== "/metrics" || !isRead || !identify(ctx.req)) return next();
			return sendMetrics(ctx);
		},
		onUpgrade: (status) => requests.inc({
			method: "GET",
			route: "/ws",
			outcome: classOf(status)
		}),
		onUpstreamCall({ operation, outcome, ms }) {
			calls.inc({
				operation,
				outcome
			});
			callDurations.observe({ operation }, ms / 1e3);
		},
		onPromptEnded: (outcome) => ended.inc({ outcome }),
		/**
		* Everything that is exported.
		* @internal
		*/
		instruments: () => registry.getMetricsAsArray(),
		/** Totals since the start, for figures over a time. */
		async totals() {
			const [endedCounts, observed] = await Promise.all([ended.get(), durations.get()]);
			return {
				ended: endedCounts.values.reduce((sum, { value }) => sum + value, 0),
				requests: bucketsOf(observed.values)
			};
		},
		/** Reads these services at each scrape. */
		watch: (services) => watch(registry, services)
	};
}
function createInstruments(registry) {
	const registers = [registry];
	return {
		build: new Gauge({
			name: "holdover_build_info",
			help: "Always 1; which Holdover this is and what runs its jobs.",
			labelNames: ["version", "upstream"],
			registers
		}),
		requests: new Counter({
			name: "holdover_http_requests_total",
			help: "Requests by method, route pattern and outcome: a class of status, or cut_off.",
			labelNames: [
				"method",
				"route",
				"outcome"
			],
			registers
		}),
		durations: new Histogram({
			name: "holdover_http_request_duration_seconds",
			help: "From the request headers to the last byte of the answer.",
			labelNames: ["route"],
			buckets: DURATION_BUCKETS,
			registers
		}),
		calls: new Counter({
			name: "holdover_upstream_calls_total",
			help: "v2 calls that v1 calls became, by operation and outcome: ok, 4xx, 5xx, or broken.",
			labelNames: ["operation", "outcome"],
			registers
		}),
		callDurations: new Histogram({
			name: "holdover_upstream_call_duration_seconds",
			help: "From a v2 call to its answer; of downloads and event streams, to their first byte.",
			labelNames: ["operation"],
			buckets: DURATION_BUCKETS,
			registers
		}),
		ended: new Counter({
			name: "holdover_jobs_ended_total",
			help: "Prompts that have their history entry, by how they ended.",
			labelNames: ["outcome"],
			registers
		})
	};
}
function watch(registry, { livePrompts, hub, prompts, upstream }) {
	const registers = [registry];
	const gauge = (name, help, read) => {
		new Gauge({
			name,
			help,
			registers,
			collect() {
				this.set(read());
			}
		});
	};
	new Gauge({
		name: "holdover_jobs",
		help: "Prompts without a history entry yet that this process leads, by state.",
		labelNames: ["state"],
		registers,
		collect() {
			for (const [state, count] of Object.entries(livePrompts.countByState())) this.set({ state }, count);
		}
	});
	gauge("holdover_outbox_depth", "Accepted prompts that wait until the upstream has room.", () => prompts.outboxDepth());
	gauge("holdover_upstream_streams", "Event streams open to the upstream; the embedded engine needs none.", () => upstream.openStreams());
	gauge("holdover_websockets", "Open WebSocket connections.", () => hub.count());
	gauge("holdover_websocket_backlog_bytes", "Bytes that wait for WebSocket clients to read them.", () => hub.pendingBytes());
	new Counter({
		name: "holdover_websocket_dropped_frames_total",
		help: "Previews a slow WebSocket client did not get because newer ones came first.",
		registers,
		collect() {
			this.reset();
			this.inc(hub.droppedFrames());
		}
	});
}
/** Labels the metrics of a middleware that is not a router. */
function withRouteLabel(route, middleware) {
	return (ctx, next) => {
		let isPassedOn = false;
		const served = middleware(ctx, () => {
			isPassedOn = true;
			return next();
		});
		return isPassedOn ? served : note(served);
		async function note(working) {
			try {
				await working;
			} finally {
				if (!isPassedOn) ctx.state.answeredBy ??= route;
			}
		}
	};
}
/** Route patterns only: paths are chosen by callers and unbounded. */
function routeOf(ctx) {
	const { _matchedRoute: matched } = ctx;
	if (typeof matched === "string") return matched;
	return ctx.state.answeredBy ?? "none";
}
function outcomeOf(res) {
	return res.writableFinished ? classOf(res.statusCode) : "cut_off";
}
function classOf(status) {
	return `${Math.floor(status / 100)}xx`;
}
// src/lib/lazy-json.ts
/** `json`: the JSON of the value, if it exists already. */
function createLazyJson(value, json) {
	return {
		value,
		json
	};
}
function readValue(lazy) {
	lazy.value ??= parseJson(lazy.json ?? "null");
	return lazy.value;
}
function setValue(lazy, value) {
	if (value === lazy.value) return;
	lazy.value = value;
	lazy.json = void 0;
}
/** Stores the JSON of a value, unless the value was replaced meanwhile. */
function rememberJson(lazy, value, json) {
	if (lazy.value === value) lazy.json = json;
}
/** Returns compact JSON, with every number as it was read. */
function toJsonText(lazy) {
	return lazy.json ?? stringifyJson(lazy.value);
}
function unload(lazy) {
	lazy.json = toJsonText(lazy);
	lazy.value = void 0;
}
// src/tracing/open-telemetry.ts
const PACKAGES = "@opentelemetry/api @opentelemetry/core @opentelemetry/resources @opentelemetry/sdk-trace-base @opentelemetry/exporter-trace-otlp-proto";
/** An unreachable collector must not hold up the end of the process. */
const CLOSE_TIMEOUT_MS = 3e3;
/** A collector that is away fails every batch. */
const REPORT_INTERVAL_MS = 6e4;
/**
* Loads OpenTelemetry and starts exporting, if the environment asks for it. `undefined`: no span is
* made; when they are asked for and cannot be made, the log says why.
*/
async function openTelemetry(settings, { version, log }) {
	if (settings.kind === "off") return void 0;
	if (settings.kind === "unusable") {
		log.warn({
			event: "tracing.unavailable",
			reason: settings.reason
		}, "no traces are sent");
		return;
	}
	const modules = await loadPackages().catch((error) => {
		if (error.code?.endsWith("MODULE_NOT_FOUND") !== true) throw error;
		const reason = `an optional package is missing: run "npm install ${PACKAGES}"`;
		log.warn({
			event: "tracing.unavailable",
			reason
		}, "no traces are sent");
	});
	return modules && start(modules, version, log);
}
async function loadPackages() {
	const [api, core, resources, sdk, exporter] = await Promise.all([
		import("@opentelemetry/api"),
		import("@opentelemetry/core"),
		import("@opentelemetry/resources"),
		import("@opentelemetry/sdk-trace-base"),
		import("@opentelemetry/exporter-trace-otlp-proto")
	]);
	return {
		api,
		core,
		resources,
		sdk,
		exporter
	};
}
/** Endpoint, headers, sampler, batches and limits: the SDK reads them from `OTEL_*`. */
function start({ api, core, resources, sdk, exporter }, version, log) {
	api.diag.setLogger(failureLog(log), api.DiagLogLevel.ERROR);
	const own = resources.resourceFromAttributes({
		"service.name": "holdover",
		"service.version": version,
		"service.instance.id": randomUUID()
	});
	const detectors = [resources.envDetector];
	const provider = new sdk.BasicTracerProvider({
		resource: own.merge(resources.detectResources({ detectors })),
		spanProcessors: [new sdk.BatchSpanProcessor(new exporter.OTLPTraceExporter())]
	});
	return {
		api,
		tracer: provider.getTracer("holdover", version),
		propagator: new core.W3CTraceContextPropagator(),
		close: async () => {
			await completesWithin(CLOSE_TIMEOUT_MS, provider.shutdown()).catch(() => {});
		}
	};
}
/** Errors of the exporter as lines of the log, one a minute. */
function failureLog(log) {
	let reportedAt = -Infinity;
	const error = (message) => {
		if (performance.now() - reportedAt < REPORT_INTERVAL_MS) return;
		reportedAt = performance.now();
		log.warn({
			event: "tracing.export_failed",
			reason: reasonIn(message)
		}, "spans were lost");
	};
	const ignore = () => {};
	return {
		error,
		warn: ignore,
		info: ignore,
		debug: ignore,
		verbose: ignore
	};
}
/** The SDK reports an error as JSON with its stack. */
function reasonIn(text) {
	try {
		const { message, code } = JSON.parse(text);
		return message || code || "no reason is known";
	} catch {
		return text.slice(0, 500);
	}
}
// src/tracing/job-spans.ts
const NONE$1 = () => {};
/** One span for each run of a job: a worker adds it to the trace of the call that submitted the job. */
function createJobSpans({ api, tracer, contexts }) {
	return { began(traceparent) {
		if (traceparent === void 0) return NONE$1;
		const parent = contexts.fromHeaders({ traceparent });
		const span = tracer.startSpan("run job", { kind: api.SpanKind.CONSUMER }, parent);
		return (outcome) => span.setAttribute("holdover.job.outcome", outcome).end();
	} };
}
/** The same port; a job is recorded with the `traceparent` of the call that submits it. */
function recordTraceparent(jobs, { contexts }) {
	function traceparentFor(caller) {
		const current = contexts.currentHeaders()["traceparent"];
		const context = contexts.ofCaller(caller);
		return current ?? (context && contexts.headersOf(context)["traceparent"]);
	}
	return {
		...jobs,
		submit(caller, request) {
			const traceparent = traceparentFor(caller);
			return jobs.submit(caller, traceparent === void 0 ? request : {
				...request,
				traceparent
			});
		}
	};
}
// src/tracing/prompt-spans.ts
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** One span for each prompt that this process leads, until its last frame. */
function createPromptSpans({ api, tracer, contexts }) {
	const spans = /* @__PURE__ */ new Map();
	function start(parent, { promptId, isResumed }) {
		const attributes = {
			...UUID.test(promptId) ? { "holdover.prompt.id": promptId } : {},
			"holdover.prompt.resumed": isResumed
		};
		const span = tracer.startSpan("prompt", { attributes }, parent);
		return {
			span,
			context: api.trace.setSpan(parent, span)
		};
	}
	function end(key, attributes) {
		spans.get(key)?.setAttributes(attributes).end();
		spans.delete(key);
	}
	return {
		/** To be recorded with a prompt of this caller: its `traceparent`. */
		traceparentOf(caller) {
			const context = contexts.ofCaller(caller);
			return context && contexts.headersOf(context)["traceparent"];
		},
		/** Calls in the name of the caller, which is of this prompt alone, belong to its span now. */
		began(caller, prompt, traceparent) {
			const parent = (traceparent === void 0 ? void 0 : contexts.fromHeaders({ traceparent })) ?? contexts.ofCaller(caller);
			if (parent === void 0 || spans.has(prompt.key)) return;
			const { span, context } = start(parent, prompt);
			spans.set(prompt.key, span);
			contexts.setCaller(caller, context);
		},
		/** Its last frame is sent. */
		ended: (key, outcome) => end(key, { "holdover.prompt.outcome": outcome }),
		/** Another process goes on with it, or none does until the next start. */
		left: (key) => end(key, { "holdover.prompt.outcome": "left" }),
		close: () => [...spans.keys()].forEach((key) => end(key, LEFT))
	};
}
const LEFT = { "holdover.prompt.outcome": "left" };
// src/tracing/trace-contexts.ts
const NO_HEADERS = {};
/**
* Which span a call belongs to. A caller object stands for one request or one prompt, so its v2
* calls are found by it; the store covers one v2 call on its way to the connection.
*/
function createTraceContexts({ api, propagator }) {
	const byCaller = /* @__PURE__ */ new WeakMap();
	const current = new AsyncLocalStorage();
	function headersOf(context) {
		const headers = {};
		propagator.inject(context, headers, api.defaultTextMapSetter);
		return headers;
	}
	return {
		headersOf,
		/** The context that a request came with, or a new trace. */
		fromHeaders: (headers) => propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter),
		/** From now on calls in the name of this very object belong to this context. */
		setCaller: (caller, context) => void byCaller.set(caller, context),
		ofCaller: (caller) => typeof caller === "object" ? byCaller.get(caller) : void 0,
		/** Runs a call, whose context counts until it settles. */
		async runIn(context, call) {
			const store = {
				context,
				isOpen: true
			};
			try {
				return await current.run(store, call);
			} finally {
				store.isOpen = false;
			}
		},
		/** The headers that pass the current v2 call's context to the service. */
		currentHeaders() {
			const call = current.getStore();
			return call?.isOpen ? headersOf(call.context) : NO_HEADERS;
		}
	};
}
// src/observability/intercepted-port.ts
/** How each call on the port reads as a v2 request. */
const V2_CALLS = {
	submit: "POST /api/v2/jobs",
	recover: "GET /api/v2/jobs",
	get: "GET /api/v2/jobs/{id}",
	workflow: "GET /api/v2/jobs/{id}/workflow",
	events: "GET /api/v2/jobs/{id}/events",
	cancel: "POST /api/v2/jobs/{id}/cancel",
	list: "GET /api/v2/jobs",
	createAsset: "POST /api/v2/assets",
	assetFromHash: "POST /api/v2/assets/from-hash",
	hasBlob: "HEAD /api/v2/assets/by-hash/{hash}",
	asset: "GET /api/v2/assets/{id}",
	deleteAsset: "DELETE /api/v2/assets/{id}",
	content: "GET /api/v2/assets/{id}/content",
	health: "GET /api/v2/health"
};
/** The same port; `handle` makes each call, or does more beside it. */
function interceptCalls(jobs, handle) {
	return new Proxy(jobs, { get(target, name, receiver) {
		const member = Reflect.get(target, name, receiver);
		if (typeof name !== "string" || !Object.hasOwn(V2_CALLS, name)) return member;
		const call = member.bind(receiver);
		return (...args) => handle(name, call, args);
	} });
}
/** The answer with its stream of events observed; ending the iteration ends the source at once. */
function observeEvents(answer, { onEvent, onEnd }) {
	if (!answer.ok) return answer;
	const events = answer.value;
	const observed = { [Symbol.asyncIterator]() {
		const source = events[Symbol.asyncIterator]();
		return {
			async next() {
				try {
					const result = await source.next();
					if (result.done === true) onEnd?.();
					else onEvent?.(result.value);
					return result;
				} catch (error) {
					onEnd?.();
					throw error;
				}
			},
			async return(value) {
				onEnd?.();
				return await source.return?.(value) ?? {
					done: true,
					value: void 0
				};
			}
		};
	} };
	return {
		...answer,
		value: observed
	};
}
// src/tracing/traced-calls.ts
/** The same port; each call in the name of a traced caller is a span, named as a v2 request. */
function traceCalls(jobs, options) {
	return interceptCalls(jobs, tracedCall);
	function tracedCall(method, call, args) {
		const { api, tracer, contexts, isRemote } = options;
		const parent = contexts.ofCaller(args[0]);
		if (parent === void 0) return call(...args);
		const kind = isRemote ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
		const span = tracer.startSpan(V2_CALLS[method], { kind }, parent);
		return contexts.runIn(api.trace.setSpan(parent, span), () => finish(method, call(...args), span));
	}
	async function finish(method, answering, span) {
		let isStream = false;
		try {
			const answer = await answering;
			note(answer, span);
			isStream = method === "events" && answer.ok;
			return isStream ? observeEvents(answer, { onEnd: () => span.end() }) : answer;
		} catch (error) {
			span.setStatus({ code: options.api.SpanStatusCode.ERROR });
			throw error;
		} finally {
			if (!isStream) span.end();
		}
	}
	function note(answer, span) {
		if (answer.ok) return;
		const { status, code } = answer.error;
		span.setAttributes({
			"http.response.status_code": status,
			"error.type": code
		});
		if (status >= 500) span.setStatus({ code: options.api.SpanStatusCode.ERROR });
	}
}
// src/tracing/traced-requests.ts
const TRACE_HEADER = /^(traceparent|tracestate)$/i;
/** One span for each HTTP request, named after its route, in the trace of its caller. */
function traceRequests({ api, tracer, contexts }) {
	const contextOf = /* @__PURE__ */ new WeakMap();
	function begin(request) {
		const parent = contexts.fromHeaders(request.headers);
		const method = request.method ?? "";
		const attributes = { "http.request.method": method };
		const span = tracer.startSpan(method, {
			kind: api.SpanKind.SERVER,
			attributes
		}, parent);
		const context = api.trace.setSpan(parent, span);
		contextOf.set(request, context);
		passOn(request, contexts.headersOf(context));
		return span;
	}
	function end(span, ctx, endedAtMs) {
		const { req, res } = ctx;
		const route = routeOf(ctx);
		span.updateName(route === "none" ? req.method ?? "" : `${req.method} ${route}`);
		span.setAttributes({
			"http.route": route,
			"http.response.status_code": res.statusCode
		});
		if (!res.writableFinished) span.setAttribute("error.type", "cut_off");
		if (res.statusCode >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
		span.end(endedAtMs);
	}
	return {
		serve(ctx, next) {
			const span = begin(ctx.req);
			const served = next();
			ctx.res.once("close", () => {
				const closedAtMs = Date.now();
				served.finally(() => end(span, ctx, closedAtMs));
			});
			return served;
		},
		/** The same; v2 calls in the name of the caller belong to the span of the request. */
		withContext: (identify) => (request) => {
			const caller = identify(request);
			const context = contextOf.get(request);
			if (caller && context) contexts.setCaller(caller, context);
			return caller;
		}
	};
}
/** A call that is passed to the service unchanged carries the span of this server instead. */
function passOn(request, headers) {
	const { rawHeaders } = request;
	for (let at = rawHeaders.length - 2; at >= 0; at -= 2) if (TRACE_HEADER.test(rawHeaders[at] ?? "")) rawHeaders.splice(at, 2);
	for (const [name, value] of Object.entries(headers)) rawHeaders.push(name, value);
}
// src/tracing/tracing.ts
/** `undefined`: the environment asks for no traces, or for some that cannot be made. */
async function openTracing(settings, options) {
	const telemetry = await openTelemetry(settings, options);
	return telemetry && createTracing(telemetry);
}
/** @internal */
function createTracing(telemetry) {
	const contexts = createTraceContexts(telemetry);
	const parts = {
		...telemetry,
		contexts
	};
	const prompts = createPromptSpans(parts);
	return {
		requests: traceRequests(parts),
		prompts,
		runs: createJobSpans(parts),
		/** Jobs of these calls are run in the trace of their caller, by whichever process runs them. */
		record: (jobs) => recordTraceparent(jobs, parts),
		/** Headers for the service itself, and for no other host. */
		headers: contexts.currentHeaders,
		wrap: (jobs, isRemote) => traceCalls(jobs, {
			...parts,
			isRemote
		}),
		async close() {
			prompts.close();
			await telemetry.close();
		}
	};
}
// src/upstreams/assets/retention.ts
const KEY_LIFETIME_MS = 864e5;
/** The number of assets that one sweep considers when the disk budget is exceeded. */
const BUDGET_BATCH = 1e3;
/** The log line of a failed sweep. */
const SWEEP_FAILURE = {
	event: "retention.sweep_failed",
	message: "a sweep of expired jobs and assets failed"
};
/**
* Removes everything past its retention: jobs with their outputs, assets, idempotency keys, and
* bytes above the budget.
*/
async function sweepWithUnrecorded(deps) {
	await sweep(deps);
	await removeUnrecorded(deps);
}
/** Does this without the bytes that another process may be recording. */
async function sweep(deps) {
	const nowMs = deps.clock.now();
	for (const row of await deps.ledger.jobs.expiredBy(nowMs)) await expireJob(row.id, deps);
	for (const row of await deps.ledger.assets.expiredBy(nowMs)) await deps.assets.removeUnused(row, deps.isInUse);
	await deps.ledger.keys.expire(nowMs - KEY_LIFETIME_MS);
	await enforceBudget(deps);
}
/**
* Removes bytes with a marker and without a record: a process crashed, or could not write. Other
* bytes without a record stay, as their ledger may have been lost.
*/
async function removeUnrecorded(deps) {
	await deps.blobs.removeAbandoned();
	for await (const { hash } of deps.blobs.listUnrecorded()) await deps.withLock(hash, () => removeBlobIfUnused(hash, deps));
}
/**
* Removes a job past its retention. A rerun from the cache may have extended the job meanwhile, as
* it lists this job's outputs as its own. A job stays while an unfinished job reads its outputs.
*/
async function expireJob(id, { ledger, assets, withLock, clock, isInUse }) {
	await withLock(jobLock(id), async () => {
		const row = await ledger.jobs.get(id);
		if (!row || row.expiresAtMs > clock.now()) return;
		const outputs = await ledger.assets.ofJob(id);
		for (const output of outputs) if (await isInUse(output.id)) return;
		for (const output of outputs) if (!await assets.removeUnused(output, isInUse)) return;
		await ledger.jobs.remove(id);
	});
}
/** Removes temporary files first, then the oldest ones, but none that an unfinished job needs. */
async function enforceBudget(deps) {
	const isOver = async () => await deps.ledger.assets.totalBytes() > deps.assetBudgetBytes;
	if (!await isOver()) return;
	const rows = await oldestRemovable(deps);
	const temporary = rows.filter(isTemporary);
	for (const row of [...temporary, ...rows.filter((other) => !isTemporary(other))]) {
		if (!await isOver()) return;
		if (await isRemovable(row, deps)) await deps.assets.removeUnused(row, deps.isInUse);
	}
}
/**
* Returns a batch of removable assets. Imported files may be the oldest thousands, so it searches
* past them.
*/
async function oldestRemovable(deps) {
	for (let limit = BUDGET_BATCH;; limit *= 4) {
		const rows = await deps.ledger.assets.oldest(limit);
		const removable = [];
		for (const row of rows) if (await isRemovable(row, deps)) removable.push(row);
		if (removable.length >= BUDGET_BATCH || rows.length < limit) return removable.slice(0, BUDGET_BATCH);
	}
}
async function isRemovable(row, deps) {
	if (await deps.isInUse(row.id)) return false;
	if (row.jobId !== null && await deps.isLive(row.jobId)) return false;
	if (!isImported(row)) return true;
	return await deps.ledger.files.byAsset(row.user, row.id) === void 0;
}
function isTemporary(row) {
	return row.filePath.startsWith("temp/");
}
/** Counts the bytes of imported files, each hash once. No sweep removes them. */
async function importedBytes({ ledger }) {
	const rows = await ledger.assets.ofJob(IMPORTED);
	return [...new Map(rows.map(({ hash, sizeBytes }) => [hash, sizeBytes])).values()].reduce((sum, size) => sum + size, 0);
}
/** Returns the name of the lock for the row of one job. */
function jobLock(jobId) {
	return `job ${jobId}`;
}
/**
* Creates the retention. It is stored as the `expires_at` of the job that made the outputs, so it
* survives a restart.
*/
function createOutputRetention(deps) {
	const { ledger, withLock } = deps;
	const extendTo = (jobId, untilMs) => withLock(jobLock(jobId), async () => {
		const row = await ledger.jobs.get(jobId);
		if (row && row.expiresAtMs < untilMs) await ledger.jobs.update(jobId, { expiresAtMs: untilMs });
		return row !== void 0;
	});
	return {
		/**
		* Returns the ids of the outputs that still exist, and retains these for the full time from
		* now.
		*/
		async retain(outputs, user) {
			const untilMs = deps.clock.now() + deps.retentionMs;
			const retained = [];
			for (const { id, job_id: producer } of outputs) if ((await extendTo(producer, untilMs) ? await ledger.assets.get(id) : void 0)?.user === user) retained.push(id);
			return retained;
		},
		/** Retains the jobs whose outputs this job lists, at least as long as this job. */
		async extend(job) {
			const producers = new Set(job.outputs.map((output) => output.job_id));
			for (const producer of producers) if (producer !== job.id) await extendTo(producer, job.expiresAtMs);
		}
	};
}
// src/translate/free-names.ts
/**
* Matches a name with v1's counter, as in `ComfyUI_00007_.png`: five digits or more between
* underscores before the extension.
*/
const COUNTED = /^(?<stem>.*_)(?<count>\d{5,})(?<tail>_(?:\.[^.]*)?)$/;
/**
* Yields the names that v1 would give, in order, while the earlier ones are taken: v1 continues the
* file counter. A name without a counter gets ` (1)`, ` (2)` … before the extension, as in v1's
* uploads.
*/
function* freeNames(filename) {
	yield filename;
	const counted = COUNTED.exec(filename)?.groups;
	if (counted) yield* continuedCounter(counted);
	const dot = filename.lastIndexOf(".");
	const [stem, extension] = dot > 0 ? [filename.slice(0, dot), filename.slice(dot)] : [filename, ""];
	for (let i = 1;; i++) yield `${stem} (${i})${extension}`;
}
function* continuedCounter(name) {
	for (let i = BigInt(name.count) + 1n;; i++) yield `${name.stem}${i.toString().padStart(name.count.length, "0")}${name.tail}`;
}
/**
* Returns the number that v1's file counter reads in a name, behind its prefix and an underscore; 0
* when there is none. A longer number would lose digits, and its successor would be the same
* number.
*/
function counterIn(afterPrefix) {
	return Number(/^(\d{1,15})(_|$)/.exec(afterPrefix)?.[1] ?? 0);
}
// src/upstreams/assets/outputs.ts
/** Creates the names for a single process, which makes the files of a user one after the other. */
function createOutputNames() {
	const reservedCounters = new LRUCache(atMost(MAX_REMEMBERED_COUNTERS));
	return {
		reserveCounter(user, start, floor) {
			const key = JSON.stringify([user, start]);
			const next = 1 + Math.max(floor, reservedCounters.get(key) ?? 0);
			reservedCounters.set(key, next);
			return next;
		},
		claimName: () => true
	};
}
const MAX_REMEMBERED_COUNTERS = 1e4;
/**
* How long a listed counter is used: a job that saves thousands of files does not list them for
* each.
*/
const FLOOR_VALID_MS = 1e3;
const COUNTED_NAME = /^(.*)_\d{5,}_(\.[^.]*)?$/s;
/** Creates files with names that are unique for each user. */
function createOutputs(deps) {
	const { ledger, blobs, withLock, names, clock, highestUsedElsewhere } = deps;
	const recentFloors = new LRUCache({ ...atMost(MAX_REMEMBERED_COUNTERS) });
	const highestUsed = async (user, request) => {
		const start = counterPrefix(request);
		const used = (await ledger.assets.outputPaths(user, start)).map((path) => counterIn(path.slice(start.length)));
		const elsewhere = await highestUsedElsewhere?.(user, request) ?? 0;
		return used.reduce((most, counter) => Math.max(most, counter), elsewhere);
	};
	/**
	* Returns the next counter of a job. The reserved numbers are above those that the job has used
	* since the listing.
	*/
	const nextCounterOfJob = async ({ user, jobId }, request) => {
		const key = JSON.stringify([jobId, counterPrefix(request)]);
		const known = recentFloors.get(key);
		const isRecent = known && clock.now() - known.atMs < FLOOR_VALID_MS && clock.now() >= known.atMs;
		const floor = isRecent ? known.floor : await highestUsed(user, request);
		if (!isRecent) recentFloors.set(key, {
			floor,
			atMs: clock.now()
		});
		return await names.reserveCounter(user, counterPrefix(request), floor);
	};
	const isNameTaken = async (user, filePath) => !await names.claimName(user, filePath) || await ledger.assets.byFilePath(user, filePath) !== void 0;
	const findFreeName = async (user, file) => {
		const [, prefix, extension = ""] = COUNTED_NAME.exec(file.name) ?? [];
		let name = file.name;
		let floor;
		while (prefix !== void 0 && await isNameTaken(user, `${folderOf(file)}${name}`)) {
			const request = {
				...file,
				prefix
			};
			floor ??= await highestUsed(user, request);
			const counter = await names.reserveCounter(user, counterPrefix(request), floor);
			name = `${prefix}_${String(counter).padStart(5, "0")}_${extension}`;
		}
		return name;
	};
	/**
	* Records an output. Resolves when the record exists; the lock is held until the marker is gone,
	* too.
	*/
	const record = (row) => new Promise((resolve, reject) => {
		const recordAndUnmark = async () => {
			if (!await blobs.isInPlace(row.hash)) return resolve(false);
			reached("after-bytes-stored");
			await ledger.assets.insert(row, void 0, "transient");
			resolve(true);
			await ledger.committed();
			await blobs.markRecorded(row.hash);
		};
		withLock(row.hash, recordAndUnmark).catch(reject);
	});
	return {
		/**
		* Returns the number after the highest one used or reserved, so that parallel jobs never get
		* the same.
		*/
		nextCounter: (maker, request) => withLock(namesLockKey(maker.user), () => nextCounterOfJob(maker, request)),
		/**
		* Makes a written file an asset of the job. It survives `kill -9` when this resolves. Returns
		* `null` when the bytes were removed meanwhile, together with the last record of the same
		* bytes.
		*/
		commit: ({ user, ...made }) => withLock(namesLockKey(user), async () => {
			const { jobId, file } = made;
			const name = await findFreeName(user, file);
			const id = randomUUID();
			const isRecorded = await record({
				id,
				user,
				hash: file.hash,
				sizeBytes: file.sizeBytes,
				contentType: file.contentType,
				filePath: `${folderOf(file)}${name}`,
				tagsJson: null,
				createdAtMs: clock.now(),
				expiresAtMs: null,
				jobId
			});
			reached("after-asset-recorded");
			return isRecorded ? toOutput({
				id,
				name,
				...made
			}) : null;
		})
	};
}
function toOutput({ file, ...saved }) {
	return {
		node_id: saved.nodeId,
		name: saved.name,
		type: saved.name.endsWith(".latent") ? "latent" : outputTypeOf(file.contentType),
		content_type: file.contentType,
		size_bytes: file.sizeBytes,
		id: saved.id,
		hash: file.hash,
		job_id: saved.jobId,
		x_subfolder: file.subfolder,
		...file.temp && { x_temp: true },
		...file.websocket && { x_websocket: true }
	};
}
function folderOf({ temp, subfolder }) {
	return `${temp ? "temp" : "output"}/${subfolder === "" ? "" : `${subfolder}/`}`;
}
function counterPrefix(request) {
	return `${folderOf(request)}${request.prefix}_`;
}
function namesLockKey(user) {
	return `names of ${user}`;
}
// src/upstreams/assets/job-files.ts
function createJobFiles(deps) {
	const { ledger, blobs, nodes } = deps;
	const withLock = createKeyedMutex();
	const assets = new Assets({
		...deps,
		withLock
	});
	return {
		withLock,
		blobs,
		assets,
		outputs: createOutputs({
			...deps,
			withLock
		}),
		outputRetention: createOutputRetention({
			...deps,
			ledger,
			withLock
		}),
		/** `reads`: the assets of an accepted job, which stay although they expire. */
		fileLookupOf: (user, reads) => ({
			nodes,
			byId: (id) => assets.find(user, id, reads),
			byPath: (filePath) => assets.findByPath(user, filePath, reads),
			pathOf: (hash) => blobs.pathOf(hash)
		}),
		holdAssets: (ids) => assets.hold(ids)
	};
}
/** The file operations of the port. */
function createAssetApi(assets) {
	return {
		createAsset: ({ user }, upload) => assets.create(user, upload),
		assetFromHash: ({ user }, request) => assets.fromHash(user, request),
		hasBlob: ({ user }, hash) => assets.hasBlob(user, hash),
		asset: ({ user }, id) => assets.get(user, id),
		deleteAsset: ({ user }, id) => assets.remove(user, id),
		content: ({ user }, id, range) => assets.content(user, id, range)
	};
}
/** Returns the URL of the node library for worker threads. */
function nodeLibraryUrl() {
	return packageUrl("dist/nodes/library.js").href;
}
// src/upstreams/jobs/live-job.ts
/** Creates a job that was just accepted, or that must be run again from the start. */
function newJob(job) {
	return {
		attempts: 0,
		hasBegun: false,
		status: "queued",
		startedAtMs: null,
		completedAtMs: null,
		outputs: [],
		error: null,
		progress: null,
		cachedNodes: null,
		ui: {},
		feed: new JobFeed({ status: "queued" }),
		stop: new StopRequest(),
		position: null,
		...job
	};
}
/** Writes the long texts of a job in steps. `toRow` then finds them written. */
async function writeTexts({ workflow, provenance }) {
	await writeJson(workflow);
	if (provenance) await writeJson(provenance);
}
/** Returns everything of a job that is stored. */
async function toRow(job) {
	return {
		id: job.id,
		user: job.user,
		order: job.order,
		createdAtMs: job.createdAtMs,
		workflowJson: await writeJson(job.workflow),
		provenanceJson: job.provenance && await writeJson(job.provenance),
		metadataJson: job.metadata && stringifyJson(job.metadata),
		...toPatch(job)
	};
}
/** Returns the JSON of a value, which is written once. */
async function writeJson(lazy) {
	if (lazy.json !== void 0) return lazy.json;
	const value = readValue(lazy);
	const json = await runInSteps(stringifySteps(value));
	rememberJson(lazy, value, json);
	return json;
}
/** To parse longer texts again takes more than a turn of the event loop. */
const MAX_UNLOADED_CHARS = 524288;
/** Keeps only the texts that `toRow` made in memory, since the job has to wait. */
function unloadJob({ workflow, provenance }) {
	for (const lazy of [workflow, provenance]) if (lazy?.json !== void 0 && lazy.json.length <= MAX_UNLOADED_CHARS) unload(lazy);
}
/** Returns the part of a stored job that changes while the job lives. */
function toPatch(job) {
	return {
		outputsJson: stringifyJson(job.outputs),
		extrasJson: stringifyJson(extrasFor(job)),
		...patchOf(job)
	};
}
/**
* Returns that part of a finished job, written in steps: the results of thousands of nodes are too
* long to write in one turn of the event loop.
*/
async function toEndPatch(job) {
	return {
		outputsJson: await runInSteps(stringifySteps(job.outputs)),
		extrasJson: await runInSteps(stringifySteps(extrasFor(job))),
		...patchOf(job)
	};
}
function patchOf(job) {
	return {
		status: job.status,
		startedAtMs: job.startedAtMs,
		completedAtMs: job.completedAtMs,
		expiresAtMs: job.expiresAtMs,
		errorJson: job.error && stringifyJson(job.error)
	};
}
function extrasFor(job) {
	const { progress, cachedNodes, ui, targets, attempts, reads, traceparent } = job;
	const extras = {
		progress,
		cachedNodes,
		ui,
		targets,
		attempts,
		reads: [...reads]
	};
	return traceparent === void 0 ? extras : {
		...extras,
		traceparent
	};
}
/** Returns an unfinished job of an earlier process, to be run from the start. */
function jobFromRow(row) {
	const extras = extrasOf(row);
	return newJob({
		id: row.id,
		user: row.user,
		order: row.order,
		createdAtMs: row.createdAtMs,
		expiresAtMs: row.expiresAtMs,
		workflow: createLazyJson(void 0, row.workflowJson),
		targets: extras.targets,
		provenance: row.provenanceJson === null ? null : createLazyJson(void 0, row.provenanceJson),
		metadata: metadataOf(row),
		reads: new Set(extras.reads),
		attempts: extras.attempts,
		traceparent: extras.traceparent
	});
}
/** Returns the state of a stored job. */
function jobStateOf(row) {
	const { progress, cachedNodes, ui } = extrasOf(row);
	return {
		id: row.id,
		user: row.user,
		createdAtMs: row.createdAtMs,
		metadata: metadataOf(row),
		status: row.status,
		startedAtMs: row.startedAtMs,
		completedAtMs: row.completedAtMs,
		expiresAtMs: row.expiresAtMs,
		outputs: parseJson(row.outputsJson),
		error: row.errorJson === null ? null : parseJson(row.errorJson),
		progress,
		cachedNodes,
		ui
	};
}
/**
* Returns the expiry to show. An unfinished job is kept until the retention time after its end,
* however long it waits and runs.
*/
function shownExpiryMs({ createdAtMs, completedAtMs, expiresAtMs }, nowMs) {
	if (completedAtMs !== null || expiresAtMs > nowMs) return expiresAtMs;
	return nowMs + expiresAtMs - createdAtMs;
}
/** Returns a job as v2 shows it. After its retention a job is `expired` and shows no results. */
function showJob(job, nowMs) {
	const expired = job.completedAtMs !== null && job.expiresAtMs <= nowMs;
	return {
		id: job.id,
		status: expired ? "expired" : job.status,
		created_at: isoTime(job.createdAtMs),
		started_at: job.startedAtMs === null ? null : isoTime(job.startedAtMs),
		completed_at: job.completedAtMs === null ? null : isoTime(job.completedAtMs),
		expires_at: isoTime(shownExpiryMs(job, nowMs)),
		queue_position: job.position ?? null,
		progress: job.progress,
		outputs: expired ? [] : job.outputs.map((output) => showOutput(output, job.id, nowMs)),
		error: job.error,
		metrics: metricsOf(job),
		urls: jobLinks(job.id),
		...job.metadata && { metadata: job.metadata },
		...job.cachedNodes && { x_cached_nodes: job.cachedNodes },
		...!expired && { x_ui: { ...job.ui } }
	};
}
function metricsOf({ createdAtMs, startedAtMs, completedAtMs }) {
	const ended = startedAtMs !== null && completedAtMs !== null;
	return {
		queue_ms: startedAtMs === null ? null : startedAtMs - createdAtMs,
		execution_ms: ended ? completedAtMs - startedAtMs : null
	};
}
function extrasOf(row) {
	const extras = row.extrasJson === null ? null : parseJson(row.extrasJson);
	if (!isJsonObject(extras ?? void 0)) throw new Error(`job ${row.id} is stored without its extras`);
	return extras;
}
function metadataOf(row) {
	return row.metadataJson === null ? null : parseJson(row.metadataJson);
}
// src/upstreams/validation/shown-value.ts
/** A refusal repeats a value several times, and a client may send one of 100 MB. */
const MAX_CHARS = 1e4;
const SHORTENED_MARK = "… (shortened)";
/** Returns a client's text as a refusal repeats it. */
function shownText(text) {
	return shorten(text, MAX_CHARS);
}
/** Returns a client's value as a refusal repeats it: a long one is cut. */
function shownValue(value) {
	let left = MAX_CHARS;
	const show = (item) => {
		left -= 1;
		if (typeof item === "string") return showText(item);
		if (Array.isArray(item)) return mapWhileLeft(item, show);
		if (!isJsonObject(item)) return item;
		const showMember = (name) => [showText(name), show(item[name] ?? null)];
		return Object.fromEntries(mapWhileLeft(Object.keys(item), showMember));
	};
	const showText = (text) => {
		const shown = shorten(text, Math.max(0, left));
		left -= shown.length;
		return shown;
	};
	const mapWhileLeft = (items, map) => {
		const mapped = [];
		for (const item of items) {
			if (left <= 0) break;
			mapped.push(map(item));
		}
		return mapped;
	};
	return show(value);
}
function shorten(text, maxChars) {
	return text.length <= maxChars ? text : text.slice(0, maxChars) + SHORTENED_MARK;
}
// src/upstreams/validation/coerce-literal.ts
/** The types that v1 converts. Any other literal stays unchanged. */
const COERCIONS = {
	INT: toInt,
	FLOAT: toFloat,
	STRING: (value) => ({
		ok: true,
		value: pythonStr(value)
	}),
	BOOLEAN: (value) => ({
		ok: true,
		value: isTruthyInPython(value)
	})
};
/** Python has the same limit: the time to parse an integer grows with the square of its length. */
const MAX_INT_DIGITS = 4300;
const TOO_MANY_DIGITS = `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion`;
/** Applies v1's conversion for a declared type. References to files are not changed. */
function coerce(type, value) {
	const plain = unwrap(value);
	if (isAssetRef(plain)) return {
		ok: true,
		value: plain
	};
	const convert = typeof type === "string" && Object.hasOwn(COERCIONS, type) ? COERCIONS[type] : void 0;
	return convert ? convert(plain) : {
		ok: true,
		value: plain
	};
}
/**
* Unwraps a literal: clients write `{"__value__": X}` for an X that could be mistaken for something
* else.
*/
function unwrap(value) {
	return isJsonObject(value) && Object.hasOwn(value, "__value__") ? value["__value__"] ?? null : value;
}
/** Compares two numbers: -1, 0 or 1. Exact for integers beyond a double. */
function compareNumbers(a, b) {
	const [left, right] = Number.isSafeInteger(a) && Number.isSafeInteger(b) ? [Number(a), Number(b)] : [exactNumber(a), exactNumber(b)];
	return left < right ? -1 : Number(left > right);
}
/** Returns a limit or value as v1 prints it: floats keep their decimal point. */
function numberText(type, value) {
	return type === "FLOAT" ? pythonFloat(Number(pythonRepr(value))) : pythonRepr(value);
}
function toInt(value) {
	if (typeof value === "boolean") return {
		ok: true,
		value: Number(value)
	};
	if (typeof value === "string") return intFromText(value);
	if (typeof value !== "number" && !(value instanceof LosslessNumber)) return refuseValue(`int() argument must be a string, a bytes-like object or a real number, not '${pythonType(value)}'`);
	const text = String(value);
	if (text.length > MAX_INT_DIGITS) return refuseValue(TOO_MANY_DIGITS);
	if (/^-?\d+$/.test(text)) return {
		ok: true,
		value: toJsonInteger(text)
	};
	const number = Number(text);
	if (Number.isNaN(number)) return refuseValue("cannot convert float NaN to integer");
	if (!Number.isFinite(number)) return refuseValue("cannot convert float infinity to integer");
	return {
		ok: true,
		value: toJsonInteger(BigInt(Math.trunc(number)).toString())
	};
}
/** Reads an integer as Python does, with blanks around it and single underscores between digits. */
function intFromText(text) {
	if (text.length > MAX_INT_DIGITS) return refuseValue(TOO_MANY_DIGITS);
	const trimmed = text.trim();
	return /^[+-]?\d+(_\d+)*$/.test(trimmed) ? {
		ok: true,
		value: toJsonInteger(BigInt(trimmed.replaceAll("_", "").replace(/^\+/, "")).toString())
	} : refuseValue(`invalid literal for int() with base 10: ${pythonRepr(shownText(text))}`);
}
/**
* Converts to a float. Not-a-number is refused: it would pass every limit and make `/history`
* invalid JSON.
*/
function toFloat(value) {
	if (typeof value === "boolean") return {
		ok: true,
		value: Number(value)
	};
	if (value !== null && typeof value === "object" && !(value instanceof LosslessNumber)) return refuseValue(`float() argument must be a string or a real number, not '${pythonType(value)}'`);
	if (value === null) return refuseValue("float() argument must be a string or a real number, not 'NoneType'");
	const text = String(value).trim().replace(/(?<=\d)_(?=\d)/g, "");
	const number = text === "" || /^0[box]/i.test(text) ? NaN : Number(text);
	if (Number.isFinite(number)) return {
		ok: true,
		value: typeof value === "string" ? number : value
	};
	return refuseValue(`could not convert string to float: ${pythonRepr(shownText(typeof value === "string" ? value : text))}`);
}
function toJsonInteger(text) {
	const number = Number(text);
	return Number.isSafeInteger(number) ? number : new LosslessNumber(text);
}
function exactNumber(value) {
	const text = pythonRepr(value);
	return /^-?\d+$/.test(text) ? BigInt(text) : Number(text);
}
function refuseValue(reason) {
	return {
		ok: false,
		reason
	};
}
// src/upstreams/jobs/resolve-files.ts
/** The weight of one file look-up, in values. */
const FILE_WEIGHT = 20;
/** The number of values that are searched between two turns of the event loop. */
const VALUES_PER_TURN = 2e3;
/**
* Finds the assets that a workflow names, in `core/ASSET` objects anywhere or as plain names in
* file inputs.
*/
async function resolveFiles({ workflow, targets }, deps) {
	const needed = new Set(dependenciesFirst(workflow, targets));
	const resolution = {
		files: /* @__PURE__ */ new Map(),
		names: /* @__PURE__ */ new Map(),
		missing: [],
		unknownFiles: []
	};
	const nodes = Object.entries(workflow).map(([id, node]) => {
		return {
			id,
			node,
			fileInputs: (needed.has(id) ? deps.nodes.get(node.class_type)?.fileInputs : void 0) ?? []
		};
	});
	const resolved = [];
	let isChanged = false;
	const pause = yieldEvery(VALUES_PER_TURN);
	for (const each of nodes) await resolveNames(each, resolution, deps, pause);
	for (const { id, node, fileInputs } of nodes) {
		const refs = [];
		const step = pause(findAssetRefs(node.inputs, refs));
		if (step) await step;
		const plain = refs.length > 0 ? await withNames(node, refs, resolution, deps) : node;
		isChanged ||= plain !== node;
		noteOtherValues({
			id,
			node: plain,
			fileInputs
		}, resolution);
		resolved.push([id, plain]);
	}
	const { files, names, missing, unknownFiles } = resolution;
	return {
		workflow: isChanged ? Object.fromEntries(resolved) : workflow,
		files,
		assetIds: new Set(names.values()),
		missing,
		unknownFiles
	};
}
async function withNames(node, refs, resolution, deps) {
	const names = /* @__PURE__ */ new Map();
	for (const ref of refs) names.set(ref, await resolveReference(ref, resolution, deps));
	const inputs = mapAssetRefs(node.inputs, (ref) => names.get(ref) ?? ref);
	return {
		...node,
		inputs
	};
}
/** Resolves a reference. The id alone decides; hash and file path are hints. */
async function resolveReference(reference, resolution, deps) {
	const id = assetRefText(reference, "id") ?? "";
	const asset = id === "" || hasControlCharacter(id) ? void 0 : await deps.byId(id);
	if (!asset) {
		resolution.missing.push(id);
		return reference;
	}
	return addFile(asset, annotatedName(asset.filePath), resolution, deps);
}
function addFile(asset, wanted, resolution, deps) {
	const name = (resolution.names.get(wanted) ?? asset.id) === asset.id ? wanted : `${asset.id}/${wanted}`;
	resolution.names.set(name, asset.id);
	resolution.files.set(name, {
		path: deps.pathOf(asset.hash),
		hash: asset.hash
	});
	return name;
}
async function resolveNames({ id, node, fileInputs }, resolution, deps, pause) {
	for (const input of fileInputs) {
		const value = unwrapped(inputsOf(node)[input]);
		if (typeof value !== "string" || resolution.files.has(value)) continue;
		const asset = value.length <= 4096 ? await findByName(value, deps) : void 0;
		await pause(FILE_WEIGHT);
		if (asset) addFile(asset, value, resolution, deps);
		else resolution.unknownFiles.push({
			nodeId: id,
			input,
			value
		});
	}
}
/** Reports numbers and objects, which name no file. */
function noteOtherValues({ id, node, fileInputs }, { unknownFiles }) {
	for (const input of fileInputs) {
		const given = unwrapped(inputsOf(node)[input]);
		if (given === void 0 || typeof given === "string" || Array.isArray(given)) continue;
		if (isAssetRef(given)) continue;
		unknownFiles.push({
			nodeId: id,
			input,
			value: stringifyJson(given)
		});
	}
}
function unwrapped(value) {
	return value === void 0 ? void 0 : unwrap(value);
}
async function findByName(value, deps) {
	if (hasControlCharacter(value)) return void 0;
	const [, name = value, folder = "input"] = ANNOTATED_NAME.exec(value) ?? [];
	const path = posix.normalize(name);
	return await deps.byPath(`${folder}/${path}`) ?? (folder === "input" ? await deps.byPath(path) : void 0);
}
/**
* Returns a file path as v1 writes it in an input: by name below `input/`, elsewhere with its
* folder in brackets.
*/
function annotatedName(filePath) {
	const [, folder, name = filePath] = /^(input|output|temp)\/(.+)$/s.exec(filePath) ?? [];
	return folder === "output" || folder === "temp" ? `${name} [${folder}]` : name;
}
// src/upstreams/validation/validate-link.ts
/** Checks a link against the node and the slot that it comes from. */
function validateLink(input, spec, value, { graph, nodes }) {
	const info = {
		input_name: input,
		input_config: inputConfig(spec)
	};
	if (value.length !== 2) return { error: errorEntry("bad_linked_input", "Bad linked input, must be a length-2 list of [node_id, slot_index]", input, {
		...info,
		received_value: shownValue(value)
	}) };
	const [from = null, slot = null] = value;
	const source = typeof from === "string" && Object.hasOwn(graph, from) ? graph[from] : void 0;
	const def = source && nodes.get(classNameOf(source));
	if (!def) return { thrown: {
		type: "KeyError",
		message: pythonRepr(shownValue(from))
	} };
	const index = indexOf(slot);
	if (index === void 0) return { thrown: {
		type: "TypeError",
		message: `tuple indices must be integers or slices, not ${pythonType(slot)}`
	} };
	const received = def.outputs.at(index)?.type;
	if (received === void 0) return { thrown: {
		type: "IndexError",
		message: "tuple index out of range"
	} };
	if (isCompatible(received, spec[0])) return { link: [from, index] };
	const details = `${input}, received_type(${received}) mismatch input_type(${typeof spec[0] === "string" ? spec[0] : pythonRepr(spec[0])})`;
	const more = {
		...info,
		received_type: received,
		linked_node: [from, slot]
	};
	return { error: errorEntry("return_type_mismatch", "Return type mismatch between linked nodes", details, more) };
}
function indexOf(slot) {
	return typeof slot === "number" && Number.isInteger(slot) ? slot : void 0;
}
/** Returns the class name of a node; empty when it has none. */
function classNameOf(node) {
	const name = node["class_type"];
	return typeof name === "string" ? name : "";
}
/**
* True when a type fits. `*` fits everything; a list with commas fits when one of its types does.
*/
function isCompatible(received, wanted) {
	if (typeof wanted !== "string") return false;
	if (received === wanted || received === "*" || wanted === "*") return true;
	const types = wanted.split(",").map((type) => type.trim());
	return received.split(",").some((type) => types.includes(type.trim()));
}
/** Returns `[type, options]`, always with options: v1 shows `{}` where a node declared none. */
function inputConfig([type, options = {}]) {
	return [type, options];
}
// src/upstreams/validation/validate-node.ts
/**
* Checks the inputs of one node in the order of their declaration. Linked nodes are not checked.
*/
function validateNode(id, graph, context) {
	const node = graph[id];
	const { nodes, unknownFiles } = context;
	const def = nodes.get(classNameOf(node));
	const validation = {
		errors: [],
		coerced: {},
		links: []
	};
	if (!def) return {
		...validation,
		thrown: {
			type: "KeyError",
			message: "'inputs'"
		}
	};
	const read = readInputs(node["inputs"]);
	if ("thrown" in read) return {
		...validation,
		...read
	};
	const { inputs } = read;
	for (const { input, spec, required } of declaredInputs(def)) {
		if (!Object.hasOwn(inputs, input)) {
			if (required) validation.errors.push(errorEntry("required_input_missing", "Required input is missing", input, { input_name: input }));
			continue;
		}
		const value = inputs[input];
		const literal = Array.isArray(value) ? { value } : validateLiteral(input, spec, value, def);
		const found = Array.isArray(value) || "value" in literal && linkOf(literal.value) ? validateLink(input, spec, unwrap(value), {
			graph,
			nodes
		}) : literal;
		if ("thrown" in found) return {
			...validation,
			thrown: found.thrown
		};
		if ("error" in found) validation.errors.push(found.error);
		else if ("link" in found) {
			validation.links.push({
				input,
				spec,
				link: found.link
			});
			validation.coerced[input] = unwrap(value);
		} else validation.coerced[input] = found.value;
	}
	const thrown = fileFault(def, inputs);
	if (thrown) return {
		...validation,
		thrown
	};
	const missingFiles = unknownFiles?.get(id) ?? [];
	validation.errors.push(...customErrors(def, inputs), ...missingFiles.map(missingFile));
	return validation;
}
/**
* Reads the inputs. v1 tests if a name is in the inputs: a list or a text has none, and on `null`
* the test fails.
*/
function readInputs(inputs) {
	if (isJsonObject(inputs)) return { inputs };
	if (typeof inputs === "string" || Array.isArray(inputs)) return { inputs: {} };
	const message = inputs === void 0 ? "'inputs'" : `argument of type '${pythonType(inputs)}' is not iterable`;
	return { thrown: {
		type: inputs === void 0 ? "KeyError" : "TypeError",
		message
	} };
}
/**
* Returns the error of a file input that is not a text. v1 searches for a loader's file whatever
* the value is, so such a value ends the validation.
*/
function fileFault(def, inputs) {
	for (const input of def.fileInputs ?? []) {
		if (!Object.hasOwn(inputs, input)) continue;
		const value = unwrap(inputs[input] ?? null);
		if (typeof value === "string" || isAssetRef(value)) continue;
		return {
			type: "AttributeError",
			message: `'${pythonType(linkOf(value) ? null : value)}' object has no attribute 'endswith'`
		};
	}
}
/** Returns v1's error for a loader whose file is missing. */
function missingFile({ input, value }) {
	const details = `${input} - Invalid image file: ${shownText(value)}`;
	return errorEntry("custom_validation_failed", CUSTOM_FAILED, details, { input_name: input });
}
const CUSTOM_FAILED = "Custom validation failed for node";
function* declaredInputs(def) {
	for (const [input, spec] of Object.entries(def.required)) yield {
		input,
		spec,
		required: true
	};
	for (const [input, spec] of Object.entries(def.optional ?? {})) yield {
		input,
		spec,
		required: false
	};
}
function validateLiteral(input, spec, given, def) {
	const [type, options = {}] = spec;
	const info = {
		input_name: input,
		input_config: inputConfig(spec)
	};
	const coerced = coerce(type, given);
	if (!coerced.ok) {
		const shown = shownValue(unwrap(given));
		const details = `${input}, ${pythonStr(shown)}, ${coerced.reason}`;
		const more = {
			...info,
			received_value: shown,
			exception_message: coerced.reason
		};
		return { error: errorEntry("invalid_input_type", `Failed to convert an input value to a ${String(type)} value`, details, more) };
	}
	if (def.fileInputs?.includes(input)) return { value: coerced.value };
	const error = limitError(input, spec, coerced.value) ?? listError(input, type, options, coerced.value);
	return error ? { error } : { value: coerced.value };
}
function limitError(input, spec, value) {
	const [type, { min, max } = {}] = spec;
	if (type !== "INT" && type !== "FLOAT") return void 0;
	const isSmall = min !== void 0 && compareNumbers(value, min) < 0;
	const isLarge = max !== void 0 && compareNumbers(value, max) > 0;
	if (!isSmall && !isLarge) return void 0;
	const info = {
		input_name: input,
		input_config: inputConfig(spec),
		received_value: value
	};
	if (isSmall) return errorEntry("value_smaller_than_min", `Value ${numberText(type, value)} smaller than min of ${numberText(type, min)}`, input, info);
	return errorEntry("value_bigger_than_max", `Value ${numberText(type, value)} bigger than max of ${numberText(type, max ?? null)}`, input, info);
}
/** Checks legacy lists only: the original leaves the newer `COMBO` to the node. */
function listError(input, type, options, value) {
	if (typeof type === "string" || type.some((option) => option === value)) return void 0;
	return notInListError(input, [type, options], shownValue(value));
}
function customErrors(def, inputs) {
	const reason = def.validate?.(inputs);
	if (reason === void 0) return [];
	const [input = ""] = Object.keys(def.required);
	const details = reason === "" ? input : `${input} - ${shownText(reason)}`;
	return [errorEntry("custom_validation_failed", CUSTOM_FAILED, details, { input_name: input })];
}
// src/upstreams/validation/validate-graph.ts
/** The weight of validating one node, in values. */
const NODE_WEIGHT = 10;
/** Validates each node that the outputs depend on once, its sources first. */
function* validateGraph(workflow, outputs, context) {
	const validations = /* @__PURE__ */ new Map();
	const causes = /* @__PURE__ */ new Map();
	const validate = (id) => {
		const validation = validateNode(id, workflow, context);
		validations.set(id, validation);
		if (!isValid(validation)) causes.set(id, id);
		return validation;
	};
	let cycle = [];
	for (const output of outputs) {
		if (validations.has(output)) continue;
		const found = yield* walk(output, {
			validate,
			validations,
			causes
		});
		if (cycle.length === 0) cycle = found;
	}
	return {
		validations,
		causes,
		cycle,
		failingOutputs: new Set(outputs.filter((id) => causes.has(id)))
	};
}
/** Returns the failing outputs by the node with errors on which they depend. */
function outputsByFailingNode({ validations, failingOutputs, causes }) {
	return targetsByFailingNode(failingOutputs, {
		causes,
		neededBy: (output) => [...reachableFrom(output, validations)],
		isFailing: (id) => !isValid(validations.get(id))
	});
}
/**
* Walks depth first with an explicit stack, as graphs may be deeper than the call stack. Returns a
* cycle if it finds one.
*/
function* walk(start, { validate, validations, causes }) {
	const onPath = /* @__PURE__ */ new Set([start]);
	const path = [{
		id: start,
		next: sources(validate(start))
	}];
	yield NODE_WEIGHT;
	let cycle = [];
	const markFailing = (id, cause) => {
		if (!causes.has(id)) causes.set(id, cause);
	};
	for (let top = path.at(-1); top; top = path.at(-1)) {
		const from = top.next.pop();
		if (from === void 0) {
			path.pop();
			onPath.delete(top.id);
			const parent = path.at(-1);
			if (parent && causes.has(top.id)) markFailing(parent.id, causes.get(top.id));
		} else if (onPath.has(from)) {
			markFailing(top.id, void 0);
			if (cycle.length > 0) continue;
			cycle = path.slice(path.findIndex(({ id }) => id === from)).map(({ id }) => id);
		} else if (validations.has(from)) {
			if (causes.has(from)) markFailing(top.id, causes.get(from));
		} else {
			onPath.add(from);
			path.push({
				id: from,
				next: sources(validate(from))
			});
			yield NODE_WEIGHT;
		}
	}
	return cycle;
}
function reachableFrom(start, validations) {
	const seen = /* @__PURE__ */ new Set();
	const open = [start];
	for (let id = open.pop(); id !== void 0; id = open.pop()) {
		const validation = validations.get(id);
		if (!validation || seen.has(id)) continue;
		seen.add(id);
		for (const from of sources(validation)) open.push(from);
	}
	return seen;
}
/** Returns the nodes from which a node takes values, the first one last. */
function sources({ links }) {
	return links.map(({ link }) => link[0]).toReversed();
}
function isValid(validation) {
	return validation !== void 0 && validation.errors.length === 0 && validation.thrown === void 0;
}
// src/upstreams/validation/validate-workflow.ts
/**
* Validates as v1 does, but all outputs or none, as the v2 service does. The details of a refusal
* have v1's own `error` and `node_errors`, so that the v1 side can repeat v1's answer exactly.
*/
function* validateSteps(workflow, { nodes, unknownFiles = [] }) {
	const found = findOutputs(workflow, nodes);
	if (!found.ok) return found;
	const outputs = found.value;
	const validation = yield* validateGraph(workflow, outputs, {
		nodes,
		unknownFiles: byNode(unknownFiles)
	});
	if (validation.failingOutputs.size > 0) return yield* refuseOutputs(workflow, validation);
	return ok({
		workflow: yield* withCoerced(workflow, validation.validations),
		outputs
	});
}
function byNode(files) {
	const grouped = /* @__PURE__ */ new Map();
	for (const file of files) addTo(grouped, file.nodeId, file);
	return grouped;
}
/** Returns the output nodes, or the first fault of the workflow as a whole, at which v1 stops. */
function findOutputs(workflow, nodes) {
	if (isUiFormat(workflow)) return refuseFormat();
	const invalidNode = findInvalidNode(workflow, nodes);
	if (invalidNode) return refuseNode(invalidNode);
	const outputs = Object.keys(workflow).filter((id) => nodes.get(workflow[id]?.class_type ?? "")?.outputNode);
	if (outputs.length === 0) return refuseWhole("prompt_no_outputs", "Prompt has no outputs", "");
	return ok(outputs);
}
function* refuseOutputs(workflow, validation) {
	const linksByTarget = firstLinks(validation);
	const byNode = [...yield* outputsByFailingNode(validation)].map(([id, outputs]) => {
		return [id, {
			errors: errorsOf(id, validation, linksByTarget),
			dependent_outputs: outputs,
			class_type: workflow[id]?.class_type ?? ""
		}];
	});
	const nodeErrors = Object.fromEntries(byNode);
	const details = byNode.filter(([id]) => validation.failingOutputs.has(id)).flatMap(([, { errors }]) => errors).map((error) => `${error.message}: ${error.details}`);
	if (validation.cycle.length > 0) details.push(`Dependency cycle: ${[...validation.cycle, validation.cycle[0]].join(" -> ")}`);
	return refuseWhole("prompt_outputs_failed_validation", "Prompt outputs failed validation", details.join("\n"), nodeErrors);
}
/** Returns the first link that leads to each node. */
function firstLinks({ validations }) {
	const links = [...validations.values()].flatMap((nodeValidation) => nodeValidation.links);
	return new Map(links.toReversed().map((link) => [link.link[0], link]));
}
/**
* Returns the errors. An exception at an output node is its own error. Elsewhere it is reported for
* the first link that leads to the node.
*/
function errorsOf(id, { validations, failingOutputs: failing }, linksByTarget) {
	const nodeValidation = validations.get(id);
	if (!nodeValidation?.thrown) return nodeValidation?.errors ?? [];
	const { type, message } = nodeValidation.thrown;
	const traceback = [`  in the validation of node ${id}\n`];
	if (failing.has(id)) return [errorEntry("exception_during_validation", "Exception when validating node", message, {
		exception_type: type,
		traceback
	})];
	const link = linksByTarget.get(id);
	const info = {
		...link ? {
			input_name: link.input,
			input_config: inputConfig(link.spec)
		} : {},
		exception_message: message,
		exception_type: type,
		traceback,
		...link ? { linked_node: link.link } : {}
	};
	return [errorEntry("exception_during_inner_validation", "Exception when validating inner node", message, info)];
}
function* withCoerced(workflow, validations) {
	const changed = /* @__PURE__ */ new Map();
	for (const [id, node] of Object.entries(workflow)) {
		const coerced = validations.get(id)?.coerced ?? {};
		if (Object.keys(coerced).some((input) => coerced[input] !== node.inputs[input])) changed.set(id, {
			...node,
			inputs: {
				...node.inputs,
				...coerced
			}
		});
		yield 1 + Object.keys(node.inputs ?? {}).length;
	}
	if (changed.size === 0) return workflow;
	const nodes = Object.entries(workflow).map(([id, node]) => [id, changed.get(id) ?? node]);
	return Object.fromEntries(nodes);
}
function findInvalidNode(workflow, nodes) {
	for (const [id, node] of Object.entries(workflow)) {
		const name = isJsonObject(node) ? node.class_type : void 0;
		if (name === void 0) return {
			id,
			message: "Cannot execute because a node is missing the class_type property.",
			contractError: MISSING_CLASS
		};
		if (typeof name !== "string") return {
			id,
			message: `Cannot execute because node ${pythonStr(shownValue(name))} does not exist.`,
			contractError: MISSING_CLASS
		};
		if (nodes.has(name)) continue;
		const shown = shownText(name);
		return {
			id,
			message: `Cannot execute because node ${shown} does not exist. The embedded engine has no class ${shown}; a remote v2 upstream that has it can run this workflow.`,
			contractError: UNKNOWN_CLASS
		};
	}
}
/** True for the editor's own format: lists of nodes and links instead of one node for each id. */
function isUiFormat(workflow) {
	return Array.isArray(workflow["nodes"]) || Array.isArray(workflow["links"]);
}
function refuseFormat() {
	return refuseWhole("invalid_prompt", "This is the editor’s own workflow format: export the workflow in API format.", "", {}, "workflow_format_ui");
}
/**
* Refuses a prompt for one node. v1 names such a node only in `error`; the contract lists it under
* `node_errors`.
*/
function refuseNode({ id, message, contractError }) {
	const details = {
		error: {
			type: "invalid_prompt",
			message,
			details: `Node ID '#${id}'`,
			extra_info: {}
		},
		node_errors: Object.fromEntries([[id, [contractError]]]),
		x_native: {}
	};
	return refuse(422, "invalid_workflow", message, { details });
}
function refuseWhole(type, message, details, nodeErrors = {}, code = "invalid_workflow") {
	return refuse(422, code, message, { details: {
		error: {
			type,
			message,
			details,
			extra_info: {}
		},
		...nodeErrorDetails(nodeErrors)
	} });
}
// src/upstreams/jobs/accept-job.ts
const QUEUE_FULL_RETRY_S = 5;
/**
* Accepts a submission: validates it, resolves its assets, checks the limit of the queue and the
* idempotency key, and stores the job durably.
*/
async function acceptJob({ user }, request, deps) {
	const outputs = findOutputs(request.workflow, deps.nodes);
	if (!outputs.ok) return outputs;
	const resolved = await resolveFiles({
		workflow: request.workflow,
		targets: outputs.value
	}, deps.fileLookupOf(user));
	const valid = await runInSteps(validateSteps(request.workflow, {
		nodes: deps.nodes,
		unknownFiles: resolved.unknownFiles
	}));
	if (!valid.ok) return valid;
	const { workflow } = valid.value;
	const held = await deps.holdAssets(resolved.assetIds);
	try {
		const missing = [...resolved.missing, ...held.missing];
		if (missing.length > 0) return refuseMissing(missing);
		return await insertWithRoom({
			user,
			request,
			workflow,
			targets: outputs.value,
			reads: resolved.assetIds
		}, deps);
	} finally {
		setImmediate(held.release);
	}
}
async function insertWithRoom(accepted, deps) {
	const reservation = await deps.reserve(accepted.user);
	if (!reservation) return refuse(429, "queue_full", "the queue is full", { retryAfterSeconds: QUEUE_FULL_RETRY_S });
	try {
		return await insertJob(accepted, deps);
	} finally {
		reservation.release();
	}
}
async function insertJob(accepted, deps) {
	const { user, request } = accepted;
	const key = request.idempotencyKey;
	const nowMs = deps.clock.now();
	const provenance = await runInSteps(coercedProvenance(request, accepted.workflow));
	const job = newJob({
		id: request.jobId ?? randomUUID(),
		user,
		order: request.order ?? await deps.nextOrder(),
		createdAtMs: nowMs,
		expiresAtMs: nowMs + deps.retentionMs,
		workflow: createLazyJson(accepted.workflow, textOf(accepted)),
		targets: accepted.targets,
		provenance: provenance && createLazyJson(provenance),
		metadata: request.metadata ?? null,
		reads: accepted.reads,
		traceparent: request.traceparent
	});
	if (!await storeJob(job, key, deps)) return refuse(422, "idempotency_key_reuse", "this idempotency key has been used before");
	reached("after-job-insert");
	return ok(job);
}
/** Returns the text that came with the workflow, if nothing in it was coerced. */
function textOf({ workflow, request }) {
	return workflow === request.workflow ? request.workflowJson : void 0;
}
/** Stores a job, as begun if a thread is free for it. `false`: its key was used before. */
async function storeJob(job, key, { ledger, slots, durability, clock }) {
	await writeTexts(job);
	const begins = slots?.reserve(job.id) === true;
	if (begins) Object.assign(job, {
		attempts: job.attempts + 1,
		hasBegun: true
	});
	const begun = {
		status: "running",
		startedAtMs: clock.now()
	};
	let isNew = false;
	try {
		const row = await toRow(begins ? {
			...job,
			...begun
		} : job);
		isNew = await ledger.jobs.insert(row, key, durability);
		return isNew;
	} finally {
		if (begins && !isNew) slots?.release(job.id);
	}
}
/**
* Saved files contain the prompt as validation coerced it, with file names as the client wrote
* them.
*/
function* coercedProvenance({ provenance, workflow: submitted }, coerced) {
	if (!provenance || coerced === submitted || !isJsonObject(provenance.prompt)) return provenance ?? null;
	const nodes = [];
	for (const [id, node] of Object.entries(provenance.prompt)) {
		const [before, after] = [submitted[id]?.inputs ?? {}, coerced[id]?.inputs ?? {}];
		if (!isJsonObject(node) || !isJsonObject(node["inputs"])) {
			nodes.push([id, node]);
			continue;
		}
		const inputs = Object.entries(node["inputs"]).map(([name, value]) => [name, isSameJson(before[name] ?? null, value) ? after[name] ?? value : value]);
		nodes.push([id, {
			...node,
			inputs: Object.fromEntries(inputs)
		}]);
		yield 1 + inputs.length;
	}
	return {
		...provenance,
		prompt: Object.fromEntries(nodes)
	};
}
/** True for equal values. Long texts are mostly the same object. */
function isSameJson(a, b) {
	return a === b || stringifyJson(a) === stringifyJson(b);
}
function refuseMissing(missing) {
	const details = { missing_ids: [...new Set(missing)] };
	return refuse(422, "missing_asset", "the workflow names assets that do not exist", { details });
}
// src/upstreams/jobs/job-reader.ts
const DEFAULT_PAGE = 50;
const SCAN_PAGE = 100;
/** The calls of the port that read jobs. */
function createJobReader(options) {
	const { ledger, clock, statesOf } = options;
	const rowOf = async ({ user }, id) => {
		const row = await ledger.jobs.get(id);
		return row?.user === user ? row : void 0;
	};
	const stateOf = async (caller, id) => {
		const live = options.find?.(id);
		if (live) return live.user === caller.user ? live : void 0;
		const row = await rowOf(caller, id);
		return row && (await statesOf([row]))[0];
	};
	const list = ({ user }, query) => listJobs(user, query, options);
	return {
		list,
		async get(caller, jobId) {
			const job = await stateOf(caller, jobId);
			return job ? ok(showJob(job, clock.now())) : notFound();
		},
		async workflow(caller, jobId) {
			const row = await rowOf(caller, jobId);
			if (!row) return notFound();
			return ok({
				workflow: parseJson(row.workflowJson),
				format: "api"
			});
		},
		async events(caller, jobId, signal) {
			const own = options.ownEvents(caller, jobId, signal);
			if (own) return ok(own);
			const job = await stateOf(caller, jobId);
			if (!job) return notFound();
			if (options.subscribe && !IS_TERMINAL[job.status]) return ok(await options.subscribe(jobId, signal));
			const { status, x_cached_nodes: cached } = showJob(job, clock.now());
			return ok(endedJobEvents({
				status,
				queue_position: null,
				...cached && { x_cached_nodes: cached }
			}));
		},
		/**
		* Finds the newest job with these labels. The result is certain, since the ledger has all jobs.
		*/
		async recover(caller, { metadata }) {
			const page = await list(caller, {
				limit: 1,
				...metadata && { metadata }
			});
			if (!page.ok) return page;
			return ok({
				job: page.value.jobs[0] ?? null,
				isCertain: true,
				isListed: true
			});
		}
	};
}
/** Returns one page of a user's jobs, newest first. */
async function listJobs(user, query, { ledger, clock, statesOf }) {
	const limit = query.limit ?? DEFAULT_PAGE;
	let before = query.cursor;
	if (before !== void 0 && (await ledger.jobs.get(before))?.user !== user) return refuse(400, "invalid_cursor", "this cursor is not one of ours");
	const found = [];
	for (;;) {
		const rows = await ledger.jobs.list(user, {
			limit: SCAN_PAGE,
			...before !== void 0 && { before }
		});
		for (const job of await statesOf(rows)) if (matches(job, query, clock.now())) found.push(job);
		before = rows.at(-1)?.id;
		if (rows.length < SCAN_PAGE || found.length > limit) break;
	}
	const page = found.slice(0, limit);
	const last = found.length > limit ? page.at(-1) : void 0;
	const jobs = page.map((job) => showJob(job, clock.now()));
	return ok({
		jobs,
		...last && { next_cursor: last.id }
	});
}
function matches(job, { status, metadata }, nowMs) {
	if (status && !status.includes(showJob(job, nowMs).status)) return false;
	return Object.entries(metadata ?? {}).every(([name, value]) => job.metadata?.[name] === value);
}
/** Reports another user's job as missing. */
function notFound() {
	return refuse(404, "not_found", "no such job");
}
// src/upstreams/jobs/job-calls.ts
/** Accepts, reads and cancels jobs. Workers take them from the queue and run them. */
function createJobCalls(deps) {
	const { ledger, clock, runs, queue, runner } = deps;
	const reader = createJobReader({
		ledger,
		clock,
		...runs
	});
	const acceptOptions = {
		...deps,
		reserve: createReservations(queue, deps.maxQueued),
		nextOrder: () => queue.nextOrder(),
		durability: "soon",
		...queue.slots && { slots: queue.slots }
	};
	/**
	* Queues a job, or starts it in the slot that was reserved for it. Returns the job as it is
	* before.
	*/
	async function enqueue(job) {
		if (!job.hasBegun) unloadJob(job);
		const shown = job.hasBegun && showJob({
			...job,
			position: 0
		}, clock.now());
		await queue.add([job]);
		if (shown) {
			reached("after-run-begin");
			return shown;
		}
		const [position = null] = await queue.positions([job.id]);
		return showJob({
			...job,
			position
		}, clock.now());
	}
	return {
		...reader,
		async submit(caller, request) {
			const accepted = await acceptJob(caller, request, acceptOptions);
			if (!accepted.ok) return accepted;
			const job = accepted.value;
			const workflow = readValue(job.workflow);
			const release = runs.add(job);
			const synced = ledger.synced();
			try {
				const shown = await enqueue(job);
				await synced;
				return ok(Object.assign(shown, { x_workflow: workflow }));
			} finally {
				release();
			}
		},
		async cancel(caller, jobId) {
			const found = await reader.get(caller, jobId);
			if (!found.ok || IS_TERMINAL[found.value.status]) return found;
			if (!await queue.cancel(jobId)) return await reader.get(caller, jobId);
			if (await queue.remove(jobId)) {
				const job = await runs.seize(jobId);
				if (job) await runner.end(job, { status: "canceled" });
			} else await runs.recordCancel(jobId);
			return await reader.get(caller, jobId);
		}
	};
}
/**
* Reserves slots in a queue for jobs that are being accepted. Each process counts only its own
* reservations.
*/
function createReservations(queue, limit) {
	const reserved = [];
	/** Reserves a slot for a job of this user; `undefined` when the queue is full. */
	return async (user) => {
		const others = [...reserved];
		reserved.push(user);
		const release = () => void reserved.splice(reserved.indexOf(user), 1);
		try {
			const [all, own] = await Promise.all([queue.waiting(), queue.waitingOf(user)]);
			if (hasQueueCapacity({
				waiting: all + others.length,
				ofUser: own + others.filter((other) => other === user).length,
				limit
			})) return { release };
		} catch (error) {
			release();
			throw error;
		}
		release();
	};
}
/**
* True when another job of a user may wait. Above the limit, a tenth more is reserved for users
* without a waiting job, so that the jobs of one user cannot fill the queue.
* @internal
*/
function hasQueueCapacity({ waiting, ofUser, limit }) {
	return waiting < (ofUser > 0 ? limit : limit + Math.ceil(limit / 10));
}
// src/upstreams/jobs/job-lifecycle.ts
/** Returns the job as it is when it is over. A cancel during the last node still counts. */
function toEndedJob(job, at) {
	const end = job.stop.reason === "canceled" ? { status: "canceled" } : at.end;
	return {
		...job,
		status: end.status,
		error: end.status === "failed" ? end.error : null,
		completedAtMs: at.atMs,
		expiresAtMs: at.atMs + at.retentionMs
	};
}
/** The end of a job whose workers have crashed too often. */
function workerLost(attempts) {
	return {
		status: "failed",
		error: crashedTooOften(attempts)
	};
}
// src/upstreams/jobs/job-runner.ts
/** Runs the jobs that a worker takes from the queue, and ends them. */
var JobRunner = class {
	#options;
	#runs = /* @__PURE__ */ new Map();
	constructor(options) {
		this.#options = options;
	}
	async run(id, stop) {
		const claim = await this.#options.runs.claim(id, stop);
		if (claim.kind === "run") return await this.#runClaimed(claim.run);
		if (claim.kind === "end") await this.end(claim.job, claim.end);
		return "over";
	}
	/** Ends a job that the queue does not run again. */
	async giveUp(id, reason) {
		const { runs, log } = this.#options;
		if (reason instanceof Error) log.error({
			event: "job.run_failed",
			err: reason,
			job: id
		}, "a job could not be run");
		let job;
		try {
			job = await runs.seize(id);
			if (job) await this.end(job, "deaths" in reason ? workerLost(reason.deaths) : failed());
		} catch (error) {
			log.error({
				event: "job.end_not_stored",
				err: error,
				job: id
			}, "the end of a job could not be stored");
			job?.feed.end();
		}
	}
	/** Ends a job that does not run here. */
	async end(job, end) {
		await this.#removeEarlierFiles(job);
		await this.#finish(job, end);
	}
	async #runClaimed(run) {
		const { id } = run.job;
		this.#runs.get(id)?.onLeaseLost();
		this.#runs.set(id, run);
		try {
			const end = await this.#runNodes(run.job).catch((error) => this.#repeatLater(run, error));
			await run.drain();
			return await this.#finishRun(run, end);
		} finally {
			if (this.#runs.get(id) === run) this.#runs.delete(id);
		}
	}
	/** Rejects, so that the queue tries the run again. Its worker has not died. */
	async #repeatLater(run, error) {
		await run.drain();
		await this.#options.runs.requeue(run);
		throw error;
	}
	async #runNodes(job) {
		await this.#removeEarlierFiles(job);
		try {
			return await this.#options.threads.run(job);
		} catch (error) {
			if (this.#options.runs.isShared && isRedisAway(error)) throw error;
			const facts = {
				event: "job.run_failed",
				err: error,
				job: job.id
			};
			this.#options.log.error(facts, "a job could not be run");
			return failed();
		}
	}
	async #finishRun(run, end) {
		if (!run.isLost) {
			if (end.status === "interrupted" || run.isUnpublished && end.status !== "canceled") {
				await this.#options.runs.requeue(run);
				return "interrupted";
			}
			if (await this.#finish(run.job, end) !== "stale") return "over";
		}
		await this.#discardResults(run);
		return "over";
	}
	async #finish(job, end) {
		const { runs, outputRetention, retentionMs, clock } = this.#options;
		const ended = toEndedJob(job, {
			end,
			atMs: clock.now(),
			retentionMs
		});
		const result = await runs.end(job, ended);
		if (result === "cancel") return await this.#finish(job, { status: "canceled" });
		if (result === "stale") return result;
		await outputRetention.extend(ended);
		await this.#removeEarlierFiles(job, new Set(job.outputs.map((output) => output.id)));
		return result;
	}
	/** Removes the results that a worker has made since it lost its job. */
	async #discardResults(run) {
		const { ledger, assets, runs } = this.#options;
		const { job } = run;
		run.onLeaseLost();
		for (const { id, job_id: maker } of job.outputs) {
			const row = maker === job.id ? await ledger.assets.get(id) : void 0;
			if (row) await assets.removeAsset(row);
		}
		await runs.discarded(job);
	}
	/** Removes the files that other runs of a job have made. */
	async #removeEarlierFiles({ id }, own = NONE) {
		const { ledger, assets, runs } = this.#options;
		if (!runs.isShared) return;
		for (const asset of await ledger.assets.ofJob(id)) if (!own.has(asset.id)) await assets.removeAsset(asset);
	}
};
const NONE = /* @__PURE__ */ new Set();
function failed() {
	return {
		status: "failed",
		error: internalError()
	};
}
// src/upstreams/jobs/run-reporter.ts
/** Creates the reporter of one run of a job. */
function createRunReporter(job, clock) {
	const state = {
		done: 0,
		total: 0,
		value: 0,
		node: null
	};
	const emit = (event) => job.feed.emit(event);
	const progress = (at = {}) => {
		job.progress = snapshot(state, at);
		emit({
			event: "progress",
			data: job.progress
		});
	};
	const output = (stored) => {
		job.outputs.push(stored);
		const withStep = stored.x_websocket === true && { x_with_step: true };
		emit({
			event: "output",
			data: {
				...showOutput(stored, job.id, clock.now()),
				...withStep
			}
		});
	};
	const handlers = {
		begin({ cached, total, done }) {
			job.cachedNodes = cached;
			Object.assign(state, {
				total,
				done
			});
			emit({
				event: "status",
				data: {
					status: job.status,
					queue_position: null,
					x_cached_nodes: cached
				}
			});
			progress();
		},
		started({ nodeId, classType }) {
			state.node = {
				id: nodeId,
				classType
			};
			emit({
				event: "x_node",
				data: {
					node_id: nodeId,
					phase: "started"
				}
			});
			progress();
		},
		step: ({ step, steps }) => progress({
			step,
			steps
		}),
		preview: ({ data }) => emit({
			event: "preview",
			data
		}),
		text: ({ nodeId, text }) => emit({
			event: "x_text",
			data: {
				node_id: nodeId,
				text
			}
		}),
		finished(message) {
			for (const stored of message.reused ?? []) output(stored);
			const ui = message.uiJson === void 0 ? void 0 : parseJson(message.uiJson);
			if (ui) setMember(job.ui, message.nodeId, ui);
			state.done++;
			const shown = ui ? { ui } : message.reused && { ui: null };
			emit({
				event: "x_node",
				data: {
					node_id: message.nodeId,
					phase: "finished",
					...shown
				}
			});
		}
	};
	return {
		apply: (message) => handlers[message.type](message),
		output,
		/** Emits the last progress of a job when all its nodes are done. */
		complete() {
			state.node = null;
			progress();
		},
		current: () => ({
			nodeId: state.node?.id ?? null,
			classType: state.node?.classType ?? null
		})
	};
}
/**
* Returns a snapshot. `value` never decreases, even when a node restarts its steps for every item
* of a list.
*/
function snapshot(state, { step, steps }) {
	const within = step === void 0 || !steps ? 0 : Math.min(1, Math.max(0, step / steps));
	const value = state.total === 0 ? 0 : Math.min(1, (state.done + within) / state.total);
	state.value = Math.max(state.value, value);
	return {
		value: state.value,
		nodes_done: state.done,
		nodes_total: state.total,
		current_node: state.node?.id ?? null,
		current_node_class: state.node?.classType ?? null,
		step: step ?? null,
		steps: steps ?? null,
		message: state.node && messageOf(state.node.classType, {
			step,
			steps
		})
	};
}
function messageOf(classType, at) {
	return at.step === void 0 ? classType : `${classType}: step ${at.step} of ${at.steps}`;
}
// src/upstreams/jobs/files-on-disk.ts
/**
* How long a thread is awaited: one that ended too early never reports that it has synced its
* files.
*/
const THREAD_SYNC_MS = 100;
/**
* Resolves when the files of a job survive a power cut; `undefined` when they already do. The
* thread syncs them after it has reported the end of the job. If it does not, they are synced here.
*/
function filesOnDisk(job, flags, deps) {
	if (job.outputs.length === 0 || areOnDisk(flags)) return void 0;
	return syncFiles(job, flags, deps);
}
async function syncFiles(job, flags, deps) {
	const { value: notified } = Atomics.waitAsync(flags, RUN_FLAG.filesOnDisk, 0);
	await completesWithin(THREAD_SYNC_MS, Promise.resolve(notified));
	if (areOnDisk(flags)) return;
	try {
		await deps.syncFiles(job.outputs.flatMap(({ hash }) => hash ?? []));
	} catch (error) {
		const facts = {
			event: "job.files_not_synced",
			err: error,
			job: job.id
		};
		deps.log.error(facts, "files of a job could not be synced: a power cut may take them");
	}
}
function areOnDisk(flags) {
	return Atomics.load(flags, RUN_FLAG.filesOnDisk) !== 0;
}
// src/upstreams/jobs/run-on-worker.ts
/** The grace period when the process is shutting down. */
const SHUTDOWN_GRACE_MS = 1e3;
/** Runs one job on a worker thread and returns how it ended. Rejects when Redis was unavailable. */
async function runOnWorker(job, thread, deps) {
	const resolved = await deps.resolve(job);
	if (resolved.missing.length + resolved.unknownFiles.length > 0) return missingAsset(resolved);
	if (job.stop.reason !== void 0) return endOf({ kind: "stopped" }, job, deps.timeLimitMs);
	const flags = createRunFlags();
	const reporter = createRunReporter(job, deps.clock);
	const release = enforceStop(job, {
		flags,
		thread,
		reporter,
		...deps
	});
	job.filesOnDisk = () => filesOnDisk(job, new Int32Array(flags), deps);
	try {
		const end = await exchangeMessages({
			job,
			thread,
			reporter,
			request: await toRunRequest(job, resolved, {
				flags,
				...deps
			})
		}, deps);
		if (end.kind === "succeeded") reporter.complete();
		return endOf(end, {
			stop: job.stop,
			...reporter.current()
		}, deps.timeLimitMs);
	} finally {
		release();
	}
}
/** Handles the messages of the worker in their order, including commits to disk. */
async function exchangeMessages({ job, thread, reporter, request }, deps) {
	let away;
	const answer = async (message) => {
		try {
			const value = await deps.answer(job, message);
			if (message.kind === "save" && value !== null) reporter.output(value);
			thread.reply({
				type: "reply",
				id: message.id,
				value
			});
		} catch (error) {
			deps.log.error({
				event: "worker.request_failed",
				err: error,
				job: job.id
			}, "a request of a worker failed");
			if (isRedisAway(error)) away ??= { error };
			const { code } = error;
			const failure = `the engine could not do this: ${code ?? "an internal error"}`;
			thread.reply({
				type: "reply",
				id: message.id,
				failure,
				...code !== void 0 && { code }
			});
		}
	};
	const handler = createOrderedHandler((message) => message.type === "question" ? answer(message) : reporter.apply(message));
	const end = await thread.run(request, (message) => handler.add(message));
	await handler.done();
	if (away && end.kind === "failed") throw away.error;
	return end;
}
/** Handles items one after the other, at once when no other item waits. */
function createOrderedHandler(handle) {
	const waiting = [];
	let handling;
	let isBusy = false;
	let failure;
	const handleWaiting = async () => {
		isBusy = true;
		try {
			for (let item = waiting.shift(); item && !failure; item = waiting.shift()) {
				const handled = handle(item);
				if (handled) await handled;
			}
		} catch (cause) {
			failure = { cause };
		}
		isBusy = false;
	};
	return {
		add(item) {
			waiting.push(item);
			if (!isBusy) handling = handleWaiting();
		},
		/** Resolves when all items are handled. Rejects when one could not be handled. */
		async done() {
			await handling;
			if (failure) throw failure.cause;
		}
	};
}
/**
* Stops the job at its time limit. A stop first sets a flag that the node checks. After the grace
* period it terminates the thread. Call the returned function when the run has ended.
*/
function enforceStop(job, options) {
	const { flags, thread, timeLimitMs, clock } = options;
	const cancelTimeLimit = clock.callAfter(timeLimitMs, () => job.stop.request("timeout"));
	let cancelTermination;
	const onStop = () => {
		Atomics.store(new Int32Array(flags), RUN_FLAG.stop, 1);
		cancelTermination = clock.callAfter(graceMsOf(job, options), () => void thread.terminate());
	};
	const forget = job.stop.onRequest(onStop);
	return () => {
		forget();
		cancelTimeLimit();
		cancelTermination?.();
	};
}
/**
* Returns the grace period. Without a running node the general one applies: the flag is checked
* before the next node.
*/
function graceMsOf(job, { stopGraceMs, nodes, reporter }) {
	const isClosing = job.stop.reason === "shutdown";
	const node = nodes.get(reporter.current().classType ?? "");
	return Math.min(stopGraceMs, node?.stopGraceMs ?? Infinity, isClosing ? SHUTDOWN_GRACE_MS : Infinity);
}
async function toRunRequest(job, { workflow, files }, { flags, memoryLimitBytes }) {
	const isUnchanged = workflow === readValue(job.workflow);
	return {
		type: "run",
		user: job.user,
		workflowJson: await writeJson(isUnchanged ? job.workflow : createLazyJson(workflow)),
		targets: job.targets,
		files,
		provenanceJson: job.provenance && await writeJson(job.provenance),
		memoryLimitBytes,
		hasBegun: job.hasBegun,
		flags
	};
}
function endOf(end, job, timeLimitMs) {
	const { reason } = job.stop;
	if (reason === "canceled") return { status: "canceled" };
	if (end.kind === "succeeded") return { status: "succeeded" };
	if (end.kind === "failed") return {
		status: "failed",
		error: parseJson(end.errorJson)
	};
	if (reason === "shutdown") return { status: "interrupted" };
	const { nodeId = null, classType = null } = job;
	if (reason === "timeout") {
		const message = `the job ran longer than its limit of ${timeLimitMs / 1e3} seconds`;
		return {
			status: "failed",
			error: jobError("timeout", message, {
				exceptionType: "TimeoutError",
				nodeId,
				classType
			})
		};
	}
	const lost = end.kind === "lost" ? end : {
		reason: "it stopped unasked",
		outOfMemory: false
	};
	const message = `the worker running this job was lost: ${lost.reason}`;
	const code = lost.outOfMemory ? "out_of_memory" : "worker_lost";
	const exceptionType = lost.outOfMemory ? "torch.OutOfMemoryError" : "RuntimeError";
	return {
		status: "failed",
		error: jobError(code, message, {
			exceptionType,
			nodeId,
			classType
		})
	};
}
function missingAsset({ missing, unknownFiles }) {
	const message = `files of this workflow no longer exist: ${[...missing, ...unknownFiles.map((file) => file.value)].join(", ")}`;
	return {
		status: "failed",
		error: jobError("missing_asset", message, { exceptionType: "FileNotFoundError" })
	};
}
// src/upstreams/jobs/worker-thread.ts
/** Creates a worker. Its thread does not exist before `start` or `run`. */
function createWorkerThread(setup) {
	let worker;
	let current;
	const finish = (ending, end) => {
		const ended = current;
		if (ended?.worker !== ending) return;
		current = void 0;
		ended.end(end);
	};
	const spawn = () => {
		const started = new Worker(packageUrl("dist/upstreams/execution/worker-entry.js"), {
			workerData: setup,
			execArgv: []
		});
		let failure;
		started.on("message", (messages) => {
			for (const message of messages) if (message.type === "end") finish(started, message.end);
			else if (current?.worker === started) current.onMessage(message);
		});
		started.on("error", (error) => failure = error);
		started.on("exit", (code) => {
			if (worker === started) worker = void 0;
			const reason = (failure && publicMessage(failure)) ?? `its thread ended with code ${code}`;
			const outOfMemory = failure?.code === "ERR_WORKER_OUT_OF_MEMORY";
			finish(started, {
				kind: "lost",
				reason,
				outOfMemory
			});
		});
		return started;
	};
	return {
		/** Runs a job. Only one job may run at a time. */
		run(request, onMessage) {
			const used = worker ??= spawn();
			used.postMessage(request);
			return new Promise((resolve) => current = {
				worker: used,
				onMessage,
				end: resolve
			});
		},
		reply: (message) => current?.worker.postMessage(message),
		/** Drops the results that the thread keeps for a user. */
		forget: (user) => worker?.postMessage({
			type: "forget",
			user
		}),
		/**
		* Starts the thread before its first job. Servers of tests do not call it, as they often end
		* without a job.
		*/
		start() {
			if (process.env["HOLDOVER_WARM_UP"] !== "off") worker ??= spawn();
		},
		/** Terminates the thread now. A running job ends as lost. */
		async terminate() {
			const ending = worker;
			worker = void 0;
			await ending?.terminate();
		}
	};
}
// src/upstreams/jobs/job-threads.ts
/** The worker threads of this process. `limits.concurrency` jobs run at a time. */
var JobThreads = class {
	#assignments;
	#runner;
	#spans;
	constructor(options) {
		const { limits, jobFiles, nodesModule = nodeLibraryUrl() } = options;
		this.#spans = options.spans;
		const { blobsDir } = jobFiles.blobs;
		const setup = {
			nodesModule,
			spoolDir: path.resolve(options.spoolDir),
			blobsDir,
			cacheBytes: limits.cacheBytes
		};
		this.#assignments = Array.from({ length: limits.concurrency }, () => ({
			thread: createWorkerThread(setup),
			job: void 0,
			lastUser: void 0
		}));
		this.#runner = {
			...options,
			timeLimitMs: limits.jobTimeMs,
			memoryLimitBytes: limits.jobMemoryBytes,
			stopGraceMs: limits.stopGraceMs,
			syncFiles: (hashes) => jobFiles.blobs.sync(hashes),
			resolve: ({ workflow, targets, user, reads }) => resolveFiles({
				workflow: readValue(workflow),
				targets
			}, jobFiles.fileLookupOf(user, reads))
		};
	}
	start() {
		for (const { thread } of this.#assignments) thread.start();
	}
	/** Runs the nodes of a job on a free thread. */
	async run(job) {
		const assignment = this.#choose(job.user);
		if (!assignment) throw new Error("a job was taken although all workers are busy");
		assignment.job = job;
		const endSpan = this.#spans?.began(job.traceparent);
		let outcome = "broken";
		try {
			const end = await runOnWorker(job, assignment.thread, this.#runner);
			outcome = end.status;
			return end;
		} finally {
			endSpan?.(outcome);
			assignment.job = void 0;
			assignment.lastUser = job.user;
		}
	}
	/** Makes the next job of this user compute all nodes anew. */
	forgetResults(user) {
		for (const { thread } of this.#assignments) thread.forget(user);
	}
	async terminate() {
		await Promise.all(this.#assignments.map(({ thread }) => thread.terminate()));
	}
	/**
	* Chooses a free thread. It prefers the one that last served this user, since it has the user's
	* cache.
	*/
	#choose(user) {
		const free = this.#assignments.filter((assignment) => !assignment.job);
		return free.find((assignment) => assignment.lastUser === user) ?? free.find((assignment) => assignment.lastUser === void 0) ?? free[0];
	}
};
// src/upstreams/jobs/worker-requests.ts
/** Answers in the main thread, since only this thread knows all jobs of a user. */
function createWorkerRequestHandler({ blobs, outputs, outputRetention, begin }) {
	const handlers = {
		begin: async (job) => {
			await begin(job);
			reached("after-run-begin");
			return null;
		},
		save: (job, { nodeId, file }) => outputs.commit({
			user: job.user,
			jobId: job.id,
			nodeId,
			file
		}),
		store: async (_job, { hash, bytes }) => {
			await blobs.put(hash, bytes);
			return null;
		},
		read: async (_job, hash) => await blobs.read(hash) ?? null,
		counter: ({ user, id: jobId }, request) => outputs.nextCounter({
			user,
			jobId
		}, request),
		alive: (job, wanted) => outputRetention.retain(wanted, job.user),
		handled: () => setImmediate$1(null)
	};
	return (job, request) => handlers[request.kind](job, request.ask);
}
// src/upstreams/jobs/create-engine.ts
/**
* The delay before threads start: a starting thread would slow down the first calls. A first job
* does not wait for this.
*/
const THREADS_DELAY_MS = 100;
/**
* Creates the engine of jobs, which accepts, runs, cancels and ends them. With `concurrency` 0 it
* runs none.
*/
async function createEngine(options) {
	const { limits, jobFiles, clock, queue, runs, cleanUp } = options;
	const { threads, runner } = openRunner(options);
	const unfinished = await runs.recover?.((job, end) => runner.end(job, end));
	await queue.add(unfinished ?? []);
	const worker = limits.concurrency === 0 ? void 0 : queue.worker({
		concurrency: limits.concurrency,
		run: (id, stop) => runner.run(id, stop),
		giveUp: (id, reason) => runner.giveUp(id, reason)
	});
	let cancelThreadStart = () => {};
	return {
		...createJobCalls({
			...options,
			...limits,
			...jobFiles,
			runner
		}),
		...createAssetApi(jobFiles.assets),
		health: async () => ok({
			status: "healthy",
			upstream: "embedded"
		}),
		forgetResults: (user) => threads.forgetResults(user),
		start() {
			if (worker) cancelThreadStart = clock.callAfter(THREADS_DELAY_MS, () => threads.start());
			worker?.start();
			cleanUp.start();
		},
		async close() {
			cancelThreadStart();
			await worker?.close();
			await threads.terminate();
			await cleanUp.close();
			await queue.close();
		}
	};
}
function openRunner(options) {
	const { limits, jobFiles, runs } = options;
	const begin = (job) => runs.begin(job);
	const plain = createWorkerRequestHandler({
		...jobFiles,
		begin
	});
	const answer = runs.isShared ? refuseLateFiles(plain, options) : plain;
	const threads = new JobThreads({
		...options,
		answer
	});
	const { retentionMs } = limits;
	return {
		threads,
		runner: new JobRunner({
			...options,
			...jobFiles,
			threads,
			retentionMs
		})
	};
}
/** Refuses or removes a file that a run makes after another process has taken its job over. */
function refuseLateFiles(answer, { ledger, runs, jobFiles }) {
	async function refuseStale(job) {
		if (!await runs.isCurrent(job)) throw new Error("another worker took this job over");
	}
	const save = async (job, question) => {
		await refuseStale(job);
		const saved = await answer(job, question);
		try {
			await refuseStale(job);
		} catch (error) {
			const output = saved;
			const row = output && await ledger.assets.get(output.id);
			if (row) await jobFiles.assets.removeAsset(row);
			throw error;
		}
		return saved;
	};
	return (job, question) => (question.kind === "save" ? save : answer)(job, question);
}
// src/upstreams/periodic-task.ts
/** A task that runs at an interval, and never twice at the same time. A failed run is logged. */
var PeriodicTask = class {
	#task;
	#options;
	#closing = new AbortController();
	#running = Promise.resolve();
	constructor(task, options) {
		this.#task = task;
		this.#options = options;
	}
	/** Runs `first`, then the task, then the task `everyMs` after the end of each run. */
	start(first) {
		this.#running = this.#repeat(async () => {
			await first();
			await this.#task();
		});
	}
	/** Stops, and waits for a run in progress. */
	async close() {
		this.#closing.abort();
		await this.#running;
	}
	async #repeat(first) {
		const { clock, everyMs, log, failure } = this.#options;
		const { signal } = this.#closing;
		for (let task = first; !signal.aborted; task = this.#task) {
			await task().catch((error) => log.error({
				event: failure.event,
				err: error
			}, failure.message));
			await clock.sleep(everyMs, signal).catch(() => {});
		}
	}
};
// src/upstreams/jobs/job-run.ts
/** One run of a job in this process. */
var JobRun = class {
	job;
	#options;
	#isLost = false;
	#isUnpublished = false;
	#isEnding = false;
	constructor(options) {
		this.job = options.job;
		this.#options = options;
		options.stop.onRequest((reason) => this.#onStop(reason));
	}
	/** True when another process may have the job now. */
	get isLost() {
		return this.#isLost;
	}
	/** True when the process is closing. */
	get isClosing() {
		return this.#options.stop.reason === "shutdown";
	}
	/** True when some events could not be published: subscribers lack events before the end. */
	get isUnpublished() {
		return this.#isUnpublished;
	}
	#onStop(reason) {
		if (reason === "lost") this.onLeaseLost();
		else if (reason === "canceled") this.#cancel();
		else this.#stop(reason);
	}
	#stop(reason) {
		this.job.stop.request(reason);
	}
	#cancel() {
		const { job } = this;
		this.#stop("canceled");
		if (job.status !== "running" || this.#isEnding) return;
		job.status = "canceling";
		job.feed.emit({
			event: "status",
			data: {
				...job.feed.status(),
				status: "canceling"
			}
		});
	}
	/** Stops the run: the lease of the job is lost, so another process may have the job now. */
	onLeaseLost() {
		if (!this.#isLost) this.#options.log.warn({
			event: "job.lease_lost",
			job: this.job.id
		}, "the lease of a job is lost: another process may take the job over");
		this.#isLost = true;
		this.#stop("shutdown");
	}
	/**
	* Called when the nodes have ended. Resolves when all events so far were published, or never will
	* be.
	*/
	async drain() {
		this.#isEnding = true;
		await this.#options.drain();
	}
	/** Applies the answer to written events. */
	applyResult(result) {
		if (result === "stale") this.onLeaseLost();
		if (result === "cancel") this.#cancel();
	}
	onPublishError(error) {
		this.#options.log.error({
			event: "job.publish_failed",
			err: error,
			job: this.job.id
		}, "could not publish events of a job");
		this.#isUnpublished = true;
		this.#stop("shutdown");
	}
};
// src/upstreams/job-engine.ts
/** Small enough for a laptop. v1 also runs one job at a time. */
const DEFAULT_LIMITS = {
	/** The number of jobs that run at the same time. */
	concurrency: 1,
	/** The number of jobs that may wait. Further ones are refused with `queue_full`. */
	maxQueued: 1e3,
	jobTimeMs: 18e5,
	jobMemoryBytes: 4 * 2 ** 30,
	/** How long a job may take to react to a stop, before its worker thread is terminated. */
	stopGraceMs: 1e4,
	/** The bytes of pixels and texts of users' previous prompts that each worker caches. */
	cacheBytes: 2 ** 30,
	/** How long a finished job and its outputs are retained. */
	retentionMs: 6048e5,
	/** Above this size of all assets, the oldest are removed. */
	assetBudgetBytes: 50 * 2 ** 30,
	sweepIntervalMs: 6e4
};
export { createMetrics as A, observeEvents as C, setValue as D, rememberJson as E, toJsonText as O, interceptCalls as S, readValue as T, jobLock as _, workerLost as a, openTracing as b, showJob as c, createJobFiles as d, createOutputNames as f, importedBytes as g, SWEEP_FAILURE as h, createEngine as i, withRouteLabel as j, unload as k, toEndPatch as l, freeNames as m, JobRun as n, jobFromRow as o, counterIn as p, PeriodicTask as r, jobStateOf as s, DEFAULT_LIMITS as t, toPatch as u, sweep as v, createLazyJson as w, V2_CALLS as x, sweepWithUnrecorded as y };
