// The view that mints ids.

import { copyButton, h, idText, problem, save, say } from "./elements.js";
import { addressOf, formatOf, formats, hasToken, linkOf, mayMint, mint, mintPath } from "./service.js";
import { counted, grouped } from "./words.js";

/** The maximum number of ids that this page mints at once. Other clients, such as curl, can request more. */
const COUNT_MAX = 100_000;

/** The maximum number of minted ids that are listed. The rest can be copied and saved. */
const SHOWN_MAX = 1000;

/** Shows the form that mints ids of the format called `name`. */
export async function showMint(into, { name }) {
  if (!mayMint()) {
    into.replaceChildren(notForThem());
    return;
  }
  into.replaceChildren(h("h1", {}, "Mint ids"), h("p", { class: "note" }, "Asking which formats there are …"));
  try {
    const known = (await formats(true)).filter(isMintedByCount);
    into.replaceChildren(known.length ? await mintView(known, name) : h("section", {}, h("h1", {}, "Mint ids"), h("p", {}, "This service mints no format by count.")));
  } catch (error) {
    into.replaceChildren(h("h1", {}, "Mint ids"), problem(error));
  }
}

/** Returns the message that replaces the form once minting was refused, because the form would be of no use. */
function notForThem(error) {
  const why = error ? problem(error) : h("p", {}, "Minting was refused.");
  return h("section", {}, h("h1", {}, "Mint ids"), why, h("p", {}, hasToken() ? "Another token may mint: forget this one, above." : "Ask whoever runs this service."));
}

function isMintedByCount(format) {
  return format.minted && (format.rule === "sequenced" || format.rule === "random");
}

function field(id, label, control, note) {
  if (note) control.setAttribute("aria-describedby", `${id}-note`);
  return h("p", { class: "field" }, h("label", { for: id }, label), control, note ? h("span", { id: `${id}-note`, class: "note" }, note) : null);
}

function select(id, values) {
  return h("select", { id }, values.map(([value, text]) => h("option", { value }, text)));
}

async function mintView(known, name) {
  const form = h("form", { class: "ask mint" });
  const minted = h("div", { id: "minted", class: "result" });
  const chosen = select("format", known.map((format) => [format.name, format.name]));
  chosen.value = known.some((format) => format.name === name) ? name : (known.find((format) => format.name === "snowflake") ?? known[0]).name;
  const settings = h("div", { class: "fields" });
  const curl = h("pre", { class: "command", tabindex: "0", "aria-label": "The same with curl" });
  const button = h("button", { type: "submit", class: "main-action" }, "Mint");
  let controls = {};

  const order = () => {
    const value = (control) => control?.value ?? "";
    const { count, encoding, type, prefix } = controls;
    const spelled = value(encoding);
    return { format: chosen.value, count: value(count), encoding: spelled, type: value(type), prefix: spelled ? "" : value(prefix) };
  };
  const command = () => {
    const token = hasToken() ? ' -H "Authorization: Bearer $TOKEN"' : "";
    return `curl -X POST -H 'Accept: text/plain'${token} '${addressOf(mintPath(order())).replaceAll("'", "%27")}'`;
  };
  const draw = () => {
    curl.textContent = command();
    if (controls.prefix) controls.prefix.disabled = Boolean(controls.encoding.value);
  };
  const choose = async () => {
    button.disabled = true;
    settings.replaceChildren();
    const format = await formatOf(chosen.value);
    if (format.name !== chosen.value) return;
    button.disabled = false;
    const max = format.batch_max === null ? COUNT_MAX : Math.min(Number(format.batch_max), COUNT_MAX);
    const types = Object.keys(format.types ?? {});
    const isFree = format.types_minted?.length === 0;
    controls = {
      count: h("input", { id: "count", type: "number", min: "1", max: String(max), step: "1", value: String(Math.min(10, max)), required: true, inputmode: "numeric" }),
      encoding: select("encoding", format.encodings.map(({ name }, at) => [at ? name : "", at ? name : `${name}, canonical`])),
      type: types.length ? select("type", types.map((type) => [type, type])) : isFree ? h("input", { id: "type", value: "user", pattern: "[a-z]([a-z_]{0,61}[a-z])?", spellcheck: "false", autocapitalize: "none" }) : format.types_minted ? select("type", format.types_minted.map((type) => [type, type])) : null,
      prefix: format.prefixes?.length ? select("prefix", [["", "none"], ...format.prefixes.map((prefix) => [prefix, prefix])]) : null,
    };
    settings.replaceChildren(
      field("count", "How many", controls.count, `1 to ${grouped(max)}`),
      field("encoding", "Written as", controls.encoding),
      ...(controls.type ? [field("type", "Type", controls.type, isFree ? "small letters and _" : undefined)] : []),
      ...(controls.prefix ? [field("prefix", "Prefix", controls.prefix, "of the canonical text alone")] : []),
      h("p", { class: "summary" }, format.summary, " ", h("a", { href: `#formats/${encodeURIComponent(format.name)}` }, "More about it")),
    );
    draw();
  };
  form.append(h("h1", {}, "Mint ids"), field("format", "Format", chosen), settings, h("p", { class: "actions" }, button));
  const change = async ({ type }) => {
    const wanted = chosen.value;
    minted.replaceChildren();
    if (type === "click") chosen.focus();
    try {
      await choose();
    } catch (error) {
      // If another format is chosen by now, its ids may be shown.
      if (chosen.value === wanted) minted.replaceChildren(problem(error), h("p", { class: "actions" }, h("button", { type: "button", onclick: change }, "Try again")));
    }
  };
  chosen.addEventListener("change", change);
  form.addEventListener("input", draw);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    minted.setAttribute("aria-busy", "true");
    try {
      minted.replaceChildren(mintedView(chosen.value, await mint(order())));
    } catch (error) {
      if (error.status === 403) form.parentElement?.replaceChildren(notForThem(error));
      else minted.replaceChildren(problem(error));
    } finally {
      button.disabled = false;
      minted.removeAttribute("aria-busy");
      draw();
      button.focus();
    }
  });
  await choose();
  return h("div", {}, form, minted, h("div", { class: "curl" }, h("h2", {}, "The same with curl"), curl, copyButton(command, "command", true)));
}

function mintedView(format, ids) {
  const text = `${ids.join("\n")}\n`;
  say(`${counted(ids.length, "id")} minted.`);
  const list = h("ol", { class: "ids" }, ids.slice(0, SHOWN_MAX).map((id) => h("li", {}, h("a", { href: linkOf(id) }, idText(id)))));
  return h(
    "section",
    { class: "card" },
    h("h2", {}, `${counted(ids.length, "id")} of ${format}`),
    h("p", { class: "actions" }, copyButton(text, "ids", true), h("button", { type: "button", onclick: () => save(`${format}.txt`, text, "text/plain;charset=utf-8") }, "Save as text")),
    h("div", { class: "scroll list", role: "region", "aria-label": "The ids", tabindex: "0" }, list),
    ids.length > SHOWN_MAX ? h("p", { class: "note" }, `The first ${grouped(SHOWN_MAX)} are shown; all are copied and saved.`) : null,
  );
}
