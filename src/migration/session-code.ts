import type { Plan, CodeOptions } from './session-plan.ts';
import { pythonCode } from './python-code.ts';
import { typescriptCode } from './typescript-code.ts';

/** The languages in which a session can be written. */
export const LANGUAGES = ['python', 'typescript'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The name of the code file of each language. Node runs `.mts` as a module in any folder. */
export const CODE_FILES = { python: 'session.py', typescript: 'session.mts' } as const;

const WRITERS = { python: pythonCode, typescript: typescriptCode };

/** Returns a program that does the same in v2 as the session did in v1. */
export function codeOf(language: Language, plan: Plan, options: CodeOptions): string {
  return WRITERS[language]({ ...plan, ...options });
}
