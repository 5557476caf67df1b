import { type Json, isJsonObject } from '../protocol/json.ts';
import type { NodeUi } from '../protocol/v2.ts';

type Members = { readonly [name: string]: unknown };
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isObject: Check = (value) => isJsonObject(value as Json);
const isList: Check = (value) => Array.isArray(value);
const isMapOf =
  (check: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value as Members).every(check);

/** True for the output of one node. */
export const isNodeUi = isMapOf(isList) as (value: unknown) => value is NodeUi;

/** The fields of another Holdover. */
const VENDOR_FIELDS: { readonly [name: string]: Check } = {
  x_cached_nodes: (value) => isList(value) && (value as readonly unknown[]).every(isText),
  x_current_inputs: isMapOf(isList),
  x_exception_type: isText,
  x_subfolder: isText,
  x_temp: isFlag,
  x_ui: isMapOf(isNodeUi),
  x_websocket: isFlag,
  x_workflow: isObject,
};

/** Adds the vendor fields. One with an unexpected value is left out. */
export function addVendorFields(result: { [name: string]: unknown }, members: Members): Members {
  for (const [name, value] of Object.entries(members)) {
    if (name.startsWith('x_') && VENDOR_FIELDS[name]?.(value) !== false) result[name] = value;
  }
  return result;
}
