import type { Caller } from '../protocol/job-api.ts';
import { type Json, type JsonObject, stringifyJson } from '../protocol/json.ts';
import type { Bucket, ModelBilling, ValidationDetail } from '../protocol/router.ts';

/** One call of a model, with its input validated and its defaults set. */
export type ModelCall = {
  readonly input: JsonObject;
  /** The input as it was sent. Numbers that do not fit a double are exact only here. */
  readonly body: Json;
  readonly caller: Caller;
  /** Aborts at the deadline, and when the client disconnects. */
  readonly signal: AbortSignal;
};

/**
 * The outcome of a model: an answer, a refusal of its input, or a failure in the router's terms.
 */
export type ModelOutcome =
  | {
      readonly kind: 'answer';
      readonly contentType: string;
      readonly body: Uint8Array;
    }
  | { readonly kind: 'invalid'; readonly detail: readonly ValidationDetail[] }
  | { readonly kind: 'failed'; readonly bucket: Bucket; readonly detail: string };

/** A model of the catalog. Without `input`, any JSON object is accepted. */
export type ModelDef = {
  readonly provider: string;
  readonly model: string;
  readonly title: string;
  readonly description: string;
  readonly billing: ModelBilling;
  /** JSON Schema 2020-12 of the request body. */
  readonly input?: JsonObject;
  /** The JSON Schema of the answer for each content type. */
  readonly output: { readonly [contentType: string]: JsonObject };
  /**
   * Returns the price of the call, in US cents, which is reserved while the call runs. Without this function the
   * price is 0.
   */
  priceCents?(input: JsonObject): number;
  run(call: ModelCall): Promise<ModelOutcome>;
};

/** Returns the id by which a model is addressed. */
export function modelId({ provider, model }: ModelDef): string {
  return `${provider}/${model}`;
}

/** Returns a model's answer as JSON. */
export function answerJson(value: Json): ModelOutcome & { kind: 'answer' } {
  const body = Buffer.from(stringifyJson(value));
  return { kind: 'answer', contentType: 'application/json', body };
}
