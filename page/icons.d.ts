/** The shapes of an icon of Lucide: element names with their attributes. `scripts/build-page.js` makes it. */
declare module 'icon:*' {
  const shapes: readonly (readonly [string, Readonly<Record<string, string>>])[];
  export default shapes;
}
