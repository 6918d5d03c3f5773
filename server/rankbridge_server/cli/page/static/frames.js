// How long frames take: what says whether the page is smooth.

const KEPT = 600;

export class Frames {
  constructor() {
    this.intervals = [];
    this.paints = [];
    this.last = null;
  }

  // A frame begins, by the clock of requestAnimationFrame.
  begin(at) {
    if (this.last !== null) keep(this.intervals, at - this.last);
    this.last = at;
    this.began = performance.now();
  }

  end() {
    keep(this.paints, performance.now() - this.began);
  }

  // Milliseconds: from frame to frame, and in painting.
  get summary() {
    return {
      frames: this.intervals.length,
      p50: quantile(this.intervals, 0.5),
      p95: quantile(this.intervals, 0.95),
      paint_p50: quantile(this.paints, 0.5),
      paint_p95: quantile(this.paints, 0.95),
    };
  }
}

function keep(times, time) {
  times.push(time);
  if (times.length > KEPT) times.shift();
}

function quantile(times, share) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}
