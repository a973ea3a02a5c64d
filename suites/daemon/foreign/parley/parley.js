// Parley: a daemon that speaks framed s-expressions, for Node 18 or newer, without packages.
//
//     node parley.js SETTINGS.json        {"port": 9105, "work": "where its commands run"}
//
// It answers from one event loop, writes its frames in lower case with a newline behind each, wants a
// META with every text, never reports the outcome of a command, and has its port from a file.
// PARLEY_FAULT names one of its planted faults (faults.toml).
'use strict';

const fs = require('fs');
const net = require('net');
const { spawn } = require('child_process');
const { Malformed, get, isPlist, key, named, plist, printForm, readForm } = require('./forms');
const { Frames, frame } = require('./frames');

const FAULT = process.env.PARLEY_FAULT ?? '';
const settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const limit = (name, otherwise) => Number(process.env[`PARLEY_${name}`] ?? otherwise);
const LIMITS = {
  characters: limit('CHARACTERS', 65536),
  depth: limit('DEPTH', 64),
  frame_ms: limit('FRAME_S', 20) * 1000,
  idle_ms: limit('IDLE_S', 120) * 1000,
  connections: limit('CONNECTIONS', 256),
};
const UNWRITTEN_BYTES = 1 << 20; // unread by a client, after which it is read no further
const LINGER_MS = 1000;          // for a client to read why it is sent away
const COMMAND_MS = 20000;
const STOP_MS = 3000;            // for clients to take what was said, after which it ends all the same

const SKILLS = { echo: /^echo: ([^]*)$/, ping: /^ping$/ };
const GATEWAYS = { terminal: 'TUI', 'command-line': 'CLI', browser: 'WEB' };
const HANDSHAKE = plist({
  TYPE: key('EVENT'),
  PAYLOAD: plist({ ACTION: key('HANDSHAKE'), VERSION: 'parley 1.4', CAPABILITIES: [key('TEXT'), key('SHELL')] }),
});

const connections = new Set();
const commands = new Set();
const kept = [];

const event = (properties) => plist({ TYPE: key('EVENT'), PAYLOAD: plist(properties) });
const error = (text) => plist({ TYPE: key('LOG'), PAYLOAD: plist({ LEVEL: key('ERROR'), TEXT: text }) });
const rows = (all) => all.map((row) => plist(row));

// --- what is asked -----------------------------------------------------------------------------------

class Mistake extends Error {} // well-formed, and means nothing

const answerTo = (message) => {
  switch (named(get(message, 'TYPE'))) {
    case 'HEALTH-CHECK':
      return plist({ TYPE: key('HEALTH-RESPONSE'), STATUS: key('HEALTHY'), 'CHECKED-P': { text: 't' } });
    case 'EVENT': return happened(message);
    case 'REQUEST': return requested(message);
    default: throw new Mistake('the :type is none that is known');
  }
};

const payloadOf = (message) => {
  const payload = get(message, 'PAYLOAD');
  if (payload === undefined || !isPlist(payload)) throw new Mistake('there is no :payload');
  return payload;
};

const happened = (message) => {
  const payload = payloadOf(message);
  const sensor = named(get(payload, 'SENSOR'));
  if (sensor === 'HEARTBEAT') return undefined;
  if (sensor !== 'USER-INPUT') throw new Mistake('the :sensor is none that is known');
  const meta = get(message, 'META');
  if (meta === undefined || !isPlist(meta)) throw new Mistake('a text needs a :meta');
  const source = named(get(meta, 'SOURCE'));
  if (!Object.values(GATEWAYS).includes(source)) throw new Mistake('the :source is no gateway');
  const text = get(payload, 'TEXT');
  if (typeof text !== 'string') throw new Mistake('there is no :text');
  return plist({
    META: plist({ SOURCE: key(source) }),
    TYPE: key('REQUEST'),
    PAYLOAD: plist({ ACTION: key('MESSAGE'), ...said(text) }),
  });
};

const said = (text) => {
  const echo = SKILLS.echo.exec(text);
  if (echo) return { TEXT: echo[1], EXPLANATION: 'as it was said' };
  if (SKILLS.ping.test(text)) return { TEXT: 'pong', EXPLANATION: 'still here' };
  return { TEXT: `I cannot say much to ${[...text].length} characters.`, EXPLANATION: 'no skill knows it' };
};

const requested = (message) => {
  const payload = payloadOf(message);
  const what = `${named(get(message, 'TARGET'))} ${named(get(payload, 'ACTION'))}`;
  switch (what) {
    case 'SKILL LIST':
      return event({ SENSOR: key('SKILL-LIST'), SKILLS: rows(Object.keys(SKILLS).map((NAME) => ({ NAME }))) });
    case 'GATEWAY LIST':
      return event({
        SENSOR: key('GATEWAY-LIST'),
        GATEWAYS: rows(Object.entries(GATEWAYS).map(([NAME, source]) => ({ NAME, SOURCE: key(source) }))),
      });
    case 'SHELL EXECUTE': return execute(get(payload, 'CMD'));
    default: throw new Mistake(`no target knows the action ${what.toLowerCase()}`);
  }
};

// What runs is known beforehand; a shell knows too many ways to do something else.
const KNOWN = /^(true|pwd|sleep [0-9.]{1,9}|echo( [\w.:-]+)*( > [\w-]+\.txt)?)$/;

const execute = (command) => {
  if (typeof command !== 'string') throw new Mistake('there is no :cmd');
  const known = KNOWN.test(command) || FAULT === 'runs-what-it-blocks';
  if (known) {
    const child = spawn('/bin/sh', ['-c', command], { cwd: settings.work, detached: true, stdio: 'ignore' });
    const timer = setTimeout(() => end(child), COMMAND_MS);
    commands.add(child);
    child.on('error', () => commands.delete(child));
    child.on('exit', () => { clearTimeout(timer); commands.delete(child); });
  }
  return KNOWN.test(command) ? undefined : error('blocked: only a few commands are run');
};

const end = (child) => {
  try { process.kill(-child.pid, 'SIGKILL'); } catch (gone) { if (gone.code !== 'ESRCH') throw gone; }
};

// --- who asks ----------------------------------------------------------------------------------------

class Conversation {
  constructor(socket) {
    this.socket = socket;
    this.frames = new Frames(FAULT === 'reads-any-size' ? Infinity : LIMITS.characters);
    this.spoke = false;
    this.closing = false;
    this.over = false;
    connections.add(this);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => { this.stopClocks(); connections.delete(this); });
    socket.on('data', (bytes) => { if (!this.closing) { this.frames.feed(bytes); this.work(); } });
    socket.on('drain', () => this.work());
    socket.on('end', () => { this.over = true; this.work(); });
    this.say(HANDSHAKE);
    this.waitForNext();
  }

  say(form) {
    const payload = printForm(form);
    const count = FAULT === 'counts-bytes' ? Buffer.byteLength(payload) : undefined;
    this.socket.write(frame(payload, count));
  }

  stopClocks() { clearTimeout(this.idle); clearTimeout(this.slow); this.slow = undefined; }

  waitForNext() {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.leave('nothing was said for too long: over the limit of 1 idle time'), LIMITS.idle_ms);
  }

  // Answer all that is there, but no faster than it is read.
  work() {
    try {
      while (!this.closing) {
        if (this.socket.writableLength > UNWRITTEN_BYTES) { this.socket.pause(); return; }
        const before = this.frames.midway;
        const payload = this.frames.next();
        if (payload === undefined) break;
        if (before || this.slow) { clearTimeout(this.slow); this.slow = undefined; }
        this.spoke = true;
        this.waitForNext();
        this.answer(payload);
      }
    } catch (wrong) {
      if (!(wrong instanceof Malformed)) throw wrong;
      if (FAULT === 'dies-of-junk') throw wrong;
      this.leave(wrong.message);
      return;
    }
    if (this.closing) return;
    this.socket.resume();
    if (this.over) {
      if (this.frames.midway) this.leave(`the frame ends ${this.frames.progress}`);
      else { this.closing = true; this.stopClocks(); this.socket.end(); }
    } else if (this.frames.midway && !this.slow) {
      this.slow = setTimeout(
        () => this.leave(`a frame takes longer than its time of ${LIMITS.frame_ms / 1000} s, ${this.frames.progress}`),
        LIMITS.frame_ms,
      );
    }
  }

  answer(payload) {
    const message = readForm(payload, { depth: LIMITS.depth, evaluates: FAULT === 'evaluates' });
    if (!isPlist(message) || !message.length) throw new Malformed('0 keywords: the payload is no property list');
    if (FAULT === 'keeps-frames') kept.push(Buffer.from(payload));
    let answer;
    try {
      answer = answerTo(message);
    } catch (mistake) {
      if (!(mistake instanceof Mistake)) throw mistake;
      answer = error(mistake.message);
    }
    const last = [...connections].at(-1);
    const misled = FAULT === 'answers-the-last' && get(message, 'PAYLOAD') !== undefined;
    if (answer !== undefined) (misled ? last : this).say(answer);
  }

  // Say why, then end; what still comes is not looked at.
  leave(why) {
    if (this.closing) return;
    this.closing = true;
    this.stopClocks();
    this.say(error(why));
    this.socket.end();
    this.socket.resume();
    setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
  }
}

// A client that has said nothing makes room for one that may.
const greet = (socket) => {
  const open = [...connections].filter((each) => !each.closing);
  const full = open.length >= LIMITS.connections;
  const silent = full && open.find((each) => !each.spoke);
  if (silent) silent.leave(`more than ${LIMITS.connections} connections`);
  const conversation = new Conversation(socket);
  if (full && !silent) conversation.leave(`more than ${LIMITS.connections} connections`);
};

const server = net.createServer({ allowHalfOpen: true }, greet);
server.on('error', (wrong) => {
  process.stderr.write(`parley: cannot listen on port ${settings.port}: ${wrong.message}\n`);
  process.exit(1);
});
for (const number of ['SIGTERM', 'SIGINT']) {
  process.on(number, () => {
    server.close();
    for (const child of commands) end(child);
    for (const each of connections) { each.closing = true; each.socket.destroySoon(); }
    setTimeout(() => process.exit(0), STOP_MS);
    setInterval(() => { if (!connections.size) process.exit(0); }, 10);
  });
}
server.listen({ port: settings.port, host: '127.0.0.1', backlog: 511 }, () => {
  process.stdout.write('parley: ready\n');
});
