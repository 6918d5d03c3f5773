// What colours and patterns of the lanes mean.

import { colour } from "./colours.js";
import { drawn, element, find } from "./dom.js";

export const MOST_KINDS = 12;
const WHOLE = { width: 12, height: 12 };
const PHASES = [
  ["pale: queued", ["rect", { ...WHOLE, fill: "gray", "fill-opacity": 0.3 }]],
  [
    "hatched: waits for others",
    ["rect", { ...WHOLE, fill: "gray", "fill-opacity": 0.3 }],
    ["path", { d: "M0 12L12 0M-3 6L6 -3M6 15L15 6", stroke: "gray", "stroke-width": 3 }],
  ],
  ["solid: in the backend", ["rect", { ...WHOLE, fill: "gray" }]],
  ["framed: pending", ["rect", { x: 1, y: 1, width: 10, height: 10, fill: "none", stroke: "currentColor" }]],
  ["red: failed", ["rect", { y: 8, width: 12, height: 4, fill: "#d4283a" }]],
];

export function showLegend(kinds) {
  const shown = [...kinds].slice(0, MOST_KINDS).map((it) => [it, ["rect", { ...WHOLE, fill: colour(it) }]]);
  find("legend").replaceChildren(...[...shown, ...PHASES].map(item));
}

function item([text, ...shapes]) {
  const icon = drawn("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, shapes.map((it) => drawn(...it)));
  const made = element("li", "", [icon]);
  made.append(text);
  return made;
}
