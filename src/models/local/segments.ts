/** Code units in one window: each segment costs the segmenter as much as the text it is in. */
const WINDOW_CHARS = 512;
/**
 * The last segments of a window that are uncertain: the text after it may move or remove their
 * boundary.
 */
const UNCERTAIN_SEGMENTS = 2;

/**
 * The segments of a text of any length, in time in proportion to it. They come one by one: a thread
 * that is to end ends between two of them, but never inside of the engine's own loops.
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
