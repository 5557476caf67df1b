import type { Config } from '../config/config.ts';
import { type Frontend, createFrontend } from '../pages/frontend.ts';
import { openTemplates } from '../pages/templates.ts';
import type { DefinitionSource } from '../definitions/definitions.ts';

/** The front end of `--front-end-root`, with starter workflows for what runs the jobs. */
export function openFrontend(
  { frontEndRoot, upstream }: Pick<Config, 'frontEndRoot' | 'upstream'>,
  definitions: Pick<DefinitionSource, 'current'>,
): Frontend | undefined {
  if (frontEndRoot === undefined) return undefined;
  const hasExample = upstream.kind === 'embedded';
  return createFrontend(frontEndRoot, openTemplates({ definitions, hasExample }));
}
