'use strict';
// The guests of bottles: containers by `docker`, machines by `smolvm`.
//
// A value that only the guest may see stands in no command line: docker takes it from its own
// environment by its bare name, smolvm under another name. Literals of docker go by a file that
// only its owner reads, and so does what would steer docker itself.

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { bytesOf, environ, fault, hide, home, made, refuse, root, run, said, textOf, told } = require('./base');
const { identities } = require('./bottle');

const nameOf = (identity) => `bot-bottle-${identity}`;
const OWNER = crypto.createHash('sha256').update(home).digest('hex').slice(0, 16);
const STEERS = /^(PATH|HOME|TMPDIR|USER|SHELL|NO_COLOR|(LD|DOCKER|BUILDKIT|COMPOSE|XDG|SSL|OTEL)_.*|GO(DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK|COVERDIR|RACE)|(HTTPS?|NO|ALL)_PROXY)$/i;

async function tool(words, doing, env = environ) {
  const done = await run(words.map(bytesOf), { env });
  if (done.status !== 0) refuse(`cannot ${doing}: ${words[0]} says: ${said(done.stderr) || done.status}`);
  return textOf(done.stdout);
}

function asList(text, doing) {
  try {
    const list = JSON.parse(text);
    if (Array.isArray(list)) return list;
  } catch {
    // Told below.
  }
  return refuse(`cannot ${doing}: the answer is no list`);
}

// --- docker ------------------------------------------------------------------------------------------

const FORMAT = '{{.Names}}\t{{.Label "jug.identity"}}\t{{.Label "jug.names"}}';

const docker = {
  // This home's containers, running or not: name, identity, and the names of its variables.
  async list(...flags) {
    const doing = 'list containers';
    const text = await tool(['docker', 'ps', ...flags, '--filter', `label=jug.home=${OWNER}`, '--format', FORMAT], doing);
    return text.split('\n').filter(Boolean).map((line) => {
      const [name, identity, names, more] = line.split('\t');
      if (!name || !identity || names === undefined || more !== undefined) refuse(`cannot ${doing}: docker says something else`);
      return { name, identity, names };
    });
  },

  async active() {
    return [...new Set((await docker.list()).map((each) => each.identity))];
  },

  async launch(identity, image, env) {
    try {
      await docker.start(nameOf(identity), identity, image, env);
    } catch (error) {
      await docker.remove(identity).catch(() => {});
      throw error;
    }
  },

  async start(name, identity, image, { literals, hidden }) {
    const words = ['docker', 'run', '-d', '--name', name];
    words.push('--label', `jug.identity=${identity}`, '--label', `jug.home=${OWNER}`);
    words.push('--label', `jug.names=:${[...literals.keys(), ...hidden.keys()].join(' ')}`);
    const lines = [];
    const env = new Map(environ);
    for (const [variable, value] of [...literals, ...hidden]) {
      const isLine = !/\n|\r$/.test(value) && variable.length + value.length < 60000 && bytesOf(textOf(value)) === value;
      const steers = STEERS.test(variable);
      if (steers && !isLine) refuse(`cannot hand ${variable} to docker: it steers docker itself, and is no line of a file`);
      if (isLine && (steers || literals.has(variable))) lines.push(`${variable}=${value}\n`);
      else {
        words.push('-e', variable);
        env.set(variable, value);
      }
    }
    const file = path.join(root, 'env', `${identity}.${process.pid}`);
    made(path.dirname(file));
    try {
      told(`write ${file}`, () => fs.writeFileSync(file, lines.join(''), { encoding: 'latin1', mode: 0o600 }));
      await tool([...words, '--env-file', file, image, 'sleep', 'infinity'], `start ${name} on docker`, env);
    } finally {
      told(`remove ${file}`, () => fs.rmSync(file, { force: true }));
    }
  },

  // Remove a bottle's containers: that of its name when it is known to be ours, and all that are
  // labelled. What docker says is looked at again.
  async remove(identity, ours = false) {
    if (ours) await tool(['docker', 'rm', '-f', nameOf(identity)], `remove ${nameOf(identity)}`);
    for (let round = 0; ; round++) {
      const left = (await docker.list('-a')).filter((each) => each.identity === identity);
      if (!left.length) return;
      if (round) refuse(`cannot remove ${nameOf(identity)}: it is still there`);
      await tool(['docker', 'rm', '-f', ...left.map((each) => each.name)], `remove ${nameOf(identity)}`);
    }
  },

  exec(identity, words, { user, flags }) {
    if (!user) refuse('cannot run as a user without a name: docker would take that of the image');
    return ['docker', 'exec', ...flags, '-u', user, nameOf(identity), ...words];
  },
  copy: (identity, source, target) => ['docker', 'cp', source, `${nameOf(identity)}:${target}`],

  // Start the new container beside the old one, then let them change places.
  async apply(identity, image) {
    const name = nameOf(identity);
    const [fresh, old] = [`${name}-new`, `${name}-old`];
    const mine = (await docker.list()).find((each) => each.name === name && each.identity === identity);
    if (!mine?.names.startsWith(':')) refuse(`cannot apply ${image} to ${identity}: docker runs no such bottle that tells its variables`);
    await tool(['docker', 'image', 'inspect', image], `find ${image} on docker`);
    const { status, stdout } = await run(['docker', 'exec', '-u', 'root', name, 'env', '-0']);
    if (status !== 0) refuse(`cannot apply ${image} to ${identity}: docker does not tell its variables`);
    const now = new Map(stdout.split('\0').map((each) => [each.split('=', 1)[0], each.slice(each.indexOf('=') + 1)]));
    const names = mine.names.slice(1).split(' ').filter(Boolean);
    if (!names.every((each) => now.has(each))) refuse(`cannot apply ${image} to ${identity}: docker does not tell its variables`);
    const hidden = new Map(names.map((each) => [each, now.get(each)]));
    hide(hidden.values());
    const undo = [];
    try {
      await docker.start(fresh, identity, image, { literals: new Map(), hidden });
      await tool(['docker', 'exec', '-u', 'node', fresh, 'sh', '-c', 'id -un'], `run ${image}`);
      undo.unshift(['rename', old, name]);
      await tool(['docker', 'rename', name, old], `set ${name} aside`);
      undo.unshift(['rename', name, fresh]);
      await tool(['docker', 'rename', fresh, name], `put ${fresh} in its place`);
      await tool(['docker', 'rm', '-f', old], `remove ${old}`);
    } catch (error) {
      for (const words of undo) await run(['docker', ...words].map(bytesOf));
      // What has its name may be another's.
      const left = await docker.list('-a').catch(() => []);
      const isOurs = left.some((each) => each.name === fresh && each.identity === identity);
      if (isOurs) await run(['docker', 'rm', '-f', fresh].map(bytesOf));
      refuse(`cannot apply ${image} to ${identity}: ${error.message}`);
    }
  },
};

// --- smolmachines ------------------------------------------------------------------------------------

const smolmachines = {
  // Identities whose machines are there. A machine has no labels: it is ours when we recorded it.
  async list(state) {
    const doing = 'list machines';
    const rows = asList(await tool(['smolvm', 'machine', 'list', '--json'], doing), `${doing} of smolvm`);
    if (!rows.every((row) => typeof row?.name === 'string')) refuse(`cannot ${doing}: smolvm says something else`);
    const names = rows.filter((row) => !state || row.state === state).map((row) => row.name);
    return identities().filter((each) => names.includes(nameOf(each)));
  },

  active: () => smolmachines.list('running'),

  async launch(identity, image, { literals, hidden }) {
    const name = nameOf(identity);
    const words = ['smolvm', 'machine', 'create', '--name', name, '--image', image].map(bytesOf);
    const env = new Map(environ);
    for (const [variable, value] of literals) words.push('-e', `${variable}=${value}`);
    for (const [variable, value] of hidden) {
      if (fault('secret-on-argv')) words.push('-e', `${variable}=${value}`);
      else {
        words.push('--secret-env', `${variable}=JUG_${variable}`);
        env.set(`JUG_${variable}`, value);
      }
    }
    const done = await run(words, { env });
    // If its name is taken, it is another's.
    if (done.status !== 0) refuse(`cannot create ${name}: smolvm says: ${said(done.stderr) || done.status}`);
    try {
      await tool(['smolvm', 'machine', 'start', '--name', name], `start ${name}`);
    } catch (error) {
      await smolmachines.remove(identity).catch(() => {});
      throw error;
    }
  },

  async remove(identity) {
    const name = nameOf(identity);
    const done = await run(['smolvm', 'machine', 'delete', '--name', name, '-f']);
    if (done.status !== 0 && !/not found/.test(done.stderr)) refuse(`cannot remove ${name}: smolvm says: ${said(done.stderr)}`);
    if ((await smolmachines.list()).includes(identity)) refuse(`cannot remove ${name}: it is still there`);
  },

  exec(identity, words, { user, flags }) {
    const as = user === 'root' ? [] : ['runuser', '-u', user, '--'];
    return ['smolvm', 'machine', 'exec', '--name', nameOf(identity), ...flags, '--', ...as, ...words];
  },

  copy: (identity, source, target) => ['smolvm', 'machine', 'cp', source, `${nameOf(identity)}:${target}`],

  apply(identity, image) {
    refuse(`cannot apply ${image} to ${identity}: smolmachines cannot change the image of a machine; end it and start it anew`);
  },
};

// Files with values that a launch left which was killed.
function sweep(identity) {
  const folder = path.join(root, 'env');
  for (const file of fs.existsSync(folder) ? fs.readdirSync(folder) : []) {
    if (file.startsWith(`${identity}.`)) told(`remove ${file}`, () => fs.rmSync(path.join(folder, file), { force: true }));
  }
}

module.exports = { backends: { docker, smolmachines }, nameOf, sweep };
