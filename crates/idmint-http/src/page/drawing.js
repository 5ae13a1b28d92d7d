// A layout drawn to scale: each field as wide as its bits, and the bits or digits of an id in it.

import { h, svg } from "./elements.js";
import { bitsOf, width } from "./words.js";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** The letter by which a field is told in drawing and legend. */
export function keyOf(at) {
  return LETTERS[at] ?? String(at + 1);
}

/** The sign of a field in a legend. */
export function key(at) {
  return h("span", { class: `key field-${at % 8}` }, keyOf(at));
}

/** The digits of a field's value, as wide as the field. */
export function digitsOf(field) {
  const { bits, digits, radix } = field.width;
  if (field.value === undefined) return null;
  if (bits) return BigInt(field.value).toString(2).padStart(bits, "0");
  if (digits && radix <= 36) return BigInt(field.value).toString(radix).toUpperCase().padStart(digits, "0");
  return field.value;
}

/** Ones as full bars, zeros as low ones. */
function bars(bits) {
  const drawn = [...bits].map((bit, at) => svg("rect", { x: at + 0.12, y: bit === "1" ? 0 : 7, width: 0.76, height: bit === "1" ? 10 : 3 }));
  return svg("svg", { class: "bars", viewBox: `0 0 ${bits.length} 10`, preserveAspectRatio: "none", "aria-hidden": "true" }, drawn);
}

/** Fields of a format, or of an id where they have values. */
export function drawing(fields, isSmall = false) {
  const parts = fields.map((field, at) => {
    const written = digitsOf(field);
    const inside = written === null ? null : field.width.bits ? bars(written) : h("span", { class: "digits" }, written);
    const part = h("div", { class: `part field-${at % 8}` }, h("span", { class: "part-key" }, keyOf(at), isSmall ? null : h("span", { class: "part-name" }, ` ${field.name}`)), inside);
    // As wide as its bits; set by script, since the policy allows no styles in markup.
    part.style.flexGrow = String(bitsOf(field));
    return part;
  });
  const told = fields.map((field) => `${field.name}, ${width(field)}`).join("; ");
  return h("div", { class: isSmall ? "drawing small-drawing" : "drawing", role: "img", "aria-label": `To scale: ${told}` }, parts);
}
