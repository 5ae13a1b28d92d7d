// The card of a day, or of the name of a format. Its links lead to the ids of a span of time.

import { h, idText, say } from "./elements.js";
import { isRanged } from "./range.js";
import { formats } from "./service.js";

const DAY = 86_400_000;

function isoDay(ms) {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Returns the day in UTC that a text names, such as `2026-11-28`, `2026-11-28T10:00Z` or `yesterday`, or `null`. */
function dayOf(text) {
  const ago = ["today", "yesterday"].indexOf(text.toLowerCase());
  if (ago >= 0) return isoDay(Date.now() - ago * DAY);
  const [, day, time, zone] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d[\d:.]*)(Z|[+-]\d\d:\d\d)?)?$/.exec(text.toUpperCase()) ?? [];
  const midnight = Date.parse(`${day}T00:00Z`);
  // Some browsers read 30 February as a day of March.
  if (Number.isNaN(midnight) || isoDay(midnight) !== day) return null;
  const ms = time ? Date.parse(`${day}T${time}${zone ?? "Z"}`) : midnight;
  return Number.isNaN(ms) ? null : isoDay(ms);
}

/** Returns the card of a text that is a day or the name of a format, or `null`. */
export async function dayCard(text) {
  const day = dayOf(text);
  const known = await formats().catch((error) => {
    if (day) throw error;
    return [];
  });
  const link = (format, when, label) => h("a", { class: "button", href: `#formats/${encodeURIComponent(format.name)}${when && `/${when}`}` }, label);
  const card = (title, ...parts) => {
    say(`${title}.`);
    return h("section", { class: "card" }, h("h2", {}, title), h("p", { class: "given" }, idText(text)), parts);
  };
  if (day) {
    const isAlive = ({ epoch, end }) => epoch?.slice(0, 10) <= day && (!end || Date.parse(day) < Date.parse(end));
    const found = known.filter((format) => isRanged(format) && isAlive(format));
    const links = (title, some) => (some.length ? [h("h3", {}, title), h("p", { class: "actions" }, some.map((format) => link(format, day, format.name)))] : null);
    return card(
      "Ids of this day: choose a format",
      h("p", {}, `Each link shows the least and the greatest id of ${day} in UTC.`),
      links("Minted here", found.filter((format) => format.minted)),
      links("Read here", found.filter((format) => !format.minted)),
    );
  }
  const format = known.find((one) => one.name === text.toLowerCase());
  if (!format) return null;
  const days = isRanged(format) ? [link(format, "yesterday", "Ids of yesterday"), link(format, "today", "Ids of today")] : null;
  return card(`${format.name} is a format`, h("p", { class: "summary" }, format.summary), h("p", { class: "actions" }, link(format, "", `About ${format.name}`), days));
}
