/** A setting that cannot be meant; its message is shown to a person. */
export class InvalidSetting extends Error {}
