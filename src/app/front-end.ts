import type { Config } from '../config.ts';
import { type Frontend, createFrontend } from '../v1/front-end.ts';
import { openTemplates } from '../v1/templates.ts';
import type { DefinitionSource } from '../wire/definitions.ts';

/** The front end of `--front-end-root`, with starter workflows for what runs the jobs. */
export function openFrontend(
  { frontEndRoot, upstream }: Pick<Config, 'frontEndRoot' | 'upstream'>,
  definitions: Pick<DefinitionSource, 'current'>,
): Frontend | undefined {
  if (frontEndRoot === undefined) return undefined;
  const hasExample = upstream.kind === 'embedded';
  return createFrontend(frontEndRoot, openTemplates({ definitions, hasExample }));
}
