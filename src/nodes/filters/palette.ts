/**
 * A set of colours, with the number of pixels of each. Positions are indexes of the colour table.
 */
type Box = {
  readonly colours: Int32Array;
  readonly pixels: number;
  children?: readonly [Box, Box];
};

/** The distinct colours of a picture, at most 65536. With more colours, lower bits are ignored. */
type Histogram = {
  readonly shift: number;
  readonly colours: Int32Array;
  readonly counts: Float64Array;
};

export type Palette = {
  readonly size: number;
  /** Red, green and blue of each entry. */
  readonly data: Uint8Array;
};

const MOST_COLOURS = 65_536;

/** Cuts the colours by the median, in the way of the original's imaging library. */
export const medianCut = (pixels: Uint8Array, wanted: number): Palette => {
  const histogram = histogramOf(pixels);
  const all = Int32Array.from(histogram.colours.keys());
  const root: Box = { colours: all, pixels: pixels.length / 3 };
  splitBoxes(root, histogram, wanted);
  return averages(pixels, histogram, leavesOf(root));
};

const histogramOf = (pixels: Uint8Array): Histogram => {
  for (let shift = 0; ; shift++) {
    const histogram = countColours(pixels, shift);
    if (histogram.colours.length <= MOST_COLOURS) return histogram;
  }
};

const colourAt = (pixels: Uint8Array, i: number, shift: number): number =>
  (((pixels[i] as number) >> shift) << 16) |
  (((pixels[i + 1] as number) >> shift) << 8) |
  ((pixels[i + 2] as number) >> shift);

const countColours = (pixels: Uint8Array, shift: number): Histogram => {
  const sorted = new Int32Array(pixels.length / 3);
  for (let i = 0; i < sorted.length; i++) sorted[i] = colourAt(pixels, i * 3, shift);
  sorted.sort();
  const firsts: number[] = [];
  for (let i = 0; i < sorted.length; i++) if (sorted[i] !== sorted[i - 1]) firsts.push(i);
  return {
    shift,
    colours: Int32Array.from(firsts, (first) => sorted[first] as number),
    counts: Float64Array.from(firsts, (first, i) => (firsts[i + 1] ?? sorted.length) - first),
  };
};

/**
 * Cuts the fullest box again and again, until there are enough boxes or each has a single colour.
 */
const splitBoxes = (root: Box, histogram: Histogram, wanted: number): void => {
  const heap = [root];
  for (let boxes = 1; boxes < wanted; boxes++) {
    let fullest = takeFullest(heap);
    while (fullest && fullest.colours.length === 1) fullest = takeFullest(heap);
    if (!fullest) return;
    fullest.children = cut(fullest, histogram);
    for (const child of fullest.children) addBox(heap, child);
  }
};

/** Adds a box to a binary heap. The order of two equally full boxes decides the palette. */
const addBox = (heap: Box[], box: Box): void => {
  let place = heap.length;
  while (place > 0) {
    const above = (place - 1) >> 1;
    if (box.pixels <= (heap[above] as Box).pixels) break;
    heap[place] = heap[above] as Box;
    place = above;
  }
  heap[place] = box;
};

const takeFullest = (heap: Box[]): Box | undefined => {
  const fullest = heap[0];
  const last = heap.pop();
  if (heap.length === 0 || !last) return fullest;
  let place = 0;
  for (;;) {
    let below = place * 2 + 1;
    if (below >= heap.length) break;
    const next = heap[below + 1];
    if (next && (heap[below] as Box).pixels < next.pixels) below++;
    if (last.pixels > (heap[below] as Box).pixels) break;
    heap[place] = heap[below] as Box;
    place = below;
  }
  heap[place] = last;
  return fullest;
};

const RED_SHIFT = 16;
/** The shift and weight of red, green and blue: the axis that looks longest to the eye is cut. */
const AXES = [
  { shift: RED_SHIFT, weight: 77 },
  { shift: 8, weight: 150 },
  { shift: 0, weight: 29 },
] as const;

const cut = (box: Box, histogram: Histogram): readonly [Box, Box] => {
  const lengths = AXES.map(({ shift, weight }) => weight * spread(box, histogram, shift));
  const axis = AXES[lengths.indexOf(Math.max(...lengths))] ?? AXES[0];
  const level = cutLevel(box, histogram, axis.shift);
  const isUpper = (entry: number): boolean => levelOf(histogram, entry, axis.shift) >= level;
  const upper = box.colours.filter(isUpper);
  const lower = box.colours.filter((entry) => !isUpper(entry));
  const upperPixels = upper.reduce((sum, entry) => sum + (histogram.counts[entry] as number), 0);
  return [
    { colours: upper, pixels: upperPixels },
    { colours: lower, pixels: box.pixels - upperPixels },
  ];
};

const levelOf = (histogram: Histogram, entry: number, shift: number): number =>
  ((histogram.colours[entry] as number) >> shift) & 0xff;

const spread = (box: Box, histogram: Histogram, shift: number): number => {
  let [low, high] = [255, 0];
  for (const entry of box.colours) {
    const level = levelOf(histogram, entry, shift);
    if (level < low) low = level;
    if (level > high) high = level;
  }
  return high - low;
};

/**
 * Returns the level from which colours belong to the upper half. It goes down until half the pixels
 * are passed.
 */
const cutLevel = (box: Box, histogram: Histogram, shift: number): number => {
  const counts = new Float64Array(256);
  for (const entry of box.colours) {
    const level = levelOf(histogram, entry, shift);
    counts[level] = (counts[level] as number) + (histogram.counts[entry] as number);
  }
  const lowest = counts.findIndex((count) => count > 0);
  let passed = 0;
  for (let level = 255; level > lowest; level--) {
    passed += counts[level] as number;
    if (passed * 2 > box.pixels) return level;
  }
  // The lowest level alone has more than half of the pixels, so it becomes the lower box.
  return lowest + 1;
};

const leavesOf = (box: Box): readonly Box[] => box.children?.flatMap(leavesOf) ?? [box];

const averages = (pixels: Uint8Array, histogram: Histogram, boxes: readonly Box[]): Palette => {
  const boxOf = new Map<number, number>();
  for (const [index, box] of boxes.entries()) {
    for (const entry of box.colours) boxOf.set(histogram.colours[entry] as number, index);
  }
  const sums = new Float64Array(boxes.length * 3);
  for (let i = 0; i < pixels.length; i += 3) {
    const box = boxOf.get(colourAt(pixels, i, histogram.shift)) as number;
    for (let c = 0; c < 3; c++)
      sums[box * 3 + c] = (sums[box * 3 + c] as number) + (pixels[i + c] as number);
  }
  const data = Uint8Array.from(sums, (sum, i) =>
    Math.floor(0.5 + sum / (boxes[Math.floor(i / 3)] as Box).pixels),
  );
  return { size: boxes.length, data };
};

/**
 * Finds the nearest palette entry by the six highest bits of each channel, as the original does.
 */
export const nearestIn = (
  palette: Palette,
): ((red: number, green: number, blue: number) => number) => {
  const known = new Int16Array(64 * 64 * 64).fill(-1);
  return (red, green, blue) => {
    const slot = ((red >> 2) << 12) | ((green >> 2) << 6) | (blue >> 2);
    const found = known[slot] as number;
    if (found >= 0) return found;
    return (known[slot] = search(palette, red & 0xfc, green & 0xfc, blue & 0xfc));
  };
};

const search = ({ size, data }: Palette, red: number, green: number, blue: number): number => {
  let [best, least] = [0, Infinity];
  for (let i = 0; i < size; i++) {
    const [r, g, b] = [
      (data[i * 3] as number) - red,
      (data[i * 3 + 1] as number) - green,
      (data[i * 3 + 2] as number) - blue,
    ];
    const distance = r * r + g * g + b * b;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
};
