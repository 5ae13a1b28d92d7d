// Converts numbers, times and descriptions to words.

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "always" });
const SPANS = [
  ["year", 31_556_952_000],
  ["month", 2_629_746_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** Returns a time relative to `now`, such as `3 hours ago`. Both are in milliseconds since 1970. */
export function relative(ms, now = Date.now()) {
  const away = ms - now;
  const [unit, len] = SPANS.find(([, len]) => Math.abs(away) >= len) ?? ["second", 1000];
  return Math.abs(away) < 1000 ? "now" : RELATIVE.format(Math.trunc(away / len), unit);
}

/** Groups the digits of a number of any length: `12 345`. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Returns a count with its noun: `1 id`, `2 ids`. */
export function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Capitalizes the first letter of a text. */
export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

const REMEDIES = {
  "digits-lost": "Copy the id again from where it is stored as a text or as a 64-bit number.",
  spreadsheet: "Format the column as text, and import the ids again.",
  "byte-order": "Read that id instead, and convert such UUIDs where they leave the database.",
  sign: "Store it in an unsigned column, or add 2⁶⁴ to negative numbers.",
};

/** Returns the description of a damage to an id, with the remedy if one is known. */
export function damageOf({ kind, detail }) {
  return `${capital(detail)}. ${REMEDIES[kind] ?? ""}`;
}

/** Returns the width of a field in words: `12 bits`, `2 digits of base 36` or `1 000 values`. */
export function width(field) {
  const { bits, digits, radix, cardinality } = field.width;
  if (bits) return counted(bits, "bit");
  if (digits) return `${counted(digits, "digit")} of base ${radix}`;
  return `${grouped(cardinality)} values`;
}

/** Returns the width of a field in the drawing, in bits. It may be a fraction. */
export function bitsOf(field) {
  const { bits, digits, radix, cardinality } = field.width;
  return bits ?? (digits ? digits * Math.log2(radix) : Math.max(1, Math.log2(Number(cardinality))));
}
