// Operations as slices over time: a row for each rank of a group. It moves with time until it is paused.

import { find } from "./dom.js";
import { Frames } from "./frames.js";
import { MOST_KINDS, showLegend } from "./legend.js";
import { Picture } from "./picture.js";
import { allGroups, rowsOf, TITLE } from "./rows.js";
import { describe } from "./slice_words.js";
import { firstAfter } from "./slices.js";
import { now } from "./time.js";
import { duration } from "./words.js";

const AXIS = 20;
const LEAST_SPAN = 0.002;
const MOST_SPAN = 3600;
const BEHIND = 0.6;
const LEAST_HEIGHT = 110;

export class Lanes {
  constructor(slices) {
    this.slices = slices;
    this.canvas = find("lanes-canvas");
    this.picture = new Picture(this.canvas);
    this.frames = new Frames();
    this.span = 10;
    this.end = null;
    this.groups = [];
    this.only = "";
    this.row = 15;
    this.rows = [];
    this.stale = true;
    this.chosen = null;
    this.listen();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.picture.recolour();
      this.stale = true;
    });
    const frame = (at) => {
      this.frames.begin(at);
      this.paint();
      this.frames.end();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // --- what is shown

  setGroups(groups) {
    this.groups = groups;
    const select = find("lanes-group");
    const names = ["", ...groups.map((it) => it.name)];
    select.replaceChildren(...names.map((name) => new Option(name || "all", name, false, name === this.only)));
    this.stale = true;
  }

  // There are other operations. What is new of them is painted anyway; rows are laid out when there are others.
  changed() {
    const shape = `${this.slices.lanes.size} ${Math.min(MOST_KINDS, this.slices.kinds.size)}`;
    this.stale ||= shape !== this.shape;
    this.shape = shape;
  }

  layOut() {
    this.stale = false;
    const { rows, height } = rowsOf(allGroups(this.groups, this.slices), this);
    this.rows = rows;
    this.canvas.parentElement.style.maxHeight = `${Math.max(LEAST_HEIGHT, height + AXIS + 8)}px`;
    find("lanes-space").style.height = `${Math.max(0, height + AXIS - this.canvas.clientHeight)}px`;
    showLegend(this.slices.kinds);
  }

  get view() {
    const live = this.end === null;
    // What has ended in the last moments is still on its way.
    const to = live ? now() - BEHIND : this.end;
    const box = this.canvas.parentElement;
    return {
      rows: this.rows, top: box.scrollTop, height: box.clientHeight, width: box.clientWidth,
      gutter: 66, axis: AXIS, scale: devicePixelRatio || 1, from: to - this.span, to, live,
      now: live ? to : Math.min(now(), this.end),
    };
  }

  paint() {
    if (this.stale) this.layOut();
    const { view, canvas } = this;
    const [width, height] = [view.width, view.height].map((it) => Math.max(1, Math.round(it * view.scale)));
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.height = `${view.height}px`;
      this.stale = true;
    }
    for (const row of this.rows) row.selected = this.chosen?.key === row.lane?.key && row.lane !== null;
    this.picture.paint(this.slices, view);
    const text = `${duration(this.span)} across${view.live ? "" : ", paused"}`;
    if (find("span").textContent !== text) find("span").textContent = text;
  }

  // --- moving in time

  pause(end = this.view.to) {
    this.end = end;
    this.showPaused();
  }

  showPaused() {
    const paused = this.end !== null;
    find("pause").setAttribute("aria-pressed", String(paused));
    find("pause").textContent = paused ? "Go on" : "Pause";
  }

  toggle() {
    if (this.end === null) this.pause();
    else {
      this.end = null;
      this.showPaused();
    }
  }

  // Zooms so that the time under that share of the width stays there.
  zoom(factor, share = 1) {
    const span = Math.min(MOST_SPAN, Math.max(LEAST_SPAN, this.span * factor));
    if (this.end !== null) this.end += (1 - share) * (span - this.span);
    this.span = span;
  }

  // --- mouse and keys

  listen() {
    const { canvas } = this;
    find("pause").addEventListener("click", () => this.toggle());
    find("zoom-in").addEventListener("click", () => this.zoom(0.5));
    find("zoom-out").addEventListener("click", () => this.zoom(2));
    find("lanes-group").addEventListener("change", (event) => {
      this.only = event.target.value;
      this.stale = true;
      canvas.parentElement.scrollTop = 0;
    });
    find("lanes-rows").addEventListener("change", (event) => {
      this.row = Number(event.target.value);
      this.stale = true;
    });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.tell(null));
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.tell(null));
    addEventListener("resize", () => (this.stale = true));
  }

  wheel(event) {
    if (event.shiftKey) return;
    event.preventDefault();
    this.zoom(Math.exp(event.deltaY / 400), this.shareOf(event));
  }

  shareOf(event) {
    const { gutter, width } = this.view;
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return Math.min(1, Math.max(0, (x - gutter) / (width - gutter)));
  }

  grab(event) {
    const { width, gutter, to } = this.view;
    const start = event.clientX;
    const move = (moved) => {
      if (Math.abs(moved.clientX - start) < 4 && this.end === null) return;
      this.pause(to - ((moved.clientX - start) / (width - gutter)) * this.span);
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  }

  hover(event) {
    const { view } = this;
    const y = event.clientY - this.canvas.getBoundingClientRect().top + view.top - AXIS;
    const row = this.rows.find((it) => it.lane && y >= it.y && y < it.y + it.height);
    const time = view.from + this.shareOf(event) * this.span;
    this.tell(row ? this.at(row.lane, time, (3 * this.span) / view.width) : null, event.clientX, event.clientY);
  }

  // The operation of a lane at a time, or the nearest one.
  at(lane, time, near) {
    const pending = this.slices.pending.get(lane.key) ?? [];
    const found = pending.find((it) => it.called <= time + near);
    if (found) return found;
    for (let at = firstAfter(lane.ended, time - near); at < lane.ended.length; at += 1) {
      const it = lane.ended[at];
      if (it.called <= time + near) return it;
      if (it.called > time + this.span) return null;
    }
    return null;
  }

  tell(it, x = 0, y = 0) {
    const tip = find("lanes-tip");
    tip.hidden = it === null;
    if (it === null) return;
    tip.replaceChildren(...describe(it, this.slices.apart(it), now()));
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
    const below = y + 18 + tip.offsetHeight < innerHeight;
    tip.style.top = `${below ? y + 18 : Math.max(8, y - tip.offsetHeight - 12)}px`;
  }

  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const keys = { " ": () => this.toggle(), "+": () => this.zoom(0.5), "-": () => this.zoom(2), Escape: () => this.tell(null) };
    if (steps[event.key]) this.step(...steps[event.key]);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  }

  // Goes to another row, or another operation of the same one, and tells it.
  step(down, right) {
    const lanes = this.rows.filter((it) => it.lane);
    if (!lanes.length) return;
    if (this.end === null) this.pause();
    const from = Math.max(0, lanes.findIndex((it) => it.lane.key === this.chosen?.key));
    const row = lanes[Math.min(lanes.length - 1, Math.max(0, from + (this.chosen ? down : 0)))];
    const all = [...row.lane.ended, ...(this.slices.pending.get(row.lane.key) ?? [])];
    let at = down || !this.chosen ? all.length - 1 : all.indexOf(this.chosen.it) + right;
    at = Math.min(all.length - 1, Math.max(0, at));
    this.chosen = { key: row.lane.key, it: all[at] ?? null };
    this.show(row, all[at] ?? null);
  }

  show(row, it) {
    const box = this.canvas.parentElement;
    const below = row.y + row.height + AXIS > box.scrollTop + box.clientHeight;
    if (row.y < box.scrollTop || below) box.scrollTop = row.y - TITLE;
    if (it === null) return this.tell(null);
    const { from, to, gutter, width } = this.view;
    if (it.called < from || it.called > to) this.end = it.called + this.span / 2;
    const share = (it.called - this.view.from) / this.span;
    const corner = this.canvas.getBoundingClientRect();
    this.tell(it, corner.left + gutter + share * (width - gutter), corner.top + row.y - box.scrollTop + AXIS);
  }
}
