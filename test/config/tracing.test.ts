import { expect, test } from 'vitest';
import { tracingSettings } from '../../src/config/tracing.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

test.each([
  [{}, 'off'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, 'off'],
  [ENDPOINT, 'otlp'],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, 'otlp'],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'otlp'],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, 'off'],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }, 'off'],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, 'otlp'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, 'otlp'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'unusable'],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'console' }, 'unusable'],
  [{ OTEL_SERVICE_NAME: 'holdover' }, 'off'],
])('%j makes traces: %s', (env, kind) => {
  expect(tracingSettings(env).kind).toBe(kind);
});
