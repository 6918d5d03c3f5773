// What is pending, and since when.

import { fill, find } from "./dom.js";
import { now } from "./time.js";
import { duration } from "./words.js";

let rows = [];

export function setPending({ rows: given, more }) {
  rows = given;
  find("pending-more").textContent = more ? `and ${more} more` : "";
  find("pending-count").textContent = rows.length ? `${rows.length + more}` : "nothing";
  showPending();
}

export function showPending() {
  const at = now();
  fill(find("pending").tBodies[0], rows.map((it) => [
    [it.what, "strong"],
    [it.group],
    [duration(Math.max(0, at - it.since)), "number"],
    [it.waits_for, it.waits_for ? "bad" : ""],
    [it.at],
    [it.site, "code"],
    [it.contract, "code"],
  ]));
}
