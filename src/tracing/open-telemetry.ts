import { randomUUID } from 'node:crypto';
import type { TextMapPropagator, Tracer } from '@opentelemetry/api';
import type { TracingSettings } from '../config/tracing.ts';
import { completesWithin } from '../lib/completes-within.ts';
import type { Logger } from '../observability/log.ts';

/** The parts of OpenTelemetry that spans are made with. */
export type OpenTelemetry = {
  readonly api: typeof import('@opentelemetry/api');
  readonly tracer: Tracer;
  /** W3C Trace Context: `traceparent` and `tracestate`. */
  readonly propagator: TextMapPropagator;
  /** Sends what is left; resolves after some seconds at the latest. */
  close(): Promise<void>;
};

const PACKAGES =
  '@opentelemetry/api @opentelemetry/core @opentelemetry/resources @opentelemetry/sdk-trace-base ' +
  '@opentelemetry/exporter-trace-otlp-proto';
/** An unreachable collector must not hold up the end of the process. */
const CLOSE_TIMEOUT_MS = 3000;
/** A collector that is away fails every batch. */
const REPORT_INTERVAL_MS = 60_000;

/**
 * Loads OpenTelemetry and starts exporting, if the environment asks for it. `undefined`: no span is
 * made; when they are asked for and cannot be made, the log says why.
 */
export async function openTelemetry(
  settings: TracingSettings,
  { version, log }: { readonly version: string; readonly log: Logger },
): Promise<OpenTelemetry | undefined> {
  if (settings.kind === 'off') return undefined;
  if (settings.kind === 'unusable') {
    log.warn({ event: 'tracing.unavailable', reason: settings.reason }, 'no traces are sent');
    return undefined;
  }
  const modules = await loadPackages().catch((error: NodeJS.ErrnoException) => {
    // The name of the code depends on how the modules are bundled.
    if (error.code?.endsWith('MODULE_NOT_FOUND') !== true) throw error;
    const reason = `an optional package is missing: run "npm install ${PACKAGES}"`;
    log.warn({ event: 'tracing.unavailable', reason }, 'no traces are sent');
    return undefined;
  });
  return modules && start(modules, version, log);
}

type Packages = Awaited<ReturnType<typeof loadPackages>>;

async function loadPackages() {
  const [api, core, resources, sdk, exporter] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  return { api, core, resources, sdk, exporter };
}

/** Endpoint, headers, sampler, batches and limits: the SDK reads them from `OTEL_*`. */
function start(
  { api, core, resources, sdk, exporter }: Packages,
  version: string,
  log: Logger,
): OpenTelemetry {
  api.diag.setLogger(failureLog(log), api.DiagLogLevel.ERROR);
  const own = resources.resourceFromAttributes({
    'service.name': 'holdover',
    'service.version': version,
    'service.instance.id': randomUUID(),
  });
  const detectors = [resources.envDetector];
  const provider = new sdk.BasicTracerProvider({
    resource: own.merge(resources.detectResources({ detectors })),
    spanProcessors: [new sdk.BatchSpanProcessor(new exporter.OTLPTraceExporter())],
  });
  return {
    api,
    tracer: provider.getTracer('holdover', version),
    propagator: new core.W3CTraceContextPropagator(),
    close: async () => {
      await completesWithin(CLOSE_TIMEOUT_MS, provider.shutdown()).catch(() => {});
    },
  };
}

/** Errors of the exporter as lines of the log, one a minute. */
function failureLog(log: Logger) {
  let reportedAt = -Infinity;
  const error = (message: string): void => {
    if (performance.now() - reportedAt < REPORT_INTERVAL_MS) return;
    reportedAt = performance.now();
    log.warn({ event: 'tracing.export_failed', reason: reasonIn(message) }, 'spans were lost');
  };
  const ignore = (): void => {};
  return { error, warn: ignore, info: ignore, debug: ignore, verbose: ignore };
}

/** The SDK reports an error as JSON with its stack. */
function reasonIn(text: string): string {
  try {
    const { message, code } = JSON.parse(text) as { message?: string; code?: string };
    return message || code || 'no reason is known';
  } catch {
    return text.slice(0, 500);
  }
}
