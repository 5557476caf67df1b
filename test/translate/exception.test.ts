import { describe, expect, test } from 'vitest';
import { exceptionType, tracebackLines } from '../../src/translate/exception.ts';
import type { JobError } from '../../src/wire/v2.ts';

const error = (more: Partial<JobError>): JobError => ({
  code: 'node_execution_error',
  message: 'it broke',
  ...more,
});

describe('execution_error.exception_type', () => {
  test.each<[string, Partial<JobError>, string]>([
    [
      'the one the engine names',
      { x_exception_type: 'PIL.UnidentifiedImageError', code: 'out_of_memory' },
      'PIL.UnidentifiedImageError',
    ],
    ['no credits, by code', { code: 'insufficient_credits' }, 'InsufficientFundsError'],
    [
      'no credits, by text',
      { message: 'Payment Required: please add credits' },
      'InsufficientFundsError',
    ],
    ['no subscription, by code', { code: 'inactive_subscription' }, 'InactiveSubscriptionError'],
    [
      'no subscription, by text',
      { message: 'your subscription is not active' },
      'InactiveSubscriptionError',
    ],
    ['no memory, by code', { code: 'OUT_OF_MEMORY' }, 'OOMError'],
    ['no memory, by text', { message: 'Allocation on device 0 would exceed' }, 'OOMError'],
    ['image download, by code', { code: 'image_download_failed' }, 'ImageDownloadError'],
    [
      'image download, by class and text',
      { class_type: 'LoadImageFromUrl', message: 'HTTP 404' },
      'ImageDownloadError',
    ],
    ['model download, by code', { code: 'model_not_found' }, 'ModelDownloadError'],
    [
      'model download, by text',
      { message: 'checkpoint x.safetensors not found' },
      'ModelDownloadError',
    ],
    ['validation, by code', { code: 'validation_failed' }, 'ValidationError'],
    ['validation, by text', { message: 'Value not in list: sampler' }, 'ValidationError'],
    [
      'the class in the last traceback line',
      { traceback: 'Traceback:\n  File "x"\nmypack.errors.SizeError: too big\n' },
      'mypack.errors.SizeError',
    ],
    ['nothing known', { traceback: 'something else entirely' }, 'RuntimeError'],
    ['no traceback', { traceback: null }, 'RuntimeError'],
  ])('%s', (_, more, type) => {
    expect(exceptionType(error(more))).toBe(type);
  });

  test('a plain failure that mentions a picture is not forced into a documented class', () => {
    expect(exceptionType(error({ class_type: 'ImageBlend', message: 'image sizes differ' }))).toBe(
      'RuntimeError',
    );
  });
});

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
