/** No real server sends more interim answers (`103 Early Hints`) to one request than this. */
const MAX_INTERIM_ANSWERS = 16;

export class TooManyInterimAnswers extends Error {
  override readonly name = 'TooManyInterimAnswers';
}

/** Counts the interim answers to one request. Throws at the first one above the limit. */
export function createInterimAnswerCounter(): () => void {
  let count = 0;
  return () => {
    if (++count > MAX_INTERIM_ANSWERS) {
      throw new TooManyInterimAnswers('the service sends interim answers without an end');
    }
  };
}
