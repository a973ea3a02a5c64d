// Frames: six hexadecimal digits that count the characters of a payload, then the payload as UTF-8.
'use strict';

const { Malformed } = require('./forms');

const DIGITS = 6;
const HEX = /^[0-9A-Fa-f]$/;
const BLANK = new Set(Buffer.from(' \t\r\n\f\v'));

// Bytes of the character that begins at `at`: 0 when not all of it is there, -1 when it is none.
const width = (bytes, at) => {
  const first = bytes[at];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return -1;
  const count = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (let more = 1; more < count; more += 1) {
    const byte = bytes[at + more];
    if (byte === undefined) return 0;
    let [low, high] = [0x80, 0xbf];
    if (more === 1) {
      if (first === 0xe0) low = 0xa0;
      if (first === 0xed) high = 0x9f;
      if (first === 0xf0) low = 0x90;
      if (first === 0xf4) high = 0x8f;
    }
    if (byte < low || byte > high) return -1;
  }
  return count;
};

class Frames {
  constructor(longest) {
    this.longest = longest;
    this.parts = [];    // of the payload, but for what is in `rest`
    this.rest = Buffer.alloc(0);
    this.announced = -1; // characters; -1 within a prefix
    this.characters = 0;
    this.prefix = '';
  }

  feed(bytes) { this.rest = this.rest.length ? Buffer.concat([this.rest, bytes]) : bytes; }

  get midway() { return this.prefix !== ''; }

  get progress() {
    return this.announced < 0
      ? `after ${this.prefix.length} of ${DIGITS} digits` : `after ${this.characters} of ${this.announced} characters`;
  }

  // The next payload, or undefined when more bytes are needed.
  next() {
    if (!this.readPrefix()) return undefined;
    let at = 0;
    while (this.characters < this.announced && at < this.rest.length) {
      const bytes = width(this.rest, at);
      if (bytes < 0) throw new Malformed(`the payload is no UTF-8 ${this.progress}`);
      if (bytes === 0) break;
      at += bytes;
      this.characters += 1;
    }
    this.parts.push(this.rest.subarray(0, at));
    this.rest = this.rest.subarray(at);
    if (this.characters < this.announced) return undefined;
    const payload = Buffer.concat(this.parts).toString('utf8');
    this.parts = [];
    this.announced = -1;
    this.characters = 0;
    this.prefix = '';
    return payload;
  }

  readPrefix() {
    let at = 0;
    while (this.announced < 0 && at < this.rest.length) {
      const byte = this.rest[at];
      at += 1;
      if (!this.prefix && BLANK.has(byte)) continue;
      const digit = String.fromCharCode(byte);
      if (!HEX.test(digit)) throw new Malformed(`no hexadecimal digit in the prefix ${this.progress}`);
      this.prefix += digit;
      if (this.prefix.length === DIGITS) {
        this.announced = parseInt(this.prefix, 16);
        if (this.announced > this.longest) {
          throw new Malformed(`too long: ${this.announced} characters, at most ${this.longest} are read`);
        }
      }
    }
    this.rest = this.rest.subarray(at);
    return this.announced >= 0;
  }
}

const frame = (payload, count = [...payload].length) => `${count.toString(16).padStart(DIGITS, '0')}${payload}\n`;

module.exports = { Frames, frame };
