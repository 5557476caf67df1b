/** Characters that a terminal does not print, or that are commands for it. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Returns a text that is safe to print on a terminal: control characters are escaped. */
export function printableName(name: string): string {
  return name.replace(UNPRINTABLE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** Prints lines that may have names of users in them. */
export function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${printableName(line)}\n`).join(''));
}

/** Returns a size as text, for example `1.5 MB` (1 MB is 2^20 bytes). */
export function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}
