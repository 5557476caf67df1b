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
  try {
    const files = { key: readFileSync(tlsKeyfile), cert: readFileSync(tlsCertfile) };
    createSecureContext(files);
    return files;
  } catch (error) {
    // OpenSSL's reason without its place in the sources.
    const { reason, message } = error as Error & { reason?: string };
    throw new InvalidSetting(
      `options '--tls-keyfile' and '--tls-certfile': '${tlsKeyfile}' and '${tlsCertfile}' cannot be used ` +
        `together (${reason ?? message})`,
    );
  }
}
