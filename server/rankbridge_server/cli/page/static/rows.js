// The rows of the lanes: a title for each group, and a row for each of its ranks.

export const TITLE = 18;
const LEAST_NAME = 13;

// Groups that ranks describe, and others in which they have operations.
export function allGroups(groups, slices) {
  const known = new Set(groups.map((it) => it.name));
  const others = new Map();
  for (const lane of slices.lanes.values()) {
    if (known.has(lane.group)) continue;
    if (!others.has(lane.group)) others.set(lane.group, []);
    others.get(lane.group).push(lane.rank);
  }
  return [...groups, ...[...others].map(([name, ranks]) => ({ name, ranks: ranks.sort((a, b) => a - b) }))];
}

// only: the one group that is shown, or none; row: the height of a rank's row in pixels.
export function rowsOf(groups, { only, row: height, slices }) {
  const rows = [];
  let y = 0;
  for (const { name, ranks } of groups) {
    if (only && only !== name) continue;
    rows.push({ name: `${name}  (${ranks.length} ranks)`, y, height: TITLE, lane: null, named: true });
    y += TITLE;
    let last = -Infinity;
    for (const rank of ranks) {
      // Names of narrow rows would lie on each other.
      const named = y - last >= LEAST_NAME;
      if (named) last = y;
      rows.push({ name: `rank ${rank}`, y, height, lane: slices.lane(name, rank), named });
      y += height;
    }
  }
  return { rows, height: y };
}
