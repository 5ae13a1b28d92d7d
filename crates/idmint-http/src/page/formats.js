// The view of the formats that this service mints and decodes.

import { drawing, key, keyOf } from "./drawing.js";
import { copyButton, facts, h, idText, problem, say, table } from "./elements.js";
import { isRanged, rangeForm } from "./range.js";
import { formatOf, formats, linkOf, mayMint } from "./service.js";
import { counted, grouped, width } from "./words.js";

const DATABASES = { postgresql: "PostgreSQL", mysql: "MySQL", mariadb: "MariaDB", sqlserver: "SQL Server", sqlite: "SQLite" };

/** Shows all formats, or the format called `name`. If `from` is a day, the view also shows the range of ids of that day. */
export async function showFormats(into, { name, from }) {
  into.replaceChildren(h("h1", {}, name ?? "Formats"), h("p", { class: "note" }, "Asking which formats there are …"));
  try {
    if (name) {
      const format = await formatOf(name);
      into.replaceChildren(oneFormat(format, from));
      say(format.summary);
    } else {
      const known = await formats();
      into.replaceChildren(allFormats(known));
      say(`${counted(known.length, "format")}.`);
    }
  } catch (error) {
    const isUnknown = error.status === 404;
    into.replaceChildren(h("h1", {}, isUnknown ? "There is no such format" : "Formats"), isUnknown ? h("p", {}, h("a", { href: "#formats" }, "All formats")) : problem(error));
  }
}

function day(instant) {
  return instant?.slice(0, 10);
}

function until(format) {
  if (format.epoch === null) return "carries no time";
  return day(format.end) ?? "after the year 9999";
}

function allFormats(known) {
  const card = (format) =>
    h(
      "li",
      { class: "card format" },
      h("h3", {}, h("a", { href: `#formats/${encodeURIComponent(format.name)}` }, format.name)),
      h("p", { class: "summary" }, format.summary),
      drawing(format.fields, true),
      h("p", { class: "note" }, format.fields.map((field, at) => [at ? ", " : "", h("strong", {}, keyOf(at)), ` ${field.name}`])),
      h("p", { class: "note" }, [counted(format.bits, "bit"), format.per_second > 0 ? `${grouped(format.per_second)} ids a second and worker` : null, `until ${until(format)}`].filter((part) => part && part !== "until carries no time").join(" · ")),
      h("p", { class: "example" }, h("a", { href: linkOf(exampleOf(format)) }, idText(exampleOf(format)))),
    );
  const section = (title, some) => (some.length ? h("section", {}, h("h2", {}, title), h("ul", { class: "plain grid" }, some.map(card))) : null);
  return h("div", { class: "wide" }, h("h1", {}, "Formats"), section("Minted here", known.filter((format) => format.minted)), section("Read here", known.filter((format) => !format.minted)));
}

function exampleOf(format) {
  return format.example.encodings[format.encodings[0].name];
}

function oneFormat(format, from) {
  const example = exampleOf(format);
  const stored = format.storage.length ? storage(format) : null;
  const odds = format.collision_odds;
  return h(
    "article",
    { class: "card" },
    h("p", { class: "note" }, h("a", { href: "#formats" }, "All formats")),
    h("h1", {}, format.name),
    h("p", { class: "summary" }, format.summary),
    h("p", { class: "actions" }, h("span", { class: "value" }, "Example ", h("a", { href: linkOf(example) }, idText(example)), copyButton(example, "the example")), mayMint() && format.minted && (format.rule === "sequenced" || format.rule === "random") ? h("a", { class: "button", href: `#mint/${encodeURIComponent(format.name)}` }, "Mint some") : null),
    isRanged(format) ? rangeForm(format, from, (range) => stored?.use(range)) : null,
    drawing(format.fields),
    h("div", { class: "legend" }, table("Fields", ["Field", "Kind", "Width", "Greatest value"], format.fields.map((field, at) => [h("span", { class: "field-name" }, key(at), field.name), field.kind, width(field), h("span", { class: "id" }, grouped(field.max))]))),
    facts([
      ["How they come", rules(format)],
      ["Bits", grouped(format.bits)],
      ["Tick", format.tick?.replace("us", "µs")],
      ["Epoch", format.epoch],
      ["Ends", until(format)],
      ["Ids a second", format.per_second > 0 && `${grouped(format.per_second)} for each worker number`],
      ["Worker numbers here", format.workers.length ? format.workers.map(grouped).join(", ") : null],
      ["At once", format.batch_max && `at most ${grouped(format.batch_max)}`],
      ["Spread", format.sequence_spread && (format.sequence_spread > 1 ? `The first ids of ticks are spread over ${grouped(format.sequence_spread)} sequences.` : "The first id of each tick has the sequence 0.")],
      ["Order", format.order],
      ["Odds", odds && `${grouped(odds.one_in_a_million)} ids ${odds.within ? `within ${odds.within}` : "ever"}: one in a million that two are the same`],
      ["Reveals", format.reveals],
      ["Types", Object.keys(format.types ?? {}).join(", ")],
    ]),
    h("section", {}, h("h2", {}, "Written as"), table("Encodings", ["Name", "Example", "Length", "Sorts", "Pattern"], format.encodings.map((encoding) => [encoding.name, h("span", { class: "value" }, idText(format.example.encodings[encoding.name]), copyButton(format.example.encodings[encoding.name], `the example as ${encoding.name}`)), encoding.length ?? `${encoding.length_min} to ${encoding.length_max}`, encoding.sortable ? "yes" : "no", h("code", { class: "id" }, encoding.pattern)]))),
    stored?.element,
  );
}

function rules(format) {
  const words = {
    sequenced: "one after the other, by time, worker and sequence",
    random: "from the time and random bits",
    chained: "each names the one before",
    grouped: "reports of the same happening share one",
    "decode-only": "elsewhere; they are read here",
  };
  return words[format.rule];
}

// Returns advice on how to store the ids of a format, for the database that the user chooses. The statements select the range
// that `use` received last. Before the first call of `use`, they select the day of the example.
function storage(format) {
  const names = [...new Set(format.storage.map((advice) => advice.database))];
  const select = h("select", { id: "database" }, names.map((name) => h("option", { value: name }, DATABASES[name] ?? name)));
  const shown = h("div", {});
  let range = null;
  const draw = () => shown.replaceChildren(...format.storage.filter((advice) => advice.database === select.value).map((advice) => adviceView(advice, range, day(format.example.time))));
  select.addEventListener("change", draw);
  draw();
  const use = (chosen) => {
    range = chosen;
    draw();
  };
  return { use, element: h("section", {}, h("h2", {}, "In a database"), h("p", { class: "actions" }, h("label", { for: "database" }, "Database"), select), shown) };
}

/** Returns a bound of a range as the advice writes it. `literal` is the bound of the example. */
function boundOf(literal, { stores, bind }, { value, encodings }) {
  if (stores === "number") return value;
  const [, before, digits, after] = /^(0x|X'|'\\x)([0-9a-f]+)('?)$/.exec(literal) ?? [];
  if (stores === "bytes" && digits) return `${before}${BigInt(value).toString(16).padStart(digits.length, "0")}${after}`;
  const text = encodings[bind.split(" ").at(-1)];
  return text && `'${text}'`;
}

function adviceView(advice, range, exampleDay) {
  const { create_table: create, insert, select_range: example } = advice.sql;
  const [, low, high] = /BETWEEN (\S+) AND (\S+)/.exec(example ?? "") ?? [];
  const [least, greatest] = range && low ? [boundOf(low, advice, range.least), boundOf(high, advice, range.greatest)] : [];
  const isChosen = Boolean(least && greatest);
  const select = isChosen ? example.replace(`BETWEEN ${low} AND ${high}`, () => `BETWEEN ${least} AND ${greatest}`) : example;
  const sql = [create, insert, select].filter(Boolean).join("\n");
  const span = isChosen ? `ids from ${range.from} to before ${range.to}, as chosen above` : `example ids of ${exampleDay}`;
  return h(
    "section",
    { class: "advice" },
    h("h3", {}, `As ${advice.stores}: `, h("code", { class: "id" }, advice.column)),
    h("p", {}, `Bind ${advice.bind}. ${advice.sorted ? "It sorts like the ids." : "It does not sort like the ids."}`),
    example ? h("p", { class: "note" }, `SELECT finds ${span}.`) : null,
    h("pre", { class: "command", tabindex: "0", "aria-label": "Statements" }, sql),
    copyButton(sql, "the statements"),
    h("ul", {}, advice.notes.map((note) => h("li", {}, note))),
  );
}
