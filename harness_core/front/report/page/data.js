// What the page knows, and how it makes elements: texts are only ever set as text.
const LETTERS = { failed: "F", "harness could not run": "H", known: "K", "not run": "N", passed: "P" };

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const packed = (id) => document.getElementById(id).textContent;

// The rest of a test: unpacked when it is asked for.
async function detailOf(test) {
  if (!test.size) return {};
  return unpack(packed("details").slice(test.offset, test.offset + test.size));
}

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return filled(made, attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// A link into the evidence beside this file; anything that is no such path is none.
function beside(path, text) {
  return /^\.{1,2}\//.test(path || "") ? el("a", { href: path }, text) : el("span", {}, text);
}

function idOf(id) {
  const at = id.lastIndexOf("::");
  const file = at < 0 ? "" : id.slice(0, at + 2);
  return el("span", { class: "id" }, el("span", { class: "file" }, file), at < 0 ? id : id.slice(at + 2));
}

const dot = (word) => el("span", { class: `dot w-${LETTERS[word]}`, role: "img", "aria-label": word });

function took(seconds) {
  if (seconds >= 90) return `${(seconds / 60).toFixed(1)} min`;
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return `${Math.round(seconds * 1000)} ms`;
}

function size(bytes) {
  if (bytes >= 1048576) return `${(bytes / 1048576).toFixed(1)} MB`;
  return bytes >= 1024 ? `${Math.round(bytes / 1024)} kB` : `${bytes} B`;
}

const moment = (seconds) => (seconds ? new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "");

const earlier = (letters) => {
  const shown = el("span", { class: "runs", role: "img", "aria-label": `earlier runs: ${[...letters].join(" ")}` });
  for (const letter of letters.slice(-12)) shown.append(el("i", { class: `w-${letter}` }));
  return shown;
};

function block(title, note, ...children) {
  const head = el("h2", {}, title, note ? el("span", { class: "dim" }, note) : null);
  return el("section", { class: "block" }, head, children);
}

function save(name, base64, mime) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: mime }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
