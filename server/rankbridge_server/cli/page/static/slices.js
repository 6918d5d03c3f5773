// Operations of ranks, by lane: a group on a rank. The last ones are kept.

export const MOST = 200_000;
const MOST_TOGETHER = 20_000;
const ABSENT = -1;

export class Slices {
  constructor() {
    this.clear();
  }

  clear() {
    this.lanes = new Map();
    this.pending = new Map();
    this.together = new Map();
    this.count = 0;
    this.kinds = new Set();
  }

  lane(group, rank) {
    const key = `${rank} ${group}`;
    let found = this.lanes.get(key);
    if (!found) this.lanes.set(key, (found = { key, group, rank, ended: [] }));
    return found;
  }

  // Adds operations that have ended: columns, as they come.
  add(columns) {
    for (const it of slicesOf(columns)) {
      const lane = this.lane(it.group, it.rank);
      lane.ended.push(it);
      this.note(it);
    }
    this.count += columns.count;
    if (this.count > MOST) this.forget();
  }

  // What is pending now, in place of what was.
  setPending(columns) {
    this.pending = new Map();
    for (const it of slicesOf(columns)) {
      const key = this.lane(it.group, it.rank).key;
      if (!this.pending.has(key)) this.pending.set(key, []);
      this.pending.get(key).push(it);
      this.note(it);
    }
  }

  // How far apart the ranks of an operation were called, as far as they are here.
  apart(it) {
    const all = this.together.get(it.number);
    return { ranks: all?.ranks.size ?? 1, seconds: all ? all.last - all.first : 0 };
  }

  note(it) {
    this.kinds.add(it.what);
    let all = this.together.get(it.number);
    if (!all) {
      this.together.set(it.number, (all = { first: it.called, last: it.called, ranks: new Set() }));
      // The oldest is the first one of a Map.
      if (this.together.size > MOST_TOGETHER) this.together.delete(this.together.keys().next().value);
    }
    all.first = Math.min(all.first, it.called);
    all.last = Math.max(all.last, it.called);
    all.ranks.add(it.rank);
  }

  // Forgets the oldest quarter of each lane.
  forget() {
    this.count = 0;
    for (const lane of this.lanes.values()) {
      lane.ended.splice(0, Math.ceil(lane.ended.length / 4));
      this.count += lane.ended.length;
    }
  }
}

function* slicesOf(columns) {
  const { texts, base } = columns;
  const interned = texts.map(intern);
  for (let at = 0; at < columns.count; at += 1) {
    const called = base + columns.called[at] / 1e6;
    const after = (micros) => (micros === ABSENT ? null : called + micros / 1e6);
    yield {
      rank: columns.rank[at],
      number: columns.number[at],
      group: interned[columns.group[at]],
      what: interned[columns.what[at]],
      contract: interned[columns.contract[at]],
      site: interned[columns.site[at]],
      outcome: interned[columns.outcome[at]],
      called,
      announced: after(columns.announced[at]),
      entered: after(columns.entered[at]),
      done: after(columns.done[at]),
    };
  }
}

// Equal texts of all messages are one.
const known = new Map();

function intern(text) {
  if (known.size > 20_000) known.clear();
  if (!known.has(text)) known.set(text, text);
  return known.get(text);
}

// Place of the first that has ended at that time or later; they are in the order of their ends.
export function firstAfter(ended, time) {
  let low = 0;
  let high = ended.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ended[middle].done < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
