import { gunzipSync, inflateSync } from 'node:zlib';
import sharp from 'sharp';
import { privateCaching } from '../../../src/http/answer.ts';
import { parseJson } from '../../../src/protocol/json.ts';
import { type Tolerances, compareFrames, compareJson } from './golden-frames.ts';
import type { Answer } from './golden-http.ts';
import { createTempNames, normalJson, ownFrame, recordedFrame } from './golden-normalize.ts';
import type { Replayed } from './golden-replay.ts';
import { type GoldenExchange, type Scenario, isReceived } from './golden-scenario.ts';
import type { Frame, GoldenSocket } from './golden-socket.ts';
import { recordedFile } from './recordings.ts';

/** Every way in which our server differed, by what it differed in; empty when it did not. */
export type Differences = { readonly [where: string]: readonly string[] };

/** Headers that mean the same from either server. */
const HEADERS = [
  'content-type',
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-range',
  'access-control-allow-origin',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-allow-credentials',
] as const;

/** Sockets and exchanges of a scenario compared with what our server did. */
export async function differencesOf(
  scenario: Scenario,
  replayed: Replayed,
  tolerances: Tolerances = {},
): Promise<Differences> {
  const without = new Set(tolerances.without);
  const found: { [where: string]: readonly string[] } = {};
  for (const [label, socket] of replayed.sockets) {
    if (!without.has(label))
      found[`socket ${label}`] = compareSocket(scenario, label, { socket, replayed, tolerances });
  }
  for (const [index, exchange] of scenario.exchanges.entries()) {
    if (without.has(index)) continue;
    const answer = replayed.answers[index];
    const { method, path } = exchange.request;
    const where = `${index} ${method} ${path}`;
    const differing = answer ? await compareExchange(exchange, answer, replayed) : ['no answer'];
    const ofBytes = tolerances.otherBytes ? /^asset\.(asset_hash|size) / : /^$/;
    found[where] = differing.filter((line) => !ofBytes.test(line));
  }
  return Object.fromEntries(
    Object.entries(found).filter(([, differences]) => differences.length > 0),
  );
}

function compareSocket(
  { records }: Scenario,
  label: string,
  {
    socket,
    replayed,
    tolerances,
  }: { socket: GoldenSocket; replayed: Replayed; tolerances: Tolerances },
): string[] {
  const own = records.filter((record) => record.socket === label);
  const agreed = own.find(({ event }) => event === 'open')?.handshake?.headers[
    'Sec-WebSocket-Extensions'
  ];
  const wasClosed = own.some(({ event }) => event === 'closed');
  const mine = socket.frames.map((frame) => ownFrame(asRecorded(frame, replayed)));
  return [
    ...((agreed ?? '') === socket.extensions ? [] : [`extensions: ${socket.extensions || 'none'}`]),
    ...(wasClosed === (socket.closeCode() !== undefined) ? [] : [`closed: ${!wasClosed}`]),
    ...(socket.frames.every(beginsWithType)
      ? []
      : ['a text frame that does not begin with {"type"']),
    ...compareFrames(own.filter(isReceived).map(recordedFrame), mine, tolerances),
  ];
}

/** One client tells frames apart by their first seven characters. */
function beginsWithType(frame: Frame): boolean {
  return typeof frame !== 'string' || frame.startsWith('{"type"');
}

function asRecorded(frame: Frame, replayed: Replayed): Frame {
  if (typeof frame === 'string') return replayed.asRecorded(frame);
  if (frame.readUInt32BE(0) !== 4) return frame;
  const end = 8 + frame.readUInt32BE(4);
  const about = Buffer.from(replayed.asRecorded(frame.subarray(8, end).toString()));
  const head = Buffer.from(frame.subarray(0, 8));
  head.writeUInt32BE(about.length, 4);
  return Buffer.concat([head, about, frame.subarray(end)]);
}

async function compareExchange(
  exchange: GoldenExchange,
  answer: Answer,
  replayed: Replayed,
): Promise<string[]> {
  const { response } = exchange;
  const status = answer.status === response.status ? [] : [`status ${answer.status}`];
  const length = answer.headers['content-length'];
  const isBothEmpty = response.headers['Content-Length'] === '0' && answer.body.length === 0;
  return [
    ...status,
    ...HEADERS.flatMap((name) => compareHeader(name, response.headers, answer)),
    ...(isBothEmpty && length !== '0' ? [`content-length ${length}`] : []),
    ...(await compareBody(exchange, answer, replayed)),
  ];
}

function compareHeader(
  name: (typeof HEADERS)[number],
  recorded: GoldenExchange['response']['headers'],
  { headers }: Answer,
): string[] {
  const theirs = Object.entries(recorded).find(([key]) => key.toLowerCase() === name)?.[1];
  const mine = headers[name];
  // Row `headers`.
  const isPrivate = mine === privateCaching((each) => headers[each.toLowerCase()] !== undefined);
  if (name === 'cache-control' && isPrivate) return [];
  return theirs === mine ? [] : [`${name}: ${mine ?? 'none'}`];
}

async function compareBody(
  { response, answerJson }: GoldenExchange,
  { body, headers }: Answer,
  replayed: Replayed,
): Promise<string[]> {
  const text = replayed.asRecorded(unpacked(body, headers['content-encoding']).toString());
  const isJson = headers['content-type']?.startsWith('application/json') === true;
  if (response.body_empty) return body.length === 0 ? [] : [`body ${bodySummary(text, isJson)}`];
  if (answerJson !== undefined) {
    if (!isJson) return [`body ${bodySummary(text, isJson)}`];
    const [theirs, ours] = [createTempNames(), createTempNames()];
    const recorded = parseJson(theirs(JSON.stringify(normalJson(answerJson))));
    return compareJson(recorded, parseJson(ours(JSON.stringify(normalJson(parseJson(text))))), '');
  }
  if (response.body_text !== undefined)
    return text === response.body_text ? [] : [`body ${bodySummary(text, isJson)}`];
  if (response.body_file === undefined) return [];
  const file = recordedFile(response.body_file);
  const encoding = response.headers['Content-Encoding'];
  if (encoding === undefined) return comparePicture(file, body);
  return compareJson(parseJson(unpacked(file, encoding).toString()), parseJson(text), '');
}

function unpacked(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(body);
  return encoding === 'deflate' ? inflateSync(body) : body;
}

/** Decoders and encoders differ; the pixels of what is lossless do not. */
async function comparePicture(recorded: Buffer, mine: Buffer): Promise<string[]> {
  if (mine.length === 0) return ['no picture'];
  const [theirs, ours] = await Promise.all(
    [recorded, mine].map((bytes) =>
      sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true }),
    ),
  );
  return theirs?.data.equals(ours?.data ?? Buffer.alloc(0)) ? [] : ['pixels'];
}

function bodySummary(text: string, isJson: boolean): string {
  if (!isJson) return JSON.stringify(text.slice(0, 80));
  const { error } = parseJson(text) as { error?: { type?: string } };
  return error?.type === undefined ? text.slice(0, 120) : `error ${error.type}`;
}
