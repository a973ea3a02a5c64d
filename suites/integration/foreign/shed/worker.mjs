// The worker: sessions with files, commands and a record of what was done.
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { asset, operations } from "./files.mjs";
import { cancel, execute } from "./commands.mjs";
import { No, serve } from "./serving.mjs";

const [host, port, data] = process.argv.slice(2);
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;
const PAGE = 500;
const lines = new Map(); // session → its events

fs.mkdirSync(`${data}/sessions`, { recursive: true });
fs.mkdirSync(`${data}/shared`, { recursive: true });
fs.chmodSync(`${data}/shared`, 0o1777);

function sessionOf(request) {
  const id = request.headers["x-session-id"] ?? "";
  if (!NAME.test(id) || id.includes("..")) throw new No(422, "X-Session-ID is missing, or no name of a session");
  const home = `${data}/sessions/${id}`;
  const number = createHash("sha256").update(id).digest().readUInt32BE() % 1_000_000;
  const uid = process.getuid() === 0 ? 1_000_000 + number : process.getuid();
  const session = { id, uid, work: `${home}/work`, aside: `${home}/aside`, record: `${home}/events.jsonl`, shared: `${data}/shared` };
  if (!fs.existsSync(session.record)) {
    for (const folder of [session.work, session.aside]) fs.mkdirSync(folder, { recursive: true });
    fs.chownSync(session.work, uid, uid);
    fs.writeFileSync(session.record, "", { flag: "a" });
  }
  return session;
}

/** The events of a session; what was written of one that a crash cut off is taken back. */
function events(session) {
  if (!lines.has(session.id)) {
    const whole = fs.readFileSync(session.record, "utf8");
    const kept = whole.slice(0, whole.lastIndexOf("\n") + 1);
    if (kept.length < whole.length) fs.truncateSync(session.record, Buffer.byteLength(kept));
    lines.set(session.id, kept.split("\n").slice(0, -1).map((line) => JSON.parse(line)));
  }
  return lines.get(session.id);
}

function record(session, tool, asked, told) {
  const known = events(session);
  const short = Object.entries(asked).map(([name, value]) =>
    [name, name !== "path" && String(value).length > 200 ? `${String(value).length} characters` : value]);
  const payload = { tool, arguments: Object.fromEntries(short), ...told };
  const event = { session_id: session.id, source: "worker", seq: known.length + 1, kind: "tool_call", time: new Date().toISOString(), episode_id: null, trace_id: null, payload };
  const before = fs.statSync(session.record).size;
  try {
    fs.appendFileSync(session.record, `${JSON.stringify(event)}\n`);
  } catch (error) {
    fs.truncateSync(session.record, before);
    throw error;
  }
  known.push(event);
}

/** A route whose work is recorded, whether it was carried out or refused. */
function recorded(path, tool, takes, work) {
  const run = async ({ request, response, body }) => {
    const session = sessionOf(request);
    let answer;
    try {
      answer = await work(session, body, response);
    } catch (error) {
      record(session, tool, body, { ok: false, status: error.status ?? 500, reason: error.message });
      throw error;
    }
    record(session, tool, body, { ok: true });
    return answer;
  };
  return { method: "POST", path, takes, session: true, run };
}

const COMMAND = {
  command: { type: "string", least: 1, most: 100_000 },
  timeout_s: { type: "number", above: 0, most: 600, optional: true, default: 30 },
  job_id: { type: "string", most: 128, pattern: "[A-Za-z0-9][A-Za-z0-9._-]*", optional: true },
};

const routes = [
  { method: "GET", path: "/health", run: () => ({ status: "healthy", dependencies: { disk: fs.existsSync(data) ? "ok" : "gone" } }) },
  ...Object.entries(operations).map(([name, [takes, work]]) => recorded(`/fs/${name}`, `fs_${name}`, takes, work)),
  recorded("/runtime/execute", "execute", COMMAND, execute),
  { method: "POST", path: "/jobs/{job}/cancel", session: true, run: ({ request, field }) => cancel(sessionOf(request), field) },
  { method: "GET", path: "/assets/{path}", session: true, answers: "bytes", run: ({ request, field }) => asset(sessionOf(request), field) },
  { method: "GET", path: "/events", session: true, run: ({ request, query }) => {
    const after = query.get("after") ?? "0";
    if (!/^\d{1,15}$/.test(after)) throw new No(422, "after must be the number of an event, or 0");
    const known = events(sessionOf(request));
    return { events: known.slice(Number(after), Number(after) + PAGE), last_seq: known.length };
  } },
];

serve({ title: "shed: worker", host, port: Number(port), key: process.env.SHED_KEY, names: (process.env.SHED_NAMES ?? "").split(" "), routes });
