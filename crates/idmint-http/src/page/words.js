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

/** Formats an instant in the time zone of this browser. Returns `""` if the zone is UTC. */
export function local(ms) {
  if (!new Date(ms).getTimezoneOffset()) return "";
  const options = { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
  return new Intl.DateTimeFormat("en-GB", options).format(ms);
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

function hex(number) {
  return `0x${BigInt(number).toString(16)}`;
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

const ENDINGS = { one: "st", two: "nd", few: "rd", other: "th" };
const ORDINAL = new Intl.PluralRules("en", { type: "ordinal" });

function ordinal(number) {
  return `${grouped(number)}${ENDINGS[ORDINAL.select(Number(number % 100n))]}`;
}

/** Returns the meaning of a field's value, such as `a worker number of this node`. */
export function meaning(field, match, format) {
  const value = BigInt(field.value);
  if (field.label) return field.label;
  switch (field.kind) {
    case "time":
      return format?.tick && format?.epoch ? `ticks of ${format.tick.replace("us", "µs")} since ${format.epoch}` : "part of the time";
    case "worker":
      return format?.workers.includes(Number(value)) ? "a worker number of this node" : "which generator minted it";
    case "shard":
      return "which shard it belongs to";
    case "sequence":
      return format?.sequence_spread > 1 ? `its place in the tick, where the first begins below ${format.sequence_spread}` : `the ${ordinal(value + 1n)} of its tick`;
    case "random":
      return `by chance: ${hex(value)}`;
    case "constant":
      return "the same in every id";
    case "object":
      return "the number of an object";
    case "checksum":
      return `of the event and the id before: ${hex(value)}`;
    case "ledger":
      return `the ledger: ${hex(value)}`;
    default:
      return "";
  }
}
