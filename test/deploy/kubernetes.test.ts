// The manifests, checked by the compiler against the published types of Kubernetes, and against each other.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/config.ts';
import { OPTIONS } from '../../src/config/flags.ts';
import { PROJECT, complaintsAbout, objectsOf } from './manifests.ts';

const FOLDER = join(PROJECT, 'deploy/kubernetes');
const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const kustomization = parse(textOf('kustomization.yaml'));

const objects = objectsOf(FOLDER);
const nameOf = ({ kind, metadata }: any) => `${kind}/${metadata.name}`;
const find = (name: string) => objects.find((each) => nameOf(each) === name);
const workloads = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
const podOf = (workload: any) => workload.spec.template.spec;
const containerOf = (workload: any) => podOf(workload).containers[0];

describe('the Kubernetes manifests', () => {
  test('have no field that Kubernetes does not know, and none of a wrong type, also with a bucket', () => {
    const withBucket = objectsOf(join(PROJECT, 'deploy/kubernetes-bucket'));
    expect(complaintsAbout([...objects, ...withBucket])).toBe('');
  });

  test('the check finds an unknown field, a wrong type, and a word that is not allowed', () => {
    const deployment = find('Deployment/holdover');
    const mistakes = [{ replica: 2 }, { replicas: '2' }, { strategy: { type: 'Rolling' } }];
    const wrong = mistakes.map((spec) => ({
      ...deployment,
      spec: { ...deployment.spec, ...spec },
    }));
    const found = complaintsAbout(wrong).matchAll(/^objects\.ts\((\d+),.* error TS/gm);
    expect([...found].map(([, line]) => Number(line) / 2)).toEqual([1, 2, 3]);
  });

  test('are all listed, and each once', () => {
    const files = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml');
    expect(kustomization.resources.toSorted()).toEqual(files.toSorted());
    expect(new Set(objects.map(nameOf)).size).toBe(objects.length);
  });

  test.each(workloads.map((workload) => [nameOf(workload), workload] as const))(
    '%s runs without rights and selects its own pods',
    (_name, workload) => {
      const { selector, template } = workload.spec;
      expect(template.metadata.labels).toMatchObject(selector.matchLabels);
      const pod = podOf(workload);
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(containerOf(workload)).toMatchObject({
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        resources: { limits: { memory: expect.any(String) }, requests: expect.any(Object) },
        livenessProbe: expect.any(Object),
      });
    },
  );

  test('mount only volumes and ask only for secrets and ports that there are', () => {
    for (const workload of workloads) {
      const claims = workload.spec.volumeClaimTemplates ?? [];
      const volumes = [...(podOf(workload).volumes ?? []), ...claims.map((c: any) => c.metadata)];
      const names: string[] = volumes.map(({ name }: any) => name);
      const { volumeMounts, env, ports = [] } = containerOf(workload);
      const mounted: string[] = volumeMounts.map(({ name }: any) => name);
      expect(mounted.toSorted()).toEqual(names.toSorted());
      const keys = env.flatMap(({ valueFrom }: any) => valueFrom?.secretKeyRef ?? []);
      for (const { name, key } of keys) {
        expect(name).toBe('holdover');
        expect(textOf('kustomization.yaml')).toContain(`--from-literal=${key}=`);
      }
      const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'];
      const asked = probes.flatMap((probe) => containerOf(workload)[probe]?.httpGet?.port ?? []);
      const known = ports.map(({ name }: any) => name);
      expect(asked.filter((port) => !known.includes(port))).toEqual([]);
    }
    expect(find('PersistentVolumeClaim/holdover-data').spec.accessModes).toEqual(['ReadWriteMany']);
  });

  test('lets a new replica be ready before an old one stops, and stops one in good order', () => {
    const server = find('Deployment/holdover');
    expect(server.spec.replicas).toBe(2);
    expect(server.spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(containerOf(server).readinessProbe.httpGet.path).toBe('/readyz');
    expect(containerOf(server).livenessProbe.httpGet.path).toBe('/healthz');
    const values = Object.fromEntries(
      containerOf(server).env.map(({ name, value }: any) => [name, value]),
    );
    expect(Number(values.HOLDOVER_SHUTDOWN_DELAY)).toBe(5);
    expect(podOf(server).terminationGracePeriodSeconds).toBeGreaterThan(30);
  });

  test('sets only what there is to be set, and asks at the port where the server listens', () => {
    const known = OPTIONS.map(({ envVar }) => envVar);
    for (const name of ['Deployment/holdover', 'Deployment/holdover-worker']) {
      const { env } = containerOf(find(name));
      const values = env.map(({ value = '' }: any) => value).join(' ');
      const names: string[] = env.map((each: any) => each.name);
      const unknown = names.filter((each) => !known.includes(each));
      expect(unknown.filter((each) => !values.includes(`$(${each})`))).toEqual([]);
    }
    const { args, ports } = containerOf(find('Deployment/holdover'));
    const env = {
      HOLDOVER_LISTEN: '0.0.0.0',
      HOLDOVER_LOCAL_TOKEN: 'token',
      HOLDOVER_LEDGER: 'redis://:password@holdover-redis:6379',
    };
    const parsed = parseConfig(args, env);
    expect(parsed).toMatchObject({ config: { port: ports[0].containerPort } });
    expect(containerOf(find('Deployment/holdover-worker')).args).toEqual(['worker']);
  });

  test('has servers and workers on one ledger, whose password comes from the secret', () => {
    const ledgers = ['Deployment/holdover', 'Deployment/holdover-worker'].map((name) => {
      const { env } = containerOf(find(name));
      return env.find((each: any) => each.name === 'HOLDOVER_LEDGER').value;
    });
    const ledger = 'redis://:$(HOLDOVER_REDIS_PASSWORD)@holdover-redis:6379';
    expect(ledgers).toEqual([ledger, ledger]);
    expect(find('Service/holdover-redis')).toBeDefined();
  });

  test('has Redis that keeps what it acknowledged, and evicts nothing', () => {
    const command = containerOf(find('StatefulSet/holdover-redis')).command.join(' ');
    for (const setting of ['appendonly yes', 'appendfsync always', 'maxmemory-policy noeviction'])
      expect(command).toContain(`--${setting}`);
  });

  test('runs the same Redis as compose', () => {
    const compose = parse(readFileSync(join(PROJECT, 'compose.yaml'), 'utf8'), { merge: true });
    const { image } = containerOf(find('StatefulSet/holdover-redis'));
    expect(image).toBe(compose.services.redis.image);
  });
});
