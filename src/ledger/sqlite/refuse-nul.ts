import type { Database } from './database.ts';

type Method = (...parameters: unknown[]) => unknown;

/** A text that the database would truncate. */
class NulInText extends Error {
  override readonly name = 'NulInText';
}

/**
 * The database, with statements that refuse texts with a NUL. The package ends each text it hands to
 * SQLite at the first NUL, so that a write to `a\0b` replaces `a`.
 */
export function refuseNulTexts(db: Database): Database {
  const prepare = db.prepare.bind(db);
  replace(db, 'prepare', (...given: Parameters<Database['prepare']>) => {
    const statement = prepare(...given);
    for (const name of ['run', 'get', 'all', 'iterate'] as const) {
      const method = statement[name].bind(statement) as Method;
      replace(statement, name, (...parameters: unknown[]) => method(...withoutNul(parameters)));
    }
    return statement;
  });
  return db;
}

/** The package's own methods cannot be assigned to. */
function replace<T extends object>(object: T, name: keyof T, value: unknown): void {
  Object.defineProperty(object, name, { value });
}

function withoutNul(parameters: readonly unknown[]): readonly unknown[] {
  for (const value of parameters) {
    if (hasNul(value)) throw new NulInText('a text with a NUL cannot be recorded or looked for');
  }
  return parameters;
}

/** Parameters are passed one by one, or by name. */
function hasNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  return Object.values(value).some((member) => typeof member === 'string' && member.includes('\0'));
}
