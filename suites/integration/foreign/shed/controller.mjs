// The controller: whether the stack is well, and what its sessions did.
import { No, fault, serve } from "./serving.mjs";

const [host, port] = process.argv.slice(2);
const { SHED_KEY: key, SHED_WORKER: worker, SHED_NAMES: names = "" } = process.env;

async function health() {
  if (fault === "well-without-asking") return { status: "healthy", dependencies: { worker: "ok" } };
  try {
    const answer = await fetch(`${worker}/health`, { signal: AbortSignal.timeout(3000) });
    if (answer.ok) return { status: "healthy", dependencies: { worker: "ok" } };
    return { status: "unhealthy", dependencies: { worker: `answers ${answer.status}` } };
  } catch {
    return { status: "unhealthy", dependencies: { worker: "does not answer" } };
  }
}

async function events({ field }) {
  if (!/^[\w.-]{1,100}$/.test(field)) throw new No(404, "there is no such session");
  try {
    const headers = { "x-api-key": key, "x-session-id": field };
    return await (await fetch(`${worker}/events`, { headers, signal: AbortSignal.timeout(3000) })).json();
  } catch {
    throw new No(503, "the worker does not answer");
  }
}

const routes = [
  { method: "GET", path: "/health", run: health },
  { method: "GET", path: "/sessions/{session}/events", run: events },
];

serve({ title: "shed: controller", host, port: Number(port), key, names: names.split(" "), routes });
