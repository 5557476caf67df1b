import { once } from 'node:events';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A span as the collector received it. */
export type ReceivedSpan = {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it has no parent. */
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  readonly startedAt: bigint;
  readonly endedAt: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
};

export type Collector = {
  readonly url: string;
  readonly spans: () => readonly ReceivedSpan[];
  /** Everything that arrived, as one text, to look for what must not be in it. */
  readonly raw: () => string;
  readonly headers: () => readonly IncomingHttpHeaders[];
  /** The environment that makes a process send its spans here at once. */
  readonly env: NodeJS.ProcessEnv;
  close(): Promise<void>;
};

/** A collector of OpenTelemetry that takes OTLP over HTTP as protobuf. */
export async function openCollector(): Promise<Collector> {
  const bodies: Buffer[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      bodies.push(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body);
      headers.push(request.headers);
      response.setHeader('Content-Type', 'application/x-protobuf');
      response.end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    spans: () => bodies.flatMap(spansIn),
    raw: () => Buffer.concat(bodies).toString('latin1'),
    headers: () => headers,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '50' },
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A field of a protobuf message: a number, or the bytes of a text or message. */
type Field = { readonly id: number; readonly value: bigint | Buffer };

function fieldsIn(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(readVarint());
    const id = tag >> 3;
    const type = tag & 7;
    if (type === 0) fields.push({ id, value: readVarint() });
    else if (type === 1) fields.push({ id, value: message.readBigUInt64LE((at += 8) - 8) });
    else if (type === 5) fields.push({ id, value: BigInt(message.readUInt32LE((at += 4) - 4)) });
    else {
      const length = Number(readVarint());
      fields.push({ id, value: message.subarray(at, (at += length)) });
    }
  }
  return fields;
}

const messages = (fields: readonly Field[], id: number): Buffer[] =>
  fields.filter((field) => field.id === id).map(({ value }) => value as Buffer);
const one = (fields: readonly Field[], id: number): Buffer =>
  messages(fields, id)[0] ?? Buffer.alloc(0);
const numberOf = (fields: readonly Field[], id: number): bigint =>
  (fields.find((field) => field.id === id)?.value as bigint | undefined) ?? 0n;

/** By the numbers of opentelemetry/proto/trace/v1/trace.proto. */
function spansIn(body: Buffer): readonly ReceivedSpan[] {
  return messages(fieldsIn(body), 1).flatMap((resourceSpans) => {
    const parts = fieldsIn(resourceSpans);
    const resource = attributesIn(fieldsIn(one(parts, 1)), 1);
    const service = String(resource['service.name']);
    return messages(parts, 2).flatMap((scope) =>
      messages(fieldsIn(scope), 2).map((span) => spanIn(fieldsIn(span), service)),
    );
  });
}

function spanIn(fields: readonly Field[], service: string): ReceivedSpan {
  return {
    service,
    traceId: one(fields, 1).toString('hex'),
    spanId: one(fields, 2).toString('hex'),
    parentId: one(fields, 4).toString('hex'),
    name: one(fields, 5).toString(),
    kind: Number(numberOf(fields, 6)),
    startedAt: numberOf(fields, 7),
    endedAt: numberOf(fields, 8),
    attributes: attributesIn(fields, 9),
  };
}

function attributesIn(fields: readonly Field[], id: number) {
  const entries = messages(fields, id).map((attribute) => {
    const parts = fieldsIn(attribute);
    const [value] = fieldsIn(one(parts, 2));
    return [one(parts, 1).toString(), value && valueOf(value)] as const;
  });
  return Object.fromEntries(entries) as ReceivedSpan['attributes'];
}

function valueOf({ id, value }: Field): string | number | boolean {
  if (id === 1) return (value as Buffer).toString();
  return id === 2 ? value === 1n : Number(value);
}
