import { untilAborted } from '../../lib/concurrency.ts';
import type { Asset } from '../../protocol/v2.ts';
import type { AssetUpload, Result, StartedUpload, UploadStart } from '../../protocol/job-api.ts';
import { type MultipartBody, startedUploadBody } from './multipart-body.ts';

type Post = (body: MultipartBody, signal: AbortSignal) => Promise<Result<Asset>>;

/** Sends a file while it still arrives, with a request that `post` makes. */
export function startUpload({ file, contentType }: UploadStart, post: Post): StartedUpload {
  const cancelled = new AbortController();
  let isOver = false;
  let complete: (upload: AssetUpload) => void = () => {};
  const completed = new Promise<AssetUpload>((resolve) => (complete = resolve));
  const whole = untilAborted(completed, cancelled.signal);
  // The body may have ended before the fields are read.
  whole.catch(() => {});
  const answer = post(startedUploadBody({ file, contentType }, whole), cancelled.signal);
  return {
    async finish(upload) {
      if (isOver || upload.contentType !== contentType) return undefined;
      isOver = true;
      complete(upload);
      return answer;
    },
    cancel() {
      if (isOver) return;
      isOver = true;
      cancelled.abort();
    },
  };
}
