// A version as it is stored: its document, which one is live, and which are kept.

import type { ServedCollection } from './collections/collection.ts';
import type { CollectionKeys } from './keys.ts';
import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';

/** How full a content is: records by JSON path of a member that is filled in them, and elements of arrays by theirs. */
export interface Profile {
  readonly filled: Readonly<Record<string, number>>;
  readonly elements: Readonly<Record<string, number>>;
}

/** What is known of the content of one collection. */
export interface ContentFacts {
  readonly totalCount: number;
  /** SHA-256 of the valid records in order, hexadecimal. */
  readonly checksum: string;
  /** How many blocks are stored; those of very large records are not. */
  readonly blocks: number;
  /** How many entries its search index has. */
  readonly entries: number;
}

/** What is known of a published version; its JSON text is stored as it is, with the live pointer and among the kept. */
export interface Version extends ContentFacts {
  readonly version: number;
  /** Number of the content it holds: its own, unless it is a rollback. */
  readonly content: number;
  /** When it became live, ISO 8601. */
  readonly publishedAt: string;
  /** Whether it was published past its checks. */
  readonly forced: boolean;
  readonly profile: Profile;
  /** What it has of the collections that are derived from its own, by their names. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
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

/** The live version with the exact text of its document, by which a publication tells whether it has moved. */
export interface LiveVersion extends Version {
  readonly document: string;
}

/** The live version of a collection, or `null` when nothing was published yet. @throws DamagedKeyError */
export async function readLiveVersion(redis: Redis, keys: CollectionKeys): Promise<LiveVersion | null> {
  const document = await redis.get(keys.live);
  return document === null ? null : { ...parseStored<Version>(keys.live, document), document };
}

/** A kept version of a collection, or `null` when it is not kept or never was. */
export async function readKeptVersion(
  redis: Redis,
  keys: CollectionKeys,
  version: number,
): Promise<Version | null> {
  const document = await redis.hget(keys.versionDocuments, String(version));
  return document === null ? null : parseStored<Version>(keys.versionDocuments, document);
}

/** The kept versions of a collection, oldest first. */
export async function readKeptVersions(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const documents = await redis.hvals(keys.versionDocuments);
  return documents
    .map((text) => parseStored<Version>(keys.versionDocuments, text))
    .sort((a, b) => a.version - b.version);
}
