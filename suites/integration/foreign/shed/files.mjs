// A session's files. A path is walked from descriptor to descriptor, each opened without following a link, so
// that what is judged is what is opened.
import { createHash, randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { No, fault } from "./serving.mjs";

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
const RECORD = "events.jsonl";
const ENTRIES = 5000;
const MATCHES = 500;

const below = (descriptor, name) => Buffer.concat([Buffer.from(`/proc/self/fd/${descriptor}/`), Buffer.from(name)]);
const about = (path, bytes) => ({ path, size_bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") });

/** The parts of a path inside the session. */
function parts(path, { itself = false } = {}) {
  if (path.startsWith("/")) throw new No(403, "the path is none of the session");
  const found = [];
  for (const part of path.split("/")) {
    if (part === "..") {
      if (!found.length) throw new No(403, "the path leads out of the session");
      found.pop();
    } else if (part && part !== ".") found.push(part);
  }
  if (!found.length && !itself) throw new No(422, "the path is the session itself");
  return found;
}

function opening(path, flags, mode = 0o644) {
  try {
    return fs.openSync(path, flags, mode);
  } catch (error) {
    if (error.code === "ENOENT") throw new No(404, "there is no such file");
    if (["ELOOP", "ENOTDIR", "EISDIR", "EEXIST", "ENXIO"].includes(error.code)) throw new No(409, "the path is no file, or a link");
    if (["ENAMETOOLONG", "EINVAL"].includes(error.code)) throw new No(422, "the path is too long");
    throw error;
  }
}

/** Do something in the folder of a path; `make` makes it. */
function within(session, folders, use, { make = false } = {}) {
  let at = fs.openSync(session.work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    for (const folder of folders) {
      if (make)
        try {
          fs.mkdirSync(below(at, folder));
          fs.lchownSync(below(at, folder), session.uid, session.uid);
        } catch (error) {
          if (error.code === "ENAMETOOLONG") throw new No(422, "the path is too long");
          if (error.code !== "EEXIST") throw error;
        }
      const next = opening(below(at, folder), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      fs.closeSync(at);
      at = next;
    }
    return use(at);
  } finally {
    fs.closeSync(at);
  }
}

function content(session, path) {
  const found = parts(path);
  if (found.join("/") === RECORD) return fs.readFileSync(session.record);
  return within(session, found.slice(0, -1), (folder) => {
    const file = opening(below(folder, found.at(-1)), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      if (!fs.fstatSync(file).isFile()) throw new No(409, "the path is no file");
      return fs.readFileSync(file);
    } finally {
      fs.closeSync(file);
    }
  });
}

function put(session, path, bytes, { make }) {
  const found = parts(path);
  if (found.join("/") === RECORD) throw new No(403, "the record is the worker's");
  const aside = `${session.aside}/${randomBytes(8).toString("hex")}`;
  const file = fs.openSync(aside, O_WRONLY | O_CREAT | O_EXCL, 0o644);
  try {
    fs.writeFileSync(file, bytes);
    fs.fchownSync(file, session.uid, session.uid);
    within(session, found.slice(0, -1), (folder) => {
      const place = below(folder, found.at(-1));
      const there = fs.lstatSync(place, { throwIfNoEntry: false });
      if (there && !there.isFile() && !there.isSymbolicLink()) throw new No(409, "there is something else of that name");
      fs.renameSync(aside, place);
    }, { make });
  } catch (error) {
    fs.rmSync(aside, { force: true });
    if (error.code === "ENAMETOOLONG") throw new No(422, "the path is too long");
    throw error;
  } finally {
    fs.closeSync(file);
  }
  return about(path, bytes);
}

function text(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new No(415, "the file is no text");
  }
}

/** Every entry below a folder: yields [path, kind, size, descriptor of its folder, name]. */
function* entries(folder, before, recursive) {
  for (const name of fs.readdirSync(`/proc/self/fd/${folder}`, { encoding: "buffer" })) {
    const stat = fs.lstatSync(below(folder, name), { throwIfNoEntry: false });
    if (!stat) continue;
    const path = before + name.toString();
    if (path === RECORD) continue;
    const kind = stat.isDirectory() ? "directory" : stat.isSymbolicLink() ? "link" : "file";
    yield { path, kind, size_bytes: stat.size, folder, name };
    if (kind === "directory" && recursive) yield* inside(folder, name, `${path}/`);
  }
}

function* inside(folder, name, before) {
  let next;
  try {
    next = fs.openSync(below(folder, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch {
    return; // it went, or is a link by now
  }
  try {
    yield* entries(next, before, true);
  } finally {
    fs.closeSync(next);
  }
}

function list(session, { path, recursive }) {
  const folders = parts(path, { itself: true });
  return within(session, folders, (folder) => {
    const found = [];
    for (const { path: each, kind, size_bytes } of entries(folder, folders.map((one) => `${one}/`).join(""), recursive)) {
      if (found.length === ENTRIES) return { entries: found, truncated: true };
      found.push({ path: each, kind, size_bytes });
    }
    return { entries: found, truncated: false };
  });
}

function edit(session, { path, old, new: fresh }) {
  const bytes = content(session, path);
  const wanted = Buffer.from(old);
  const at = bytes.indexOf(wanted);
  if (at < 0) throw new No(409, "the text does not occur");
  if (bytes.indexOf(wanted, at + 1) >= 0 && fault !== "first-of-several") throw new No(409, "the text occurs more than once");
  const whole = Buffer.concat([bytes.subarray(0, at), Buffer.from(fresh), bytes.subarray(at + wanted.length)]);
  return put(session, path, whole, { make: false });
}

function grep(session, { path, pattern }) {
  let wanted;
  try {
    wanted = new RegExp(pattern, "u");
  } catch {
    throw new No(422, "the pattern is no regular expression");
  }
  const matches = [];
  const search = (name, bytes) => {
    let lines;
    try {
      lines = text(bytes).split("\n");
    } catch {
      return false;
    }
    for (const [at, line] of lines.entries()) {
      if (!wanted.test(line)) continue;
      if (matches.length === MATCHES) return true;
      matches.push({ path: name, line: at + 1, text: line });
    }
    return false;
  };
  const found = parts(path, { itself: true });
  let truncated = false;
  try {
    within(session, found, (folder) => {
      for (const each of entries(folder, found.map((one) => `${one}/`).join(""), true)) {
        if (each.kind !== "file") continue;
        let file;
        try {
          file = fs.openSync(below(each.folder, each.name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        } catch {
          continue; // it went meanwhile
        }
        try {
          if (fs.fstatSync(file).isFile()) truncated ||= search(each.path, fs.readFileSync(file));
        } finally {
          fs.closeSync(file);
        }
        if (truncated) break;
      }
    });
  } catch (error) {
    if (!(error instanceof No) || error.status !== 409) throw error;
    truncated = search(found.join("/"), content(session, path));
  }
  return { matches, truncated };
}

function remove(session, { path }) {
  const found = parts(path);
  if (found.join("/") === RECORD) throw new No(403, "the record is the worker's");
  within(session, found.slice(0, -1), (folder) => gone(folder, found.at(-1)));
  return { path };
}

function gone(folder, name) {
  const stat = fs.lstatSync(below(folder, name), { throwIfNoEntry: false });
  if (!stat) throw new No(404, "there is no such file");
  if (!stat.isDirectory()) return fs.unlinkSync(below(folder, name));
  const next = opening(below(folder, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    for (const each of fs.readdirSync(`/proc/self/fd/${next}`, { encoding: "buffer" })) gone(next, each);
  } finally {
    fs.closeSync(next);
  }
  fs.rmdirSync(below(folder, name));
}

const PATH = { type: "string", least: 1, most: 1000 };
const TEXT = { type: "string", most: 2_000_000, any: true };
const HERE = { ...PATH, optional: true, default: "." };

/** Operation → what it takes, and what it does in a session. */
export const operations = {
  ls: [{ path: HERE, recursive: { type: "boolean", optional: true, default: false } }, list],
  read: [{ path: PATH }, (session, { path }) => {
    const bytes = content(session, path);
    return { content: text(bytes), ...about(path, bytes) };
  }],
  write: [{ path: PATH, content: TEXT }, (session, asked) => put(session, asked.path, Buffer.from(asked.content), { make: true })],
  edit: [{ path: PATH, old: { ...TEXT, least: 1 }, new: TEXT }, edit],
  grep: [{ path: HERE, pattern: { type: "string", least: 1, most: 500 } }, grep],
  delete: [{ path: PATH }, remove],
};

export const asset = (session, path) => {
  if (path.includes("\0")) throw new No(400, "the path holds U+0000");
  return content(session, path);
};
