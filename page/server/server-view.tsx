import type { ComponentProps } from 'preact';
import type { ServerAnswer } from '../../src/console/api-types.ts';
import lock from 'icon:lock-keyhole';
import check from 'icon:circle-check';
import warning from 'icon:triangle-alert';
import { count, dateTime, duration, size } from '../lib/format.ts';
import { NoAnswer, useAnswer } from '../lib/answer.tsx';
import { Refused } from '../lib/server.ts';
import { Empty, Fact, Icon } from '../lib/ui.tsx';
import { now, session } from '../state.ts';
import { Plot } from './plot.tsx';

const READ_MS = 10_000;

export function ServerView() {
  const { answer, fault, read } = useAnswer<ServerAnswer>('holdover/api/server', READ_MS);
  if (answer !== undefined) return <Figures answer={answer} />;
  if (fault instanceof Refused && fault.status === 403) {
    return (
      <Empty icon={lock} level={1} title="Figures are for the operator">
        <p>{session.value?.operator_reason ?? fault.message}</p>
      </Empty>
    );
  }
  return <NoAnswer what="figures" level={1} fault={fault} onRetry={read} />;
}

type AnswerProps = { readonly answer: ServerAnswer };
type SampleName = keyof ServerAnswer['samples'][number];
type PlotDef = Pick<ComponentProps<typeof Plot>, 'title' | 'format' | 'isWhole' | 'leastMax'> & {
  /** Name, colour and figure of each line. */
  readonly lines: readonly (readonly [name: string, color: string, figure: SampleName])[];
  readonly isOfUpstream?: boolean;
};

const rate = (value: number): string => (value < 10 ? value.toFixed(1) : whole(value));
const whole = (value: number): string => count(Math.round(value));

const PLOTS: readonly PlotDef[] = [
  {
    title: 'Jobs',
    format: whole,
    isWhole: true,
    lines: [
      ['queued', '--edge', 'queued'],
      ['running', '--run', 'running'],
    ],
  },
  { title: 'Ended a minute', format: rate, lines: [['ended', '--good', 'ended_per_minute']] },
  {
    title: 'Answered within',
    format: duration,
    leastMax: 10,
    lines: [
      ['p50', '--run', 'latency_p50_ms'],
      ['p95', '--violet', 'latency_p95_ms'],
    ],
  },
  { title: 'Calls a second', format: rate, lines: [['calls', '--run', 'requests_per_second']] },
  { title: 'Sockets', format: whole, isWhole: true, lines: [['sockets', '--accent', 'sockets']] },
  { title: 'Memory', format: size, lines: [['resident', '--accent', 'memory_bytes']] },
  {
    title: 'Stored files',
    format: size,
    leastMax: 1_000_000,
    lines: [['on disk', '--violet', 'disk_bytes']],
  },
  {
    title: 'Outbox',
    format: whole,
    isWhole: true,
    isOfUpstream: true,
    lines: [['waiting', '--warn', 'outbox']],
  },
  {
    title: 'Streams of the upstream',
    format: whole,
    isWhole: true,
    isOfUpstream: true,
    lines: [['open', '--run', 'upstream_streams']],
  },
];

function Figures({ answer }: AnswerProps) {
  const { servers, host, samples } = answer;
  const measuredAtMs = samples.at(-1)?.at_ms;
  const ofHost = servers > 1 && <small>of {host}</small>;
  return (
    <div class="view page server-view">
      <h1 tabIndex={-1}>Server</h1>
      <Warnings warnings={answer.warnings} />
      <Facts answer={answer} />
      <h2>
        The last hour {ofHost}
        {measuredAtMs !== undefined && <small> as of {dateTime(measuredAtMs)}</small>}
      </h2>
      <Plots answer={answer} />
      <h2>Limits {ofHost}</h2>
      <ul class="limits">
        {answer.limits.map((limit) => (
          <Limit key={limit.name} limit={limit} />
        ))}
      </ul>
    </div>
  );
}

function Warnings({ warnings }: Pick<ServerAnswer, 'warnings'>) {
  return (
    <ul class="warnings">
      {warnings.length === 0 && (
        <li class="is-good">
          <Icon shapes={check} />
          <span>Nothing wants action.</span>
        </li>
      )}
      {warnings.map(({ code, text, action }, at) => (
        <li key={`${code} ${at}`}>
          <Icon shapes={warning} />
          <span>
            {text} <strong>{action}</strong>
          </span>
        </li>
      ))}
    </ul>
  );
}

function Facts({ answer }: AnswerProps) {
  const { health, started_at_ms: startedAtMs } = answer;
  return (
    <dl class="facts">
      <Fact name="Upstream">{answer.upstream}</Fact>
      <Fact name="Health">{health.is_good ? 'healthy' : (health.reason ?? 'not healthy')}</Fact>
      <Fact name="Version">{answer.version}</Fact>
      <Fact name="Node.js">{answer.node}</Fact>
      {answer.servers > 1 && <Fact name="Servers">{count(answer.servers)}</Fact>}
      {answer.workers !== null && <Fact name="Workers">{count(answer.workers)}</Fact>}
      <Fact name="Up since" title={dateTime(startedAtMs)}>
        {duration(now.value - startedAtMs)}
      </Fact>
    </dl>
  );
}

function Plots({ answer }: AnswerProps) {
  const { samples } = answer;
  const atMs = samples.map(({ at_ms: at }) => at);
  const plots = PLOTS.filter(
    ({ isOfUpstream }) => !isOfUpstream || answer.upstream_kind === 'remote',
  );
  return (
    <div class="plots">
      {plots.map(({ lines, ...plot }) => (
        <Plot
          key={plot.title}
          {...plot}
          atMs={atMs}
          series={lines.map(([name, color, figure]) => ({
            name,
            color,
            values: samples.map((sample) => sample[figure]),
          }))}
        />
      ))}
    </div>
  );
}

function Limit({ limit }: { readonly limit: ServerAnswer['limits'][number] }) {
  const { name, flag, used, unit } = limit;
  const words = unit === 'bytes' ? size : count;
  const share = limit.limit === 0 ? 0 : (used / limit.limit) * 100;
  const usage = `${words(used)} of ${words(limit.limit)}`;
  return (
    <li>
      <span>{name}</span>
      <span
        class={`meter ${share > 85 ? 'is-full' : share > 60 ? 'is-half' : ''}`}
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share)}
        aria-valuetext={usage}
      >
        <span style={{ width: `${Math.min(100, share)}%` }} />
      </span>
      <span class="is-number">
        {usage} · {percent(share)}
      </span>
      {flag === '' ? (
        <span class="muted">{unit === 'bytes' ? 'of the machine' : 'fixed'}</span>
      ) : (
        <code>{flag}</code>
      )}
    </li>
  );
}

function percent(share: number): string {
  return share > 0 && share < 1 ? '< 1 %' : `${Math.round(share)} %`;
}
