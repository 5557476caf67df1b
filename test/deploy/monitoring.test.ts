// The dashboard and the alert rules name only what /metrics exports, with labels and units that fit.
import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import type { StatusWord } from '../../src/protocol/v1.ts';
import { Metrics } from '../../src/observability/metrics.ts';

const textOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

type Panel = {
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string }[];
};
type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
};

const dashboard = JSON.parse(textOf('deploy/grafana/holdover.json')) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly query: string | { query: string } }[] };
};
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const { groups } = parse(textOf('deploy/prometheus/alerts.yaml')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

/** Series name → its labels, as a server exports them. */
let exported: ReadonlyMap<string, ReadonlySet<string>>;
beforeAll(async () => {
  const metrics = new Metrics({ version: '1', upstreamKind: 'embedded', identify: () => ({}) });
  const count = (): number => 0;
  metrics.watch({
    livePrompts: { countByState: () => ({ waiting: 0, queued: 0, running: 0, ending: 0 }) },
    hub: { count, pendingBytes: count, droppedFrames: count },
    prompts: { outboxDepth: count },
    upstream: { openStreams: count },
  });
  const found = new Map([['up', new Set<string>()]]);
  for (const { name, type, labelNames = [] } of metrics.instruments()) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    for (const suffix of suffixes) found.set(name + suffix, new Set(labelNames));
  }
  exported = found;
});

/** Added by Prometheus, or by the histogram itself. */
const OTHER_LABELS = ['job', 'instance', 'le'];

type Selector = { readonly name: string; readonly labels: readonly string[] };

/** Metrics of a query with the labels they are asked for; throws at a syntax error. */
function selectorsIn(query: string): {
  selectors: readonly Selector[];
  grouped: readonly string[];
} {
  const text = query.replaceAll('$__rate_interval', '5m');
  const selectors: { name: string; labels: string[] }[] = [];
  const grouped: string[] = [];
  let isGrouping = false;
  parser.parse(text).iterate({
    enter({ name, type, from, to }) {
      if (type.isError) throw new Error(`no PromQL at ${from}: ${text}`);
      const shown = text.slice(from, to);
      if (name === 'VectorSelector') selectors.push({ name: '', labels: [] });
      if (name === 'VectorSelector' || name === 'GroupingLabels')
        isGrouping = name !== 'VectorSelector';
      const last = selectors.at(-1);
      if (name === 'Identifier' && last) last.name = shown;
      if (name === 'LabelName') (isGrouping ? grouped : (last?.labels ?? [])).push(shown);
    },
  });
  return { selectors, grouped };
}

function unknownIn(query: string): readonly string[] {
  const { selectors, grouped } = selectorsIn(query);
  const unknown = selectors.flatMap(({ name, labels }) => {
    const known = exported.get(name);
    if (known === undefined) return [name];
    return labels.filter((label) => !known.has(label) && !OTHER_LABELS.includes(label));
  });
  const all = new Set(selectors.flatMap(({ name }) => [...(exported.get(name) ?? [])]));
  return [...unknown, ...grouped.filter((name) => !all.has(name) && !OTHER_LABELS.includes(name))];
}

/** The unit that the values of a query have. */
function unitOf(query: string): string {
  const names = selectorsIn(query).selectors.map(({ name }) => name);
  const is = (pattern: RegExp): boolean => names.every((name) => pattern.test(name));
  if (/\)\s*\/\s*sum\(/.test(query)) return 'percentunit';
  if (/histogram_quantile/.test(query)) return is(/_seconds_bucket$/) ? 's' : 'unknown';
  if (/\b(rate|irate)\(/.test(query)) {
    if (is(/_cpu_seconds_total$/)) return 'percentunit';
    return is(/_(requests|calls)_total$/) ? 'reqps' : is(/_total$/) ? 'cps' : 'unknown';
  }
  if (is(/_seconds$/)) return 's';
  return is(/_bytes$/) ? 'bytes' : 'short';
}

describe('the Grafana dashboard', () => {
  test.each(panels.map((panel) => [panel.title, panel] as const))('%s', (_title, panel) => {
    const { targets, fieldConfig, description } = panel;
    expect(targets.length).toBeGreaterThan(0);
    expect(description).toMatch(/\.$/);
    for (const { expr } of targets) {
      expect(unknownIn(expr)).toEqual([]);
      expect(expr).toContain('job=~"$job"');
      expect(fieldConfig.defaults.unit).toBe(unitOf(expr));
    }
  });

  test('has panels that do not overlap', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });

  test('shows every metric of Holdover itself', () => {
    const shown = panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => selectorsIn(expr).selectors.map(({ name }) => name)),
    );
    const base = (name: string) => name.replace(/_(bucket|sum|count)$/, '');
    const own = [...exported.keys()].map(base).filter((name) => name.startsWith('holdover_'));
    expect([...new Set(own)].filter((name) => !shown.map(base).includes(name))).toEqual([]);
  });

  test('finds the job by a metric that is there', () => {
    const queries = dashboard.templating.list.map(({ query }) =>
      typeof query === 'string' ? query : query.query,
    );
    expect(queries).toEqual(['prometheus', 'label_values(holdover_build_info, job)']);
  });
});

describe('the alert rules', () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))('%s', (name, rule) => {
    expect(name).toMatch(/^Holdover[A-Z][A-Za-z]+$/);
    expect(unknownIn(rule.expr)).toEqual([]);
    expect(rule.expr).toContain('job="holdover"');
    expect(rule.for).toMatch(/^\d+m$/);
    expect(['warning', 'critical']).toContain(rule.labels.severity);
    expect(Object.keys(rule.annotations)).toEqual(['summary', 'description']);
  });

  test('compare seconds and bytes with seconds and bytes', () => {
    const humanized = rules.filter(({ annotations }) =>
      annotations.description.includes('humanize'),
    );
    const units = { Duration: /_seconds\b/, Percentage: /\/ sum\(/, '1024': /_bytes\b/ };
    for (const { annotations, expr } of humanized) {
      const unit = /humanize(\w+)/.exec(annotations.description)?.[1] as keyof typeof units;
      expect(expr).toMatch(units[unit]);
    }
    expect(humanized.length).toBeGreaterThan(3);
  });

  test('have names of their own', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });
});

test.each([
  'holdover_none',
  'rate(holdover_jobs_total[5m])',
  'holdover_jobs{route="x"}',
  'sum by (x) (up)',
])('%s is found to name what is not there', (query) => expect(unknownIn(query)).not.toEqual([]));

test('a query with a mistake is refused', () => {
  expect(() => selectorsIn('sum(rate(up[5m])')).toThrow('no PromQL');
});

/** Of an ended prompt. */
const END_WORDS = [
  'success',
  'error',
  'non_retryable_error',
  'cancelled',
  'lost',
] satisfies StatusWord[];
/** The words that a label may have, where the queries compare with one. */
const VALUES = {
  outcome: ['2xx', '4xx', '5xx', 'cut_off', 'ok', 'broken', ...END_WORDS],
  state: ['waiting', 'queued', 'running', 'ending'],
  job: ['holdover', '$job'],
};

test('compares labels with words that occur', () => {
  const queries = [
    ...rules.map(({ expr }) => expr),
    ...panels.flatMap((p) => p.targets.map((t) => t.expr)),
  ];
  for (const query of queries) {
    for (const [, label = '', values = ''] of query.matchAll(/(\w+)=~?"([^"]*)"/g)) {
      const known = VALUES[label as keyof typeof VALUES];
      expect(values.split('|').filter((value) => !known.includes(value))).toEqual([]);
    }
  }
});
