import { r as createFolderBlobs, t as openBucketOf } from "./stored-files-BpRZ7w4Z.js";
import { v as refuseOtherPlace } from "./sqlite-ledger-CF5LsL03.js";
import { r as withOpen } from "./shared-options-ihEXDHvk.js";
import { u as silentLogger } from "./ledger-B4DYGOuk.js";
import { n as placeInBucket, r as placeInFolder } from "./places-D6OXpE2A.js";
import { join } from "node:path";
// src/cli/files/with-files.ts
/**
* Calls `work` with the files of these settings, and closes them afterwards. Throws when the files are in another
* place, or are not complete there.
*/
async function withFiles({ dataDir, files }, work) {
	return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
		await refuseOtherPlace(dataDir, bucket?.identity);
		const place = bucket ? placeInBucket(bucket, dataDir) : placeInFolder(dataDir);
		return await work({
			place,
			blobs: bucket?.blobs ?? createFolderBlobs(join(dataDir, "blobs")),
			recordedBy: await place.readSmall("ledger.id"),
			bucket
		});
	});
}
export { withFiles as t };
