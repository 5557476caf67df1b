/** Pictures that sharp does not decode as v1 does, for code that shows them outside a run. */
export { decodeBmp, decodeInks } from './codecs/decode-still.ts';
