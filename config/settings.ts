// In: the environment. Out: one frozen, validated settings object, or one line that says which setting is bad.

import { BlockList, isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import Joi from 'joi';
import { urlSetting } from '../shared/collections/collection.ts';
import { importedCollections } from '../shared/collections/collections.ts';
import { parseServers } from '../shared/redis/server-url.ts';
import { isCronLine } from './cron-line.ts';

/** Where one collection comes from. */
export interface UpstreamSettings {
  readonly url: URL;
  /** Bearer credential sent upstream. */
  readonly token: string | undefined;
}

/** All settings, typed; see {@link settingDefinitions} for what each means. */
export interface Settings {
  readonly redisUrl: string;
  readonly readFrom: 'master' | 'replica';
  readonly keyPrefix: string;
  readonly apiHost: string;
  readonly apiPort: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly adminToken: string | undefined;
  /** Without a trailing slash; `undefined`: `http://` and the request's `Host`. */
  readonly baseUrl: string | undefined;
  /** `undefined`: none are trusted. */
  readonly trustedProxies: BlockList | undefined;
  /** By collection name; a collection without a URL is absent. */
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  /** Of one document: its size, decoded, and how long its answer may take to begin. */
  readonly upstreamLimits: { readonly bodyBytes: number; readonly requestMs: number };
  /** Of a list: its pages, and how deep its records may be nested. */
  readonly readerLimits: { readonly pages: number; readonly depth: number };
  readonly importCron: string;
  readonly importTimezone: string;
  /** Whether the schedule imports as soon as an upstream that is a medref publishes. */
  readonly follow: boolean;
  readonly maxShrinkPercent: number;
  readonly maxRejectPercent: number;
  readonly maxChangePercent: number;
  readonly keepVersions: number;
  /** Such as `10/s`. */
  readonly defaultRate: string | undefined;
  /** How many processes serve behind one port. */
  readonly workers: number;
  readonly maxStreams: number;
  /** Of pages of browsers that may read the data; `undefined`: none. */
  readonly corsOrigins: '*' | readonly string[] | undefined;
  readonly maxRequests: number;
  /** `undefined`: all that there are. */
  readonly waitReplicas: number | undefined;
  readonly logLevel: string;
  readonly accessLog: 'off' | 'errors' | 'all';
  readonly webhookUrl: URL | undefined;
  readonly webhookSecret: string | undefined;
}

/** One setting: its name in the environment, its default, what it means, what it takes, and the rule that says so. */
export interface SettingDefinition {
  readonly name: string;
  readonly default?: string | number;
  readonly doc: string;
  /** Completes the sentence "it takes …". */
  readonly takes: string;
  readonly rule: Joi.Schema;
  /** Its value is never shown. */
  readonly secret?: boolean;
}

/** Bad settings; the message has a line for each that names it, its value and what it takes. */
export class SettingsError extends Error {}

const port = Joi.number().integer().min(0).max(65_535);
const host = Joi.alternatives(Joi.string().hostname(), Joi.string().ip({ cidr: 'forbidden' }));
const percent = Joi.number().min(0).max(100);
const token = Joi.string().pattern(/^[\x21-\x7e]+$/);

/** Every setting, in the order in which the documentation lists them. */
export const settingDefinitions: readonly SettingDefinition[] = [
  {
    name: 'REDIS_URL',
    default: 'redis://127.0.0.1:6379',
    doc: 'The Redis (6.2 or newer) or Valkey server, by its address or its socket, or the servers of "Sentinel and Cluster".',
    takes:
      'a redis: or rediss: URL, such as redis://127.0.0.1:6379, or unix:/path/of/socket, or redis+sentinel://host:port,host:port/master, or redis+cluster://host:port,host:port',
    rule: Joi.string().custom((value: string) => {
      const servers = parseServers(value);
      return servers.kind === 'one' ? servers.url : value;
    }),
  },
  {
    name: 'READ_FROM',
    default: 'master',
    doc: 'Where the API reads contents: from the master, or each process from one replica. With Sentinel or Cluster only.',
    takes: 'one of master, replica',
    rule: Joi.string().valid('master', 'replica'),
  },
  {
    name: 'KEY_PREFIX',
    default: 'medref',
    doc: 'First part of every Redis key.',
    takes: 'letters, digits, "-", "_" and "."',
    rule: Joi.string().pattern(/^[A-Za-z0-9._-]+$/),
  },
  {
    name: 'API_HOST',
    default: '127.0.0.1',
    doc: 'Address of the data listener.',
    takes: 'a host name or IP address',
    rule: host,
  },
  {
    name: 'API_PORT',
    default: 3000,
    doc: 'Port of the data listener.',
    takes: 'an integer from 0 (any free port) to 65535',
    rule: port,
  },
  {
    name: 'ADMIN_HOST',
    default: '127.0.0.1',
    doc: 'Address of the admin listener, which has the metrics and the dashboard.',
    takes: 'a host name or IP address',
    rule: host,
  },
  {
    name: 'ADMIN_PORT',
    default: 3001,
    doc: 'Port of the admin listener.',
    takes: 'an integer from 0 (any free port) to 65535',
    rule: port,
  },
  {
    name: 'ADMIN_TOKEN',
    doc: 'Password of the dashboard, with any user name. Without it the dashboard is answered on loopback alone.',
    takes: 'visible ASCII characters without spaces',
    rule: token,
    secret: true,
  },
  {
    name: 'BASE_URL',
    doc: 'What the links of the answers begin with. Without it: `http://` and the `Host` of the request.',
    takes: 'an http: or https: URL without credentials, query or fragment',
    rule: url(['http:', 'https:'], (it) => plain(it) && it.search === ''),
  },
  {
    name: 'TRUSTED_PROXIES',
    doc: 'Proxies that are believed who sent a request, by which scheme and to which host, as "TLS and a proxy" says.',
    takes: 'IP addresses and CIDR ranges with commas between them, such as 127.0.0.1,10.0.0.0/8',
    rule: Joi.string().custom((value: string) => addressList(value) && value),
  },
  ...importedCollections.flatMap(({ name }): SettingDefinition[] => [
    {
      name: urlSetting(name),
      doc: `Where the ${name} come from; without it they are not imported.`,
      takes:
        'an http:, https: or file: URL without credentials or fragment; a file: URL has three slashes and no host',
      rule: url(
        ['http:', 'https:', 'file:'],
        (it) => plain(it) && (it.protocol !== 'file:' || it.host === ''),
      ),
    },
    {
      name: tokenSetting(name),
      doc: `Bearer credential for the ${name}; goes before UPSTREAM_TOKEN.`,
      takes: 'visible ASCII characters without spaces',
      rule: token,
      secret: true,
    },
  ]),
  {
    name: 'UPSTREAM_TOKEN',
    doc: 'Bearer credential sent upstream, never to another origin than that of the URL.',
    takes: 'visible ASCII characters without spaces',
    rule: token,
    secret: true,
  },
  {
    name: 'UPSTREAM_MAX_BYTES',
    default: 4 * 1024 ** 3,
    doc: 'An import fails where one document of upstream has more decoded bytes than this.',
    takes: 'an integer from 1000 to 1000000000000',
    rule: Joi.number().integer().min(1_000).max(1e12),
  },
  {
    name: 'UPSTREAM_MAX_PAGES',
    default: 100_000,
    doc: 'An import fails where a list has more pages than this.',
    takes: 'an integer from 1 to 10000000',
    rule: Joi.number().integer().min(1).max(10_000_000),
  },
  {
    name: 'UPSTREAM_MAX_DEPTH',
    default: 32,
    doc: 'A record is rejected where its arrays and objects are nested deeper than this.',
    takes: 'an integer from 4 to 1000',
    rule: Joi.number().integer().min(4).max(1_000),
  },
  {
    name: 'UPSTREAM_MAX_SECONDS',
    default: 60,
    doc: 'An import fails where upstream has not begun to answer a request within this, with all tries and waits.',
    takes: 'an integer from 1 to 3600',
    rule: Joi.number().integer().min(1).max(3_600),
  },
  {
    name: 'IMPORT_CRON',
    default: '0 3 * * *',
    doc: 'When `medref schedule` imports; its form is below, under "The schedule".',
    takes: 'five cron fields: minute, hour, day of month, month, day of week',
    rule: Joi.string().custom(cronLine),
  },
  {
    name: 'IMPORT_TIMEZONE',
    default: 'UTC',
    doc: 'Time zone of IMPORT_CRON.',
    takes: 'an IANA time zone, such as Europe/Istanbul',
    rule: Joi.string().custom((value: string) => new Intl.DateTimeFormat('en', { timeZone: value }) && value),
  },
  {
    name: 'FOLLOW',
    default: 'false',
    doc: '`true`: `medref schedule` also imports as soon as an upstream that is a medref publishes.',
    takes: 'one of true, false',
    rule: Joi.string().valid('true', 'false'),
  },
  {
    name: 'MAX_SHRINK_PERCENT',
    default: 20,
    doc: 'An import is refused when more of the live ids than this are absent.',
    takes: 'a number from 0 to 100',
    rule: percent,
  },
  {
    name: 'MAX_REJECT_PERCENT',
    default: 1,
    doc: 'An import is refused when more of the records read than this are rejected.',
    takes: 'a number from 0 to 100',
    rule: percent,
  },
  {
    name: 'MAX_CHANGE_PERCENT',
    default: 50,
    doc: 'An import is refused when more of the live ids that stay than this have another record.',
    takes: 'a number from 0 to 100',
    rule: percent,
  },
  {
    name: 'KEEP_VERSIONS',
    default: 3,
    doc: 'Contents kept of each collection, the live one among them; versions that hold the same content, as a rollback’s, count once.',
    takes: 'an integer from 2 to 1000',
    rule: Joi.number().integer().min(2).max(1000),
  },
  {
    name: 'DEFAULT_RATE',
    doc: 'How many requests a second a key may make that has no rate of its own. Without it, such keys have no limit.',
    takes: 'a number of requests a second, such as 10/s',
    rule: Joi.string().pattern(/^[1-9][0-9]{0,8}\/s$/),
  },
  {
    name: 'WORKERS',
    default: 1,
    doc: 'How many API processes answer behind one port; `auto`: one for each core. See "Several API processes".',
    takes: 'an integer from 1 to 256, or auto',
    rule: Joi.alternatives(Joi.string().valid('auto'), Joi.number().integer().min(1).max(256)),
  },
  {
    name: 'MAX_STREAMS',
    default: 20,
    doc: 'How many lists as JSON Lines each API process sends to one key at once.',
    takes: 'an integer from 1 to 10000',
    rule: Joi.number().integer().min(1).max(10_000),
  },
  {
    name: 'CORS_ORIGINS',
    doc: 'Origins of pages that may read the data in a browser, or `*` for all pages. Without it, none may.',
    takes: '* or origins with commas between them, such as https://shop.example,http://localhost:8080',
    rule: Joi.string().custom((value: string) => (value === '*' ? value : value.split(',').map(originOf))),
  },
  {
    name: 'MAX_REQUESTS',
    default: 1000,
    doc: 'How many requests each API process works on at once. Beyond it they are answered with 503; see "Overload".',
    takes: 'an integer from 1 to 100000',
    rule: Joi.number().integer().min(1).max(100_000),
  },
  {
    name: 'WAIT_REPLICAS',
    doc: 'How many replicas a publication is waited for, for a second at most; fewer are warned of. Without it: all that there are.',
    takes: 'an integer from 0 to 100',
    rule: Joi.number().integer().min(0).max(100),
  },
  {
    name: 'LOG_LEVEL',
    default: 'info',
    doc: 'Least level of the structured JSON logs on stderr.',
    takes: 'one of trace, debug, info, warn, error, fatal, silent',
    rule: Joi.string().valid('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  {
    name: 'ACCESS_LOG',
    default: 'errors',
    doc: 'Which requests have a line of the log each, at level 30: none, those that were answered with 4xx and 5xx, or all.',
    takes: 'one of off, errors, all',
    rule: Joi.string().valid('off', 'errors', 'all'),
  },
  {
    name: 'WEBHOOK_URL',
    doc: 'Told of each publication, refusal and failure, as "The webhook" says. Never shown: its path may be a secret.',
    takes: 'an http: or https: URL without credentials or fragment',
    rule: url(['http:', 'https:'], plain),
    secret: true,
  },
  {
    name: 'WEBHOOK_SECRET',
    doc: 'What notices to the webhook are signed with; without it they are not signed.',
    takes: 'visible ASCII characters without spaces',
    rule: token,
    secret: true,
  },
];

/**
 * Reads and checks all settings. A variable that is set to nothing counts as not set.
 * @param environment usually `process.env`
 * @throws SettingsError for all bad settings, and for two that contradict each other
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const values = new Map<string, unknown>();
  const wrong: string[] = [];
  for (const definition of settingDefinitions) {
    const given = environment[definition.name];
    if (!given) {
      values.set(definition.name, definition.default);
      continue;
    }
    const { value, error } = definition.rule.validate(given);
    if (error) wrong.push(badSetting(definition, given));
    else values.set(definition.name, value);
  }
  wrong.push(...contradictions(values));
  if (wrong.length > 0) throw new SettingsError(wrong.join('\n'));
  const text = (name: string) => values.get(name) as string;
  const number = (name: string) => values.get(name) as number;
  const webhookUrl = values.get('WEBHOOK_URL') as string | undefined;
  const proxies = values.get('TRUSTED_PROXIES') as string | undefined;
  return Object.freeze({
    redisUrl: text('REDIS_URL'),
    readFrom: text('READ_FROM') as Settings['readFrom'],
    keyPrefix: text('KEY_PREFIX'),
    apiHost: text('API_HOST'),
    apiPort: number('API_PORT'),
    adminHost: text('ADMIN_HOST'),
    adminPort: number('ADMIN_PORT'),
    adminToken: values.get('ADMIN_TOKEN') as string | undefined,
    baseUrl: (values.get('BASE_URL') as string | undefined)?.replace(/(?<!\/)\/+$/, ''),
    trustedProxies: proxies === undefined ? undefined : addressList(proxies),
    upstreams: upstreams(values),
    upstreamLimits: {
      bodyBytes: number('UPSTREAM_MAX_BYTES'),
      requestMs: number('UPSTREAM_MAX_SECONDS') * 1_000,
    },
    readerLimits: { pages: number('UPSTREAM_MAX_PAGES'), depth: number('UPSTREAM_MAX_DEPTH') },
    importCron: text('IMPORT_CRON'),
    importTimezone: text('IMPORT_TIMEZONE'),
    follow: text('FOLLOW') === 'true',
    maxShrinkPercent: number('MAX_SHRINK_PERCENT'),
    maxRejectPercent: number('MAX_REJECT_PERCENT'),
    maxChangePercent: number('MAX_CHANGE_PERCENT'),
    keepVersions: number('KEEP_VERSIONS'),
    defaultRate: values.get('DEFAULT_RATE') as string | undefined,
    workers: values.get('WORKERS') === 'auto' ? availableParallelism() : number('WORKERS'),
    maxStreams: number('MAX_STREAMS'),
    corsOrigins: values.get('CORS_ORIGINS') as Settings['corsOrigins'],
    maxRequests: number('MAX_REQUESTS'),
    waitReplicas: values.get('WAIT_REPLICAS') as number | undefined,
    logLevel: text('LOG_LEVEL'),
    accessLog: text('ACCESS_LOG') as Settings['accessLog'],
    webhookUrl: webhookUrl === undefined ? undefined : new URL(webhookUrl),
    webhookSecret: values.get('WEBHOOK_SECRET') as string | undefined,
  });
}

function tokenSetting(collection: string): string {
  return `${collection.toUpperCase()}_TOKEN`;
}

function upstreams(values: ReadonlyMap<string, unknown>): ReadonlyMap<string, UpstreamSettings> {
  const found = new Map<string, UpstreamSettings>();
  for (const { name } of importedCollections) {
    const url = values.get(urlSetting(name)) as string | undefined;
    const token = (values.get(tokenSetting(name)) ?? values.get('UPSTREAM_TOKEN')) as string | undefined;
    if (url !== undefined) found.set(name, { url: new URL(url), token });
  }
  return found;
}

function badSetting(definition: SettingDefinition, value: string): string {
  const shown = definition.secret ? '(not shown)' : JSON.stringify(withoutSecrets(value));
  return `${definition.name} is ${shown}; it takes ${definition.takes}.`;
}

/** Settings that are right, but not together, as a sentence each. */
function contradictions(values: ReadonlyMap<string, unknown>): string[] {
  const [host, port, adminHost, adminPort] = ['API_HOST', 'API_PORT', 'ADMIN_HOST', 'ADMIN_PORT'].map(
    (name) => values.get(name),
  );
  if (typeof host !== 'string' || typeof adminHost !== 'string') return [];
  if (!port || port !== adminPort || !overlap(host, adminHost)) return [];
  return [
    `ADMIN_PORT is ${port}, and so is API_PORT; the listeners at ADMIN_HOST ${adminHost} and API_HOST ${host} need two ports.`,
  ];
}

/** Whether two listeners at these addresses cannot have one port. */
function overlap(...hosts: [string, string]): boolean {
  const [one, other] = hosts.map((it) => (it.toLowerCase() === 'localhost' ? '127.0.0.1' : it.toLowerCase()));
  return one === other || hosts.some((it) => it === '0.0.0.0' || /^[0:]+$/.test(it));
}

/** A value as an error may show it: without the credentials and the query of a URL. */
function withoutSecrets(value: string): string {
  return value.replace(/^([a-z][a-z0-9+.-]*:(?:\/\/)?).*@/is, '$1***@').replace(/\?.*/s, '?***');
}

/** Addresses and ranges of them. @throws Error where one is none */
function addressList(value: string): BlockList {
  const list = new BlockList();
  for (const item of value.split(',')) {
    const [, address = '', digits] = /^ *([\dA-Fa-f.:]+)(?:\/(\d{1,3}))? *$/.exec(item) ?? [];
    const version = isIP(address);
    const bits = version === 4 ? 32 : 128;
    const length = digits === undefined ? bits : Number(digits);
    if (version === 0 || length > bits) throw new Error('not an address or a range');
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** A schedule as it was meant, with one space between its fields. @throws Error where it is none */
function cronLine(value: string): string {
  if (!isCronLine(value)) throw new Error('not a schedule');
  return value.trim().split(/\s+/).join(' ');
}

/** An origin as browsers write it. @throws Error where it is none */
function originOf(text: string): string {
  const { protocol, origin, href } = new URL(text.trim());
  if (!/^https?:$/.test(protocol) || href !== `${origin}/`) throw new Error('not an origin');
  return origin;
}

/** A rule for a URL of one of these protocols that also passes the test; gives it as the URL Standard writes it. */
function url(protocols: readonly string[], passes: (url: URL) => boolean): Joi.Schema {
  return Joi.string().custom((value: string) => {
    const parsed = new URL(value);
    const isBare = !/[?#]$/.test(parsed.href);
    if (!protocols.includes(parsed.protocol) || !isBare || !passes(parsed)) throw new Error('not such a URL');
    return parsed.href;
  });
}

function plain(it: URL): boolean {
  return (
    it.username === '' && it.password === '' && it.hash === '' && (it.host !== '' || it.protocol === 'file:')
  );
}
