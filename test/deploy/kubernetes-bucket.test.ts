// The manifests with files in a bucket, made from the others, checked by kustomize where it is. Their types: kubernetes.test.ts.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config/config.ts';
import { OPTIONS } from '../../src/config/flags.ts';
import { PROJECT, objectsOf } from './manifests.ts';

const FOLDER = join(PROJECT, 'deploy/kubernetes-bucket');
const objects = objectsOf(FOLDER);
const find = (kind: string, name: string) =>
  objects.find((one) => one.kind === kind && one.metadata.name === name);
const PODS = ['holdover', 'holdover-worker'] as const;
const podOf = (name: string) => find('Deployment', name).spec.template.spec;

const KUSTOMIZE = process.env['HOLDOVER_TEST_KUSTOMIZE'] ?? 'kustomize';
const missing =
  spawnSync(KUSTOMIZE, ['version']).status === 0
    ? ''
    : ' (NOT RUN: there is no kustomize on this machine)';

describe('the Kubernetes manifests with a bucket', () => {
  test.each(PODS)('%s: a folder for each pod, and no volume that is shared', (name) => {
    const { volumes, containers } = podOf(name);
    expect(volumes.map((each: any) => [each.name, 'emptyDir' in each])).toEqual([
      ['data', true],
      ['tmp', true],
    ]);
    expect(containers[0].volumeMounts.map((each: any) => each.name)).toEqual(['data', 'tmp']);
    expect(objects.some(({ kind }) => kind === 'PersistentVolumeClaim')).toBe(false);
  });

  test.each(PODS)('%s: takes the address of the bucket, and its keys from the secret', (name) => {
    const [{ env, envFrom }] = podOf(name).containers;
    expect(envFrom).toEqual([{ configMapRef: { name: 'holdover-bucket' } }]);
    const text = readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8');
    const secrets = env.filter((each: any) => each.valueFrom !== undefined);
    for (const { valueFrom } of secrets) {
      expect(valueFrom.secretKeyRef.name).toBe('holdover');
      expect(text).toContain(`--from-literal=${valueFrom.secretKeyRef.key}=`);
    }
    const keys = secrets.map((each: any) => each.name);
    expect(keys).toEqual(expect.arrayContaining(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']));
  });

  test('name settings that there are, with which a server starts', () => {
    const { data } = find('ConfigMap', 'holdover-bucket');
    const known = ['AWS_REGION', ...OPTIONS.map(({ envVar }) => envVar)];
    expect(Object.keys(data).filter((name) => !known.includes(name))).toEqual([]);
    const parsed = parseConfig(podOf('holdover').containers[0].args, {
      ...data,
      HOLDOVER_FILES: 's3://files/production',
      HOLDOVER_LISTEN: '0.0.0.0',
      HOLDOVER_LOCAL_TOKEN: 'token',
      HOLDOVER_LEDGER: 'redis://:password@holdover-redis:6379',
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'key',
    });
    expect(parsed).toHaveProperty('config');
  });

  test.skipIf(missing !== '')(`are what kustomize makes of the files${missing}`, () => {
    const made = parseAllDocuments(
      execFileSync(KUSTOMIZE, ['build', FOLDER], { encoding: 'utf8' }),
    ).map((document) => document.toJS());
    const namesOf = (some: readonly any[]) =>
      some.map(({ kind, metadata }) => `${kind}/${metadata.name}`).toSorted();
    expect(namesOf(made)).toEqual(namesOf(objects));
    for (const name of PODS) {
      const deployment = made.find(
        (one) => one.kind === 'Deployment' && one.metadata.name === name,
      );
      const [container] = deployment.spec.template.spec.containers;
      const image = { image: expect.stringContaining('/holdover:') };
      expect(container).toEqual({ ...podOf(name).containers[0], ...image });
      expect(deployment.spec.template.spec.volumes).toEqual(podOf(name).volumes);
    }
  });
});
