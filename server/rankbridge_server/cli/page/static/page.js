// Reads what the server tells, and gives each view its part.

import { find } from "./dom.js";
import { showGraph } from "./graph.js";
import { setGroups, setRates } from "./groups.js";
import { Lanes } from "./lanes.js";
import { setPending, showPending } from "./pending.js";
import { clearRanks, setRankRates, setRanks } from "./ranks.js";
import { Slices } from "./slices.js";
import { heard } from "./time.js";
import { showVerdict } from "./verdict.js";
import { rate } from "./words.js";

const AGAIN_MS = 2000;

const slices = new Slices();
const lanes = new Lanes(slices);

const parts = {
  header: showHeader,
  ranks: setRanks,
  groups(groups) {
    lanes.setGroups(groups);
    setGroups(groups);
  },
  ended(columns) {
    slices.add(columns);
    lanes.changed();
  },
  pending(pending) {
    setPending(pending);
    slices.setPending(pending.slices);
    lanes.changed();
  },
  graph: showGraph,
  verdict: showVerdict,
  rates(rates) {
    setRates(rates.groups);
    setRankRates(rates.ranks);
    showLeftOut(rates);
  },
};

function take(message) {
  heard(message.at);
  if (message.reset) {
    slices.clear();
    clearRanks();
    lanes.changed();
  }
  for (const [name, show] of Object.entries(parts)) if (name in message) show(message[name]);
}

function showHeader(header) {
  find("name").textContent = header.name;
  document.title = `${header.name} - rankbridge`;
  const facts = [`${header.size} ranks`];
  if (header.generation) facts.push(`generation ${header.generation}`);
  if (header.silent.length) facts.push(`${header.silent.length} of them not reached`);
  facts.push(header.whole ? "whole" : "not whole");
  find("facts").textContent = facts.join(", ");
}

function showLeftOut({ not_drawn: left, lost }) {
  const texts = [];
  if (left) texts.push(`${rate(left)} short operations are not drawn: there were too many at once`);
  if (lost) texts.push(`${rate(lost)} were lost: ranks had forgotten them before they were read`);
  find("not-drawn").textContent = texts.join("; ");
}

function showConnection(text, kind) {
  find("connection").textContent = text;
  find("connection").className = `pill ${kind}`;
}

function connect() {
  const stream = new EventSource("events");
  stream.addEventListener("open", () => showConnection("live", "good"));
  stream.addEventListener("message", ({ data }) => take(JSON.parse(data)));
  stream.addEventListener("error", () => {
    showConnection("not connected", "bad");
    // After a refusal a browser does not try again by itself.
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_MS);
  });
}

find("diagnose").addEventListener("click", () => fetch("diagnose").catch(() => showConnection("not connected", "bad")));
setInterval(showPending, 500);
connect();

// For who measures the page.
globalThis.rankbridge = { slices, get frames() { return lanes.frames.summary; } };
