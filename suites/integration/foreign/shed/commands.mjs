// A session's commands: each in walls of its own, ended with all that it started.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, existsSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { No, fault } from "./serving.mjs";

const KEPT = 200_000;
const instance = randomUUID();
const running = new Map(); // `session job` → { end, ended }

/** Run a command to its end, its time, or its cancellation. */
export async function execute(session, { command, timeout_s, job_id }, response) {
  const job = job_id ?? randomUUID();
  const name = `${session.id} ${job}`;
  if (running.has(name)) throw new No(409, "a job of that name runs");
  const began = performance.now();
  const child = spawn("bwrap", walls(session, command), { stdio: ["ignore", "pipe", "pipe", "pipe"], env: {} });
  const told = { timed_out: false, cancelled: false };
  const end = () => child.kill("SIGKILL");
  const streams = [kept(child.stdout), kept(child.stderr)];
  const first = inner(child.stdio[3]);
  const code = new Promise((done) => child.on("exit", (status, signal) => done(signal ? -9 : status)));
  const ended = code.then(async (status) => {
    const pid = await first;
    while (pid && alive(pid)) await new Promise((done) => setImmediate(done));
    return status;
  });
  running.set(name, { end: () => { told.cancelled = true; end(); }, ended });
  const timer = setTimeout(() => { told.timed_out = true; end(); }, timeout_s * 1000);
  response.on("close", end);
  try {
    const exit_code = await ended;
    const [stdout, stderr] = await Promise.all(streams);
    return {
      job_id: job, exit_code, stdout: stdout.text, stderr: stderr.text,
      truncated: (stdout.cut || stderr.cut) && fault !== "cut-in-silence", ...told,
      duration_s: (performance.now() - began) / 1000,
      executed_by: { service: "worker", instance, pid: child.pid },
    };
  } finally {
    clearTimeout(timer);
    running.delete(name);
  }
}

/** End a job of the session; it has no process any more. */
export async function cancel(session, job) {
  const found = running.get(`${session.id} ${job}`);
  if (!found) throw new No(404, "no such job runs");
  found.end();
  await found.ended;
  return { job_id: job, was_running: true };
}

function walls(session, command) {
  const root = process.getuid() === 0;
  const own = root
    ? ["setpriv", `--reuid=${session.uid}`, `--regid=${session.uid}`, "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
    : [];
  const limits = ["prlimit", "--nproc=64", "--as=4294967296", "--fsize=67108864", "--core=0", "--nofile=1024"];
  return [
    ...(root ? [] : ["--unshare-user", "--cap-drop", "ALL"]),
    ...["--unshare-pid", "--die-with-parent", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--new-session", "--clearenv", "--info-fd", "3"],
    ...["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/work", "--setenv", "LANG", "C.UTF-8"],
    ...["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"],
    ...["/etc/alternatives", "/etc/ld.so.cache", "/etc/passwd", "/etc/group"].flatMap((each) => ["--ro-bind-try", each, each]),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...(fault === "one-tmp" ? ["--bind", session.shared, "/tmp"] : ["--perms", "1777", "--tmpfs", "/tmp"]),
    ...["--perms", "1777", "--tmpfs", "/var/tmp", "--bind", session.work, "/work", "--ro-bind", session.record, "/work/events.jsonl"],
    ...["--chdir", "/work", "--", ...own, ...limits, "sh", "-c", command],
  ];
}

async function kept(stream) {
  const chunks = [];
  let size = 0;
  let cut = false;
  for await (const chunk of stream) {
    const room = KEPT - size;
    cut ||= chunk.length > room;
    if (room > 0) chunks.push(chunk.subarray(0, room));
    size += Math.min(chunk.length, room);
  }
  return { text: Buffer.concat(chunks).toString(), cut };
}

/** The first process behind the walls: when it is gone, all are. */
async function inner(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return JSON.parse(text || "{}")["child-pid"] ?? 0;
}

function alive(pid) {
  if (!existsSync(`/proc/${pid}`)) return false;
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
