// What happens in all parts, as one list: the last lines, filtered, followed or held still.
const HELD = 6000;

const activity = {
  events: [],
  byNumber: new Map(),
  off: new Set(),
  counts: new Map(),
  lanes: new Set(),
  missed: 0, // by the server, which reads no faster than a person could
  gaps: 0, // by this client, which was slow

  start() {
    this.box = document.getElementById("activity");
    this.list = new List(this.box, { height: 23, draw: (event) => this.row(event) });
    this.follows = true;
    document.getElementById("words").addEventListener("input", () => this.filter());
    document.getElementById("lane").addEventListener("change", () => this.filter());
    document.getElementById("follow").addEventListener("click", () => this.follow(!this.follows));
    this.box.addEventListener("wheel", (event) => { if (event.deltaY < 0) this.follow(false); }, { passive: true });
    this.box.addEventListener("keydown", (event) => { if (["ArrowUp", "PageUp", "Home"].includes(event.key)) this.follow(false); });
  },

  take(rows) {
    for (const [number, at, took_ms, lane, what, text, level, more] of rows) {
      const event = { number, at, took_ms, lane, what, text, level, more };
      this.events.push(event);
      this.byNumber.set(number, event);
      this.counts.set(what, (this.counts.get(what) || 0) + 1);
      if (!this.lanes.has(lane)) this.lane(lane);
    }
    for (const event of this.events.splice(0, Math.max(0, this.events.length - HELD))) this.byNumber.delete(event.number);
    this.later();
  },

  // At most a few times a second, and nothing while the page is out of sight.
  later() {
    if (this.waits) return;
    this.waits = true;
    setTimeout(() => requestAnimationFrame(() => { this.waits = false; this.chips(); this.filter(); messages.show(); }), 150);
  },

  lane(name) {
    this.lanes.add(name);
    const select = document.getElementById("lane");
    const after = [...select.options].find((option) => option.value && option.value > name);
    select.insertBefore(el("option", { value: name }, name), after || null);
  },

  only(lane) {
    if (!this.lanes.has(lane)) this.lane(lane);
    document.getElementById("lane").value = lane;
    this.filter();
    document.getElementById("activity").scrollIntoView({ block: "nearest" });
  },

  chips() {
    const box = document.getElementById("kinds");
    for (const [what, count] of this.counts) {
      let chip = box.querySelector(`[data-what="${CSS.escape(what)}"]`);
      if (!chip) {
        chip = el("button", { type: "button", "data-what": what, "aria-pressed": "true", onclick: () => this.press(chip, what) }, el("i", { class: `kind-dot ${kind(what)}` }), el("span", {}));
        box.append(chip);
      }
      setText(chip.lastElementChild, `${what} ${count.toLocaleString("en")}`);
    }
  },

  press(chip, what) {
    if (!this.off.delete(what)) this.off.add(what);
    chip.setAttribute("aria-pressed", String(!this.off.has(what)));
    this.filter();
  },

  filter() {
    const lane = document.getElementById("lane").value;
    const words = document.getElementById("words").value.toLowerCase();
    const shown = this.events.filter((event) =>
      !this.off.has(event.what) && (!lane || event.lane === lane || named(event.lane) === lane) && (!words || `${event.lane} ${event.text}`.toLowerCase().includes(words)));
    const top = this.box.scrollTop;
    this.list.set(shown);
    if (this.follows) this.box.scrollTop = this.box.scrollHeight;
    else this.box.scrollTop = top;
    const lost = this.missed + this.gaps;
    setText(document.getElementById("activity-note"), `${shown.length.toLocaleString("en")} of the last ${this.events.length.toLocaleString("en")}${lost ? `; ${lost.toLocaleString("en")} more came faster than this page shows` : ""}`);
  },

  follow(on) {
    this.follows = on;
    document.getElementById("follow").setAttribute("aria-pressed", String(on));
    if (on) this.box.scrollTop = this.box.scrollHeight;
  },

  row(event) {
    const parts = [el("span", { class: "num dim" }, ...clock(event.at)), el("span", {}, named(event.lane)), el("span", { class: `kind ${kind(event.what)}` }, event.what), el("span", { class: event.level === "error" ? "text err" : "text" }, event.took_ms ? `${event.text}  ` : event.text, event.took_ms ? el("span", { class: "dim" }, took(event.took_ms / 1000)) : null)];
    return el("button", { type: "button", class: "e-row", "aria-current": String(event.number === this.chosen), onclick: () => this.choose(event) }, parts);
  },

  async choose(event) {
    this.chosen = event.number;
    this.follow(false);
    this.list.show(true);
    const box = document.getElementById("one");
    const found = await detail(event);
    if (this.chosen !== event.number) return;
    box.replaceChildren(...found);
    box.scrollTop = 0;
  },
};

// A process may call itself otherwise in spans: the part whose name ends that name.
function named(lane) {
  if (board.rows.has(lane)) return lane;
  return [...board.rows.keys()].filter((name) => lane.endsWith(`-${name}`)).sort((a, b) => b.length - a.length)[0] || lane;
}

// One event, with all that is kept of it.
async function detail(event) {
  const more = await ask(`/event/${event.number}`).catch((error) => ({ data: error.message }));
  const terms = { at: moment(event.at), took: event.took_ms ? took(event.took_ms / 1000) : null, process: event.lane, evidence: more.source };
  const list = el("dl", {}, Object.entries(terms).filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  const data = more.data === null || more.data === undefined ? null : typeof more.data === "string" ? more.data : JSON.stringify(more.data, null, 1);
  return [el("h3", {}, el("span", { class: `kind ${kind(event.what)}` }, event.what), ` ${event.text}`), list, data ? el("pre", {}, data) : ""];
}

const clock = (seconds) => [new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour12: false }), el("span", { class: "ms" }, `.${String(Math.floor((seconds % 1) * 1000)).padStart(3, "0")}`)];
