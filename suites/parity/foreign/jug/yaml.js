'use strict';
// The YAML that manifests are written in: block and flow mappings and lists, quoted and plain
// scalars, literal blocks. No tags, anchors, folded text. A message never quotes a value.

class NoYaml extends Error {}

const ESCAPES = {
  0: '\0', a: '\x07', b: '\b', t: '\t', n: '\n', v: '\v', f: '\f', r: '\r', e: '\x1b', ' ': ' ',
  '"': '"', '/': '/', '\\': '\\', N: '\x85', _: '\xa0', L: '\u2028', P: '\u2029',
};
const HEX = { x: 2, u: 4, U: 8 };

class Reader {
  constructor(text) {
    if (/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(text)) this.fail('a sign that is none of text');
    this.lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
    this.at = 0;
  }

  fail(problem) {
    throw new NoYaml(`line ${(this.at || 0) + 2}: ${problem}`);
  }

  // The next line that says something; its indent, or -1 at the end.
  indent() {
    while (this.at < this.lines.length && /^\s*(#.*)?$/.test(this.lines[this.at])) this.at++;
    if (this.at === this.lines.length) return -1;
    if (/^ *\t/.test(this.lines[this.at])) this.fail('a tab where spaces must be');
    return this.lines[this.at].search(/[^ ]/);
  }

  document() {
    const indent = this.indent();
    const value = indent < 0 ? null : this.block(indent);
    if (this.indent() >= 0) this.fail('more than one document');
    return value;
  }

  block(indent) {
    const line = this.lines[this.at].slice(indent);
    if (/^-( |$)/.test(line)) return this.list(indent);
    if (/^[[{]/.test(line)) return this.flow(indent);
    return this.mapping(indent);
  }

  list(indent) {
    const found = [];
    while (this.indent() === indent && /^-( |$)/.test(this.lines[this.at].slice(indent))) {
      const rest = this.lines[this.at].slice(indent + 1);
      found.push(this.value(rest.trimStart(), this.lines[this.at].length - rest.trimStart().length, indent));
    }
    return found;
  }

  mapping(indent) {
    const found = new Map();
    while (this.indent() === indent) {
      const line = this.lines[this.at];
      const [key, end] = this.key(line, indent);
      if (found.has(key)) this.fail(`the key ${JSON.stringify(key)} is given twice`);
      const start = end + (line.slice(end).length - line.slice(end).trimStart().length);
      found.set(key, this.value(line.slice(start), start, indent));
    }
    if (this.indent() > indent) this.fail('an indent that fits nothing');
    return found;
  }

  key(line, at) {
    if (/["']/.test(line[at])) {
      const [key, end] = this.quoted(line, at);
      const colon = /^\s*:(?=\s|$)/.exec(line.slice(end));
      if (!colon) this.fail('a text where a key must be');
      return [key, end + colon[0].length];
    }
    const plain = /^([^\s#&*!|>%@`[\]{},?:-][^#]*?|[?:-][^\s#][^#]*?)\s*:(?=\s|$)/.exec(line.slice(at));
    if (!plain) this.fail('no key');
    return [plain[1], at + plain[0].length];
  }

  // What stands behind a key or a dash; the reader is behind it afterwards.
  value(text, start, indent) {
    if (text === '' || text.startsWith('#')) {
      this.at++;
      const next = this.indent();
      const dash = next === indent && /^-( |$)/.test(this.lines[this.at].slice(next));
      return next > indent || dash ? this.block(next) : null;
    }
    if (/^\|[+-]?\s*(#.*)?$/.test(text)) return this.literal(text[1], indent);
    if (/^[[{]/.test(text)) return this.flow(start);
    const line = this.lines[this.at];
    let found;
    if (/^["']/.test(text)) {
      const [quoted, end] = this.quoted(line, start);
      if (!/^(\s+#.*|\s*)$/.test(line.slice(end))) this.fail('something behind a text');
      found = quoted;
    } else {
      found = this.plain(text.replace(/\s+#.*$/, '').trimEnd());
    }
    this.at++;
    if (this.indent() > indent) this.fail('a text of several lines must be quoted in one');
    return found;
  }

  literal(chomp, indent) {
    const lines = [];
    let depth = 0;
    for (this.at++; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at];
      const own = line.search(/[^ ]/);
      if (own >= 0 && !depth) depth = own;
      if (own >= 0 && (own < depth || depth <= indent)) break;
      lines.push(own < 0 ? line.slice(depth || line.length) : line.slice(depth));
    }
    const text = lines.map((line) => `${line}\n`).join('');
    const body = text.replace(/\n+$/, '');
    return chomp === '+' ? text : body + (chomp === '-' || body === '' ? '' : '\n');
  }

  quoted(line, at) {
    const quote = line[at];
    let text = '';
    for (let i = at + 1; i < line.length; i++) {
      if (line[i] === quote) {
        if (quote === '"' || line[i + 1] !== "'") return [text, i + 1];
        i++;
      } else if (line[i] === '\\' && quote === '"') {
        const sign = line[++i];
        if (sign in HEX) {
          const digits = line.slice(i + 1, i + 1 + HEX[sign]);
          const number = /^[0-9a-fA-F]+$/.test(digits) && digits.length === HEX[sign] ? parseInt(digits, 16) : -1;
          if (number < 0 || number > 0x10ffff) this.fail('an escape that is none');
          text += String.fromCodePoint(number);
          i += HEX[sign];
        } else if (sign in ESCAPES) text += ESCAPES[sign];
        else this.fail('an escape that is none');
        continue;
      }
      text += line[i];
    }
    return this.fail('a text without its end');
  }

  // A scalar without quotes, as what it is.
  plain(text) {
    if (/^[&*!|>%@`,\]}]/.test(text) || /^[?:-](\s|$)/.test(text)) this.fail('a sign that is reserved');
    if (/:(\s|$)/.test(text)) this.fail('a colon in a text without quotes');
    if (/^(~|null|Null|NULL)$/.test(text)) return null;
    if (/^(true|false|True|False|TRUE|FALSE)$/.test(text)) return /^t/i.test(text);
    if (/^[-+]?(\.\d+|\d[\d_]*(\.[\d_]*)?)([eE][-+]?\d+)?$|^0x[0-9a-fA-F_]+$|^0o[0-7]+$|^[-+]?\.(inf|nan)$/i.test(text)) {
      return Number.NaN;
    }
    return text;
  }

  // A flow collection, which may go on for several lines.
  flow(start) {
    this.rest = [this.lines[this.at].slice(start), ...this.lines.slice(this.at + 1)].join('\n');
    this.pos = 0;
    const value = this.item();
    const [behind] = this.rest.slice(this.pos).split('\n');
    if (!/^\s*$|^\s+#/.test(behind)) this.fail('something behind a collection');
    this.at += this.rest.slice(0, this.pos).split('\n').length;
    return value;
  }

  blank() {
    this.pos += /^(\s|(?<=\s)#[^\n]*)*/.exec(this.rest.slice(this.pos, this.pos + 4096))[0].length;
  }

  item() {
    this.blank();
    const sign = this.rest[this.pos];
    if (sign === '[' || sign === '{') return this.collection(sign);
    if (sign === '"' || sign === "'") {
      const line = this.rest.slice(this.pos).split('\n', 1)[0];
      const [text, end] = this.quoted(line, 0);
      this.pos += end;
      return text;
    }
    const plain = /^[^\n,[\]{}]*?(?=\s*(:\s|[,[\]{}\n]|$|\s#))/.exec(this.rest.slice(this.pos))[0];
    if (plain === '') this.fail('a collection without its end');
    this.pos += plain.length;
    return this.plain(plain);
  }

  collection(sign) {
    const isMap = sign === '{';
    const end = isMap ? '}' : ']';
    const found = isMap ? new Map() : [];
    this.pos++;
    for (;;) {
      this.blank();
      if (this.rest[this.pos] === end) {
        this.pos++;
        return found;
      }
      const item = this.item();
      this.blank();
      if (isMap) {
        const key = item === null || typeof item === 'object' ? this.fail('a key that is no text') : String(item);
        if (found.has(key)) this.fail(`the key ${JSON.stringify(key)} is given twice`);
        const hasValue = this.rest[this.pos] === ':';
        if (hasValue) this.pos++;
        found.set(key, hasValue ? this.item() : null);
      } else found.push(item);
      this.blank();
      if (this.rest[this.pos] === ',') this.pos++;
      else if (this.rest[this.pos] !== end) this.fail('a collection without its end');
    }
  }
}

function parse(text) {
  try {
    return new Reader(text).document();
  } catch (error) {
    if (error instanceof RangeError) throw new NoYaml('it is nested too deeply');
    throw error;
  }
}

module.exports = { NoYaml, parse };
