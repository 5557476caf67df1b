import type Koa from 'koa';
import { emptyError, sendJson, textError } from '../dialects/errors.ts';
import { routesFor } from './routes.ts';
import { isFileType } from '../files/safe-name.ts';
import { SIGNED_VIEW_PATH } from '../auth/signed-view.ts';
import { type UploadServices, uploadImage, uploadMask } from './files/upload.ts';
import { type ViewServices, serveSignedView, view } from './files/view.ts';

/** Services of the file routes. */
export type FileRouteServices = UploadServices & ViewServices;

/** Uploads, downloads and listings of the old API. */
export const fileRoutes = routesFor<FileRouteServices>({
  'POST /upload/image': uploadImage,
  'POST /upload/mask': uploadMask,
  'GET /view': view,
  /**
   * Answers for headers of model files. There are no models here, so each call gets v1's error.
   */
  'GET /view_metadata/:folder'() {
    throw emptyError(404, 'There is no such model file.');
  },
  /** Newest first, top level only. Names have the form in which loaders take them. */
  async 'GET /internal/files/:type'(services, { ctx, caller, params }) {
    const { type = '' } = params;
    if (!isFileType(type)) throw textError(400, WRONG_TYPE);
    const rows = await services.files.list(caller.user, type);
    sendJson(
      ctx,
      rows.filter((row) => row.subfolder === '').map((row) => `${row.filename} [${type}]`),
    );
  },
});

/**
 * Serves signed links. They need no credential and ignore one, so this runs before authentication.
 */
export function signedViewMiddleware(services: ViewServices): Koa.Middleware {
  return (ctx, next) => {
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    const isSignedView = ctx.path === SIGNED_VIEW_PATH || ctx.path === `/api${SIGNED_VIEW_PATH}`;
    if (!isRead || !isSignedView) return next();
    ctx.set('Referrer-Policy', 'no-referrer');
    return serveSignedView(services, ctx);
  };
}

const WRONG_TYPE = 'Invalid directory type';
