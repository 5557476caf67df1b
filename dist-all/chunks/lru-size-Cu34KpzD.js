// src/lib/lru-size.ts
/**
* Options of an `LRUCache` with at most this many entries. Its own `max` allocates memory for all
* of them at once, 16 bytes and more for each; this option allocates for existing entries only.
*/
function atMost(entries) {
	return {
		maxSize: entries,
		sizeCalculation: one
	};
}
const one = () => 1;
export { atMost as t };
