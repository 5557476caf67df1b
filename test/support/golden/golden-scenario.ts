import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'lossless-json';
import {
  type Json,
  type JsonObject,
  LosslessNumber,
  parseJson,
} from '../../../src/protocol/json.ts';
import { type Exchange, exchangesOf } from './recordings.ts';

const ROOT = fileURLToPath(new URL('../../../fixtures/v1/', import.meta.url));

/** The recorded server scans its folders, and logs calls that fail; rows `asset-scan` and `logs`. */
function isOnlyRecorded(json: JsonObject | undefined): boolean {
  return /^\{"type":"(assets\.seed\.|logs".*Error handling request)/.test(JSON.stringify(json));
}

/** One line of a WebSocket transcript. */
export type WsRecord = {
  readonly t_ms: number;
  readonly socket: string;
  readonly json?: JsonObject;
  readonly text?: string;
  readonly note?: string;
  readonly dir?: 'send';
  readonly event?: 'open' | 'close-by-client' | 'closed';
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly binary_type?: number;
  readonly binary_hex_head?: string;
  readonly text_node?: string;
  readonly handshake?: { readonly headers: Readonly<Record<string, string>> };
};

/** The actions of the recorder, in order. */
export type Step =
  | {
      readonly kind: 'http';
      readonly atMs: number;
      readonly index: number;
      readonly exchange: GoldenExchange;
    }
  | { readonly kind: 'ws'; readonly atMs: number; readonly record: WsRecord };

/** `bodyText` is the JSON body as sent, digit for digit; `answerJson` the lossless answer. */
export type GoldenExchange = Exchange & {
  readonly t_ms: number;
  readonly bodyText: string | undefined;
  readonly answerJson: Json | undefined;
};

export type Scenario = {
  readonly name: string;
  readonly exchanges: readonly GoldenExchange[];
  readonly records: readonly WsRecord[];
  readonly steps: readonly Step[];
  /** Files that lay in the input folder before the start, by name. */
  readonly inputs: ReadonlyMap<string, Buffer>;
};

/** A recorded scenario: calls and sockets on one time line. */
export function scenarioOf(name: string, recordings = ''): Scenario {
  const recorded = goldenExchanges(name, recordings);
  const exchanges = recordings === 'assets-on' ? recorded.map(withIdsOf(recorded)) : recorded;
  const records = wsRecords(`${ROOT}${recordings}/ws/${name}.jsonl`);
  const steps: Step[] = [
    ...records
      .filter(({ dir, event }) => dir === 'send' || event === 'open' || event === 'close-by-client')
      .map((record): Step => ({ kind: 'ws', atMs: record.t_ms, record })),
    ...exchanges.map((exchange, index): Step => {
      return { kind: 'http', atMs: exchange.t_ms, index, exchange };
    }),
  ];
  return {
    name,
    exchanges,
    records,
    steps: steps.toSorted((a, b) => a.atMs - b.atMs),
    inputs: inputsOf(name),
  };
}

/** A frame the recorded client received. */
export function isReceived(record: WsRecord): boolean {
  return record.dir === undefined && record.event === undefined;
}

type Bodies = {
  readonly request: { body_json?: unknown };
  readonly response: { body_json?: Json };
};

function goldenExchanges(name: string, recordings: string): readonly GoldenExchange[] {
  const text = readFileSync(`${ROOT}${recordings}/http/${name}.json`, 'utf8');
  const number = (digits: string): LosslessNumber => new LosslessNumber(digits);
  const lossless = (parse(text, undefined, number) as { exchanges: Bodies[] }).exchanges;
  return exchangesOf(name, recordings).map((exchange, index) => ({
    ...(exchange as Exchange & { t_ms: number }),
    bodyText: stringify(lossless[index]?.request.body_json),
    answerJson: lossless[index]?.response.body_json,
  }));
}

/**
 * The requests of recordings with assets name prompts by their place, while the answers number
 * prompts and assets together.
 */
function withIdsOf(recorded: readonly GoldenExchange[]) {
  const ids = recorded.flatMap(
    ({ response }) => (response.body_json as { prompt_id?: string } | null)?.prompt_id ?? [],
  );
  const renumbered = (text: string): string =>
    text.replaceAll(
      /00000000-0000-4000-8000-0{10}(\d\d)/g,
      (id, place: string) => ids[Number(place) - 1] ?? id,
    );
  return (exchange: GoldenExchange): GoldenExchange => ({
    ...exchange,
    bodyText: exchange.bodyText && renumbered(exchange.bodyText),
    request: { ...exchange.request, path: renumbered(exchange.request.path) },
  });
}

function wsRecords(file: string): readonly WsRecord[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const records = lines.map((line) => parseJson(line) as Json as unknown as WsRecord);
  return records.filter(({ json }) => !isOnlyRecorded(json));
}

function inputsOf(name: string): ReadonlyMap<string, Buffer> {
  const prefix = `${name}-input-`;
  const files = readdirSync(`${ROOT}files`).filter((file) => file.startsWith(prefix));
  return new Map(
    files.map((file) => [file.slice(prefix.length), readFileSync(`${ROOT}files/${file}`)]),
  );
}
