import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { isDark, onResize } from '../lib/screen.ts';

type Series = {
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
const HEIGHT_PX = 120;

type LinesProps = {
  readonly atMs: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** The values are numbers of things. */
  readonly isWhole?: boolean;
  /** The vertical axis reaches at least as far. */
  readonly leastMax?: number;
};

/** A small plot over time. */
export function Plot({ title, ...lines }: LinesProps & { readonly title: string }) {
  const { series, format } = lines;
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
      <Lines {...lines} />
    </figure>
  );
}

/** The lines with their axes, made anew for other lines or colours. */
function Lines(props: LinesProps) {
  const { atMs, series } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [
    atMs.map((ms) => ms / 1000),
    ...series.map(({ values }) => [...values]),
  ] as uPlot.AlignedData;

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsOf(props, element.clientWidth), data, element);
    plot.current = made;
    const endResize = onResize(element, ({ clientWidth: width }) =>
      made.setSize({ width, height: HEIGHT_PX }),
    );
    return () => {
      endResize();
      made.destroy();
    };
  }, [series.map(({ name }) => name).join(), isDark.value]);

  useEffect(() => plot.current?.setData(data), [atMs]);
  return <div ref={place} aria-hidden="true" />;
}

function optionsOf(props: LinesProps, width: number): uPlot.Options {
  const { series, leastMax = 1 } = props;
  return {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range: ({ data: [times = []] }) => spanOf(times) },
      y: { range: (_plot, _min, max) => [0, Math.max(leastMax, max * 1.15)] },
    },
    axes: [timeAxis(), valueAxis(props)],
    series: [{}, ...series.map(lineOf)],
  };
}

function spanOf(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? 0;
  return [Math.min(times[0] ?? 0, last - LEAST_SPAN_S), last];
}

function timeAxis(): uPlot.Axis {
  return {
    ...plainAxis(),
    grid: { show: false },
    size: 24,
    space: 70,
    values: (_plot, values) =>
      values.map((value) =>
        new Date(value * 1000).toLocaleTimeString(undefined, { timeStyle: 'short' }),
      ),
  };
}

function valueAxis({ format, isWhole = false }: LinesProps): uPlot.Axis {
  return {
    ...plainAxis(),
    size: 52,
    space: 32,
    ...(isWhole && { incrs: WHOLE_STEPS }),
    grid: { stroke: shownColor('--line'), width: 1 },
    values: (_plot, values) => values.map((value) => format(value)),
  };
}

function plainAxis(): uPlot.Axis {
  return { stroke: shownColor('--text-2'), font: '11px system-ui', ticks: { show: false } };
}

function lineOf({ name, color }: Series): uPlot.Series {
  return {
    label: name,
    stroke: shownColor(color),
    width: 2,
    spanGaps: true,
    // One measurement is no line.
    points: {
      show: ({ data }, at) => [...(data[at] ?? [])].filter(isMeasured).length < 2,
    },
  };
}

function isMeasured(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** The value of a custom property: a canvas takes no `var()`. */
function shownColor(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}
