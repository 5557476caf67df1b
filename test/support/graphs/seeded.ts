/** Random numbers that a failure can be seen twice with: `HOLDOVER_TEST_SEED` repeats a run. */
export function seeded(
  seed = Number(process.env['HOLDOVER_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 32)),
): { readonly seed: number; readonly random: () => number } {
  let state = seed >>> 0;
  return {
    seed,
    random() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
