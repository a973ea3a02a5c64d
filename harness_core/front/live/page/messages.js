// What can be sent, what was sent, and how far it has come.
const messages = {
  travels: [],

  start() {
    document.getElementById("offers-words").addEventListener("input", () => this.draw());
    document.getElementById("free").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = document.getElementById("free-text");
      if (text.value.trim()) this.send({ id: "", title: "your own words", text: text.value }).then((sent) => { if (sent) text.value = ""; });
    });
  },

  offered(found) {
    this.found = found;
    document.getElementById("to-messages").hidden = !found;
    document.getElementById("free").hidden = !found?.free_text;
    document.getElementById("offers-words").hidden = !found || found.offers.length < 8;
    this.draw();
  },

  draw() {
    const offers = this.found?.offers || [];
    const words = document.getElementById("offers-words").value.toLowerCase();
    const shown = offers.filter((offer) => !words || `${offer.title} ${offer.text} ${offer.group}`.toLowerCase().includes(words));
    const groups = Object.entries(Object.groupBy(shown, (offer) => offer.group));
    setText(document.getElementById("offers-note"), `${shown.length} rehearsed`);
    document.getElementById("offers").replaceChildren(...groups.map(([group, own]) => el("li", {}, group ? el("h3", { class: "dim" }, group) : null, el("ol", {}, own.map((offer) => this.offer(offer))))));
  },

  offer(offer) {
    return el("li", {}, el("button", { type: "button", class: "offer", onclick: () => this.send(offer) }, el("span", { class: "offer-title" }, offer.title), el("span", { class: "dim offer-text" }, offer.text)));
  },

  async send(offer) {
    if (this.sending) return false;
    this.sending = true;
    document.body.classList.add("sending");
    try {
      const { id } = await ask("/send", { offer: offer.id, text: offer.text, title: offer.title });
      this.chosen = this.awaited = id;
      this.take(this.travels); // it may be there already
      return true;
    } catch (error) {
      toast(error.message);
      return false;
    } finally {
      this.sending = false;
      document.body.classList.remove("sending");
    }
  },

  take(travels) {
    this.travels = travels;
    const there = (id) => travels.some((each) => each.id === id);
    if (there(this.awaited)) this.awaited = undefined;
    if (!this.awaited && !there(this.chosen)) this.chosen = travels[0]?.id;
    setText(document.getElementById("sent-note"), travels.length ? "" : "nothing yet: choose a message, and see where it goes");
    document.getElementById("sent").replaceChildren(...travels.map((sent) => this.sent(sent)));
    this.show();
  },

  sent(sent) {
    const [letter, word] = stateOf(sent);
    const line = [el("span", { class: `dot w-${letter}${word === "under way" ? " busy" : ""}`, role: "img", "aria-label": word }), el("span", { class: "line" }, sent.text), el("span", { class: `word w-${letter}` }, word)];
    return el("li", {}, el("button", { type: "button", class: "sent-row", "aria-current": String(sent.id === this.chosen), onclick: () => { this.chosen = sent.id; this.take(this.travels); } }, line));
  },

  // Of the message that is chosen: its way and its timeline, drawn again when it has come further.
  show() {
    const box = document.getElementById("travel");
    const sent = this.travels.find((each) => each.id === this.chosen);
    if (!sent) return box.replaceChildren();
    const key = JSON.stringify([sent.id, sent.ended, sent.lost, sent.trouble, sent.links, sent.moments.length, sent.events.filter((number) => activity.byNumber.has(number)).length]);
    if (key === this.shown) return;
    const same = this.line && this.drawn === sent.id;
    // What somebody looks at stays as it is; the way above it goes on.
    if (!same || !this.line.chosen) this.line = timelineOf(sent);
    [this.shown, this.drawn] = [key, sent.id];
    const parts = [];
    if (sent.trouble) parts.push(el("div", { class: "warn" }, sent.trouble));
    const under = !sent.ended && !sent.lost;
    if (sent.links.length) parts.push(el("div", { class: under ? "under-way" : "" }, block("Its way", stateOf(sent)[1], wayOf(sent.links, under))));
    if (this.line) parts.push(block("Timeline", "ms since it was sent; drag to zoom, or + − ← → 0 on the keyboard", this.line.element));
    box.replaceChildren(...parts);
  },
};

// The graph; of its links, in words, those alone that say more than it does.
function wayOf(links, under) {
  const [graph, list] = graphOf(links);
  for (const row of [...list.children]) if (row.children[0].textContent === "held" && row.children[1].children.length === 0) row.remove();
  if (under) for (const row of list.children) row.children[0].textContent = "not yet";
  return [graph, list.children.length ? list : null];
}

function stateOf(sent) {
  if (sent.links.some((link) => link.state === "broken")) return ["F", sent.ended ? "broken" : "trouble"];
  if (sent.ended) return sent.links.some((link) => link.state === "missing") ? ["F", "incomplete"] : ["P", "arrived"];
  return sent.lost ? ["H", "no longer followed"] : ["K", "under way"];
}

// What the feed and the databases say of one message, as a report draws it.
function timelineOf(sent) {
  const lanes = ["you"];
  const sources = [];
  const index = (list, name) => (list.includes(name) ? list.indexOf(name) : list.push(name) - 1);
  const events = sent.events.map((number) => activity.byNumber.get(number)).filter(Boolean).map((event) => [(event.at - sent.at) * 1000, event.took_ms, index(lanes, named(event.lane)), event.what, event.text, event.level, 0, -1, null, event]);
  for (const row of sent.moments) events.push([(row.at - sent.at) * 1000, (row.took_s || 0) * 1000, index(lanes, row.lane), row.what, row.text, row.what === "error" ? "error" : "", 0, index(sources, "the database"), row.data]);
  if (!events.length) return null;
  events.sort((a, b) => a[0] - b[0]);
  const originals = events.map((event) => event[9]);
  const line = new Timeline({ events, lanes, sources, messages: [], dropped: 0 }, 0);
  const choose = line.choose.bind(line);
  line.choose = (event, options) => {
    choose(event, options);
    const original = originals[event.number];
    if (original) detail(original).then((parts) => { if (line.chosen === event) line.one.replaceChildren(...parts); });
  };
  return line;
}
