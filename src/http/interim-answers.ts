/** More heads of interim answers (`103 Early Hints`) to one request than this come from no real server. */
const MAX_INTERIM_ANSWERS = 16;

export class TooManyInterimAnswers extends Error {
  override readonly name = 'TooManyInterimAnswers';
}

/** Counts the interim answers to one request; throws at the first one too many. */
export function createInterimAnswerCounter(): () => void {
  let count = 0;
  return () => {
    if (++count > MAX_INTERIM_ANSWERS) {
      throw new TooManyInterimAnswers('the service sends interim answers without an end');
    }
  };
}
