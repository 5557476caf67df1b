/** The parts of the picture formats that code outside a run needs. */
export { pictureFormatOf } from './codecs/decode.ts';
export { decodeBmp, decodeInks } from './codecs/decode-still.ts';
export { isPng, readPngChunks, writePng } from './codecs/png-chunks.ts';
