// Places where the product is broken on purpose, and the tests that ought to notice.

/** One place. */
export interface Mutant {
  /** What is broken, as a phrase. */
  readonly what: string;
  readonly file: string;
  /** Text that is there once, and what stands there instead. */
  readonly from: string;
  readonly to: string;
  /** The test files that ought to notice. */
  readonly tests: readonly string[];
  /** Why nothing can notice it, where that is so. */
  readonly why?: string;
}

const api = 'test/api';
const importer = 'test/importer';
const scripts = `${importer}/scripts`;

export const mutants: readonly Mutant[] = [
  // ---- what clients are told
  {
    what: 'a 500 tells clients its inner message',
    file: 'api/plugins/errors.ts',
    from: "if (statusCode === 500) return 'Something went wrong here; it has been logged.';",
    to: '',
    tests: [`${api}/plugins/errors.test.ts`],
  },
  {
    what: 'a 500 is not logged',
    file: 'api/plugins/errors.ts',
    from: 'if (statusCode === 500) logger.error(',
    to: 'if (statusCode === 599) logger.error(',
    tests: [`${api}/plugins/errors.test.ts`],
  },
  {
    what: 'a 405 does not say what is allowed',
    file: 'api/plugins/methods.ts',
    from: "error.output.headers['Allow'] = 'GET, HEAD';",
    to: '',
    tests: [`${api}/plugins/errors.test.ts`, `${api}/routes/list.test.ts`],
  },
  {
    what: 'a 401 does not say what it wants',
    file: 'api/plugins/bearer-keys.ts',
    from: `error.output.headers['WWW-Authenticate'] = 'Bearer realm="medref"';`,
    to: '',
    tests: [`${api}/plugins/bearer-keys.test.ts`],
  },
  {
    what: 'a bad Host is remembered as good',
    file: 'api/requests/base-url.ts',
    from: '  if (!hostAndPort.test(text)',
    to: '  lastHost = text;\n  if (!hostAndPort.test(text)',
    tests: [`${api}/plugins/errors.test.ts`, `${api}/routes/list.test.ts`],
  },
  {
    what: 'a service without any version is ready',
    file: 'api/routes/health.ts',
    from: 'if ([...live.values()].every((version) => version === null)) {',
    to: 'if (live.size === 0) {',
    tests: [
      `${api}/plugins/errors.test.ts`,
      `${api}/reads/availability.test.ts`,
      `${api}/routes/list.test.ts`,
    ],
  },

  // ---- keys
  {
    what: 'a use that cannot be noted ends the process',
    file: 'api/reads/keyring.ts',
    from: '.catch(() => this.#noted.delete(id))',
    to: '',
    tests: [`${api}/plugins/bearer-keys.test.ts`],
  },
  {
    what: 'unknown keys stay in the map',
    file: 'api/reads/keyring.ts',
    from: 'key.then((it) => it ?? forget(), forget);',
    to: 'key.catch(forget);',
    tests: [`${api}/plugins/bearer-keys.test.ts`],
  },
  {
    what: 'an expired key is good',
    file: 'api/reads/keyring.ts',
    from: 'Date.parse(key.expiresAt) <= now',
    to: 'Date.parse(key.expiresAt) <= 0',
    tests: [`${api}/plugins/bearer-keys.test.ts`],
  },
  {
    what: 'a key is known for 5 s',
    file: 'api/reads/keyring.ts',
    from: 'const knownForMs = 500;',
    to: 'const knownForMs = 5_000;',
    tests: [`${api}/plugins/bearer-keys.test.ts`],
  },

  // ---- pages, parameters and conditions
  {
    what: 'the last page has a next one',
    file: 'api/answers/page-links.ts',
    from: 'if (currentPage < pageCount)',
    to: 'if (currentPage <= pageCount)',
    tests: [`${api}/answers/page-links.test.ts`],
  },
  {
    what: 'prev beyond the end is not the last page',
    file: 'api/answers/page-links.ts',
    from: 'Math.min(currentPage - 1, last)',
    to: 'currentPage - 1',
    tests: [`${api}/answers/page-links.test.ts`],
  },
  {
    what: 'per-page has no limit',
    file: 'api/requests/paging.ts',
    from: "Math.min(maxPerPage, readCount(parameters, 'per-page', maxPerPage))",
    to: "readCount(parameters, 'per-page', maxPerPage)",
    tests: [`${api}/requests/paging.test.ts`],
  },
  {
    what: 'a parameter may be given twice',
    file: 'api/requests/parameters.ts',
    from: 'if (found.has(name)) throw',
    to: 'if (found.size > 99) throw',
    tests: [`${api}/requests/parameters.test.ts`],
  },
  {
    what: 'leading zeros of an id matter',
    file: 'api/requests/parameters.ts',
    from: "const digits = text.replace(/^0+/, '');",
    to: 'const digits = text;',
    tests: [`${api}/requests/parameters.test.ts`, `${api}/routes/record.test.ts`],
  },
  {
    what: 'If-Modified-Since is looked at beside If-None-Match',
    file: 'api/answers/conditional.ts',
    from: 'if (ifNoneMatch !== undefined) return matches(ifNoneMatch, etag);',
    to: 'if (ifNoneMatch !== undefined && matches(ifNoneMatch, etag)) return true;',
    tests: [`${api}/answers/conditional.test.ts`],
  },
  {
    what: 'an ETag is made of parts that can be confused',
    file: 'api/answers/answer.ts',
    from: 'fingerprint(JSON.stringify(variant))',
    to: "fingerprint(variant.join(' '))",
    tests: [`${api}/answers/etags.test.ts`],
  },
  {
    what: 'Vary does not name Accept',
    file: 'api/answers/answer.ts',
    from: "'vary', 'Accept, Accept-Encoding, Authorization',",
    to: "'vary', 'Accept-Encoding, Authorization',",
    tests: [`${api}/answers/caching.test.ts`],
  },
  {
    what: 'small bodies are gzip, too',
    file: 'api/answers/answer.ts',
    from: 'made.length > gzipOver && ',
    to: '',
    tests: [`${api}/answers/caching.test.ts`],
  },
  {
    what: 'the ETag of the version before stands on a newer body',
    file: 'api/routes/list.ts',
    from: 'version === target.version ? validators : validatorsOf(version, variant)',
    to: 'validators',
    tests: [
      `${api}/answers/caching.test.ts`,
      `${api}/reads/pinned-reads.test.ts`,
      `${api}/reads/availability.test.ts`,
    ],
  },

  // ---- bodies
  {
    what: 'the checksum of gzip leaves out a comma',
    file: 'api/answers/gzip-member.ts',
    from: 'crcAfter(isFirst ? crc : crcAfter(crc, comma), part)',
    to: 'crcAfter(crc, part)',
    tests: [`${api}/answers/gzip-member.test.ts`, `${api}/answers/body.test.ts`],
  },
  {
    what: 'a page that begins within a quarter begins elsewhere',
    file: 'api/answers/body.ts',
    from: '{ from: skip % quarterRecords, count: taken }',
    to: '{ from: 0, count: taken }',
    tests: [`${api}/answers/body.test.ts`],
  },

  // ---- reads
  {
    what: 'live versions are told apart by number alone',
    file: 'api/reads/live-versions.ts',
    from: 'live.document === known?.document',
    to: 'live.version === known?.version',
    tests: [
      `${api}/reads/availability.test.ts`,
      `${api}/answers/caching.test.ts`,
      `${api}/reads/pinned-reads.test.ts`,
    ],
  },
  {
    what: 'a second try does not ask Redis',
    file: 'api/reads/read-model.ts',
    from: 'versionOfLive(served, await this.#live.refresh(served.source))',
    to: 'versionOfLive(served, await this.#live.get(served.source))',
    tests: [`${api}/reads/availability.test.ts`, `${api}/reads/pinned-reads.test.ts`],
  },
  {
    what: 'gauges stay while Redis is away',
    file: 'api/admin/metrics.ts',
    from: 'this.reset();\n      records.reset();',
    to: '',
    tests: [`${api}/admin/metrics.test.ts`],
  },
  {
    what: 'a search begins a page too late',
    file: 'api/reads/search.ts',
    from: 'Math.max(0, countBelow(sorted, least) - 1)',
    to: 'countBelow(sorted, least)',
    tests: [`${api}/routes/search.test.ts`],
  },
  {
    what: 'fences that are too few are believed',
    file: 'api/reads/fences.ts',
    from: 'if ((await redis.zcard(key)) !== count) throw new NotWholeError();',
    to: '',
    tests: [`${api}/reads/fences.test.ts`, `${api}/routes/search.test.ts`],
  },
  {
    what: 'a part of an order is remembered as all of it',
    file: 'api/reads/list-orders.ts',
    from: 'if (packed.length !== Math.min(rangeIds, order.count - range * rangeIds) * idBytes) return packed;',
    to: '',
    tests: [`${api}/reads/list-orders.test.ts`],
  },
  {
    what: 'what is asked in one turn is one command, however long',
    file: 'api/reads/hash-reads.ts',
    from: 'if (until >= maxFields) this.#send(key, gathered);',
    to: '',
    tests: [`${api}/reads/hash-reads.test.ts`],
  },
  {
    what: 'a change that was taken back is listed',
    file: 'api/reads/change-sets.ts',
    from: 'if (before !== after) ids.push(id);',
    to: 'ids.push(id);',
    tests: [`${api}/reads/change-lists.test.ts`],
  },
  {
    what: 'the digest before is that of the latest change',
    file: 'api/reads/change-sets.ts',
    from: 'if (known) known.before = before;',
    to: 'if (known) return;',
    tests: [`${api}/reads/change-lists.test.ts`],
  },
  {
    what: 'a change set that lacks a part is believed',
    file: 'api/reads/change-sets.ts',
    from: 'return seen.size === size;',
    to: 'return size !== undefined;',
    tests: [`${api}/reads/change-lists.test.ts`],
  },
  {
    what: 'a connection to another database is used',
    file: 'shared/redis/connections.ts',
    from: "if (name === 'ReplyError' && redis.status === 'connect') redis.disconnect(true);",
    to: '',
    tests: ['test/shared/redis/connections.test.ts'],
  },

  // ---- formats
  {
    what: 'a damaged block is opened',
    file: 'shared/formats/block.ts',
    from: 'crc32(stored) !== residue',
    to: 'stored.length > 1e9',
    tests: ['test/shared/formats/block.test.ts'],
  },
  {
    what: 'a damaged page of the search index is opened',
    file: 'shared/formats/search-page.ts',
    from: 'crc32(stored.subarray(4)) !== stored.readUInt32LE(0)',
    to: 'stored.length > 1e9',
    tests: ['test/shared/formats/search-page.test.ts'],
  },
  {
    what: 'a name may hold what ends a part of an entry',
    file: 'shared/formats/search-entries.ts',
    from: ".replaceAll(end, '\\x01\\x01')",
    to: '',
    tests: ['test/shared/formats/search-entries.test.ts'],
  },
  {
    what: 'dotted and dotless i are two letters',
    file: 'shared/formats/fold.ts',
    from: ".replace(iLetters, 'i')",
    to: '',
    tests: ['test/shared/formats/fold.test.ts'],
  },

  // ---- scripts
  {
    what: 'a later record of an id takes the place of the first',
    file: 'importer/scripts/stage-records.lua',
    from: 'if not first or first == positions[n] then',
    to: 'if true then',
    tests: [`${scripts}/stage-records.test.ts`],
  },
  {
    what: 'a version is published without the lock',
    file: 'importer/scripts/publish.lua',
    from: "if redis.call('GET', KEYS[1]) ~= it.token then return -1 end",
    to: '',
    tests: [`${scripts}/publish.test.ts`],
  },
  {
    what: 'a version is published over another one',
    file: 'importer/scripts/publish.lua',
    from: "if (redis.call('GET', KEYS[2]) or '') ~= it.expectedLive then return -2 end",
    to: '',
    tests: [`${scripts}/publish.test.ts`],
  },
  {
    what: 'a content that is not whole is published',
    file: 'importer/scripts/publish.lua',
    from: 'if redis.call(size[1], KEYS[13 + i]) ~= size[2] then return -3 end',
    to: '',
    tests: [`${scripts}/publish.test.ts`],
  },
  {
    what: 'what is published expires',
    file: 'importer/scripts/publish.lua',
    from: "for i = 14, workspace do redis.call('PERSIST', KEYS[i]) end",
    to: '',
    tests: [`${scripts}/publish.test.ts`],
  },
  {
    what: 'a publication that is repeated is another one',
    file: 'importer/scripts/publish.lua',
    from: "if redis.call('ZSCORE', KEYS[3], it.number) then return 2 end",
    to: '',
    tests: [`${scripts}/publish.test.ts`],
  },
  {
    what: 'a change set that lacks a part is published',
    file: 'importer/scripts/publish.lua',
    from: "if size >= 0 and redis.call('HLEN', KEYS[changeSets + i]) ~= size then return -3 end",
    to: '',
    tests: [`${scripts}/publish.test.ts`, `${importer}/import-cycle.test.ts`],
  },
  {
    what: 'what was published meanwhile is given an expiry',
    file: 'importer/scripts/renew.lua',
    from: "if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then",
    to: 'if true then',
    tests: [`${scripts}/renew.test.ts`],
  },
  {
    what: 'an end that is told twice is twice in the history',
    file: 'importer/scripts/conclude.lua',
    from: 'if last and last[2][2] == it.report then return 1 end',
    to: '',
    tests: [`${scripts}/conclude.test.ts`],
  },
  {
    what: 'what was published after all is dropped',
    file: 'importer/scripts/discard.lua',
    from: "if redis.call('ZSCORE', KEYS[3], ARGV[2]) then return 2 end",
    to: '',
    tests: [`${scripts}/conclude.test.ts`, `${scripts}/discard.test.ts`],
  },
  {
    what: 'records that differ are not told',
    file: 'importer/scripts/compare.lua',
    from: "elseif ARGV[5] == 'after' and walked[n] ~= others[n] then",
    to: 'elseif false then',
    tests: [`${scripts}/compare.test.ts`],
  },
  {
    what: 'a number is given out without the lock',
    file: 'importer/scripts/begin.lua',
    from: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end",
    to: '',
    tests: [`${scripts}/begin.test.ts`],
  },

  // ---- the road of an import
  {
    what: 'a lock that could not be renewed is not lost',
    file: 'importer/job/import-lock.ts',
    from: 'if (Date.now() - renewedAt > times.lockMs) lost.abort(new LockLostError());',
    to: '',
    tests: [`${importer}/job/import-lock.test.ts`],
  },
  {
    what: 'an import starts again once at most',
    file: 'importer/job/restarts.ts',
    from: 'const maxRestarts = 3;',
    to: 'const maxRestarts = 1;',
    tests: [`${importer}/import-cycle.test.ts`, `${importer}/upstream/upstream-faults.test.ts`],
  },
  {
    what: 'connections to upstream stay open',
    file: 'importer/import-cycle.ts',
    from: 'await upstream.close();',
    to: '',
    tests: [`${importer}/import-cycle.test.ts`],
  },
  {
    what: 'validators of another URL are sent',
    file: 'importer/job/known-validators.ts',
    from: 'return source === digest(upstream.url) ? { etag, lastModified } : null;',
    to: 'return source ? { etag, lastModified } : null;',
    tests: [`${importer}/import-cycle.test.ts`],
  },
  {
    what: 'content that was rolled back from is taken again',
    file: 'importer/checks/judge.ts',
    from: 'const undone = !isLive && (await isUndone(context.redis, keys, checksum));',
    to: 'const undone = !isLive && (await isUndone(context.redis, keys, checksum)) && context.dryRun;',
    tests: ['test/bin/versions.test.ts', `${importer}/import-cycle.test.ts`],
  },
  {
    what: 'a force publishes an empty version',
    file: 'importer/checks/not-empty.ts',
    from: 'forceable: false',
    to: 'forceable: true',
    tests: [`${importer}/import-cycle.test.ts`],
  },
  {
    what: 'a content of which a key is gone is whole',
    file: 'importer/publishing/wholeness.ts',
    from: 'return !measured.includes(false);',
    to: 'return measured.length > 0;',
    tests: [`${importer}/import-cycle.test.ts`, `${importer}/publishing/mended-keys.test.ts`],
  },
  {
    what: 'removed records are not in the change set',
    file: 'importer/publishing/compare-versions.ts',
    from: 'range * rangeIds < before.totalCount && left > 0',
    to: 'range * rangeIds < before.totalCount && left > 1e9',
    tests: [`${api}/routes/changes.test.ts`, `${importer}/import-cycle.test.ts`],
  },
  {
    what: 'content that is not kept can be read for 2 s',
    file: 'importer/publishing/retention.ts',
    from: 'export const graceMs = 60_000;',
    to: 'export const graceMs = 2_000;',
    tests: [
      `${importer}/import-cycle.test.ts`,
      `${importer}/rollback.test.ts`,
      `${importer}/publishing/retention.test.ts`,
    ],
  },
  {
    what: 'Redis may be any number of batches behind',
    file: 'importer/writing/version-writer.ts',
    from: 'while (this.#underWay.length >= maxUnderWay) await this.#underWay.shift();',
    to: '',
    tests: [`${importer}/writing/version-writer.test.ts`],
  },
  {
    what: 'a value with further members is served as it came',
    file: 'importer/writing/record-validator.ts',
    from: 'return n === names.length;',
    to: 'return true;',
    tests: [`${importer}/writing/record-validator.test.ts`],
  },
  {
    what: 'an entry that comes twice stays twice',
    file: 'importer/writing/entry-sorter.ts',
    from: 'return sorted.filter((entry, n) => entry !== sorted[n - 1]);',
    to: 'return [...sorted];',
    tests: [`${importer}/writing/entry-sorter.test.ts`],
  },
  {
    what: 'an empty array counts as filled',
    file: 'importer/writing/profile.ts',
    from: ' && length !== 0',
    to: '',
    tests: [`${importer}/import-cycle.test.ts`],
  },

  // ---- upstream
  {
    what: 'a number that was rounded is taken for exact',
    file: 'importer/reader/json-values.ts',
    from: 'return !Number.isSafeInteger(number) || isExactly(lexeme, number) ? number : Number.NaN;',
    to: 'return number;',
    tests: [`${importer}/reader/record-reader.test.ts`],
  },
  {
    what: 'one more level of nesting is built',
    file: 'importer/reader/json-values.ts',
    from: 'if (this.depth < maxDepth) {',
    to: 'if (this.depth <= maxDepth) {',
    tests: [`${importer}/reader/record-reader.test.ts`],
  },
  {
    what: 'text without a record may go on without end',
    file: 'importer/reader/record-reader.ts',
    from: 'if (bytesWithoutRecord > limits.bytesWithoutRecord) throw tooLong(name, position, limits);',
    to: '',
    tests: [`${importer}/reader/record-reader.test.ts`],
  },
  {
    what: 'a loop of pages is walked',
    file: 'importer/reader/record-reader.ts',
    from: 'if (visited.has(next.href))',
    to: 'if (visited.size > 1e6)',
    tests: [`${importer}/reader/record-reader.test.ts`],
  },
  {
    what: 'Last-Modified is believed whatever the Date',
    file: 'importer/upstream/document.ts',
    from: 'return age >= 1_000 ? modified : null;',
    to: 'return modified;',
    tests: [`${importer}/upstream/upstream.test.ts`, `${importer}/import-cycle.test.ts`],
  },
  {
    what: 'the token goes from https to http on one host',
    file: 'importer/upstream/http.ts',
    from: 'if (target.origin !== url.origin) {',
    to: 'if (target.hostname !== url.hostname) {',
    tests: [`${importer}/upstream/upstream.test.ts`],
  },
  {
    what: 'a body of any size is read',
    file: 'importer/upstream/document.ts',
    from: 'if (size > limits.bodyBytes) {',
    to: 'if (size > 1e15) {',
    tests: [`${importer}/upstream/upstream.test.ts`, `${importer}/upstream/upstream-faults.test.ts`],
  },

  // ---- the command line
  {
    what: 'a schedule on a day that never comes is taken',
    file: 'config/cron-line.ts',
    from: 'day <= (longestMonths[month - 1] as number)',
    to: 'day <= 31 && month <= 12',
    tests: ['test/config/cron-line.test.ts'],
  },
  {
    what: 'a password is shown in part',
    file: 'config/settings.ts',
    from: '.*@/is',
    to: '[^@]*@/is',
    tests: ['test/config/settings.test.ts'],
  },
  {
    what: 'errors are logged with the arguments of Redis commands',
    file: 'bin/logger.ts',
    from: 'return { type: name, message, stack };',
    to: 'return { type: name, message, stack, ...(error as object) };',
    tests: ['test/bin/logger.test.ts', 'test/bin/medref.test.ts'],
  },
  {
    what: 'a difference ends after the first range',
    file: 'importer/version-diff.ts',
    from: 'range * rangeIds < walked.totalCount',
    to: 'range < 1',
    tests: ['test/bin/versions.test.ts', `${importer}/version-diff.test.ts`],
  },
];
