#!/usr/bin/env node
'use strict';
// jug: a launcher of bottles on a command line.
//
// `jug start` and `jug resume` stay as long as their bottle runs and end it when they are ended;
// every other command looks at what is recorded, and at who lives.

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { Refusal, alone, argv, fault, made, read, refuse, root, run, said, textOf, told, written } = require('./base');
const bottle = require('./bottle');
const { backends, nameOf, sweep } = require('./guests');

// --- launching -----------------------------------------------------------------------------------------

// Ask on stderr; an answer ends with a NUL, since it may have several lines.
function ask(prompt) {
  fs.writeSync(2, prompt);
  const parts = [];
  const one = Buffer.alloc(65536);
  let count;
  do {
    count = fs.readSync(0, one, 0, one.length);
    parts.push(one.toString('latin1', 0, count));
  } while (count && !parts.at(-1).endsWith('\0'));
  fs.writeSync(2, '\n');
  return count ? parts.join('').slice(0, -1) : undefined;
}

async function start(options, name) {
  const manifest = bottle.manifestOf(name);
  const backend = bottle.chosen(options.backend);
  const env = bottle.resolved(manifest, ask);
  const identity = await bottle.recorded(name, backend);
  try {
    await backends[backend].launch(identity, manifest.image, env);
  } catch (error) {
    await leave(identity, backend).catch(() => {});
    throw error;
  }
  await stay(identity, backend);
}

async function resume(_, identity) {
  const record = bottle.recordOf(identity);
  refuseHeld(identity);
  const manifest = bottle.manifestOf(record.agent_name);
  const env = bottle.resolved(manifest, ask);
  await alone('jug', () => {
    refuseHeld(identity);
    written(bottle.holdOf(identity), bottle.me());
    made(path.join(bottle.folderOf(identity), 'transcript'));
  });
  const image = read(path.join(bottle.folderOf(identity), 'image')) ?? manifest.image;
  try {
    // What a launcher left that died.
    await backends[record.backend].remove(identity);
    await backends[record.backend].launch(identity, image, env);
  } catch (error) {
    await leave(identity, record.backend).catch(() => {});
    throw error;
  }
  await stay(identity, record.backend);
}

function refuseHeld(identity) {
  const pid = bottle.holder(identity);
  if (pid !== undefined) refuse(`cannot launch ${identity}: process ${pid} runs it`);
}

// Tell that it runs, and end it when we are ended.
async function stay(identity, backend) {
  const asked = new Promise((resolve) => ['SIGTERM', 'SIGINT', 'SIGHUP'].forEach((name) => process.on(name, resolve)));
  const clock = setInterval(() => {}, 1 << 30);
  process.stdout.write(`${identity}\n`);
  await asked;
  clearInterval(clock);
  await leave(identity, backend, true);
}

// Remove the guest, and with it what is recorded unless that is preserved. What fails is tried again.
async function leave(identity, backend, ours = false) {
  await backends[backend].remove(identity, ours);
  sweep(identity);
  await bottle.forget(identity);
}

async function stop(_, identity) {
  const pid = bottle.isRecorded(identity) ? bottle.holder(identity) : undefined;
  if (pid !== undefined) {
    process.kill(pid, 'SIGTERM');
    while (bottle.holder(identity) === pid) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (bottle.isRecorded(identity) && fs.existsSync(bottle.holdOf(identity))) {
    await leave(identity, bottle.recordOf(identity).backend);
  }
}

// --- what runs -------------------------------------------------------------------------------------------

async function inGuest(identity, words, how) {
  const { backend } = bottle.recordOf(identity);
  const { status } = await run(backends[backend].exec(identity, words, how), { attached: true });
  process.exitCode = fault('exit-status-is-one') && status ? 1 : status;
}

const exec = (options, identity, script) => inGuest(identity, ['sh', '-c', script], { user: options.user ?? 'node', flags: [] });
const agent = (options, identity, ...words) => inGuest(identity, words, { user: 'node', flags: options.terminal ? ['-i', '-t'] : ['-i'] });

async function cp(_, identity, source, target) {
  const { backend } = bottle.recordOf(identity);
  // A name is bytes, which `path` would take for text.
  const file = source.startsWith('/') ? source : `${fs.readlinkSync('/proc/self/cwd', 'latin1')}/${source}`;
  if (!fs.existsSync(Buffer.from(file, 'latin1'))) refuse(`cannot copy ${textOf(file)}: there is no such file`);
  const done = await run(backends[backend].copy(identity, file, target));
  if (done.status !== 0) refuse(`cannot copy ${textOf(file)}: ${said(done.stderr)}`);
}

async function keep(_, identity) {
  bottle.recordOf(identity);
  await alone('jug', () => {
    told(`preserve ${identity}`, () => fs.writeFileSync(path.join(bottle.folderOf(identity), 'preserve'), ''));
  });
}

async function ps(options) {
  for (const identity of await backends[bottle.chosen(options.backend)].active()) console.log(identity);
}

async function cleanup() {
  const problems = [];
  await alone('jug', () => fs.rmSync(path.join(root, 'new'), { recursive: true, force: true }));
  for (const identity of bottle.identities()) {
    try {
      await clear(identity);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problems.push(error.message);
    }
  }
  if (problems.length) refuse(problems.join('; '));
}

// Remove what a launcher left of a bottle that died.
async function clear(identity) {
  const taken = await alone('jug', () => {
    if (!bottle.isRecorded(identity) || bottle.holder(identity) !== undefined) return false;
    if (!fs.existsSync(bottle.holdOf(identity)) && !fault('preserved-is-removed')) return false;
    written(bottle.holdOf(identity), bottle.me());
    return true;
  });
  if (!taken) return;
  if (fault('preserved-is-removed')) fs.rmSync(path.join(bottle.folderOf(identity), 'preserve'), { force: true });
  await leave(identity, bottle.recordOf(identity).backend);
}

// --- proposals -------------------------------------------------------------------------------------------

const fileOf = (id) => path.join(root, 'proposals', `${id}.json`);

function proposalOf(id) {
  const text = /^c[0-9a-f]{10}$/.test(id) ? read(fileOf(id)) : undefined;
  if (text === undefined) refuse(`cannot find the proposal ${JSON.stringify(id)}`);
  const content = bottle.jsonOf(fileOf(id), text);
  for (const key of ['id', 'identity', 'image', 'justification', 'status']) {
    if (typeof content[key] !== 'string') refuse(`cannot read ${fileOf(id)}: ${key} is no string`);
  }
  if (content.id !== id) refuse(`cannot read ${fileOf(id)}: it is another proposal`);
  if (!['pending', 'applied'].includes(content.status)) refuse(`cannot read ${fileOf(id)}: its status is unknown`);
  return content;
}

function keepProposal(proposal) {
  written(fileOf(proposal.id), `${JSON.stringify(proposal, null, 1)}\n`);
}

function propose(options, identity) {
  bottle.recordOf(identity);
  const [image, justification] = [options.image ?? '', options.why ?? ''];
  if (!image.trim() || !justification.trim()) refuse('cannot queue a proposal without an image and a justification');
  const id = `c${crypto.randomBytes(5).toString('hex')}`;
  made(path.join(root, 'proposals'));
  keepProposal({ id, identity, image, justification, status: 'pending' });
  console.log(id);
}

function proposals() {
  const folder = path.join(root, 'proposals');
  for (const file of fs.existsSync(folder) ? fs.readdirSync(folder).sort() : []) {
    if (!file.endsWith('.json')) continue;
    try {
      const { id, status } = proposalOf(file.slice(0, -'.json'.length));
      if (status === 'pending') console.log(id);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      console.error(`warning: ${error.message}`);
    }
  }
}

async function approve(_, id) {
  proposalOf(id);
  await alone('approvals', async () => {
    const proposal = proposalOf(id);
    if (proposal.status !== 'pending') refuse(`cannot approve ${id}: it was ${proposal.status} before`);
    const { backend } = bottle.recordOf(proposal.identity);
    await backends[fault('approved-elsewhere') ? bottle.chosen() : backend].apply(proposal.identity, proposal.image);
    written(path.join(bottle.folderOf(proposal.identity), 'image'), proposal.image);
    keepProposal({ ...proposal, status: 'applied' });
  });
}

// --- the command line ------------------------------------------------------------------------------------

const COMMANDS = { start, resume, stop, exec, agent, cp, keep, ps, cleanup, propose, proposals, approve };
const OPTIONS = { '--backend': 'backend', '--user': 'user', '--image': 'image', '--why': 'why' };
// Scripts, words and paths are bytes, whatever they say.
const AS_THEY_ARE = ['exec', 'agent', 'cp'];

async function main() {
  const [name, ...words] = argv;
  const command = COMMANDS[name] ?? refuse(`no such command, expected one of ${Object.keys(COMMANDS).join(', ')}`);
  const options = {};
  while (words.length && words[0] !== '--') {
    const word = words.shift();
    if (word === '--terminal') options.terminal = true;
    else if (word in OPTIONS) options[OPTIONS[word]] = textOf(words.shift() ?? '');
    else refuse(`no such option: ${word}`);
  }
  const rest = words.slice(1);
  await command(options, ...(AS_THEY_ARE.includes(name) ? rest : rest.map(textOf)));
}

main().catch((error) => {
  if (!(error instanceof Refusal)) throw error;
  fs.writeSync(2, `jug: ${error.message}\n`);
  process.exitCode = 1;
});
