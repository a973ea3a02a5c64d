// One clock for all processes: bars for what lasted, ticks for moments; a list of the same below.
const BAR = 13;
const TICKS = 14;
const AXIS = 24;

class Timeline {
  // detail: of a test; ends_ms: how long it took.
  constructor(detail, ends_ms) {
    this.detail = detail;
    this.events = detail.events.map(([at, took_ms, lane, what, text, level, message, source, data], number) => ({
      number, at, took_ms, lane, what, text, level, message, source, data,
    }));
    const last = this.events.reduce((most, event) => Math.max(most, event.at + event.took_ms), ends_ms || 0);
    const first = this.events.reduce((least, event) => Math.min(least, event.at), 0);
    this.whole = [first, Math.max(last, first + 1)];
    this.view = [...this.whole];
    this.message = detail.messages.length === 1 ? 0 : -1;
    this.off = new Set();
    this.words = "";
    this.chosen = null;
    this.element = this.build();
    this.filter();
  }

  build() {
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "timeline: plus and minus zoom, arrows move, 0 shows all; the list below has the same events" });
    this.labels = el("div", { class: "lanes", "aria-hidden": "true" });
    this.box = el("div", { class: "list events", tabindex: "0", role: "group", "aria-label": "events" });
    this.one = el("div", { class: "one", tabindex: "0", role: "region", "aria-label": "one event" }, el("span", { class: "dim" }, "Choose an event to see all of it."));
    this.tip = el("div", { class: "tip", hidden: true });
    this.count = el("span", { class: "dim" });
    this.list = new List(this.box, { height: 23, draw: (event) => this.row(event) });
    this.listen();
    const plane = el("div", { class: "time-plane" }, this.labels, this.canvas);
    return el("div", {}, this.tools(), el("div", { class: "time" }, plane, el("div", { class: "time-foot" }, this.box, this.one)), this.tip);
  }

  tools() {
    const tools = el("div", { class: "tools time-tools" });
    if (this.detail.messages.length) {
      const choose = el("select", { "aria-label": "message" }, el("option", { value: "-1" }, "the whole test"));
      this.detail.messages.forEach((message, at) => choose.append(el("option", { value: at, selected: at === this.message }, `message: ${message.text.slice(0, 60)}`)));
      choose.addEventListener("change", () => { this.message = Number(choose.value); this.filter(); });
      tools.append(choose);
    }
    const counts = Object.groupBy(this.events, (event) => event.what);
    const chips = el("div", { class: "chips", role: "group", "aria-label": "kinds of events" });
    for (const what of Object.keys(counts).filter((each) => each !== "test")) {
      const press = (event) => {
        if (!this.off.delete(what)) this.off.add(what);
        event.currentTarget.setAttribute("aria-pressed", String(!this.off.has(what)));
        this.filter();
      };
      const name = [el("i", { class: `kind-dot ${kind(what)}` }), `${what} ${counts[what].length}`];
      chips.append(el("button", { type: "button", "aria-pressed": "true", onclick: press }, name));
    }
    const search = el("input", { type: "search", placeholder: "text in events", "aria-label": "text in events" });
    search.addEventListener("input", () => { this.words = search.value.toLowerCase(); this.filter(); });
    const zoom = (label, text, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const zooms = el("div", { class: "chips" }, zoom("zoom in", "+", () => this.zoom(0.5)), zoom("zoom out", "−", () => this.zoom(2)), zoom("show all", "all", () => this.look(...this.whole)));
    tools.append(chips, search, zooms, this.count);
    return tools;
  }

  // What is to be seen at all, then in which rows of which lanes.
  filter() {
    const wanted = (event) =>
      !this.off.has(event.what) &&
      (this.message < 0 || event.message === this.message || event.what === "test") &&
      (!this.words || `${event.text} ${this.detail.lanes[event.lane]}`.toLowerCase().includes(this.words));
    this.shown = this.events.filter(wanted);
    this.arrange();
    if (this.message >= 0 && this.view[0] === this.whole[0] && this.view[1] === this.whole[1]) this.lookAtMessage();
    else this.look(...this.view);
  }

  lookAtMessage() {
    const own = this.shown.filter((event) => event.what !== "test");
    if (!own.length) return this.look(...this.whole);
    const from = Math.min(...own.map((event) => event.at));
    const to = own.reduce((most, event) => Math.max(most, event.at + event.took_ms), from);
    const edge = Math.max(2, (to - from) * 0.04);
    this.look(from - edge, to + edge);
  }

  arrange() {
    const lanes = new Map();
    for (const event of this.shown) {
      if (!lanes.has(event.lane)) lanes.set(event.lane, { bars: [], ticks: [], free: [] });
      const lane = lanes.get(event.lane);
      if (!event.took_ms) { lane.ticks.push(event); continue; }
      let row = lane.free.findIndex((end) => end <= event.at);
      if (row < 0) row = lane.free.length < 7 ? lane.free.length : 6;
      lane.free[row] = Math.max(lane.free[row] || 0, event.at + event.took_ms);
      event.line = row;
      lane.bars.push(event);
    }
    let top = AXIS;
    this.lanes = [...lanes].sort(([a], [b]) => a - b).map(([number, lane]) => {
      const height = Math.max(24, lane.free.length * (BAR + 1) + (lane.ticks.length ? TICKS : 0) + 7);
      let most = -Infinity;
      const ends = lane.bars.map((event) => (most = Math.max(most, event.at + event.took_ms)));
      const made = { number, top, height, ends, ticksAt: top + height - TICKS - 2, ...lane };
      top += height;
      return made;
    });
    this.height = top + 2;
    const label = (lane) => { const each = el("div", { title: this.detail.lanes[lane.number] }, this.detail.lanes[lane.number]); each.style.height = `${lane.height}px`; return each; };
    const axis = el("div", { class: "dim" }, "process");
    axis.style.height = `${AXIS}px`;
    axis.style.borderTop = "0";
    this.labels.replaceChildren(axis, ...this.lanes.map(label));
  }

  look(from, to) {
    const least = Math.max(0.05, (this.whole[1] - this.whole[0]) / 100000);
    const width = Math.min(Math.max(to - from, least), this.whole[1] - this.whole[0]);
    const start = Math.min(Math.max(from, this.whole[0]), this.whole[1] - width);
    this.view = [start, start + width];
    const inside = this.shown.filter((event) => event.at <= this.view[1] && event.at + event.took_ms >= this.view[0]);
    this.count.textContent = `${inside.length.toLocaleString("en")} events${this.detail.dropped ? `, ${this.detail.dropped} more left out` : ""}`;
    this.list.set(inside);
    this.paint();
  }

  zoom(factor, at = (this.view[0] + this.view[1]) / 2) {
    const [from, to] = this.view;
    this.look(at - (at - from) * factor, at + (to - at) * factor);
  }

  choose(event, { reveal = true } = {}) {
    this.chosen = event;
    const at = this.list.items.indexOf(event);
    if (reveal && at >= 0) this.list.reveal(at);
    this.list.show(true);
    this.paint();
    const terms = { at: `${event.at.toFixed(3)} ms`, took: event.took_ms ? `${event.took_ms.toFixed(3)} ms` : null, process: this.detail.lanes[event.lane], evidence: this.detail.sources[event.source] };
    const list = el("dl", {}, Object.entries(terms).filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    const data = event.data === null || event.data === undefined ? null : typeof event.data === "string" ? event.data : JSON.stringify(event.data, null, 1);
    const head = el("h3", {}, el("span", { class: `kind ${kind(event.what)}` }, event.what), ` ${event.text}`);
    this.one.replaceChildren(head, list, data ? el("pre", {}, data) : "");
    this.one.scrollTop = 0;
  }

  row(event) {
    const lane = this.detail.lanes[event.lane];
    const parts = [el("span", { class: "num dim" }, event.at.toFixed(1)), el("span", {}, lane), el("span", { class: `kind ${kind(event.what)}` }, event.what), el("span", { class: event.level === "error" ? "text err" : "text" }, event.text)];
    return el("button", { type: "button", class: "e-row", "aria-current": String(event === this.chosen), onclick: () => this.choose(event, { reveal: false }) }, parts);
  }

  listen() {
    const { canvas } = this;
    const time = (event) => this.view[0] + ((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * (this.view[1] - this.view[0]);
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, at: time(event) }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) { this.marked = [drag.at, time(event)]; this.paint(); return; }
      const found = this.under(event);
      this.tip.hidden = !found;
      if (!found) return;
      this.tip.textContent = `${found.what}: ${found.text.slice(0, 300)}${found.took_ms ? ` (${found.took_ms.toFixed(1)} ms)` : ""}`;
      this.tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 260)}px`;
      this.tip.style.top = `${event.clientY + 16}px`;
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("pointerup", (event) => {
      const from = drag;
      drag = this.marked = null;
      if (!from) return;
      if (Math.abs(event.clientX - from.x) > 6) return this.look(...[from.at, time(event)].sort((a, b) => a - b));
      const found = this.under(event);
      if (found) this.choose(found);
    });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.3, time(event)));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, time(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const width = (this.view[1] - this.view[0]) / 5;
      const acts = { "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1.6), 0: () => this.look(...this.whole), ArrowLeft: () => this.look(this.view[0] - width, this.view[1] - width), ArrowRight: () => this.look(this.view[0] + width, this.view[1] + width) };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
    new ResizeObserver(() => this.paint()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    addEventListener("theme", () => this.paint());
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const lane = this.lanes.find((each) => y >= each.top && y < each.top + each.height);
    if (!lane) return null;
    const scale = this.canvas.clientWidth / (this.view[1] - this.view[0]);
    const at = (each) => (each.at - this.view[0]) * scale;
    const ticks = lane.ticks.length && y >= lane.ticksAt;
    const line = Math.floor((y - lane.top - 3) / (BAR + 1));
    let [best, least] = [null, 7];
    for (const each of ticks ? lane.ticks : lane.bars) {
      if (!ticks && each.line !== line) continue;
      const away = Math.max(at(each) - x, x - at(each) - each.took_ms * scale, 0);
      if (away < least) [best, least] = [each, away];
    }
    return best;
  }

  paint() {
    const wide = this.canvas.clientWidth;
    if (!wide || !this.lanes) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.style.height = `${this.height}px`;
    Object.assign(this.canvas, { width: wide * ratio, height: this.height * ratio });
    const ink = this.canvas.getContext("2d");
    ink.scale(ratio, ratio);
    const colours = coloursOf(this.canvas);
    const [from, to] = this.view;
    const scale = wide / (to - from);
    this.paintAxis(ink, colours, from, to, scale);
    for (const lane of this.lanes) this.paintLane(ink, colours, lane, from, to, scale, wide);
    if (this.marked) {
      ink.fillStyle = colours.accent;
      ink.globalAlpha = 0.2;
      ink.fillRect((this.marked[0] - from) * scale, AXIS, (this.marked[1] - this.marked[0]) * scale, this.height);
      ink.globalAlpha = 1;
    }
  }

  paintAxis(ink, colours, from, to, scale) {
    const step = niceStep((to - from) / Math.max(2, this.canvas.clientWidth / 110));
    ink.font = "11px system-ui, sans-serif";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = Math.round((at - from) * scale) + 0.5;
      ink.fillStyle = colours.line;
      ink.fillRect(x, AXIS - 6, 1, this.height);
      ink.fillStyle = colours.dim;
      const text = step >= 1000 ? `${(at / 1000).toFixed(step % 1000 ? 1 : 0)} s` : `${Number(at.toFixed(step < 1 ? 2 : 0))} ms`;
      if (x + 4 + ink.measureText(text).width < this.canvas.clientWidth) ink.fillText(text, x + 4, 14);
    }
  }

  paintLane(ink, colours, lane, from, to, scale, wide) {
    ink.fillStyle = colours.line;
    ink.fillRect(0, lane.top, wide, 1);
    ink.font = "11px system-ui, sans-serif";
    const last = [];
    for (let number = lowerBound(lane.ends, from); number < lane.bars.length; number++) {
      const event = lane.bars[number];
      if (event.at > to) break;
      const x = Math.max(-2, (event.at - from) * scale);
      const end = Math.min(wide + 2, (event.at + event.took_ms - from) * scale);
      if (end < 0 || (end - x < 1 && last[event.line] === Math.floor(x) && event.level !== "error" && event !== this.chosen)) continue;
      last[event.line] = Math.floor(x);
      const y = lane.top + 3 + event.line * (BAR + 1);
      ink.fillStyle = event.level === "error" ? colours.failed : colours[event.what] || colours.event;
      ink.globalAlpha = event.what === "test" ? 1 : 0.88;
      ink.fillRect(x, y, Math.max(1.5, end - x), BAR);
      ink.globalAlpha = 1;
      if (event === this.chosen) { ink.strokeStyle = colours.ink; ink.lineWidth = 2; ink.strokeRect(x, y, Math.max(2, end - x), BAR); }
      if (end - x > 34) {
        ink.fillStyle = event.what === "test" ? colours.ink : colours.bg;
        ink.fillText(fitted(ink, event.text, end - x - 8), x + 4, y + 10);
      }
    }
    let before = -9;
    for (let number = lowerBoundBy(lane.ticks, from); number < lane.ticks.length; number++) {
      const event = lane.ticks[number];
      if (event.at > to) break;
      const x = (event.at - from) * scale;
      const loud = event.level === "error" || event === this.chosen;
      if (x - before < 0.8 && !loud) continue;
      before = x;
      ink.fillStyle = event.level === "error" ? colours.failed : event === this.chosen ? colours.ink : colours[event.what] || colours.event;
      ink.fillRect(x - 1, lane.ticksAt + (loud ? 0 : 3), 2, TICKS - (loud ? 1 : 4));
    }
  }
}

const kind = (what) => (["span", "turn", "call", "request", "row", "log", "test"].includes(what) ? `k-${what}` : "k-event");

function coloursOf(element) {
  const style = getComputedStyle(element);
  const probe = element.parentElement.appendChild(document.createElement("i"));
  const found = {};
  for (const name of ["bg", "ink", "dim", "line", "accent", "failed"]) found[name] = resolved(probe, `--${name}`);
  for (const name of ["span", "turn", "call", "request", "row", "event", "log", "test"]) found[name] = resolved(probe, `--k-${name}`);
  probe.remove();
  return style && found;
}

function resolved(probe, name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

function fitted(ink, text, width) {
  const most = Math.floor(width / 5.4);
  return text.length <= most ? text : most > 3 ? `${text.slice(0, most - 1)}…` : "";
}

function lowerBound(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lowerBoundBy(events, value) {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].at < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
