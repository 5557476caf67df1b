export { t as ALL_NODES } from "../chunks/library-CGWaePEd.js";
