// Colours of kinds of operations, on light and on dark ground.

const KINDS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "barrier", "send", "recv", "gather", "scatter", "all_to_all", "reduce"];
const LIGHT = ["#2f6fd0", "#0e8a8a", "#7a4fc0", "#c2660a", "#66707e", "#3f8f2f", "#b2408f", "#2a93c9", "#a07908", "#c0503f", "#5560b8"];
const DARK = ["#6da3ff", "#43c4c0", "#b18cf0", "#f0a050", "#a9b4c3", "#86d072", "#ea8acb", "#72c7f2", "#dcb94a", "#f08c7c", "#98a2f5"];
const scheme = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => scheme.matches;

export function colour(kind) {
  const palette = isDark() ? DARK : LIGHT;
  const known = KINDS.indexOf(kind);
  if (known >= 0) return palette[known];
  let sum = 0;
  for (const it of kind) sum = (sum * 31 + it.codePointAt(0)) >>> 0;
  return palette[sum % palette.length];
}

// "#rrggbb" over another, by a share of it, as a pixel of ImageData read as a number of 32 bits, little-endian.
export function pixel(hex, ground = "#000000", share = 1) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const [own, other] = [hex, ground].map((it) => parseInt(it.slice(at, at + 2), 16));
    return Math.round(own * share + other * (1 - share));
  });
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

export const ground = () => (isDark() ? "#1b212a" : "#ffffff");
export const ink = () => (isDark() ? "#e4e9f0" : "#1b2330");
export const faint = () => (isDark() ? "#a3aebd" : "#556070");
export const line = () => (isDark() ? "#343d4a" : "#e3e7ed");
export const failed = () => (isDark() ? "#ff6b78" : "#c4162a");
