// Builds JSON values from the tokens of stream-json. Detects what JSON.parse hides: repeated members, too deep nesting, and
// numbers that a double cannot represent.

import { jsonParser, type Token } from 'stream-json/core/parser.js';

export type { Token };

/** A reason to reject a value that only its JSON text shows, with the JSON path (RFC 9535) of the place. */
export interface Flaw {
  readonly path: string;
  readonly reason: string;
}

/**
 * Makes a function that accepts the next piece of one JSON document and returns the tokens that the piece completes.
 * It throws an Error if the text is not JSON. A document is complete if white space after it leaves no bracket open.
 */
export function createTokenizer(): (text: string) => readonly Token[] {
  const parse = jsonParser({ streamValues: false });
  return (text) => {
    const tokens = parse(text);
    return typeof tokens === 'symbol' ? [] : tokens.values;
  };
}

/** Builds one value after another; a value may span batches of tokens. */
export class ValueBuilder {
  /** The last complete value. */
  value: unknown = null;
  /** The first flaw of the last value, or of the unfinished one. */
  flaw: Flaw | null = null;
  /** The text of the value's tokens from earlier batches, in pieces. */
  earlierTexts: string[] = [];
  /** Whether JSON.stringify of the last value gives the same text as its tokens. */
  isPlain = true;

  private depth = 0;
  private readonly maxDepth: number;
  private readonly containers: (unknown[] | Record<string, unknown>)[] = [];
  private readonly keys: string[] = [];

  /** @param maxDepth a value with deeper nesting has a flaw, and its deeper parts are not built */
  constructor(maxDepth: number) {
    this.maxDepth = maxDepth;
  }

  /** Whether a value is unfinished. */
  get isOpen(): boolean {
    return this.depth > 0;
  }

  /**
   * Reads tokens until a value is complete or there are no more.
   * @param from index of the first token, which must exist
   * @returns the index after the last token read; {@link isOpen} is `true` if the value continues in the next batch
   */
  read(tokens: readonly Token[], from: number): number {
    if (!this.isOpen) {
      this.flaw = null;
      this.earlierTexts = [];
      this.isPlain = true;
    }
    for (let index = from; index < tokens.length; index++) {
      this.readToken(tokens[index] as Token);
      if (this.depth === 0) return index + 1;
    }
    // Stored as text: the tokens of a huge value need many times its size.
    writeTokens(this.earlierTexts, tokens, from, tokens.length);
    return tokens.length;
  }

  private readToken(token: Token): void {
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
    // JavaScript moves members with numeric names to the front, whatever their place in the text.
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
      // Plain assignment would change the object's prototype.
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
 * Writes tokens as JSON text. Numbers and repeated members keep their form; JSON.stringify escapes strings.
 * @param texts the text of the value's earlier tokens, in pieces; the new text is added to it
 * @returns the same texts
 */
export function writeTokens(texts: string[], tokens: readonly Token[], from: number, to: number): string[] {
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

/** Text that no comma may follow. */
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

/** Returns the number of a lexeme; NaN if only rounding made it an integer. */
function exactNumber(lexeme: string, number: number): number {
  return !Number.isSafeInteger(number) || isExactly(lexeme, number) ? number : Number.NaN;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isExactly(lexeme: string, integer: number): boolean {
  const [mantissa = '', exponent = '0'] = lexeme.replace(/^-/, '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = whole + fraction;
  // A loop: a regular expression for trailing zeros takes quadratic time on a hostile lexeme.
  let start = 0;
  while (start < all.length && all[start] === '0') start++;
  let end = all.length;
  while (end > start && all[end - 1] === '0') end--;
  if (start === end) return integer === 0;
  const zeros = Number(exponent) - fraction.length + (all.length - end);
  if (zeros < 0 || end - start + zeros > 16) return false;
  return all.slice(start, end) + '0'.repeat(zeros) === String(Math.abs(integer));
}

/** Returns the JSON path for a list of steps from the root, such as `$.barcodes[0].barcode`. */
export function jsonPath(steps: readonly (string | number)[]): string {
  return `$${steps.map((step) => (typeof step === 'number' ? `[${step}]` : memberStep(step))).join('')}`;
}

/** Returns the step to a member: `.name`, or `["the name"]` if it needs quotes. */
export function memberStep(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
