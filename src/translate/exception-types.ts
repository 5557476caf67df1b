import type { JobError } from '../protocol/v2.ts';

/**
 * The error classes that v1 documents for runs. Other errors have a class name of the node's own
 * language.
 */
export type DocumentedException =
  | 'InsufficientFundsError'
  | 'InactiveSubscriptionError'
  | 'OOMError'
  | 'ImageDownloadError'
  | 'ModelDownloadError'
  | 'ValidationError';

type Signs = {
  /** Matched at any place in v2's `code`, in any case. */
  readonly code: RegExp;
  /** Matched against class and message together when the code matches no row. */
  readonly text: RegExp;
  /** True when the same graph would fail again. */
  readonly isFinal: boolean;
};

const AFFIRM_DOWNLOAD = 'download|fetch|HTTP [45]\\d\\d|cannot identify image|UnidentifiedImage';

/**
 * The signs by which a failed job's v2 error gets its name in v1. The first row that matches wins.
 */
const EXCEPTION_SIGNS = {
  InsufficientFundsError: {
    code: /insufficient_(credits|funds)|payment_required/i,
    text: /payment required|add credits|insufficient (credits|funds|balance)/i,
    isFinal: true,
  },
  InactiveSubscriptionError: {
    code: /inactive_subscription|subscription_/i,
    text: /subscription.*(inactive|not active|required)|(inactive|not active).*subscription/is,
    isFinal: true,
  },
  OOMError: {
    code: /\boom\b|out_of_memory/i,
    text: /out of memory|OutOfMemoryError|allocation on device|exit(ed)?( with)?( code)? 137/i,
    isFinal: false,
  },
  ImageDownloadError: {
    code: /image_download|input_download/i,
    text: new RegExp(`^(LoadImage\\w*|\\w*FromURL)\\b.*(${AFFIRM_DOWNLOAD})`, 'is'),
    isFinal: false,
  },
  ModelDownloadError: {
    code: /model_download|missing_model|model_not_found/i,
    text: /(model|checkpoint|lora|\bvae\b|safetensors).*(not found|download|no such file)|Loader\w*\b.*FileNotFoundError/is,
    isFinal: true,
  },
  ValidationError: {
    code: /invalid_workflow|invalid_input|missing_asset|workflow_format_ui|validation/i,
    text: /required input is missing|value not in list|prompt outputs failed validation/i,
    isFinal: true,
  },
} as const satisfies Record<DocumentedException, Signs>;

const ROWS = Object.entries(EXCEPTION_SIGNS) as [DocumentedException, Signs][];

/** PyTorch's class, which the local server shows when a node runs out of memory. */
const OUT_OF_MEMORY = 'torch.OutOfMemoryError';

/** Pillow's sentence about a file that is not a picture, and its exception class. */
const NO_PICTURE = { text: /cannot identify image file/, own: 'PIL.UnidentifiedImageError' };

/** Codes of refusals by policy: a repetition changes nothing. */
const POLICY = /policy|moderation|forbidden|unauthorized|not_supported/i;

/** A Python or JavaScript exception class as the last line of a traceback starts with it. */
const CLASS_LINE =
  /^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Warning|Interrupt|Exit|Failure|Timeout))(?::|$)/;

/**
 * The values of `execution_error.exception_type` for one error, for clients of either v1 server.
 */
export type ExceptionTypes = {
  /** The class in the node's own language, as the local server names it. */
  readonly own: string;
  /** One of the six names that the hosted service documents. */
  readonly documented: DocumentedException;
};

/** Returns both names for a v2 job error. */
export function exceptionTypes(error: JobError): ExceptionTypes {
  const documented = byCode(error.code) ?? byText(error);
  const statedClass = error.x_exception_type || fromTraceback(error.traceback);
  const own = statedClass || nativeOf(error, documented) || 'RuntimeError';
  // Of the six, "Invalid workflow or input" is the one that claims nothing about the account or a
  // download.
  return { own, documented: documented ?? documentedIn(own) ?? 'ValidationError' };
}

/** True when the code alone shows that a retry is useless. */
export function isFinal(code: string): boolean {
  const name = byCode(code);
  return name === undefined ? POLICY.test(code) : EXCEPTION_SIGNS[name].isFinal;
}

/** v1's traceback: a list of texts that end with a newline. */
export function tracebackLines(traceback: string | null | undefined): readonly string[] {
  if (!traceback) return [];
  return traceback
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `${line}\n`);
}

/** The class derived from the text, when the service names none. */
function nativeOf(
  { message }: JobError,
  documented: DocumentedException | undefined,
): string | undefined {
  if (NO_PICTURE.text.test(message)) return NO_PICTURE.own;
  return documented === 'OOMError' ? OUT_OF_MEMORY : documented;
}

function byCode(code: string): DocumentedException | undefined {
  return ROWS.find(([, signs]) => signs.code.test(code))?.[0];
}

function documentedIn(word: string): DocumentedException | undefined {
  return ROWS.find(([name]) => name === word)?.[0];
}

/**
 * Longer texts are cut before the search, whose time grows with the square of the length. Messages
 * repeat what a client sent.
 */
const MAX_SEARCHED_CHARS = 2000;

function byText(error: JobError): DocumentedException | undefined {
  const { class_type: classType, message, traceback, x_exception_type: own } = error;
  const parts = [classType, message, lastLine(traceback), own];
  const text = parts.map((part) => (part ?? '').slice(0, MAX_SEARCHED_CHARS)).join(' ');
  return ROWS.find(([, signs]) => signs.text.test(text))?.[0];
}

function fromTraceback(traceback: string | null | undefined): string | undefined {
  return CLASS_LINE.exec(lastLine(traceback))?.[1];
}

function lastLine(traceback: string | null | undefined): string {
  return traceback?.trimEnd().split('\n').at(-1)?.trim() ?? '';
}
