/** The path of the first redis-server or valkey-server on the PATH that is new enough, or undefined. */
export function findRedisServer(): string | undefined;

/** The path of the first Chromium that starts: on the PATH, or where Homebrew puts it; or undefined. */
export function findChromium(): string | undefined;
