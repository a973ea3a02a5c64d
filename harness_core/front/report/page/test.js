// One test: what it says, the way of its message, what happened meanwhile, and all it left.
const testView = {
  start(state) {
    this.state = state;
    this.box = document.getElementById("test");
  },

  async open(key) {
    const test = this.state.tests[key];
    if (!test) return this.box.replaceChildren(el("p", {}, "There is no such test in this report."));
    const asked = (this.asked = Symbol(test.id));
    const detail = await detailOf(test);
    if (this.asked !== asked) return;
    document.title = test.id.split("::").pop();
    this.box.replaceChildren(...this.parts(test, detail).filter(Boolean));
  },

  parts(test, detail) {
    const story = { events: [], messages: [], links: [], frames: [], sides: [], plots: [], flames: {}, files: [], lanes: [], sources: [], ...detail };
    const parts = [this.head(test)];
    if (test.why) {
      parts.push(el("div", { class: `sentence w-${LETTERS[test.word]}` }, test.why));
    }
    if ((story.expected || story.found) && !story.sides.length) parts.push(besides(story.expected, story.found));
    if (story.deaths?.length) parts.push(el("div", { class: "warn" }, story.deaths.map((death) => el("div", {}, death))));
    if (story.rerun) parts.push(this.command(story.rerun));
    for (const { message, links } of ways(story)) parts.push(block("Way of the message", message?.text, graphOf(links)));
    if (story.events.length > 1) parts.push(block("Timeline", "ms since the test began; drag to zoom, or + − ← → 0 on the keyboard", new Timeline(story, test.seconds * 1000).element));
    parts.push(...story.sides.map(sidesOf), talkOf(story.frames), picturesOf(story.files));
    if (story.plots.length) parts.push(plotsOf(story.plots));
    for (const [name, file] of Object.entries(story.flames)) parts.push(flamesOf(name, file));
    if (story.said && story.said.includes("\n")) parts.push(more("All it says", story.said, true));
    if (story.text) parts.push(more("The report of pytest", story.text));
    parts.push(filesOf(test, story));
    return parts;
  },

  head(test) {
    const facts = {
      took: took(test.seconds),
      session: test.session,
      began: moment(test.at),
      on: [test.machine, test.worker].filter(Boolean).join(" "),
      cost: test.cost ? `$${test.cost.usd.toFixed(4)}, ${test.cost.calls} calls, ${test.cost.input_tokens} + ${test.cost.output_tokens} tokens` : "",
      shows: test.requirements.join(", "),
    };
    const list = el("ul", { class: "facts" }, Object.entries(facts).filter(([, value]) => value).map(([name, value]) => el("li", {}, `${name} `, el("b", {}, value))));
    if (test.earlier) list.append(el("li", {}, "earlier runs ", earlier(test.earlier)));
    if (test.href) list.append(el("li", {}, beside(test.href, "folder with its evidence")));
    const [file, ...names] = test.id.split("::");
    const head = el("div", { class: "test-head" }, this.crumbs(test), el("h1", {}, names.join("::") || file), list);
    return head;
  },

  crumbs(test) {
    const way = this.state.way || this.state.tests;
    const at = way.indexOf(test);
    const step = (by, text, key) => (way[at + by] && at >= 0 ? el("a", { href: `#/test/${way[at + by].key}`, "data-step": by, title: `${key} on the keyboard` }, text) : null);
    const where = el("span", {}, el("span", { class: `word w-${LETTERS[test.word]}` }, test.word), "  ", el("span", { class: "mono" }, test.id.split("::")[0]));
    return el("div", { class: "crumbs" }, where, el("span", { class: "chips" }, step(-1, "← previous", "k"), step(1, "next →", "j")));
  },

  command(text) {
    const copy = el("button", { type: "button" }, "copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code);
        copy.textContent = "press Ctrl+C";
      }
    });
    const code = el("code", {}, text);
    return el("div", { class: "command", role: "group", "aria-label": "run it again" }, code, copy);
  },
};

// The links by message, in the order in which they were told; broken ways first.
function ways(story) {
  const found = Object.entries(Object.groupBy(story.links, (link) => link.message)).map(([id, links]) => ({
    message: story.messages.find((message) => message.id === id),
    links,
    broken: links.some((link) => link.state !== "held"),
  }));
  return found.sort((a, b) => b.broken - a.broken);
}

function besides(expected, found) {
  const box = (title, text, other) => el("div", {}, el("h3", {}, title), el("pre", { tabindex: "0" }, marked(text, other)));
  return el("div", { class: "beside" }, box("expected", expected, found), box("found", found, expected));
}

// A text with what another one has not in the same place: between their common beginning and end.
function marked(text, other) {
  let [start, end] = [0, 0];
  while (start < Math.min(text.length, other.length) && text[start] === other[start]) start++;
  while (end < Math.min(text.length, other.length) - start && text[text.length - 1 - end] === other[other.length - 1 - end]) end++;
  if (start + end < 3) return [text];
  return [text.slice(0, start), el("mark", {}, text.slice(start, text.length - end)), text.slice(text.length - end)];
}

const more = (title, text, open = false) => el("details", { class: "more", open }, el("summary", {}, title), el("pre", { tabindex: "0" }, text));
