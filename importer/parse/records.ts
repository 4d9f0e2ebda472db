// In: the text of one upstream document, in pieces. Out: its records, each with its flaw and its text, and what the
// envelope around them says. An array, an envelope and JSON Lines are told apart here.

import { quoted } from '../upstream/error.ts';
import { createTokenizer, type Flaw, type Token, ValueAssembler, writeTokens } from './values.ts';

/** One element of the upstream's list, as it came. */
export interface SourceRecord {
  /** Place in the list, from 1, counted over all pages. */
  readonly position: number;
  /** The parsed value, which need not be an object, and is left as it is. A number that could only be kept rounded is NaN. */
  readonly value: unknown;
  /** A reason to reject the record that its JSON text shows and its value does not, or null. */
  readonly flaw: Flaw | null;
  /** The record as JSON text: number lexemes exactly as they came, members given twice kept. */
  raw(): string;
}

/** What the envelope of a document says; `undefined` where it says nothing. */
export interface Envelope {
  /** `_links.next.href`, or null where there is no next page. */
  readonly next: string | null;
  /** `_meta.totalCount`, of whatever type. */
  readonly totalCount: unknown;
}

/** Reads one document piece by piece. */
export interface RecordParser {
  /** Takes the next piece of text and gives the records that it completes. Throws {@link UnreadableJson}. */
  feed(text: string): SourceRecord[];
  /** Takes the end of the text and gives the records that it completes. Throws {@link UnreadableJson}. */
  end(): SourceRecord[];
  /** Known after {@link end}. */
  readonly envelope: Envelope;
}

/** The document is not a list of records; the message continues a sentence that begins with the document's name. */
export class UnreadableJson extends Error {}

/**
 * Makes the parser of one document.
 * @param options.lines whether the document is JSON Lines, which its text does not tell for certain.
 * @param options.recordsBefore how many records the pages before held.
 * @param options.maxDepth how deep a record may be nested.
 * @param options.mayQuote whether a reason may show how a document begins that is not JSON.
 */
export function createRecordParser(options: ParserOptions): RecordParser {
  return options.lines ? new LinesParser(options) : new DocumentParser(options);
}

interface ParserOptions {
  readonly lines: boolean;
  readonly recordsBefore: number;
  readonly mayQuote: boolean;
  readonly maxDepth: number;
}

class ParsedRecord implements SourceRecord {
  readonly position: number;
  readonly value: unknown;
  readonly flaw: Flaw | null;
  /** `null` where the value tells it: tokens take several times as much memory, and records wait to be written. */
  private readonly text: string | null;

  constructor(
    position: number,
    assembler: ValueAssembler,
    tokens: readonly Token[],
    from: number,
    to: number,
  ) {
    this.position = position;
    this.value = assembler.value;
    this.flaw = assembler.flaw;
    this.text = assembler.isPlain ? null : writeTokens(assembler.earlierTexts, tokens, from, to).join('');
  }

  raw(): string {
    return this.text ?? JSON.stringify(this.value);
  }
}

/** An array of records, or an envelope with such an array as its `data`. */
class DocumentParser implements RecordParser {
  private readonly tokenize = createTokenizer();
  private readonly assembler: ValueAssembler;
  private place: 'start' | 'envelope' | 'data' | 'member' | 'records' | 'end' = 'start';
  private isEmpty = true;
  private inEnvelope = false;
  private member = '';
  private readonly members = new Map<string, unknown>();
  private position: number;
  private readonly mayQuote: boolean;

  constructor({ recordsBefore, mayQuote, maxDepth }: ParserOptions) {
    this.assembler = new ValueAssembler(maxDepth);
    this.position = recordsBefore;
    this.mayQuote = mayQuote;
  }

  feed(text: string): SourceRecord[] {
    if (this.isEmpty) this.checkFirstCharacter(text);
    try {
      return this.take(this.tokenize(text));
    } catch (error) {
      throw error instanceof UnreadableJson ? error : this.syntaxError(error);
    }
  }

  end(): SourceRecord[] {
    if (this.isEmpty) throw new UnreadableJson('is empty, where a list of records is expected.');
    let records: SourceRecord[] = [];
    try {
      records = this.take(this.tokenize('\n'));
    } catch (error) {
      // Text that stops anywhere, as in the middle of a number, is cut off rather than wrong.
      if (error instanceof UnreadableJson) throw error;
    }
    if (this.place !== 'end') {
      throw new UnreadableJson(`is cut off: its JSON ends too early, after ${this.recordsSoFar()}.`);
    }
    return records;
  }

  get envelope(): Envelope {
    return {
      next: nextHref(this.members.get('_links')),
      totalCount: member(this.members.get('_meta'), 'totalCount'),
    };
  }

  private take(tokens: readonly Token[]): SourceRecord[] {
    const records: SourceRecord[] = [];
    for (let index = 0; index < tokens.length; ) {
      if (this.place === 'records' && (this.assembler.isOpen || tokens[index]?.name !== 'endArray')) {
        const from = index;
        index = this.assembler.take(tokens, from);
        if (!this.assembler.isOpen) {
          records.push(new ParsedRecord(++this.position, this.assembler, tokens, from, index));
        }
      } else if (this.place === 'member') {
        index = this.assembler.take(tokens, index);
        if (!this.assembler.isOpen) this.keepMember();
      } else {
        this.step(tokens[index] as Token);
        index++;
      }
    }
    return records;
  }

  /** Takes a token of the document's frame, one that is part of no record and no other member's value. */
  private step(token: Token): void {
    switch (this.place) {
      case 'start':
        this.begin(token);
        break;
      case 'envelope':
        if (token.name === 'keyValue') this.enterMember(token.value);
        else this.leaveEnvelope();
        break;
      case 'data':
        if (token.name !== 'startArray') {
          throw new UnreadableJson(
            `has a "data" member that is ${kindOf(token)}, where an array of records is expected.`,
          );
        }
        this.place = 'records';
        break;
      case 'records':
        this.place = this.inEnvelope ? 'envelope' : 'end';
        break;
    }
  }

  private begin(token: Token): void {
    if (token.name === 'startArray') {
      this.place = 'records';
    } else if (token.name === 'startObject') {
      this.inEnvelope = true;
      this.place = 'envelope';
    } else {
      throw new UnreadableJson(`holds ${kindOf(token)}, where a list of records is expected.`);
    }
  }

  private enterMember(name: string): void {
    if (this.members.has(name))
      throw new UnreadableJson(`has two "${name}" members, of which only one can be meant.`);
    if (name === 'data' || name === '_links' || name === '_meta') this.members.set(name, null);
    this.member = name;
    this.place = name === 'data' ? 'data' : 'member';
  }

  private keepMember(): void {
    const { value, flaw } = this.assembler;
    if (this.members.has(this.member)) {
      if (flaw)
        throw new UnreadableJson(
          `has a flaw in its envelope: ${quoted(`$.${this.member}${flaw.path.slice(1)}`)} ${flaw.reason}.`,
        );
      this.members.set(this.member, value);
    }
    this.place = 'envelope';
  }

  private leaveEnvelope(): void {
    if (!this.members.has('data')) {
      throw new UnreadableJson('is an object without a "data" member, where a list of records is expected.');
    }
    this.place = 'end';
  }

  private checkFirstCharacter(text: string): void {
    const start = text.trimStart();
    if (start === '') return;
    this.isEmpty = false;
    if (!/^[[{"\-\dtfn]/.test(start)) {
      const beginning = this.mayQuote ? `: it begins with ${JSON.stringify(start.slice(0, 20))}` : '';
      throw new UnreadableJson(`is not JSON${beginning}.`);
    }
  }

  private syntaxError(error: unknown): UnreadableJson {
    // The tokenizer gives no tokens of a piece that it cannot read to its end, so the exact record is not known.
    return new UnreadableJson(
      `is not valid JSON, soon after ${this.recordsSoFar()}: ${syntaxDetail(error)}.`,
    );
  }

  private recordsSoFar(): string {
    return this.position === 0 ? 'its start' : `record ${this.position}`;
  }
}

/** One JSON value a line. */
class LinesParser implements RecordParser {
  readonly envelope: Envelope = { next: null, totalCount: undefined };
  private readonly assembler: ValueAssembler;
  private tokenize = createTokenizer();
  private line = 1;
  private isBlank = true;
  private isComplete = false;
  private position: number;

  constructor({ recordsBefore, maxDepth }: ParserOptions) {
    this.assembler = new ValueAssembler(maxDepth);
    this.position = recordsBefore;
  }

  feed(text: string): SourceRecord[] {
    const records: SourceRecord[] = [];
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.takePart(text.slice(from, end + 1), records);
      this.endLine('ends inside its value');
      from = end + 1;
    }
    if (from < text.length) this.takePart(text.slice(from), records);
    return records;
  }

  end(): SourceRecord[] {
    const records: SourceRecord[] = [];
    if (!this.isBlank) {
      this.takePart('\n', records);
      this.endLine('is cut off');
    }
    if (this.position === 0) throw new UnreadableJson('is empty, where a list of records is expected.');
    return records;
  }

  private takePart(text: string, records: SourceRecord[]): void {
    this.isBlank &&= !/[^ \t\r\n]/.test(text);
    const tokens = this.tokensOf(text);
    if (tokens.length === 0) return;
    const to = this.assembler.take(tokens, 0);
    if (this.assembler.isOpen) return;
    this.isComplete = true;
    records.push(new ParsedRecord(++this.position, this.assembler, tokens, 0, to));
  }

  private tokensOf(text: string): readonly Token[] {
    try {
      return this.tokenize(text);
    } catch (error) {
      throw this.lineError(syntaxDetail(error));
    }
  }

  private endLine(complaint: string): void {
    if (!this.isBlank) {
      if (!this.isComplete) throw this.lineError(complaint);
      // A tokenizer takes one document: a new one for each line refuses a second value on it.
      this.tokenize = createTokenizer();
    }
    this.line++;
    this.isBlank = true;
    this.isComplete = false;
  }

  private lineError(detail: string): UnreadableJson {
    return new UnreadableJson(
      `is not JSON Lines: line ${this.line} is not one whole JSON value (${detail}).`,
    );
  }
}

function syntaxDetail(error: unknown): string {
  return quoted((error as Error).message.replace(/^Parser (cannot parse input: |has )/, ''));
}

function kindOf(token: Token): string {
  switch (token.name) {
    case 'startObject':
      return 'an object';
    case 'startArray':
      return 'an array';
    case 'stringValue':
      return 'a string';
    case 'numberValue':
      return 'a number';
    default:
      return 'value' in token ? String(token.value) : token.name;
  }
}

function nextHref(links: unknown): string | null {
  const next = member(asObject(links, '_links'), 'next');
  const href = member(asObject(next, '_links.next'), 'href') ?? '';
  if (typeof href !== 'string') throw new UnreadableJson('has a "_links.next.href" that is not a string.');
  return href === '' ? null : href;
}

/** Absent, null and the empty array (which some servers write for an empty object) hold no members. */
function asObject(value: unknown, name: string): unknown {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  throw new UnreadableJson(`has a "${name}" member that is not an object.`);
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
