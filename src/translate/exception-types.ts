import { errorCodeOf } from '../protocol/error-codes.ts';
import type { V1Message } from '../protocol/v1.ts';
import type { JobError } from '../protocol/v2.ts';

/**
 * The error classes that v1 documents for runs, and the one of the hosted service for a job that it
 * has lost. Other errors have a class name of the node's own language.
 */
export type DocumentedException = keyof typeof EXCEPTION_SIGNS;

type Signs = {
  /**
   * Matched against the words of v2's `code`, and of a class that the error names: `OOMError` is
   * `oom_error`.
   */
  readonly name: RegExp;
  /** Matched against the node's class and the message, when no name matches. */
  readonly text?: RegExp;
  /** The class of the local server, where it is not the documented one. */
  readonly ownClass?: string;
  /** True when the same graph would fail again. */
  readonly isFinal: boolean;
};

const FAILED = String.raw`\b(?:fail\w*|unable|error\w*|could(?: not|n't)|can(?:not|'t)|timed out)\b`;
const DOWNLOAD = String.raw`\b(?:download|fetch|retriev)(?:e|ed|ing)?\b`;
const ARTICLES = String.raw`\s+(?:(?:of|from|the|an?|your|input|source|reference|required|remote)\s+)*`;
const MODEL = '(?:model|checkpoint|lora|vae|controlnet|weights)';
const MODEL_FILE = String.raw`\.(?:safetensors|ckpt|gguf|pth|onnx)\b`;
/** The name of a model; a picture may be called `my model 1.png`. */
const MODEL_NAME = String.raw`(?:"[^"\n]{1,300}"|'[^'\n]{1,300}'|(?!\S{1,300}\.(?:png|jpe?g|webp|gif|mp4)\b)\S{1,300})`;
const IS_MISSING = String.raw`(?:not found|missing|unavailable|not available|does not exist|no such file|download(?:ing)? (?:failed|error)|(?:could not be|failed to) download)`;
const PICTURE = '(?:image|picture|photo|mask)';
const PICTURE_LOADER = String.raw`^(?:LoadImage\S{0,300}|\S{0,300}FromURL)\s`;

/**
 * The signs by which an error gets its documented name, in code, message and traceback. The first
 * row that matches wins.
 */
const EXCEPTION_SIGNS = {
  ServiceError: {
    name: /^(?:(?:job_|worker_)?(?:lost|expired)|service_error)$/,
    isFinal: false,
  },
  InsufficientFundsError: {
    name: words('insufficient_(?:credits|funds|balance)|payment_required'),
    text: anyOf(
      String.raw`payment required|insufficient (?:account )?(?:credits|funds|balance)`,
      String.raw`\b(?:credits|funds|balance)(?: (?:is|are))? (?:insufficient|exhausted|too low)\b`,
      String.raw`\b(?:not enough|out of) credits\b|\bplease add (?:more )?credits\b`,
    ),
    isFinal: true,
  },
  InactiveSubscriptionError: {
    name: words(
      '(?:inactive|no)_subscription|subscription_(?:inactive|not_active|required|expired|ended)',
    ),
    text: anyOf(
      String.raw`\bsubscription\b[^.\n]{0,40}\b(?:inactive|not active|required|expired)\b`,
      String.raw`\b(?:inactive|not active|no active|an active)\b[^.\n]{0,40}\bsubscription\b`,
    ),
    isFinal: true,
  },
  OOMError: {
    name: words('oom|out_of_memory'),
    text: anyOf(
      // A device, a verb or a colon before, a pause or a circumstance after: not "Value 3 out of
      // memory range names".
      String.raw`(?:^|[:(] ?|\b(?:(?:CUDA|HIP|ROCm|MPS|XPU|GPU|VRAM|device)(?: \d+)?|backend|ran|run|is|was|went) )out of memory(?=\s*(?:$|[.,;:!?)]|(?:on|while|when|during|trying|for|error|at|by)\b))`,
      'OutOfMemoryError|allocation on device|not enough memory: you tried to allocate',
      String.raw`\b(?:not enough|insufficient) (?:CUDA|GPU|VRAM|video|device) memory\b`,
      String.raw`exit(?:ed)?(?: with)?(?: code)? 137\b|\bOOM(?:Killed|[ -]killed| when allocating)`,
    ),
    ownClass: 'torch.OutOfMemoryError',
    isFinal: false,
  },
  ModelDownloadError: {
    name: words('model_download|missing_model|model_(?:not_found|missing|unavailable)'),
    text: anyOf(
      String.raw`${FAILED}[^.\n]{0,40}${DOWNLOAD}${ARTICLES}(?:${MODEL}\b|\S{1,300}${MODEL_FILE})`,
      String.raw`\b${MODEL}(?: file| weights)?:?(?: ${MODEL_NAME})?(?: (?:is|was))? ${IS_MISSING}`,
      String.raw`${FAILED} (?:to )?(?:find|locate)${ARTICLES}${MODEL}\b`,
      String.raw`${MODEL_FILE}[^.\n]{0,40}${IS_MISSING}|(?:not found|no such file)[^\n]{0,300}${MODEL_FILE}`,
      String.raw`^\S{0,300}Loader\S{0,300}\s.{0,2000}FileNotFoundError`,
    ),
    isFinal: true,
  },
  ImageDownloadError: {
    name: words('(?:image|input)_download'),
    text: anyOf(
      String.raw`${FAILED}[^.\n]{0,40}${DOWNLOAD}${ARTICLES}(?:${PICTURE}s?\b|url\b|https?:)`,
      String.raw`\b${PICTURE}s?(?: (?:${DOWNLOAD})[^.\n]{0,40}${FAILED}| could not be (?:downloaded|fetched)\b)`,
      String.raw`${DOWNLOAD}${ARTICLES}${PICTURE}s?\b[^\n]{0,300}${FAILED}`,
      String.raw`${PICTURE_LOADER}.{0,2000}(?:${FAILED}(?: to| while| when)? ${DOWNLOAD}|\bHTTP (?:error )?[45]\d\d\b|\b[45]\d\d (?:Client|Server) Error\b)`,
      String.raw`^\S{0,300}FromURL\s.{0,2000}cannot identify image`,
    ),
    isFinal: false,
  },
  ValidationError: {
    name: words('invalid_(?:workflow|input|prompt)|missing_asset|workflow_format_ui|validation'),
    text: anyOf('required input is missing|value not in list|prompt outputs failed validation'),
    isFinal: true,
  },
} as const satisfies Record<string, Signs>;

const ROWS = Object.entries(EXCEPTION_SIGNS) as [DocumentedException, Signs][];

/** Pillow's sentence about a file that is not a picture, and its exception class. */
const NO_PICTURE = { text: /cannot identify image file/, own: 'PIL.UnidentifiedImageError' };

/** Codes of refusals by policy: a repetition changes nothing. */
const POLICY = /policy|moderation|forbidden|unauthorized|not_supported/i;

/** A Python or JavaScript exception class at the start of a line, as tracebacks end with it. */
const CLASS_LINE =
  /^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Warning|Interrupt|Exit|Failure|Timeout))(?::|$)/;

/** A documented name within a sentence. */
const DOCUMENTED_IN_TEXT = new RegExp(
  `(?:^|[\\s.(])(${ROWS.map(([name]) => name).join('|')})(?=\\s*[:(]|$)`,
);

/**
 * The values of `execution_error.exception_type` for one error, for clients of either v1 server.
 */
export type ExceptionTypes = {
  /** The class in the node's own language, as the local server names it. */
  readonly own: string;
  /** One of the names that the hosted service uses. */
  readonly documented: DocumentedException;
};

/** Returns both names for a v2 job error. */
export function exceptionTypes(error: JobError): ExceptionTypes {
  const { code, message, traceback, x_exception_type: own } = error;
  const classes = [own, classInTraceback(traceback), classInMessage(message)];
  const named = [code, ...classes].map(byName).find((name) => name !== undefined);
  const documented = named ?? byText(error);
  const statedClass = classes.find(Boolean);
  // Of the documented names, "Invalid workflow or input" is the one that claims nothing about the
  // account or a download.
  return {
    own: ownClass(message, statedClass, documented),
    documented: documented ?? 'ValidationError',
  };
}

/** True when the code alone shows that a retry is useless. */
export function isFinal(code: string): boolean {
  const name = byName(code);
  if (name !== undefined) return EXCEPTION_SIGNS[name].isFinal;
  return POLICY.test(code) || errorCodeOf(code)?.needsOperator === true;
}

export type ErrorData = Extract<V1Message, { type: 'execution_error' }>['data'];

/**
 * Returns the data of an `execution_error` as the hosted service sends them: with a documented name,
 * and a message that does not end in a newline, as that of the local server does.
 */
export function documentedErrorData(data: ErrorData, documented: DocumentedException): ErrorData {
  const exception_message = data.exception_message.replace(/(?<!\n)\n+$/, '');
  return { ...data, exception_message, exception_type: documented };
}

/** v1's traceback: a list of texts that end with a newline. */
export function tracebackLines(traceback: string | null | undefined): readonly string[] {
  if (!traceback) return [];
  return traceback
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `${line}\n`);
}

function ownClass(
  message: string,
  statedClass: string | undefined,
  documented: DocumentedException | undefined,
): string {
  if (statedClass !== undefined && statedClass !== documented) return statedClass;
  if (NO_PICTURE.text.test(message)) return NO_PICTURE.own;
  if (documented === undefined) return 'RuntimeError';
  const { ownClass: own }: Signs = EXCEPTION_SIGNS[documented];
  return own ?? documented;
}

function byName(name: string | undefined): DocumentedException | undefined {
  if (!name) return undefined;
  const snakeCase = name
    .slice(0, MAX_NAME_CHARS)
    .replaceAll(/([a-z\d])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])|[^A-Za-z\d]+/g, '$1$2_')
    .toLowerCase();
  return ROWS.find(([, signs]) => signs.name.test(snakeCase))?.[0];
}

const MAX_NAME_CHARS = 300;
/** Messages repeat what a client sent: the time of a search is bounded by their length. */
const MAX_SEARCHED_CHARS = 2000;

function byText({
  class_type: classType,
  message,
  traceback,
  x_exception_type: own,
}: JobError): DocumentedException | undefined {
  const parts = [classType, message, lastLine(traceback), own];
  const text = parts.map((part) => (part ?? '').slice(0, MAX_SEARCHED_CHARS)).join('\n');
  return ROWS.find(([, signs]) => signs.text?.test(text))?.[0];
}

function classInMessage(message: string): string | undefined {
  const text = message.slice(0, MAX_SEARCHED_CHARS).trim();
  return CLASS_LINE.exec(text)?.[1] ?? DOCUMENTED_IN_TEXT.exec(text)?.[1];
}

/** Returns the class of the last exception: its message may have further lines. */
function classInTraceback(traceback: string | null | undefined): string | undefined {
  const lines = traceback?.split('\n') ?? [];
  const line = lines.findLast((each) => CLASS_LINE.test(each.slice(0, MAX_SEARCHED_CHARS)));
  return line && CLASS_LINE.exec(line)?.[1];
}

function lastLine(traceback: string | null | undefined): string {
  return traceback?.trimEnd().split('\n').at(-1)?.trim() ?? '';
}

/** Matches any of the alternatives as whole words of a name in snake case. */
function words(alternatives: string): RegExp {
  return new RegExp(`(?:^|_)(?:${alternatives})(?:_|$)`);
}

function anyOf(...alternatives: readonly string[]): RegExp {
  return new RegExp(alternatives.join('|'), 'ims');
}
