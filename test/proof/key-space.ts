// Checks that the keys of a collection are exactly those of its live and kept versions, and that these are complete.

import { expect } from 'chai';
import { candidateLifetimeMs, isPublishable, readCandidate } from '../../shared/candidates.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { rangeIds } from '../../shared/store/block.ts';
import { countDamage, sizesOf } from '../../shared/store/completeness.ts';
import { type CollectionKeys, collectionKeys, stagedKeys } from '../../shared/store/keys.ts';
import { type LiveVersion, readKeptVersions, readLiveVersion } from '../../shared/store/versions.ts';
import { masters } from '../support/one-server.ts';

/** The longest time that staged and removed keys may remain, in ms. */
const longestExpiryMs = 60_000;

/** The state of a correct key space. */
export interface KeySpace {
  readonly live: LiveVersion | null;
  /** The keys of the candidate, which is complete if it can be published. */
  readonly ofCandidate: ReadonlySet<string>;
  /** Keys that expire, with their remaining lifetimes in ms. */
  readonly expiring: ReadonlyMap<string, number>;
}

/** Facts that decide which optional keys a collection may have. */
export interface Expectation {
  /** Whether the last publication was a rollback. */
  readonly rolledBack: boolean;
  /** The value of KEEP_VERSIONS. */
  readonly keepVersions?: number;
}

/** Returns the keys of a collection. */
export function keysOf(collection: string): CollectionKeys {
  const imported = importedCollections.find(({ name }) => name === collection);
  return collectionKeys(
    'medref',
    imported ?? { name: collection, derived: [], prefixSearches: {}, exactSearches: {} },
  );
}

/**
 * Checks that a collection has only the keys that its live and kept versions and its candidate need, and that these are
 * complete.
 * @throws AssertionError that names the missing and the surplus keys
 */
export async function checkKeySpace(
  redis: Redis,
  collection: string,
  { rolledBack, keepVersions = 3 }: Expectation,
): Promise<KeySpace> {
  const keys = keysOf(collection);
  const expiring = new Map<string, number>();
  const staying: string[] = [];
  for (const [key, ttl] of await lifetimes(redis, collection)) {
    if (ttl === -1) staying.push(key);
    else expiring.set(key, ttl);
  }
  const live = await readLiveVersion(redis, keys);
  const candidate = await readCandidate(redis, keys);
  const canPublish = candidate !== null && isPublishable(candidate, live);
  const ofCandidate = new Set(candidate ? [keys.candidate] : []);
  if (canPublish) {
    for (const key of stagedKeys(keys, candidate.version.version)) ofCandidate.add(key);
    expect(await countDamage(redis, keys, candidate.version), 'the candidate is complete').to.deep.equal([]);
  }
  for (const [key, ttl] of expiring)
    expect(ttl, key).to.be.within(0, ofCandidate.has(key) ? candidateLifetimeMs : longestExpiryMs);
  for (const key of ofCandidate)
    if (expiring.has(key)) expect(expiring.get(key), key).to.be.above(longestExpiryMs);
    else expect(staying, 'a key of the candidate that never expires').not.to.include(key);

  const kept = await readKeptVersions(redis, keys);
  const numbers = kept.map(({ version }) => String(version));
  expect(await redis.zrange(keys.versions, 0, '-1'), 'versions and their documents').to.deep.equal(numbers);
  expect(numbers.at(-1), 'the live version is the last kept one').to.equal(
    live ? String(live.version) : undefined,
  );
  expect(new Set(kept.map(({ content }) => content)).size, 'kept contents').to.be.at.most(keepVersions);

  for (const version of kept) {
    const { order, records } = keys.content(version.content);
    expect(
      [await redis.hlen(order), await redis.hlen(records), await countDamage(redis, keys, version)],
      `content of version ${version.version}`,
    ).to.deep.equal([Math.ceil(version.totalCount / rangeIds), version.totalCount, []]);
  }
  const changeSets = await redis.zrange(keys.changeSets, 0, '-1');
  // The first number may be of the very first publication, which has no change set.
  const firstHasNone =
    changeSets[0] !== undefined && !staying.includes(keys.changeSet(Number(changeSets[0])));
  const expected = [
    // A part without elements has no key.
    ...kept.flatMap((version) => sizesOf(keys, version).flatMap(({ key, size }) => (size > 0 ? [key] : []))),
    ...changeSets
      .slice(firstHasNone ? 1 : 0)
      .flatMap((number) => keys.parts.map((part) => part.changeSet(Number(number)))),
    ...(live ? [keys.live, keys.versions, keys.versionDocuments, keys.changeSets] : []),
  ];
  // Keys that may exist after any import; a dead import may have taken a number.
  const optional = [keys.next, keys.imports, keys.rejects, keys.rolledBack, keys.checked];
  optional.push(rolledBack ? keys.pause : keys.validators);
  // A list without barcodes has no key for barcodes; the counts of the version were compared above.
  const missing = [...new Set(expected)].filter((key) => !staying.includes(key) && !/:by-[a-z]+$/.test(key));
  const surplus = staying.filter((key) => !expected.includes(key) && !optional.includes(key));
  expect({ missing, surplus }, 'keys that stay').to.deep.equal({ missing: [], surplus: [] });
  if (rolledBack) expect(staying, 'the hold of a rollback').to.include.members([keys.pause, keys.rolledBack]);
  if (live) expect(Number(await redis.get(keys.next))).to.be.at.least(live.version);
  return { live, ofCandidate, expiring };
}

/** Checks that no lock and no staged keys are left, and that only contents and change sets expire that are not kept any more. */
export async function checkNothingUnderWay(
  redis: Redis,
  collection: string,
  expectation: Expectation,
): Promise<void> {
  const keys = keysOf(collection);
  const { live, ofCandidate, expiring } = await checkKeySpace(redis, collection, expectation);
  const kept = new Set((await readKeptVersions(redis, keys)).map(({ content }) => content));
  const changeSets = new Set((await redis.zrange(keys.changeSets, 0, '-1')).map(Number));
  for (const key of expiring.keys()) {
    if (ofCandidate.has(key)) continue;
    const [, digits, what] = /:(\d+):(records|order|blocks|words|by-[a-z]+|changes)$/.exec(key) ?? [];
    const number = Number(digits);
    expect(what, `${key} is of a content, or a change set`).not.to.equal(undefined);
    expect(number, 'what expires is older than what is live').to.be.below(live?.version ?? 0);
    expect(
      what === 'changes' ? changeSets.has(number) : kept.has(digits as string),
      `${key} is kept`,
    ).to.equal(false);
  }
  expect(await redis.exists(keys.lock, keys.staged)).to.equal(0);
}

/** Returns the keys of a collection with their remaining lifetimes in ms; -1: the key does not expire. */
async function lifetimes(redis: Redis, collection: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const master of masters(redis)) {
    for await (const batch of master.scanStream({ match: `medref:{${collection}}:*`, count: 1_000 })) {
      for (const key of batch as string[]) {
        const ttl = await master.pttl(key);
        if (ttl !== -2) found.set(key, ttl);
      }
    }
  }
  return found;
}
