// The parts: state, address, memory, restarts, and what can be done with each.
const STATES = { running: "P", completed: "P", paused: "K", stopped: "N", waiting: "N", ended: "F" };
const SAMPLES = 60;

const board = {
  rows: new Map(),
  memory: new Map(),

  take(parts) {
    this.parts = parts;
    const body = document.getElementById("parts");
    document.getElementById("parts-block").hidden = !parts;
    if (!parts) {
      document.getElementById("verdict").textContent = "Booting …";
      return;
    }
    const names = new Set(parts.map((part) => part.name));
    for (const [name, row] of this.rows) if (!names.has(name)) { row.element.remove(); this.rows.delete(name); }
    for (const part of parts) {
      if (!this.rows.has(part.name)) {
        this.rows.set(part.name, this.row(part.name));
        body.append(this.rows.get(part.name).element);
      }
      this.fill(this.rows.get(part.name), part);
    }
    this.summary(parts);
  },

  row(name) {
    const cell = (title, className = "") => el("td", { "data-title": title, class: className });
    const cells = { state: cell("state"), address: cell("address"), memory: cell("memory", "num"), restarts: cell("restarts", "num"), acts: cell("", "acts") };
    const dot = el("span", { class: "dot" });
    const kind = el("span", { class: "dim kind-of" });
    const died = el("div", { class: "err died", hidden: true });
    const choose = el("button", { type: "button", class: "plain", title: "what happens in this part", onclick: () => activity.only(name) }, name);
    const head = el("th", { scope: "row" }, el("span", { class: "part-name" }, dot, choose, kind), died);
    return { element: el("tr", {}, head, Object.values(cells)), dot, kind, died, ...cells, shown: "" };
  },

  fill(row, part) {
    const letter = part.busy ? "H" : STATES[part.state] || "N";
    row.dot.className = `dot w-${letter}${part.busy ? " busy" : ""}`;
    setText(row.kind, part.kind);
    row.died.hidden = !part.died;
    setText(row.died, part.died);
    row.state.className = `state w-${letter}`;
    setText(row.state, part.busy ? `${part.busy} …` : part.state);
    this.address(row, part);
    this.remember(row, part);
    setText(row.restarts, String(part.restarts));
    row.restarts.classList.toggle("zero", !part.restarts);
    this.acts(row, part);
  },

  address(row, part) {
    const told = [part.address, part.pid ? `pid ${part.pid}` : part.container].filter(Boolean);
    if (row.address.dataset.told === told.join()) return;
    row.address.dataset.told = told.join();
    row.address.replaceChildren(el("span", { class: "mono" }, told[0] || "–"), told[1] ? el("span", { class: "dim pid" }, told[1]) : "");
    row.address.title = Object.entries(part.urls).map(([name, url]) => `${name}: ${url}`).join("\n");
  },

  remember(row, part) {
    const samples = this.memory.get(part.name) || [];
    if (part.memory) samples.push(part.memory);
    this.memory.set(part.name, samples.slice(-SAMPLES));
    const now = part.memory ? size(part.memory) : "–";
    row.memory.replaceChildren(samples.length > 2 ? spark(samples.slice(-SAMPLES)) : "", el("span", {}, now));
    row.memory.classList.toggle("none", !part.memory);
  },

  acts(row, part) {
    const key = `${part.verbs.join()} ${part.busy}`;
    if (row.acts.dataset.key === key) return;
    const focused = row.acts.contains(document.activeElement) ? document.activeElement.textContent : "";
    row.acts.dataset.key = key;
    const button = (verb) => el("button", { type: "button", class: "act", "aria-disabled": String(Boolean(part.busy)), "aria-label": `${verb} ${part.name}`, onclick: () => this.act(part.name, verb) }, verb);
    row.acts.replaceChildren(...part.verbs.map(button));
    const next = [...row.acts.children].find((each) => each.textContent === focused) || row.acts.firstElementChild;
    if (focused && next) next.focus();
  },

  async act(part, verb) {
    const row = this.rows.get(part);
    // Not disabled for good, which would take the focus away.
    if (row.acts.firstElementChild?.getAttribute("aria-disabled") === "true") return;
    for (const each of row.acts.children) each.setAttribute("aria-disabled", "true");
    row.acts.dataset.key = "";
    setText(row.state, `${verb} …`);
    try {
      await ask("/act", { part, verb });
    } catch (error) {
      toast(error.message);
    }
  },

  summary(parts) {
    const [runs, away] = [parts.filter(serves).length, parts.filter((part) => !serves(part))];
    const died = parts.filter((part) => part.state === "ended");
    const names = (list) => list.slice(0, 3).map((part) => part.name).join(", ") + (list.length > 3 ? ` and ${list.length - 3} more` : "");
    const verdict = !away.length ? `All ${runs} parts run` : died.length ? `${names(died)} died` : `${runs} of ${parts.length} parts run`;
    setText(document.getElementById("verdict"), verdict);
    document.getElementById("dot").className = `dot w-${died.length ? "F" : away.length ? "K" : "P"}`;
    setText(document.getElementById("parts-note"), away.length ? `away: ${names(away)}` : "");
    const memory = parts.reduce((sum, part) => sum + (part.memory || 0), 0);
    const restarts = parts.reduce((sum, part) => sum + part.restarts, 0);
    this.facts({ memory: memory ? size(memory) : "", restarts: restarts || "", ...this.extra });
  },

  began(seconds) {
    clearInterval(this.timer);
    const told = () => {
      const age = Math.max(0, Math.floor(Date.now() / 1000 - seconds));
      const minutes = Math.floor(age / 60);
      setText(document.getElementById("age"), age < 60 ? `up for ${age} s` : minutes < 60 ? `up for ${minutes} min` : `up for ${Math.floor(minutes / 60)} h ${minutes % 60} min`);
    };
    this.timer = setInterval(told, 5000);
    told();
  },

  facts(facts) {
    const list = Object.entries(facts).filter(([, value]) => value !== "" && value !== undefined);
    document.getElementById("facts").replaceChildren(...list.map(([name, value]) => el("li", {}, `${name} `, el("b", {}, String(value)))));
  },

  spent(totals) {
    if (!totals) return;
    const { overall, budget_usd: budget, spent_usd: spent, mode } = totals;
    const counts = { calls: overall.calls.toLocaleString("en"), tokens: (overall.input_tokens + overall.output_tokens).toLocaleString("en"), "at list price": `$${overall.usd.toFixed(4)}` };
    this.extra = { models: mode, ...(overall.calls ? counts : {}) };
    if (this.parts) this.summary(this.parts);
    const live = mode === "live" || mode === "record";
    document.getElementById("budget").hidden = !live;
    if (!live) return;
    const share = Math.min(100, (100 * spent) / (budget || 1));
    const bar = document.getElementById("budget-spent");
    bar.setAttribute("width", share.toFixed(2));
    bar.setAttribute("class", share > 90 ? "w-F" : share > 60 ? "w-H" : "w-P");
    setText(document.getElementById("budget-text"), `$${spent.toFixed(4)} of the budget of $${budget.toFixed(2)} spent`);
  },
};

// One that is being started is no part that runs.
const serves = (part) => STATES[part.state] === "P" && !part.busy;

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Memory over the last minutes, from 0 on: what grows is seen, noise is not.
function spark(samples) {
  const most = Math.max(...samples) * 1.15;
  const points = samples.map((value, at) => `${(60 - samples.length + at + 1).toFixed(0)},${(16 - (14 * value) / most).toFixed(1)}`);
  return svg("svg", { class: "spark", viewBox: "0 0 60 16", "aria-hidden": "true" }, svg("polyline", { points: points.join(" ") }));
}
