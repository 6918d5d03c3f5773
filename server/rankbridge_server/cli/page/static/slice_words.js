// An operation of a rank in words.

import { element } from "./dom.js";
import { clock, duration } from "./words.js";

export function describe(it, together, now) {
  const title = element("b", "", `${it.what} on ${it.group}, rank ${it.rank}`);
  const lines = [phases(it, now)];
  if (it.outcome) lines.push(it.outcome);
  if (together.ranks > 1) lines.push(`seen on ${together.ranks} ranks, called ${duration(together.seconds)} apart`);
  const parts = [title, ...lines.map((text) => element("div", "", text))];
  if (it.contract) parts.push(element("div", "contract", it.contract));
  if (it.site) parts.push(element("div", "site", it.site));
  return parts;
}

function phases(it, now) {
  const end = it.done ?? now;
  const parts = [`called ${clock(it.called)}`];
  const announced = it.announced ?? it.entered ?? end;
  parts.push(`queued ${duration(announced - it.called)}`);
  if (it.announced !== null) parts.push(`waited ${duration((it.entered ?? end) - it.announced)}`);
  if (it.entered !== null) parts.push(`in the backend ${duration(end - it.entered)}`);
  return parts.join(", ") + (it.done === null ? ", pending" : "");
}
