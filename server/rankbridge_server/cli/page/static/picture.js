// Paints lanes into pixels: only rows and times that are seen, at most once for each column of a row.

import { colour, failed, faint, ground, ink, line, pixel } from "./colours.js";
import { firstAfter } from "./slices.js";
import { clock, duration } from "./words.js";

const LEAST_LABEL = 46;
const LEAST_LINED = 8;
const MOST_LABELS = 200;

export class Picture {
  constructor(canvas) {
    this.context = canvas.getContext("2d", { alpha: false });
    this.shades = new Map();
  }

  // Colours have changed.
  recolour() {
    this.shades.clear();
  }

  // view: { rows, top, height, width, gutter, axis, scale, from, to, selected }; sizes in pixels of CSS.
  paint(slices, view) {
    const { scale } = view;
    const width = Math.max(1, Math.round(view.width * scale));
    const height = Math.max(1, Math.round(view.height * scale));
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.ink = pixel(ink());
    this.failed = pixel(failed());
    this.pixels.fill(pixel(ground()));
    this.labels = [];
    const seen = view.rows.filter((row) => row.y + row.height > view.top && row.y < view.top + view.height - view.axis);
    for (const row of seen) if (row.lane) this.lane(slices, row, view);
    this.context.putImageData(this.image, 0, 0);
    this.words(seen, view);
  }

  lane(slices, row, view) {
    const { scale } = view;
    const top = Math.round((row.y - view.top + view.axis) * scale);
    const bottom = Math.round((row.y - view.top + view.axis + row.height - 1) * scale);
    const box = { top: Math.max(top, Math.round(view.axis * scale)), bottom: Math.min(bottom, this.image.height) };
    if (box.bottom <= box.top) return;
    if (row.height > LEAST_LINED) this.hline(bottom, pixel(line()));
    const { ended } = row.lane;
    let free = -1;
    for (let at = firstAfter(ended, view.from); at < ended.length; at += 1) {
      const it = ended[at];
      if (it.called > view.to) continue;
      const end = this.x(it.done, view);
      // What would lie in a column that is painted already is not seen, unless it has failed.
      if (end <= free && !it.outcome) continue;
      this.slice(it, it.done, box, view);
      free = Math.max(free, end);
    }
    for (const it of slices.pending.get(row.lane.key) ?? []) this.slice(it, null, box, view);
  }

  slice(it, done, box, view) {
    const shades = this.shade(it.what);
    const end = done ?? view.now;
    const announced = it.announced ?? it.entered ?? end;
    const entered = it.entered ?? end;
    const x = [it.called, announced, entered, end].map((time) => this.x(time, view));
    x[3] = Math.max(x[3], x[0] + 1);
    this.box(x[0], x[1], box, shades.queued);
    this.hatch(x[1], x[2], box, shades.waiting, shades.queued);
    this.box(x[2], x[3], box, shades.running);
    if (it.outcome) this.mark(x, box, view);
    if (done === null) this.frame(x[0], x[3], box);
    if (box.bottom - box.top > LEAST_LINED * view.scale && x[3] - x[0] > LEAST_LABEL * view.scale && this.labels.length < MOST_LABELS) {
      this.labels.push({ it, x: x[0], end: x[3], box, solid: x[3] - x[2] > (x[3] - x[0]) / 2 });
    }
  }

  // Phases of a kind: queued, waiting for others, in the backend.
  shade(kind) {
    let found = this.shades.get(kind);
    if (!found) {
      const own = colour(kind);
      const [queued, waiting] = [0.25, 0.6].map((share) => pixel(own, ground(), share));
      this.shades.set(kind, (found = { queued, waiting, running: pixel(own) }));
    }
    return found;
  }

  x(time, view) {
    const share = (time - view.from) / (view.to - view.from);
    const width = this.image.width - view.gutter * view.scale;
    return Math.round(view.gutter * view.scale + Math.min(1.01, Math.max(0, share)) * width);
  }

  box(from, to, { top, bottom }, value) {
    const { width } = this.image;
    const end = Math.min(to, width);
    if (end <= from) return;
    for (let y = top; y < bottom; y += 1) this.pixels.fill(value, y * width + from, y * width + end);
  }

  hatch(from, to, { top, bottom }, value, between) {
    const { width } = this.image;
    const end = Math.min(to, width);
    for (let y = top; y < bottom; y += 1) {
      for (let x = from; x < end; x += 1) this.pixels[y * width + x] = (x + y) % 6 < 3 ? value : between;
    }
  }

  mark(x, box, view) {
    const thick = Math.max(2, Math.round(3 * view.scale));
    this.box(x[0], Math.max(x[3], x[0] + thick), { top: Math.max(box.top, box.bottom - thick), bottom: box.bottom }, this.failed);
    this.box(x[3] - thick, x[3], box, this.failed);
  }

  frame(from, to, { top, bottom }) {
    this.box(from, to, { top, bottom: top + 1 }, this.ink);
    this.box(from, to, { top: bottom - 1, bottom }, this.ink);
    this.box(from, from + 1, { top, bottom }, this.ink);
  }

  hline(y, value) {
    const { width, height } = this.image;
    if (y >= 0 && y < height) this.pixels.fill(value, y * width, (y + 1) * width);
  }

  words(rows, view) {
    const { context } = this;
    context.save();
    context.scale(view.scale, view.scale);
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    this.axis(view);
    for (const { it, x, end, box, solid } of this.labels) this.label(it, x, end, box, solid, view);
    for (const row of rows) if (row.named || row.selected) this.rowName(row, view);
    context.restore();
  }

  label(it, x, end, box, solid, view) {
    const { context } = this;
    const from = Math.max(x / view.scale, view.gutter) + 4;
    const room = end / view.scale - from - 2;
    const most = Math.floor(room / 6.2);
    if (most < 4) return;
    context.fillStyle = solid ? ground() : ink();
    context.fillText(it.what.slice(0, most), from, (box.top + box.bottom) / 2 / view.scale);
  }

  rowName(row, view) {
    const { context } = this;
    const y = row.y - view.top + view.axis + row.height / 2;
    if (y < view.axis) return;
    context.fillStyle = row.lane ? (row.selected ? ink() : faint()) : ink();
    context.font = row.lane && !row.selected ? "11px system-ui, sans-serif" : "bold 11px system-ui, sans-serif";
    context.fillText(row.name, 6, y, row.lane ? view.gutter - 8 : view.width - 12);
  }

  axis(view) {
    const { context } = this;
    const span = view.to - view.from;
    const step = stepOf(span, (view.width - view.gutter) / 90);
    context.fillStyle = ground();
    context.fillRect(0, 0, view.width, view.axis);
    context.fillStyle = faint();
    for (let back = 0; back <= span; back += step) {
      const at = view.gutter + (1 - back / span) * (view.width - view.gutter);
      const text = back === 0 ? (view.live ? "now" : clock(view.to)) : `-${duration(back)}`;
      context.textAlign = back === 0 ? "right" : "center";
      if (at > view.gutter + 20) context.fillText(text, Math.min(at, view.width - 4), view.axis / 2);
      context.fillRect(at, view.axis - 3, 1, 3);
    }
    context.textAlign = "left";
  }
}

// 1, 2 or 5 times a power of ten, so that at most so many fit.
function stepOf(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((it) => it * power >= rough);
}
