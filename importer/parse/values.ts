// In: JSON text in pieces, as it arrives. Out: tokens, and from tokens one value at a time, with what JSON.parse would
// hide: a member given twice, nesting without end, a number that no double holds.

import { jsonParser, type Token } from 'stream-json/core/parser.js';
import { jsonPath } from './json-path.ts';

export type { Token };

/** A reason to reject a value that its JSON text alone shows, and the JSON path of the place. */
export interface Flaw {
  readonly path: string;
  readonly reason: string;
}

/**
 * Makes a function from the next piece of one JSON document to the tokens that it completes.
 * @returns the function; it throws an Error on text that no document begins with. It is never told that the text ended:
 * the document is whole when white space fed after it has left no bracket open.
 */
export function createTokenizer(): (text: string) => readonly Token[] {
  const parse = jsonParser({ streamValues: false });
  return (text) => {
    const tokens = parse(text);
    return typeof tokens === 'symbol' ? [] : tokens.values;
  };
}

/** Builds values from tokens, one after the other; a value may begin in one batch of tokens and end in another. */
export class ValueAssembler {
  /** The last complete value. */
  value: unknown = null;
  /** The first flaw of the last value, or of the one being built. */
  flaw: Flaw | null = null;
  /** The text of the value's tokens from earlier batches, in pieces. */
  earlierTexts: string[] = [];
  /** Whether the last value, written as JSON by JavaScript, is the text that its tokens are written as. */
  isPlain = true;

  private depth = 0;
  private readonly maxDepth: number;
  private readonly containers: (unknown[] | Record<string, unknown>)[] = [];
  private readonly keys: string[] = [];

  /** @param maxDepth values nested deeper than this are flawed; what is deeper is skipped, not built */
  constructor(maxDepth: number) {
    this.maxDepth = maxDepth;
  }

  /** Whether a value has begun and not yet ended. */
  get isOpen(): boolean {
    return this.depth > 0;
  }

  /**
   * Takes tokens until a value is complete or there are no more.
   * @param from index of the first token to take; there must be one.
   * @returns the index after the last token taken; {@link isOpen} says whether the value goes on in the next batch.
   */
  take(tokens: readonly Token[], from: number): number {
    if (!this.isOpen) {
      this.flaw = null;
      this.earlierTexts = [];
      this.isPlain = true;
    }
    for (let index = from; index < tokens.length; index++) {
      this.takeToken(tokens[index] as Token);
      if (this.depth === 0) return index + 1;
    }
    // As text, because the tokens of one huge value would need many times its size.
    writeTokens(this.earlierTexts, tokens, from, tokens.length);
    return tokens.length;
  }

  private takeToken(token: Token): void {
    switch (token.name) {
      case 'keyValue':
        this.enterMember(token.value);
        break;
      case 'stringValue':
      case 'trueValue':
      case 'falseValue':
      case 'nullValue':
        this.put(token.value);
        break;
      case 'numberValue':
        this.put(this.numberOf(token.value));
        break;
      case 'startObject':
        this.enter({});
        break;
      case 'startArray':
        this.enter([]);
        break;
      case 'endObject':
      case 'endArray':
        this.depth--;
        break;
    }
  }

  private enter(container: unknown[] | Record<string, unknown>): void {
    if (this.depth < this.maxDepth) {
      this.put(container);
      this.containers[this.depth] = container;
    } else if (this.depth === this.maxDepth) {
      this.put(null);
      this.flaw ??= { path: this.path(), reason: `is nested deeper than ${this.maxDepth} levels` };
      this.isPlain = false;
    }
    this.depth++;
  }

  private enterMember(key: string): void {
    if (this.depth > this.maxDepth) return;
    const level = this.depth - 1;
    this.keys[level] = key;
    if (Object.hasOwn(this.containers[level] as object, key)) {
      this.flaw ??= { path: this.path(), reason: 'is given more than once' };
      this.isPlain = false;
    }
    // Members named like an index of an array come first in an object, wherever they were given.
    if (isDigit(key.charCodeAt(0))) this.isPlain = false;
  }

  private put(value: unknown): void {
    if (this.depth === 0) {
      this.value = value;
      return;
    }
    if (this.depth > this.maxDepth) return;
    const level = this.depth - 1;
    const container = this.containers[level] as unknown[] | Record<string, unknown>;
    if (Array.isArray(container)) {
      container.push(value);
      return;
    }
    const key = this.keys[level] as string;
    if (key === '__proto__') {
      // Assigned, it would change the object's prototype instead of being a member.
      Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
    } else {
      container[key] = value;
    }
  }

  private numberOf(lexeme: string): number {
    const number = Number(lexeme);
    if (String(number) === lexeme) return number;
    this.isPlain = false;
    return exactNumber(lexeme, number);
  }

  private path(): string {
    const open = this.containers.slice(0, this.depth);
    return jsonPath(
      open.map((container, level) =>
        Array.isArray(container) ? container.length - 1 : (this.keys[level] as string),
      ),
    );
  }
}

/**
 * Writes tokens as JSON text: number lexemes as they came, members as often as they came, strings escaped anew.
 * @param texts what was written of the same value before, none at its start; this text is added, and a whole text is never
 * made of them before the end, since a value may come in as many pieces as it has characters
 * @returns the same texts
 */
export function writeTokens(texts: string[], tokens: readonly Token[], from: number, to: number): string[] {
  // Joined at the end: a string that grows by a character at a time takes thirty times its length.
  const parts: string[] = [];
  let follows = texts.length > 0 && !opens.test(texts.at(-1) as string);
  for (let index = from; index < to; index++) {
    const token = tokens[index] as Token;
    const closes = token.name === 'endObject' || token.name === 'endArray';
    if (follows && !closes) parts.push(',');
    parts.push(tokenText(token));
    follows = token.name !== 'startObject' && token.name !== 'startArray' && token.name !== 'keyValue';
  }
  if (parts.length > 0) texts.push(parts.join(''));
  return texts;
}

/** What no comma comes behind. */
const opens = /[[{:]$/;

function tokenText(token: Token): string {
  switch (token.name) {
    case 'startObject':
      return '{';
    case 'endObject':
      return '}';
    case 'startArray':
      return '[';
    case 'endArray':
      return ']';
    case 'keyValue':
      return `${JSON.stringify(token.value)}:`;
    case 'numberValue':
      return token.value;
    case 'stringValue':
      return JSON.stringify(token.value);
    case 'trueValue':
    case 'falseValue':
    case 'nullValue':
      return String(token.value);
    default:
      return '';
  }
}

/** The number a lexeme stands for, which is read as such; NaN where rounding made of it an integer that it is not. */
function exactNumber(lexeme: string, number: number): number {
  return !Number.isSafeInteger(number) || isExactly(lexeme, number) ? number : Number.NaN;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isExactly(lexeme: string, integer: number): boolean {
  const [mantissa = '', exponent = '0'] = lexeme.replace(/^-/, '').toLowerCase().split('e') as [
    string,
    string?,
  ];
  const [whole = '', fraction = ''] = mantissa.split('.') as [string, string?];
  const all = whole + fraction;
  // Walked by hand: a regular expression for trailing zeros takes quadratic time on a hostile lexeme.
  let start = 0;
  while (start < all.length && all[start] === '0') start++;
  let end = all.length;
  while (end > start && all[end - 1] === '0') end--;
  if (start === end) return integer === 0;
  const zeros = Number(exponent) - fraction.length + (all.length - end);
  if (zeros < 0 || end - start + zeros > 16) return false;
  return all.slice(start, end) + '0'.repeat(zeros) === String(Math.abs(integer));
}
