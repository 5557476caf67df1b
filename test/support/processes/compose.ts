import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** A service of deploy/compose.yaml. */
export type Service = {
  readonly command: readonly string[];
  readonly entrypoint: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck: { readonly test: readonly [string, ...string[]] };
  readonly deploy: { readonly replicas: number };
};

export const PROJECT = new URL('../../../', import.meta.url);
export const SECRETS: Readonly<Record<string, string>> = {
  HOLDOVER_LOCAL_TOKEN: 'token-of-the-stack',
  HOLDOVER_REDIS_PASSWORD: 'password-of-redis',
  HOLDOVER_S3_SECRET: 'secret-of-the-bucket',
};

export function composeServices(): Readonly<Record<string, Service>> {
  const text = readFileSync(new URL('deploy/compose.yaml', PROJECT), 'utf8');
  return (parse(text, { merge: true }) as { services: Record<string, Service> }).services;
}

/** As compose reads a value: with the variables of its caller, and `$$` for a dollar sign. */
export function valueOf(text: string): string {
  const known = text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_whole, name: string) => {
    const secret = SECRETS[name];
    if (secret === undefined) throw new Error(`compose wants ${name}`);
    return secret;
  });
  return known.replaceAll('$$', '$');
}

export const valuesOf = (environment: Service['environment']): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, text]) => [name, valueOf(text)]));
