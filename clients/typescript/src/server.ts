// Where the server is, and a client of ioredis for it.
import { Redis, type RedisOptions } from 'ioredis'

/** Where the server is. */
export interface ServerOptions {
  /**
   * `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, a Unix socket,
   * `unix://[user:password@]/path[?db=database]`, or the primary that Sentinels name:
   * `redis+sentinel://[user:password@]host[:port][,host[:port]]…/name[/database]`.
   * By default the environment's SLUICE_URL, else `redis://localhost:6379`.
   */
  url?: string
  /**
   * Options of ioredis beside the URL, or in place of it: TLS, credentials, `sentinels` with a
   * `name`.
   */
  redis?: RedisOptions
}

const SENTINEL = 'redis+sentinel://'
const SENTINEL_PORT = 26379
const UNIX = /^unix:\/\//i
const SENTINEL_MS = 2000  // for one Sentinel, or to connect to the server that it names

/** Where the server is, without a password, for messages. */
export function shownUrl(server: ServerOptions): string {
  const redis = elsewhere(server)
  if (redis === null) return urlOf(server).replace(/\/\/.*@/, '//').replace(/\?.*/, '')
  const { host = 'localhost', port = 6379, path, sentinels, name } = redis
  if (sentinels != null) {
    const hosts = sentinels.map((each) =>
      `${each.host ?? 'localhost'}:${each.port ?? SENTINEL_PORT}`)
    return `${SENTINEL}${hosts.join(',')}/${name ?? ''}`
  }
  return path ?? `redis://${host}:${port}`
}

// What ioredis takes, a host without a scheme as well; and a Unix socket.
const SCHEME = /^(?:(?:rediss?|unix):\/\/|(?![\w+.-]+:\/\/))/i

/** Throws for a bad URL, which no other try makes better. */
export function checkServer(server: ServerOptions): void {
  const { db } = newRedis(server, '').options
  const url = urlOf(server)
  const isKnown = url.startsWith(SENTINEL) || SCHEME.test(url)
  if (elsewhere(server) !== null || (isKnown && Number.isInteger(db))) return
  throw new TypeError('a URL is redis://[user:password@]host[:port][/database], rediss://… for ' +
    'TLS, unix://[user:password@]/path, or redis+sentinel://…')
}

/** A client that connects once, when it is told to. */
export function newRedis(server: ServerOptions, name: string): Redis {
  const own: RedisOptions = {
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
  }
  const options: RedisOptions = {
    keepAlive: 30_000,
    connectionName: name,
    sentinelCommandTimeout: SENTINEL_MS,
    ...server.redis,
  }
  if (elsewhere(server) !== null) return new Redis({ ...options, ...own })
  const url = urlOf(server)
  if (url.startsWith(SENTINEL)) return new Redis({ ...sentinelOptions(url), ...options, ...own })
  if (UNIX.test(url)) return new Redis({ ...options, ...unixOptions(url), ...own })
  return new Redis(url, { ...options, ...own })
}

// The options of ioredis, if they say where the server is.
function elsewhere({ url, redis }: ServerOptions): RedisOptions | null {
  if (url !== undefined || redis === undefined) return null
  const place = redis.host ?? redis.port ?? redis.path ?? redis.sentinels
  return place == null ? null : redis
}

/** The URL, given or by default. */
export function urlOf(server: ServerOptions): string {
  return server.url ?? process.env['SLUICE_URL'] ?? 'redis://localhost:6379'
}

/** The options of ioredis for a URL with Sentinels. Throws for a bad one. */
export function sentinelOptions(url: string): RedisOptions {
  const [, username, password, hosts, name, database] =
    /^redis\+sentinel:\/\/(?:([^@/:]*)(?::([^@/]*))?@)?([^@/]+)\/([^/]+)(?:\/(\d+))?$/
      .exec(url) ?? []
  if (hosts === undefined || name === undefined) throw new TypeError(SENTINEL_FORM)
  return {
    sentinels: hosts.split(',').map(sentinelOf),
    name: decoded(name, SENTINEL_FORM),
    db: Number(database ?? 0),
    connectTimeout: SENTINEL_MS,
    ...(username ? { username: decoded(username, SENTINEL_FORM) } : {}),
    ...(password ? { password: decoded(password, SENTINEL_FORM) } : {}),
  }
}

/**
 * The options of ioredis for a URL of a Unix socket, which is written as for redis-py: user,
 * password and database may be parameters, too. ioredis itself would take the user for a part of
 * the path. Throws for a bad one.
 */
export function unixOptions(url: string): RedisOptions {
  const [, user, secret, place, query = ''] =
    /^unix:\/\/(?:([^:/?#]*)(?::([^/?#]*))?@)?(\/[^?#]+)(?:\?([^#]*))?$/i.exec(url) ?? []
  const given = new URLSearchParams(query)
  const unknown = [...given.keys()].find((name) => !UNIX_PARAMETERS.includes(name))
  if (unknown !== undefined) {
    throw new TypeError(`a URL of a Unix socket has no parameter ${unknown}: ` +
      'other options than db, username and password are in `redis`')
  }
  const database = given.get('db') ?? '0'
  const path = decoded(place ?? '', UNIX_FORM)
  const username = decoded(user ?? '', UNIX_FORM) || given.get('username')
  const password = decoded(secret ?? '', UNIX_FORM) || given.get('password')
  if (!path || !/^\d+$/.test(database)) throw new TypeError(UNIX_FORM)
  return {
    path,
    ...(given.has('db') ? { db: Number(database) } : {}),
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  }
}

const SENTINEL_FORM = `a URL of Sentinels is ${SENTINEL}[user:password@]host[:port],…/name[/db], ` +
  'percent-encoded'
const UNIX_PARAMETERS = ['db', 'username', 'password']
const UNIX_FORM = 'a URL of a Unix socket is unix://[user:password@]/path[?db=database], ' +
  'percent-encoded'

function decoded(part: string, form: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new TypeError(form)
  }
}

// A host with colons is in brackets.
function sentinelOf(address: string): { host: string, port: number } {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(address) ?? []
  const host = bracketed ?? plain
  if (host === undefined) throw new TypeError(`${address} is no address of a Sentinel, host[:port]`)
  return { host, port: Number(port ?? SENTINEL_PORT) }
}
