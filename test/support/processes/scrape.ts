/** One scrape of `/metrics`: its text, and what each series says. */
export type Scrape = {
  readonly text: string;
  /** The value of a series as it is written, `name{label="value"}`; 0 where there is none. */
  readonly of: (series: string) => number;
  /** Every value some label has. */
  readonly labels: (label: string) => readonly string[];
};

/** A line of the text format: name, labels, value. Anything else is a comment or empty. */
const SAMPLE = /^([a-z_:][\w:]*)(\{(?:[a-z_]\w*="(?:[^"\\]|\\.)*",?)+\})? (\S+)$/i;

export async function scrape(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`, { headers });
  if (response.status !== 200) throw new Error(`/metrics answers ${response.status}`);
  return readScrape(await response.text());
}

/** Takes the text apart; a line that is not of the format is an error. */
export function readScrape(text: string): Scrape {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || /^# (HELP|TYPE) /.test(line)) continue;
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
    // Nothing was measured since the scrape before.
    const isNone = /^nan$/i.test(value ?? '');
    if (name === undefined || (Number.isNaN(Number(value)) && !isNone)) {
      throw new Error(`no sample: ${line}`);
    }
    series.set(name + labels, Number(value));
  }
  return {
    text,
    of: (key) => series.get(key) ?? 0,
    labels: (label) =>
      [...text.matchAll(new RegExp(`[{,]${label}="([^"]*)"`, 'g'))].map(([, value = '']) => value),
  };
}
