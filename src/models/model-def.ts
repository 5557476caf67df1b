import type { Caller } from '../protocol/job-api.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import type { Bucket, ModelBilling, ValidationDetail } from '../protocol/router.ts';

/** One call of a model, its input validated and its defaults filled in. */
export type ModelCall = {
  readonly input: JsonObject;
  /** The input as it came: numbers that a double cannot hold are whole only here. */
  readonly body: Json;
  readonly caller: Caller;
  /** Aborts at the deadline and when the client leaves. */
  readonly signal: AbortSignal;
};

/** Outcome of a model: an answer, a refusal of its input, or a failure in the router's terms. */
export type ModelOutcome =
  | {
      readonly kind: 'answer';
      readonly contentType: string;
      readonly body: Uint8Array;
    }
  | { readonly kind: 'invalid'; readonly detail: readonly ValidationDetail[] }
  | { readonly kind: 'failed'; readonly bucket: Bucket; readonly detail: string };

/** A model of the catalogue; `input` left out: any JSON object is accepted. */
export type ModelDef = {
  readonly provider: string;
  readonly model: string;
  readonly title: string;
  readonly description: string;
  readonly billing: ModelBilling;
  /** JSON Schema 2020-12 of the request body. */
  readonly input?: JsonObject;
  /** Content type → JSON Schema of what it answers. */
  readonly output: { readonly [contentType: string]: JsonObject };
  /** The price the call commits its workspace to, in US cents; without it, 0. */
  priceCents?(input: JsonObject): number;
  run(call: ModelCall): Promise<ModelOutcome>;
};

/** The id a model is addressed by. */
export function modelId({ provider, model }: Pick<ModelDef, 'provider' | 'model'>): string {
  return `${provider}/${model}`;
}

/** A model's answer as JSON. */
export function answerJson(value: string): ModelOutcome {
  return { kind: 'answer', contentType: 'application/json', body: Buffer.from(value) };
}
