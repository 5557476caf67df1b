import { useShared } from '../use-shared.ts';
import { type Holdover, type StartOptions, startHoldover } from './holdover.ts';

export function useHoldover(options: StartOptions = {}): Holdover {
  return useShared(
    () => startHoldover(options),
    (holdover) => holdover.dispose(),
  );
}
