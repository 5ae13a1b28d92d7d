// The least and the greatest id of a span of time, for `BETWEEN`.

import { copyButton, h, idText, problem, say, table } from "./elements.js";
import { ask } from "./service.js";

const SPANS = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Only where ids begin with their time, and a text of them sorts. */
export function isRanged(format) {
  return format.fields[0]?.kind === "time" && format.encodings.some((encoding) => encoding.sortable);
}

/** An instant as the service reads it. */
function written(ms) {
  return new Date(ms).toISOString().replace(/\.000Z$/, "Z");
}

/** The least and the greatest id of a span. */
async function range(format, from, to) {
  const answer = await ask(`formats/${encodeURIComponent(format)}/range?${new URLSearchParams({ from, to })}`);
  return answer.json();
}

async function show(into, format, from, to, what) {
  try {
    const { least, greatest } = await range(format, written(from), written(to));
    const rows = Object.keys(least.encodings).map((name) => {
      const [low, high] = [least.encodings[name], greatest.encodings[name]];
      return [name, idText(low), idText(high), copyButton(`BETWEEN '${low}' AND '${high}'`, `BETWEEN as ${name}`)];
    });
    rows.unshift(["number", idText(least.value), idText(greatest.value), copyButton(`BETWEEN ${least.value} AND ${greatest.value}`, "BETWEEN as number")]);
    into.replaceChildren(table(what, ["Written as", "Least", "Greatest", "BETWEEN"], rows));
    say(`${what}: least and greatest are shown.`);
  } catch (error) {
    into.replaceChildren(problem(error));
  }
}

/** The ids of the same second, minute, hour or day as this time. */
export function rangeAround(format, time) {
  const select = h("select", { id: "span" }, Object.keys(SPANS).map((name) => h("option", { value: name, selected: name === "day" }, name)));
  const found = h("div");
  const find = () => {
    const span = SPANS[select.value];
    const from = Math.floor(Date.parse(time) / span) * span;
    return show(found, format.name, from, from + span, `Ids of this ${select.value}`);
  };
  return h("section", { class: "ranges" }, h("h3", {}, "Ids of the same time"), h("p", { class: "actions" }, h("label", { for: "span" }, "All ids of this"), select, h("button", { type: "button", onclick: find }, "Show the range")), found);
}

/** The ids of a span to be chosen. */
export function rangeForm(format) {
  const day = Math.floor(Date.now() / SPANS.day) * SPANS.day;
  const input = (id, ms) => h("input", { id, type: "datetime-local", step: "1", required: true, value: new Date(ms).toISOString().slice(0, 19) });
  const [from, to, found] = [input("from", day), input("to", day + SPANS.day), h("div")];
  const find = (event) => {
    event.preventDefault();
    return show(found, format.name, Date.parse(`${from.value}Z`), Date.parse(`${to.value}Z`), "Ids of this span");
  };
  return h("section", { class: "ranges" }, h("h2", {}, "Ids of a span of time"), h("form", { class: "actions", onsubmit: find }, h("label", { for: "from" }, "From (UTC)"), from, h("label", { for: "to" }, "to before"), to, h("button", { type: "submit" }, "Show the range")), found);
}
