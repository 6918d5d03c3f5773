// Numbers in words.

export function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} us`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.1 ? 1 : 0)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (count >= 1000 && at < units.length - 1) { count /= 1000; at += 1; }
  return `${at && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[at]}`;
}

export function clock(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

// Of a tensor: JSON has no NaN.
export const number = (value) => (value === null || value === undefined ? "-" : String(Number(value.toPrecision(5))));

export const rate = (perSecond) => (perSecond < 100 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString("en"));

// "0-3, 7", of ranks in ascending order.
export function intervals(ranks) {
  const runs = [];
  for (const rank of ranks) {
    const last = runs.at(-1);
    if (last && last[1] === rank - 1) last[1] = rank;
    else runs.push([rank, rank]);
  }
  const shown = runs.slice(0, 8).map(([first, end]) => (first === end ? `${first}` : `${first}-${end}`)).join(", ");
  return runs.length > 8 ? `${shown} and more` : shown;
}
