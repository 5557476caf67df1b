import type { JsonObject } from '../../protocol/json.ts';
import {
  choice,
  decimal,
  fileAnswer,
  inputSchema,
  integer,
  numberOf,
  outputField,
  textOf,
} from './file-schema.ts';
import { InputError, type ThreadModel } from './thread-model.ts';

const HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;
const MAX_LEVEL = 32_767;
const SAMPLE_RATES = [44_100, 8000, 16_000, 22_050, 48_000];

/** One period of each wave, from 0 to 1, as levels from -1 to 1. */
const WAVES: { readonly [wave: string]: (phase: number) => number } = {
  sine: (phase) => Math.sin(2 * Math.PI * phase),
  square: (phase) => (phase < 0.5 ? 1 : -1),
  triangle: (phase) => 1 - 4 * Math.abs(((phase + 0.25) % 1) - 0.5),
  sawtooth: (phase) => 2 * ((phase + 0.5) % 1) - 1,
};

/** Refuses a tone above half the sample rate, which would sound as another tone or be silent. */
function refuseAboveNyquist(frequency: number, le: number): void {
  if (frequency <= le) return;
  const msg = `Input should be less than or equal to ${le}, half the sample rate`;
  throw new InputError('frequency', { type: 'less_than_equal', msg, ctx: { le } });
}

/** Makes one channel of 16-bit PCM, with the header of a WAV file. */
function synthesise(input: JsonObject): Buffer {
  const rate = numberOf(input, 'sample_rate');
  const count = Math.round(numberOf(input, 'seconds') * rate);
  const wave = WAVES[textOf(input, 'wave')] ?? Math.sin;
  const step = numberOf(input, 'frequency') / rate;
  const fade = Math.min((numberOf(input, 'fade_ms') * rate) / 1000, count / 2);
  const loudness = numberOf(input, 'volume') * MAX_LEVEL;
  const file = Buffer.alloc(HEADER_BYTES + count * SAMPLE_BYTES);
  writeHeader(file, rate);
  for (let i = 0; i < count; i++) {
    const gain = fade === 0 ? 1 : Math.min(1, i / fade, (count - 1 - i) / fade);
    const level = Math.round(wave((i * step) % 1) * gain * loudness);
    file.writeInt16LE(level, HEADER_BYTES + i * SAMPLE_BYTES);
  }
  return file;
}

function writeHeader(file: Buffer, rate: number): void {
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(file.length - 8, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(rate * SAMPLE_BYTES, 28);
  file.writeUInt16LE(SAMPLE_BYTES, 32);
  file.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(file.length - HEADER_BYTES, 40);
}

export const tone: ThreadModel = {
  model: 'tone',
  title: 'Synthesise a tone',
  description: 'A WAV file of one wave, 16 bits, one channel; by default the answer is the file.',
  input: inputSchema({
    wave: choice(Object.keys(WAVES), 'shape of the wave'),
    frequency: decimal({ min: 20, max: 20_000, default: 440 }, 'in hertz'),
    seconds: decimal({ min: 0.01, max: 60, default: 1 }, 'length'),
    volume: decimal({ min: 0, max: 1, default: 0.5 }, 'loudness'),
    fade_ms: integer({ min: 0, max: 10_000, default: 10 }, 'fade at either end'),
    sample_rate: { type: 'integer', enum: SAMPLE_RATES, default: 44_100, description: 'in hertz' },
    output: outputField('binary', 'base64', 'asset'),
  }),
  output: fileAnswer('audio', ['audio/wav'], { seconds: { type: 'number' } }),
  async compute(input) {
    refuseAboveNyquist(numberOf(input, 'frequency'), numberOf(input, 'sample_rate') / 2);
    const facts = { seconds: numberOf(input, 'seconds') };
    return { kind: 'file', bytes: synthesise(input), contentType: 'audio/wav', facts };
  },
};
