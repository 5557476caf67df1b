const ABSENT_CODES: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);

/** Returns the result of a call about a file; `undefined` when the file does not exist. */
export async function undefinedIfAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (ABSENT_CODES.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}
