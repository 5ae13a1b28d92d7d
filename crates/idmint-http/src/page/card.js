// The card of one id: the answer first, then its fields, its other texts, and other readings.

import { drawing, digitsOf, key } from "./drawing.js";
import { copyButton, facts, h, idText, say, table } from "./elements.js";
import { isRanged, rangeAround } from "./range.js";
import { addressOf, formatOf, linkOf } from "./service.js";
import { bitsOf, capital, counted, damageOf, grouped, relative, width } from "./words.js";

/** Returns the card that shows the readings of a text. `note` is shown below the id. */
export async function cardOf(text, answer, pinned, note) {
  const [match] = answer.matches;
  const numbers = answer.numbers ? (await import("./numbers.js")).numberReadings(text, answer.numbers) : null;
  if (!match) return numbers ?? noId(text, answer, pinned);
  return oneId(text, answer, await formatOf(match.format).catch(() => undefined), { pinned, note, numbers });
}

function noId(text, answer, pinned) {
  say(`No format reads it.${answer.did_you_mean.length ? ` Near to ${answer.did_you_mean.join(", ")}.` : ""}`);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "No id of a format that is known here"),
    h("p", { class: "given" }, idText(text)),
    text.isWellFormed() ? null : h("p", {}, "It holds half of a character, which was read as \\ufffd."),
    damage(answer),
    near(answer),
    answer.shaped_like?.length ? h("p", {}, `It has the shape of ${answer.shaped_like.join(", ")}, but a letter is wrong, missing or too many, or the settings were others.`) : null,
    answer.unlikely?.length ? h("section", {}, h("h3", {}, "Only by chance"), readings("Readings with hardly any evidence", text, answer.unlikely)) : null,
    rejected(answer, !answer.unlikely?.length),
    pinned.format ? h("p", {}, h("a", { href: linkOf(text) }, "Try all formats")) : null,
  );
}

/** Lists the ways in which the text may be damaged, such as lost digits, with the remedy for each. */
function damage({ notes }) {
  return notes?.length ? h("ul", { class: "plain notice" }, notes.map((note) => h("li", {}, h("strong", {}, "Damaged? "), damageOf(note)))) : null;
}

/** Lists the ids that the text may be a misspelling of. */
function near({ did_you_mean: ids }) {
  if (!ids.length) return null;
  return h("section", { class: "near" }, h("h3", {}, "Not as written"), h("p", {}, "It is near to ", ids.length > 1 ? "these ids:" : "this id:"), h("ul", { class: "plain" }, ids.map((id) => h("li", {}, h("a", { href: linkOf(id) }, idText(id))))));
}

/** Lists the reasons why other formats do not read the text, with the formats that each reason applies to. */
function rejected({ rejected: refusals, matches }, isOpen) {
  if (!refusals.length) return null;
  const reasons = new Map();
  for (const one of refusals) reasons.set(one.reason, [...(reasons.get(one.reason) ?? []), one.format]);
  const rows = [...reasons].map(([why, names]) => [`Because ${reason(why)}`, names.join(", ")]);
  return h("details", { open: isOpen }, h("summary", {}, `Why ${matches.length ? "not" : "none of"} ${counted(refusals.length, matches.length ? "other format" : "format")}`), facts(rows));
}

function oneId(text, answer, format, { pinned, note, numbers }) {
  const [match, ...others] = answer.matches;
  const [sure, why] = certainty(answer, pinned);
  say(`${match.format}, ${match.time ? `of ${match.time}, ${relative(Date.parse(match.time))}` : "without a time"}, ${sure}.`);
  const link = pinned.format ? linkOf(text, pinned) : linkOf(text);
  const near_ = others.filter((other) => isNear(answer, other));
  const far = others.filter((other) => !isNear(answer, other));
  return h(
    "article",
    { class: "card" },
    h(
      "header",
      { class: "answer" },
      h("h2", {}, h("a", { href: `#formats/${encodeURIComponent(match.format)}` }, match.format), h("span", { class: "note" }, ` written as ${match.encoding}`)),
      h("p", { class: "given" }, idText(text), copyButton(text, "this id")),
      note,
      answer.as_given === false ? h("p", { class: "notice" }, h("strong", {}, "Not as written. "), "Read as ", idText(match.canonical), copyButton(match.canonical, "the id as it should be written")) : null,
      damage(answer),
      times(match),
      h("p", { class: answer.ambiguous || !match.plausible ? "notice" : false }, h("strong", {}, sure), ` ${why}`),
      format ? h("p", { class: "summary note" }, format.summary, ".") : null,
    ),
    drawing(match.fields),
    legend(match, format),
    h("section", {}, h("h3", {}, "The same id written otherwise"), encodings(match)),
    near_.length ? h("section", {}, h("h3", {}, "Other readings"), readings("Other readings", text, near_)) : null,
    numbers,
    answer.as_given === false ? null : near(answer),
    far.length ? h("details", {}, h("summary", {}, `${counted(far.length, "reading")} that ${far.length > 1 ? "are" : "is"} a thousand times less likely`), readings("Unlikely readings", text, far)) : null,
    rejected(answer, false),
    format && match.time !== null && isRanged(format) ? rangeAround(format, match.time) : null,
    h("p", { class: "actions share" }, h("a", { href: link }, "Link to this id"), copyButton(() => addressOf(link), "the link to this id"), pinned.format ? h("a", { href: linkOf(text) }, "Try all formats") : null),
  );
}

/** Formats an instant in the time zone of this browser. Returns `""` if the zone is UTC. */
function local(ms) {
  if (!new Date(ms).getTimezoneOffset()) return "";
  const options = { era: new Date(ms).getFullYear() > 0 ? undefined : "short", weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
  return new Intl.DateTimeFormat("en-GB", options).format(ms);
}

function times({ time, time_unix_seconds: seconds }) {
  if (time === null) return h("p", { class: "times" }, seconds === null ? "It carries no time." : `After the year 9999: ${grouped(seconds)} seconds after 1970 began.`);
  const ms = Date.parse(time);
  const here = local(ms);
  return h(
    "div",
    { class: "times" },
    h("p", {}, h("strong", {}, h("time", { datetime: time, class: "id" }, time.replace("T", " ").replace("Z", " UTC"))), copyButton(time, "the time in UTC")),
    h("p", {}, here && `${here} here, `, h("strong", { "data-ms": ms }, relative(ms))),
  );
}

function legend(match, format) {
  const bits = match.fields.reduce((sum, field) => sum + bitsOf(field), 0);
  const rows = match.fields.map((field, at) => [
    h("span", { class: "field-name" }, key(at), field.name),
    h("span", { class: "id" }, grouped(field.value)),
    meaning(field, match, format),
    h("span", { class: "note" }, width(field), field.width.digits ? h("span", { class: "id" }, ` ${digitsOf(field)}`) : null),
  ]);
  return table(`Fields, of ${Math.ceil(bits)} bits`, ["Field", "Value", "Meaning", "Width"], rows);
}

function hex(number) {
  return `0x${BigInt(number).toString(16)}`;
}

const ENDINGS = { one: "st", two: "nd", few: "rd", other: "th" };
const ORDINAL = new Intl.PluralRules("en", { type: "ordinal" });

function ordinal(number) {
  return `${grouped(number)}${ENDINGS[ORDINAL.select(Number(number % 100n))]}`;
}

/** Returns the meaning of a field's value, such as `a worker number of this node`. */
function meaning(field, match, format) {
  const value = BigInt(field.value);
  if (field.label) return field.label;
  switch (field.kind) {
    case "time":
      return format?.tick && format?.epoch ? `ticks of ${format.tick.replace("us", "µs")} since ${format.epoch}` : "part of the time";
    case "worker":
      return format?.workers.includes(Number(value)) ? "a worker number of this node" : "which generator minted it";
    case "shard":
      return `which ${field.name} it belongs to`;
    case "sequence":
      // Other generators may begin a tick with any value.
      if (!format?.minted || format.rule !== "sequenced") return "a counter of its generator";
      return format.sequence_spread > 1 ? `its place in the tick, where the first begins below ${format.sequence_spread}` : `the ${ordinal(value + 1n)} of its tick`;
    case "random":
      return `${["uuid7", "typeid"].includes(match.format) && field.name === "random_a" ? "a part of the millisecond, or " : ""}by chance: ${hex(value)}`;
    case "constant":
      return "the same in every id";
    case "object":
      return format?.rule === "grouped" ? "the number of an object" : "";
    case "checksum":
      return `${format?.rule === "chained" ? "of the event and the id before" : "a checksum or hash"}: ${hex(value)}`;
    case "ledger":
      return `the ledger: ${hex(value)}`;
    default:
      return "";
  }
}

function readings(caption, text, others) {
  const rows = others.map((one) => [h("a", { href: linkOf(text, { format: one.format, encoding: one.encoding }) }, one.format), one.encoding, one.time ?? "none", `${one.evidence}, ${one.evidence_bits} bits`]);
  return table(caption, ["Format", "Written as", "Time", "Evidence"], rows);
}

function encodings(match) {
  const { time_unix_seconds: seconds } = match;
  const named = (name, text) => (text === match.canonical ? [name, h("span", { class: "note" }, " canonical")] : name);
  const rows = Object.entries(match.encodings).map(([name, text]) => [named(name, text), h("span", { class: "value" }, idText(text), copyButton(text, `the id as ${name}`))]);
  return [table("Encodings", ["Written as", "Text"], rows), seconds === null ? null : h("p", { class: "note" }, `Its time in Unix seconds: ${seconds}`)];
}

/** The difference in evidence, in bits, from which a reading is shown as a thousand times less likely: 2^10 is about 1000. */
const FAR_BITS = 10;

/** `true` if another reading is less than a thousand times less likely than the best one, or makes the answer ambiguous. */
function isNear({ matches: [best, second], ambiguous }, other) {
  return best.evidence_bits - other.evidence_bits < FAR_BITS || (ambiguous && other === second && other.plausible);
}

/** Returns how certain the first reading is: a few words, and an explanation. */
function certainty(answer, pinned) {
  const [best, second] = answer.matches;
  const evidence = `${capital(best.evidence)} evidence`;
  if (!best.plausible) return ["Not plausible:", "its time is too far in the future, or before the format was first used."];
  if (pinned.format) return [`Read as you chose: ${best.evidence} evidence.`, "Other formats were not tried."];
  if (answer.ambiguous && second && isNear(answer, second)) {
    const other = `${second.format}${second.time ? ` of ${second.time.slice(0, 10)}` : ""}`;
    return ["Ambiguous:", `it may also be ${other}. One id does not tell them apart, but a column of ids does.`];
  }
  if (answer.ambiguous) return ["Ambiguous:", "it may also be a random text."];
  if (!second) return [`${evidence}.`, "No other format reads it."];
  const bits = best.evidence_bits - second.evidence_bits;
  const times = bits > 30 ? "more than a billion" : `about ${grouped(Math.round(Number((2 ** bits).toPrecision(2))))}`;
  return [`${evidence}.`, `The next reading, ${second.format}, is ${times} times less likely.`];
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

function reason(word) {
  return REASONS[word] ?? word.replaceAll("_", " ");
}
