/** Traces are sent to an OTLP collector, are not made, or cannot be made as the environment asks. */
export type TracingSettings =
  | { readonly kind: 'off' }
  | { readonly kind: 'otlp' }
  | { readonly kind: 'unusable'; readonly reason: string };

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOL = 'http/protobuf';

/**
 * Reads the usual variables of OpenTelemetry, as far as they decide on or off; the SDK reads the
 * rest. A platform may set them for every process, so none of them ends the start.
 */
export function tracingSettings(env: NodeJS.ProcessEnv): TracingSettings {
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? '';
  const isDisabled = /^true$/i.test(env['OTEL_SDK_DISABLED'] ?? '') || exporter === 'none';
  const hasEndpoint = ENDPOINTS.some((name) => (env[name] ?? '') !== '');
  if (isDisabled || (exporter === '' && !hasEndpoint)) return { kind: 'off' };
  if (exporter !== '' && exporter !== 'otlp') {
    return unusable('OTEL_TRACES_EXPORTER', exporter, 'otlp');
  }
  const protocol =
    env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL'] || PROTOCOL;
  if (protocol !== PROTOCOL) return unusable('OTEL_EXPORTER_OTLP_PROTOCOL', protocol, PROTOCOL);
  return { kind: 'otlp' };
}

function unusable(name: string, given: string, possible: string): TracingSettings {
  return { kind: 'unusable', reason: `${name} is "${given}", and only "${possible}" is possible` };
}
