// Elements of the page. Text of others only ever becomes a text node: it is never parsed as HTML.

export const find = (id) => document.getElementById(id);

// element("td", "number", "12"): content is a text, or elements.
export function element(tag, name, content = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (Array.isArray(content)) made.append(...content);
  else made.textContent = content;
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function drawn(tag, attributes = {}, content = []) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (Array.isArray(content)) made.append(...content);
  else made.textContent = content;
  return made;
}

// Makes the rows of a table what they are to be, and touches only cells that differ. cells: [text, class] each.
export function fill(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, at) => fillRow(body.rows[at] ?? body.insertRow(), cells));
}

export function fillRow(row, cells) {
  cells.forEach(([text, name], at) => {
    const cell = row.cells[at] ?? row.insertCell();
    if (cell.className !== (name ?? "")) cell.className = name ?? "";
    if (cell.textContent !== String(text)) cell.textContent = text;
  });
}
