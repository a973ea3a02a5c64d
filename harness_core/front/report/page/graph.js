// The way of a message as a graph: links from left to right, the broken one marked.
function graphOf(all) {
  // What is told last of a link holds: a suite may judge what it has only seen before.
  const links = [...new Map(all.map((link) => [`${link.source}\n${link.target}\n${link.label}`, link])).values()];
  const names = [...new Set(links.flatMap((link) => [link.source, link.target]))];
  const depth = new Map(names.map((name) => [name, 0]));
  // As deep as the longest way there; a circle is cut after as many rounds as there are nodes.
  for (let round = 0; round < names.length; round++) {
    for (const { source, target } of links) {
      if (source !== target && depth.get(target) <= depth.get(source) && depth.get(source) + 1 < names.length) {
        depth.set(target, depth.get(source) + 1);
      }
    }
  }
  const columns = Object.values(Object.groupBy(names, (name) => String(depth.get(name)).padStart(4, "0")));
  const wide = (name) => Math.min(230, Math.max(74, name.length * 7 + 24));
  const [gapX, gapY, high] = [122, 24, 32];
  const place = new Map();
  const tall = Math.max(...columns.map((column) => column.length)) * (high + gapY) + 12;
  let x = 4;
  for (const column of columns) {
    const width = Math.max(...column.map(wide));
    const top = (tall - column.length * (high + gapY) + gapY) / 2;
    column.forEach((name, row) => place.set(name, { x, y: top + row * (high + gapY), w: width }));
    x += width + gapX;
  }
  const bad = new Set(links.filter((link) => link.state === "broken").map((link) => link.target));
  const reached = new Set(links.filter((link) => link.state === "held").flatMap((link) => [link.source, link.target]));
  const drawn = svg("svg", { width: x - gapX + 8, height: tall, viewBox: `0 0 ${x - gapX + 8} ${tall}`, role: "img", "aria-label": links.map(told).join("; ") });
  const pairs = new Map();
  for (const link of links) {
    const key = `${link.source}\n${link.target}`;
    const known = pairs.get(key) || { ...link, labels: [] };
    if (link.label && !known.labels.includes(link.label)) known.labels.push(link.label);
    if (link.state === "broken" || (link.state === "missing" && known.state === "held")) known.state = link.state;
    pairs.set(key, known);
  }
  for (const link of pairs.values()) drawn.append(arrow(link, place.get(link.source), place.get(link.target), high));
  for (const [name, { x: left, y, w }] of place) {
    const state = bad.has(name) ? "bad" : reached.has(name) || !links.some((link) => link.target === name) ? "" : "lost";
    const text = name.length > 30 ? `${name.slice(0, 29)}…` : name;
    const box = svg("rect", { x: left, y, width: w, height: high, rx: 5, class: state });
    drawn.append(svg("g", {}, box, svg("text", { x: left + w / 2, y: y + high / 2 + 4, "text-anchor": "middle" }, text)));
  }
  const list = el("ul", { class: "links" });
  for (const link of links) {
    list.append(el("li", {}, el("span", { class: link.state === "held" ? "dim" : link.state }, link.state), el("span", {}, told(link), link.said ? el("span", { class: "dim" }, ` — ${link.said}`) : null)));
  }
  const box = el("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "way of the message" }, drawn);
  // On a narrow screen the link that broke is in sight first.
  const broken = links.find((link) => link.state !== "held");
  if (broken) requestAnimationFrame(() => { box.scrollLeft = place.get(broken.target).x - box.clientWidth / 2; });
  return [box, list];
}

const told = (link) => `${link.source} → ${link.target}${link.label ? ` (${link.label})` : ""}`;

function arrow(link, from, to, high) {
  const group = svg("g", { class: link.state });
  const [x1, y1] = [from.x + from.w, from.y + high / 2];
  const back = to.x <= from.x;
  const [x2, y2] = back ? [to.x + to.w / 2, to.y + high] : [to.x, to.y + high / 2];
  const mid = (x1 + x2) / 2;
  const path = back
    ? `M${from.x + from.w / 2},${from.y + high} C${x1},${y1 + 60} ${x2},${y2 + 50} ${x2},${y2}`
    : `M${x1},${y1} C${mid},${y1} ${mid},${y2} ${x2 - 2},${y2} M${x2 - 8},${y2 - 4} L${x2 - 1},${y2} L${x2 - 8},${y2 + 4}`;
  const label = link.labels.slice(0, 2).join(", ") + (link.labels.length > 2 ? " …" : "");
  // Two thirds of the way, where links from one place have parted; a curve is nearly there by then.
  const [cx, cy] = [x1 + (x2 - x1) * 0.56, back ? Math.max(y1, y2) + 34 : y1 + (y2 - y1) * 0.74];
  group.append(svg("path", { d: path }));
  if (link.state === "broken") group.append(svg("path", { d: `M${cx - 6},${cy - 6} L${cx + 6},${cy + 6} M${cx + 6},${cy - 6} L${cx - 6},${cy + 6}` }));
  group.append(svg("text", { class: "label", x: cx, y: cy - 9, "text-anchor": "middle" }, label.length > 24 ? `${label.slice(0, 23)}…` : label));
  return group;
}
