import { describe, expect, test } from 'vitest';
import { exceptionTypes, tracebackLines } from '../../src/translate/exception-types.ts';
import type { JobError } from '../../src/protocol/v2.ts';

const error = (more: Partial<JobError>): JobError => ({
  code: 'node_execution_error',
  message: 'it broke',
  ...more,
});

describe('execution_error.exception_type', () => {
  test.each<[string, Partial<JobError>, string, string]>([
    [
      'the class the engine names, and the word its code stands for',
      { x_exception_type: 'torch.OutOfMemoryError', code: 'out_of_memory' },
      'torch.OutOfMemoryError',
      'OOMError',
    ],
    [
      'an image that cannot be read',
      {
        x_exception_type: 'PIL.UnidentifiedImageError',
        class_type: 'LoadImage',
        message: "cannot identify image file 'corrupt.png'",
      },
      'PIL.UnidentifiedImageError',
      'ValidationError',
    ],
    [
      'the code decides on the documented word even where the class says something else',
      { x_exception_type: 'requests.HTTPError', code: 'insufficient_credits' },
      'requests.HTTPError',
      'InsufficientFundsError',
    ],
    ['no credits, by code', { code: 'insufficient_credits' }, ...both('InsufficientFundsError')],
    [
      'no subscription, by code',
      { code: 'inactive_subscription' },
      ...both('InactiveSubscriptionError'),
    ],
    ['no memory, by code', { code: 'OUT_OF_MEMORY' }, 'torch.OutOfMemoryError', 'OOMError'],
    ['image download, by code', { code: 'image_download_failed' }, ...both('ImageDownloadError')],
    [
      'image download, by class and text',
      { class_type: 'LoadImageFromUrl', message: 'HTTP 404' },
      ...both('ImageDownloadError'),
    ],
    ['model download, by code', { code: 'model_not_found' }, ...both('ModelDownloadError')],
    ['validation, by code', { code: 'validation_failed' }, ...both('ValidationError')],
    [
      'the class in the last traceback line',
      { traceback: 'Traceback:\n  File "x"\nmypack.errors.SizeError: too big\n' },
      'mypack.errors.SizeError',
      'ValidationError',
    ],
    [
      'the class in the traceback rather than what the code stands for',
      { code: 'model_not_found', traceback: 'Traceback:\nFileNotFoundError: x\n' },
      'FileNotFoundError',
      'ModelDownloadError',
    ],
    [
      'a documented word that the upstream names itself',
      { x_exception_type: 'InactiveSubscriptionError' },
      ...both('InactiveSubscriptionError'),
    ],
    ['nothing known', { traceback: 'something else entirely' }, 'RuntimeError', 'ValidationError'],
    ['no traceback', { traceback: null }, 'RuntimeError', 'ValidationError'],
  ])('%s', (_, more, own, documented) => {
    expect(exceptionTypes(error(more))).toEqual({ own, documented });
  });

  const NAMES = [
    ['InsufficientFundsError', 'InsufficientFundsError'],
    ['InactiveSubscriptionError', 'InactiveSubscriptionError'],
    ['OOMError', 'torch.OutOfMemoryError'],
    ['ImageDownloadError', 'ImageDownloadError'],
    ['ModelDownloadError', 'ModelDownloadError'],
    ['ValidationError', 'ValidationError'],
  ] as const;

  test.each(NAMES)('%s is recognised wherever an upstream names it', (documented, own) => {
    const places: readonly Partial<JobError>[] = [
      { code: documented },
      { x_exception_type: documented },
      { message: `${documented}: it went wrong` },
      { message: `node 4 failed with ${documented}: it went wrong` },
      { message: documented },
      { traceback: `Traceback (most recent call last):\n  File "x"\n${documented}: wrong\n` },
      { traceback: `Traceback:\n${documented}: a message\nof two lines\n` },
    ];
    for (const place of places)
      expect([place, exceptionTypes(error(place))]).toEqual([place, { own, documented }]);
  });

  test.each(NAMES)('%s is recognised as the class of a host, too', (documented) => {
    const snakeCase = documented.replaceAll(/(?<=[a-z])(?=[A-Z])|(?=Error)/g, '_').toLowerCase();
    for (const code of [snakeCase, snakeCase.toUpperCase(), `comfy.errors.${documented}`])
      expect([code, exceptionTypes(error({ code })).documented]).toEqual([code, documented]);
  });

  test.each([
    ['InsufficientFundsError', 'Payment Required: please add credits'],
    ['InactiveSubscriptionError', 'your subscription is not active'],
    ['OOMError', 'Allocation on device 0 would exceed'],
    ['ModelDownloadError', 'checkpoint x.safetensors not found'],
    ['ValidationError', 'Value not in list: sampler'],
    ['InsufficientFundsError', 'Account credits insufficient (partner nodes)'],
    ['InsufficientFundsError', 'You have insufficient credits.'],
    ['InactiveSubscriptionError', 'Subscription not active'],
    ['InactiveSubscriptionError', 'This model requires an active subscription.'],
    ['OOMError', 'GPU out of memory'],
    ['OOMError', 'Out of memory'],
    ['OOMError', 'CUDA out of memory. Tried to allocate 2.00 GiB'],
    ['OOMError', 'CUDA error: out of memory'],
    ['OOMError', 'The worker ran out of memory while sampling'],
    ['ModelDownloadError', 'Required model unavailable or download failed'],
    ['ModelDownloadError', 'Failed to download model flux1-dev from https://x.example/m'],
    ['ModelDownloadError', 'Model download failed: timed out'],
    ['ModelDownloadError', "No such file or directory: '/models/vae/a.safetensors'"],
    ['ImageDownloadError', 'Downloading an input image from a URL failed'],
    ['ImageDownloadError', 'Failed to download image from https://x.example/a.png'],
    ['ImageDownloadError', 'Error fetching https://x.example/a.png: 404'],
    ['ValidationError', 'Invalid workflow or input'],
  ])('%s: %s', (documented, message) => {
    expect(exceptionTypes(error({ message })).documented).toBe(documented);
  });

  test.each([
    ['NamedRange', 'Value 3 out of memory range names'],
    ['Text', "Value 'out of memory' not in list: ['a', 'b']"],
    ['ImageBlend', 'image sizes differ'],
    ['LoadImage', "cannot identify image file 'download (1).png'"],
    ['LoadImage', "input 'my model 2.png' not found"],
    ['CheckpointLoaderSimple', "Value not in list: ckpt_name: 'a.safetensors' not in ['b.ckpt']"],
    ['Text', 'add credits at the end of the film'],
    ['Text', 'the letter about a subscription is too long, the layer is active'],
  ])('%s with "%s" is ValidationError', (class_type, message) => {
    expect(exceptionTypes(error({ class_type, message })).documented).toBe('ValidationError');
  });

  test.each(['lost', 'expired', 'worker_lost'])('a job that is %s has no wrong input', (code) => {
    expect(exceptionTypes(error({ code })).documented).toBe('ServiceError');
    expect(exceptionTypes(error({ code: `token_${code}` })).documented).toBe('ValidationError');
  });

  test('a plain failure that mentions a picture is not taken for a download', () => {
    const failed = error({ class_type: 'ImageBlend', message: 'image sizes differ' });
    expect(exceptionTypes(failed)).toEqual({ own: 'RuntimeError', documented: 'ValidationError' });
  });
});

/** Own word and documented one. */
function both(word: string): [string, string] {
  return [word, word];
}

describe('execution_error.traceback', () => {
  test.each([
    [null, []],
    ['', []],
    ['one', ['one\n']],
    ['one\n  two\n', ['one\n', '  two\n']],
  ])('%j is %j', (traceback, lines) => {
    expect(tracebackLines(traceback)).toEqual(lines);
  });
});

test.each(['model ', 'subscription ', 'not active ', 'LoaderLoader '])(
  'a message of %j is searched in little time',
  (part) => {
    const message = part.repeat(10_000);
    const started = process.cpuUsage();
    exceptionTypes(error({ message, traceback: `ValueError: ${message}` }));
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(500);
  },
);
