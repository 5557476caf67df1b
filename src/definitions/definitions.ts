import type { Caller } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';

/** One version of the node definitions: its text as it came, and a view to look classes up in. */
export type Definitions = {
  /** Changes with the content and with nothing else. */
  readonly version: string;
  /** Each class as a member of the whole, `"name": {…}`, by its name. */
  readonly members: ReadonlyMap<string, Buffer>;
  /** Read class by class, when somebody looks. */
  readonly info: ObjectInfo;
};

/** What is known at the moment, or why there is nothing. */
export type DefinitionsResult =
  | {
      readonly ok: true;
      readonly definitions: Definitions;
      /** The embedded library in place of what a remote upstream does not tell. */
      readonly isEmbeddedFallback: boolean;
      /** Its source could not be asked lately. */
      readonly isStale: boolean;
    }
  | { readonly ok: false; readonly retryAfterSeconds: number };

/** Where node definitions come from. Nothing here rejects for what a source does. */
export interface DefinitionSource {
  /** For prompts: always an answer, if need be the last one known or the embedded library's. */
  readonly info: (caller?: Caller) => Promise<ObjectInfo>;
  /** For those who ask for definitions. */
  current(caller: Caller): Promise<DefinitionsResult>;
  /** The same, after the source was asked once more, unless it just was. */
  refreshed(caller: Caller): Promise<DefinitionsResult>;
}
