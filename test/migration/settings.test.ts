import { describe, expect, test } from 'vitest';
import { type Config, parseConfig } from '../../src/config/config.ts';
import type { Brownout } from '../../src/config/deprecation.ts';
import { effectOf } from '../../src/migration/brownout.ts';

const read = (...argv: string[]) => parseConfig(argv, {});
const endOf = (argv: string[], env: NodeJS.ProcessEnv = {}): Config['deprecationSettings'] => {
  const parsed = parseConfig(argv, env);
  if (parsed.kind !== 'config') throw new Error(parsed.text);
  return parsed.config.deprecationSettings;
};

describe('flags of the end of v1', () => {
  test('without any, v1 is deprecated since 21 August 2026 and has no end', () => {
    expect(endOf([])).toEqual({
      deprecatedAtMs: Date.UTC(2026, 7, 21),
      sunsetAtMs: undefined,
      brownouts: [],
    });
  });

  test('a brownout says when, whom and how; several may be given', () => {
    const window = 'from=2026-12-01T10:00Z,to=2026-12-01T12:00+01:00';
    expect(
      endOf(['--brownout', `${window},percent=20`, '--brownout', 'delay-ms=2000, client=python']),
    ).toMatchObject({
      brownouts: [
        {
          fromMs: Date.UTC(2026, 11, 1, 10),
          toMs: Date.UTC(2026, 11, 1, 11),
          percent: 20,
          delayMs: undefined,
        },
        { fromMs: undefined, toMs: undefined, percent: 100, delayMs: 2000, client: 'python' },
      ],
    });
    expect(endOf([], { HOLDOVER_BROWNOUT: 'percent=1;client=x' }).brownouts).toHaveLength(2);
  });

  test.each([
    [['--sunset', '2027-02-30'], '--sunset'],
    [['--sunset', '2027-01-01T10:00'], '--sunset'],
    [['--sunset', '2026-08-20'], '--sunset'],
    [['--brownout', ''], "'' is none of from=, to=, percent=, delay-ms=, client="],
    [['--brownout', 'until=2026-12-01'], "'until=2026-12-01' is none of"],
    [['--brownout', 'percent'], "'percent' is none of"],
    [['--brownout', 'from=yesterday'], 'from needs a date such as 2026-12-01'],
    [['--brownout', 'from=2026-12-02,to=2026-12-01'], 'to must be later than its from'],
    [['--brownout', 'percent=0'], 'percent must be a number from 0.01 to 100'],
    [['--brownout', 'percent=101'], "percent must be a number from 0.01 to 100, not '101'"],
    [['--brownout', 'delay-ms=70000'], 'delay-ms must be a number from 1 to 60000'],
    [['--brownout', 'client='], 'client is empty'],
    [['--brownout', 'percent=1,percent=2'], 'percent is given twice'],
  ])('%j is refused, naming the part', (argv, part) => {
    const parsed = read(...argv);
    expect(parsed).toMatchObject({ kind: 'exit', code: 2 });
    expect(parsed.kind === 'exit' && parsed.text).toContain(part);
  });
});

describe('whom a brownout hits', () => {
  const HOUR = 3_600_000;
  const always: Brownout = {
    fromMs: undefined,
    toMs: undefined,
    percent: 100,
    delayMs: undefined,
    client: undefined,
  };
  const clients = Array.from({ length: 2000 }, (_, i) => ({ user: `u${i}`, agent: 'a' }));
  const hit = (rule: Brownout, nowMs: number) =>
    clients.filter((client) => effectOf([rule], client, nowMs)).map(({ user }) => user);

  test('its share of the clients, the same ones throughout a window, others in the next', () => {
    const rule = { ...always, percent: 20 };
    const first = hit(rule, 5 * HOUR);
    expect(first.length).toBeGreaterThan(300);
    expect(first.length).toBeLessThan(500);
    expect(hit(rule, 6 * HOUR - 1)).toEqual(first);
    expect(hit(rule, 6 * HOUR)).not.toEqual(first);
  });

  test('no call before and after its window; during it, until its end', () => {
    const rule = { ...always, fromMs: 1000, toMs: 2000 };
    const effects = [999, 1000, 1999, 2000].map((at) => effectOf([rule], clients[0]!, at));
    const refused = { kind: 'refused', untilMs: 2000 };
    expect(effects).toEqual([undefined, refused, refused, undefined]);
  });

  test('without an end, until the next full hour', () => {
    expect(effectOf([always], clients[0]!, HOUR + 1)).toEqual({
      kind: 'refused',
      untilMs: 2 * HOUR,
    });
  });

  test('those whose user agent has the text, whatever its case', () => {
    const rule = { ...always, client: 'Python' };
    const agents = ['python-requests/2.0', 'curl/8'];
    expect(agents.map((agent) => effectOf([rule], { user: 'u', agent }, 0)?.kind)).toEqual([
      'refused',
      undefined,
    ]);
  });

  test('a refusal counts before a delay, the longest delay before others', () => {
    const [short, long] = [10, 20].map((delayMs) => ({ ...always, delayMs }));
    expect(effectOf([long!, short!], clients[0]!, 0)).toEqual({ kind: 'delayed', delayMs: 20 });
    expect(effectOf([long!, always], clients[0]!, 0)?.kind).toBe('refused');
  });
});
