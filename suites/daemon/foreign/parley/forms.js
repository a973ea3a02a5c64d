// S-expressions: text to forms and back. Nothing is ever evaluated.
//
// A list is an array, a text a string, NIL the empty array; what else there is has a class here.
'use strict';

class Keyword { constructor(name) { this.name = name; } }
class Atom { constructor(text) { this.text = text; } } // a symbol, a number or a character: never looked into
class Dotted { constructor(items, tail) { this.items = items; this.tail = tail; } }

class Malformed extends Error {}

const BLANK = ' \t\r\n\f\v';
const ENDS = BLANK + '()"\';`,';
const NUMBER = /^[+-]?([0-9]+\.?|[0-9]+\/[0-9]+|[0-9]*\.[0-9]+(e[+-]?[0-9]+)?|[0-9]+(\.[0-9]*)?e[+-]?[0-9]+)$/i;

const upcase = (letter) => {
  const upper = letter.toUpperCase();
  return [...upper].length === 1 ? upper : letter;
};

class Reader {
  constructor(text, { depth, evaluates = false }) {
    this.letters = [...text];
    this.at = 0;
    this.depth = depth;
    this.open = 0;
    this.evaluates = evaluates;
  }

  fail(what) {
    throw new Malformed(`${what}, at character ${this.at} of ${this.letters.length}`);
  }

  skip() {
    for (;;) {
      const letter = this.letters[this.at];
      if (letter === undefined) return;
      if (BLANK.includes(letter)) this.at += 1;
      else if (letter === ';') {
        while (this.at < this.letters.length && this.letters[this.at] !== '\n') this.at += 1;
      } else if (letter === '#' && this.letters[this.at + 1] === '|') this.skipBlock();
      else return;
    }
  }

  skipBlock() {
    for (this.at += 2; ; this.at += 1) {
      if (this.at >= this.letters.length) this.fail('a comment has no end');
      if (this.letters[this.at] === '|' && this.letters[this.at + 1] === '#') break;
    }
    this.at += 2;
  }

  whole() {
    const form = this.form();
    this.skip();
    if (this.at < this.letters.length) this.fail('there is more than one form');
    return form;
  }

  form() {
    this.skip();
    const letter = this.letters[this.at];
    if (letter === undefined) this.fail('the text ends where a form is due');
    if (letter === '(') return this.nested(() => this.list());
    if (letter === "'") return this.nested(() => { this.at += 1; return new Atom(['quote', this.form()]); });
    if (letter === '"') return this.string();
    if (letter === '#') return this.macro();
    if (ENDS.includes(letter)) this.fail(`a form cannot begin with ${letter}`);
    return this.token();
  }

  nested(read) {
    if (this.open >= this.depth) this.fail(`nested deeper than ${this.depth}`);
    this.open += 1;
    const form = read();
    this.open -= 1;
    return form;
  }

  macro() {
    const kind = this.letters[this.at + 1];
    if (kind === '\\') { // a character
      this.at += 3;
      return new Atom(this.letters[this.at - 1]);
    }
    if (kind === "'") { // a function: its name
      this.at += 2;
      return this.nested(() => new Atom(['function', this.form()]));
    }
    if (kind === '.' && this.evaluates) {
      this.at += 2;
      return this.nested(() => new Atom(['evaluated', this.form()]));
    }
    return this.fail(`#${kind ?? ''} is not read`);
  }

  list() {
    const items = [];
    for (this.at += 1; ;) {
      this.skip();
      if (this.letters[this.at] === ')') { this.at += 1; return items; }
      const next = this.letters[this.at + 1];
      if (this.letters[this.at] === '.' && (next === undefined || ENDS.includes(next))) return this.tail(items);
      items.push(this.form());
    }
  }

  tail(items) {
    if (!items.length) this.fail('a dot stands first in a list');
    this.at += 1;
    this.skip();
    if (this.letters[this.at] === ')') this.fail('nothing stands behind a dot');
    const tail = this.form();
    this.skip();
    if (this.letters[this.at] !== ')') this.fail('a list does not end behind its dot');
    this.at += 1;
    return Array.isArray(tail) ? [...items, ...tail] : new Dotted(items, tail);
  }

  string() {
    let text = '';
    for (this.at += 1; this.at < this.letters.length; this.at += 1) {
      if (this.letters[this.at] === '"') { this.at += 1; return text; }
      if (this.letters[this.at] === '\\') this.at += 1;
      text += this.letters[this.at] ?? '';
    }
    return this.fail('a text has no end');
  }

  token() {
    let name = '';
    let escaped = false;
    let barred = false;
    const first = this.letters[this.at];
    for (; this.at < this.letters.length; this.at += 1) {
      const letter = this.letters[this.at];
      if (letter === '|') { escaped = true; barred = !barred; }
      else if (letter === '\\') {
        escaped = true;
        this.at += 1;
        if (this.at >= this.letters.length) this.fail('the text ends behind a backslash');
        name += this.letters[this.at];
      } else if (barred) name += letter;
      else if (ENDS.includes(letter)) break;
      else name += upcase(letter);
    }
    if (barred) this.fail('a name has no end');
    if (escaped) return first === ':' ? new Keyword(name.slice(1)) : new Atom(name);
    if (NUMBER.test(name)) {
      if (/\/0+$/.test(name)) this.fail('a number is divided by zero');
      return new Atom(name);
    }
    if (name === 'NIL') return [];
    const keyword = name.startsWith(':');
    const rest = keyword ? name.slice(1) : name;
    if (!rest || /^\.+$/.test(name) || (keyword ? rest.includes(':') : /^:|:$|:.*:.*:/.test(name))) {
      this.fail('this names nothing');
    }
    return keyword ? new Keyword(rest) : new Atom(name);
  }
}

const readForm = (text, options) => new Reader(text, options).whole();

const isPlist = (form) => Array.isArray(form) && form.length % 2 === 0
  && form.every((item, index) => index % 2 === 1 || item instanceof Keyword);

// What stands behind a keyword; the first of several counts.
const get = (plist, name) => {
  for (let at = 0; at < plist.length; at += 2) if (plist[at].name === name) return plist[at + 1];
  return undefined;
};

const named = (form) => (form instanceof Keyword ? form.name : undefined);

const printForm = (form) => {
  if (typeof form === 'string') return `"${form.replace(/[\\"]/g, '\\$&')}"`;
  if (Array.isArray(form)) return form.length ? `(${form.map(printForm).join(' ')})` : 'nil';
  if (form instanceof Keyword) {
    return /^[A-Z][A-Z0-9*+-]*$/.test(form.name)
      ? `:${form.name.toLowerCase()}` : `:|${form.name.replace(/[\\|]/g, '\\$&')}|`;
  }
  return form.text;
};

const key = (name) => new Keyword(name);
const plist = (properties) => Object.entries(properties).flatMap(([name, value]) => [key(name), value]);

module.exports = { Atom, Malformed, get, isPlist, key, named, plist, printForm, readForm };
