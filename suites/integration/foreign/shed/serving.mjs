// HTTP: whom a request is for, who sent it, which route takes it, and what is written down of the routes.
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

export const fault = process.env.SHED_FAULT ?? "";

/** A refusal: its status, and one sentence for people. */
export class No extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const OPEN = new Set(["GET /health", "HEAD /health", "GET /openapi.json", "HEAD /openapi.json"]);
const BODY_BYTES = 16_000_000;
const digest = (text) => createHash("sha256").update(text).digest();

/**
 * Serve routes until SIGTERM.
 * @param title what the document calls the service
 * @param names `HOST:PORT`s of others that pass requests on to it
 * @param routes [{ method, path, takes, answers, run }], run({ request, body, field, query }) → JSON or Buffer
 */
export function serve({ title, host, port, key, names, routes }) {
  const own = new Set([`127.0.0.1:${port}`, `localhost:${port}`, ...names]);
  const secret = digest(key);
  const written = JSON.stringify(documentOf(title, routes));
  const all = [...routes, { method: "GET", path: "/openapi.json", run: () => Buffer.from(written) }];

  const server = createServer(async (request, response) => {
    let status = 200;
    let answer;
    try {
      forUs(request, own);
      const path = request.url.split("?")[0];
      if (!OPEN.has(`${request.method} ${path}`) && !(fault === "open-by-its-look" && path.startsWith("/health")))
        if (!timingSafeEqual(digest(String(request.headers["x-api-key"] ?? "")), secret))
          throw new No(401, "X-API-Key is missing, or is another one");
      const found = routed(all, request.method, path);
      const query = new URLSearchParams(request.url.split("?")[1] ?? "");
      answer = await found.route.run({ request, response, query, field: found.field, body: await bodyOf(request, found.route) });
      status = answer?.status === "unhealthy" ? 503 : 200;
    } catch (error) {
      status = error instanceof No ? error.status : 500;
      answer = { detail: error instanceof No ? error.message : "the service failed" };
      if (status === 500) console.error(error);
    }
    if (response.destroyed) return;
    const raw = Buffer.isBuffer(answer);
    const bytes = raw ? answer : Buffer.from(JSON.stringify(answer));
    const type = raw && request.url !== "/openapi.json" ? "application/octet-stream" : "application/json";
    response.writeHead(status, { "content-type": type, "content-length": bytes.length });
    response.end(request.method === "HEAD" ? undefined : bytes);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(port, host);
  process.on("SIGTERM", () => {
    server.close();
    server.closeAllConnections();
    process.exit(0);
  });
  process.on("SIGXFSZ", () => {}); // a full disk is an error of a write, no end of the service
}

function forUs(request, own) {
  const hosts = request.rawHeaders.filter((_, at) => at % 2 === 1 && request.rawHeaders[at - 1].toLowerCase() === "host");
  if (fault === "any-host") return;
  if (hosts.length !== 1 || !request.url.startsWith("/")) throw new No(400, "name one Host, and a path");
  if (!own.has(hosts[0].toLowerCase())) throw new No(421, "this is another Host");
}

function routed(routes, method, path) {
  const of = routes.map((route) => ({ route, field: matched(route.path, path) })).filter((each) => each.field !== undefined);
  const found = of.find(({ route }) => route.method === method || (route.method === "GET" && method === "HEAD"));
  if (found) return found;
  throw of.length ? new No(405, "not by this method") : new No(404, "there is no such operation");
}

// "/assets/{path}" takes the rest, "/jobs/{job}/cancel" one part.
function matched(shape, path) {
  const [head, tail] = shape.split(/\{\w+\}/);
  if (tail === undefined) return shape === path ? "" : undefined;
  if (!path.startsWith(head) || !path.endsWith(tail) || path.length <= head.length + tail.length) return undefined;
  const field = path.slice(head.length, path.length - tail.length);
  if (tail && field.includes("/")) return undefined;
  try {
    return decodeURIComponent(field);
  } catch {
    throw new No(400, "the path is no UTF-8");
  }
}

async function bodyOf(request, route) {
  if (!route.takes) return {};
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES) throw new No(413, `a request has at most ${BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  let body;
  try {
    body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)));
  } catch {
    throw new No(422, "the body is no JSON");
  }
  if (body === null || typeof body !== "object" || Array.isArray(body)) throw new No(422, "the body is no object");
  for (const [name, rule] of Object.entries(route.takes)) {
    if (body[name] === undefined || (body[name] === null && rule.optional)) {
      if (!rule.optional) throw new No(422, `${name} is missing`);
      body[name] = rule.default;
    } else if (typeof body[name] !== rule.type) throw new No(422, `${name} must be a ${rule.type}`);
    else if (rule.type === "string" && !sound(body[name], rule)) throw new No(422, `${name} is no text that can be taken`);
    else if (rule.type === "number" && !(body[name] > rule.above && body[name] <= rule.most))
      throw new No(422, `${name} must be above ${rule.above}, ${rule.most} at most`);
  }
  const odd = Object.keys(body).find((name) => !(name in route.takes));
  if (odd) throw new No(422, `${JSON.stringify(odd)} is unknown`);
  return body;
}

const sound = (text, rule) =>
  text.isWellFormed() && text.length >= (rule.least ?? 0) && text.length <= rule.most && (rule.any || !text.includes("\0")) &&
  (!rule.pattern || new RegExp(`^(?:${rule.pattern})$`).test(text));

function documentOf(title, routes) {
  const problem = { content: { "application/json": { schema: { type: "object", required: ["detail"], properties: { detail: { type: "string" } } } } } };
  const refusals = Object.fromEntries(
    ["400", "401", "403", "404", "405", "409", "413", "415", "421", "422"].map((status) => [status, { description: "refused", ...problem }]),
  );
  const paths = {};
  for (const { method, path, takes, session, answers } of routes) {
    const media = answers === "bytes" ? { "application/octet-stream": {} } : { "application/json": { schema: { type: "object" } } };
    const operation = { responses: { 200: { description: "done", content: media }, ...refusals } };
    if (path === "/health") operation.responses[503] = { description: "unhealthy", content: media };
    operation.parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: "path", required: true, schema: { type: "string" } }));
    if (session) operation.parameters.push({ name: "X-Session-ID", in: "header", required: true, schema: { type: "string" } });
    if (takes)
      operation.requestBody = { required: true, content: { "application/json": { schema: schemaOf(takes) } } };
    (paths[path] ??= {})[method.toLowerCase()] = operation;
  }
  return { openapi: "3.1.0", info: { title, version: "1" }, paths };
}

function schemaOf(takes) {
  const properties = Object.entries(takes).map(([name, rule]) => {
    const bounds = rule.type === "string" ? { minLength: rule.least ?? 0, maxLength: rule.most } : {};
    return [name, { type: rule.type, ...bounds }];
  });
  const required = Object.keys(takes).filter((name) => !takes[name].optional);
  return { type: "object", properties: Object.fromEntries(properties), required, additionalProperties: false };
}
