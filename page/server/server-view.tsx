import { useEffect, useState } from 'preact/hooks';
import type { ServerAnswer } from '../../src/console/api-types.ts';
import loader from 'icon:loader-circle';
import lock from 'icon:lock-keyhole';
import check from 'icon:circle-check';
import warning from 'icon:triangle-alert';
import { count, dateTime, duration, size } from '../lib/format.ts';
import { Refused, getJson } from '../lib/server.ts';
import { Empty, Icon } from '../lib/ui.tsx';
import { connection, now, session } from '../state.ts';
import { Plot } from './plot.tsx';
import { Servers, nameOfServer } from './servers.tsx';

const READ_MS = 10_000;

export function ServerView() {
  const [answer, setAnswer] = useState<ServerAnswer>();
  const [fault, setFault] = useState<unknown>();
  const isOpen = connection.value.is === 'open';
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!isOpen) return undefined;
    const read = (): void =>
      void getJson<ServerAnswer>('holdover/api/server').then(
        (found) => {
          setAnswer(found);
          setFault(undefined);
        },
        (error: unknown) => setFault(error),
      );
    read();
    const timer = setInterval(() => !document.hidden && read(), READ_MS);
    return () => clearInterval(timer);
  }, [isOpen, attempt]);
  if (answer !== undefined) return <Figures answer={answer} />;
  if (fault instanceof Refused && fault.status === 403) {
    return (
      <Empty icon={lock} level={1} title="Figures are for the operator">
        <p>{session.value?.operator_reason ?? fault.message}</p>
      </Empty>
    );
  }
  if (fault !== undefined)
    return (
      <Empty icon={warning} level={1} title="The figures could not be read">
        <p>{fault instanceof Error ? fault.message : String(fault)}</p>
        <button type="button" class="button" onClick={() => setAttempt((known) => known + 1)}>
          Try again
        </button>
      </Empty>
    );
  return <Empty icon={loader} level={1} title="Reading the figures …" />;
}

function Figures({ answer }: { readonly answer: ServerAnswer }) {
  const { limits, warnings, health, others } = answer;
  const [chosen, setChosen] = useState(answer.server);
  const servers = [answer, ...others];
  const shown = servers.find(({ server }) => server === chosen) ?? answer;
  const { samples } = shown;
  const atMs = samples.map(({ at_ms: at }) => at);
  const pick = (name: keyof ServerAnswer['samples'][number]) =>
    samples.map((sample) => sample[name]);
  const rate = (value: number): string =>
    value < 10 ? value.toFixed(1) : count(Math.round(value));
  const whole = (value: number): string => count(Math.round(value));
  return (
    <div class="view page server-view">
      <h1 tabIndex={-1}>Server</h1>
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
      <dl class="facts">
        <Fact name="Upstream" value={answer.upstream} />
        <Fact name="Health" value={health.is_good ? 'healthy' : (health.reason ?? 'not healthy')} />
        <Fact name="Version" value={answer.version} />
        <Fact name="Node.js" value={answer.node} />
        {answer.workers !== null && <Fact name="Workers" value={count(answer.workers)} />}
        <div>
          <dt>Up since</dt>
          <dd title={dateTime(answer.started_at_ms)}>
            {duration(now.value - answer.started_at_ms)}
          </dd>
        </div>
      </dl>
      {answer.servers > 1 && (
        <Servers
          servers={servers}
          count={answer.servers}
          own={answer.server}
          shown={shown.server}
          onChoose={setChosen}
        />
      )}
      <h2>
        The last hour {answer.servers > 1 && <small>{nameOfServer(shown, answer.server)}</small>}
      </h2>
      <div class="plots">
        <Plot
          title="Jobs"
          atMs={atMs}
          format={whole}
          isWhole
          series={[
            { name: 'queued', color: '--edge', values: pick('queued') },
            { name: 'running', color: '--run', values: pick('running') },
          ]}
        />
        <Plot
          title="Ended a minute"
          atMs={atMs}
          format={rate}
          series={[{ name: 'ended', color: '--good', values: pick('ended_per_minute') }]}
        />
        <Plot
          title="Answered within"
          atMs={atMs}
          leastMax={10}
          format={(value) => duration(value)}
          series={[
            { name: 'p50', color: '--run', values: pick('latency_p50_ms') },
            { name: 'p95', color: '--violet', values: pick('latency_p95_ms') },
          ]}
        />
        <Plot
          title="Calls a second"
          atMs={atMs}
          format={rate}
          series={[{ name: 'calls', color: '--run', values: pick('requests_per_second') }]}
        />
        <Plot
          title="Sockets"
          atMs={atMs}
          format={whole}
          isWhole
          series={[{ name: 'sockets', color: '--accent', values: pick('sockets') }]}
        />
        <Plot
          title="Memory"
          atMs={atMs}
          format={size}
          series={[{ name: 'resident', color: '--accent', values: pick('memory_bytes') }]}
        />
        <Plot
          title="Stored files"
          atMs={atMs}
          format={size}
          leastMax={1_000_000}
          series={[{ name: 'on disk', color: '--violet', values: pick('disk_bytes') }]}
        />
        {answer.upstream_kind === 'remote' && (
          <Plot
            title="Outbox"
            atMs={atMs}
            format={whole}
            isWhole
            series={[{ name: 'waiting', color: '--warn', values: pick('outbox') }]}
          />
        )}
        {answer.upstream_kind === 'remote' && (
          <Plot
            title="Streams of the upstream"
            atMs={atMs}
            format={whole}
            isWhole
            series={[{ name: 'open', color: '--run', values: pick('upstream_streams') }]}
          />
        )}
      </div>
      <h2>Limits {answer.servers > 1 && <small>{nameOfServer(answer, answer.server)}</small>}</h2>
      <ul class="limits">
        {limits.map(({ name, flag, used, limit, unit }) => {
          const words = unit === 'bytes' ? size : count;
          const share = limit === 0 ? 0 : (used / limit) * 100;
          return (
            <li key={name}>
              <span>{name}</span>
              <span
                class={`meter ${share > 85 ? 'is-full' : share > 60 ? 'is-half' : ''}`}
                role="meter"
                aria-label={name}
                aria-valuemin={0}
                aria-valuemax={100}
                aria-valuenow={Math.round(share)}
                aria-valuetext={`${words(used)} of ${words(limit)}`}
              >
                <span style={{ width: `${Math.min(100, share)}%` }} />
              </span>
              <span class="is-number">
                {words(used)} of {words(limit)} · {percent(share)}
              </span>
              {flag === '' ? <span class="muted">of the machine</span> : <code>{flag}</code>}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function percent(share: number): string {
  return share > 0 && share < 1 ? '< 1 %' : `${Math.round(share)} %`;
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
