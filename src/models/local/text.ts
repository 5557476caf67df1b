import type { JsonObject } from '../../protocol/json.ts';
import { inputSchema, integer, jsonAnswer, numberOf, textOf } from './file-schema.ts';
import { InputError, type ThreadModel } from './thread-model.ts';

const MAX_TEXT_CHARS = 200_000;
const READ_WORDS_PER_MINUTE = 230;
const TEXT = { type: 'string', maxLength: MAX_TEXT_CHARS, description: 'the text' } as const;
const INTEGER = { type: 'integer' } as const;
/**
 * The maximum number of characters without a blank between them. The language model takes at least quadratic time to
 * find words in such a text.
 */
const MAX_ASCII_RUN = 1000;
const ENGLISH_TEXT = {
  ...TEXT,
  description: `the text; at most ${MAX_ASCII_RUN} ASCII characters without a blank`,
} as const;

type Granularity = 'word' | 'sentence' | 'grapheme';

/** The text of an input for the language model. */
function englishText(input: JsonObject): string {
  const text = textOf(input, 'text');
  const runs = text.split(/\s+/).filter(({ length }) => length > MAX_ASCII_RUN);
  if (runs.every((run) => run.replaceAll(/[^!-~]+/g, '').length <= MAX_ASCII_RUN)) return text;
  const msg = `Most ASCII characters without a blank: ${MAX_ASCII_RUN}`;
  throw new InputError('text', { type: 'value_error', msg });
}

function segments(text: string, locale: string, granularity: Granularity) {
  try {
    return segmentsOf(new Intl.Segmenter(locale, { granularity }), text);
  } catch {
    const msg = 'Input should be a language tag';
    throw new InputError('language', { type: 'value_error', msg });
  }
}

function countWords(text: string, locale: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { segment, isWordLike } of segments(text, locale, 'word')) {
    if (!isWordLike) continue;
    const word = segment.toLocaleLowerCase(locale);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

function countSentences(text: string, locale: string): number {
  let count = 0;
  for (const { segment } of segments(text, locale, 'sentence')) if (segment.trim()) count++;
  return count;
}

function countCharacters(text: string, locale: string): number {
  let count = 0;
  for (const _ of segments(text, locale, 'grapheme')) count++;
  return count;
}

function mostFrequent(
  counts: ReadonlyMap<string, number>,
  limit: number,
): { word: string; count: number }[] {
  return [...counts]
    .map(([word, count]) => ({ word, count }))
    .toSorted((a, b) => b.count - a.count || (a.word < b.word ? -1 : 1))
    .slice(0, limit);
}

export const textStatistics: ThreadModel = {
  model: 'text-statistics',
  title: 'Statistics of a text',
  description: 'Counts by the rules of Unicode, in any language.',
  input: inputSchema({
    text: TEXT,
    language: { type: 'string', maxLength: 35, default: 'en', description: 'BCP 47 tag' },
    top: integer({ min: 0, max: 100, default: 10 }, 'how many of the most frequent words'),
  }),
  output: jsonAnswer({
    characters: INTEGER,
    bytes: INTEGER,
    words: INTEGER,
    distinct_words: INTEGER,
    sentences: INTEGER,
    lines: INTEGER,
    reading_seconds: INTEGER,
    top_words: { type: 'array', items: { type: 'object' } },
  }),
  async compute(input) {
    const [text, language] = [textOf(input, 'text'), textOf(input, 'language')];
    const counts = countWords(text, language);
    const words = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const value = {
      characters: countCharacters(text, language),
      bytes: Buffer.byteLength(text),
      words,
      distinct_words: counts.size,
      sentences: countSentences(text, language),
      lines: text === '' ? 0 : text.split(/\r\n|\r|\n/).length,
      reading_seconds: Math.ceil((words * 60) / READ_WORDS_PER_MINUTE),
      top_words: mostFrequent(counts, numberOf(input, 'top')),
    };
    return { kind: 'json', value };
  },
};

export const textSentiment: ThreadModel = {
  model: 'text-sentiment',
  title: 'Sentiment of an English text',
  description: 'From -1 to 1, of the whole and of each sentence, by the wink-eng-lite model.',
  input: inputSchema({ text: ENGLISH_TEXT }),
  output: jsonAnswer({
    sentiment: { type: 'number', minimum: -1, maximum: 1 },
    label: { type: 'string', enum: ['positive', 'neutral', 'negative'] },
    sentences: { type: 'array', items: { type: 'object' } },
  }),
  async compute(input, _files, { readEnglish }) {
    const text = await readEnglish(englishText(input));
    const sentiment = text.sentiment();
    const label = sentiment > 0 ? 'positive' : sentiment < 0 ? 'negative' : 'neutral';
    return { kind: 'json', value: { sentiment, label, sentences: text.sentences() } };
  },
};

export const textTokens: ThreadModel = {
  model: 'text-tokens',
  title: 'Tokens of an English text',
  description: 'Tokens with part of speech and lemma, and named entities, by wink-eng-lite.',
  input: inputSchema({ text: ENGLISH_TEXT }),
  output: jsonAnswer({
    tokens: { type: 'array', items: { type: 'object' } },
    entities: { type: 'array', items: { type: 'object' } },
  }),
  async compute(input, _files, { readEnglish }) {
    const text = await readEnglish(englishText(input));
    return { kind: 'json', value: { tokens: text.tokens(), entities: text.entities() } };
  },
};

/** The code units in one window: each segment costs the segmenter as much as the text around it. */
const WINDOW_CHARS = 512;
/**
 * The number of segments at the end of a window that are uncertain: the text behind the window may
 * move or remove their boundary.
 */
const UNCERTAIN_SEGMENTS = 2;

/**
 * Yields the segments of a text of any length, in time in proportion to it. A thread that has to
 * end ends between two segments, but never inside the engine's own loops.
 * @internal
 */
export function* segmentsOf(segmenter: Intl.Segmenter, text: string): Generator<Intl.SegmentData> {
  let chars = WINDOW_CHARS;
  for (let at = 0; at < text.length;) {
    const found = segmentsIn(segmenter, text.slice(at, at + chars));
    const isRest = at + chars >= text.length && found.length < WINDOW_CHARS;
    const certain = isRest ? found : found.slice(0, -UNCERTAIN_SEGMENTS);
    for (const each of certain) {
      yield each;
      at += each.segment.length;
    }
    chars = certain.length > 0 ? WINDOW_CHARS : chars * 2;
  }
}

function segmentsIn(segmenter: Intl.Segmenter, window: string): Intl.SegmentData[] {
  const found: Intl.SegmentData[] = [];
  for (const each of segmenter.segment(window)) {
    found.push(each);
    if (found.length === WINDOW_CHARS) break;
  }
  return found;
}
