// Shows the smallest and the greatest id of a time span, for `BETWEEN` in SQL.

import { copyButton, h, idText, problem, say, table } from "./elements.js";
import { ask } from "./service.js";

const SPANS = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** `true` if a time span is a range of ids, so that SQL can select it. */
export function isRanged(format) {
  return format.storage.some((advice) => advice.sql.select_range);
}

/** Formats an instant, in milliseconds since 1970, as the service parses it: `2026-01-31T12:00:00Z`. */
function written(ms) {
  return new Date(ms).toISOString().replace(/\.000Z$/, "Z");
}

/** Requests the smallest and the greatest id of a time span. */
async function range(format, from, to) {
  const answer = await ask(`formats/${encodeURIComponent(format)}/range?${new URLSearchParams({ from, to })}`);
  return answer.json();
}

// Shows the smallest and the greatest id of a time span, and returns the response of the service. Returns `null` after an
// error, or if another span was requested in the meantime.
async function show(into, format, from, to, what) {
  const waiting = h("p", { class: "note" }, "Asking …");
  into.replaceChildren(waiting);
  const isCurrent = () => waiting.parentNode === into;
  try {
    const found = await range(format, written(from), written(to));
    if (!isCurrent()) return null;
    const { least, greatest } = found;
    const rows = Object.keys(least.encodings).map((name) => {
      const [low, high] = [least.encodings[name], greatest.encodings[name]];
      return [name, idText(low), idText(high), copyButton(`BETWEEN '${low}' AND '${high}'`, `BETWEEN as ${name}`)];
    });
    rows.unshift(["number", idText(least.value), idText(greatest.value), copyButton(`BETWEEN ${least.value} AND ${greatest.value}`, "BETWEEN as number")]);
    into.replaceChildren(h("p", { class: "note" }, `From ${found.from} to before ${found.to}.`), table(what, ["Written as", "Least", "Greatest", "BETWEEN"], rows));
    say(`${what}: least and greatest are shown.`);
    return found;
  } catch (error) {
    if (isCurrent()) into.replaceChildren(problem(error));
    return null;
  }
}

/** Returns a form that shows the range of ids in the same second, minute, hour or day as `time`. */
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

// Returns a form that shows the range of ids in a time span of the user's choice. `day` is the day in the address, if any.
// `onRange` receives each range that is shown.
export function rangeForm(format, day, onRange) {
  const dayAgo = (days) => (Math.floor(Date.now() / SPANS.day) - days) * SPANS.day;
  const input = (id) => h("input", { id, type: "datetime-local", step: "1", required: true });
  const [from, to, found] = [input("from"), input("to"), h("div")];
  const find = async (event) => {
    event?.preventDefault();
    const answer = await show(found, format.name, Date.parse(`${from.value}Z`), Date.parse(`${to.value}Z`), "Ids of this span");
    if (answer) onRange(answer);
  };
  const fill = (ms) => {
    from.value = new Date(ms).toISOString().slice(0, 19);
    to.value = new Date(ms + SPANS.day).toISOString().slice(0, 19);
  };
  const button = (name, days) => h("button", { type: "button", onclick: () => (fill(dayAgo(days)), find()) }, name);
  const ago = ["today", "yesterday"].indexOf(day);
  const named = ago < 0 ? Date.parse(`${day}T00:00Z`) : dayAgo(ago);
  fill(Number.isNaN(named) ? dayAgo(0) : named);
  if (!Number.isNaN(named)) find();
  return h(
    "section",
    { class: "ranges" },
    h("h2", {}, "Ids of a span of time"),
    h("form", { class: "actions", onsubmit: find }, h("label", { for: "from" }, "From (UTC)"), from, h("label", { for: "to" }, "to before (UTC)"), to, h("button", { type: "submit" }, "Show the range"), button("Yesterday", 1), button("Today", 0)),
    found,
  );
}
