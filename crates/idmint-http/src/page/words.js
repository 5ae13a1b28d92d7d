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

/** The instant by the clock of this browser, with its zone. */
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

function hex(number) {
  return `0x${BigInt(number).toString(16)}`;
}

const REASONS = {
  wrong_length: "it has another length",
  bad_alphabet: "it has letters that are not in the alphabet",
  non_canonical: "it would be written in another way",
  out_of_range: "it is greater than any",
  before_epoch: "its time is before the first",
  overflow: "it is greater than any",
  checksum_mismatch: "its checksum does not hold",
  wrong_check: "its check letters do not hold",
  bad_prefix: "it begins with another prefix",
  bad_grouping: "its groups are of other lengths",
  not_single_number: "it holds other than one number",
  bad_domain: "its domain is another",
  unassigned_qualifier: "its type is not one that is known",
  bad_version: "its version is another",
};

export function reason(word) {
  return REASONS[word] ?? word.replaceAll("_", " ");
}

/** The evidence of a reading in a sentence. */
export function evidence({ evidence, evidence_bits: bits, plausible }) {
  const size = Math.abs(bits);
  const times = size > 30 ? "more than a billion" : `about ${grouped(Number((2 ** size).toPrecision(2)))}`;
  const than =
    size < 1
      ? "about as likely an id of this format as a text by chance"
      : bits > 0
        ? `${times} times likelier an id of this format than a text by chance`
        : `${times} times likelier a text by chance than an id of this format, if nothing else is known`;
  const doubt = plausible === false ? " Its time is too far in the future to be true." : "";
  return `${evidence[0].toUpperCase()}${evidence.slice(1)} evidence, ${bits} bits: it is ${than}.${doubt}`;
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
