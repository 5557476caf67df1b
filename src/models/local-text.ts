import { answerSchema, inputSchema, integer, numberOf, textOf } from './file-schema.ts';
import { InputFault, type ThreadModel } from './thread-model.ts';

const MAX_TEXT_CHARS = 200_000;
const READ_WORDS_PER_MINUTE = 230;
const TEXT = { type: 'string', maxLength: MAX_TEXT_CHARS, description: 'the text' } as const;
const INTEGER = { type: 'integer' } as const;

function segments(text: string, locale: string, granularity: 'word' | 'sentence' | 'grapheme') {
  try {
    return [...new Intl.Segmenter(locale, { granularity }).segment(text)];
  } catch {
    const msg = 'Input should be a language tag';
    throw new InputFault('language', { type: 'value_error', msg });
  }
}

function mostFrequent(words: readonly string[], limit: number): { word: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
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
  output: {
    'application/json': answerSchema({
      characters: INTEGER,
      bytes: INTEGER,
      words: INTEGER,
      distinct_words: INTEGER,
      sentences: INTEGER,
      lines: INTEGER,
      reading_seconds: INTEGER,
      top_words: { type: 'array', items: { type: 'object' } },
    }),
  },
  async compute(input) {
    const [text, language] = [textOf(input, 'text'), textOf(input, 'language')];
    const words = segments(text, language, 'word')
      .filter(({ isWordLike }) => isWordLike)
      .map(({ segment }) => segment.toLocaleLowerCase(language));
    const sentences = segments(text, language, 'sentence').filter(({ segment }) => segment.trim());
    const value = {
      characters: segments(text, language, 'grapheme').length,
      bytes: Buffer.byteLength(text),
      words: words.length,
      distinct_words: new Set(words).size,
      sentences: sentences.length,
      lines: text === '' ? 0 : text.split(/\r\n|\r|\n/).length,
      reading_seconds: Math.ceil((words.length * 60) / READ_WORDS_PER_MINUTE),
      top_words: mostFrequent(words, numberOf(input, 'top')),
    };
    return { kind: 'json', value };
  },
};

export const textSentiment: ThreadModel = {
  model: 'text-sentiment',
  title: 'Sentiment of an English text',
  description: 'From -1 to 1, of the whole and of each sentence, by the wink-eng-lite model.',
  input: inputSchema({ text: TEXT }),
  output: {
    'application/json': answerSchema({
      sentiment: { type: 'number', minimum: -1, maximum: 1 },
      label: { type: 'string', enum: ['positive', 'neutral', 'negative'] },
      sentences: { type: 'array', items: { type: 'object' } },
    }),
  },
  async compute(input, _files, { readEnglish }) {
    const text = await readEnglish(textOf(input, 'text'));
    const sentiment = text.sentiment();
    const label = sentiment > 0 ? 'positive' : sentiment < 0 ? 'negative' : 'neutral';
    return { kind: 'json', value: { sentiment, label, sentences: text.sentences() } };
  },
};

export const textTokens: ThreadModel = {
  model: 'text-tokens',
  title: 'Tokens of an English text',
  description: 'Tokens with part of speech and lemma, and named entities, by wink-eng-lite.',
  input: inputSchema({ text: TEXT }),
  output: {
    'application/json': answerSchema({
      tokens: { type: 'array', items: { type: 'object' } },
      entities: { type: 'array', items: { type: 'object' } },
    }),
  },
  async compute(input, _files, { readEnglish }) {
    const text = await readEnglish(textOf(input, 'text'));
    return { kind: 'json', value: { tokens: text.tokens(), entities: text.entities() } };
  },
};
