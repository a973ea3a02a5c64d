// What else a test leaves: conversations, sides, pictures, curves, profiles, files.
function talkOf(frames) {
  const connections = Object.entries(Object.groupBy(frames, (frame) => frame.connection));
  const talks = connections.map(([connection, own], at) => {
    const box = el("div", { class: "talk" });
    for (const frame of own) {
      const more = frame.size_bytes > new Blob([frame.text]).size ? ` (${size(frame.size_bytes)})` : "";
      const who = frame.sender === "we" ? "the test" : "the product";
      box.append(el("div", { class: `frame ${frame.sender}` }, el("time", { title: who }, `${frame.after_s.toFixed(3)} s`), el("pre", {}, frame.text + more)));
    }
    // What went wrong was seen last.
    const last = at === connections.length - 1;
    return el("details", { class: "more", open: last }, el("summary", {}, `connection ${connection} `, el("span", { class: "dim" }, `${own.length} frames`)), box);
  });
  return talks.length ? block("Conversation", "left the product, right the test", talks) : null;
}

function sidesOf(each) {
  const names = [...new Set(each.fields.flatMap((field) => Object.keys(field.seen)))];
  const head = el("tr", {}, el("th", { scope: "col" }, "field"), el("th", { scope: "col" }, "expected"), names.map((name) => el("th", { scope: "col" }, name)));
  const rows = [...each.fields].sort((a, b) => b.wrong.length - a.wrong.length).map((field) => {
    const cells = names.map((name) => {
      const wrong = field.wrong.includes(name);
      return el("td", { class: wrong ? "wrong" : null }, field.seen[name] ?? "", wrong ? el("div", { class: "err" }, `regressed${field.why ? `: ${field.why}` : ""}`) : null);
    });
    return el("tr", {}, el("th", { scope: "row", class: "mono" }, field.name), el("td", {}, field.expected ?? el("span", { class: "dim" }, "as the others")), cells);
  });
  return block("Sides", each.scenario, el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "sides" }, el("table", { class: "sides" }, el("thead", {}, head), el("tbody", {}, rows))));
}

function picturesOf(files) {
  const shown = files.filter((file) => file.content);
  if (!shown.length) return null;
  const sheet = el("div", { class: "sheet" });
  for (const file of shown) {
    const source = `data:${file.mime};base64,${file.content}`;
    const picture = file.kind === "video" ? el("video", { src: source, controls: true, muted: true, preload: "metadata", "aria-label": file.path }) : el("img", { src: source, alt: file.path });
    const figure = el("figure", {}, picture, el("figcaption", {}, file.path));
    if (file.kind === "picture") picture.addEventListener("load", () => picture.naturalWidth > 3 * picture.naturalHeight && figure.classList.add("wide"));
    sheet.append(figure);
  }
  return block("Pictures and videos", `${shown.length}`, sheet);
}

function filesOf(test, detail) {
  if (!detail.files?.length) return null;
  const list = el("ul", { class: "files" });
  for (const file of detail.files) list.append(el("li", {}, beside(test.href && `${test.href}/${file.path.split("/").map(encodeURIComponent).join("/")}`, file.path), el("span", { class: "dim num" }, size(file.size_bytes))));
  const name = `${test.id.split("::").pop().replace(/[^\w.-]+/g, "-")}.zip`;
  const all = detail.archive ? el("button", { type: "button", onclick: () => save(name, detail.archive, "application/zip") }, "download all (zip)") : null;
  return block("Evidence", detail.files.length === 1 ? "1 file" : `${detail.files.length} files`, all, list);
}

function plotOf(plot) {
  const [wide, high, left, bottom, top, right] = [640, 260, 58, 34, 10, 12];
  const bars = plot.style === "bar";
  const points = plot.curves.flatMap((curve) => curve.points);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const least = Math.min(...ys) >= 0 ? 0 : Math.min(...ys);
  const [x0, x1] = bars ? [0, plot.curves.length] : [Math.min(...xs), Math.max(...xs) > Math.min(...xs) ? Math.max(...xs) : Math.min(...xs) + 1];
  const most = Math.max(...ys, least + 1e-9);
  const step = niceStep((most - least) / 5);
  const y1 = Math.ceil((most * (bars ? 1.06 : 1)) / step) * step; // above a bar stands its value
  const px = (x) => left + ((x - x0) / (x1 - x0)) * (wide - left - right);
  const py = (y) => high - bottom - ((y - least) / (y1 - least)) * (high - bottom - top);
  const about = plot.curves.map((curve) => `${curve.name}: ${curve.points.length} values up to ${number(Math.max(...curve.points.map(([, y]) => y)))}`).join("; ");
  const drawn = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${plot.title}, ${plot.y} over ${plot.x}. ${about}` });
  for (let y = least; y <= y1 + step / 2; y += step) {
    drawn.append(svg("line", { class: "grid", x1: left, x2: wide - right, y1: py(y), y2: py(y) }), svg("text", { x: left - 7, y: py(y) + 4, "text-anchor": "end" }, number(y)));
  }
  if (!bars) {
    const stepX = niceStep((x1 - x0) / 6);
    for (let x = Math.ceil(x0 / stepX) * stepX; x <= x1 + 1e-9; x += stepX) drawn.append(svg("text", { x: px(x), y: high - bottom + 16, "text-anchor": "middle" }, number(x)));
  }
  drawn.append(svg("text", { x: wide - right, y: high - 3, "text-anchor": "end" }, plot.x));
  plot.curves.forEach((curve, at) => {
    const colour = `p${at % 6}`;
    if (bars) {
      const value = curve.points[0]?.[1] ?? 0;
      const width = (wide - left - right) / plot.curves.length;
      drawn.append(svg("rect", { class: `fill ${colour}`, x: left + width * (at + 0.18), width: width * 0.64, y: py(value), height: Math.max(0, py(least) - py(value)) }), svg("text", { x: left + width * (at + 0.5), y: py(value) - 4, "text-anchor": "middle" }, number(value)), svg("text", { x: left + width * (at + 0.5), y: high - bottom + 16, "text-anchor": "middle" }, curve.name.slice(0, Math.floor(width / 6.5))));
      return;
    }
    const path = curve.points.map(([x, y], n) => `${n ? (plot.style === "step" ? `H${px(x).toFixed(1)}V` : `L${px(x).toFixed(1)},`) : `M${px(x).toFixed(1)},`}${py(y).toFixed(1)}`).join("");
    drawn.append(svg("path", { class: `line ${colour}`, d: path }));
  });
  const legend = bars ? null : el("ul", {}, plot.curves.map((curve, at) => el("li", { class: `p${at % 6}` }, el("i"), curve.name)));
  const head = el("h3", {}, plot.title, el("span", { class: "dim" }, ` ${plot.y}`));
  return el("div", { class: "plot" }, head, drawn, ...(legend ? [legend] : []));
}

const number = (value) => (Math.abs(value) >= 10000 ? value.toLocaleString("en", { notation: "compact" }) : String(Number(value.toPrecision(4))));

const plotsOf = (plots) => block("Curves", `${plots.length}`, el("div", { class: "plots" }, plots.map(plotOf)));

// A profile of speedscope's format as flames: callers above, wider is longer.
function flamesOf(name, file) {
  const profile = file.profiles?.[0];
  if (!profile || profile.type !== "sampled") return null;
  const root = { name: "all", weight: 0, children: new Map() };
  profile.samples.forEach((stack, at) => {
    const weight = profile.weights[at];
    let node = root;
    node.weight += weight;
    for (const frame of stack) {
      if (!node.children.has(frame)) node.children.set(frame, { name: file.shared.frames[frame].name, place: file.shared.frames[frame].file, weight: 0, children: new Map() });
      node = node.children.get(frame);
      node.weight += weight;
    }
  });
  const [wide, high] = [1200, 18];
  const rects = [];
  let deepest = 0;
  const draw = (node, x, depth) => {
    const width = (node.weight / root.weight) * wide;
    if (width < 1.2 || depth > 120) return;
    deepest = Math.max(deepest, depth);
    const share = `${((node.weight / root.weight) * 100).toFixed(1)} %`;
    const hue = 18 + (hash(node.name) % 38);
    const rect = svg("rect", { x, y: depth * high, width, height: high, fill: `hsl(${hue} 70% 68%)` }, svg("title", {}, `${node.name} ${share} ${node.place || ""}`));
    const text = width > 36 ? svg("text", { x: x + 4, y: depth * high + 13 }, node.name.slice(0, Math.floor(width / 6.2))) : null;
    rects.push(rect, ...(text ? [text] : []));
    let left = x;
    for (const child of [...node.children.values()].sort((a, b) => b.weight - a.weight)) {
      draw(child, left, depth + 1);
      left += (child.weight / root.weight) * wide;
    }
  };
  draw(root, 0, 0);
  const drawn = svg("svg", { width: wide, height: (deepest + 1) * high, role: "img", "aria-label": `flame graph of ${name}` }, rects);
  return block("Profile", name, el("div", { class: "flames", tabindex: "0", role: "group", "aria-label": `profile ${name}` }, drawn));
}

const hash = (text) => [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
