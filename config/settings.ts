// Reads and checks all settings at once, and reports each wrong one in one line.

import { BlockList, isIP } from 'node:net';
import { closestMatch } from 'leven';
import { parseServers } from '../shared/redis/server-url.ts';
import {
  definitions,
  type SettingDefinition,
  settingDefinitions,
  upstreamDefinitions,
  upstreamToken,
} from './definitions.ts';

type Definitions = typeof definitions;

/** The type of a setting without a default, if it is not set. */
type ValueOf<D extends SettingDefinition> = D extends { readonly default: string }
  ? ReturnType<D['parse']>
  : ReturnType<D['parse']> | undefined;

/** The upstream of a collection. */
export interface UpstreamSettings {
  readonly url: URL;
  /** The Bearer token. */
  readonly token: string | undefined;
}

/** All settings; `definitions` describes each one. */
export type Settings = { readonly [Name in keyof Definitions]: ValueOf<Definitions[Name]> } & {
  /** By collection name; collections without a URL are absent. */
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  /** Variables that are no settings, but have nearly the name of one, as sentences. */
  readonly misspelt: readonly string[];
};

/** Wrong settings. The message has one line for each: its name, value, and accepted values. */
export class SettingsError extends Error {}

/**
 * Reads and checks all settings. An empty variable counts as unset.
 * @param environment usually `process.env`
 * @throws SettingsError for all wrong settings, and for settings that contradict each other
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const wrong: string[] = [];
  const read = <Value>(definition: SettingDefinition<Value>): Value | undefined => {
    const text = environment[definition.name] || definition.default;
    try {
      return text === undefined ? undefined : definition.parse(text);
    } catch {
      const shown = definition.secret ? '(not shown)' : JSON.stringify(withoutSecrets(text ?? ''));
      wrong.push(`${definition.name} is ${shown}; it accepts ${definition.accepts}.`);
      return undefined;
    }
  };
  const upstreams = new Map<string, UpstreamSettings>();
  const commonToken = read(upstreamToken);
  for (const definition of upstreamDefinitions) {
    const url = read(definition.url);
    const token = read(definition.token) ?? commonToken;
    if (url) upstreams.set(definition.collection, { url, token });
  }
  const values = Object.entries(definitions).map(([name, definition]) => [name, read<unknown>(definition)]);
  const misspelt = misspeltNames(Object.keys(environment));
  const settings: Settings = Object.freeze({ ...Object.fromEntries(values), upstreams, misspelt });
  wrong.push(...contradictions(settings));
  if (wrong.length > 0) throw new SettingsError(wrong.join('\n'));
  return settings;
}

/** How many letters of a name may differ from a setting, so that it counts as misspelt. */
const maxDifferent = 2;

function misspeltNames(names: readonly string[]): string[] {
  const known = settingDefinitions.map(({ name }) => name);
  return names.flatMap((name) => {
    // Short names, such as USER, are near to too many.
    if (known.includes(name) || name.length < 6) return [];
    const meant = closestMatch(name, known, { maxDistance: maxDifferent });
    return meant === undefined ? [] : [`${name} is not a setting, and is ignored. Did you mean ${meant}?`];
  });
}

/** Returns contradictions between settings, as sentences. Settings that are wrong themselves are skipped. */
function contradictions({ apiHost, apiPort, adminHost, adminPort }: Partial<Settings>): string[] {
  if (!apiHost || !adminHost || !apiPort || apiPort !== adminPort || !overlap(apiHost, adminHost)) return [];
  return [
    `ADMIN_PORT is ${adminPort}, the same as API_PORT; the listeners at ADMIN_HOST ${adminHost} and API_HOST ${apiHost} need different ports.`,
  ];
}

/** Returns whether two listeners at these addresses cannot share a port. */
function overlap(...hosts: [string, string]): boolean {
  const [one, other] = hosts.map((it) => (it.toLowerCase() === 'localhost' ? '127.0.0.1' : it.toLowerCase()));
  return one === other || hosts.some((it) => it === '0.0.0.0' || /^[0:]+$/.test(it));
}

/** Returns a value for messages: without the credentials and the query of a URL. */
function withoutSecrets(value: string): string {
  return value.replace(/^([a-z][a-z0-9+.-]*:(?:\/\/)?).*@/is, '$1***@').replace(/\?.*/s, '?***');
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Returns warnings about valid settings, as sentences. */
export function settingWarnings(
  settings: Pick<Settings, 'apiHost' | 'baseUrl' | 'trustedProxies' | 'readFrom' | 'redisUrl' | 'misspelt'>,
): string[] {
  return [...settings.misspelt, ...linkWarnings(settings), ...replicaWarnings(settings)];
}

function replicaWarnings({ readFrom, redisUrl }: Pick<Settings, 'readFrom' | 'redisUrl'>): string[] {
  if (readFrom === 'master' || !['one', 'socket'].includes(parseServers(redisUrl).kind)) return [];
  return [
    'READ_FROM is replica, but REDIS_URL names one server, so contents are read from it. Set REDIS_URL to Sentinels or nodes of ' +
      'a Cluster, which know the replicas.',
  ];
}

function linkWarnings({
  apiHost,
  baseUrl,
  trustedProxies,
}: Pick<Settings, 'apiHost' | 'baseUrl' | 'trustedProxies'>): string[] {
  if (baseUrl !== undefined || trustedProxies !== undefined || isLoopback(apiHost)) return [];
  return [
    `BASE_URL is not set, and API_HOST is ${apiHost}: all links start with "http://" and the Host of the request, ` +
      'even behind a proxy with TLS. Set BASE_URL to the public address of the API, such as https://medref.example.',
  ];
}

function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0
    ? host.toLowerCase() === 'localhost'
    : loopback.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
