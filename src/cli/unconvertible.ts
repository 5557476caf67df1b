/** Why a file cannot become a v2 submission, in words for its owner. */
export class Unconvertible extends Error {
  override readonly name = 'Unconvertible';
}
