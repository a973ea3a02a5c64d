// Addresses (#/tests?…, #/test/7), the keyboard, the theme.
const main = document.getElementById("main");

function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = document.getElementById("theme");
  button.textContent = dark ? "light" : "dark";
  button.onclick = () => theme(dark ? "light" : "dark");
  dispatchEvent(new Event("theme"));
}

async function route(state) {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, key] = path.split("/");
  const view = document.getElementById(`view-${name || "overview"}`) || document.getElementById("view-overview");
  for (const each of document.querySelectorAll(".view")) each.classList.toggle("on", each === view);
  for (const link of document.querySelectorAll(".top nav a")) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = state.title;
  if (name === "tests") testsView.open(new URLSearchParams(query));
  if (name === "test") await testView.open(Number(key));
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function keys(event) {
  const typing = /INPUT|SELECT|TEXTAREA/.test(document.activeElement?.tagName || "");
  if (event.key === "Escape" && typing) document.activeElement.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = (by) => document.querySelector(`.view.on [data-step="${by}"]`)?.click();
  const acts = {
    "/": () => { location.hash = "#/tests"; setTimeout(() => document.getElementById("tests-search").focus()); },
    j: () => step(1),
    k: () => step(-1),
    o: () => { location.hash = "#/"; },
    t: () => { location.hash = "#/tests"; },
    f: () => { location.hash = state.bad >= 0 ? `#/test/${state.bad}` : "#/tests"; },
    "?": () => document.getElementById("keys").showModal(),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
}

const state = await unpack(packed("index"));
state.tests.forEach((test, key) => { test.key = key; });
state.bad = state.tests.findIndex((test) => test.word === "failed" || test.word === "harness could not run");
theme();
testsView.start(state);
testView.start(state);
if (state.plots.length) document.getElementById("plots").replaceChildren(plotsOf(state.plots));
for (const link of document.querySelectorAll("[data-keys]")) link.addEventListener("click", () => document.getElementById("keys").showModal());
addEventListener("hashchange", () => route(state));
addEventListener("keydown", keys);
await route(state);
document.documentElement.dataset.ready = String(Math.round(performance.now())); // ms since the page was asked for
