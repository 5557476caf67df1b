import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONG_TESTS } from './long-tests.ts';

/** Starts the long files first, in their order: one that starts last would run while the other workers have nothing to do. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const long = LONG_TESTS.flatMap((path) =>
      sorted.filter(({ moduleId }) => moduleId.endsWith(`/${path}`)),
    );
    return [...long, ...sorted.filter((file) => !long.includes(file))];
  }
}
