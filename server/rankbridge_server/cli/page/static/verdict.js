// What is wrong, or that nothing is.

import { element, find } from "./dom.js";
import { clock } from "./words.js";

export function showVerdict(verdict) {
  const body = find("verdict-body");
  if (!verdict) {
    body.replaceChildren(element("p", "faint", "no verdict yet"));
    find("verdict").className = "verdict";
    return;
  }
  const unsure = verdict.kind === "unknown";
  find("verdict").className = `verdict ${verdict.calm ? "good" : unsure ? "unsure" : "bad"}`;
  const line = element("p", "", [
    element("span", "kind", verdict.calm ? "healthy" : verdict.kind.toUpperCase()),
    document.createTextNode(`: ${verdict.summary}`),
  ]);
  body.replaceChildren(line, facts(verdict), element("p", "faint", `as of ${clock(verdict.at)}`));
}

function facts(verdict) {
  const found = [];
  for (const it of verdict.culprits) {
    found.push(["cause", `rank ${it.rank}: ${it.why}${it.process ? ` (${it.process})` : ""}`, "culprit"]);
    if (it.place) found.push(["at", it.place, "place"]);
  }
  for (const it of verdict.sides) found.push([it.ranks, it.sites ? `${it.what}, at ${it.sites}` : it.what, "place"]);
  if (verdict.advice) found.push(["next", verdict.advice, ""]);
  const list = element("dl", "");
  for (const [name, text, kind] of found) list.append(element("dt", "", name), element("dd", kind, text));
  return list;
}
