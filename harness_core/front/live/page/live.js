// Views, the keyboard, the theme; and what is done with each thing that comes.
const main = document.getElementById("main");

function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = document.getElementById("theme");
  button.textContent = dark ? "light" : "dark";
  button.onclick = () => theme(dark ? "light" : "dark");
  dispatchEvent(new Event("theme"));
}

function route() {
  const name = location.hash.replace(/^#\/?/, "") || "system";
  const view = document.getElementById(`view-${name}`) || document.getElementById("view-system");
  for (const each of document.querySelectorAll(".view")) each.classList.toggle("on", each === view);
  for (const link of document.querySelectorAll(".top nav a")) {
    if (view.id === `view-${link.hash.slice(2) || "system"}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  if (view.id === "view-system") activity.filter();
}

function keys(event) {
  const typing = /INPUT|SELECT|TEXTAREA/.test(document.activeElement?.tagName || "");
  if (event.key === "Escape" && typing) document.activeElement.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const sends = location.hash === "#/messages";
  const acts = {
    s: () => { location.hash = "#/"; },
    m: () => { if (!document.getElementById("to-messages").hidden) location.hash = "#/messages"; },
    f: () => activity.follow(!activity.follows),
    "/": () => document.getElementById(sends ? "offers-words" : "words").focus(),
    "?": () => document.getElementById("keys").showModal(),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
}

function connection(word) {
  const words = { live: "live", lost: "connecting again …", ended: "It has ended, or cannot be reached.", locked: "The token is not valid any more." };
  const link = document.getElementById("link");
  setText(link, words[word]);
  document.body.classList.toggle("stale", word !== "live");
  if (word !== "live") document.getElementById("dot").className = "dot w-N";
  if (word === "ended" || word === "locked") setText(document.getElementById("verdict"), words[word]);
}

theme();
activity.start();
messages.start();
for (const link of document.querySelectorAll("[data-keys]")) link.addEventListener("click", () => document.getElementById("keys").showModal());
addEventListener("hashchange", route);
addEventListener("keydown", keys);
route();
new Stream({
  says: connection,
  take: {
    parts: (parts) => { board.take(parts); document.documentElement.dataset.ready = "1"; },
    began: (seconds) => board.began(seconds),
    spent: (totals) => board.spent(totals),
    offers: (found) => messages.offered(found),
    travels: (travels) => messages.take(travels),
    rows: (rows) => activity.take(rows),
    gap: (count) => { activity.gaps += count; },
    missed: (count) => { activity.missed = count; },
    trouble: (text) => { document.body.classList.toggle("stale", Boolean(text)); if (text) setText(document.getElementById("link"), text); else setText(document.getElementById("link"), "live"); },
  },
}).run();
