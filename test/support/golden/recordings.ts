import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../fixtures/v1/', import.meta.url));

type RecordedPart = {
  readonly name: string;
  readonly value?: string;
  readonly filename?: string;
  readonly data_file?: string;
};

/** One recorded call of the original server and its answer. */
export type Exchange = {
  readonly note?: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly multipart?: readonly RecordedPart[];
    readonly body_json?: unknown;
    readonly body_text?: string;
  };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body_json?: unknown;
    readonly body_text?: string;
    readonly body_file?: string;
    readonly body_empty?: boolean;
  };
};

/** The recorded HTTP exchanges of a scenario, in order. */
export function exchangesOf(scenario: string, recordings = ''): readonly Exchange[] {
  const text = readFileSync(`${ROOT}${recordings}/http/${scenario}.json`, 'utf8');
  return (JSON.parse(text) as { exchanges: Exchange[] }).exchanges;
}

/** A file of the recordings, by its name or by `files/<name>`. */
export function recordedFile(name: string): Buffer {
  return readFileSync(`${ROOT}files/${name.replace(/^files\//, '')}`);
}
