// The table of all settings: name, default, accepted values, help, and parser.

import { availableParallelism } from 'node:os';
import { importedCollections } from '../shared/collections/collections.ts';
import { urlSetting } from '../shared/collections/define.ts';
import { isCronLine } from '../shared/cron.ts';
import { parseServers } from '../shared/redis/server-url.ts';
import { addressList, host, integer, matching, oneOf, originOf, percent, token, urlOf } from './parsers.ts';

/** A setting: one environment variable. */
export interface SettingDefinition<Value = unknown> {
  readonly name: string;
  /** The default, as an operator would write it. */
  readonly default?: string;
  /** Completes the sentence "it accepts …". */
  readonly accepts: string;
  /** Its description in the documentation. */
  readonly help: string;
  /** Whether messages hide its value. */
  readonly secret?: boolean;
  /** Returns the value of a text. @throws Error if the text is not accepted */
  readonly parse: (text: string) => Value;
}

const visibleAscii = 'visible ASCII characters without spaces';
const portRange = 'an integer from 0 (any free port) to 65535';
const hostOrAddress = 'a host name or IP address';
const zeroTo100 = 'a number from 0 to 100';
const perSecond = /^[1-9][0-9]{0,8}\/s$/;

/** The settings of every installation, by the names that the code uses. */
export const definitions = {
  redisUrl: {
    name: 'REDIS_URL',
    default: 'redis://127.0.0.1:6379',
    help: 'The Redis (6.2 or newer) or Valkey server: its address, its socket, or Sentinels or Cluster nodes.',
    accepts:
      'a redis: or rediss: URL, such as redis://127.0.0.1:6379, or unix:/path/of/socket, or redis+sentinel://host:port,host:port/master, or redis+cluster://host:port,host:port',
    parse(text: string): string {
      const servers = parseServers(text);
      return servers.kind === 'one' ? servers.url : text;
    },
  },
  readFrom: {
    name: 'READ_FROM',
    default: 'master',
    help: 'Where the API reads contents: `master` (the primary) or `replica` (one per process; with Sentinel or Cluster).',
    accepts: 'one of master, replica',
    parse: oneOf('master', 'replica'),
  },
  keyPrefix: {
    name: 'KEY_PREFIX',
    default: 'medref',
    help: 'Prefix of every Redis key.',
    accepts: 'letters, digits, "-", "_" and "."',
    parse: matching(/^[A-Za-z0-9._-]+$/),
  },
  apiHost: {
    name: 'API_HOST',
    default: '127.0.0.1',
    help: 'Address of the data listener.',
    accepts: hostOrAddress,
    parse: host,
  },
  apiPort: {
    name: 'API_PORT',
    default: '3000',
    help: 'Port of the data listener.',
    accepts: portRange,
    parse: integer(0, 65_535),
  },
  adminHost: {
    name: 'ADMIN_HOST',
    default: '127.0.0.1',
    help: 'Address of the admin listener: metrics and dashboard.',
    accepts: hostOrAddress,
    parse: host,
  },
  adminPort: {
    name: 'ADMIN_PORT',
    default: '3001',
    help: 'Port of the admin listener.',
    accepts: portRange,
    parse: integer(0, 65_535),
  },
  adminToken: {
    name: 'ADMIN_TOKEN',
    help: 'Password of the dashboard, with any user name. Without it, the dashboard is open only on loopback.',
    accepts: visibleAscii,
    parse: token,
    secret: true,
  },
  /** Without a trailing slash. */
  baseUrl: {
    name: 'BASE_URL',
    help: 'Base URL of links. Without it: `http://` and the `Host` of the request.',
    accepts: 'an http: or https: URL without credentials, query or fragment',
    parse(text: string): string {
      const { href, search } = urlOf(text, ['http:', 'https:']);
      if (search !== '') throw new Error('it has a query');
      return href.replace(/(?<!\/)\/+$/, '');
    },
  },
  trustedProxies: {
    name: 'TRUSTED_PROXIES',
    help: 'Proxies whose forwarding headers are trusted; see "TLS and a proxy".',
    accepts: 'IP addresses and CIDR ranges, separated by commas, such as 127.0.0.1,10.0.0.0/8',
    parse: addressList,
  },
  importCron: {
    name: 'IMPORT_CRON',
    default: '0 3 * * *',
    help: 'When `medref schedule` imports; see "The schedule" for its form.',
    accepts: 'five cron fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12, day of week 0-7',
    parse(text: string): string {
      if (!isCronLine(text)) throw new Error('not a schedule');
      return text.trim().split(/\s+/).join(' ');
    },
  },
  importTimezone: {
    name: 'IMPORT_TIMEZONE',
    default: 'UTC',
    help: 'Time zone of IMPORT_CRON.',
    accepts: 'an IANA time zone, such as Europe/Istanbul',
    parse(text: string): string {
      new Intl.DateTimeFormat('en', { timeZone: text });
      return text;
    },
  },
  publish: {
    name: 'PUBLISH',
    default: 'auto',
    help: '`manual`: an import that passes the checks waits as a candidate for `medref publish`; see "Candidates".',
    accepts: 'one of auto, manual',
    parse: oneOf('auto', 'manual'),
  },
  follow: {
    name: 'FOLLOW',
    default: 'false',
    help: '`true`: `medref schedule` also imports as soon as an upstream medref publishes.',
    accepts: 'one of true, false',
    parse: (text: string): boolean => oneOf('true', 'false')(text) === 'true',
  },
  maxShrinkPercent: {
    name: 'MAX_SHRINK_PERCENT',
    default: '20',
    help: 'Refuse an import if more than this percentage of the live ids disappear.',
    accepts: zeroTo100,
    parse: percent,
  },
  maxRejectPercent: {
    name: 'MAX_REJECT_PERCENT',
    default: '1',
    help: 'Refuse an import that rejects more than this percentage of its records.',
    accepts: zeroTo100,
    parse: percent,
  },
  maxChangePercent: {
    name: 'MAX_CHANGE_PERCENT',
    default: '50',
    help: 'Refuse an import that changes more than this percentage of the remaining records.',
    accepts: zeroTo100,
    parse: percent,
  },
  keepVersions: {
    name: 'KEEP_VERSIONS',
    default: '3',
    help: 'Contents kept per collection, including the live one. A rollback shares the content of an older version, so it adds none.',
    accepts: 'an integer from 2 to 1000',
    parse: integer(2, 1000),
  },
  defaultRate: {
    name: 'DEFAULT_RATE',
    help: 'Requests per second for keys without their own limit. Unset: unlimited.',
    accepts: 'requests per second, such as 10/s',
    parse: matching(perSecond),
  },
  workers: {
    name: 'WORKERS',
    default: '1',
    help: 'Number of API processes on one port; `auto`: one per core. See "Several API processes".',
    accepts: 'an integer from 1 to 256, or auto',
    parse: (text: string): number => (text === 'auto' ? availableParallelism() : integer(1, 256)(text)),
  },
  corsOrigins: {
    name: 'CORS_ORIGINS',
    help: 'Web origins whose pages may read the data, or `*` for all. Unset: none.',
    accepts: '* or origins, separated by commas, such as https://shop.example,http://localhost:8080',
    parse: (text: string): '*' | readonly string[] => (text === '*' ? text : text.split(',').map(originOf)),
  },
  logLevel: {
    name: 'LOG_LEVEL',
    default: 'info',
    help: 'Lowest level of the JSON logs on stderr: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.',
    accepts: 'one of trace, debug, info, warn, error, fatal, silent',
    parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  accessLog: {
    name: 'ACCESS_LOG',
    default: 'errors',
    help: 'Requests to log: `off`, `errors` (responses of 4xx and 5xx) or `all`.',
    accepts: 'one of off, errors, all',
    parse: oneOf('off', 'errors', 'all'),
  },
  webhookUrl: {
    name: 'WEBHOOK_URL',
    help: 'URL that receives each publication, candidate, refusal and failure; see "The webhook". Never logged: its path may be a secret.',
    accepts: 'an http: or https: URL without credentials or fragment',
    parse: (text: string): URL => urlOf(text, ['http:', 'https:']),
    secret: true,
  },
  webhookSecret: {
    name: 'WEBHOOK_SECRET',
    help: 'Key that signs requests to the webhook. Unset: unsigned.',
    accepts: visibleAscii,
    parse: token,
    secret: true,
  },
} as const satisfies Readonly<Record<string, SettingDefinition>>;

/** The Bearer token of every collection without its own. */
export const upstreamToken = {
  name: 'UPSTREAM_TOKEN',
  help: 'Bearer token for upstream, sent only to the origin of the URL.',
  accepts: visibleAscii,
  parse: token,
  secret: true,
} as const satisfies SettingDefinition;

/** The settings of each imported collection. */
export const upstreamDefinitions = importedCollections.map(({ name: collection }) => ({
  collection,
  url: {
    name: urlSetting(collection),
    help: `URL of the list of ${collection}. Unset: not imported.`,
    accepts:
      'an http:, https: or file: URL without credentials or fragment; a file: URL has no host: file:///path',
    parse: (text: string): URL => urlOf(text, ['http:', 'https:', 'file:']),
  },
  token: {
    name: `${collection.toUpperCase()}_TOKEN`,
    help: `Bearer token for the ${collection}; takes precedence over UPSTREAM_TOKEN.`,
    accepts: visibleAscii,
    parse: token,
    secret: true,
  },
}));

/** Every setting, in the order of the documentation. */
export const settingDefinitions: readonly SettingDefinition[] = [
  ...upstreamDefinitions.flatMap(({ url, token }) => [url, token]),
  upstreamToken,
  ...Object.values(definitions),
];
