// A version as it is stored: its document, which one is live, and which are kept.

import type { ServedCollection } from '../collections/define.ts';
import type { Redis } from '../redis/connections.ts';
import { DamagedKeyError, parseStored } from '../redis/failures.ts';
import type { CollectionKeys } from './keys.ts';

/** How full a content is: records by JSON path of a member that is filled in them, and elements of arrays by theirs. */
export interface Profile {
  readonly filled: Readonly<Record<string, number>>;
  readonly elements: Readonly<Record<string, number>>;
}

/** The format in which contents are stored. Numbers 1 to 3 were builds that nobody released. */
export const currentFormat = 4;

/** A version whose content is stored in a format that this release does not know. */
export class UnknownFormatError extends Error {}

/** Returns why a version cannot be read, and the command that helps; `null` if this release knows its format. */
export function formatProblem(
  collection: string,
  { version, format }: { readonly version: number; readonly format: number },
): string | null {
  if (format === currentFormat) return null;
  return `Version ${version} of ${collection} is stored in format ${format}, which this release does not know. Run "medref import ${collection}".`;
}

/** @throws UnknownFormatError if this release does not know the format of a version */
export function requireKnownFormat(collection: string, version: Version): void {
  const problem = formatProblem(collection, version);
  if (problem !== null) throw new UnknownFormatError(problem);
}

/** What is known of the content of one collection. */
export interface ContentFacts {
  readonly totalCount: number;
  /** SHA-256 of the valid records in order, each with a line feed behind it, hexadecimal. */
  readonly checksum: string;
  /** The sum, modulo 2^256, of the SHA-256 of each record, hexadecimal. */
  readonly setDigest: string;
  /** How long the records are, each with a line feed behind it, in bytes. */
  readonly linesLength: number;
  /** How many blocks are stored; those of very large records are not. */
  readonly blocks: number;
  /** How many texts a prefix search knows, or values an exact search, by the name of the search. */
  readonly searches: Readonly<Record<string, number>>;
}

/** A content as it is stored. */
export interface StoredContent extends ContentFacts {
  /** Its id, which its keys are named by, see ContentName in keys.ts. */
  readonly content: string;
  readonly format: number;
  /** The facts of the collections that are derived from its own, by their names. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
}

/** What is known of a published version; its JSON text is stored as it is, with the live pointer and among the kept. */
export interface Version extends StoredContent {
  readonly version: number;
  /** When it became live, ISO 8601. */
  readonly publishedAt: string;
  /** Whether it was published past its checks. */
  readonly forced: boolean;
  readonly profile: Profile;
}

/** A version with the facts of a served collection, which may be derived; `null` when it has nothing of that. */
export function versionOf<It extends Version>(
  { collection, source }: ServedCollection,
  version: It,
): It | null {
  if (collection === source) return version;
  const facts = version.derived[collection.name];
  return facts ? { ...version, ...facts } : null;
}

/** Returns the number of the version that a content was first published as. */
export function contentOf({ content }: Pick<StoredContent, 'content'>): number {
  return Number(content.split('.')[0]);
}

/** Returns the document of a version, as it is stored. */
export function documentOf(version: Version): string {
  return JSON.stringify(version);
}

/** Parses the document of a version. @throws DamagedKeyError */
export function parseVersion(key: string, document: string): Version {
  const { format, content, ...version } = parseStored<Version>(key, document);
  if (!Number.isSafeInteger(version.version) || typeof version.checksum !== 'string')
    throw new DamagedKeyError(`The Redis key ${key} holds a document that is not of a version.`);
  return { ...version, format: format ?? 1, content: String(content) };
}

/** The live version with the exact text of its document, by which a publication tells whether it has moved. */
export interface LiveVersion extends Version {
  readonly document: string;
}

/** The live version of a collection, or `null` when nothing was published yet. @throws DamagedKeyError */
export async function readLiveVersion(redis: Redis, keys: CollectionKeys): Promise<LiveVersion | null> {
  const document = await redis.get(keys.live);
  return document === null ? null : { ...parseVersion(keys.live, document), document };
}

/**
 * A version by what the key of kept versions has of it: its number, and its document.
 * @throws DamagedKeyError also where the document is of another version
 */
export function keptVersionOf(keys: CollectionKeys, number: number, document: string): Version {
  const version = parseVersion(keys.versionDocuments, document);
  if (version.version === number) return version;
  throw new DamagedKeyError(
    `The Redis key ${keys.versionDocuments} has the document of version ${version.version} as that of ${number}.`,
  );
}

/** A kept version of a collection, or `null` when it is not kept or never was. @throws DamagedKeyError */
export async function readKeptVersion(
  redis: Redis,
  keys: CollectionKeys,
  version: number,
): Promise<Version | null> {
  const document = await redis.hget(keys.versionDocuments, String(version));
  return document === null ? null : keptVersionOf(keys, version, document);
}

/** The kept versions of a collection, oldest first. @throws DamagedKeyError */
export async function readKeptVersions(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const documents = Object.entries(await redis.hgetall(keys.versionDocuments));
  return documents
    .map(([number, text]) => keptVersionOf(keys, Number(number), text))
    .sort((a, b) => a.version - b.version);
}
