import { expect, test } from 'vitest';
import { createStepPace } from '../../../src/engine/execution/step-pace.ts';

test('shows a step every 100 ms and half per cent, and always the first, the last and those with a picture', () => {
  let nowMs = 0;
  const isDue = createStepPace(() => nowMs);
  const shown = (step: number, afterMs: number, steps = 1000, hasPicture = false): boolean => {
    nowMs += afterMs;
    return isDue({ step, steps, hasPicture });
  };
  expect([
    shown(1, 0),
    shown(9, 99),
    shown(10, 1),
    shown(14, 200),
    shown(15, 0),
    shown(16, 0, 1000, true),
    shown(1000, 0),
  ]).toEqual([true, false, true, false, true, true, true]);
  // The next pass.
  expect([shown(1, 0), shown(2, 0), shown(1, 0, 3), shown(3, 0, 3)]).toEqual([
    true,
    false,
    true,
    true,
  ]);
});
