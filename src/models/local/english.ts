import type { Detail, ItemSentence, ItemToken, ItsFunction } from 'wink-nlp';

/** A word or punctuation mark, with its part of speech and its dictionary form. */
type Token = {
  readonly text: string;
  readonly type: string;
  readonly pos: string;
  readonly lemma: string;
};

/** The analysis of a text by the English language model, computed on demand. */
type EnglishText = {
  /** Returns a number from -1 to 1. */
  sentiment(): number;
  sentences(): { readonly text: string; readonly sentiment: number }[];
  tokens(): Token[];
  entities(): { readonly text: string; readonly type: string }[];
};

/** Analyses a text. */
export type English = (text: string) => Promise<EnglishText>;

type NlpTrait = 'sentiment' | 'type' | 'pos' | 'lemma' | 'detail';

/** Loads wink-nlp with its small English model for the first text, and keeps it. */
export function createEnglish(): English {
  let loading: ReturnType<typeof load> | undefined;
  const loadOnce = (): ReturnType<typeof load> =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    }));
  return async (text) => {
    const { nlp, its } = await loadOnce();
    const doc = nlp.readDoc(text);
    return {
      sentiment: () => Number(doc.out(its.sentiment)),
      sentences: () =>
        collect<ItemSentence>(doc.sentences()).map((sentence) => ({
          text: sentence.out(),
          sentiment: Number(sentence.out(its.sentiment)),
        })),
      tokens: () =>
        collect<ItemToken>(doc.tokens()).map((token) => ({
          text: token.out(),
          type: String(token.out(its.type)),
          pos: String(token.out(its.pos)),
          lemma: String(token.out(its.lemma)),
        })),
      entities: () =>
        (doc.entities().out(its.detail) as unknown as Detail[]).map(({ value, type }) => ({
          text: value,
          type,
        })),
    };
  };
}

async function load() {
  const [{ default: winkNLP }, { default: model }] = await Promise.all([
    import('wink-nlp'),
    import('wink-eng-lite-web-model'),
  ]);
  const nlp = winkNLP(model);
  return { nlp, its: nlp.its as unknown as { readonly [trait in NlpTrait]: ItsFunction<string> } };
}

function collect<T>(items: { each(visit: (item: T) => void): void }): T[] {
  const all: T[] = [];
  items.each((item) => void all.push(item));
  return all;
}
