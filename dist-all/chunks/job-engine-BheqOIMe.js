import { i as __require, t as __commonJSMin } from "./rolldown-runtime-C1I3wEg2.js";
import { t as packageUrl } from "./package-url-DJPOFjBU.js";
import { t as I } from "./index.min-rxNe_V92.js";
import { t as pythonFloat } from "./python-json-CIUrrCh_.js";
import { a as jobError, c as RUN_FLAG, i as internalError, l as createRunFlags, n as inputsOf, o as publicMessage, r as crashedTooOften } from "./run-plan-DcAnsz4e.js";
import { o as createKeyedMutex } from "./concurrency-B9CCxp_8.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { c as setMember, l as stringifyJson, n as isJsonObject, o as parseJson, t as LosslessNumber } from "./json-0U1hIHCx.js";
import { r as isRedisAway } from "./storage-errors-D5OCISk9.js";
import { o as linkOf, r as dependenciesFirst, t as addTo, u as targetsByFailingNode } from "./graph-_gvMsCf-.js";
import { i as ANNOTATED_NAME, t as hasControlCharacter } from "./control-characters-FG2-esMS.js";
import { i as refuse, r as ok } from "./job-api-DUOBoLDS.js";
import { D as pythonType, E as pythonStr, S as notInListError, T as pythonRepr, _ as MISSING_CLASS, a as StopRequest, c as JobFeed, g as outputTypeOf, i as mapAssetRefs, n as findAssetRefs, p as IS_TERMINAL, r as isAssetRef, s as stringifySteps, t as assetRefText, u as endedJobEvents, v as UNKNOWN_CLASS, w as isTruthyInPython, x as nodeErrorDetails, y as errorEntry } from "./asset-refs-DdHYYwNI.js";
import { n as yieldEvery, t as runInSteps } from "./event-loop-BDDWO5Ig.js";
import { a as showOutput, i as jobLinks, n as removeBlobIfUnused, r as isoTime, t as Assets } from "./assets-DOPAXKIN.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { i as isImported, n as IMPORTED } from "./store-DR2hv9Yc.js";
import path, { posix } from "node:path";
import { Worker } from "node:worker_threads";
import { randomUUID } from "node:crypto";
import { setImmediate as setImmediate$1 } from "node:timers/promises";
import { AsyncLocalStorage } from "node:async_hooks";
// node_modules/prom-client/lib/util.js
var require_util = /* @__PURE__ */ __commonJSMin(((exports) => {
	exports.getValueAsString = function getValueString(value) {
		if (Number.isNaN(value)) return "Nan";
		else if (!Number.isFinite(value)) {
			if (value < 0) return "-Inf";
			else return "+Inf";
		} else return `${value}`;
	};
	exports.removeLabels = function removeLabels(hashMap, labels, sortedLabelNames) {
		const hash = hashObject(labels, sortedLabelNames);
		delete hashMap[hash];
	};
	exports.setValue = function setValue(hashMap, value, labels) {
		const hash = hashObject(labels);
		hashMap[hash] = {
			value: typeof value === "number" ? value : 0,
			labels: labels || {}
		};
		return hashMap;
	};
	exports.setValueDelta = function setValueDelta(hashMap, deltaValue, labels, hash = "") {
		const value = typeof deltaValue === "number" ? deltaValue : 0;
		if (hashMap[hash]) hashMap[hash].value += value;
		else hashMap[hash] = {
			value,
			labels
		};
		return hashMap;
	};
	exports.getLabels = function(labelNames, args) {
		if (typeof args[0] === "object") return args[0];
		if (labelNames.length !== args.length) throw new Error(`Invalid number of arguments (${args.length}): "${args.join(", ")}" for label names (${labelNames.length}): "${labelNames.join(", ")}".`);
		const acc = {};
		for (let i = 0; i < labelNames.length; i++) acc[labelNames[i]] = args[i];
		return acc;
	};
	function fastHashObject(keys, labels) {
		if (keys.length === 0) return "";
		let hash = "";
		for (let i = 0; i < keys.length; i++) {
			const key = keys[i];
			const value = labels[key];
			if (value === void 0) continue;
			hash += `${key}:${value},`;
		}
		return hash;
	}
	function hashObject(labels, labelNames) {
		if (labelNames) return fastHashObject(labelNames, labels);
		const keys = Object.keys(labels);
		if (keys.length > 1) keys.sort();
		return fastHashObject(keys, labels);
	}
	exports.hashObject = hashObject;
	exports.isObject = function isObject(obj) {
		return obj !== null && typeof obj === "object";
	};
	exports.nowTimestamp = function nowTimestamp() {
		return Date.now() / 1e3;
	};
	var Grouper = class extends Map {
		/**
		* Adds the `value` to the `key`'s array of values.
		* @param {*} key Key to set.
		* @param {*} value Value to add to `key`'s array.
		* @returns {undefined} undefined.
		*/
		add(key, value) {
			if (this.has(key)) this.get(key).push(value);
			else this.set(key, [value]);
		}
	};
	exports.Grouper = Grouper;
}));
// node_modules/prom-client/lib/registry.js
var require_registry = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const { getValueAsString } = require_util();
	var Registry = class Registry {
		static get PROMETHEUS_CONTENT_TYPE() {
			return "text/plain; version=0.0.4; charset=utf-8";
		}
		static get OPENMETRICS_CONTENT_TYPE() {
			return "application/openmetrics-text; version=1.0.0; charset=utf-8";
		}
		constructor(regContentType = Registry.PROMETHEUS_CONTENT_TYPE) {
			this._metrics = {};
			this._collectors = [];
			this._defaultLabels = {};
			if (regContentType !== Registry.PROMETHEUS_CONTENT_TYPE && regContentType !== Registry.OPENMETRICS_CONTENT_TYPE) throw new TypeError(`Content type ${regContentType} is unsupported`);
			this._contentType = regContentType;
		}
		getMetricsAsArray() {
			return Object.values(this._metrics);
		}
		async getMetricsAsString(metrics) {
			const metric = typeof metrics.getForPromString === "function" ? await metrics.getForPromString() : await metrics.get();
			const name = escapeString(metric.name);
			const values = [`# HELP ${name} ${escapeString(metric.help)}`, `# TYPE ${name} ${metric.type}`];
			const defaultLabels = Object.keys(this._defaultLabels).length > 0 ? this._defaultLabels : null;
			const isOpenMetrics = this.contentType === Registry.OPENMETRICS_CONTENT_TYPE;
			for (const val of metric.values || []) {
				let { metricName = name, labels = {} } = val;
				const { sharedLabels = {} } = val;
				if (isOpenMetrics && metric.type === "counter") metricName = `${metricName}_total`;
				if (defaultLabels) labels = {
					...labels,
					...defaultLabels,
					...labels
				};
				const formattedLabels = formatLabels(labels, sharedLabels);
				const flattenedShared = flattenSharedLabels(sharedLabels);
				const labelParts = [...formattedLabels, flattenedShared].filter(Boolean);
				const labelsString = labelParts.length ? `{${labelParts.join(",")}}` : "";
				let fullMetricLine = `${metricName}${labelsString} ${getValueAsString(val.value)}`;
				const { exemplar } = val;
				if (exemplar && isOpenMetrics) {
					const formattedExemplars = formatLabels(exemplar.labelSet);
					fullMetricLine += ` # {${formattedExemplars.join(",")}} ${getValueAsString(exemplar.value)} ${exemplar.timestamp}`;
				}
				values.push(fullMetricLine);
			}
			return values.join("\n");
		}
		async metrics() {
			const isOpenMetrics = this.contentType === Registry.OPENMETRICS_CONTENT_TYPE;
			const promises = this.getMetricsAsArray().map((metric) => {
				if (isOpenMetrics && metric.type === "counter") metric.name = standardizeCounterName(metric.name);
				return this.getMetricsAsString(metric);
			});
			const resolves = await Promise.all(promises);
			return isOpenMetrics ? `${resolves.join("\n")}\n# EOF\n` : `${resolves.join("\n\n")}\n`;
		}
		registerMetric(metric) {
			if (this._metrics[metric.name] && this._metrics[metric.name] !== metric) throw new Error(`A metric with the name ${metric.name} has already been registered.`);
			this._metrics[metric.name] = metric;
		}
		clear() {
			this._metrics = {};
			this._defaultLabels = {};
		}
		async getMetricsAsJSON() {
			const metrics = [];
			const defaultLabelNames = Object.keys(this._defaultLabels);
			const promises = [];
			for (const metric of this.getMetricsAsArray()) promises.push(metric.get());
			const resolves = await Promise.all(promises);
			for (const item of resolves) {
				if (item.values && defaultLabelNames.length > 0) for (const val of item.values) {
					val.labels = Object.assign({}, val.labels);
					for (const labelName of defaultLabelNames) val.labels[labelName] = val.labels[labelName] || this._defaultLabels[labelName];
				}
				metrics.push(item);
			}
			return metrics;
		}
		removeSingleMetric(name) {
			delete this._metrics[name];
		}
		getSingleMetricAsString(name) {
			return this.getMetricsAsString(this._metrics[name]);
		}
		getSingleMetric(name) {
			return this._metrics[name];
		}
		setDefaultLabels(labels) {
			this._defaultLabels = labels;
		}
		resetMetrics() {
			for (const metric in this._metrics) this._metrics[metric].reset();
		}
		get contentType() {
			return this._contentType;
		}
		setContentType(metricsContentType) {
			if (metricsContentType === Registry.OPENMETRICS_CONTENT_TYPE || metricsContentType === Registry.PROMETHEUS_CONTENT_TYPE) this._contentType = metricsContentType;
			else throw new Error(`Content type ${metricsContentType} is unsupported`);
		}
		static merge(registers) {
			const regType = registers[0].contentType;
			for (const reg of registers) if (reg.contentType !== regType) throw new Error("Registers can only be merged if they have the same content type");
			const mergedRegistry = new Registry(regType);
			registers.reduce((acc, reg) => acc.concat(reg.getMetricsAsArray()), []).forEach(mergedRegistry.registerMetric, mergedRegistry);
			return mergedRegistry;
		}
	};
	function formatLabels(labels, exclude) {
		const { hasOwnProperty } = Object.prototype;
		const formatted = [];
		for (const [name, value] of Object.entries(labels)) if (!exclude || !hasOwnProperty.call(exclude, name)) formatted.push(`${name}="${escapeLabelValue(value)}"`);
		return formatted;
	}
	const sharedLabelCache = /* @__PURE__ */ new WeakMap();
	function flattenSharedLabels(labels) {
		const cached = sharedLabelCache.get(labels);
		if (cached) return cached;
		const flattened = formatLabels(labels).join(",");
		sharedLabelCache.set(labels, flattened);
		return flattened;
	}
	function escapeLabelValue(str) {
		if (typeof str !== "string") return str;
		return escapeString(str).replace(/"/g, "\\\"");
	}
	function escapeString(str) {
		return str.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
	}
	function standardizeCounterName(name) {
		return name.replace(/_total$/, "");
	}
	module.exports = Registry;
	module.exports.globalRegistry = new Registry();
}));
// node_modules/prom-client/lib/validation.js
var require_validation = /* @__PURE__ */ __commonJSMin(((exports) => {
	const util = __require("util");
	const metricRegexp = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
	const labelRegexp = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
	exports.validateMetricName = function(name) {
		return metricRegexp.test(name);
	};
	exports.validateLabelName = function(names = []) {
		return names.every((name) => labelRegexp.test(name));
	};
	exports.validateLabel = function validateLabel(savedLabels, labels) {
		for (const label in labels) if (!savedLabels.includes(label)) throw new Error(`Added label "${label}" is not included in initial labelset: ${util.inspect(savedLabels)}`);
	};
}));
// node_modules/prom-client/lib/metric.js
var require_metric = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Registry = require_registry();
	const { isObject } = require_util();
	const { validateMetricName, validateLabelName } = require_validation();
	/**
	* @abstract
	*/
	var Metric = class {
		constructor(config, defaults = {}) {
			if (!isObject(config)) throw new TypeError("constructor expected a config object");
			Object.assign(this, {
				labelNames: [],
				registers: [Registry.globalRegistry],
				aggregator: "sum",
				enableExemplars: false
			}, defaults, config);
			if (!this.registers) this.registers = [Registry.globalRegistry];
			if (!this.help) throw new Error("Missing mandatory help parameter");
			if (!this.name) throw new Error("Missing mandatory name parameter");
			if (!validateMetricName(this.name)) throw new Error("Invalid metric name");
			if (!validateLabelName(this.labelNames)) throw new Error("Invalid label name");
			if (this.collect && typeof this.collect !== "function") throw new Error("Optional \"collect\" parameter must be a function");
			if (this.labelNames) this.sortedLabelNames = [...this.labelNames].sort();
			else this.sortedLabelNames = [];
			this.reset();
			for (const register of this.registers) {
				if (this.enableExemplars && register.contentType === Registry.PROMETHEUS_CONTENT_TYPE) throw new TypeError("Exemplars are supported only on OpenMetrics registries");
				register.registerMetric(this);
			}
		}
		reset() {}
	};
	module.exports = { Metric };
}));
// node_modules/prom-client/lib/exemplar.js
var require_exemplar = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	/**
	* Class representing an OpenMetrics exemplar.
	*
	* @property {object} labelSet
	* @property {number} value
	* @property {number} [timestamp]
	* */
	var Exemplar = class {
		constructor(labelSet = {}, value = null) {
			this.labelSet = labelSet;
			this.value = value;
		}
		/**
		* Validation for the label set format.
		* https://github.com/OpenObservability/OpenMetrics/blob/d99b705f611b75fec8f450b05e344e02eea6921d/specification/OpenMetrics.md#exemplars
		*
		* @param {object} labelSet - Exemplar labels.
		* @throws {RangeError}
		* @return {void}
		*/
		validateExemplarLabelSet(labelSet) {
			let res = "";
			for (const [labelName, labelValue] of Object.entries(labelSet)) res += `${labelName}${labelValue}`;
			if (res.length > 128) throw new RangeError("Label set size must be smaller than 128 UTF-8 chars");
		}
	};
	module.exports = Exemplar;
}));
// node_modules/prom-client/lib/counter.js
/**
* Counter metric
*/
var require_counter = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const util = __require("util");
	const { hashObject, isObject, getLabels, removeLabels, nowTimestamp } = require_util();
	const { validateLabel } = require_validation();
	const { Metric } = require_metric();
	const Exemplar = require_exemplar();
	var Counter = class extends Metric {
		constructor(config) {
			super(config);
			this.type = "counter";
			this.defaultLabels = {};
			this.defaultValue = 1;
			this.defaultExemplarLabelSet = {};
			if (config.enableExemplars) {
				this.enableExemplars = true;
				this.inc = this.incWithExemplar;
			} else this.inc = this.incWithoutExemplar;
		}
		/**
		* Increment counter
		* @param {object} labels - What label you want to be incremented
		* @param {Number} value - Value to increment, if omitted increment with 1
		* @returns {object} results - object with information about the inc operation
		* @returns {string} results.labelHash - hash representation of the labels
		*/
		incWithoutExemplar(labels, value) {
			let hash = "";
			if (isObject(labels)) {
				hash = hashObject(labels, this.sortedLabelNames);
				validateLabel(this.labelNames, labels);
			} else {
				value = labels;
				labels = {};
			}
			if (value && !Number.isFinite(value)) throw new TypeError(`Value is not a valid number: ${util.format(value)}`);
			if (value < 0) throw new Error("It is not possible to decrease a counter");
			if (value === null || value === void 0) value = 1;
			setValue(this.hashMap, value, labels, hash);
			return { labelHash: hash };
		}
		/**
		* Increment counter with exemplar, same as inc but accepts labels for an
		* exemplar.
		* If no label is provided the current exemplar labels are kept unchanged
		* (defaults to empty set).
		*
		* @param {object} incOpts - Object with options about what metric to increase
		* @param {object} incOpts.labels - What label you want to be incremented,
		*                                  defaults to null (metric with no labels)
		* @param {Number} incOpts.value - Value to increment, defaults to 1
		* @param {object} incOpts.exemplarLabels - Key-value  labels for the
		*                                          exemplar, defaults to empty set {}
		* @returns {void}
		*/
		incWithExemplar({ labels = this.defaultLabels, value = this.defaultValue, exemplarLabels = this.defaultExemplarLabelSet } = {}) {
			const res = this.incWithoutExemplar(labels, value);
			this.updateExemplar(exemplarLabels, value, res.labelHash);
		}
		updateExemplar(exemplarLabels, value, hash) {
			if (exemplarLabels === this.defaultExemplarLabelSet) return;
			if (!isObject(this.hashMap[hash].exemplar)) this.hashMap[hash].exemplar = new Exemplar();
			this.hashMap[hash].exemplar.validateExemplarLabelSet(exemplarLabels);
			this.hashMap[hash].exemplar.labelSet = exemplarLabels;
			this.hashMap[hash].exemplar.value = value ? value : 1;
			this.hashMap[hash].exemplar.timestamp = nowTimestamp();
		}
		/**
		* Reset counter
		* @returns {void}
		*/
		reset() {
			this.hashMap = {};
			if (this.labelNames.length === 0) setValue(this.hashMap, 0);
		}
		async get() {
			if (this.collect) {
				const v = this.collect();
				if (v instanceof Promise) await v;
			}
			return {
				help: this.help,
				name: this.name,
				type: this.type,
				values: Object.values(this.hashMap),
				aggregator: this.aggregator
			};
		}
		labels(...args) {
			const labels = getLabels(this.labelNames, args) || {};
			return { inc: this.inc.bind(this, labels) };
		}
		remove(...args) {
			const labels = getLabels(this.labelNames, args) || {};
			validateLabel(this.labelNames, labels);
			return removeLabels.call(this, this.hashMap, labels, this.sortedLabelNames);
		}
	};
	function setValue(hashMap, value, labels = {}, hash = "") {
		if (hashMap[hash]) hashMap[hash].value += value;
		else hashMap[hash] = {
			value,
			labels
		};
		return hashMap;
	}
	module.exports = Counter;
}));
// node_modules/prom-client/lib/gauge.js
/**
* Gauge metric
*/
var require_gauge = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const util = __require("util");
	const { setValue, setValueDelta, getLabels, hashObject, isObject, removeLabels } = require_util();
	const { validateLabel } = require_validation();
	const { Metric } = require_metric();
	var Gauge = class extends Metric {
		constructor(config) {
			super(config);
			this.type = "gauge";
		}
		/**
		* Set a gauge to a value
		* @param {object} labels - Object with labels and their values
		* @param {Number} value - Value to set the gauge to, must be positive
		* @returns {void}
		*/
		set(labels, value) {
			value = getValueArg(labels, value);
			labels = getLabelArg(labels);
			set(this, labels, value);
		}
		/**
		* Reset gauge
		* @returns {void}
		*/
		reset() {
			this.hashMap = {};
			if (this.labelNames.length === 0) setValue(this.hashMap, 0, {});
		}
		/**
		* Increment a gauge value
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @param {Number} value - Value to increment - if omitted, increment with 1
		* @returns {void}
		*/
		inc(labels, value) {
			value = getValueArg(labels, value);
			labels = getLabelArg(labels);
			if (value === void 0) value = 1;
			setDelta(this, labels, value);
		}
		/**
		* Decrement a gauge value
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @param {Number} value - Value to decrement - if omitted, decrement with 1
		* @returns {void}
		*/
		dec(labels, value) {
			value = getValueArg(labels, value);
			labels = getLabelArg(labels);
			if (value === void 0) value = 1;
			setDelta(this, labels, -value);
		}
		/**
		* Set the gauge to current unix epoch
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @returns {void}
		*/
		setToCurrentTime(labels) {
			const now = Date.now() / 1e3;
			if (labels === void 0) this.set(now);
			else this.set(labels, now);
		}
		/**
		* Start a timer
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @returns {function} - Invoke this function to set the duration in seconds since you started the timer.
		* @example
		* var done = gauge.startTimer();
		* makeXHRRequest(function(err, response) {
		*	done(); //Duration of the request will be saved
		* });
		*/
		startTimer(labels) {
			const start = process.hrtime();
			return (endLabels) => {
				const delta = process.hrtime(start);
				const value = delta[0] + delta[1] / 1e9;
				this.set(Object.assign({}, labels, endLabels), value);
				return value;
			};
		}
		async get() {
			if (this.collect) {
				const v = this.collect();
				if (v instanceof Promise) await v;
			}
			return {
				help: this.help,
				name: this.name,
				type: this.type,
				values: Object.values(this.hashMap),
				aggregator: this.aggregator
			};
		}
		_getValue(labels) {
			const hash = hashObject(labels || {}, this.sortedLabelNames);
			return this.hashMap[hash] ? this.hashMap[hash].value : 0;
		}
		labels(...args) {
			const labels = getLabels(this.labelNames, args);
			validateLabel(this.labelNames, labels);
			return {
				inc: this.inc.bind(this, labels),
				dec: this.dec.bind(this, labels),
				set: this.set.bind(this, labels),
				setToCurrentTime: this.setToCurrentTime.bind(this, labels),
				startTimer: this.startTimer.bind(this, labels)
			};
		}
		remove(...args) {
			const labels = getLabels(this.labelNames, args);
			validateLabel(this.labelNames, labels);
			removeLabels.call(this, this.hashMap, labels, this.sortedLabelNames);
		}
	};
	function set(gauge, labels, value) {
		if (typeof value !== "number") throw new TypeError(`Value is not a valid number: ${util.format(value)}`);
		validateLabel(gauge.labelNames, labels);
		setValue(gauge.hashMap, value, labels);
	}
	function setDelta(gauge, labels, delta) {
		if (typeof delta !== "number") throw new TypeError(`Delta is not a valid number: ${util.format(delta)}`);
		validateLabel(gauge.labelNames, labels);
		const hash = hashObject(labels, gauge.sortedLabelNames);
		setValueDelta(gauge.hashMap, delta, labels, hash);
	}
	function getLabelArg(labels) {
		return isObject(labels) ? labels : {};
	}
	function getValueArg(labels, value) {
		return isObject(labels) ? value : labels;
	}
	module.exports = Gauge;
}));
// node_modules/prom-client/lib/histogram.js
/**
* Histogram
*/
var require_histogram = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const util = __require("util");
	const { getLabels, hashObject, isObject, removeLabels, nowTimestamp } = require_util();
	const { validateLabel } = require_validation();
	const { Metric } = require_metric();
	const Exemplar = require_exemplar();
	var Histogram = class extends Metric {
		constructor(config) {
			super(config, { buckets: [
				.005,
				.01,
				.025,
				.05,
				.1,
				.25,
				.5,
				1,
				2.5,
				5,
				10
			] });
			this.type = "histogram";
			this.defaultLabels = {};
			this.defaultExemplarLabelSet = {};
			this.enableExemplars = false;
			for (const label of this.labelNames) if (label === "le") throw new Error("le is a reserved label keyword");
			this.upperBounds = this.buckets;
			this.bucketValues = this.upperBounds.reduce((acc, upperBound) => {
				acc[upperBound] = 0;
				return acc;
			}, {});
			if (config.enableExemplars) {
				this.enableExemplars = true;
				this.bucketExemplars = this.upperBounds.reduce((acc, upperBound) => {
					acc[upperBound] = null;
					return acc;
				}, {});
				Object.freeze(this.bucketExemplars);
				this.observe = this.observeWithExemplar;
			} else this.observe = this.observeWithoutExemplar;
			Object.freeze(this.bucketValues);
			Object.freeze(this.upperBounds);
			if (this.labelNames.length === 0) this.hashMap = { [hashObject({})]: createBaseValues({}, this.bucketValues, this.bucketExemplars) };
		}
		/**
		* Observe a value in histogram
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @param {Number} value - Value to observe in the histogram
		* @returns {void}
		*/
		observeWithoutExemplar(labels, value) {
			observe.call(this, labels === 0 ? 0 : labels || {})(value);
		}
		observeWithExemplar({ labels = this.defaultLabels, value, exemplarLabels = this.defaultExemplarLabelSet } = {}) {
			observe.call(this, labels === 0 ? 0 : labels || {})(value);
			this.updateExemplar(labels, value, exemplarLabels);
		}
		updateExemplar(labels, value, exemplarLabels) {
			if (Object.keys(exemplarLabels).length === 0) return;
			const hash = hashObject(labels, this.sortedLabelNames);
			const bound = findBound(this.upperBounds, value);
			const { bucketExemplars } = this.hashMap[hash];
			let exemplar = bucketExemplars[bound];
			if (!isObject(exemplar)) {
				exemplar = new Exemplar();
				bucketExemplars[bound] = exemplar;
			}
			exemplar.validateExemplarLabelSet(exemplarLabels);
			exemplar.labelSet = exemplarLabels;
			exemplar.value = value;
			exemplar.timestamp = nowTimestamp();
		}
		async get() {
			const data = await this.getForPromString();
			data.values = data.values.map(splayLabels);
			return data;
		}
		async getForPromString() {
			if (this.collect) {
				const v = this.collect();
				if (v instanceof Promise) await v;
			}
			const values = Object.values(this.hashMap).map(extractBucketValuesForExport(this)).reduce(addSumAndCountForExport(this), []);
			return {
				name: this.name,
				help: this.help,
				type: this.type,
				values,
				aggregator: this.aggregator
			};
		}
		reset() {
			this.hashMap = {};
		}
		/**
		* Initialize the metrics for the given combination of labels to zero
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @returns {void}
		*/
		zero(labels) {
			const hash = hashObject(labels, this.sortedLabelNames);
			this.hashMap[hash] = createBaseValues(labels, this.bucketValues, this.bucketExemplars);
		}
		/**
		* Start a timer that could be used to logging durations
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @param {object} exemplarLabels - Object with labels for exemplar where key is the label key and value is label value. Can only be one level deep
		* @returns {function} - Function to invoke when you want to stop the timer and observe the duration in seconds
		* @example
		* var end = histogram.startTimer();
		* makeExpensiveXHRRequest(function(err, res) {
		* 	const duration = end(); //Observe the duration of expensiveXHRRequest and returns duration in seconds
		* 	console.log('Duration', duration);
		* });
		*/
		startTimer(labels, exemplarLabels) {
			return this.enableExemplars ? startTimerWithExemplar.call(this, labels, exemplarLabels)() : startTimer.call(this, labels)();
		}
		labels(...args) {
			const labels = getLabels(this.labelNames, args);
			validateLabel(this.labelNames, labels);
			return {
				observe: observe.call(this, labels),
				startTimer: startTimer.call(this, labels)
			};
		}
		remove(...args) {
			const labels = getLabels(this.labelNames, args);
			validateLabel(this.labelNames, labels);
			removeLabels.call(this, this.hashMap, labels, this.sortedLabelNames);
		}
	};
	function startTimer(startLabels) {
		return () => {
			const start = process.hrtime();
			return (endLabels) => {
				const delta = process.hrtime(start);
				const value = delta[0] + delta[1] / 1e9;
				this.observe(Object.assign({}, startLabels, endLabels), value);
				return value;
			};
		};
	}
	function startTimerWithExemplar(startLabels, startExemplarLabels) {
		return () => {
			const start = process.hrtime();
			return (endLabels, endExemplarLabels) => {
				const delta = process.hrtime(start);
				const value = delta[0] + delta[1] / 1e9;
				this.observe({
					labels: Object.assign({}, startLabels, endLabels),
					value,
					exemplarLabels: Object.assign({}, startExemplarLabels, endExemplarLabels)
				});
				return value;
			};
		};
	}
	function setValuePair(labels, value, metricName, exemplar, sharedLabels = {}) {
		return {
			labels,
			sharedLabels,
			value,
			metricName,
			exemplar
		};
	}
	function findBound(upperBounds, value) {
		for (let i = 0; i < upperBounds.length; i++) {
			const bound = upperBounds[i];
			if (value <= bound) return bound;
		}
		return -1;
	}
	function observe(labels) {
		return (value) => {
			const labelValuePair = convertLabelsAndValues(labels, value);
			validateLabel(this.labelNames, labelValuePair.labels);
			if (!Number.isFinite(labelValuePair.value)) throw new TypeError(`Value is not a valid number: ${util.format(labelValuePair.value)}`);
			const hash = hashObject(labelValuePair.labels, this.sortedLabelNames);
			let valueFromMap = this.hashMap[hash];
			if (!valueFromMap) valueFromMap = createBaseValues(labelValuePair.labels, this.bucketValues, this.bucketExemplars);
			const b = findBound(this.upperBounds, labelValuePair.value);
			valueFromMap.sum += labelValuePair.value;
			valueFromMap.count += 1;
			if (Object.prototype.hasOwnProperty.call(valueFromMap.bucketValues, b)) valueFromMap.bucketValues[b] += 1;
			this.hashMap[hash] = valueFromMap;
		};
	}
	function createBaseValues(labels, bucketValues, bucketExemplars) {
		const result = {
			labels,
			bucketValues: { ...bucketValues },
			sum: 0,
			count: 0
		};
		if (bucketExemplars) result.bucketExemplars = { ...bucketExemplars };
		return result;
	}
	function convertLabelsAndValues(labels, value) {
		return isObject(labels) ? {
			labels,
			value
		} : {
			value: labels,
			labels: {}
		};
	}
	function extractBucketValuesForExport(histogram) {
		const name = `${histogram.name}_bucket`;
		return (bucketData) => {
			let acc = 0;
			return {
				buckets: histogram.upperBounds.map((upperBound) => {
					acc += bucketData.bucketValues[upperBound];
					return setValuePair({ le: upperBound }, acc, name, bucketData.bucketExemplars ? bucketData.bucketExemplars[upperBound] : null, bucketData.labels);
				}),
				data: bucketData
			};
		};
	}
	function addSumAndCountForExport(histogram) {
		return (acc, d) => {
			acc.push(...d.buckets);
			acc.push(setValuePair({ le: "+Inf" }, d.data.count, `${histogram.name}_bucket`, d.data.bucketExemplars ? d.data.bucketExemplars["-1"] : null, d.data.labels), setValuePair({}, d.data.sum, `${histogram.name}_sum`, void 0, d.data.labels), setValuePair({}, d.data.count, `${histogram.name}_count`, void 0, d.data.labels));
			return acc;
		};
	}
	function splayLabels(bucket) {
		const { sharedLabels, labels, ...newBucket } = bucket;
		for (const label of Object.keys(sharedLabels)) labels[label] = sharedLabels[label];
		newBucket.labels = labels;
		return newBucket;
	}
	module.exports = Histogram;
}));
// node_modules/bintrees/lib/treebase.js
var require_treebase = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	function TreeBase() {}
	TreeBase.prototype.clear = function() {
		this._root = null;
		this.size = 0;
	};
	TreeBase.prototype.find = function(data) {
		var res = this._root;
		while (res !== null) {
			var c = this._comparator(data, res.data);
			if (c === 0) return res.data;
			else res = res.get_child(c > 0);
		}
		return null;
	};
	TreeBase.prototype.findIter = function(data) {
		var res = this._root;
		var iter = this.iterator();
		while (res !== null) {
			var c = this._comparator(data, res.data);
			if (c === 0) {
				iter._cursor = res;
				return iter;
			} else {
				iter._ancestors.push(res);
				res = res.get_child(c > 0);
			}
		}
		return null;
	};
	TreeBase.prototype.lowerBound = function(item) {
		var cur = this._root;
		var iter = this.iterator();
		var cmp = this._comparator;
		while (cur !== null) {
			var c = cmp(item, cur.data);
			if (c === 0) {
				iter._cursor = cur;
				return iter;
			}
			iter._ancestors.push(cur);
			cur = cur.get_child(c > 0);
		}
		for (var i = iter._ancestors.length - 1; i >= 0; --i) {
			cur = iter._ancestors[i];
			if (cmp(item, cur.data) < 0) {
				iter._cursor = cur;
				iter._ancestors.length = i;
				return iter;
			}
		}
		iter._ancestors.length = 0;
		return iter;
	};
	TreeBase.prototype.upperBound = function(item) {
		var iter = this.lowerBound(item);
		var cmp = this._comparator;
		while (iter.data() !== null && cmp(iter.data(), item) === 0) iter.next();
		return iter;
	};
	TreeBase.prototype.min = function() {
		var res = this._root;
		if (res === null) return null;
		while (res.left !== null) res = res.left;
		return res.data;
	};
	TreeBase.prototype.max = function() {
		var res = this._root;
		if (res === null) return null;
		while (res.right !== null) res = res.right;
		return res.data;
	};
	TreeBase.prototype.iterator = function() {
		return new Iterator(this);
	};
	TreeBase.prototype.each = function(cb) {
		var it = this.iterator(), data;
		while ((data = it.next()) !== null) if (cb(data) === false) return;
	};
	TreeBase.prototype.reach = function(cb) {
		var it = this.iterator(), data;
		while ((data = it.prev()) !== null) if (cb(data) === false) return;
	};
	function Iterator(tree) {
		this._tree = tree;
		this._ancestors = [];
		this._cursor = null;
	}
	Iterator.prototype.data = function() {
		return this._cursor !== null ? this._cursor.data : null;
	};
	Iterator.prototype.next = function() {
		if (this._cursor === null) {
			var root = this._tree._root;
			if (root !== null) this._minNode(root);
		} else if (this._cursor.right === null) {
			var save;
			do {
				save = this._cursor;
				if (this._ancestors.length) this._cursor = this._ancestors.pop();
				else {
					this._cursor = null;
					break;
				}
			} while (this._cursor.right === save);
		} else {
			this._ancestors.push(this._cursor);
			this._minNode(this._cursor.right);
		}
		return this._cursor !== null ? this._cursor.data : null;
	};
	Iterator.prototype.prev = function() {
		if (this._cursor === null) {
			var root = this._tree._root;
			if (root !== null) this._maxNode(root);
		} else if (this._cursor.left === null) {
			var save;
			do {
				save = this._cursor;
				if (this._ancestors.length) this._cursor = this._ancestors.pop();
				else {
					this._cursor = null;
					break;
				}
			} while (this._cursor.left === save);
		} else {
			this._ancestors.push(this._cursor);
			this._maxNode(this._cursor.left);
		}
		return this._cursor !== null ? this._cursor.data : null;
	};
	Iterator.prototype._minNode = function(start) {
		while (start.left !== null) {
			this._ancestors.push(start);
			start = start.left;
		}
		this._cursor = start;
	};
	Iterator.prototype._maxNode = function(start) {
		while (start.right !== null) {
			this._ancestors.push(start);
			start = start.right;
		}
		this._cursor = start;
	};
	module.exports = TreeBase;
}));
// node_modules/bintrees/lib/rbtree.js
var require_rbtree = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	var TreeBase = require_treebase();
	function Node(data) {
		this.data = data;
		this.left = null;
		this.right = null;
		this.red = true;
	}
	Node.prototype.get_child = function(dir) {
		return dir ? this.right : this.left;
	};
	Node.prototype.set_child = function(dir, val) {
		if (dir) this.right = val;
		else this.left = val;
	};
	function RBTree(comparator) {
		this._root = null;
		this._comparator = comparator;
		this.size = 0;
	}
	RBTree.prototype = new TreeBase();
	RBTree.prototype.insert = function(data) {
		var ret = false;
		if (this._root === null) {
			this._root = new Node(data);
			ret = true;
			this.size++;
		} else {
			var head = new Node(void 0);
			var dir = 0;
			var last = 0;
			var gp = null;
			var ggp = head;
			var p = null;
			var node = this._root;
			ggp.right = this._root;
			while (true) {
				if (node === null) {
					node = new Node(data);
					p.set_child(dir, node);
					ret = true;
					this.size++;
				} else if (is_red(node.left) && is_red(node.right)) {
					node.red = true;
					node.left.red = false;
					node.right.red = false;
				}
				if (is_red(node) && is_red(p)) {
					var dir2 = ggp.right === gp;
					if (node === p.get_child(last)) ggp.set_child(dir2, single_rotate(gp, !last));
					else ggp.set_child(dir2, double_rotate(gp, !last));
				}
				var cmp = this._comparator(node.data, data);
				if (cmp === 0) break;
				last = dir;
				dir = cmp < 0;
				if (gp !== null) ggp = gp;
				gp = p;
				p = node;
				node = node.get_child(dir);
			}
			this._root = head.right;
		}
		this._root.red = false;
		return ret;
	};
	RBTree.prototype.remove = function(data) {
		if (this._root === null) return false;
		var head = new Node(void 0);
		var node = head;
		node.right = this._root;
		var p = null;
		var gp = null;
		var found = null;
		var dir = 1;
		while (node.get_child(dir) !== null) {
			var last = dir;
			gp = p;
			p = node;
			node = node.get_child(dir);
			var cmp = this._comparator(data, node.data);
			dir = cmp > 0;
			if (cmp === 0) found = node;
			if (!is_red(node) && !is_red(node.get_child(dir))) {
				if (is_red(node.get_child(!dir))) {
					var sr = single_rotate(node, dir);
					p.set_child(last, sr);
					p = sr;
				} else if (!is_red(node.get_child(!dir))) {
					var sibling = p.get_child(!last);
					if (sibling !== null) {
						if (!is_red(sibling.get_child(!last)) && !is_red(sibling.get_child(last))) {
							p.red = false;
							sibling.red = true;
							node.red = true;
						} else {
							var dir2 = gp.right === p;
							if (is_red(sibling.get_child(last))) gp.set_child(dir2, double_rotate(p, last));
							else if (is_red(sibling.get_child(!last))) gp.set_child(dir2, single_rotate(p, last));
							var gpc = gp.get_child(dir2);
							gpc.red = true;
							node.red = true;
							gpc.left.red = false;
							gpc.right.red = false;
						}
					}
				}
			}
		}
		if (found !== null) {
			found.data = node.data;
			p.set_child(p.right === node, node.get_child(node.left === null));
			this.size--;
		}
		this._root = head.right;
		if (this._root !== null) this._root.red = false;
		return found !== null;
	};
	function is_red(node) {
		return node !== null && node.red;
	}
	function single_rotate(root, dir) {
		var save = root.get_child(!dir);
		root.set_child(!dir, save.get_child(dir));
		save.set_child(dir, root);
		root.red = true;
		save.red = false;
		return save;
	}
	function double_rotate(root, dir) {
		root.set_child(!dir, single_rotate(root.get_child(!dir), !dir));
		return single_rotate(root, dir);
	}
	module.exports = RBTree;
}));
// node_modules/bintrees/lib/bintree.js
var require_bintree = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	var TreeBase = require_treebase();
	function Node(data) {
		this.data = data;
		this.left = null;
		this.right = null;
	}
	Node.prototype.get_child = function(dir) {
		return dir ? this.right : this.left;
	};
	Node.prototype.set_child = function(dir, val) {
		if (dir) this.right = val;
		else this.left = val;
	};
	function BinTree(comparator) {
		this._root = null;
		this._comparator = comparator;
		this.size = 0;
	}
	BinTree.prototype = new TreeBase();
	BinTree.prototype.insert = function(data) {
		if (this._root === null) {
			this._root = new Node(data);
			this.size++;
			return true;
		}
		var dir = 0;
		var p = null;
		var node = this._root;
		while (true) {
			if (node === null) {
				node = new Node(data);
				p.set_child(dir, node);
				ret = true;
				this.size++;
				return true;
			}
			if (this._comparator(node.data, data) === 0) return false;
			dir = this._comparator(node.data, data) < 0;
			p = node;
			node = node.get_child(dir);
		}
	};
	BinTree.prototype.remove = function(data) {
		if (this._root === null) return false;
		var head = new Node(void 0);
		var node = head;
		node.right = this._root;
		var p = null;
		var found = null;
		var dir = 1;
		while (node.get_child(dir) !== null) {
			p = node;
			node = node.get_child(dir);
			var cmp = this._comparator(data, node.data);
			dir = cmp > 0;
			if (cmp === 0) found = node;
		}
		if (found !== null) {
			found.data = node.data;
			p.set_child(p.right === node, node.get_child(node.left === null));
			this._root = head.right;
			this.size--;
			return true;
		} else return false;
	};
	module.exports = BinTree;
}));
// node_modules/bintrees/index.js
var require_bintrees = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	module.exports = {
		RBTree: require_rbtree(),
		BinTree: require_bintree()
	};
}));
// node_modules/tdigest/tdigest.js
var require_tdigest = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	var RBTree = require_bintrees().RBTree;
	function TDigest(delta, K, CX) {
		this.discrete = delta === false;
		this.delta = delta || .01;
		this.K = K === void 0 ? 25 : K;
		this.CX = CX === void 0 ? 1.1 : CX;
		this.centroids = new RBTree(compare_centroid_means);
		this.nreset = 0;
		this.reset();
	}
	TDigest.prototype.reset = function() {
		this.centroids.clear();
		this.n = 0;
		this.nreset += 1;
		this.last_cumulate = 0;
	};
	TDigest.prototype.size = function() {
		return this.centroids.size;
	};
	TDigest.prototype.toArray = function(everything) {
		var result = [];
		if (everything) {
			this._cumulate(true);
			this.centroids.each(function(c) {
				result.push(c);
			});
		} else this.centroids.each(function(c) {
			result.push({
				mean: c.mean,
				n: c.n
			});
		});
		return result;
	};
	TDigest.prototype.summary = function() {
		return [
			(this.discrete ? "exact " : "approximating ") + this.n + " samples using " + this.size() + " centroids",
			"min = " + this.percentile(0),
			"Q1  = " + this.percentile(.25),
			"Q2  = " + this.percentile(.5),
			"Q3  = " + this.percentile(.75),
			"max = " + this.percentile(1)
		].join("\n");
	};
	function compare_centroid_means(a, b) {
		return a.mean > b.mean ? 1 : a.mean < b.mean ? -1 : 0;
	}
	function compare_centroid_mean_cumns(a, b) {
		return a.mean_cumn - b.mean_cumn;
	}
	TDigest.prototype.push = function(x, n) {
		n = n || 1;
		x = Array.isArray(x) ? x : [x];
		for (var i = 0; i < x.length; i++) this._digest(x[i], n);
	};
	TDigest.prototype.push_centroid = function(c) {
		c = Array.isArray(c) ? c : [c];
		for (var i = 0; i < c.length; i++) this._digest(c[i].mean, c[i].n);
	};
	TDigest.prototype._cumulate = function(exact) {
		if (this.n === this.last_cumulate || !exact && this.CX && this.CX > this.n / this.last_cumulate) return;
		var cumn = 0;
		this.centroids.each(function(c) {
			c.mean_cumn = cumn + c.n / 2;
			cumn = c.cumn = cumn + c.n;
		});
		this.n = this.last_cumulate = cumn;
	};
	TDigest.prototype.find_nearest = function(x) {
		if (this.size() === 0) return null;
		var iter = this.centroids.lowerBound({ mean: x });
		var c = iter.data() === null ? iter.prev() : iter.data();
		if (c.mean === x || this.discrete) return c;
		var prev = iter.prev();
		if (prev && Math.abs(prev.mean - x) < Math.abs(c.mean - x)) return prev;
		else return c;
	};
	TDigest.prototype._new_centroid = function(x, n, cumn) {
		var c = {
			mean: x,
			n,
			cumn
		};
		this.centroids.insert(c);
		this.n += n;
		return c;
	};
	TDigest.prototype._addweight = function(nearest, x, n) {
		if (x !== nearest.mean) nearest.mean += n * (x - nearest.mean) / (nearest.n + n);
		nearest.cumn += n;
		nearest.mean_cumn += n / 2;
		nearest.n += n;
		this.n += n;
	};
	TDigest.prototype._digest = function(x, n) {
		var min = this.centroids.min();
		var max = this.centroids.max();
		var nearest = this.find_nearest(x);
		if (nearest && nearest.mean === x) this._addweight(nearest, x, n);
		else if (nearest === min) this._new_centroid(x, n, 0);
		else if (nearest === max) this._new_centroid(x, n, this.n);
		else if (this.discrete) this._new_centroid(x, n, nearest.cumn);
		else {
			var p = nearest.mean_cumn / this.n;
			if (Math.floor(4 * this.n * this.delta * p * (1 - p)) - nearest.n >= n) this._addweight(nearest, x, n);
			else this._new_centroid(x, n, nearest.cumn);
		}
		this._cumulate(false);
		if (!this.discrete && this.K && this.size() > this.K / this.delta) this.compress();
	};
	TDigest.prototype.bound_mean = function(x) {
		var iter = this.centroids.upperBound({ mean: x });
		var lower = iter.prev();
		return [lower, lower.mean === x ? lower : iter.next()];
	};
	TDigest.prototype.p_rank = function(x_or_xlist) {
		var ps = (Array.isArray(x_or_xlist) ? x_or_xlist : [x_or_xlist]).map(this._p_rank, this);
		return Array.isArray(x_or_xlist) ? ps : ps[0];
	};
	TDigest.prototype._p_rank = function(x) {
		if (this.size() === 0) return;
		else if (x < this.centroids.min().mean) return 0;
		else if (x > this.centroids.max().mean) return 1;
		this._cumulate(true);
		var bound = this.bound_mean(x);
		var lower = bound[0], upper = bound[1];
		if (this.discrete) return lower.cumn / this.n;
		else {
			var cumn = lower.mean_cumn;
			if (lower !== upper) cumn += (x - lower.mean) * (upper.mean_cumn - lower.mean_cumn) / (upper.mean - lower.mean);
			return cumn / this.n;
		}
	};
	TDigest.prototype.bound_mean_cumn = function(cumn) {
		this.centroids._comparator = compare_centroid_mean_cumns;
		var iter = this.centroids.upperBound({ mean_cumn: cumn });
		this.centroids._comparator = compare_centroid_means;
		var lower = iter.prev();
		return [lower, lower && lower.mean_cumn === cumn ? lower : iter.next()];
	};
	TDigest.prototype.percentile = function(p_or_plist) {
		var qs = (Array.isArray(p_or_plist) ? p_or_plist : [p_or_plist]).map(this._percentile, this);
		return Array.isArray(p_or_plist) ? qs : qs[0];
	};
	TDigest.prototype._percentile = function(p) {
		if (this.size() === 0) return;
		this._cumulate(true);
		var h = this.n * p;
		var bound = this.bound_mean_cumn(h);
		var lower = bound[0], upper = bound[1];
		if (upper === lower || lower === null || upper === null) return (lower || upper).mean;
		else if (!this.discrete) return lower.mean + (h - lower.mean_cumn) * (upper.mean - lower.mean) / (upper.mean_cumn - lower.mean_cumn);
		else if (h <= lower.cumn) return lower.mean;
		else return upper.mean;
	};
	function pop_random(choices) {
		var idx = Math.floor(Math.random() * choices.length);
		return choices.splice(idx, 1)[0];
	}
	TDigest.prototype.compress = function() {
		if (this.compressing) return;
		var points = this.toArray();
		this.reset();
		this.compressing = true;
		while (points.length > 0) this.push_centroid(pop_random(points));
		this._cumulate(true);
		this.compressing = false;
	};
	function Digest(config) {
		this.config = config || {};
		this.mode = this.config.mode || "auto";
		TDigest.call(this, this.mode === "cont" ? config.delta : false);
		this.digest_ratio = this.config.ratio || .9;
		this.digest_thresh = this.config.thresh || 1e3;
		this.n_unique = 0;
	}
	Digest.prototype = Object.create(TDigest.prototype);
	Digest.prototype.constructor = Digest;
	Digest.prototype.push = function(x_or_xlist) {
		TDigest.prototype.push.call(this, x_or_xlist);
		this.check_continuous();
	};
	Digest.prototype._new_centroid = function(x, n, cumn) {
		this.n_unique += 1;
		TDigest.prototype._new_centroid.call(this, x, n, cumn);
	};
	Digest.prototype._addweight = function(nearest, x, n) {
		if (nearest.n === 1) this.n_unique -= 1;
		TDigest.prototype._addweight.call(this, nearest, x, n);
	};
	Digest.prototype.check_continuous = function() {
		if (this.mode !== "auto" || this.size() < this.digest_thresh) return false;
		if (this.n_unique / this.size() > this.digest_ratio) {
			this.mode = "cont";
			this.discrete = false;
			this.delta = this.config.delta || .01;
			this.compress();
			return true;
		}
		return false;
	};
	module.exports = {
		"TDigest": TDigest,
		"Digest": Digest
	};
}));
// node_modules/prom-client/lib/timeWindowQuantiles.js
var require_timeWindowQuantiles = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const { TDigest } = require_tdigest();
	var TimeWindowQuantiles = class {
		constructor(maxAgeSeconds, ageBuckets) {
			this.maxAgeSeconds = maxAgeSeconds || 0;
			this.ageBuckets = ageBuckets || 0;
			this.shouldRotate = maxAgeSeconds && ageBuckets;
			this.ringBuffer = Array(ageBuckets).fill(new TDigest());
			this.currentBuffer = 0;
			this.lastRotateTimestampMillis = Date.now();
			this.durationBetweenRotatesMillis = maxAgeSeconds * 1e3 / ageBuckets || Infinity;
		}
		size() {
			return rotate.call(this).size();
		}
		percentile(quantile) {
			return rotate.call(this).percentile(quantile);
		}
		push(value) {
			rotate.call(this);
			this.ringBuffer.forEach((bucket) => {
				bucket.push(value);
			});
		}
		reset() {
			this.ringBuffer.forEach((bucket) => {
				bucket.reset();
			});
		}
		compress() {
			this.ringBuffer.forEach((bucket) => {
				bucket.compress();
			});
		}
	};
	function rotate() {
		let timeSinceLastRotateMillis = Date.now() - this.lastRotateTimestampMillis;
		while (timeSinceLastRotateMillis > this.durationBetweenRotatesMillis && this.shouldRotate) {
			this.ringBuffer[this.currentBuffer] = new TDigest();
			if (++this.currentBuffer >= this.ringBuffer.length) this.currentBuffer = 0;
			timeSinceLastRotateMillis -= this.durationBetweenRotatesMillis;
			this.lastRotateTimestampMillis += this.durationBetweenRotatesMillis;
		}
		return this.ringBuffer[this.currentBuffer];
	}
	module.exports = TimeWindowQuantiles;
}));
// node_modules/prom-client/lib/summary.js
/**
* Summary
*/
var require_summary = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const util = __require("util");
	const { getLabels, hashObject, removeLabels } = require_util();
	const { validateLabel } = require_validation();
	const { Metric } = require_metric();
	const timeWindowQuantiles = require_timeWindowQuantiles();
	const DEFAULT_COMPRESS_COUNT = 1e3;
	var Summary = class extends Metric {
		constructor(config) {
			super(config, {
				percentiles: [
					.01,
					.05,
					.5,
					.9,
					.95,
					.99,
					.999
				],
				compressCount: DEFAULT_COMPRESS_COUNT,
				hashMap: {}
			});
			this.type = "summary";
			for (const label of this.labelNames) if (label === "quantile") throw new Error("quantile is a reserved label keyword");
			if (this.labelNames.length === 0) this.hashMap = { [hashObject({})]: {
				labels: {},
				td: new timeWindowQuantiles(this.maxAgeSeconds, this.ageBuckets),
				count: 0,
				sum: 0
			} };
		}
		/**
		* Observe a value
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @param {Number} value - Value to observe
		* @returns {void}
		*/
		observe(labels, value) {
			observe.call(this, labels === 0 ? 0 : labels || {})(value);
		}
		async get() {
			if (this.collect) {
				const v = this.collect();
				if (v instanceof Promise) await v;
			}
			const hashKeys = Object.keys(this.hashMap);
			const values = [];
			hashKeys.forEach((hashKey) => {
				const s = this.hashMap[hashKey];
				if (s) {
					if (this.pruneAgedBuckets && s.td.size() === 0) delete this.hashMap[hashKey];
					else {
						extractSummariesForExport(s, this.percentiles).forEach((v) => {
							values.push(v);
						});
						values.push(getSumForExport(s, this));
						values.push(getCountForExport(s, this));
					}
				}
			});
			return {
				name: this.name,
				help: this.help,
				type: this.type,
				values,
				aggregator: this.aggregator
			};
		}
		reset() {
			Object.values(this.hashMap).forEach((s) => {
				s.td.reset();
				s.count = 0;
				s.sum = 0;
			});
		}
		/**
		* Start a timer that could be used to logging durations
		* @param {object} labels - Object with labels where key is the label key and value is label value. Can only be one level deep
		* @returns {function} - Function to invoke when you want to stop the timer and observe the duration in seconds
		* @example
		* var end = summary.startTimer();
		* makeExpensiveXHRRequest(function(err, res) {
		*	end(); //Observe the duration of expensiveXHRRequest
		* });
		*/
		startTimer(labels) {
			return startTimer.call(this, labels)();
		}
		labels(...args) {
			const labels = getLabels(this.labelNames, args);
			validateLabel(this.labelNames, labels);
			return {
				observe: observe.call(this, labels),
				startTimer: startTimer.call(this, labels)
			};
		}
		remove(...args) {
			const labels = getLabels(this.labelNames, args);
			validateLabel(this.labelNames, labels);
			removeLabels.call(this, this.hashMap, labels, this.sortedLabelNames);
		}
	};
	function extractSummariesForExport(summaryOfLabels, percentiles) {
		summaryOfLabels.td.compress();
		return percentiles.map((percentile) => {
			const percentileValue = summaryOfLabels.td.percentile(percentile);
			return {
				labels: Object.assign({ quantile: percentile }, summaryOfLabels.labels),
				value: percentileValue ? percentileValue : 0
			};
		});
	}
	function getCountForExport(value, summary) {
		return {
			metricName: `${summary.name}_count`,
			labels: value.labels,
			value: value.count
		};
	}
	function getSumForExport(value, summary) {
		return {
			metricName: `${summary.name}_sum`,
			labels: value.labels,
			value: value.sum
		};
	}
	function startTimer(startLabels) {
		return () => {
			const start = process.hrtime();
			return (endLabels) => {
				const delta = process.hrtime(start);
				const value = delta[0] + delta[1] / 1e9;
				this.observe(Object.assign({}, startLabels, endLabels), value);
				return value;
			};
		};
	}
	function observe(labels) {
		return (value) => {
			const labelValuePair = convertLabelsAndValues(labels, value);
			validateLabel(this.labelNames, labels);
			if (!Number.isFinite(labelValuePair.value)) throw new TypeError(`Value is not a valid number: ${util.format(labelValuePair.value)}`);
			const hash = hashObject(labelValuePair.labels, this.sortedLabelNames);
			let summaryOfLabel = this.hashMap[hash];
			if (!summaryOfLabel) summaryOfLabel = {
				labels: labelValuePair.labels,
				td: new timeWindowQuantiles(this.maxAgeSeconds, this.ageBuckets),
				count: 0,
				sum: 0
			};
			summaryOfLabel.td.push(labelValuePair.value);
			summaryOfLabel.count++;
			if (summaryOfLabel.count % this.compressCount === 0) summaryOfLabel.td.compress();
			summaryOfLabel.sum += labelValuePair.value;
			this.hashMap[hash] = summaryOfLabel;
		};
	}
	function convertLabelsAndValues(labels, value) {
		if (value === void 0) return {
			value: labels,
			labels: {}
		};
		return {
			labels,
			value
		};
	}
	module.exports = Summary;
}));
// node_modules/prom-client/lib/pushgateway.js
var require_pushgateway = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const url = __require("url");
	const http = __require("http");
	const https = __require("https");
	const { gzipSync } = __require("zlib");
	const { globalRegistry } = require_registry();
	var Pushgateway = class {
		constructor(gatewayUrl, options, registry) {
			if (!registry) registry = globalRegistry;
			this.registry = registry;
			this.gatewayUrl = gatewayUrl;
			const { requireJobName, ...requestOptions } = {
				requireJobName: true,
				...options
			};
			this.requireJobName = requireJobName;
			this.requestOptions = requestOptions;
		}
		pushAdd(params = {}) {
			if (this.requireJobName && !params.jobName) throw new Error("Missing jobName parameter");
			return useGateway.call(this, "POST", params.jobName, params.groupings);
		}
		push(params = {}) {
			if (this.requireJobName && !params.jobName) throw new Error("Missing jobName parameter");
			return useGateway.call(this, "PUT", params.jobName, params.groupings);
		}
		delete(params = {}) {
			if (this.requireJobName && !params.jobName) throw new Error("Missing jobName parameter");
			return useGateway.call(this, "DELETE", params.jobName, params.groupings);
		}
	};
	async function useGateway(method, job, groupings) {
		const gatewayUrlParsed = url.parse(this.gatewayUrl);
		const path = `${gatewayUrlParsed.pathname && gatewayUrlParsed.pathname !== "/" ? gatewayUrlParsed.pathname : ""}/metrics${job ? `/job/${encodeURIComponent(job)}${generateGroupings(groupings)}` : ""}`;
		const target = url.resolve(this.gatewayUrl, path);
		const requestParams = url.parse(target);
		const httpModule = isHttps(requestParams.href) ? https : http;
		const options = Object.assign(requestParams, this.requestOptions, { method });
		return new Promise((resolve, reject) => {
			if (method === "DELETE" && options.headers) delete options.headers["Content-Encoding"];
			const req = httpModule.request(options, (resp) => {
				let body = "";
				resp.setEncoding("utf8");
				resp.on("data", (chunk) => {
					body += chunk;
				});
				resp.on("end", () => {
					if (resp.statusCode >= 400) reject(/* @__PURE__ */ new Error(`push failed with status ${resp.statusCode}, ${body}`));
					else resolve({
						resp,
						body
					});
				});
			});
			req.on("error", (err) => {
				reject(err);
			});
			req.on("timeout", () => {
				req.destroy(/* @__PURE__ */ new Error("Pushgateway request timed out"));
			});
			if (method !== "DELETE") this.registry.metrics().then((metrics) => {
				if (options.headers && options.headers["Content-Encoding"] === "gzip") metrics = gzipSync(metrics);
				req.write(metrics);
				req.end();
			}).catch((err) => {
				reject(err);
			});
			else req.end();
		});
	}
	function generateGroupings(groupings) {
		if (!groupings) return "";
		return Object.keys(groupings).map((key) => `/${encodeURIComponent(key)}/${encodeURIComponent(groupings[key])}`).join("");
	}
	function isHttps(href) {
		return href.search(/^https/) !== -1;
	}
	module.exports = Pushgateway;
}));
// node_modules/prom-client/lib/bucketGenerators.js
var require_bucketGenerators = /* @__PURE__ */ __commonJSMin(((exports) => {
	exports.linearBuckets = (start, width, count) => {
		if (count < 1) throw new Error("Linear buckets needs a positive count");
		const buckets = new Array(count);
		for (let i = 0; i < count; i++) buckets[i] = start + i * width;
		return buckets;
	};
	exports.exponentialBuckets = (start, factor, count) => {
		if (start <= 0) throw new Error("Exponential buckets needs a positive start");
		if (count < 1) throw new Error("Exponential buckets needs a positive count");
		if (factor <= 1) throw new Error("Exponential buckets needs a factor greater than 1");
		const buckets = new Array(count);
		for (let i = 0; i < count; i++) {
			buckets[i] = start;
			start *= factor;
		}
		return buckets;
	};
}));
// node_modules/prom-client/lib/metrics/processCpuTotal.js
var require_processCpuTotal = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const OtelApi = __require("@opentelemetry/api");
	const Counter = require_counter();
	const PROCESS_CPU_USER_SECONDS = "process_cpu_user_seconds_total";
	const PROCESS_CPU_SYSTEM_SECONDS = "process_cpu_system_seconds_total";
	const PROCESS_CPU_SECONDS = "process_cpu_seconds_total";
	module.exports = (registry, config = {}) => {
		const registers = registry ? [registry] : void 0;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const exemplars = config.enableExemplars ? config.enableExemplars : false;
		const labelNames = Object.keys(labels);
		let lastCpuUsage = process.cpuUsage();
		const cpuUserUsageCounter = new Counter({
			name: namePrefix + PROCESS_CPU_USER_SECONDS,
			help: "Total user CPU time spent in seconds.",
			enableExemplars: exemplars,
			registers,
			labelNames,
			collect() {
				const cpuUsage = process.cpuUsage();
				const userUsageMicros = cpuUsage.user - lastCpuUsage.user;
				const systemUsageMicros = cpuUsage.system - lastCpuUsage.system;
				lastCpuUsage = cpuUsage;
				if (this.enableExemplars) {
					let exemplarLabels = {};
					const currentSpan = OtelApi.trace.getSpan(OtelApi.context.active());
					if (currentSpan) exemplarLabels = {
						traceId: currentSpan.spanContext().traceId,
						spanId: currentSpan.spanContext().spanId
					};
					cpuUserUsageCounter.inc({
						labels,
						value: userUsageMicros / 1e6,
						exemplarLabels
					});
					cpuSystemUsageCounter.inc({
						labels,
						value: systemUsageMicros / 1e6,
						exemplarLabels
					});
					cpuUsageCounter.inc({
						labels,
						value: (userUsageMicros + systemUsageMicros) / 1e6,
						exemplarLabels
					});
				} else {
					cpuUserUsageCounter.inc(labels, userUsageMicros / 1e6);
					cpuSystemUsageCounter.inc(labels, systemUsageMicros / 1e6);
					cpuUsageCounter.inc(labels, (userUsageMicros + systemUsageMicros) / 1e6);
				}
			}
		});
		const cpuSystemUsageCounter = new Counter({
			name: namePrefix + PROCESS_CPU_SYSTEM_SECONDS,
			help: "Total system CPU time spent in seconds.",
			enableExemplars: exemplars,
			registers,
			labelNames
		});
		const cpuUsageCounter = new Counter({
			name: namePrefix + PROCESS_CPU_SECONDS,
			help: "Total user and system CPU time spent in seconds.",
			enableExemplars: exemplars,
			registers,
			labelNames
		});
	};
	module.exports.metricNames = [
		PROCESS_CPU_USER_SECONDS,
		PROCESS_CPU_SYSTEM_SECONDS,
		PROCESS_CPU_SECONDS
	];
}));
// node_modules/prom-client/lib/metrics/processStartTime.js
var require_processStartTime = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const startInSeconds = Math.round(Date.now() / 1e3 - process.uptime());
	const PROCESS_START_TIME = "process_start_time_seconds";
	module.exports = (registry, config = {}) => {
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + PROCESS_START_TIME,
			help: "Start time of the process since unix epoch in seconds.",
			registers: registry ? [registry] : void 0,
			labelNames,
			aggregator: "omit",
			collect() {
				this.set(labels, startInSeconds);
			}
		});
	};
	module.exports.metricNames = [PROCESS_START_TIME];
}));
// node_modules/prom-client/lib/metrics/osMemoryHeapLinux.js
var require_osMemoryHeapLinux = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const fs = __require("fs");
	const values = [
		"VmSize",
		"VmRSS",
		"VmData"
	];
	const PROCESS_RESIDENT_MEMORY = "process_resident_memory_bytes";
	const PROCESS_VIRTUAL_MEMORY = "process_virtual_memory_bytes";
	const PROCESS_HEAP = "process_heap_bytes";
	function structureOutput(input) {
		return input.split("\n").reduce((acc, string) => {
			if (!values.some((value) => string.startsWith(value))) return acc;
			const split = string.split(":");
			let value = split[1].trim();
			value = value.substr(0, value.length - 3);
			value = Number(value) * 1024;
			acc[split[0]] = value;
			return acc;
		}, {});
	}
	module.exports = (registry, config = {}) => {
		const registers = registry ? [registry] : void 0;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		const residentMemGauge = new Gauge({
			name: namePrefix + PROCESS_RESIDENT_MEMORY,
			help: "Resident memory size in bytes.",
			registers,
			labelNames,
			collect() {
				try {
					const structuredOutput = structureOutput(fs.readFileSync("/proc/self/status", "utf8"));
					residentMemGauge.set(labels, structuredOutput.VmRSS);
					virtualMemGauge.set(labels, structuredOutput.VmSize);
					heapSizeMemGauge.set(labels, structuredOutput.VmData);
				} catch {}
			}
		});
		const virtualMemGauge = new Gauge({
			name: namePrefix + PROCESS_VIRTUAL_MEMORY,
			help: "Virtual memory size in bytes.",
			registers,
			labelNames
		});
		const heapSizeMemGauge = new Gauge({
			name: namePrefix + PROCESS_HEAP,
			help: "Process heap size in bytes.",
			registers,
			labelNames
		});
	};
	module.exports.metricNames = [
		PROCESS_RESIDENT_MEMORY,
		PROCESS_VIRTUAL_MEMORY,
		PROCESS_HEAP
	];
}));
// node_modules/prom-client/lib/metrics/helpers/safeMemoryUsage.js
var require_safeMemoryUsage = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	function safeMemoryUsage() {
		try {
			return process.memoryUsage();
		} catch {
			return;
		}
	}
	module.exports = safeMemoryUsage;
}));
// node_modules/prom-client/lib/metrics/osMemoryHeap.js
var require_osMemoryHeap = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const linuxVariant = require_osMemoryHeapLinux();
	const safeMemoryUsage = require_safeMemoryUsage();
	const PROCESS_RESIDENT_MEMORY = "process_resident_memory_bytes";
	function notLinuxVariant(registry, config = {}) {
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + PROCESS_RESIDENT_MEMORY,
			help: "Resident memory size in bytes.",
			registers: registry ? [registry] : void 0,
			labelNames,
			collect() {
				const memUsage = safeMemoryUsage();
				if (memUsage) this.set(labels, memUsage.rss);
			}
		});
	}
	module.exports = (registry, config) => process.platform === "linux" ? linuxVariant(registry, config) : notLinuxVariant(registry, config);
	module.exports.metricNames = process.platform === "linux" ? linuxVariant.metricNames : [PROCESS_RESIDENT_MEMORY];
}));
// node_modules/prom-client/lib/metrics/processOpenFileDescriptors.js
var require_processOpenFileDescriptors = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const fs = __require("fs");
	const process = __require("process");
	const PROCESS_OPEN_FDS = "process_open_fds";
	module.exports = (registry, config = {}) => {
		if (process.platform !== "linux") return;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + PROCESS_OPEN_FDS,
			help: "Number of open file descriptors.",
			registers: registry ? [registry] : void 0,
			labelNames,
			collect() {
				try {
					const fds = fs.readdirSync("/proc/self/fd");
					this.set(labels, fds.length - 1);
				} catch {}
			}
		});
	};
	module.exports.metricNames = [PROCESS_OPEN_FDS];
}));
// node_modules/prom-client/lib/metrics/processMaxFileDescriptors.js
var require_processMaxFileDescriptors = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const fs = __require("fs");
	const PROCESS_MAX_FDS = "process_max_fds";
	let maxFds;
	module.exports = (registry, config = {}) => {
		if (maxFds === void 0) try {
			const lines = fs.readFileSync("/proc/self/limits", "utf8").split("\n");
			for (const line of lines) if (line.startsWith("Max open files")) {
				const parts = line.split(/  +/);
				maxFds = Number(parts[1]);
				break;
			}
		} catch {
			return;
		}
		if (maxFds === void 0) return;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + PROCESS_MAX_FDS,
			help: "Maximum number of open file descriptors.",
			registers: registry ? [registry] : void 0,
			labelNames,
			collect() {
				if (maxFds !== void 0) this.set(labels, maxFds);
			}
		});
	};
	module.exports.metricNames = [PROCESS_MAX_FDS];
}));
// node_modules/prom-client/lib/metrics/eventLoopLag.js
var require_eventLoopLag = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	let perf_hooks;
	try {
		perf_hooks = __require("perf_hooks");
	} catch {}
	const NODEJS_EVENTLOOP_LAG = "nodejs_eventloop_lag_seconds";
	const NODEJS_EVENTLOOP_LAG_MIN = "nodejs_eventloop_lag_min_seconds";
	const NODEJS_EVENTLOOP_LAG_MAX = "nodejs_eventloop_lag_max_seconds";
	const NODEJS_EVENTLOOP_LAG_MEAN = "nodejs_eventloop_lag_mean_seconds";
	const NODEJS_EVENTLOOP_LAG_STDDEV = "nodejs_eventloop_lag_stddev_seconds";
	const NODEJS_EVENTLOOP_LAG_P50 = "nodejs_eventloop_lag_p50_seconds";
	const NODEJS_EVENTLOOP_LAG_P90 = "nodejs_eventloop_lag_p90_seconds";
	const NODEJS_EVENTLOOP_LAG_P99 = "nodejs_eventloop_lag_p99_seconds";
	function reportEventloopLag(start, gauge, labels) {
		const delta = process.hrtime(start);
		const seconds = (delta[0] * 1e9 + delta[1]) / 1e9;
		gauge.set(labels, seconds);
	}
	module.exports = (registry, config = {}) => {
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		const registers = registry ? [registry] : void 0;
		let collect = () => {
			const start = process.hrtime();
			setImmediate(reportEventloopLag, start, lag, labels);
		};
		if (perf_hooks && perf_hooks.monitorEventLoopDelay) try {
			const histogram = perf_hooks.monitorEventLoopDelay({ resolution: config.eventLoopMonitoringPrecision });
			histogram.enable();
			collect = () => {
				const start = process.hrtime();
				setImmediate(reportEventloopLag, start, lag, labels);
				lagMin.set(labels, histogram.min / 1e9);
				lagMax.set(labels, histogram.max / 1e9);
				lagMean.set(labels, histogram.mean / 1e9);
				lagStddev.set(labels, histogram.stddev / 1e9);
				lagP50.set(labels, histogram.percentile(50) / 1e9);
				lagP90.set(labels, histogram.percentile(90) / 1e9);
				lagP99.set(labels, histogram.percentile(99) / 1e9);
				histogram.reset();
			};
		} catch (e) {
			if (e.code === "ERR_NOT_IMPLEMENTED") return;
			throw e;
		}
		const lag = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG,
			help: "Lag of event loop in seconds.",
			registers,
			labelNames,
			aggregator: "average",
			collect
		});
		const lagMin = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_MIN,
			help: "The minimum recorded event loop delay.",
			registers,
			labelNames,
			aggregator: "min"
		});
		const lagMax = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_MAX,
			help: "The maximum recorded event loop delay.",
			registers,
			labelNames,
			aggregator: "max"
		});
		const lagMean = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_MEAN,
			help: "The mean of the recorded event loop delays.",
			registers,
			labelNames,
			aggregator: "average"
		});
		const lagStddev = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_STDDEV,
			help: "The standard deviation of the recorded event loop delays.",
			registers,
			labelNames,
			aggregator: "average"
		});
		const lagP50 = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_P50,
			help: "The 50th percentile of the recorded event loop delays.",
			registers,
			labelNames,
			aggregator: "average"
		});
		const lagP90 = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_P90,
			help: "The 90th percentile of the recorded event loop delays.",
			registers,
			labelNames,
			aggregator: "average"
		});
		const lagP99 = new Gauge({
			name: namePrefix + NODEJS_EVENTLOOP_LAG_P99,
			help: "The 99th percentile of the recorded event loop delays.",
			registers,
			labelNames,
			aggregator: "average"
		});
	};
	module.exports.metricNames = [
		NODEJS_EVENTLOOP_LAG,
		NODEJS_EVENTLOOP_LAG_MIN,
		NODEJS_EVENTLOOP_LAG_MAX,
		NODEJS_EVENTLOOP_LAG_MEAN,
		NODEJS_EVENTLOOP_LAG_STDDEV,
		NODEJS_EVENTLOOP_LAG_P50,
		NODEJS_EVENTLOOP_LAG_P90,
		NODEJS_EVENTLOOP_LAG_P99
	];
}));
// node_modules/prom-client/lib/metrics/helpers/processMetricsHelpers.js
var require_processMetricsHelpers = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	function aggregateByObjectName(list) {
		const data = {};
		for (let i = 0; i < list.length; i++) {
			const listElement = list[i];
			if (!listElement || typeof listElement.constructor === "undefined") continue;
			if (Object.hasOwnProperty.call(data, listElement.constructor.name)) data[listElement.constructor.name] += 1;
			else data[listElement.constructor.name] = 1;
		}
		return data;
	}
	function updateMetrics(gauge, data, labels) {
		gauge.reset();
		for (const key in data) gauge.set(Object.assign({ type: key }, labels || {}), data[key]);
	}
	module.exports = {
		aggregateByObjectName,
		updateMetrics
	};
}));
// node_modules/prom-client/lib/metrics/processHandles.js
var require_processHandles = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const { aggregateByObjectName } = require_processMetricsHelpers();
	const { updateMetrics } = require_processMetricsHelpers();
	const Gauge = require_gauge();
	const NODEJS_ACTIVE_HANDLES = "nodejs_active_handles";
	const NODEJS_ACTIVE_HANDLES_TOTAL = "nodejs_active_handles_total";
	module.exports = (registry, config = {}) => {
		if (typeof process._getActiveHandles !== "function") return;
		const registers = registry ? [registry] : void 0;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + NODEJS_ACTIVE_HANDLES,
			help: "Number of active libuv handles grouped by handle type. Every handle type is C++ class name.",
			labelNames: ["type", ...labelNames],
			registers,
			collect() {
				const handles = process._getActiveHandles();
				updateMetrics(this, aggregateByObjectName(handles), labels);
			}
		});
		new Gauge({
			name: namePrefix + NODEJS_ACTIVE_HANDLES_TOTAL,
			help: "Total number of active handles.",
			registers,
			labelNames,
			collect() {
				const handles = process._getActiveHandles();
				this.set(labels, handles.length);
			}
		});
	};
	module.exports.metricNames = [NODEJS_ACTIVE_HANDLES, NODEJS_ACTIVE_HANDLES_TOTAL];
}));
// node_modules/prom-client/lib/metrics/processRequests.js
var require_processRequests = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const { aggregateByObjectName } = require_processMetricsHelpers();
	const { updateMetrics } = require_processMetricsHelpers();
	const NODEJS_ACTIVE_REQUESTS = "nodejs_active_requests";
	const NODEJS_ACTIVE_REQUESTS_TOTAL = "nodejs_active_requests_total";
	module.exports = (registry, config = {}) => {
		if (typeof process._getActiveRequests !== "function") return;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + NODEJS_ACTIVE_REQUESTS,
			help: "Number of active libuv requests grouped by request type. Every request type is C++ class name.",
			labelNames: ["type", ...labelNames],
			registers: registry ? [registry] : void 0,
			collect() {
				const requests = process._getActiveRequests();
				updateMetrics(this, aggregateByObjectName(requests), labels);
			}
		});
		new Gauge({
			name: namePrefix + NODEJS_ACTIVE_REQUESTS_TOTAL,
			help: "Total number of active requests.",
			registers: registry ? [registry] : void 0,
			labelNames,
			collect() {
				const requests = process._getActiveRequests();
				this.set(labels, requests.length);
			}
		});
	};
	module.exports.metricNames = [NODEJS_ACTIVE_REQUESTS, NODEJS_ACTIVE_REQUESTS_TOTAL];
}));
// node_modules/prom-client/lib/metrics/processResources.js
var require_processResources = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const { updateMetrics } = require_processMetricsHelpers();
	const NODEJS_ACTIVE_RESOURCES = "nodejs_active_resources";
	const NODEJS_ACTIVE_RESOURCES_TOTAL = "nodejs_active_resources_total";
	module.exports = (registry, config = {}) => {
		if (typeof process.getActiveResourcesInfo !== "function") return;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + NODEJS_ACTIVE_RESOURCES,
			help: "Number of active resources that are currently keeping the event loop alive, grouped by async resource type.",
			labelNames: ["type", ...labelNames],
			registers: registry ? [registry] : void 0,
			collect() {
				const resources = process.getActiveResourcesInfo();
				const data = {};
				for (let i = 0; i < resources.length; i++) {
					const resource = resources[i];
					if (Object.hasOwn(data, resource)) data[resource] += 1;
					else data[resource] = 1;
				}
				updateMetrics(this, data, labels);
			}
		});
		new Gauge({
			name: namePrefix + NODEJS_ACTIVE_RESOURCES_TOTAL,
			help: "Total number of active resources.",
			registers: registry ? [registry] : void 0,
			labelNames,
			collect() {
				const resources = process.getActiveResourcesInfo();
				this.set(labels, resources.length);
			}
		});
	};
	module.exports.metricNames = [NODEJS_ACTIVE_RESOURCES, NODEJS_ACTIVE_RESOURCES_TOTAL];
}));
// node_modules/prom-client/lib/metrics/heapSizeAndUsed.js
var require_heapSizeAndUsed = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const safeMemoryUsage = require_safeMemoryUsage();
	const NODEJS_HEAP_SIZE_TOTAL = "nodejs_heap_size_total_bytes";
	const NODEJS_HEAP_SIZE_USED = "nodejs_heap_size_used_bytes";
	const NODEJS_EXTERNAL_MEMORY = "nodejs_external_memory_bytes";
	module.exports = (registry, config = {}) => {
		if (typeof process.memoryUsage !== "function") return;
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		const registers = registry ? [registry] : void 0;
		const namePrefix = config.prefix ? config.prefix : "";
		const collect = () => {
			const memUsage = safeMemoryUsage();
			if (memUsage) {
				heapSizeTotal.set(labels, memUsage.heapTotal);
				heapSizeUsed.set(labels, memUsage.heapUsed);
				if (memUsage.external !== void 0) externalMemUsed.set(labels, memUsage.external);
			}
		};
		const heapSizeTotal = new Gauge({
			name: namePrefix + NODEJS_HEAP_SIZE_TOTAL,
			help: "Process heap size from Node.js in bytes.",
			registers,
			labelNames,
			collect
		});
		const heapSizeUsed = new Gauge({
			name: namePrefix + NODEJS_HEAP_SIZE_USED,
			help: "Process heap size used from Node.js in bytes.",
			registers,
			labelNames
		});
		const externalMemUsed = new Gauge({
			name: namePrefix + NODEJS_EXTERNAL_MEMORY,
			help: "Node.js external memory size in bytes.",
			registers,
			labelNames
		});
	};
	module.exports.metricNames = [
		NODEJS_HEAP_SIZE_TOTAL,
		NODEJS_HEAP_SIZE_USED,
		NODEJS_EXTERNAL_MEMORY
	];
}));
// node_modules/prom-client/lib/metrics/heapSpacesSizeAndUsed.js
var require_heapSpacesSizeAndUsed = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const v8 = __require("v8");
	const METRICS = [
		"total",
		"used",
		"available"
	];
	const NODEJS_HEAP_SIZE = {};
	METRICS.forEach((metricType) => {
		NODEJS_HEAP_SIZE[metricType] = `nodejs_heap_space_size_${metricType}_bytes`;
	});
	module.exports = (registry, config = {}) => {
		try {
			v8.getHeapSpaceStatistics();
		} catch (e) {
			if (e.code === "ERR_NOT_IMPLEMENTED") return;
			throw e;
		}
		const registers = registry ? [registry] : void 0;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = ["space", ...Object.keys(labels)];
		const gauges = {};
		METRICS.forEach((metricType) => {
			gauges[metricType] = new Gauge({
				name: namePrefix + NODEJS_HEAP_SIZE[metricType],
				help: `Process heap space size ${metricType} from Node.js in bytes.`,
				labelNames,
				registers
			});
		});
		gauges.total.collect = () => {
			for (const space of v8.getHeapSpaceStatistics()) {
				const spaceName = space.space_name.substr(0, space.space_name.indexOf("_space"));
				gauges.total.set({
					space: spaceName,
					...labels
				}, space.space_size);
				gauges.used.set({
					space: spaceName,
					...labels
				}, space.space_used_size);
				gauges.available.set({
					space: spaceName,
					...labels
				}, space.space_available_size);
			}
		};
	};
	module.exports.metricNames = Object.values(NODEJS_HEAP_SIZE);
}));
// node_modules/prom-client/lib/metrics/version.js
var require_version = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Gauge = require_gauge();
	const version = process.version;
	const versionSegments = version.slice(1).split(".").map(Number);
	const NODE_VERSION_INFO = "nodejs_version_info";
	module.exports = (registry, config = {}) => {
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		new Gauge({
			name: namePrefix + NODE_VERSION_INFO,
			help: "Node.js version info.",
			labelNames: [
				"version",
				"major",
				"minor",
				"patch",
				...labelNames
			],
			registers: registry ? [registry] : void 0,
			aggregator: "first",
			collect() {
				this.labels(version, versionSegments[0], versionSegments[1], versionSegments[2], ...Object.values(labels)).set(1);
			}
		});
	};
	module.exports.metricNames = [NODE_VERSION_INFO];
}));
// node_modules/prom-client/lib/metrics/gc.js
var require_gc = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const Histogram = require_histogram();
	let perf_hooks;
	try {
		perf_hooks = __require("perf_hooks");
	} catch {}
	const NODEJS_GC_DURATION_SECONDS = "nodejs_gc_duration_seconds";
	const DEFAULT_GC_DURATION_BUCKETS = [
		.001,
		.01,
		.1,
		1,
		2,
		5
	];
	const kinds = [];
	if (perf_hooks && perf_hooks.constants) {
		kinds[perf_hooks.constants.NODE_PERFORMANCE_GC_MAJOR] = "major";
		kinds[perf_hooks.constants.NODE_PERFORMANCE_GC_MINOR] = "minor";
		kinds[perf_hooks.constants.NODE_PERFORMANCE_GC_INCREMENTAL] = "incremental";
		kinds[perf_hooks.constants.NODE_PERFORMANCE_GC_WEAKCB] = "weakcb";
	}
	module.exports = (registry, config = {}) => {
		if (!perf_hooks) return;
		const namePrefix = config.prefix ? config.prefix : "";
		const labels = config.labels ? config.labels : {};
		const labelNames = Object.keys(labels);
		const buckets = config.gcDurationBuckets ? config.gcDurationBuckets : DEFAULT_GC_DURATION_BUCKETS;
		const gcHistogram = new Histogram({
			name: namePrefix + NODEJS_GC_DURATION_SECONDS,
			help: "Garbage collection duration by kind, one of major, minor, incremental or weakcb.",
			labelNames: ["kind", ...labelNames],
			enableExemplars: false,
			buckets,
			registers: registry ? [registry] : void 0
		});
		new perf_hooks.PerformanceObserver((list) => {
			const entry = list.getEntries()[0];
			const kind = entry.detail ? kinds[entry.detail.kind] : kinds[entry.kind];
			gcHistogram.observe(Object.assign({ kind }, labels), entry.duration / 1e3);
		}).observe({ entryTypes: ["gc"] });
	};
	module.exports.metricNames = [NODEJS_GC_DURATION_SECONDS];
}));
// node_modules/prom-client/lib/defaultMetrics.js
var require_defaultMetrics = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	const { isObject } = require_util();
	const processCpuTotal = require_processCpuTotal();
	const processStartTime = require_processStartTime();
	const osMemoryHeap = require_osMemoryHeap();
	const processOpenFileDescriptors = require_processOpenFileDescriptors();
	const processMaxFileDescriptors = require_processMaxFileDescriptors();
	const eventLoopLag = require_eventLoopLag();
	const processHandles = require_processHandles();
	const processRequests = require_processRequests();
	const processResources = require_processResources();
	const heapSizeAndUsed = require_heapSizeAndUsed();
	const heapSpacesSizeAndUsed = require_heapSpacesSizeAndUsed();
	const version = require_version();
	const gc = require_gc();
	const metrics = {
		processCpuTotal,
		processStartTime,
		osMemoryHeap,
		processOpenFileDescriptors,
		processMaxFileDescriptors,
		eventLoopLag,
		...typeof process.getActiveResourcesInfo === "function" ? { processResources } : {},
		processHandles,
		processRequests,
		heapSizeAndUsed,
		heapSpacesSizeAndUsed,
		version,
		gc
	};
	const metricsList = Object.keys(metrics);
	module.exports = function collectDefaultMetrics(config) {
		if (config !== null && config !== void 0 && !isObject(config)) throw new TypeError("config must be null, undefined, or an object");
		config = {
			eventLoopMonitoringPrecision: 10,
			...config
		};
		for (const metric of Object.values(metrics)) metric(config.register, config);
	};
	module.exports.metricsList = metricsList;
}));
// node_modules/prom-client/lib/metricAggregators.js
var require_metricAggregators = /* @__PURE__ */ __commonJSMin(((exports) => {
	const { Grouper, hashObject } = require_util();
	/**
	* Returns a new function that applies the `aggregatorFn` to the values.
	* @param {Function} aggregatorFn function to apply to values.
	* @return {Function} aggregator function
	*/
	function AggregatorFactory(aggregatorFn) {
		return (metrics) => {
			if (metrics.length === 0) return;
			const result = {
				help: metrics[0].help,
				name: metrics[0].name,
				type: metrics[0].type,
				values: [],
				aggregator: metrics[0].aggregator
			};
			const byLabels = new Grouper();
			metrics.forEach((metric) => {
				metric.values.forEach((value) => {
					const key = hashObject(value.labels);
					byLabels.add(`${value.metricName}_${key}`, value);
				});
			});
			byLabels.forEach((values) => {
				if (values.length === 0) return;
				const valObj = {
					value: aggregatorFn(values),
					labels: values[0].labels
				};
				if (values[0].metricName) valObj.metricName = values[0].metricName;
				result.values.push(valObj);
			});
			return result;
		};
	}
	exports.AggregatorFactory = AggregatorFactory;
	/**
	* Functions that can be used to aggregate metrics from multiple registries.
	*/
	exports.aggregators = {
		/**
		* @return The sum of values.
		*/
		sum: AggregatorFactory((v) => v.reduce((p, c) => p + c.value, 0)),
		/**
		* @return The first value.
		*/
		first: AggregatorFactory((v) => v[0].value),
		/**
		* @return {undefined} Undefined; omits the metric.
		*/
		omit: () => {},
		/**
		* @return The arithmetic mean of the values.
		*/
		average: AggregatorFactory((v) => v.reduce((p, c) => p + c.value, 0) / v.length),
		/**
		* @return The minimum of the values.
		*/
		min: AggregatorFactory((v) => v.reduce((p, c) => Math.min(p, c.value), Infinity)),
		/**
		* @return The maximum of the values.
		*/
		max: AggregatorFactory((v) => v.reduce((p, c) => Math.max(p, c.value), -Infinity))
	};
}));
// node_modules/prom-client/lib/cluster.js
var require_cluster = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	/**
	* Extends the Registry class with a `clusterMetrics` method that returns
	* aggregated metrics for all workers.
	*
	* In cluster workers, listens for and responds to requests for metrics by the
	* cluster master.
	*/
	const Registry = require_registry();
	const { Grouper } = require_util();
	const { aggregators } = require_metricAggregators();
	let cluster = () => {
		const data = __require("cluster");
		cluster = () => data;
		return data;
	};
	const GET_METRICS_REQ = "prom-client:getMetricsReq";
	const GET_METRICS_RES = "prom-client:getMetricsRes";
	let registries = [Registry.globalRegistry];
	let requestCtr = 0;
	let listenersAdded = false;
	const requests = /* @__PURE__ */ new Map();
	var AggregatorRegistry = class extends Registry {
		constructor(regContentType = Registry.PROMETHEUS_CONTENT_TYPE) {
			super(regContentType);
			addListeners();
		}
		/**
		* Gets aggregated metrics for all workers. The optional callback and
		* returned Promise resolve with the same value; either may be used.
		* @return {Promise<string>} Promise that resolves with the aggregated
		*   metrics.
		*/
		clusterMetrics() {
			const requestId = requestCtr++;
			return new Promise((resolve, reject) => {
				let settled = false;
				function done(err, result) {
					if (settled) return;
					settled = true;
					if (err) reject(err);
					else resolve(result);
				}
				const request = {
					responses: [],
					pending: 0,
					done,
					errorTimeout: setTimeout(() => {
						const err = /* @__PURE__ */ new Error("Operation timed out.");
						request.done(err);
					}, 5e3)
				};
				requests.set(requestId, request);
				const message = {
					type: GET_METRICS_REQ,
					requestId
				};
				for (const id in cluster().workers) if (cluster().workers[id].isConnected()) {
					cluster().workers[id].send(message);
					request.pending++;
				}
				if (request.pending === 0) {
					clearTimeout(request.errorTimeout);
					process.nextTick(() => done(null, ""));
				}
			});
		}
		get contentType() {
			return super.contentType;
		}
		/**
		* Creates a new Registry instance from an array of metrics that were
		* created by `registry.getMetricsAsJSON()`. Metrics are aggregated using
		* the method specified by their `aggregator` property, or by summation if
		* `aggregator` is undefined.
		* @param {Array} metricsArr Array of metrics, each of which created by
		*   `registry.getMetricsAsJSON()`.
		* @param {string} registryType content type of the new registry. Defaults
		* to PROMETHEUS_CONTENT_TYPE.
		* @return {Registry} aggregated registry.
		*/
		static aggregate(metricsArr, registryType = Registry.PROMETHEUS_CONTENT_TYPE) {
			const aggregatedRegistry = new Registry();
			const metricsByName = new Grouper();
			aggregatedRegistry.setContentType(registryType);
			metricsArr.forEach((metrics) => {
				metrics.forEach((metric) => {
					metricsByName.add(metric.name, metric);
				});
			});
			metricsByName.forEach((metrics) => {
				const aggregatorName = metrics[0].aggregator;
				const aggregatorFn = aggregators[aggregatorName];
				if (typeof aggregatorFn !== "function") throw new Error(`'${aggregatorName}' is not a defined aggregator.`);
				const aggregatedMetric = aggregatorFn(metrics);
				if (aggregatedMetric) {
					const aggregatedMetricWrapper = Object.assign({ get: () => aggregatedMetric }, aggregatedMetric);
					aggregatedRegistry.registerMetric(aggregatedMetricWrapper);
				}
			});
			return aggregatedRegistry;
		}
		/**
		* Sets the registry or registries to be aggregated. Call from workers to
		* use a registry/registries other than the default global registry.
		* @param {Array<Registry>|Registry} regs Registry or registries to be
		*   aggregated.
		* @return {void}
		*/
		static setRegistries(regs) {
			if (!Array.isArray(regs)) regs = [regs];
			regs.forEach((reg) => {
				if (!(reg instanceof Registry)) throw new TypeError(`Expected Registry, got ${typeof reg}`);
			});
			registries = regs;
		}
	};
	/**
	* Adds event listeners for cluster aggregation. Idempotent (safe to call more
	* than once).
	* @return {void}
	*/
	function addListeners() {
		if (listenersAdded) return;
		listenersAdded = true;
		if (cluster().isMaster) cluster().on("message", (worker, message) => {
			if (message.type === GET_METRICS_RES) {
				const request = requests.get(message.requestId);
				if (message.error) {
					request.done(new Error(message.error));
					return;
				}
				message.metrics.forEach((registry) => request.responses.push(registry));
				request.pending--;
				if (request.pending === 0) {
					requests.delete(message.requestId);
					clearTimeout(request.errorTimeout);
					const promString = AggregatorRegistry.aggregate(request.responses).metrics();
					request.done(null, promString);
				}
			}
		});
		if (cluster().isWorker) process.on("message", (message) => {
			if (message.type === GET_METRICS_REQ) Promise.all(registries.map((r) => r.getMetricsAsJSON())).then((metrics) => {
				process.send({
					type: GET_METRICS_RES,
					requestId: message.requestId,
					metrics
				});
			}).catch((error) => {
				process.send({
					type: GET_METRICS_RES,
					requestId: message.requestId,
					error: error.message
				});
			});
		});
	}
	module.exports = AggregatorRegistry;
}));
// src/observability/metrics.ts
var import_prom_client = (/* @__PURE__ */ __commonJSMin(((exports) => {
	exports.register = require_registry().globalRegistry;
	exports.Registry = require_registry();
	Object.defineProperty(exports, "contentType", {
		configurable: false,
		enumerable: true,
		get() {
			return exports.register.contentType;
		},
		set(value) {
			exports.register.setContentType(value);
		}
	});
	exports.prometheusContentType = exports.Registry.PROMETHEUS_CONTENT_TYPE;
	exports.openMetricsContentType = exports.Registry.OPENMETRICS_CONTENT_TYPE;
	exports.validateMetricName = require_validation().validateMetricName;
	exports.Counter = require_counter();
	exports.Gauge = require_gauge();
	exports.Histogram = require_histogram();
	exports.Summary = require_summary();
	exports.Pushgateway = require_pushgateway();
	exports.linearBuckets = require_bucketGenerators().linearBuckets;
	exports.exponentialBuckets = require_bucketGenerators().exponentialBuckets;
	exports.collectDefaultMetrics = require_defaultMetrics();
	exports.aggregators = require_metricAggregators().aggregators;
	exports.AggregatorRegistry = require_cluster();
})))();
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
	const registry = new import_prom_client.Registry();
	(0, import_prom_client.collectDefaultMetrics)({
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
		build: new import_prom_client.Gauge({
			name: "holdover_build_info",
			help: "Always 1; which Holdover this is and what runs its jobs.",
			labelNames: ["version", "upstream"],
			registers
		}),
		requests: new import_prom_client.Counter({
			name: "holdover_http_requests_total",
			help: "Requests by method, route pattern and outcome: a class of status, or cut_off.",
			labelNames: [
				"method",
				"route",
				"outcome"
			],
			registers
		}),
		durations: new import_prom_client.Histogram({
			name: "holdover_http_request_duration_seconds",
			help: "From the request headers to the last byte of the answer.",
			labelNames: ["route"],
			buckets: DURATION_BUCKETS,
			registers
		}),
		calls: new import_prom_client.Counter({
			name: "holdover_upstream_calls_total",
			help: "v2 calls that v1 calls became, by operation and outcome: ok, 4xx, 5xx, or broken.",
			labelNames: ["operation", "outcome"],
			registers
		}),
		callDurations: new import_prom_client.Histogram({
			name: "holdover_upstream_call_duration_seconds",
			help: "From a v2 call to its answer; of downloads and event streams, to their first byte.",
			labelNames: ["operation"],
			buckets: DURATION_BUCKETS,
			registers
		}),
		ended: new import_prom_client.Counter({
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
		new import_prom_client.Gauge({
			name,
			help,
			registers,
			collect() {
				this.set(read());
			}
		});
	};
	new import_prom_client.Gauge({
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
	new import_prom_client.Counter({
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
	const reservedCounters = new I(atMost(MAX_REMEMBERED_COUNTERS));
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
	const recentFloors = new I({ ...atMost(MAX_REMEMBERED_COUNTERS) });
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
