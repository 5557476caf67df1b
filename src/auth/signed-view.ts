import { createLinkSignature } from './link-signature.ts';
import type { FileRow } from '../ledger/ledger.ts';

/** The path of the signed download, below either prefix. */
export const SIGNED_VIEW_PATH = '/signed/view';

/**
 * The content of a signed link: one file of one user as it is now, in one rendering.
 * @internal
 */
export type ViewGrant = Pick<FileRow, 'user' | 'type' | 'subfolder' | 'filename' | 'assetId'> & {
  /** `preview` and `channel` as the client sent them. */
  readonly rendering: { readonly [parameter: string]: string };
};

export interface ViewSigner {
  /** Returns the query of a link that gives access to this file until it expires. */
  sign(grant: ViewGrant): string;
  /** Returns the grant of the link; `undefined` when it was altered or has expired. */
  verify(query: URLSearchParams): ViewGrant | undefined;
}

const LIFETIME_MS = 10 * 60_000;
const RENDERING_PARAMETERS = ['preview', 'channel'] as const;

/** Makes and checks links that carry their own authorization instead of a credential. */
export function createViewSigner(options: {
  readonly secret: Buffer;
  readonly now: () => number;
}): ViewSigner {
  const { now } = options;
  const signature = createLinkSignature({ ...options, kind: 'signed view' });
  return {
    sign(grant) {
      const claims = claimsOf(grant, Math.ceil((now() + LIFETIME_MS) / 1000));
      claims.set('signature', signature.sign(claims));
      return claims.toString();
    },
    verify(query) {
      const grant = grantOf(query);
      const claims = claimsOf(grant, Number(query.get('expires')));
      return signature.isValid(claims, query.get('signature')) ? grant : undefined;
    },
  };
}

/** Returns the claims. The file name comes first, since some clients derive a name from the URL. */
function claimsOf(
  { filename, subfolder, type, user, assetId, rendering }: ViewGrant,
  expires: number,
): URLSearchParams {
  const renderingPairs = RENDERING_PARAMETERS.flatMap((key): [string, string][] => {
    const value = rendering[key];
    return value === undefined ? [] : [[key, value]];
  });
  return new URLSearchParams([
    ['filename', filename],
    ['subfolder', subfolder],
    ['type', type],
    ...renderingPairs,
    ['user', user],
    ['asset', assetId],
    ['expires', String(expires)],
  ]);
}

function grantOf(query: URLSearchParams): ViewGrant {
  const text = (key: string) => query.get(key) ?? '';
  const rendering = RENDERING_PARAMETERS.flatMap((key) =>
    query.has(key) ? [[key, text(key)] as const] : [],
  );
  return {
    user: text('user'),
    type: text('type') as FileRow['type'],
    subfolder: text('subfolder'),
    filename: text('filename'),
    assetId: text('asset'),
    rendering: Object.fromEntries(rendering),
  };
}
