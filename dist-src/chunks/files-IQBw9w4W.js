import { f as InvalidSetting } from "./ledger-B4DYGOuk.js";
/** The flags that say where the bytes of files are. */
const FILES_FLAGS = ["files", ...[
	"s3Endpoint",
	"s3PublicEndpoint",
	"s3Region"
]];
const BUCKET_URL = /^s3:\/\/([a-z0-9][a-z0-9._-]{1,62})(?:\/(.*))?$/;
const DEFAULT_REGION = "us-east-1";
/** Reads `folder` or the address of a bucket, and where its server is. */
function filesSource(flags, env) {
	const { files } = flags;
	if (files === "folder") return { kind: "folder" };
	const [, bucket, path = ""] = BUCKET_URL.exec(files) ?? [];
	if (bucket === void 0) throw new InvalidSetting(NOT_A_BUCKET);
	const region = flags.s3Region || env["AWS_REGION"] || env["AWS_DEFAULT_REGION"] || DEFAULT_REGION;
	if (!/^[a-z0-9-]{1,64}$/i.test(region)) throw new InvalidSetting("option '--s3-region' must be the name of a region, such as eu-west-1");
	const endpoint = endpointOf("--s3-endpoint", flags.s3Endpoint || env["AWS_ENDPOINT_URL_S3"] || env["AWS_ENDPOINT_URL"] || `https://s3.${region}.amazonaws.com`);
	const publicEndpoint = flags.s3PublicEndpoint ? endpointOf("--s3-public-endpoint", flags.s3PublicEndpoint) : endpoint;
	return {
		kind: "bucket",
		bucket,
		prefix: prefixOf(path),
		region,
		endpoint,
		publicEndpoint
	};
}
/** The address of a bucket as an operator writes it. */
function bucketUrl({ bucket, prefix }) {
	return `s3://${bucket}/${prefix}`.replace(/\/$/, "");
}
/** The address may hold a password where none belongs, so it is not repeated. */
const NOT_A_BUCKET = "option '--files' must be \"folder\" or s3://BUCKET/PREFIX; credentials belong into the environment";
function prefixOf(path) {
	const parts = path.split("/").filter((part) => part !== "");
	if (parts.some((part) => part === "." || part === ".." || !/^[\w!.*'()-]+$/.test(part))) throw new InvalidSetting("the PREFIX of '--files s3://BUCKET/PREFIX' may hold letters, digits and !-_.*'() between slashes");
	return parts.map((part) => `${part}/`).join("");
}
function endpointOf(flag, text) {
	const url = URL.canParse(text) ? new URL(text) : void 0;
	if (url !== void 0 && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" && url.search === "" && url.hash === "" && url.pathname === "/") return url.origin;
	throw new InvalidSetting(`option '${flag}' must be http://HOST:PORT or https://HOST, and no more`);
}
export { bucketUrl as n, filesSource as r, FILES_FLAGS as t };
