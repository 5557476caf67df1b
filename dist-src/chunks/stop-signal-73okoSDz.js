// src/config/tracing.ts
const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOL = "http/protobuf";
/**
* Reads the usual variables of OpenTelemetry, as far as they decide on or off; the SDK reads the
* rest. A platform may set them for every process, so none of them ends the start.
*/
function tracingSettings(env) {
	const exporter = env["OTEL_TRACES_EXPORTER"] ?? "";
	const isDisabled = /^true$/i.test(env["OTEL_SDK_DISABLED"] ?? "") || exporter === "none";
	const hasEndpoint = ENDPOINTS.some((name) => (env[name] ?? "") !== "");
	if (isDisabled || exporter === "" && !hasEndpoint) return { kind: "off" };
	if (exporter !== "" && exporter !== "otlp") return unusable("OTEL_TRACES_EXPORTER", exporter, "otlp");
	const protocol = env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] || env["OTEL_EXPORTER_OTLP_PROTOCOL"] || PROTOCOL;
	if (protocol !== PROTOCOL) return unusable("OTEL_EXPORTER_OTLP_PROTOCOL", protocol, PROTOCOL);
	return { kind: "otlp" };
}
function unusable(name, given, possible) {
	return {
		kind: "unusable",
		reason: `${name} is "${given}", and only "${possible}" is possible`
	};
}
// src/cli/stop-signal.ts
const SIGNALS = ["SIGINT", "SIGTERM"];
/** Resolves with the first SIGINT or SIGTERM. A second one of either ends the process at once. */
function stopSignal() {
	return new Promise((resolve) => {
		const stop = (signal) => {
			for (const other of SIGNALS) process.removeAllListeners(other).once(other, () => process.exit(1));
			resolve(signal);
		};
		for (const signal of SIGNALS) process.once(signal, stop);
	});
}
export { tracingSettings as n, stopSignal as t };
