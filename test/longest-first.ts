import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONG_TESTS } from './long-tests.ts';

/** Files of one project stay together: a worker that gets one of another project starts anew. */
const PROJECTS = ['remote', 'embedded', 'fast'];

/**
 * Starts the long files of each project first, in their order, and the fast tests last: a long file that starts last
 * would run while the other workers have nothing to do.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => projectOf(a) - projectOf(b) || rankOf(a) - rankOf(b));
  }
}

function projectOf({ project }: TestSpecification): number {
  return PROJECTS.indexOf(project.name);
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = LONG_TESTS.findIndex((path) => moduleId.endsWith(`/${path}`));
  return rank < 0 ? LONG_TESTS.length : rank;
}
