// The ranks: what each is and holds.

import { element, fill, fillRow, find } from "./dom.js";
import { bytes, number, rate } from "./words.js";

const ranks = new Map();
let rates = {};
let chosen = null;

export function clearRanks() {
  ranks.clear();
  find("ranks").tBodies[0].replaceChildren();
}

export function setRanks(given) {
  for (const [rank, row] of Object.entries(given)) {
    const known = ranks.get(Number(rank)) ?? {};
    ranks.set(Number(rank), Object.assign(known, row));
  }
  const body = find("ranks").tBodies[0];
  [...ranks.keys()].sort((a, b) => a - b).forEach((rank, at) => showRow(body.rows[at] ?? newRow(body), rank));
  if (chosen !== null) showRank();
}

export function setRankRates(given) {
  const before = rates;
  rates = given;
  const body = find("ranks").tBodies[0];
  for (const row of body.rows) {
    const rank = Number(row.dataset.rank);
    if (before[rank] !== rates[rank]) showRow(row, rank);
  }
}

function newRow(body) {
  const row = body.insertRow();
  for (let at = 0; at < 8; at += 1) row.insertCell();
  const button = element("button", "", "Show");
  button.type = "button";
  button.addEventListener("click", () => {
    chosen = chosen === Number(row.dataset.rank) ? null : Number(row.dataset.rank);
    showRank();
    showTensors();
  });
  row.cells[7].append(button);
  return row;
}

function showRow(row, rank) {
  const it = ranks.get(rank);
  row.dataset.rank = rank;
  row.cells[7].firstChild.setAttribute("aria-label", `Show rank ${rank}`);
  fillRow(row, [
    [rank, "number"],
    [it.host],
    [it.pid || "", "number"],
    [it.state, it.well ? "" : "bad"],
    [rate(rates[rank] ?? 0), "number"],
    [it.refs, "number"],
    [bytes(it.bytes), "number"],
  ]);
}

function showRank() {
  const detail = find("rank");
  detail.hidden = chosen === null || !ranks.has(chosen);
  if (detail.hidden) return;
  const it = ranks.get(chosen);
  const facts = [`Rank ${chosen}: ${it.state}${it.backend ? ` on ${it.backend}` : ""}, generation ${it.generation}`];
  if (it.why) facts.push(it.why);
  for (const each of it.sessions) {
    facts.push(`session ${each.session_id || "(shared)"}: ${each.refs} refs, ${bytes(each.bytes)}`);
  }
  if (!it.sessions.length) facts.push("holds no refs");
  detail.firstElementChild.replaceChildren(...facts.map((text) => element("p", "", text)));
}

// Least, mean, largest, and how many are no numbers; "-": not read.
function valuesOf({ values }) {
  const [least, mean, most] = ["min", "mean", "max"].map((name) => number(values?.[name]));
  const strange = values ? values.nans + values.infs : 0;
  const text = values ? (strange ? `${values.nans} NaN, ${values.infs} Inf` : "0") : "-";
  return [[least, "number"], [mean, "number"], [most, "number"], [text, strange ? "number bad" : "number"]];
}

// What the chosen rank holds: asked once, when it is chosen.
async function showTensors() {
  const table = find("tensors");
  const why = find("tensors-why");
  table.hidden = true;
  why.textContent = "";
  if (chosen === null || !ranks.get(chosen)?.refs) return;
  const rank = chosen;
  try {
    const found = await (await fetch(`tensors/${rank}`)).json();
    if (rank !== chosen) return;
    fill(table.tBodies[0], found.tensors.map((it) => [
      [it.ref, "code"], [it.session || "(shared)", "code"], [it.dtype], [`[${it.shape.join(", ")}]`], [it.device],
      [bytes(it.bytes), "number"], ...valuesOf(it),
    ]));
    table.hidden = !found.tensors.length;
    why.textContent = found.why;
  } catch {
    why.textContent = "the page's server does not answer";
  }
}
