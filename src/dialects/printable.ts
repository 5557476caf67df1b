import { hasControlCharacter } from '../protocol/control-characters.ts';
import { V1Error, plainError } from './errors.ts';

/** The text itself; one with a control character is a 400 that says which `field` it came in. */
export function requirePrintable(text: string, field: string): string {
  if (!hasControlCharacter(text)) return text;
  const message = `"${field}" has a control character.`;
  throw new V1Error(400, plainError('control_character', message));
}
