import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONG_TESTS } from './long-tests.ts';

/**
 * Starts the long files of each project first, in their order: one that starts last would run while the other workers
 * have nothing to do. Files of one project stay together: a worker that gets one of another project starts anew.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) =>
      sorted.filter((file) => file.project === project).toSorted((a, b) => rankOf(a) - rankOf(b)),
    );
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = LONG_TESTS.findIndex((path) => moduleId.endsWith(`/${path}`));
  return rank < 0 ? LONG_TESTS.length : rank;
}
