/** A setting that cannot be meant; its message is shown to a person. */
export class Refused extends Error {
  override readonly name = 'Refused';
}
