/** Small pieces are joined, since a text of two characters takes 24 bytes. */
const MAX_SMALL_PIECES = 1000;
const SMALL_CHARS = 64 * 1024;

/** Texts that are joined at the end. */
export class Pieces {
  #large: string[] = [];
  #small: string[] = [];
  #smallChars = 0;

  add(piece: string): void {
    if (piece === '') return;
    this.#small.push(piece);
    this.#smallChars += piece.length;
    if (this.#small.length < MAX_SMALL_PIECES && this.#smallChars < SMALL_CHARS) return;
    this.#large.push(this.#small.join(''));
    this.#small = [];
    this.#smallChars = 0;
  }

  take(): string {
    const text = [...this.#large, ...this.#small].join('');
    this.#large = [];
    this.#small = [];
    return text;
  }
}
