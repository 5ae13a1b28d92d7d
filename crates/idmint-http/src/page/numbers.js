// The view of numbers without gaps, for an auditor.

import { facts, h, idText, problem, say, table, visible } from "./elements.js";
import { addressOf, ask } from "./service.js";
import { counted, grouped, relative } from "./words.js";

/** The maximum number of numbers on one page. */
const SHOWN_MAX = 100;

/** Shows all series, or the numbers of the series `name` that are at least `from`. */
export async function showNumbers(into, { name, from }) {
  const title = name ?? "Numbers";
  into.replaceChildren(h("h1", {}, title), h("p", { class: "note" }, "Asking …"));
  let shown;
  try {
    shown = name ? await numbersOf(name, from) : allSeries(await seriesAfter());
  } catch (error) {
    shown = h("div", {}, h("h1", {}, title), problem(error), name ? h("p", {}, h("a", { href: "#numbers" }, "All series")) : null);
  }
  into.replaceChildren(shown);
}

/** Requests the page of series that follow the series `after`, or the first page. */
async function seriesAfter(after) {
  const answer = await ask(`numbers${after ? `?${new URLSearchParams({ after })}` : ""}`);
  return answer.json();
}

/** Requests at most `limit` numbers of a series above `after`. */
async function numbersAbove(series, after, limit) {
  const answer = await ask(`numbers/${encodeURIComponent(series)}?${new URLSearchParams({ after, limit })}`);
  return answer.json();
}

function linkTo(series, from) {
  return `#numbers/${encodeURIComponent(series)}${from === undefined ? "" : `/${from}`}`;
}

function when(time) {
  return h("time", { class: "id", datetime: time, title: relative(Date.parse(time)) }, time);
}

function closing({ time, by }) {
  return [when(time), by && ` by ${by}`];
}

function allSeries({ series, next }) {
  if (!series.length) return noSeries();
  const rows = [];
  const list = h("div");
  const more = h("button", { type: "button" }, "More series");
  const add = (found, behind) => {
    rows.push(...found.map(({ series, first, last, updated, closed }) => [h("a", { href: linkTo(series) }, series), last === "0" ? "" : h("a", { href: linkTo(series, last) }, grouped(last)), last === "0" ? "" : grouped(first), when(updated), closed ? closing(closed) : ""]));
    list.replaceChildren(table("Series", ["Series", "Last number", "First number", "Updated (UTC)", "Closed (UTC)"], rows, true));
    more.hidden = behind === null;
    more.onclick = async () => {
      more.disabled = true;
      const known = rows.length;
      try {
        const answer = await seriesAfter(behind);
        add(answer.series, answer.next);
      } catch (error) {
        list.append(problem(error));
      } finally {
        more.disabled = false;
        (more.hidden ? list.querySelectorAll("th a")[known] : more)?.focus();
      }
    };
    say(`${counted(rows.length, "series", "series")}.`);
  };
  add(series, next);
  return h("div", {}, h("h1", {}, "Numbers without gaps"), list, h("p", { class: "actions" }, more));
}

function noSeries() {
  say("No series has begun here.");
  const command = `curl -X POST -H 'Idempotency-Key: order-1' '${addressOf("numbers/invoice-2026")}'`;
  return h("div", {}, h("h1", {}, "Numbers without gaps"), h("p", {}, "No series has begun here. A series begins with its first number:"), h("pre", { class: "command", tabindex: "0", "aria-label": "Command" }, command));
}

async function numbersOf(series, from = "1") {
  const first = /^[0-9]{1,19}$/.test(from) ? BigInt(from) : 1n;
  const { numbers, next, closed } = await numbersAbove(series, first > 0n ? first - 1n : 0n, SHOWN_MAX);
  const field = h("input", { id: "from", inputmode: "numeric", pattern: "[0-9]{1,19}", title: "a whole number", value: String(first), required: true });
  const go = (event) => {
    event.preventDefault();
    location.hash = linkTo(series, field.value);
  };
  const row = ({ number, last, text, time, by, void: reason }) => [last ? `${grouped(number)} to ${grouped(last)}` : grouped(number), last ? "" : idText(text), when(time), by ?? "", reason ? [h("strong", {}, "void"), ": ", visible(reason.reason), ` (${[reason.time.slice(0, 10), reason.by].filter(Boolean).join(", ")})`] : ""];
  say(`${counted(numbers.length, "number")} of ${series}.`);
  return h(
    "div",
    {},
    h("h1", {}, series),
    closed ? h("p", {}, "Closed ", closing(closed)) : null,
    h("form", { class: "actions", onsubmit: go }, h("label", { for: "from" }, "From number"), field, h("button", { type: "submit" }, "Show"), next === null ? null : h("a", { class: "button", href: linkTo(series, BigInt(next) + 1n) }, "Later numbers"), h("a", { href: "#numbers" }, "All series")),
    numbers.length ? table(`Numbers of ${series}`, ["Number", "Written as", numbers[0].last ? "Reserved (UTC)" : "Given (UTC)", "To", "Void"], numbers.map(row), true) : h("p", {}, `No number from ${grouped(first)} on was given.`),
  );
}

/** Returns one card for each series of which the text may be a number. */
export function numberReadings(text, readings) {
  say(readings.map(({ series, number }) => `Number ${number} of ${series ?? "a series"}.`).join(" "));
  const card = ({ rule, series, number, check }) =>
    h(
      "section",
      { class: "card" },
      h("h2", {}, `Number ${grouped(number)}`, series ? [" of ", h("a", { href: linkTo(series, number) }, series)] : null),
      h("p", { class: "given" }, idText(text)),
      facts([
        ["Series", series ?? "one of several: the text does not say which"],
        ["Written by", `numbers.${rule}`],
        ["Check", check && `${check}, which is right`],
      ]),
    );
  return h("div", {}, readings.map(card));
}
