// The start page: what the page is for, and examples.

import { h, idText } from "./elements.js";
import { linkOf } from "./service.js";

const EXAMPLES = [
  ["a UUIDv7", "0190163d-8694-739b-aea5-966c26f8ad90"],
  ["a ULID", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
  ["a MongoDB ObjectId", "507f1f77bcf86cd799439011"],
  ["a Discord message", "175928847299117063"],
  ["a payment", "1I9ZC1000"],
];

/** An example column: UUIDs of version 7, one of which occurs twice and out of order. */
const COLUMN = ["0190163d-8694-739b-aea5-966c26f8ad90", "0190163e-1b7c-7d02-8f14-52b7c9e06a31", "01901641-70f3-7a5e-b9c8-0d4e61f2a7c5", "0190163e-1b7c-7d02-8f14-52b7c9e06a31"];

/** Returns the introduction and the examples. */
export function welcome() {
  const example = (what, text, shown = text) => h("li", {}, h("a", { href: linkOf(text), class: "id" }, idText(shown)), ` ${what}`);
  return h(
    "section",
    { class: "welcome", "aria-label": "Examples" },
    h("p", {}, "It knows UUIDs, ULIDs, ObjectIds, snowflakes (Discord, Twitter, Instagram, Mastodon, Sonyflake), TypeIDs, xids, Firebase keys, TSIDs, and the ", h("a", { href: "#formats" }, "formats of this service"), "."),
    h("p", { class: "note" }, "What you paste goes to this service only, which stores nothing. Your browser’s history keeps it."),
    h("h2", {}, "Examples"),
    h("ul", { class: "plain" }, EXAMPLES.map(([what, text]) => example(what, text)), example("a short column", COLUMN.join("\n"), "0190163d-8694-… and 3 more rows"), example("or a date, for the ids of that day", "yesterday")),
  );
}
