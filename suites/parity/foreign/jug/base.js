'use strict';
// What everything here uses: refusals, bytes, planted faults, processes, and locks.
//
// Names and values are kept as "byte strings", a character for each byte: Node reads its arguments
// and its environment as UTF-8 and would change what is none.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

class Refusal extends Error {}

function refuse(text) {
  throw new Refusal(text);
}

// Faults on purpose, for those who test the tests: JUG_FAULT names one.
const fault = (name) => process.env.JUG_FAULT === name;

const bytesOf = (text) => Buffer.from(text, 'utf8').toString('latin1');
const textOf = (bytes) => Buffer.from(bytes, 'latin1').toString('utf8');
const isText = (bytes) => bytesOf(textOf(bytes)) === bytes;

function block(file) {
  return fs.readFileSync(file, 'latin1').split('\0').slice(0, -1);
}

const argv = block('/proc/self/cmdline').slice(1 + process.execArgv.length + 1);
const environ = new Map(
  block('/proc/self/environ').map((entry) => [entry.split('=', 1)[0], entry.slice(entry.indexOf('=') + 1)]),
);

const home = textOf(environ.get('HOME') ?? os.homedir());
const root = path.join(home, '.bot-bottle');

// What Node cannot hand on as it is, a shell takes from a pipe and runs.
const SHELL = `
args=()
while IFS= read -r -d '' x <&3; do
  case $x in e*) export "\${x#e}";; a*) args+=("\${x#a}");; esac
done
exec 3<&-
exec "\${args[@]}"`;

// Run a command to its end: its status as a shell has it, and what it printed unless it is attached.
async function run(words, { env = environ, attached = false } = {}) {
  const entries = [...env].map(([name, value]) => `${name}=${value}`);
  const plain = [...words, ...entries].every(isText);
  const output = attached ? 'inherit' : 'pipe';
  const input = attached ? 'inherit' : 'ignore';
  const child = begun(textOf(words[0]), () => plain
    ? spawn(textOf(words[0]), words.slice(1).map(textOf), {
        env: Object.fromEntries([...env].map((pair) => pair.map(textOf))),
        stdio: [input, output, output],
      })
    : spawn('bash', ['-c', SHELL], {
        env: { PATH: textOf(environ.get('PATH') ?? '/usr/bin:/bin') },
        stdio: [input, output, output, 'pipe'],
      }));
  if (!plain) {
    const lines = [...entries.map((each) => `e${each}`), ...words.map((each) => `a${each}`)];
    child.stdio[3].on('error', () => {});
    child.stdio[3].end(Buffer.from(lines.map((each) => `${each}\0`).join(''), 'latin1'));
  }
  const printed = { stdout: '', stderr: '' };
  for (const name of attached ? [] : Object.keys(printed)) {
    child[name].on('data', (part) => {
      printed[name] += part.toString('latin1');
    });
  }
  const [code, signal] = await ended(child, textOf(words[0]));
  return { status: code ?? 128 + os.constants.signals[signal], ...printed };
}

function cannotRun(name, error) {
  const why = error.code === 'ENOENT' ? 'it is not installed, or not on PATH' : error.code ?? error.message;
  return refuse(`cannot run ${name}: ${why}`);
}

// A word that is too long is refused at once, a command that is not there a little later.
function begun(name, act) {
  try {
    return act();
  } catch (error) {
    return cannotRun(name, error);
  }
}

async function ended(child, name) {
  try {
    return await once(child, 'close');
  } catch (error) {
    return cannotRun(name, error);
  }
}

// Do something while no other process of this home does anything under the same name. The kernel
// ends it with us: the lock is held by a child that reads from us until we are gone.
async function alone(name, act) {
  made(root);
  const file = path.join(root, `${name}.lock`);
  const holder = spawn('flock', ['-F', '-x', file, 'sh', '-c', 'echo; exec cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const over = once(holder, 'close');
  const first = await Promise.race([once(holder.stdout, 'data').then(() => 'held'), ended(holder, 'flock')]);
  if (first !== 'held') refuse(`cannot lock ${file}`);
  try {
    return await act();
  } finally {
    holder.stdin.end();
    await over;
  }
}

// What the file system refuses is a refusal of ours.
function told(doing, act) {
  try {
    return act();
  } catch (error) {
    if (error.code === undefined || error instanceof Refusal) throw error;
    return refuse(`cannot ${doing}: ${error.code}`);
  }
}

function made(folder) {
  told(`make ${folder}`, () => fs.mkdirSync(folder, { recursive: true }));
}

// Write a file, or leave it as it is.
function written(file, content) {
  told(`write ${file}`, () => {
    fs.writeFileSync(`${file}.draft`, content);
    fs.renameSync(`${file}.draft`, file);
  });
}

// The text of a file; undefined where there is none. What is wrong is said of a place.
function read(file, place = file) {
  return told(`read ${place}`, () => {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fs.readFileSync(file));
    } catch (error) {
      if (error.code === 'ENOENT') return undefined;
      if (error instanceof TypeError) return refuse(`cannot read ${file}: it is no UTF-8`);
      throw error;
    }
  });
}

// Values that no message repeats, as bytes.
const values = new Set();

function hide(some) {
  for (const value of some) for (const line of [value, ...value.split(/\r?\n/)]) values.add(line.trim());
}

// What a tool said, for a message; a value in it is left out, quoted or not.
function said(printed) {
  let text = printed;
  for (const value of [...values].filter(Boolean).sort((a, b) => b.length - a.length)) {
    for (const spelt of [value, bytesOf(JSON.stringify(textOf(value)).slice(1, -1)), value.replaceAll('\n', '\\n')]) {
      const exact = spelt.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
      // A short one is found as a word of its own alone.
      text = text.replace(new RegExp(value.length < 6 ? `(?<!\\w)${exact}(?!\\w)` : exact, 'g'), '(a value)');
    }
  }
  return textOf(text).trim();
}

module.exports = {
  Refusal, alone, argv, bytesOf, environ, fault, hide, home, made, read, refuse, root, run, said, textOf, told,
  written,
};
