import type { Caller } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';

/**
 * One version of the node definitions: its original text, and a view that parses single classes.
 */
export type Definitions = {
  /** Changes with the content and with nothing else. */
  readonly version: string;
  /** Each class as a member of the whole, `"name": {…}`, by its name. */
  readonly members: ReadonlyMap<string, Buffer>;
  /** Parses a class when it is read. */
  readonly info: ObjectInfo;
};

/** The current definitions, or why there are none. */
export type DefinitionsResult =
  | {
      readonly ok: true;
      readonly definitions: Definitions;
      /** The same with classes that only programs are shown, where there are such. */
      readonly forPrograms?: Definitions;
      /** The embedded engine's definitions are shown because the remote upstream has none. */
      readonly isEmbeddedFallback: boolean;
      /** The source could not be reached lately. */
      readonly isStale: boolean;
    }
  | { readonly ok: false; readonly retryAfterSeconds: number };

/** Where node definitions come from. Nothing here rejects for what a source does. */
export interface DefinitionSource {
  /**
   * For prompts: always a result, if necessary the last known or the embedded engine's definitions.
   */
  readonly info: (caller?: Caller) => Promise<ObjectInfo>;
  /** For those who ask for definitions. */
  current(caller: Caller): Promise<DefinitionsResult>;
  /** The same after a new fetch, unless one just ended. */
  refreshed(caller: Caller): Promise<DefinitionsResult>;
}
