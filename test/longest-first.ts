import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONG_TESTS } from './long-tests.ts';

/** Starts the long files first: one that starts last would run while the other workers have nothing to do. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      LONG_TESTS.some((path) => moduleId.endsWith(`/${path}`));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
