// All tests: filtered by word, suite and text.
const testsView = {
  chosen: new Set(),
  list: null,

  start(state) {
    this.state = state;
    this.box = document.getElementById("tests-list");
    this.search = document.getElementById("tests-search");
    this.suite = document.getElementById("tests-suite");
    this.sort = document.getElementById("tests-sort");
    this.count = document.getElementById("tests-count");
    this.chips = document.getElementById("tests-words");
    this.list = new List(this.box, { height: 30, draw: (test) => this.row(test) });
    for (const test of state.tests) test.low = `${test.id} ${test.why} ${test.requirements.join(" ")}`.toLowerCase();
    for (const suite of [...new Set(state.tests.map((test) => test.suite))].sort()) this.suite.append(el("option", {}, suite));
    const counts = Object.groupBy(state.tests, (test) => test.word);
    for (const word of Object.keys(LETTERS)) {
      if (!counts[word]) continue;
      const press = () => this.press(word);
      this.chips.append(el("button", { type: "button", "data-word": word, "aria-pressed": "false", onclick: press }, dot(word), `${word} ${counts[word].length}`));
    }
    this.search.addEventListener("input", () => this.show());
    for (const each of [this.suite, this.sort]) each.addEventListener("change", () => this.show());
  },

  // Shown by the words, the text and the cause of an address: #/tests?word=failed&q=…
  open(query) {
    this.chosen = new Set(query.getAll("word"));
    this.search.value = query.get("q") || "";
    this.suite.value = query.get("suite") || "";
    this.sort.value = query.get("sort") || "weight";
    this.cause = query.has("cause") ? this.state.causes[Number(query.get("cause"))] : null;
    this.show();
  },

  press(word) {
    if (!this.chosen.delete(word)) this.chosen.add(word);
    this.show();
  },

  show() {
    for (const chip of this.chips.children) chip.setAttribute("aria-pressed", String(this.chosen.has(chip.dataset.word)));
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = this.cause ? new Set(this.cause.tests) : null;
    const found = this.state.tests.filter(
      (test) =>
        (!this.chosen.size || this.chosen.has(test.word)) &&
        (!this.suite.value || test.suite === this.suite.value) &&
        (!only || only.has(test.id)) &&
        words.every((word) => test.low.includes(word)),
    );
    const by = { time: (a, b) => b.seconds - a.seconds, cost: (a, b) => (b.cost?.usd || 0) - (a.cost?.usd || 0), began: (a, b) => a.at - b.at, name: (a, b) => (a.id < b.id ? -1 : 1) };
    if (by[this.sort.value]) found.sort(by[this.sort.value]);
    this.count.textContent = `${found.length} of ${this.state.tests.length}${only ? " (of one cause)" : ""}`;
    this.box.scrollTop = 0;
    this.list.set(found);
    this.state.way = found;
  },

  row(test) {
    const cost = el("span", {}, test.cost ? `$${test.cost.usd.toFixed(4)}` : "");
    const end = el("span", { class: "end" }, test.earlier ? earlier(test.earlier) : el("span"), cost, el("span", {}, took(test.seconds)));
    const [file, ...names] = test.id.split("::");
    const name = el("span", { class: "line" }, el("span", { class: "mono" }, names.join("::") || file), el("span", { class: "mono file" }, names.length ? file : ""));
    return el("a", { class: "t-row", href: `#/test/${test.key}` }, dot(test.word), name, el("span", { class: "line why" }, test.why), end);
  },
};
