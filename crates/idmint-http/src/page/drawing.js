// Draws the layout of a format to scale: each field is as wide as its bits, and contains the bits or digits of an id.

import { h, svg } from "./elements.js";
import { bitsOf, width } from "./words.js";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Returns the letter that marks a field in the drawing and in the legend: `A` for the first one. */
export function keyOf(at) {
  return LETTERS[at] ?? String(at + 1);
}

/** Returns the coloured mark of a field for the legend. */
export function key(at) {
  return h("span", { class: `key field-${at % 8}` }, keyOf(at));
}

/** Returns the value of a field in binary, or in its radix, padded with zeros to the width of the field. */
export function digitsOf(field) {
  const { bits, digits, radix } = field.width;
  if (field.value === undefined) return null;
  if (bits) return BigInt(field.value).toString(2).padStart(bits, "0");
  if (digits && radix <= 36) return BigInt(field.value).toString(radix).toUpperCase().padStart(digits, "0");
  return field.value;
}

/** Draws a tall bar for each bit that is one, and a low bar for each zero. */
function bars(bits) {
  const drawn = [...bits].map((bit, at) => svg("rect", { x: at + 0.12, y: bit === "1" ? 0 : 7, width: 0.76, height: bit === "1" ? 10 : 3 }));
  return svg("svg", { class: "bars", viewBox: `0 0 ${bits.length} 10`, preserveAspectRatio: "none", "aria-hidden": "true" }, drawn);
}

/** Draws the fields of a format. If the fields have values, as those of an id do, draws their bits or digits, too. */
export function drawing(fields, isSmall = false) {
  const parts = fields.map((field, at) => {
    const written = digitsOf(field);
    const inside = written === null ? null : field.width.bits ? bars(written) : h("span", { class: "digits" }, written);
    const part = h("div", { class: `part field-${at % 8}` }, h("span", { class: "part-key" }, keyOf(at), isSmall ? null : h("span", { class: "part-name" }, ` ${field.name}`)), inside);
    // The width is set by script, because the content security policy allows no styles in markup.
    part.style.flexGrow = String(bitsOf(field));
    return part;
  });
  const told = fields.map((field) => `${field.name}, ${width(field)}`).join("; ");
  return h("div", { class: isSmall ? "drawing small-drawing" : "drawing", role: "img", "aria-label": `To scale: ${told}` }, parts);
}
