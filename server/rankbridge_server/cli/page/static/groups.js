// How much the groups do, and who comes last in them.

import { fill, find } from "./dom.js";
import { duration, intervals, rate } from "./words.js";

let groups = [];
let rates = {};

export function setGroups(given) {
  groups = given;
  show();
}

export function setRates(given) {
  rates = given;
  show();
}

function show() {
  fill(find("groups").tBodies[0], groups.map(({ name, ranks }) => {
    const it = rates[name];
    return [
      [name, "strong"],
      [intervals(ranks)],
      [rate(it?.operations ?? 0), "number"],
      [rate((it?.bytes ?? 0) / 1e6), "number"],
      [it?.last === undefined ? "" : `rank ${it.last} (${it.last_in} of ${it.of})`],
      [it?.behind === undefined ? "" : duration(it.behind), "number"],
    ];
  }));
}
