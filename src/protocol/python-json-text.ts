const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Turns compact JSON into the text that Python's `json.dumps` writes: a space after each `,` and
 * `:`, and characters outside ASCII as `\uXXXX`. Programs without a JSON parser search v1's answers
 * for texts such as `"queue_remaining": 0`.
 */
export function toPythonText(compact: string): string {
  return new PythonTextWriter().write(compact);
}

/** Does this for a text that comes in pieces, which may end anywhere. */
export class PythonTextWriter {
  #isInString = false;
  /** True when the last piece ended in a backslash that escapes the next character. */
  #isEscaped = false;

  write(piece: string): string {
    let spaced = '';
    let from = 0;
    for (let i = 0; i < piece.length; i++) {
      if (this.#isInString) i = this.#endOfString(piece, i);
      else {
        const code = piece.charCodeAt(i);
        if (code === QUOTE) this.#isInString = true;
        else if (code === COMMA || code === COLON) {
          spaced += `${piece.slice(from, i + 1)} `;
          from = i + 1;
        }
      }
    }
    return inAscii(spaced + piece.slice(from));
  }

  /** Returns the position of the quote that ends the string at `start`, or the end of the piece. */
  #endOfString(piece: string, start: number): number {
    for (let end = piece.indexOf('"', start); ; end = piece.indexOf('"', end + 1)) {
      const at = end < 0 ? piece.length : end;
      let slashes = 0;
      while (at - slashes > start && piece.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
      const reachesStart = at - slashes === start;
      const isEscaped = (slashes + (reachesStart && this.#isEscaped ? 1 : 0)) % 2 === 1;
      if (end >= 0 && isEscaped) continue;
      this.#isEscaped = end < 0 && isEscaped;
      this.#isInString = end < 0;
      return at;
    }
  }
}

export function inAscii(text: string): string {
  return text.replaceAll(/[\u0080-\uffff]/g, escapeUnit);
}

/** Writes one UTF-16 unit as a JSON escape. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
