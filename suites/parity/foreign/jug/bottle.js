'use strict';
// A bottle's manifest and environment, its record, and who holds it.

const fs = require('node:fs');
const path = require('node:path');
const crypto = require('node:crypto');
const { alone, bytesOf, environ, fault, hide, home, made, read, refuse, root, told, written } = require('./base');
const { NoYaml, parse } = require('./yaml');

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const KEYS = { env: 'map', image: 'string', agent_provider: 'string', git: 'map', egress: 'map', extends: 'string' };
const BACKENDS = ['docker', 'smolmachines'];

// --- manifests ---------------------------------------------------------------------------------------

function manifestOf(name) {
  const chain = [];
  for (let wanted = name, by = name; wanted !== undefined; ) {
    const at = path.join(root, 'bottles', `${by}.md`);
    const where = chain.length ? `${at}: extends` : at;
    if (!NAME.test(wanted)) refuse(`cannot read ${where}: ${JSON.stringify(wanted)} is no name of a bottle`);
    if (chain.some((each) => each.name === wanted)) refuse(`cannot read ${where}: bottles extend each other, ${wanted} again`);
    const file = path.join(root, 'bottles', `${wanted}.md`);
    const text = read(file, chain.length ? `${where}: ${file}` : file) ?? refuse(`cannot read ${where}: there is no bottle ${wanted}`);
    chain.push({ name: wanted, ...checked(file, frontMatter(file, text)) });
    [wanted, by] = [chain.at(-1).extends, wanted];
  }
  const env = new Map(chain.reverse().flatMap((each) => [...(each.env ?? [])]));
  return { ...Object.assign({ image: 'node:22-slim' }, ...chain), name, env };
}

function frontMatter(file, text) {
  const lines = text.split('\n');
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === '---');
  if (lines[0].trimEnd() !== '---' || end < 0) refuse(`cannot read ${file}: no front matter between two lines of ---`);
  try {
    return parse(lines.slice(1, end).join('\n')) ?? new Map();
  } catch (error) {
    if (error instanceof NoYaml) return refuse(`cannot read ${file}: ${error.message}`);
    throw error;
  }
}

const kindOf = (value) => (value instanceof Map ? 'map' : Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value);

function checked(file, content) {
  const wrong = (key, problem) => refuse(`cannot read ${file}: ${key}${problem}`);
  const is = (key, value, kind) => kindOf(value) === kind || wrong(key, `: found a ${kindOf(value)}, expected a ${kind}`);
  is('the front matter', content, 'map');
  for (const [key, value] of content) {
    if (!(key in KEYS)) {
      if (fault('unknown-key-ignored')) continue;
      wrong(key, `: unknown, expected one of ${Object.keys(KEYS).join(', ')}`);
    }
    is(key, value, KEYS[key]);
  }
  for (const [name, value] of content.get('env') ?? []) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) wrong(`env.${JSON.stringify(name)}`, ' is no name of a variable');
    is(`env.${name}`, value, 'string');
    if (value.includes('\0')) wrong(`env.${name}`, ': a NUL, which no environment can hold');
  }
  for (const [key, routes] of content.get('egress') ?? []) {
    if (key !== 'routes') wrong(`egress.${key}`, ': unknown, expected routes');
    is('egress.routes', routes, 'list');
    routes.forEach((route) => is('egress.routes', route, 'string'));
  }
  if (/^-|^$/.test(content.get('image') ?? 'none')) wrong('image', ' is no name of an image');
  return Object.fromEntries(content);
}

// --- environments ------------------------------------------------------------------------------------

// Values as bytes: what is written in the manifest, and what only the guest may see.
function resolved(manifest, ask) {
  const literals = new Map();
  const hidden = new Map();
  const cannot = (name, why) => refuse(`cannot resolve ${name} of ${manifest.name}.md: ${why}`);
  const variable = (entry) => /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(entry)?.[1];
  for (const [name, entry] of manifest.env) {
    const wanted = variable(entry);
    if (wanted !== undefined && !environ.has(wanted)) cannot(name, `the host has no variable ${wanted}`);
  }
  for (const [name, entry] of manifest.env) {
    if (entry.startsWith('?')) {
      const message = entry.slice(1).trim() || 'Value';
      hidden.set(name, ask(`${message} (${name}): `) ?? cannot(name, 'the prompt had no answer'));
    } else if (variable(entry) !== undefined) hidden.set(name, environ.get(variable(entry)));
    else literals.set(name, bytesOf(fault('lines-of-dos-folded') ? entry.replace(/\r\n/g, '\n') : entry));
  }
  hide([...literals.values(), ...hidden.values()]);
  return { literals, hidden };
}

function chosen(flag) {
  const name = flag ?? process.env.BOT_BOTTLE_BACKEND ?? 'docker';
  return BACKENDS.includes(name) ? name : refuse(`cannot use the backend ${name}, expected one of ${BACKENDS.join(', ')}`);
}

// --- records -----------------------------------------------------------------------------------------

const folderOf = (identity) => path.join(root, 'state', identity);
const isRecorded = (identity) => NAME.test(identity) && fs.existsSync(folderOf(identity));
const isPreserved = (identity) => fs.existsSync(path.join(folderOf(identity), 'preserve'));

function identities() {
  const folder = path.join(root, 'state');
  return fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
}

const TYPES = { identity: 'string', agent_name: 'string', cwd: 'string', copy_cwd: 'boolean', started_at: 'string', compose_project: 'string', backend: 'string' };

function recordOf(identity) {
  if (!NAME.test(identity)) refuse(`cannot find ${JSON.stringify(identity)}: that is no identity of a bottle`);
  if (!isRecorded(identity)) refuse(`cannot find ${identity}: nothing is recorded in ${folderOf(identity)}`);
  const file = path.join(folderOf(identity), 'metadata.json');
  const content = jsonOf(file, read(file) ?? refuse(`cannot read ${file}: it is missing`));
  const record = { compose_project: '', backend: '', ...content };
  for (const [key, type] of Object.entries(TYPES)) {
    if (typeof record[key] !== type) refuse(`cannot read ${file}: ${key} is no ${type}`);
  }
  if (record.identity !== identity) refuse(`cannot read ${file}: it is the record of another`);
  record.backend ||= 'docker';
  if (!BACKENDS.includes(record.backend)) {
    refuse(`cannot use ${file}: backend is ${JSON.stringify(record.backend)}, expected one of ${BACKENDS.join(', ')}`);
  }
  return record;
}

function jsonOf(file, text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    refuse(`cannot read ${file}: it is damaged`);
  }
  return kindOf(content) === 'object' ? content : refuse(`cannot read ${file}: found no mapping`);
}

// Record a bottle and hold it; nobody sees half of it.
async function recorded(name, backend) {
  const identity = `${name}-${crypto.randomBytes(4).toString('hex')}`;
  const draft = path.join(root, 'new', identity);
  await alone('jug', () => {
    made(path.join(draft, 'transcript'));
    made(path.join(root, 'state'));
    const record = { identity, agent_name: name, cwd: process.cwd(), copy_cwd: false, started_at: new Date().toISOString(), compose_project: '', backend };
    written(path.join(draft, 'metadata.json'), `${JSON.stringify(record)}\n`);
    written(path.join(draft, 'hold'), me());
    told(`record ${identity}`, () => fs.renameSync(draft, folderOf(identity)));
  });
  return identity;
}

// Remove what is recorded of a bottle. One that is preserved is let go of: nobody preserves it meanwhile.
async function forget(identity) {
  await alone('jug', () => {
    if (isPreserved(identity)) return letGo(identity);
    const trash = path.join(root, 'new', `${identity}.${process.pid}`);
    made(path.dirname(trash));
    told(`remove the record of ${identity}`, () => {
      fs.renameSync(folderOf(identity), trash);
      fs.rmSync(trash, { recursive: true });
    });
  });
}

// --- who holds a bottle ------------------------------------------------------------------------------

// When a process began, by which its number is known to be still its own; undefined once it ended.
function began(pid) {
  try {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
    return /[ZX]/.test(fields[0]) ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

const me = () => `${process.pid} ${began(process.pid)}`;
const holdOf = (identity) => path.join(folderOf(identity), 'hold');

// The process that runs a bottle, as long as it lives.
function holder(identity) {
  const [pid, time] = (read(holdOf(identity)) ?? '').split(' ');
  return pid && began(pid) === time ? Number(pid) : undefined;
}

function letGo(identity) {
  told(`let go of ${identity}`, () => fs.rmSync(holdOf(identity), { force: true }));
}

module.exports = {
  BACKENDS, chosen, folderOf, forget, holdOf, holder, home, identities, isRecorded,
  jsonOf, letGo, manifestOf, me, recordOf, recorded, resolved,
};
