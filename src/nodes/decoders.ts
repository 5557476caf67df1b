/** The parts of the picture formats that code outside a run needs. */
export { countPixels, pictureFormatOf } from './codecs/decode.ts';
export { MAX_PIXELS, decodeBmp } from './codecs/decode-still.ts';
export { isPng, readPngChunks, writePng } from './codecs/png-chunks.ts';
