// A list of any length, of which only what is in sight has elements.
class List {
  // box: the element that scrolls. height: of a row, in pixels. draw(item, index) makes one.
  constructor(box, { height, draw }) {
    Object.assign(this, { box, height, draw, items: [], from: -1, to: -1 });
    this.plane = el("div", { role: "list" });
    box.replaceChildren(this.plane);
    box.addEventListener("scroll", () => this.show(), { passive: true });
    new ResizeObserver(() => this.show()).observe(box);
    box.addEventListener("keydown", (event) => this.key(event));
  }

  set(items) {
    this.items = items;
    this.plane.style.height = `${items.length * this.height}px`;
    this.from = this.to = -1;
    this.show();
  }

  show(again = false) {
    const ahead = 8;
    const first = Math.floor(this.box.scrollTop / this.height);
    const from = Math.max(0, first - ahead);
    const to = Math.min(this.items.length, first + Math.ceil(this.box.clientHeight / this.height) + ahead);
    if (from === this.from && to === this.to && !again) return;
    const focused = this.plane.contains(document.activeElement) ? Number(document.activeElement.dataset.at) : -1;
    [this.from, this.to] = [from, to];
    const rows = [];
    for (let at = from; at < to; at++) {
      const row = this.draw(this.items[at], at);
      row.classList.add("row");
      row.dataset.at = at;
      const cell = el("div", { role: "listitem", "aria-setsize": this.items.length, "aria-posinset": at + 1 }, row);
      row.style.top = `${at * this.height}px`;
      rows.push(cell);
    }
    this.plane.replaceChildren(...rows);
    if (focused >= 0) this.focus(focused);
  }

  // Bring a row into sight, in the middle when it was far away.
  reveal(at) {
    const top = at * this.height;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop || top + this.height > scrollTop + clientHeight) {
      this.box.scrollTop = Math.max(0, top - clientHeight / 2);
    }
    this.show();
  }

  focus(at) {
    this.plane.querySelector(`[data-at="${at}"]`)?.focus({ preventScroll: true });
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !this.items.length) return;
    const now = this.plane.contains(document.activeElement) ? Number(document.activeElement.dataset.at) : this.from - 1;
    const at = Math.min(this.items.length - 1, Math.max(0, now + step));
    event.preventDefault();
    this.reveal(at);
    this.focus(at);
  }
}
