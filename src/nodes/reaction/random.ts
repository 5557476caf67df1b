/** Even numbers from 0 up to but without 1. */
export type RandomSource = () => number;

const GOLDEN_GAMMA = 0x9e3779b97f4a7c15n;

/** SplitMix64 (Steele, Lea, Flood 2014): every one of the 2^64 seeds starts a sequence of its own. */
export const splitMix64 = (seed: bigint): RandomSource => {
  let state = BigInt.asUintN(64, seed);
  return () => {
    state = BigInt.asUintN(64, state + GOLDEN_GAMMA);
    let mixed = BigInt.asUintN(64, (state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    // A double holds the upper 53 bits.
    return Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53;
  };
};
