// A version in stored form: its document, the live pointer, and the kept versions.

import type { ServedCollection } from '../collections/define.ts';
import type { Redis } from '../redis/connections.ts';
import { DamagedKeyError, parseStored } from '../redis/failures.ts';
import type { CollectionKeys } from './keys.ts';

/** How full a content is: the number of records with a value, by JSON path of a field, and of elements by path of an array. */
export interface Profile {
  readonly filled: Readonly<Record<string, number>>;
  readonly elements: Readonly<Record<string, number>>;
}

/** The format of stored contents. Numbers 1 to 3 were unreleased builds. */
export const currentFormat = 4;

/** A version whose format this release cannot read. */
export class UnknownFormatError extends Error {}

/** Returns why a version cannot be read, and the command that fixes it; `null` if it can. */
export function formatProblem(
  collection: string,
  { version, format }: { readonly version: number; readonly format: number },
): string | null {
  if (format === currentFormat) return null;
  return `Version ${version} of ${collection} is stored in format ${format}, which this release cannot read. Run "medref import ${collection}".`;
}

/** @throws UnknownFormatError if this release cannot read a version */
export function requireKnownFormat(collection: string, version: Version): void {
  const problem = formatProblem(collection, version);
  if (problem !== null) throw new UnknownFormatError(problem);
}

/** Facts of one collection's content. */
export interface ContentFacts {
  readonly totalCount: number;
  /** SHA-256 of the valid records in order, each followed by a line feed, hexadecimal. */
  readonly checksum: string;
  /** The sum, modulo 2^256, of the SHA-256 of each record, hexadecimal. */
  readonly setDigest: string;
  /** The length of the records, each with a line feed, in bytes. */
  readonly linesLength: number;
  /** The number of stored blocks; very large records have none. */
  readonly blocks: number;
  /** The number of texts of a prefix search, or values of an exact search, by name of the search. */
  readonly searches: Readonly<Record<string, number>>;
}

/** A content in stored form. */
export interface StoredContent extends ContentFacts {
  /** Its id, which its keys contain, see ContentName in keys.ts. */
  readonly content: string;
  readonly format: number;
  /** Facts of derived collections, by name. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
}

/** A published version. The live pointer and the kept versions store its JSON text. */
export interface Version extends StoredContent {
  readonly version: number;
  /** The time of its publication, ISO 8601. */
  readonly publishedAt: string;
  /** Whether it was published in spite of its checks. */
  readonly forced: boolean;
  readonly profile: Profile;
}

/** Returns a version with the facts of a served collection, which may be derived; `null` if the version has no such content. */
export function versionOf<It extends Version>(
  { collection, source }: ServedCollection,
  version: It,
): It | null {
  if (collection === source) return version;
  const facts = version.derived[collection.name];
  return facts ? { ...version, ...facts } : null;
}

/** Returns the number of the first version with a content. */
export function contentOf({ content }: Pick<StoredContent, 'content'>): number {
  return Number(content.split('.')[0]);
}

/** Returns the document of a version in stored form. */
export function documentOf(version: Version): string {
  return JSON.stringify(version);
}

/** Parses the document of a version. @throws DamagedKeyError */
export function parseVersion(key: string, document: string): Version {
  const { format, content, ...version } = parseStored<Version>(key, document);
  if (!Number.isSafeInteger(version.version) || typeof version.checksum !== 'string')
    throw new DamagedKeyError(`The Redis key ${key} holds a text that is not the document of a version.`);
  return { ...version, format: format ?? 1, content: String(content) };
}

/** The live version with the exact text of its document, which a publication compares. */
export interface LiveVersion extends Version {
  readonly document: string;
}

/** Returns the live version of a collection; `null` if nothing was published yet. @throws DamagedKeyError */
export async function readLiveVersion(redis: Redis, keys: CollectionKeys): Promise<LiveVersion | null> {
  const document = await redis.get(keys.live);
  return document === null ? null : { ...parseVersion(keys.live, document), document };
}

/**
 * Returns a kept version by its number and document.
 * @throws DamagedKeyError also if the document belongs to another version
 */
export function keptVersionOf(keys: CollectionKeys, number: number, document: string): Version {
  const version = parseVersion(keys.versionDocuments, document);
  if (version.version === number) return version;
  throw new DamagedKeyError(
    `The Redis key ${keys.versionDocuments} has the document of version ${version.version} under the number ${number}.`,
  );
}

/** Returns a kept version; `null` if it is not kept or never existed. @throws DamagedKeyError */
export async function readKeptVersion(
  redis: Redis,
  keys: CollectionKeys,
  version: number,
): Promise<Version | null> {
  const document = await redis.hget(keys.versionDocuments, String(version));
  return document === null ? null : keptVersionOf(keys, version, document);
}

/** Returns the kept versions of a collection, oldest first. @throws DamagedKeyError */
export async function readKeptVersions(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const documents = Object.entries(await redis.hgetall(keys.versionDocuments));
  return documents
    .map(([number, text]) => keptVersionOf(keys, Number(number), text))
    .sort((a, b) => a.version - b.version);
}
