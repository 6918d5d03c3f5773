// Who waits for whom: ranks that are alike are one node; those to the right are waited for.

import { drawn, element, find } from "./dom.js";

const HEIGHT = 28;
const GAP = 14;
const ACROSS = 90;

export function showGraph({ nodes, edges, more }) {
  const words = edges.map(([from, to]) => `${nodes[from].ranks} ${nodes[from].count > 1 ? "wait" : "waits"} for ${nodes[to].ranks}`);
  if (more) words.push(`and ${more} more`);
  if (!nodes.length) words.push("nobody waits for long");
  find("graph-words").replaceChildren(...words.map((text) => element("li", "", text)));
  find("graph").replaceChildren(...(nodes.length ? [picture(nodes, edges)] : []));
}

function picture(nodes, edges) {
  const sized = nodes.map((it) => ({ ...it, label: clipped(it.ranks), width: clipped(it.ranks).length * 7.4 + 22 }));
  const [width, height] = nodes.some((it) => it.circle) ? around(sized) : layered(sized, edges);
  const arrow = drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
    [drawn("path", { d: "M0 0L8 4L0 8z" })]);
  const lines = edges.map(([from, to]) => edge(sized[from], sized[to]));
  const boxes = sized.map((it) => drawn("g", { class: `${it.culprit ? "culprit" : ""} ${it.circle ? "circle" : ""}` }, [
    drawn("rect", { x: it.x, y: it.y, width: it.width, height: HEIGHT, rx: 6 }),
    drawn("text", { x: it.x + it.width / 2, y: it.y + HEIGHT / 2 + 4.5, "text-anchor": "middle" }, it.label),
  ]));
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, [arrow, ...lines, ...boxes]);
  svg.style.maxWidth = `${width}px`;
  return svg;
}

const clipped = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

// Columns by how many others are between a node and one that waits for nobody.
function layered(nodes, edges) {
  const depth = nodes.map((_, at) => depthOf(at, edges, new Set()));
  const deepest = Math.max(...depth);
  const columns = Array.from({ length: deepest + 1 }, (_, at) => nodes.filter((_, it) => deepest - depth[it] === at));
  const height = Math.max(...columns.map((it) => it.length)) * (HEIGHT + GAP) + GAP;
  let x = 4;
  for (const column of columns) {
    const top = (height - column.length * (HEIGHT + GAP)) / 2 + GAP / 2;
    column.forEach((it, at) => Object.assign(it, { x, y: top + at * (HEIGHT + GAP) }));
    x += Math.max(0, ...column.map((it) => it.width)) + ACROSS;
  }
  return [x - ACROSS + 4, height];
}

function depthOf(node, edges, above) {
  if (above.has(node)) return 0;
  const below = edges.filter(([from]) => from === node).map(([, to]) => to);
  const within = new Set([...above, node]);
  return below.length ? 1 + Math.max(...below.map((it) => depthOf(it, edges, within))) : 0;
}

function around(nodes) {
  const widest = Math.max(...nodes.map((it) => it.width));
  const radius = Math.max(80, (nodes.length * (widest + 20)) / 6);
  nodes.forEach((it, at) => {
    const angle = (at / nodes.length) * 2 * Math.PI - Math.PI / 2;
    it.x = radius + Math.cos(angle) * radius + widest / 2 - it.width / 2 + 4;
    it.y = (radius + Math.sin(angle) * radius) * 0.6 + 4;
  });
  return [2 * radius + widest + 8, 1.2 * radius + HEIGHT + 8];
}

function edge(from, to) {
  const start = { x: from.x + from.width / 2, y: from.y + HEIGHT / 2 };
  const end = { x: to.x + to.width / 2, y: to.y + HEIGHT / 2 };
  const [a, b] = [border(from, end), border(to, start)];
  // Two that wait for each other have two arrows.
  const bend = { x: (a.x + b.x) / 2 + (b.y - a.y) * 0.12, y: (a.y + b.y) / 2 - (b.x - a.x) * 0.12 };
  return drawn("path", { d: `M${a.x} ${a.y}Q${bend.x} ${bend.y} ${b.x} ${b.y}`, "marker-end": "url(#arrow)" });
}

// Where the line from a box's middle to a point leaves the box.
function border(box, to) {
  const middle = { x: box.x + box.width / 2, y: box.y + HEIGHT / 2 };
  const [across, down] = [to.x - middle.x, to.y - middle.y];
  const share = Math.min(across ? box.width / 2 / Math.abs(across) : Infinity, down ? HEIGHT / 2 / Math.abs(down) : Infinity);
  return { x: middle.x + across * share, y: middle.y + down * share };
}
