// Numbers, times and reasons in words.

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "always" });
const SPANS = [
  ["year", 31_556_952_000],
  ["month", 2_629_746_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** `3 hours ago`. */
export function relative(ms, now = Date.now()) {
  const away = ms - now;
  const [unit, len] = SPANS.find(([, len]) => Math.abs(away) >= len) ?? ["second", 1000];
  return Math.abs(away) < 1000 ? "now" : RELATIVE.format(Math.trunc(away / len), unit);
}

/** The instant in the time zone of this browser. */
export function local(ms) {
  const options = { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
  return new Intl.DateTimeFormat("en-GB", options).format(ms);
}

/** `12 345`, of however many digits. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** `1 id`, `2 ids`. */
export function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** The text with a capital first letter. */
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

/** A note about damage in sentences, with what helps. */
export function damageOf({ kind, detail }) {
  return `${capital(detail)}. ${REMEDIES[kind] ?? ""}`;
}

/** How wide a field is. */
export function width(field) {
  const { bits, digits, radix, cardinality } = field.width;
  if (bits) return counted(bits, "bit");
  if (digits) return `${counted(digits, "digit")} of base ${radix}`;
  return `${grouped(cardinality)} values`;
}

/** How wide a field is in a drawing, in bits. */
export function bitsOf(field) {
  const { bits, digits, radix, cardinality } = field.width;
  return bits ?? (digits ? digits * Math.log2(radix) : Math.max(1, Math.log2(Number(cardinality))));
}

const ENDINGS = { one: "st", two: "nd", few: "rd", other: "th" };
const ORDINAL = new Intl.PluralRules("en", { type: "ordinal" });

function ordinal(number) {
  return `${grouped(number)}${ENDINGS[ORDINAL.select(Number(number % 100n))]}`;
}

/** What the value of a field means. */
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
