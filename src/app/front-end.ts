import type { Config } from '../config.ts';
import { type FrontEnd, createFrontEnd } from '../v1/front-end.ts';
import { openTemplates } from '../v1/templates.ts';
import type { DefinitionSource } from '../wire/definitions.ts';

/** The front end of `--front-end-root`, with starter workflows for what runs the jobs. */
export function openFrontEnd(
  { frontEndRoot, upstream }: Pick<Config, 'frontEndRoot' | 'upstream'>,
  definitions: Pick<DefinitionSource, 'known'>,
): FrontEnd | undefined {
  if (frontEndRoot === undefined) return undefined;
  const hasExample = upstream.kind === 'embedded';
  return createFrontEnd(frontEndRoot, openTemplates({ definitions, hasExample }));
}
