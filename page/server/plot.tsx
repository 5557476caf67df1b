import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { isDark, onResize } from '../lib/screen.ts';

export type Series = {
  readonly name: string;
  /** A custom property of the style sheet. */
  readonly color: string;
  readonly values: readonly (number | null)[];
};

const WHOLE_STEPS = [1, 2, 5]
  .flatMap((step) => [1, 10, 100, 1000, 10_000].map((by) => step * by))
  .toSorted((a, b) => a - b);

/** A server that has just started shows an axis of some minutes. */
const LEAST_SPAN_S = 600;

function spanOf(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? 0;
  return [Math.min(times[0] ?? 0, last - LEAST_SPAN_S), last];
}

function isMeasured(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** A small plot over time. */
export function Plot({
  title,
  atMs,
  series,
  format,
  isWhole = false,
  leastMax = 1,
}: {
  readonly title: string;
  readonly atMs: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** The values are numbers of things. */
  readonly isWhole?: boolean;
  /** The vertical axis reaches at least as far. */
  readonly leastMax?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [
    atMs.map((ms) => ms / 1000),
    ...series.map(({ values }) => [...values]),
  ] as uPlot.AlignedData;

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color('--text-2'), font: '11px system-ui', ticks: { show: false } };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 120,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        scales: {
          x: { range: ({ data: [times = []] }) => spanOf(times) },
          y: { range: (_plot, _min, max) => [0, Math.max(leastMax, max * 1.15)] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 24,
            space: 70,
            values: (_plot, values) =>
              values.map((value) =>
                new Date(value * 1000).toLocaleTimeString(undefined, { timeStyle: 'short' }),
              ),
          },
          {
            ...axis,
            size: 52,
            space: 32,
            ...(isWhole && { incrs: WHOLE_STEPS }),
            grid: { stroke: color('--line'), width: 1 },
            values: (_plot, values) => values.map((value) => format(value)),
          },
        ],
        series: [
          {},
          ...series.map(({ name, color: line }) => ({
            label: name,
            stroke: color(line),
            width: 2,
            spanGaps: true,
            // One measurement is no line.
            points: {
              show: ({ data: shown }: uPlot, at: number) =>
                [...(shown[at] ?? [])].filter(isMeasured).length < 2,
            },
          })),
        ],
      },
      data,
      element,
    );
    plot.current = made;
    const endResize = onResize(element, ({ clientWidth: width }) =>
      made.setSize({ width, height: 120 }),
    );
    return () => {
      endResize();
      made.destroy();
    };
  }, [series.map(({ name }) => name).join(), isDark.value]);

  useEffect(() => plot.current?.setData(data), [atMs]);

  const latest = series.map(({ name, values }) => ({
    name,
    value: values.findLast((value) => value !== null) ?? null,
  }));
  const words = latest
    .map(({ name, value }) => `${name} ${value === null ? 'not known' : format(value)}`)
    .join(', ');
  return (
    <figure class="plot" aria-label={`${title}: ${words}`}>
      <figcaption>
        <span>{title}</span>
        {latest.map(({ name, value }, at) => (
          <span key={name} class="plot-value">
            <i class="plot-mark" style={{ background: `var(${series[at]?.color})` }} />
            {series.length > 1 && <small>{name}</small>} {value === null ? '–' : format(value)}
          </span>
        ))}
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}
