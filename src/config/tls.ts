import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';

/** A private key and the certificate chain that belongs to it, as PEM. */
export type TlsFiles = { readonly key: Buffer; readonly cert: Buffer };

/** Both files or none; a pair that cannot work is refused at the start. */
export function readTls({ tlsKeyfile, tlsCertfile }: Flags): TlsFiles | undefined {
  if (tlsKeyfile === undefined && tlsCertfile === undefined) return undefined;
  if (tlsKeyfile === undefined || tlsCertfile === undefined) {
    throw new InvalidSetting("options '--tls-keyfile' and '--tls-certfile' need each other");
  }
  const key = read('--tls-keyfile', tlsKeyfile);
  const cert = read('--tls-certfile', tlsCertfile);
  requireUsable('--tls-certfile', tlsCertfile, { cert });
  requireUsable('--tls-keyfile', tlsKeyfile, { key });
  try {
    createSecureContext({ key, cert });
  } catch (error) {
    throw new InvalidSetting(
      `the key in '${tlsKeyfile}' does not belong to the certificate in '${tlsCertfile}' ` +
        `(${reasonOf(error)})`,
    );
  }
  return { key, cert };
}

function read(option: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new InvalidSetting(`option '${option}': '${path}' cannot be read (${reasonOf(error)})`);
  }
}

function requireUsable(option: string, path: string, part: Partial<TlsFiles>): void {
  try {
    createSecureContext(part);
  } catch (error) {
    throw new InvalidSetting(
      `option '${option}': '${path}' holds nothing usable (${reasonOf(error)})`,
    );
  }
}

/** OpenSSL's reason without its place in the sources, or the system's code. */
function reasonOf(error: unknown): string {
  const { reason, code, message } = error as Error & { reason?: string; code?: string };
  return reason ?? code ?? message;
}
