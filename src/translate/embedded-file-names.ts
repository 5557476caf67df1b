import { toPythonText } from '../protocol/python-json-text.ts';

/**
 * Matches a JSON string that is a path in an upload folder. A quotation mark behind a backslash
 * does not begin a string.
 */
const UPLOAD_PATH_TEXT = /(?<!\\)"holdover-[0-9a-f]{16}\/(?:[^"\\]|\\.)+"/g;
const FOLDER = /^holdover-[0-9a-f]{16}\//;

/** Returns the name that a prompt uses for the upload of a path below `input/`, if it uses it. */
export type SubmittedName = (path: string) => string | undefined;

/** True when the JSON text of a prompt has paths in upload folders. */
export function namesUploads(promptJson: string): boolean {
  return promptJson.search(UPLOAD_PATH_TEXT) >= 0;
}

/**
 * Returns the JSON text of a prompt, as an engine embeds it in a file, with uploads under the names
 * that the client used. Spaces keep the length unchanged. Names that are too long for it leave the
 * text as it was.
 */
export function withSubmittedNames(promptJson: string, submittedName: SubmittedName): string {
  const named = promptJson.replaceAll(UPLOAD_PATH_TEXT, (text) => {
    const uploadPath = parsed(text);
    return uploadPath === undefined ? text : asciiJson(clientNameOf(uploadPath, submittedName));
  });
  return named.length > promptJson.length ? promptJson : named.padEnd(promptJson.length);
}

/**
 * Returns the client's name of an upload. For an unknown prompt, that is the name of the upload
 * itself.
 */
function clientNameOf(uploadPath: string, submittedName: SubmittedName): string {
  const path = uploadPath.replace(FOLDER, '');
  const nameStart = path.lastIndexOf('/') + 1;
  const decoded = path.slice(0, nameStart) + decodedName(path.slice(nameStart));
  const submitted = [uploadPath, decoded, path].map(submittedName);
  return submitted.find((name) => name !== undefined) ?? decoded;
}

/**
 * Decodes a file name. The form library of comfy-api-proxy percent-encodes all characters of it but
 * letters, digits and `_.-~`, and engines do not decode it. A name with other characters was not
 * encoded.
 */
function decodedName(name: string): string {
  try {
    const decoded = decodeURIComponent(name);
    return encodedName(decoded) === name ? decoded : name;
  } catch {
    return name;
  }
}

function encodedName(name: string): string {
  const escape = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name).replaceAll(/[!'()*]/g, escape);
}

function parsed(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}

/** Writes JSON as engines do, in ASCII: every kind of text chunk can hold it. */
function asciiJson(text: string): string {
  return toPythonText(JSON.stringify(text));
}
