// Finds JSON values in text that arrives in pieces, and reads each exactly: what JSON.parse would hide becomes a flaw or NaN.

/** A reason to reject a value that only its JSON text shows, and the JSON path (RFC 9535) of the place. */
export interface Flaw {
  readonly path: string;
  readonly reason: string;
}

/** A JSON value and what its text shows beyond it. */
export interface ExactValue {
  /** As JSON.parse reads it, but NaN if a number became an integer only by rounding; null if nested too deep. */
  readonly value: unknown;
  readonly flaw: Flaw | null;
}

const [quote, backslash, comma, colon, minus, point] = [34, 92, 44, 58, 45, 46];
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125];

/** A number of at most so many digits and nothing else is exact. */
const exactDigits = 15;

/**
 * Finds the end of one JSON value after the other, and notes what tells whether JSON.parse reads it exactly. It does not
 * check the syntax.
 */
export class ValueScanner {
  /** Whether a value has begun and not yet ended. */
  isOpen = false;
  /** The deepest nesting of the last value: 0 for a number or a text, 1 for `[]`. */
  deepest = 0;
  /** How many members its text has. */
  members = 0;
  /** Whether it has a number that may not be exact. */
  hasOddNumber = false;
  private depth = 0;
  private inString = false;
  private isEscaped = false;
  /** Digits in a row so far. */
  private digits = 0;

  /**
   * Scans a piece of text: for the end of the open value, or for that of the value that begins at `from`.
   * @returns the index after the value, or -1 if the value goes on in the next piece
   */
  scan(text: string, from: number): number {
    if (!this.isOpen) this.begin();
    let { depth, inString, isEscaped, digits, members } = this;
    let at = from;
    let end = -1;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (inString) {
        if (isEscaped) isEscaped = false;
        else if (code === backslash) isEscaped = true;
        else if (code === quote) {
          inString = false;
          if (depth === 0) {
            end = at + 1;
            break;
          }
        }
      } else if (code === quote) {
        inString = true;
      } else if (code >= 48 && code <= 57) {
        if (++digits > exactDigits) this.hasOddNumber = true;
      } else {
        if (code === colon) members++;
        else if (code === openBrace || code === openBracket) {
          if (++depth > this.deepest) this.deepest = depth;
        } else if (code === closeBrace || code === closeBracket) {
          // At depth 0 the bracket belongs to what is around a number or a word.
          if (depth <= 1) {
            end = at + depth;
            break;
          }
          depth--;
        } else if (depth === 0 && (code === comma || isWhiteSpace(code))) {
          end = at;
          break;
        } else if (code === point || (digits > 0 && (code === 101 || code === 69))) {
          this.hasOddNumber = true;
        }
        digits = 0;
      }
    }
    this.members = members;
    this.isOpen = end === -1;
    this.depth = depth;
    this.inString = inString;
    this.isEscaped = isEscaped;
    this.digits = digits;
    return end;
  }

  private begin(): void {
    this.deepest = 0;
    this.members = 0;
    this.hasOddNumber = false;
    this.depth = 0;
    this.inString = false;
    this.isEscaped = false;
    this.digits = 0;
  }
}

/** Whether JSON counts the character as white space. */
export function isWhiteSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

/**
 * Reads the text of one JSON value.
 * @param scanned the scanner that has found the value
 * @throws SyntaxError if the text is not one JSON value
 */
export function readExactly(text: string, scanned: ValueScanner, maxDepth: number): ExactValue {
  const value: unknown = JSON.parse(text);
  const isExact =
    !scanned.hasOddNumber && scanned.deepest <= maxDepth && countMembers(value) === scanned.members;
  return isExact ? { value, flaw: null } : inspect(text, value, maxDepth);
}

/** Counts all members in a value: fewer than in its text if a member is given twice. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const element of value) count += countMembers(element);
  } else {
    for (const name in value) count += 1 + countMembers((value as Record<string, unknown>)[name]);
  }
  return count;
}

/** An array or object that the walk is inside of. */
interface Level {
  readonly container: Record<string | number, unknown>;
  /** Names of the members so far; null in an array. */
  readonly names: Set<string> | null;
  key: string | number;
}

/** Walks through valid JSON text, beside the value that JSON.parse made of it. */
function inspect(text: string, parsed: unknown, maxDepth: number): ExactValue {
  let value = parsed;
  const levels: Level[] = [];
  let level: Level | undefined;
  let expectsName = false;
  const path = () => jsonPath(levels.map(({ key }) => key));
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = endOfString(text, at);
      if (level?.names && expectsName) {
        const name = nameOf(text.slice(at, end));
        level.key = name;
        if (level.names.has(name)) {
          return { value, flaw: { path: path(), reason: 'is given more than once' } };
        }
        level.names.add(name);
        expectsName = false;
      }
      at = end;
    } else if (code === openBrace || code === openBracket) {
      if (levels.length === maxDepth) {
        const reason = `is nested deeper than ${maxDepth} levels`;
        return { value: null, flaw: { path: path(), reason } };
      }
      const isObject = code === openBrace;
      const inner = level ? level.container[level.key] : value;
      // JSON.parse has the last of two members: then the value has nothing that belongs to the first, and a flaw follows.
      const container = (typeof inner === 'object' && inner !== null ? inner : {}) as Level['container'];
      level = { container, names: isObject ? new Set() : null, key: isObject ? '' : 0 };
      levels.push(level);
      expectsName = isObject;
      at++;
    } else if (code === closeBrace || code === closeBracket) {
      levels.pop();
      level = levels.at(-1);
      expectsName = false;
      at++;
    } else if (code === comma) {
      if (typeof level?.key === 'number') level.key++;
      else expectsName = true;
      at++;
    } else if (code === minus || (code >= 48 && code <= 57)) {
      const end = endOfNumber(text, at);
      if (isRounded(text.slice(at, end))) {
        if (level) level.container[level.key] = Number.NaN;
        else value = Number.NaN;
      }
      at = end;
    } else {
      at++;
    }
  }
  return { value, flaw: null };
}

function nameOf(text: string): string {
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}

/** The index after a string that begins at `from`. */
function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at + 1;
}

function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  // Digits, and what a fraction and an exponent consist of.
  while (at < text.length && numberCharacters.has(text.charCodeAt(at))) at++;
  return at;
}

const numberCharacters = new Set([...'0123456789+-.eE'].map((character) => character.charCodeAt(0)));

/** Whether a number, which is no integer or too large for one, is read as an integer. */
function isRounded(lexeme: string): boolean {
  const number = Number(lexeme);
  return Number.isSafeInteger(number) && String(number) !== lexeme && !isExactly(lexeme, number);
}

function isExactly(lexeme: string, integer: number): boolean {
  const [mantissa = '', exponent = '0'] = lexeme.replace(/^-/, '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
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

/** Returns the JSON path of a place from the outside in, such as `$.barcodes[0].barcode`. */
export function jsonPath(steps: readonly (string | number)[]): string {
  return `$${steps.map((step) => (typeof step === 'number' ? `[${step}]` : memberStep(step))).join('')}`;
}

/** Returns the step to a member: `.name`, or `["the name"]` if it needs quotes. */
export function memberStep(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
