// A version as it is stored: its document, which one is live, and which are kept.

import { crc32 } from 'node:zlib';
import type { ServedCollection } from '../collections/define.ts';
import type { Redis } from '../redis/connections.ts';
import { DamagedKeyError, parseStored } from '../redis/damage.ts';
import type { CollectionKeys, ContentName } from './keys.ts';

/** How full a content is: records by JSON path of a member that is filled in them, and elements of arrays by theirs. */
export interface Profile {
  readonly filled: Readonly<Record<string, number>>;
  readonly elements: Readonly<Record<string, number>>;
}

/** What is known of the content of one collection; what may be `undefined` is not known of contents of format 1. */
export interface ContentFacts {
  readonly totalCount: number;
  /** SHA-256 of the valid records in order, each with a line feed behind it, hexadecimal. */
  readonly checksum: string;
  /** The sum, modulo 2^256, of the SHA-256 of each record, hexadecimal. */
  readonly setDigest?: string | undefined;
  /** How long the records are, each with a line feed behind it, in bytes. */
  readonly linesLength?: number | undefined;
  /** How many blocks are stored; those of very large records are not. */
  readonly blocks: number;
  /** How many entries its search index has. */
  readonly entries: number;
  /** CRC-32 of all fences of the index, each with a line feed behind it. */
  readonly fencesCheck?: number | undefined;
}

/** A content as it is stored. */
export interface StoredContent extends ContentFacts {
  /** What its keys are named by. */
  readonly stored: ContentName;
  /** See content-format.ts. */
  readonly format: number;
  /** What it has of the collections that are derived from its own, by their names. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
}

/** What is known of a published version; its JSON text is stored as it is, with the live pointer and among the kept. */
export interface Version extends StoredContent {
  readonly version: number;
  /** Number of the content it holds: its own, unless it is a rollback. Stored under this number, unless it was made anew. */
  readonly content: number;
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

/** A document ends with the CRC-32 of all before, so that one of which a character was changed is told. */
const checkMember = /,"check":"[0-9a-f]{8}"\}$/;

/** The document of a version, as it is stored. */
export function documentOf(version: Version): string {
  return checked(JSON.stringify(version).slice(0, -1));
}

function checked(text: string): string {
  return `${text},"check":"${crc32(text).toString(16).padStart(8, '0')}"}`;
}

/** The version that a document is of; format 1 had no check. @throws DamagedKeyError */
export function parseVersion(key: string, document: string): Version {
  const { check, ...version } = parseStored<Version & { check?: string }>(key, document);
  const { format = 1, stored = version.content } = version as Partial<Version>;
  const isIntact = checkMember.test(document)
    ? checked(document.replace(checkMember, '')) === document
    : format === 1 && check === undefined;
  if (isIntact && stored !== undefined) return { ...version, format, stored };
  throw new DamagedKeyError(
    `The Redis key ${key} holds a version's document that is not as medref stored it.`,
  );
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
