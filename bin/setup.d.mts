/** The path of the first redis-server or valkey-server on the PATH that is new enough, or undefined. */
export function findRedisServer(): string | undefined;
