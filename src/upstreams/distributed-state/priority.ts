/** Bits of a priority in BullMQ; lower runs first, 0 has a special meaning. */
const PRIORITY_BITS = 21;
/** The low half of a score is the arrival. */
const ARRIVALS = 2 ** 32;

/**
 * `order` as a whole number the queue can sort by: the first 21 bits of the double, arranged so that
 * they compare like numbers. Orders below 1024 stay apart; beyond, those within a thousandth of
 * each other may become equal, and then the order of arrival counts.
 */
export function priorityOf(order: number): number {
  const double = new DataView(new ArrayBuffer(8));
  // `-0` must equal `0`.
  double.setFloat64(0, order === 0 ? 0 : order);
  const high = double.getUint32(0);
  const isNegative = high >>> 31 === 1;
  const sortable = isNegative ? ~high >>> 0 : (high | 0x80000000) >>> 0;
  return sortable >>> (32 - PRIORITY_BITS);
}

/** The score of a waiting job; without an arrival it comes first among its equals. */
export function scoreOf(priority: number, arrival = 0): number {
  return priority * ARRIVALS + (arrival % ARRIVALS);
}
